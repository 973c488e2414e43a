/* SPDX-License-Identifier: Apache-2.0 */
/* moment.c - the moment that matters (the first failure, else the peak) in a few numbers: when,
 * what was live and cached, who held most.
 *
 * Peaks follow each other closely, so nothing is walked or copied at one. A kind of block keeps
 * what it held at the newest peak when it changes for the first time after it. */

#include "common/map.h"
#include "common/pages.h"
#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

enum { NOWHERE, BEFORE, FIRST_KNOWN }; /* kinds without a call site, then those with one */

/* Blocks of one call stack and label. `then`: at the peak of that number. */
struct kind { uint32_t site, label; uint64_t bytes, then, peak; };
struct held { uint64_t size; uint32_t kind; };

struct state {
	struct kind *kind; size_t kinds, cap;
	struct vc_map by_place;     /* site << 32 | label: the kind */
	struct vc_pages held;       /* by id */
	struct vc_moment m;
	uint64_t peaks, steps, first_ns, now_ns;
	bool begun;
};

static int make_room(struct state *st, struct vc_error *err)
{
	if (st->kinds)
		return VC_OK;
	vc_pages_init(&st->held, sizeof(struct held));
	VC_HAVE(vc_vec_room(st->kind, st->cap, FIRST_KNOWN), "who holds what", err);
	memset(st->kind, 0, FIRST_KNOWN * sizeof(*st->kind));
	st->kinds = FIRST_KNOWN;
	return VC_OK;
}

/* The number of a kind, which may be new; 0 with *err set: no memory. */
static uint32_t kind_of(struct state *st, uint32_t site, uint32_t label, struct vc_error *err)
{
	uint64_t key = (uint64_t)site << 32 | label, *found = vc_map_get(&st->by_place, key);

	if (found)
		return (uint32_t)*found;
	if (!vc_vec_room(st->kind, st->cap, st->kinds + 1) ||
	    !vc_map_put(&st->by_place, key, st->kinds)) {
		vc_nomem(err, "who holds what");
		return 0;
	}
	st->kind[st->kinds] = (struct kind){ .site = site, .label = label };
	return (uint32_t)st->kinds++;
}

static void change(struct state *st, uint32_t kind, uint64_t bytes)
{
	struct kind *k = &st->kind[kind];

	if (k->peak != st->peaks) {
		k->then = k->bytes;
		k->peak = st->peaks;
	}
	k->bytes += bytes; /* what is freed comes in as its negative */
}

static int hold(struct state *st, uint64_t id, uint32_t kind, uint64_t size, struct vc_error *err)
{
	struct held *h = vc_pages_put(&st->held, id);

	VC_HAVE(h, "who holds what", err);
	*h = (struct held){ size, kind };
	change(st, kind, size);
	return VC_OK;
}

/* Its size is not known yet: the walk at the beginning tells it. */
static int moment_origin(struct vc_observer *o, uint64_t id, uint32_t site, struct vc_error *err)
{
	struct state *st = o->state;
	uint32_t kind = BEFORE;

	VC_TRY(make_room(st, err));
	if (site && !(kind = kind_of(st, site, 0, err)))
		return err->status;
	return hold(st, id, kind, 0, err);
}

struct walking { struct state *st; struct vc_error *err; };

static int count_live(void *arg, const struct vc_extent *x)
{
	struct walking *w = arg;
	struct held *h;

	if (x->what != VC_X_LIVE || !x->id)
		return VC_OK;
	h = vc_pages_get(&w->st->held, x->id);
	if (!h || !h->kind)
		return hold(w->st, x->id, NOWHERE, x->size, w->err);
	change(w->st, h->kind, x->size);
	h->size += x->size;
	return VC_OK;
}

static void look(struct state *st, const struct vc_model *m, uint64_t event, bool at_oom)
{
	const struct vc_totals *now = &m->now;

	if (st->m.at_oom)
		return;
	if (!at_oom && st->m.looked &&
	    (now->reserved < st->m.reserved ||
	     (now->reserved == st->m.reserved && now->allocated <= st->m.allocated)))
		return;
	st->peaks++;
	st->m = (struct vc_moment){ .looked = true, .at_oom = at_oom, .event = event,
				    .elapsed_ns = st->now_ns - st->first_ns, .steps = st->steps,
				    .allocated = now->allocated, .reserved = now->reserved,
				    .cached = now->reserved - now->active,
				    .splits = m->type->counts_split,
				    .stranded = m->type->counts_split ? now->split : 0 };
}

