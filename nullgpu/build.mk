# nullgpu/build.mk - the stand-in CUDA libraries, one shared object per soname.
#
# Files are called vcnull-SONAME: a folder with the real sonames exists only while a dry run lasts.
NULL_DIR := $(BUILD)/nullgpu
# The interface dictates the parameters; most stand-ins ignore most of them. No sanitizers: the
# libraries are preloaded into programs that are built without.
NULL_CFLAGS = $(filter-out -fsanitize% -fno-sanitize% --coverage,$(ALL_CFLAGS))

$(NULL_DIR)/%.def: nullgpu/names/stubs.txt nullgpu/names/stubs.awk
	$(Q)mkdir -p $(@D)
	$(Q)awk -v library=$* -f nullgpu/names/stubs.awk $< > $@

# $(call null_lib,SONAME,VERSION NODE or -,LIBRARY OF names/stubs.txt,SOURCES,FLAGS,FLAGS OF THE LINKER)
define null_lib_rules
NULL_LIBS += $(NULL_DIR)/vcnull-$(1)
$(NULL_DIR)/obj/$(1)/%.o: nullgpu/%.c $(NULL_DIR)/$(3).def nullgpu/build.mk $(BUILD)/config.mk $(BUILD)/flags.txt
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(NULL_CFLAGS) $(5) -DVC_TABLE='"$(abspath $(NULL_DIR))/$(3).def"' -c -o $$@ $$<
$(NULL_DIR)/obj/$(1)/%.o: common/%.c nullgpu/build.mk $(BUILD)/config.mk $(BUILD)/flags.txt
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(NULL_CFLAGS) -c -o $$@ $$<
$(NULL_DIR)/vcnull-$(1): $(4:%=$(NULL_DIR)/obj/$(1)/%.o) $(NULL_DIR)/obj/$(1)/stubs.o \
		$(if $(filter libcuda.so.1,$(1)),,$(NULL_DIR)/vcnull-libcuda.so.1)
	$$(call say,LD,$$@)
	$$(Q)printf '%s{ global: *; };\n' '$(if $(filter -,$(2)),,$(2) )' > $$@.map
	$$(Q)$$(CC) $$(CFLAGS) -shared -Wl,-soname,$(1) -Wl,--version-script=$$@.map -Wl,-z,now \
		-Wl,-rpath,'$$$$ORIGIN' $(6) -o $$@ $$(filter %.o,$$^) \
		$(if $(filter libcuda.so.1,$(1)),,-L$(NULL_DIR) -l:vcnull-libcuda.so.1) -lpthread -ldl
-include $(4:%=$(NULL_DIR)/obj/$(1)/%.d) $(NULL_DIR)/obj/$(1)/stubs.d
endef
null_lib = $(eval $(call null_lib_rules,$(strip $(1)),$(strip $(2)),$(strip $(3)),$(strip $(4)),$(strip $(5)),$(strip $(6))))

# Functions of the runtime that CuTe DSL's kernels call with an underscore in front (cute_dsl.c).
CUTE_DSL := $(foreach name,LibraryLoadData LibraryLoadFromFile LibraryUnload LibraryGetKernel LibraryGetKernelCount \
	LibraryGetGlobal LibraryGetManaged LibraryGetUnifiedFunction FuncSetAttribute KernelSetAttributeForDevice \
	GetDevice GetDeviceCount GetDeviceProperties SetDevice GetLastError DeviceGetAttribute DeviceSynchronize Malloc \
	MallocAsync MallocHost MallocManaged Free FreeAsync FreeHost Memcpy MemcpyAsync Memset MemsetAsync StreamCreate \
	StreamDestroy StreamSynchronize StreamAddCallback StreamBeginCapture StreamEndCapture EventCreate EventRecord \
	EventDestroy EventElapsedTime GraphInstantiate GraphLaunch GraphDestroy GraphExecDestroy ProfilerStart \
	ProfilerStop OccupancyMaxActiveBlocksPerMultiprocessor,-Wl$(comma)--defsym=_cuda$(name)=cuda$(name)) \
	-Wl$(comma)--defsym=_cudaLaunchKernelEx=cudaLaunchKernelExC \
	$(foreach name,LoadData LoadFromFile Unload GetKernel GetUnifiedFunction GetKernelCount,\
	-Wl$(comma)--defsym=_cuLibrary$(name)=cudaLibrary$(name))

