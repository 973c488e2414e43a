# The page: one HTML file with this program as WebAssembly. Emscripten is Debian's package `emscripten`; zlib and zstd are
# compiled from Debian's sources, which are kept outside the tree.
PAGE := $(BUILD)/vramcast.html
PAGE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vramcast-page
PAGE_SRC := $(filter-out common/torch_layout.c $(shell sed -n 's/^VC_PROCESS_COMMAND(\(.*\))/commands\/cmd_\1%/p' commands/commands.def),$(LIB_SRC) $(CMD_SRC)) \
	page/memcmp.c allocator/arena.c allocator/areas.c $(addprefix nullgpu/,architecture.c properties.c python.c)
PAGE_TEXTS := $(addprefix $(BUILD)/page/commands/,hook_text.o env_text.o mcp_text.o)
PAGE_OBJ := $(PAGE_SRC:%.c=$(BUILD)/page/%.o) $(PAGE_TEXTS)
# What one who looks for a module of Node finds where Node itself is not Debian's.
EMCC = NODE_PATH=$${NODE_PATH:-/usr/share/nodejs} emcc
PAGE_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -DVC_VERSION='"$(VERSION)"' -I. -I$(BUILD) -I$(PAGE_CACHE)/include -O2 -MMD -MP -Wno-tautological-constant-out-of-range-compare
# A stack as large as Linux gives; memory grows up to all that 32 bits reach.
PAGE_LDFLAGS = -O3 -sENVIRONMENT=worker -sMODULARIZE -sEXPORT_NAME=vramcastEngine -sINVOKE_RUN=0 -sEXIT_RUNTIME=0 \
	-sTOTAL_STACK=8MB -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sFORCE_FILESYSTEM -lworkerfs.js \
	-sEXPORTED_RUNTIME_METHODS=FS,WORKERFS,callMain

page: ## the page for a browser, dist/vramcast.html (Emscripten; network once)
	$(Q)command -v emcc > /dev/null || { echo "make page needs Emscripten: apt-get install emscripten" >&2; exit 1; }
	$(Q)page/libraries.sh '$(PAGE_CACHE)'
	$(Q)$(MAKE) --no-print-directory $(PAGE)
	$(Q)mkdir -p $(DIST); cp $(PAGE) $(DIST)/vramcast.html; echo "$(DIST)/vramcast.html: $$(wc -c < $(PAGE)) bytes"
check-page: all ## the page answers as the program does: the same bytes, under node (Emscripten; skipped without)
	$(Q)V=1 $(RUN_TESTS) tests/page/check.sh
.PHONY: page check-page

$(PAGE_SRC:%.c=$(BUILD)/page/%.o): $(BUILD)/page/%.o: %.c
	$(Q)mkdir -p $(@D)
	$(call say,EMCC,$<)
	$(Q)$(EMCC) $(PAGE_CFLAGS) -c -o $@ $<
$(PAGE_TEXTS): $(BUILD)/page/%.o: $(BUILD)/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(EMCC) $(PAGE_CFLAGS) -c -o $@ $<
$(BUILD)/page/visualize/sinks/html.o: $(BUILD)/visualize/page.inc
$(BUILD)/page/engine.js: $(PAGE_OBJ) page/build.mk
	$(Q)rm -f $(BUILD)/page/engine.a; emar rcs $(BUILD)/page/engine.a $(filter-out %/vramcast.o %/memcmp.o,$(PAGE_OBJ))
	$(call say,LD,$@)
	$(Q)$(EMCC) $(PAGE_LDFLAGS) -o $@ $(BUILD)/page/vramcast.o $(BUILD)/page/page/memcmp.o $(BUILD)/page/engine.a $(PAGE_CACHE)/libraries.a
PAGE_PARTS := $(addprefix page/,page.html app.css app.js worker.js) $(addprefix visualize/,page.css page.js instrument.js)
$(PAGE): $(BUILD)/page/engine.js page/assemble.py $(PAGE_PARTS)
	$(call say,GEN,$@)
	$(Q)python3 page/assemble.py $(VERSION) $(BUILD)/page/engine $@
-include $(PAGE_OBJ:.o=.d)
