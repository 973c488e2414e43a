/* SPDX-License-Identifier: Apache-2.0 */
/* toy_transform.c - what docs/extending.md asks of a transform: every request is twice as large. It
 * gives no facts, so nobody knows how far off it is. */
#include "simulator/replay/source.h"

static long toy_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	long n = s->upstream->type->next(s->upstream, ev, cap, err);

	for (long i = 0; i < n; i++)
		if (ev[i].kind == VC_EV_ALLOC)
			ev[i].size *= 2;
	return n;
}

const struct vc_source_type vc_transform_toy = {
	.name = "toy", .summary = "every request twice as large", .next = toy_next,
};