$(call null_lib, libcuda.so.1, -, driver, card architecture space vram fresh blocks made_up copies clock streams watchdog late end launches activity report others driver driver_memory share foreach launch_work kernel_work)
$(call null_lib, libnvidia-ml.so.1, -, nvml, nvml, -DVC_NOSUP_CODE=3)
$(call null_lib, libcudart.so.12, libcudart.so.12, runtime, runtime runtime_memory runtime_streams cute_dsl, -DVC_CUDA_MAJOR=12, $(CUTE_DSL))
$(call null_lib, libcudart.so.13, libcudart.so.13, runtime, runtime runtime_memory runtime_streams cute_dsl, -DVC_CUDA_MAJOR=13, $(CUTE_DSL))
$(call null_lib, libcublas.so.12, libcublas.so.12, cublas, cublas, -DVC_CUDA_MAJOR=12)
$(call null_lib, libcublas.so.13, libcublas.so.13, cublas, cublas, -DVC_CUDA_MAJOR=13)
$(call null_lib, libcublasLt.so.12, libcublasLt.so.12, cublaslt, cublaslt)
$(call null_lib, libcublasLt.so.13, libcublasLt.so.13, cublaslt, cublaslt)
$(call null_lib, libcudnn.so.9, libcudnn.so.9, cudnn, cudnn cudnn_graph cudnn_rnn cudnn_workspace cudnn_table cudnn_ask plans_path plans_wire convolution plan_table)
$(call null_lib, libcufft.so.11, libcufft.so.11, cufft, cufft)
$(call null_lib, libcufft.so.12, libcufft.so.12, cufft, cufft)
$(call null_lib, libcurand.so.10, libcurand.so.10, curand)
$(call null_lib, libcusparse.so.12, libcusparse.so.12, cusparse, cusparse)
$(call null_lib, libcusparseLt.so.0, -, cusparselt)
$(call null_lib, libcusolver.so.11, libcusolver.so.11, cusolver)
$(call null_lib, libcusolver.so.12, libcusolver.so.12, cusolver)
$(call null_lib, libnccl.so.2, -, nccl, nccl nccl_buffers nccl_data exchange reduce)
$(call null_lib, libnvrtc.so.12, libnvrtc.so.12, nvrtc, nvrtc, -DVC_CUDA_MAJOR=12)
$(call null_lib, libnvrtc.so.13, libnvrtc.so.13, nvrtc, nvrtc, -DVC_CUDA_MAJOR=13)
$(call null_lib, libcupti.so.12, libcupti.so.12, cupti, nullcupti, -DVC_CUDA_MAJOR=12)
$(call null_lib, libcupti.so.13, libcupti.so.13, cupti, nullcupti, -DVC_CUDA_MAJOR=13)
$(call null_lib, libcufile.so.0, -, cufile)
$(call null_lib, libnvshmem_host.so.3, NVSHMEM, nvshmem)
$(call null_lib, libnvJitLink.so.12, libnvJitLink.so.12, nvjitlink)
$(call null_lib, libnvJitLink.so.13, libnvJitLink.so.13, nvjitlink)
$(call null_lib, libnvToolsExt.so.1, libnvToolsExt.so.1, nvtx)

# The model of alias.c: an empty library with room for three names.
null_64 = $(subst x,$(1)$(1)$(1)$(1),xxxxxxxxxxxxxxxx)
$(NULL_DIR)/vcnull-alias: nullgpu/build.mk $(BUILD)/config.mk
	$(Q)mkdir -p $(NULL_DIR)/obj
	$(call say,LD,$@)
	$(Q): > $(NULL_DIR)/obj/empty.c
	$(Q)printf '%s { global: *; };\n' '$(call null_64,V)' > $@.map
	$(Q)$(CC) $(CFLAGS) -w -shared -nostdlib -Wl,-soname,$(call null_64,N) -o $@.needed $(NULL_DIR)/obj/empty.c
	$(Q)$(CC) $(CFLAGS) -w -shared -nostdlib -Wl,-soname,$(call null_64,S) -Wl,--version-script=$@.map \
		-Wl,--no-as-needed -o $@ $(NULL_DIR)/obj/empty.c $@.needed
