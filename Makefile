# make            build what this machine can build
# make demo       install what is missing, build, simulate a real recording, draw it
# make check      every test that needs no GPU; ends with "N passed, N failed"
# make help       the list of targets
#
# V=1 show the commands · DEBUG=1 · SAN=address,undefined · COV=1 · CC=clang · DEPS=skip · ARCH=aarch64
# T="test_codec sim.sh" these tests · F='varint*' tests of it by name

VERSION := 1.0.0
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib/vramcast
MANDIR  ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
BUILD   ?= build
DIST    ?= dist
PKG_CONFIG ?= pkg-config
CUDA_HOME  ?= /usr/local/cuda
# Another machine's processor: compiled by Debian's cross compiler, run by qemu (scripts/foreign.sh).
ifneq ($(filter-out $(shell uname -m),$(ARCH)),)
  CC         := $(ARCH)-linux-gnu-gcc
  PKG_CONFIG := env PKG_CONFIG_LIBDIR=/usr/lib/$(ARCH)-linux-gnu/pkgconfig pkg-config
  BUILD      := build-$(ARCH)
  export ARCH CC
endif
comma := ,
.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules # none is used, and make would try them all on each header

Q   := $(if $(filter 1,$(V)),,@)
space := $() $()
say  = $(if $(filter 1,$(V)),,$(info $(space) $(1)$(if $(filter GEN,$(1)),,$(space)) $(space) $(2)))

# -g1: lines for a trace, in a seventh less time than with all variables. DEBUG=1 has these.
CFLAGS ?= -O2 -g1
# Callbacks have the parameters of their socket, and need not use them all.
WARN   := -Wall -Wextra -Wno-unused-parameter -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -DVC_VERSION='"$(VERSION)"' -I. $(WARN) $(CFLAGS) \
	-fPIC -fvisibility=hidden -pthread -MMD -MP $(CONFIG_CFLAGS)
LIBS = $(CONFIG_LIBS) -lm -lpthread -ldl
ifeq ($(DEBUG),1)
  ALL_CFLAGS += -O0 -g3 -Werror
endif
ifeq ($(COV),1)
  ALL_CFLAGS += --coverage -O0
  BUILD := $(BUILD)-cov
endif
ifneq ($(SAN),)
  ALL_CFLAGS += -Og -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=$(SAN)
  BUILD := $(BUILD)-$(subst $(comma),-,$(SAN))
endif

# Goals that need no compiler must not start the probe.
QUIET_GOALS := help clean deps
ifneq ($(if $(MAKECMDGOALS),$(filter-out $(QUIET_GOALS),$(MAKECMDGOALS)),all),)
  -include $(BUILD)/config.mk
endif

$(BUILD)/config.mk: scripts/probe.sh scripts/deps.sh
	$(Q)DEPS=$(DEPS) scripts/deps.sh
	$(Q)mkdir -p $(BUILD)
	$(Q)CC="$(CC)" PKG_CONFIG="$(PKG_CONFIG)" CUDA_HOME="$(CUDA_HOME)" scripts/probe.sh > $@.tmp && mv $@.tmp $@

# ---- sources: adding a file to a folder is enough ----
LIB_SRC := $(sort $(wildcard common/*.c simulator/*/*.c visualize/*.c visualize/*/*.c))
CMD_SRC := vramcast.c $(sort $(wildcard commands/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(BUILD)/%.o)
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT    := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%)
CLI     := $(sort $(wildcard tests/cli/*.sh))
TESTS   :=
BENCHES :=
EXTRA   :=
UNTESTED := # objects of the library that no unit test needs

all: $(BUILD)/vramcast ## build everything this machine can build

# A folder with rules of its own brings a fragment; it may add to TESTS, BENCHES and EXTRA.
include $(sort $(wildcard */build.mk))
all: $(EXTRA)
LIB_OBJ += $(UNTESTED)
# Half of the time of the tests of pictures, models and placements, where they are sanitized.
ifneq ($(SAN),)
$(addprefix $(BUILD)/,simulator/models/torch_view.o simulator/observers/heapmap.o \
	simulator/packing/pack_fit.o simulator/packing/pack_search.o simulator/packing/packing.o \
	visualize/addressmap.o visualize/raster.o visualize/reduce.o): ALL_CFLAGS += -O2
