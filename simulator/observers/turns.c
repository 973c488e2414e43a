/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - who has the card, in jobs that take turns on it (result.h). */
#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

enum { DEEP = 64, MOST = 100000 };

struct state {
	struct vc_turns t;
	uint32_t open[DEEP]; /* labels of the ranges that are open */
	size_t depth;
	uint64_t gone;       /* of what is away: it never comes back */
	uint64_t away;       /* after the event before */
	bool slept, asleep;
};

static void mark(struct state *st, const struct vc_event *ev)
{
	if (ev->flags == VC_MARK_BEGIN) {
		if (st->depth < DEEP)
			st->open[st->depth] = ev->label;
		st->depth++;
	} else if (ev->flags == VC_MARK_END && st->depth) {
		st->depth--;
	}
}

/* A free segment that is given up for good is no sleep. */
static void pages(struct state *st, const struct vc_step *s)
{
	uint64_t away = s->model->now.away;

	if (!s->ev->id) {
		st->gone += away - st->away;
	} else {
		st->asleep = away > st->gone;
		st->slept |= st->asleep;
	}
	st->away = away;
}

static uint32_t label_of(const struct state *st)
{
	return st->depth && st->depth <= DEEP ? st->open[st->depth - 1] : 0;
}

static void note(struct vc_turn_at *t, const struct vc_step *s)
{
	const struct vc_totals *now = &s->model->now;

	t->end_event = s->index;
	t->end_ns = s->ev->time_ns ? s->ev->time_ns : t->end_ns;
	if (s->ev->kind == VC_EV_PAGES_OUT)
		return; /* more of them follow, until all is given back */
	vc_raise(&t->allocated, now->allocated);
	vc_raise(&t->reserved, now->reserved);
	vc_raise(&t->stuck, s->model->type->counts_split ? now->split :
							   now->reserved - now->active);
	vc_raise(&t->used, s->used);
	vc_raise(&t->away, now->away);
}

static int turns_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	struct vc_turn_at *last = st->t.n ? &st->t.at[st->t.n - 1] : NULL;
	uint8_t kind = s->ev->kind;

	if (kind == VC_EV_MARK) {
		mark(st, s->ev);
		return VC_OK;
	}
	if (kind == VC_EV_PAGES_OUT || kind == VC_EV_PAGES_IN)
		pages(st, s);
	else if (kind != VC_EV_ALLOC && kind != VC_EV_FREE && kind != VC_EV_TRIM)
		return VC_OK;
	if (last && last->label == label_of(st) && last->asleep == st->asleep) {
		note(last, s);
		return VC_OK;
	}
	if (st->t.n == MOST)
		return VC_OK;
	VC_HAVE(vc_vec_one(st->t.at, st->t.n), "turns", err);
	last = &st->t.at[st->t.n++];
	*last = (struct vc_turn_at){ .event = s->index, .time_ns = s->ev->time_ns,
				  .end_ns = s->ev->time_ns, .label = label_of(st),
				  .asleep = st->asleep };
	note(last, s);
	return VC_OK;
}

static int turns_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		     struct vc_error *err)
{
	struct state *st = o->state;

	if (st->slept) {
		r->turns = st->t;
		st->t = (struct vc_turns){ 0 };
	}
	return VC_OK;
}

static void turns_fini(struct vc_observer *o)
{
	free(((struct state *)o->state)->t.at);
}

const struct vc_observer_type vc_observer_turns = {
	.name = "turns", .summary = "who has the card, in jobs that take turns on it",
	.state_size = sizeof(struct state), .step = turns_step, .end = turns_end,
	.fini = turns_fini,
};
