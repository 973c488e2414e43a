/* SPDX-License-Identifier: Apache-2.0 */
/* unused.c - what reserved-but-unused bytes are, over the whole run and not only at its peak.
 *
 * A look at the heap costs as much as there are blocks, so at most SAMPLES are kept: when they are
 * full, every second one goes, and the next ones lie twice as far apart. */

#include "common/vec.h"
#include "simulator/observers/heapmap.h"

#define SAMPLES 512
#define LOOKS 4096 /* so many at most at new maxima, which may follow each other closely */

struct state {
	struct vc_origins origins;
	struct vc_heap_map map;
	struct vc_unused_at *at;
	size_t n;
	uint64_t span, next, event, last, ns, worst, looks;
	struct vc_unused_at most;
};

static uint64_t unused_now(const struct vc_model *m)
{
	return m->now.reserved > m->now.requested ? m->now.reserved - m->now.requested : 0;
}

static int look(struct state *st, const struct vc_model *m, struct vc_unused_at *out,
		struct vc_error *err)
{
	struct vc_pin *pin = NULL;
	size_t pins = 0;

	*out = (struct vc_unused_at){ .event = st->event, .time_ns = st->ns,
				      .reserved = m->now.reserved,
				      .requested = m->now.requested };
	VC_TRY(vc_heapmap_take(&st->map, m, &st->origins, st->event, err));
	vc_heapmap_unused(&st->map, &out->part);
	VC_TRY(vc_pins_of(&st->map, &pin, &pins, err));
	for (size_t i = 0; i < pins && i < VC_UNUSED_PINS; i++)
		out->pin[i] = pin[i];
	free(pin);
	return VC_OK;
}

static int sample(struct state *st, const struct vc_model *m, struct vc_error *err)
{
	if (st->n == SAMPLES) {
		for (size_t i = 0; i < SAMPLES / 2; i++)
			st->at[i] = st->at[2 * i];
		st->n = SAMPLES / 2;
		st->span *= 2;
		st->next = st->at[st->n - 1].event + st->span;
		if (st->event < st->next)
			return VC_OK;
	}
	st->next = st->event + st->span;
	return look(st, m, &st->at[st->n++], err);
}

static int unused_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;

	st->span = 1;
	st->at = calloc(SAMPLES + 1, sizeof(*st->at)); /* one more for the end */
	VC_HAVE(st->at, "the unused bytes", err);
	return VC_OK;
}

static int unused_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	uint64_t unused = unused_now(s->model);

	VC_TRY(vc_origins_step(&st->origins, s, err));
	st->event = s->index;
	if (s->ev->time_ns > st->ns && s->ev->kind != VC_EV_KERNEL && s->ev->kind != VC_EV_COPY)
		st->ns = s->ev->time_ns; /* those are reported late */
	if (s->ev->kind == VC_EV_ALLOC)
		st->last = s->index;
	if (st->last == s->index && unused > st->worst + st->worst / 64 && st->looks < LOOKS) {
		st->looks++;
		st->worst = unused;
		VC_TRY(look(st, s->model, &st->most, err));
	}
	return s->index >= st->next ? sample(st, s->model, err) : VC_OK;
}

static int unused_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		      struct vc_error *err)
{
	struct state *st = o->state;
	struct vc_pin *all;
	size_t n = 0;

	if (!st->n || st->at[st->n - 1].event < st->event)
		VC_TRY(look(st, m, &st->at[st->n++], err));
	all = calloc(st->n * VC_UNUSED_PINS, sizeof(*all));
	VC_HAVE(all, "the pinned segments", err);
	for (size_t i = 0; i < st->n; i++)
		for (size_t k = 0; k < VC_UNUSED_PINS && st->at[i].pin[k].bytes; k++)
			all[n++] = st->at[i].pin[k];
	vc_pins_mean(all, n, st->n, r->unused.pin, VC_UNUSED_PINS);
	free(all);
	r->unused.at = st->at;
	r->unused.n = st->n;
	r->unused.worst = st->most;
	r->unused.last = st->last;
	st->at = NULL;
	return VC_OK;
}

static void unused_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	vc_origins_fini(&st->origins);
	VC_FREE(st->map.at, st->at);
}

const struct vc_observer_type vc_observer_unused = {
	.name = "unused", .summary = "what reserved-but-unused bytes are, over the run",
	.state_size = sizeof(struct state), .origin = vc_origins_at_start,
	.begin = unused_begin, .step = unused_step, .end = unused_end, .fini = unused_fini,
};
