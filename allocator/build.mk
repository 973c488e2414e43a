# The allocator that serves requests from a plan: a library that lives in the program.

PLAN_SRC := $(sort $(wildcard allocator/*.c))
PLAN_OBJ := $(PLAN_SRC:%.c=$(BUILD)/%.o) $(addprefix $(BUILD)/common/,memory_plan.o error.o sort.o torch_layout.o)
PLAN_LIB := $(BUILD)/libvramcast_plan.so
LIB_OBJ  += $(BUILD)/allocator/arena.o $(BUILD)/allocator/areas.o
EXTRA    += $(PLAN_LIB)
INSTALL_LIBS += $(PLAN_LIB)

$(PLAN_LIB): $(PLAN_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-z,now,-z,defs,-soname,libvramcast_plan.so \
		-o $@ $(PLAN_OBJ) -ldl -lpthread

-include $(PLAN_OBJ:.o=.d)

# ---- tests: a C program on the null GPU's runtime; with PyTorch by hand ----
$(BUILD)/tests/plan/client: tests/plan/client.c $(BUILD)/nullgpu/vcnull-libcudart.so.12
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -o $@ $< -L$(BUILD)/nullgpu -Wl,--no-as-needed \
		-l:vcnull-libcuda.so.1 -l:vcnull-libcudart.so.12 -ldl
EXTRA += $(BUILD)/tests/plan/client
TESTS += tests/plan/allocator.sh
check-plan: all ## programs of PyTorch run by a plan on the null GPU (cached outside the tree; TORCH=2.11.0)
	$(Q)V=1 $(RUN_TESTS) tests/plan/check.sh
.PHONY: check-plan

$(BUILD)/tests/plan/overhead.so: tests/plan/overhead.c common/torch_layout.c common/torch_layout.h
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -shared -o $@ $(filter %.c,$^) -ldl
EXTRA += $(BUILD)/tests/plan/overhead.so
BENCHES += tests/plan/bench.sh
