# visualize: the style and the scripts of the report are files of their own, put in as lines of text.
$(BUILD)/visualize/page.inc: visualize/page.css visualize/page.js visualize/instrument.js visualize/build.mk
	$(Q)mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)for k in page.css page.js instrument.js; do \
		echo "static const char *const $$k[] = {" | tr . _; \
		sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/\t"&\\n",/' visualize/$$k; \
		echo '	NULL };'; \
	done > $@.tmp && mv $@.tmp $@
$(BUILD)/visualize/sinks/html.o: $(BUILD)/visualize/page.inc
$(BUILD)/visualize/sinks/html.o: ALL_CFLAGS += -I$(BUILD)

$(BUILD)/tests/bench-plot: tests/bench/bench_plot.c tests/support/extremes.h $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libvramcast.a $(LIBS)
BENCHES += $(BUILD)/tests/bench-plot