endif

# Objects are compiled again when the flags change (the version is among them), but not for other warnings.
FLAGS := $(filter-out $(WARN),$(ALL_CFLAGS))
$(BUILD)/flags.txt: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

$(BUILD)/%.o: %.c $(BUILD)/config.mk $(BUILD)/flags.txt | $(BUILD)/objects.txt
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The list of objects is itself a prerequisite: a deleted file must not linger in the archive. Who writes it makes their
# folders.
$(BUILD)/objects.txt: FORCE
	$(Q)mkdir -p $(sort $(dir $@ $(LIB_OBJ) $(CMD_OBJ)))
	$(Q)echo '$(LIB_OBJ) $(CMD_OBJ)' | cmp -s - $@ || echo '$(LIB_OBJ) $(CMD_OBJ)' > $@

$(BUILD)/libvramcast.a: $(LIB_OBJ) $(BUILD)/objects.txt
	$(call say,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $(LIB_OBJ)

$(BUILD)/vramcast: $(CMD_OBJ) $(BUILD)/libvramcast.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(CMD_OBJ) $(BUILD)/libvramcast.a $(LIBS)

# What a test, or a header of it, includes is a prerequisite once it was built, too, and must not be linked beside it.
included = $(shell sed -n 's/^.include "\(.*\.c\)"/\1/p' $< $(filter %.h,$^))
$(BUILD)/tests/%: tests/unit/%.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter-out $(included),$(filter %.c %.o,$^)) $(BUILD)/libvramcast.a $(CMOCKA_LIBS) $(LIBS)

demo: deps ## install what is missing, build, simulate a real recording on two cards, draw it
	$(Q)$(MAKE) --no-print-directory all
	$(Q)VRAMCAST=$(BUILD)/vramcast scripts/demo.sh

# ---- checks ----
RUN_TESTS = VRAMCAST=$(BUILD)/vramcast BUILD=$(BUILD) F='$(F)' scripts/run-tests.sh
SANITIZED := address,undefined

deps: ## install what is missing (says what; DEPS=skip to leave the machine alone)
	$(Q)DEPS=$(DEPS) scripts/deps.sh
	$(Q)$(if $(ARCH),DEPS=$(DEPS) scripts/foreign.sh $(ARCH))

# Without -j the compiler would use one core: `make check` is what most people type.
CORES = $(shell nproc 2> /dev/null || echo 2)
check: deps ## all tests; the last line is "N passed, N failed"
	$(Q)$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(CORES)) check-all
# Unit tests run once, with the sanitizers: what they assert is the same there. Two of them judge so many pictures that
# the plain copies take a part. With COV=1 everything is plain: counters are writable globals.
SANITIZED_COPY := $(BUILD)-$(subst $(comma),-,$(SANITIZED))
ifneq ($(COV)$(ARCH),)
PLAIN := $(UNIT)
ONCE := scripts/check-layers.sh scripts/check-circles.sh scripts/check-style.sh scripts/check-words.sh $(UNIT) $(CLI) $(TESTS)
else
PLAIN := $(filter %/test_drawn %/test_extremes,$(UNIT))
ONCE := scripts/check-layers.sh scripts/check-circles.sh scripts/check-style.sh scripts/check-words.sh scripts/check-state.sh \
	$(PLAIN) $(UNIT:$(BUILD)/%=$(SANITIZED_COPY)/%) $(CLI) $(TESTS)
check-all: $(if $(T),,check-sanitized-build)
endif
ifeq ($(T),)
check-all: all $(PLAIN)
	$(Q)$(if $(COV),,SHARED=1) $(RUN_TESTS) $(ONCE)$(if $(COV),; r=$$?; scripts/coverage.sh $(BUILD); exit $$r)
