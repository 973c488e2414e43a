/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - the requests of a recording in order, what of it repeats, and a plan for them.
 *
 * Time is counted in requests: a block lives from its own request to the first one that came
 * behind its free. Blocks of one stream are placed in an area of their own, because nothing says
 * when another stream is done with a place. Requests in a private pool (CUDA graphs, MemPool) stay
 * out: their memory must not be given to anybody else. */
#pragma once

#include "common/memory_plan.h"
#include "simulator/replay/source.h"

struct vc_planned {
	struct vc_memory_plan plan;
	uint64_t bound;      /* of one arena for all streams, whatever order they work in */
	uint64_t bounds;     /* of the areas together */
	bool proven;         /* every area is as small as it can be */
	const char *how;     /* of the largest area */
	uint64_t requests;   /* of the recording */
	uint64_t at_start;   /* of these, blocks that lived before it began */
	uint64_t elsewhere, elsewhere_peak; /* in private pools; bytes live at once */
	uint64_t growing;    /* repeated requests whose blocks outlive the repetition */
	uint64_t growing_bytes;
};

/* Plan the requests of one device. Errors: VC_ENOMEM, VC_EFORMAT. */
int vc_sequence_plan(const struct vc_trace *t, uint16_t device, uint64_t effort,
		     struct vc_planned *out, struct vc_error *err);
void vc_planned_fini(struct vc_planned *p);
