# The tracer: a library that lives in the recorded process, and the reading side for record.

# The recorder's side: part of vramcast itself.
RECORDER_SRC := $(addprefix tracer/,attach.c inject.c drain.c flight.c fold.c live.c process.c recover.c stream.c trace_file.c watch.c)
TRACE_SRC := $(filter-out $(RECORDER_SRC),$(sort $(wildcard tracer/*.c)))
TRACE_OBJ := $(TRACE_SRC:%.c=$(BUILD)/%.o) $(addprefix $(BUILD)/common/,journal_facts.o convolution.o torch_layout.o)
TRACE_LIB := $(BUILD)/libvramcast_trace.so
UNTESTED  += $(RECORDER_SRC:%.c=$(BUILD)/%.o)
EXTRA     += $(TRACE_LIB)
INSTALL_LIBS += $(TRACE_LIB)

# -z now: no lazy binding inside a signal handler or after fork. Nothing but libc is needed. The older
# hash table says how many symbols there are (bindings.c).
$(TRACE_LIB): $(TRACE_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-z,now,-z,defs,--hash-style=both,-soname,libvramcast_trace.so \
		-o $@ $(TRACE_OBJ) -ldl -lpthread

-include $(TRACE_OBJ:.o=.d) $(RECORDER_SRC:%.c=$(BUILD)/%.d)

# The Python stub travels inside the program: nothing to install, nothing to find.
UNTESTED += $(BUILD)/tracer/stub.o $(BUILD)/tracer/attach_stub.o
$(BUILD)/tracer/stub.c: python/after.py python/marks.py
$(BUILD)/tracer/attach_stub.c: python/attach.py
$(BUILD)/tracer/stub.c $(BUILD)/tracer/attach_stub.c:
	$(Q)mkdir -p $(@D)
	$(Q)( echo '#include "tracer/stub.h"'; echo 'const unsigned char vc_$(basename $(@F))[] = {'; \
		od -An -v -tx1 $^ | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; \
		echo '};'; echo 'const size_t vc_$(basename $(@F))_size = sizeof(vc_$(basename $(@F)));' ) > $@
$(BUILD)/tracer/stub.o $(BUILD)/tracer/attach_stub.o: %.o: %.c
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<
$(BUILD)/tracer/process.o: ALL_CFLAGS += -DVC_LIBDIR='"$(LIBDIR)"'

# ---- tests: small programs that are linked to stand-ins for PyTorch's libraries ----
TRACE_TESTS := $(BUILD)/tests/tracer
TRACE_PROGRAMS := $(addprefix $(TRACE_TESTS)/,libc10.so victim burst forks attached stop_at.so hook_cost null/libc10.so steps still_clock.so \
	libcupti_standin.so cupti_client cupti_profiler torch/lib/libc10.so torch/lib/libcudart.so.12 \
	torch/lib/libc10_cuda.so torch/lib/client torch/lib/rank torch/lib/train torch/lib/modules torch/lib/hooks torch/lib/libcudnn.so.9 torch/lib/convolve)
TRACE_SCRIPTS := $(filter-out lib.sh,$(notdir $(wildcard tests/tracer/*.sh)))
TESTS += $(sort $(foreach t,$(TRACE_SCRIPTS),$(if $(filter check_% bench_%,$(t)),,tests/tracer/$(t))))
BENCHES += tests/tracer/bench_stacks.sh tests/tracer/bench_hook.sh tests/tracer/bench_torch.sh tests/tracer/bench_tools.sh
EXTRA += $(TRACE_PROGRAMS)

$(TRACE_TESTS)/libc10.so: tests/tracer/c10.c
$(TRACE_TESTS)/null/libc10.so: tests/tracer/c10_null.c
$(TRACE_TESTS)/libcupti_standin.so: tests/tracer/cupti.c
$(TRACE_TESTS)/still_clock.so: tests/tracer/still_clock.c
$(TRACE_TESTS)/stop_at.so: tests/tracer/stop_at.c
$(TRACE_TESTS)/%.so: $(BUILD)/config.mk
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fvisibility=default -shared -Wl,-soname,$(@F) -o $@ $(filter %.c,$^) -lpthread -ldl
$(TRACE_TESTS)/cupti_client $(TRACE_TESTS)/cupti_profiler: TRACE_STANDIN = $(TRACE_TESTS)/libcupti_standin.so
$(TRACE_TESTS)/cupti_client $(TRACE_TESTS)/cupti_profiler: $(TRACE_TESTS)/libcupti_standin.so
TRACE_STANDIN = $(TRACE_TESTS)/libc10.so
$(TRACE_TESTS)/%: tests/tracer/%.c $(TRACE_TESTS)/libc10.so
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $< $(TRACE_STANDIN) -lpthread -ldl

# A stand-in for the libraries of a CUDA build of PyTorch, in folders like those of a wheel.
TRACE_TORCH := $(TRACE_TESTS)/torch/lib
$(TRACE_TORCH)/libc10.so: tests/tracer/torch_standin/c10.c
$(TRACE_TORCH)/libcudart.so.12: tests/tracer/torch_standin/cudart.c
$(TRACE_TORCH)/libcudnn.so.9: tests/tracer/torch_standin/cudnn.c
$(TRACE_TORCH)/libcudart.so.12 $(TRACE_TORCH)/libcudnn.so.9: $(BUILD)/config.mk
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fvisibility=default -shared -Wl,-soname,$(@F) -o $@ $(filter %.c,$^) -lpthread
$(TRACE_TORCH)/libc10_cuda.so: tests/tracer/torch_standin/c10_cuda.c $(TRACE_TORCH)/libc10.so \
		$(TRACE_TORCH)/libcudart.so.12 common/torch_layout.c
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fvisibility=default -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $< \
		common/torch_layout.c $(TRACE_TORCH)/libc10.so $(TRACE_TORCH)/libcudart.so.12 -lpthread
$(TRACE_TORCH)/convolve: TRACE_CUDNN = $(TRACE_TORCH)/libcudnn.so.9
$(TRACE_TORCH)/convolve: $(TRACE_TORCH)/libcudnn.so.9
$(addprefix $(TRACE_TORCH)/,client rank train convolve modules hooks): $(TRACE_TORCH)/%: tests/tracer/torch_standin/%.c $(TRACE_TORCH)/libc10_cuda.so
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN' -o $@ $< common/torch_layout.c $(TRACE_TORCH)/libc10_cuda.so \
		$(TRACE_TORCH)/libc10.so $(TRACE_TORCH)/libcudart.so.12 $(TRACE_CUDNN) -lpthread -ldl

check-torch-trace: all ## recordings of real PyTorch on the null GPU (TORCH_ENVS="DIR...")
	$(Q)TORCH_ENVS='$(TORCH_ENVS)' $(RUN_TESTS) tests/tracer/check_torch_trace.sh tests/tracer/check_flight.sh
check-attach: all ## record --pid: real PyTorch, attached to again and again while it trains (TORCH_ENVS="DIR...", TIMES=100)
	$(Q)TORCH_ENVS='$(TORCH_ENVS)' TIMES='$(TIMES)' $(RUN_TESTS) tests/tracer/check_attach.sh
check-torch-processes: all ## real PyTorch on the CPU: workers, ranks, a killed program (TORCH_ENVS="DIR...")
	$(Q)TORCH_ENVS='$(TORCH_ENVS)' $(RUN_TESTS) tests/tracer/check_torch_processes.sh
.PHONY: check-torch-trace check-torch-processes check-attach

check-tracer-threads: ## the tracer under ThreadSanitizer
	$(Q)$(MAKE) --no-print-directory SAN=thread DEPS=skip CFLAGS=-g tracer-threads
tracer-threads: $(TRACE_LIB) $(TRACE_PROGRAMS)
	$(Q)$(RUN_TESTS) tests/tracer/check_threads.sh
.PHONY: check-tracer-threads tracer-threads

check-gpu: all ## what only a machine with a GPU can show; appends to docs/measurements/gpu.md
	$(Q)TMP=$$(mktemp -d) VRAMCAST=$(BUILD)/vramcast BUILD=$(BUILD) TORCH_ENV='$(TORCH_ENV)' CHECK_GPU_NULL='$(CHECK_GPU_NULL)' \
		tests/tracer/check_gpu.sh
.PHONY: check-gpu
