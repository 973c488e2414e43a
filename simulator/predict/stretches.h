/* SPDX-License-Identifier: Apache-2.0 */
/* stretches.h - where one recording repeats itself: turns of loops, one behind the other. */
#ifndef VC_STRETCHES_H
#define VC_STRETCHES_H

#include "simulator/predict/allocations.h"

/* Allocations [from, to): each but the first `period` ones is like the one `period` before it. */
struct vc_stretch {
	uint32_t from, to, period;
	bool named; /* a call site of it is known */
};

struct vc_stretches { struct vc_stretch *at; size_t n; };

/* Runs of two turns and more, by where they begin, the longer ones first; one may stand inside a
 * turn of another. The caller frees with vc_stretches_fini. Errors: VC_ENOMEM. */
int vc_stretches_find(const struct vc_allocations *m, struct vc_stretches *out,
		      struct vc_error *err);
void vc_stretches_fini(struct vc_stretches *r);

static inline uint32_t vc_stretch_turns(const struct vc_stretch *r)
{
	return (r->to - r->from) / r->period;
}

#endif
