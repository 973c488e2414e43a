/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c - the heap at its fullest while reserved memory is at its maximum, and what the unused
 * bytes are. */

#include "simulator/observers/heapmap.h"

struct state {
	struct vc_origins origins;
	struct vc_heap_map map;
	uint64_t best, fullest; /* reserved and allocated at the last walk */
	uint64_t walked;        /* extents walked so far */
};

/* Reserved grows once per segment, so a walk at each new maximum is cheap; a trace with very many
 * segments AND blocks walks only when the maximum has grown by a 256th, so its map may lag by that.
 * At the same level the map follows the allocated bytes in steps of a 512th. */
#define WALK_BUDGET 20000000ull

static int look(struct state *st, const struct vc_model *m, uint64_t event, struct vc_error *err)
{
	int r;

	if (m->now.reserved < st->best)
		return VC_OK;
	if (m->now.reserved == st->best && m->now.allocated <= st->fullest + st->fullest / 512)
		return VC_OK;
	if (st->walked > WALK_BUDGET && m->now.reserved < st->best + st->best / 256)
		return VC_OK;
	st->best = m->now.reserved;
	st->fullest = m->now.allocated;
	r = vc_heapmap_take(&st->map, m, &st->origins, event, err);
	st->walked += st->map.n;
	return r;
}

static int peak_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;

	return look(st, m, 0, err);
}

static int peak_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;

	VC_TRY(vc_origins_step(&st->origins, s, err));
	return look(st, s->model, s->index, err);
}

static int peak_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		    struct vc_error *err)
{
	struct state *st = o->state;

	vc_heapmap_unused(&st->map, &r->fragmentation);
	r->peak = st->map;
	st->map.at = NULL;
	return VC_OK;
}

static void peak_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	vc_origins_fini(&st->origins);
	free(st->map.at);
}

const struct vc_observer_type vc_observer_peak = {
	.name = "peak", .summary = "the heap at the peak of reserved memory, and its unused bytes",
	.state_size = sizeof(struct state),
	.origin = vc_origins_at_start, .begin = peak_begin, .step = peak_step, .end = peak_end,
	.fini = peak_fini,
};
