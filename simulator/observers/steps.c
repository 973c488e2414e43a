/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - marks and kernels of the recording, for the pictures that show when things happened. */

#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

#define MAX_MARKS 100000u
#define MAX_KERNELS 2000000u

struct state { struct vc_steps s; size_t mark_cap, kernel_cap; };

static int add_mark(struct state *st, const struct vc_step *s, struct vc_error *err)
{
	if (st->s.marks == MAX_MARKS)
		return VC_OK;
	VC_HAVE(vc_vec_room(st->s.mark, st->mark_cap, st->s.marks + 1), "marks", err);
	st->s.mark[st->s.marks++] = (struct vc_mark_at){ s->index, s->ev->time_ns, s->ev->label,
							 s->ev->flags, s->ev->device };
	st->s.count += s->ev->flags == VC_MARK_STEP;
	return VC_OK;
}

static int add_kernel(struct state *st, const struct vc_step *s, struct vc_error *err)
{
	if (st->s.kernels == MAX_KERNELS)
		return VC_OK;
	VC_HAVE(vc_vec_room(st->s.kernel, st->kernel_cap, st->s.kernels + 1), "kernels", err);
	st->s.kernel[st->s.kernels++] = (struct vc_kernel_at){ s->ev->time_ns, s->ev->size,
		s->ev->label, s->ev->stream, s->ev->kind };
	return VC_OK;
}

static int steps_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	if (s->ev->kind == VC_EV_MARK)
		return add_mark(o->state, s, err);
	if (s->ev->kind == VC_EV_KERNEL || s->ev->kind == VC_EV_COPY)
		return add_kernel(o->state, s, err);
	return VC_OK;
}

static int steps_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		     struct vc_error *err)
{
	struct state *st = o->state;

	if (st->s.count) {
		st->s.confidence = 1;
		st->s.from = strdup("marks");
		VC_HAVE(st->s.from, "steps", err);
	}
	r->steps = st->s;
	st->s = (struct vc_steps){ 0 };
	return VC_OK;
}

static void steps_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	VC_FREE(st->s.mark, st->s.kernel, st->s.from);
}

const struct vc_observer_type vc_observer_steps = {
	.name = "steps", .summary = "marks and kernels, for pictures over time",
	.state_size = sizeof(struct state), .step = steps_step, .end = steps_end,
	.fini = steps_fini,
};
