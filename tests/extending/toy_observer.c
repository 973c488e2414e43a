/* SPDX-License-Identifier: Apache-2.0 */
/* toy_observer.c - counts requests into a field that is there. */
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

static int toy_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	(void)err;
	*(uint64_t *)o->state += s->ev->kind == VC_EV_ALLOC;
	return VC_OK;
}

static int toy_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		   struct vc_error *err)
{
	(void)m;
	(void)err;
	r->phases.steps = *(uint64_t *)o->state;
	return VC_OK;
}

const struct vc_observer_type vc_observer_toy = {
	.name = "toy", .summary = "counts requests", .state_size = sizeof(uint64_t),
	.step = toy_step, .end = toy_end,
};
