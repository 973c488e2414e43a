# The allocator that serves requests from a plan: a library that lives in the program.

PLAN_SRC := $(sort $(wildcard allocator/*.c))
PLAN_OBJ := $(PLAN_SRC:%.c=$(BUILD)/%.o) $(BUILD)/common/memory_plan.o $(BUILD)/common/error.o
PLAN_LIB := $(BUILD)/libvramcast_plan.so
LIB_OBJ  += $(BUILD)/allocator/arena.o
EXTRA    += $(PLAN_LIB)
INSTALL_LIBS += $(PLAN_LIB)

$(PLAN_LIB): $(PLAN_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-z,now,-z,defs,-soname,libvramcast_plan.so \
		-o $@ $(PLAN_OBJ) -ldl -lpthread

-include $(PLAN_OBJ:.o=.d)
