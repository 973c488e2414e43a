/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - what the program itself tells: marks, steps, and what is recorded. */

#include "tracer/marks.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/samples.h"
#include "tracer/stacks.h"

/* The exported ones: for C programs (weak reference or dlsym) and ctypes.CDLL(None). */
void vramcast_mark(const char *name);
void vramcast_step(void);
void vramcast_optimizer_step(void);
void vramcast_start(void);
void vramcast_stop(void);
void vramcast_dump(void);

VC_EXPORT void vramcast_mark(const char *name)
{
	if (name)
		vc_marks_put(VC_MARK_INSTANT, vc_names_put(name));
}

/* The program tells its steps itself: those of its optimizers would be a second mark of each. */
static bool tells;

static void put_step(void)
{
	vc_marks_put(VC_MARK_STEP, vc_names_put("step"));
	vc_stacks_step();
	vc_cuda_sample_sometimes();
}

VC_EXPORT void vramcast_step(void)
{
	__atomic_store_n(&tells, true, __ATOMIC_RELAXED);
	put_step();
}

VC_EXPORT void vramcast_optimizer_step(void)
{
	if (!__atomic_load_n(&tells, __ATOMIC_RELAXED))
		put_step();
}

/* The program steers the recorder: which part is recorded (--paused), what is sealed (--keep). */
static void control(enum vc_control what)
{
	vc_record_put((struct vc_record){ .kind = VC_REC_CONTROL, .size = what });
}

VC_EXPORT void vramcast_start(void)
{
	control(VC_CONTROL_START);
}

VC_EXPORT void vramcast_stop(void)
{
	control(VC_CONTROL_STOP);
}

VC_EXPORT void vramcast_dump(void)
{
	control(VC_CONTROL_DUMP);
}
