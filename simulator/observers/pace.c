/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - when the allocator went to the driver: what flushes and new segments cost a step. */

#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

#define MOST 1000000u /* entries kept; a run with more has other troubles */
#define MOST_REPEATED 4096u

struct state {
	struct vc_pace p;
	size_t cap;
	struct vc_pace_at now;  /* since the last event */
	uint64_t retries;
};

static int pace_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;

	st->retries = m->now.retries;
	st->now = (struct vc_pace_at){ 0 };
	return VC_OK;
}

static void pace_device(struct vc_observer *o, const struct vc_device_change *c)
{
	struct state *st = o->state;

	st->now.ns += c->ns;
	st->now.mallocs += c->what == VC_DRV_MALLOC || c->what == VC_DRV_CREATE;
	st->now.frees += c->what == VC_DRV_FREE || c->what == VC_DRV_RELEASE;
}

static int pace_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;

	st->now.request += s->ev->kind == VC_EV_ALLOC;
	st->now.flushes = (uint32_t)(s->model->now.retries - st->retries);
	st->retries = s->model->now.retries;
	if ((!st->now.ns && !st->now.flushes) || st->p.n == MOST)
		return VC_OK;
	VC_HAVE(vc_vec_room(st->p.at, st->cap, st->p.n + 1), "driver calls", err);
	st->p.at[st->p.n++] = st->now;
	st->now = (struct vc_pace_at){ .request = st->now.request };
	return VC_OK;
}

static int pace_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		    struct vc_error *err)
{
	struct state *st = o->state;

	r->pace = st->p;
	st->p = (struct vc_pace){ 0 };
	return VC_OK;
}

/* A run that never rests is not worth keeping twice. */
static bool pace_repeat(const struct vc_result *of, struct vc_result *to)
{
	size_t bytes = of->pace.n * sizeof(*of->pace.at);
	void *at = bytes && of->pace.n <= MOST_REPEATED ? malloc(bytes) : NULL;

	if (!at)
		return !bytes;
	memcpy(at, of->pace.at, bytes);
	to->pace = (struct vc_pace){ .at = at, .n = of->pace.n };
	return true;
}

static void pace_fini(struct vc_observer *o)
{
	free(((struct state *)o->state)->p.at);
}

const struct vc_observer_type vc_observer_pace = {
	.name = "pace", .summary = "when the allocator went to the driver",
	.state_size = sizeof(struct state), .begin = pace_begin, .step = pace_step,
	.device = pace_device, .end = pace_end, .repeat = pace_repeat, .fini = pace_fini,
};