NULL_LIBS += $(NULL_DIR)/vcnull-alias

NULL_PYTHON := $(patsubst nullgpu/python/%,$(NULL_DIR)/vcnull-%,$(wildcard nullgpu/python/*.py))
$(NULL_DIR)/vcnull-%.py: nullgpu/python/%.py
	$(Q)mkdir -p $(@D)
	$(Q)cp $< $@

$(NULL_DIR)/vcnull-sitecustomize.py: python/after.py nullgpu/python/sitecustomize.py
	$(Q)mkdir -p $(@D)
	$(Q)cat $^ > $@

EXTRA += $(NULL_LIBS) $(NULL_PYTHON)
INSTALL_LIBS += $(NULL_LIBS) $(NULL_PYTHON)

# The process that asks the installed cuDNN.
PLANS_OBJ := $(addprefix $(BUILD)/,nullgpu/plans_main.o nullgpu/plans_cudnn.o nullgpu/plans_rows.o nullgpu/plans_wire.o \
	common/convolution.o common/error.o)
$(NULL_DIR)/vcnull-cudnn-plans: $(PLANS_OBJ)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -lpthread -ldl
-include $(PLANS_OBJ:.o=.d)
# The stand-in libcublasLt without the null device, for that process.
define plans_lib_rules
PLANS_LIBS += $(NULL_DIR)/vcnull-plans-$(1)
$(NULL_DIR)/vcnull-plans-$(1): nullgpu/cublaslt.c nullgpu/stubs.c nullgpu/plans_products.c nullgpu/null.h \
		$(NULL_DIR)/cublaslt.def nullgpu/build.mk
	$$(Q)mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)printf '$(1) { global: *; };\n' > $$@.map
	$$(Q)$$(CC) $$(filter-out -MMD -MP,$$(NULL_CFLAGS)) -DVC_TABLE='"$(abspath $(NULL_DIR))/cublaslt.def"' -shared \
		-Wl,-soname,$(1) -Wl,--version-script=$$@.map -Wl,-z,now -o $$@ $$(filter %.c,$$^)
endef
$(eval $(call plans_lib_rules,libcublasLt.so.12))
$(eval $(call plans_lib_rules,libcublasLt.so.13))
EXTRA += $(NULL_DIR)/vcnull-cudnn-plans $(PLANS_LIBS)
INSTALL_LIBS += $(NULL_DIR)/vcnull-cudnn-plans $(PLANS_LIBS)

# The stand-in nvidia-smi: a program, which needs no library of ours.
SMI_OBJ := $(addprefix $(NULL_DIR)/obj/smi/,smi.o card.o architecture.o)
$(NULL_DIR)/obj/smi/%.o: nullgpu/%.c nullgpu/build.mk $(BUILD)/config.mk $(BUILD)/flags.txt
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(NULL_CFLAGS) -c -o $@ $<
$(NULL_DIR)/vcnull-nvidia-smi: $(SMI_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lpthread
-include $(SMI_OBJ:.o=.d)
EXTRA += $(NULL_DIR)/vcnull-nvidia-smi
INSTALL_LIBS += $(NULL_DIR)/vcnull-nvidia-smi

# The reading side, for `vramcast dryrun`.
UNTESTED += $(addprefix $(BUILD)/nullgpu/,elf.o alias.o stage.o python.o architecture.o properties.o installed.o plans_path.o)
-include $(addprefix $(BUILD)/nullgpu/,elf.d alias.d stage.d python.d architecture.d properties.d installed.d plans_path.d)

# ---- tests: a C program, and dryrun on a made-up PyTorch ----
$(BUILD)/tests/nullgpu/program: tests/nullgpu/program.c $(NULL_LIBS)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -o $@ $< -L$(NULL_DIR) -l:vcnull-libcuda.so.1 \
		-l:vcnull-libcudart.so.12 -l:vcnull-libnvidia-ml.so.1 -lpthread
$(BUILD)/tests/nullgpu/cute_dsl: tests/nullgpu/cute_dsl.c $(NULL_LIBS)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -o $@ $< -lpthread -ldl
$(BUILD)/tests/nullgpu/cudnn: tests/nullgpu/cudnn.c $(NULL_LIBS)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -o $@ $< -L$(NULL_DIR) \
		-l:vcnull-libcudnn.so.9 -l:vcnull-libcuda.so.1
$(BUILD)/tests/nullgpu/rnn: tests/nullgpu/rnn/rnn.c $(NULL_LIBS)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -o $@ $< -L$(NULL_DIR) \
		-l:vcnull-libcudnn.so.9 -l:vcnull-libcuda.so.1
$(BUILD)/tests/nullgpu/deviceless.so: tests/nullgpu/deviceless.c
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -fvisibility=default -Wno-unused-parameter -shared \
		-Wl,-soname,libcudnn.so.9 -o $@ $<
$(BUILD)/tests/nullgpu/nccl: tests/nullgpu/world/nccl.c $(NULL_LIBS)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -o $@ $< -L$(NULL_DIR) \
		-l:vcnull-libnccl.so.2 -l:vcnull-libcudart.so.12 -l:vcnull-libcuda.so.1
EXTRA += $(BUILD)/tests/nullgpu/program $(BUILD)/tests/nullgpu/cute_dsl $(BUILD)/tests/nullgpu/cudnn $(BUILD)/tests/nullgpu/rnn $(BUILD)/tests/nullgpu/deviceless.so $(BUILD)/tests/nullgpu/nccl
BENCHES += tests/nullgpu/bench_step.sh
TESTS += tests/nullgpu/device.sh tests/nullgpu/cudnn.sh tests/nullgpu/cute_dsl.sh tests/nullgpu/preload.sh tests/nullgpu/plans.sh tests/nullgpu/stage.sh tests/nullgpu/xla/made_up.sh tests/nullgpu/late.sh tests/nullgpu/smi.sh tests/nullgpu/fft.sh tests/nullgpu/products.sh tests/nullgpu/rnn/rnn.sh tests/nullgpu/world/nccl.sh tests/nullgpu/world/rounds.sh tests/nullgpu/verdict.sh tests/nullgpu/server.sh

.PHONY: check-cudnn check-torch check-torch-recordings check-measured check-models check-ranks check-runs check-world check-leave check-published published check-serving check-sglang check-xla
check-torch: all ## real PyTorch versions on the null GPU (cached outside the tree; TORCH="2.9.1 newest")
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/torch/check.sh
check-torch-recordings: all ## scripts recorded on real GPUs, rerun on the null GPU (needs ../shared)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/torch/recordings.sh
check-measured: all ## dry runs held against peaks that others measured on real cards (cached outside the tree)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/measured/check.sh
check-cudnn: all ## workspaces of convolutions are those of the installed cuDNN (cached outside the tree; TORCH="2.9.1 2.11.0" CARDS="rtx3060 h100-80g-sxm")
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/cudnn/check.sh
check-models: all ## training scripts of common libraries on the null GPU (cached outside the tree)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/models/check.sh
check-ranks: all ## jobs of several ranks on the null GPU (cached outside the tree; RANKS="1 2 4 8")
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/ranks/check.sh
check-world: all ## a rank played alone against the same beside real others (cached outside the tree; RANKS="2 4" WAYS="ddp fsdp2")
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/world/check.sh
check-leave: all ## one rank alone that leaves badly, in each way and at each phase (cached outside the tree; TORCH="2.6.0 2.9.1")
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/world/leave.sh
check-published: all ## dry runs held against published peaks of jobs of many cards, and of nets of one (cached outside the tree; F=megatron for some)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/published/check.sh
published: all ## the same and check-measured, written into docs/measurements/published.tsv (F=megatron for some)
	$(Q)V=1 TABLE=$(abspath docs/measurements/published.tsv) $(RUN_TESTS) tests/nullgpu/published/check.sh \
		$(if $(F),,tests/nullgpu/measured/check.sh)
check-serving: all ## vLLM's cache on the null GPU against published log lines (vLLM lies outside the tree: VLLM=PYTHON; F=Llama for some)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/serving/check.sh
check-xla: all ## JAX and TensorFlow on the null GPU (cached outside the tree)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/xla/check.sh
check-sglang: all ## SGLang on the null GPU: its cache against its own arithmetic and published log lines (outside the tree: SGLANG=PYTHON; F=Llama for some)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/serving/sglang.sh
check-runs: all ## dry runs do the same every time, alone or several in one process (cached outside the tree)
	$(Q)V=1 $(RUN_TESTS) tests/nullgpu/runs/check.sh
