/* SPDX-License-Identifier: Apache-2.0 */
/* lives.c - the life of every block, for pictures and tables. Above a limit the smallest and
 * shortest are left out and counted: a picture cannot show them anyway. */

#include "common/pages.h"
#include "common/vec.h"
#include "simulator/observers/heapmap.h"

#define FIRST_LIMIT 2000000u

struct slot { uint32_t index; }; /* 1 + index into the lives */

struct state {
	struct vc_origins origins; /* of the starting heap */
	struct vc_life *at; size_t n, cap;
	struct vc_pages open;
	uint64_t dropped;
	size_t limit;   /* thin out at so many */
	uint64_t floor; /* blocks smaller than this are left out by now */
	uint64_t last;  /* event of the last allocation */
};

/* Half of the dead ones go, the smallest first. */
static int thin_out(struct state *st, struct vc_error *err)
{
	uint64_t *size = calloc(st->n + 1, sizeof(*size));
	size_t k = 0;

	VC_HAVE(size, "block lives", err);
	for (size_t i = 0; i < st->n; i++)
		size[i] = st->at[i].size;
	vc_sort_u64(size, st->n);
	st->floor = size[st->n / 2] + 1;
	free(size);
	for (size_t i = 0; i < st->n; i++) {
		if (st->at[i].size < st->floor && st->at[i].died != UINT64_MAX) {
			st->dropped++;
			continue;
		}
		if (st->at[i].died == UINT64_MAX) {
			struct slot *s = vc_pages_get(&st->open, st->at[i].id);

			if (s)
				s->index = (uint32_t)k + 1;
		}
		st->at[k++] = st->at[i];
	}
	st->n = k;
	st->limit = k > st->limit / 2 ? k * 2 :
					st->limit; /* all alive: thinning again would not help */
	return VC_OK;
}

static int add(struct state *st, const struct vc_life *l, struct vc_error *err)
{
	struct slot *s;

	if (st->n >= st->limit && thin_out(st, err) < 0)
		return VC_ENOMEM;
	VC_HAVE(vc_vec_room(st->at, st->cap, st->n + 1), "block lives", err);
	if (l->id) {
		s = vc_pages_put(&st->open, l->id);
		VC_HAVE(s, "block lives", err);
		s->index = (uint32_t)st->n + 1;
	}
	st->at[st->n++] = *l;
	return VC_OK;
}

struct walk { struct state *st; struct vc_error *err; };

static int note_start(void *arg, const struct vc_extent *x)
{
	struct walk *w = arg;
	struct vc_life l = { .id = x->id, .size = x->size, .requested = x->requested,
			     .addr = x->addr, .died = UINT64_MAX, .stream = x->stream,
			     .at_start = true, .site = vc_origins_site(&w->st->origins, x->id) };

	/* One that waits for a stream was freed: its life is over, as that of any other is. */
	return x->what == VC_X_LIVE ? add(w->st, &l, w->err) : VC_OK;
}

static int lives_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;
	struct walk w = { st, err };

	st->limit = FIRST_LIMIT;
	vc_pages_init(&st->open, sizeof(struct slot));
	return m->type->walk(m, note_start, &w);
}

static int lives_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	struct slot *k;

	if (!s->block)
		return VC_OK;
	if (s->ev->kind == VC_EV_ALLOC || s->ev->kind == VC_EV_OOM) {
		struct vc_life l = { .id = s->ev->id, .size = s->block->size,
			.requested = s->ev->size, .addr = s->block->addr, .born = s->index,
			.died = UINT64_MAX, .born_ns = s->ev->time_ns, .stream = s->ev->stream,
			.site = s->ev->site, .label = s->ev->label };

		if (s->ev->kind == VC_EV_OOM) { /* served here: for nobody, and for one event */
			l.id = 0;
			l.died = s->index + 1;
		}
		st->last = s->index;
		if (l.size < st->floor) {
			st->dropped++;
			return VC_OK;
		}
		return add(st, &l, err);
	}
	k = vc_pages_get(&st->open, s->ev->id);
	if (!k || !k->index)
		return VC_OK;
	st->at[k->index - 1].died = s->index;
	st->at[k->index - 1].died_ns = s->ev->time_ns;
	vc_pages_drop(&st->open, s->ev->id);
	return VC_OK;
}

/* The same thresholds as the timeline's, now with the true length at hand. */
static void classify(struct state *st, uint64_t events)
{
	uint64_t step = events / 8;

	for (size_t i = 0; i < st->n; i++) {
		struct vc_life *l = &st->at[i];
		uint64_t age = l->died == UINT64_MAX ? UINT64_MAX : l->died - l->born;

		l->outlasts = l->died > st->last;

		if (l->outlasts)
			l->lifetime = VC_LIFE_PERSISTENT;
		else if (age <= 16)
			l->lifetime = VC_LIFE_SHORT;
		else
			l->lifetime = age > step / 4 ? VC_LIFE_STEP : VC_LIFE_PHASE;
	}
}

static int lives_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		     struct vc_error *err)
{
	struct state *st = o->state;

	classify(st, r->stats.events);
	r->lives = (struct vc_lives){ st->at, st->n, st->dropped };
	st->at = NULL;
	return VC_OK;
}

static void lives_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	free(st->at);
	vc_pages_fini(&st->open);
	vc_origins_fini(&st->origins);
}

const struct vc_observer_type vc_observer_lives = {
	.name = "lives", .summary = "birth, death and place of every block",
	.state_size = sizeof(struct state),
	.origin = vc_origins_at_start, .begin = lives_begin, .step = lives_step, .end = lives_end,
	.fini = lives_fini,
};
