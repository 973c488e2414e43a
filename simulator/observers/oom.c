/* SPDX-License-Identifier: Apache-2.0 */
/* oom.c - the first time the run ran out: what was asked, what was free, who held the rest. */

#include "common/vec.h"
#include "simulator/observers/heapmap.h"

struct state {
	struct vc_origins origins;
	struct vc_heap_map map;
	struct vc_oom_report report;
	uint64_t steps;
};

static int oom_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	struct vc_oom_report *r = &st->report;
	const struct vc_model *m = s->model;

	VC_TRY(vc_origins_step(&st->origins, s, err));
	st->steps += s->ev->kind == VC_EV_MARK && s->ev->flags == VC_MARK_STEP;
	if (s->answer != VC_REFUSED || r->happened ||
	    (s->ev->kind != VC_EV_ALLOC && s->ev->kind != VC_EV_OOM &&
	     s->ev->kind != VC_EV_PAGES_IN))
		return VC_OK;
	*r = (struct vc_oom_report){.happened = true,
				    .steps = st->steps, .event = s->index,
				    .time_ns = s->ev->time_ns, .id = s->ev->id,
				    .request = s->ev->size, .rounded = m->refusal.rounded,
				    .alloc_size = m->refusal.alloc_size,
				    .device_free = m->refusal.device_free,
				    .message = strdup(m->note) };
	VC_HAVE(r->message, "the out-of-memory report", err);
	VC_TRY(vc_heapmap_take(&st->map, m, &st->origins, s->index, err));
	for (size_t i = 0; i < st->map.n; i++) {
		struct vc_heap_extent *x = &st->map.at[i];

		x->at_start |= !s->index; /* it died while that was asked for again */
		if (x->what != VC_X_FREE)
			continue;
		r->free_in_cache += x->size;
		if (x->size > r->largest_free && !x->pool && x->stream == s->ev->stream)
			r->largest_free = x->size;
	}
	return vc_holders_of(&st->map, o->meta, &r->holder, &r->holders, err);
}

static int oom_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		   struct vc_error *err)
{
	struct state *st = o->state;

	r->oom = st->report;
	r->last = st->map;
	st->report = (struct vc_oom_report){ 0 };
	st->map.at = NULL;
	return VC_OK;
}

/* Another version says it in other words. */
static bool oom_repeat(const struct vc_result *of, struct vc_result *to)
{
	return !of->oom.happened && !of->last.n;
}

static void oom_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	vc_origins_fini(&st->origins);
	VC_FREE(st->map.at, st->report.message, st->report.holder);
}

const struct vc_observer_type vc_observer_oom = {
	.name = "oom",
	.summary = "the first out-of-memory: the request, the largest hole, who held what",
	.state_size = sizeof(struct state),
	.origin = vc_origins_at_start, .step = oom_step, .end = oom_end, .repeat = oom_repeat,
	.fini = oom_fini,
};