static void fail(struct state *st, const struct vc_step *s)
{
	if (st->m.at_oom)
		return;
	look(st, s->model, s->index, true);
	st->m.request = s->ev->size;
	st->m.free = s->model->refusal.device_free;
}

static int moment_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;
	struct walking w = { st, err };

	VC_TRY(make_room(st, err));
	VC_TRY(m->type->walk(m, count_live, &w));
	look(st, m, 0, false);
	return VC_OK;
}

/* The clock of memory, as the timeline has it: kernels and copies are reported late. */
static void tick(struct state *st, const struct vc_event *ev)
{
	if (ev->time_ns > st->now_ns && ev->kind != VC_EV_KERNEL && ev->kind != VC_EV_COPY)
		st->now_ns = ev->time_ns;
	if (!st->begun)
		st->first_ns = st->now_ns;
	st->begun = true;
}

static int moment_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	const struct vc_event *ev = s->ev;
	bool alloc = s->block && (ev->kind == VC_EV_ALLOC || ev->kind == VC_EV_OOM);
	uint32_t kind = NOWHERE;
	struct held *h;

	tick(st, ev);
	st->steps += ev->kind == VC_EV_MARK && ev->flags == VC_MARK_STEP;
	if (alloc && (ev->site || ev->label) && !(kind = kind_of(st, ev->site, ev->label, err)))
		return err->status;
	if (alloc && ev->kind == VC_EV_ALLOC)
		VC_TRY(hold(st, ev->id, kind, s->block->size, err));
	else if (alloc) /* served here, for nobody and for one event */
		change(st, kind, s->block->size);
	h = !alloc && s->block ? vc_pages_get(&st->held, ev->id) : NULL;
	if (h && h->size) {
		change(st, h->kind, 0 - h->size);
		vc_pages_drop(&st->held, ev->id);
	}
	if (s->answer == VC_REFUSED && (ev->kind == VC_EV_ALLOC || ev->kind == VC_EV_OOM ||
					ev->kind == VC_EV_PAGES_IN))
		fail(st, s);
	else
		look(st, s->model, s->index, false);
	if (alloc && ev->kind == VC_EV_OOM)
		change(st, kind, 0 - s->block->size);
	return VC_OK;
}

/* What each kind held at the moment, as a heap of one block a kind. */
static int find_most(const struct state *st, const struct vc_meta *meta, struct vc_moment *to,
		     struct vc_error *err)
{
	struct vc_heap_map map = { .at = calloc(st->kinds, sizeof(*map.at)) };
	struct vc_holder *holder = NULL;
	size_t n = 0;
	bool start = st->m.at_oom && !st->m.event; /* it died while the heap was asked for again */
	char text[512];
	int rc = VC_OK;

	VC_HAVE(map.at, "who holds what", err);
	for (size_t i = 0; i < st->kinds; i++) {
		const struct kind *k = &st->kind[i];
		uint64_t bytes = k->peak == st->peaks ? k->then : k->bytes;

		if (bytes)
			map.at[map.n++] = (struct vc_heap_extent){ .size = bytes, .site = k->site,
				.label = k->label, .what = VC_X_LIVE,
				.at_start = start || i == BEFORE };
	}
	if (map.n)
		rc = vc_holders_of(&map, meta, &holder, &n, err);
	if (n) {
		to->bytes = holder->bytes;
		to->who = strdup(vc_holder_text(meta, holder, text, sizeof(text)));
		rc = to->who ? rc : vc_nomem(err, "who holds what");
	}
	VC_FREE(map.at, holder);
	return rc;
}

static int moment_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		      struct vc_error *err)
{
	struct state *st = o->state;

	r->moment = st->m;
	return st->kinds ? find_most(st, o->meta, &r->moment, err) : VC_OK;
}

/* As with the report of a failure: another version may meet it elsewhere. */
static bool moment_repeat(const struct vc_result *of, struct vc_result *to)
{
	char *who = of->moment.who ? strdup(of->moment.who) : NULL;

	if (of->moment.at_oom || (of->moment.who && !who)) {
		free(who);
		return false;
	}
	to->moment = of->moment;
	to->moment.who = who;
	return true;
}

static void moment_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	vc_map_fini(&st->by_place);
	if (st->kinds)
		vc_pages_fini(&st->held);
	free(st->kind);
}

const struct vc_observer_type vc_observer_moment = {
	.name = "moment",
	.summary = "the first failure, or else the peak: when it is, who holds most",
	.state_size = sizeof(struct state),
	.origin = moment_origin, .begin = moment_begin, .step = moment_step, .end = moment_end,
	.repeat = moment_repeat, .fini = moment_fini,
};
