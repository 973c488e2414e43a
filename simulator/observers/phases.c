/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c - the first iteration against the others: peaks before and after the first step mark. */
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

static void raise_to(struct vc_peaks *p, const struct vc_totals *now)
{
	if (now->allocated > p->peak_allocated)
		p->peak_allocated = now->allocated;
	if (now->reserved > p->peak_reserved)
		p->peak_reserved = now->reserved;
}

static int phases_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct vc_phases *p = o->state;

	if (s->ev->kind == VC_EV_MARK && s->ev->flags == VC_MARK_STEP)
		p->steps++;
	raise_to(p->steps ? &p->steady : &p->first, &s->model->now);
	return VC_OK;
}

static int phases_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		      struct vc_error *err)
{
	r->phases = *(struct vc_phases *)o->state;
	return VC_OK;
}

const struct vc_observer_type vc_observer_phases = {
	.name = "phases", .summary = "peaks of the first iteration and of the others",
	.state_size = sizeof(struct vc_phases), .step = phases_step, .end = phases_end,
};
