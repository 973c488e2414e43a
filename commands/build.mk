# The hook that changes programs, the server for assistants and what makes environments travel inside the program: nothing
# to install, nothing to find.
TEXTS := $(addprefix $(BUILD)/commands/,mcp_text env_text probe_text probe_workspaces_text)
CMD_OBJ += $(BUILD)/commands/hook_text.o $(TEXTS:=.o)
$(BUILD)/commands/hook_text.c: python/after.py python/change_hook.py python/budget_hook.py
	$(Q)mkdir -p $(@D)
	$(Q)( echo '#include "commands/change_hook.h"'; echo 'const unsigned char vc_hook_text[] = {'; \
		od -An -v -tx1 $^ | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; \
		echo '};'; echo 'const size_t vc_hook_size = sizeof(vc_hook_text);' ) > $@
$(BUILD)/commands/mcp_text.c: python/mcp_server.py
$(BUILD)/commands/env_text.c: python/env.py
$(BUILD)/commands/probe_text.c: python/probe.py
$(BUILD)/commands/probe_workspaces_text.c: python/probe_workspaces.py
$(TEXTS:=.c): $(BUILD)/commands/%_text.c:
	$(Q)mkdir -p $(@D)
	$(Q)( echo '#include "commands/mcp_text.h"'; echo 'const char vc_$*_text[] = {'; \
		od -An -v -tx1 $< | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '0 };' ) > $@
$(BUILD)/commands/hook_text.o $(TEXTS:=.o): %.o: %.c
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<
