# Rules of the test folders below tests/ (unit and cli tests are found by the top Makefile).
$(BUILD)/tests/golden-replay: tests/golden/replay.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libvramcast.a $(LIBS)

GOLDEN ?= ../shared/golden
check-golden: $(BUILD)/tests/golden-replay ## replay recorded vectors: GOLDEN=DIR
	$(Q)$< $(GOLDEN)
.PHONY: check-golden
