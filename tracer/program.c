/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - what the program itself tells: vramcast_mark and vramcast_step. */

#include "tracer/marks.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/samples.h"
#include "tracer/stacks.h"

/* The exported ones: for C programs (weak reference or dlsym) and ctypes.CDLL(None). */
void vramcast_mark(const char *name);
void vramcast_step(void);

VC_EXPORT void vramcast_mark(const char *name)
{
	if (name)
		vc_marks_put(VC_MARK_INSTANT, vc_names_put(name));
}

VC_EXPORT void vramcast_step(void)
{
	vc_marks_put(VC_MARK_STEP, vc_names_put("step"));
	vc_stacks_step();
	vc_cuda_sample_sometimes();
}