else
check-all: all $(filter $(T:%=\%/%),$(UNIT))
	$(Q)$(RUN_TESTS) $(filter $(T:%=\%/%),$(UNIT)) $(filter $(T:%=\%/%) $(T:%=\%/%.sh),$(CLI) $(TESTS))
endif

# -g1: a trace with lines needs no more. With -Og instead of -O1 the copy is compiled in two thirds of the time, and runs
# a twentieth slower. The plain copy has had the warnings. What no unit test links (UNTESTED) is left out.
check-sanitized-build:
	$(Q)$(MAKE) --no-print-directory SAN=$(SANITIZED) CFLAGS=-g1 WARN=-w DEPS=skip UNTESTED= unit-tests

check-sanitized: ## tests/cli with the program under the address and undefined behaviour sanitizers
	$(Q)$(MAKE) --no-print-directory SAN=$(SANITIZED) DEPS=skip check-cli
check-cli: all
	$(Q)ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1 $(RUN_TESTS) $(CLI)

unit-tests: $(UNIT)

check-quick: all $(UNIT) ## the fast part of check: layers, circles, style, words, state, unit tests
	$(Q)$(RUN_TESTS) scripts/check-layers.sh scripts/check-circles.sh scripts/check-style.sh scripts/check-words.sh \
		scripts/check-state.sh $(UNIT)

check-layers: ## who may include whom
	$(Q)scripts/check-layers.sh
check-circles: all ## no two files need each other
	$(Q)BUILD=$(BUILD) scripts/check-circles.sh
check-style: ## lengths, banned functions, guards
	$(Q)scripts/check-style.sh
check-words: ## documents and messages use the field's words
	$(Q)scripts/check-words.sh
check-state: $(BUILD)/libvramcast.a ## no writable globals in the libraries
	$(Q)BUILD=$(BUILD) scripts/check-state.sh

rooms: ## lines of code per room
	$(Q)scripts/rooms.sh
words: ## words of the documents, per folder; fails above the limit
	$(Q)scripts/words.sh
weight: all unit-tests ## lines of each file, how many commands reach it, which tests are about it
	$(Q)BUILD=$(BUILD) scripts/weight.sh

bench: all $(BENCHES) ## measure; prints "bench NAME VALUE UNIT"; TRACE=FILE measures replay on it
	$(Q)for b in $(BENCHES); do VRAMCAST=$(BUILD)/vramcast BUILD=$(BUILD) TRACE='$(TRACE)' $$b || exit 1; done

install: all ## into $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/vramcast $(DESTDIR)$(BINDIR)/vramcast
	for f in $(INSTALL_LIBS); do install -m 755 $$f $(DESTDIR)$(LIBDIR)/ || exit 1; done
	[ ! -f $(BUILD)/vramcast.html ] || install -m 644 $(BUILD)/vramcast.html $(DESTDIR)$(LIBDIR)/
	install -d $(DESTDIR)$(MANDIR)/man1
	$(BUILD)/vramcast manpage > $(DESTDIR)$(MANDIR)/man1/vramcast.1
	for c in $$($(BUILD)/vramcast help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do \
		$(BUILD)/vramcast manpage $$c > $(DESTDIR)$(MANDIR)/man1/vramcast-$$c.1 || exit 1; done
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	$(BUILD)/vramcast completions bash > $(DESTDIR)$(BASHDIR)/vramcast
	$(BUILD)/vramcast completions zsh > $(DESTDIR)$(ZSHDIR)/_vramcast
	$(BUILD)/vramcast completions fish > $(DESTDIR)$(FISHDIR)/vramcast.fish

clean: ## remove what was built
	$(Q)rm -rf build build-* out

help: ## this list
	$(Q)sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile */build.mk | sort | expand -t 20

FORCE:
.PHONY: FORCE all deps check check-all check-cli check-sanitized check-quick check-layers check-circles check-style check-words check-state rooms words weight \
	check-sanitized-build unit-tests bench install clean help demo
.DELETE_ON_ERROR:
.SECONDARY:
-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(UNIT:=.d)
