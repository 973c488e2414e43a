/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - see turns.h
 *
 * How often a place in the program asks for memory is the same in all recordings, but for places
 * inside of loops that the parameter turns. A stretch that repeats itself, most of whose places
 * are such, is one of those loops, and how often they ask says how often it turns, first and last
 * turns that are unlike the others included. What runs on the backward pass's own thread has no
 * place: a stretch of it belongs to the last loop before it that turns as often and has no
 * backward stretch yet, as brackets belong together. */
#include "simulator/predict/turns.h"

#include <math.h>
#include <stdlib.h>

#include "common/vec.h"
#include "simulator/predict/stretches.h"
#include "simulator/predict/visits.h"
#include "simulator/predict/workspaces.h"

#define MOSTLY 0.5 /* of all turns are in stretches */
enum {
	LIKELY = 4, /* a turn backward has no more than so many times the blocks of one forward */
	SMALL = 4,  /* blocks of a turn without names, at least, */
	MANY = 16,  /* but where it turns so often */
};

struct places { uint64_t *at; size_t n; }; /* call sites, once for each block, ascending */

struct search {
	const struct vc_allocations *m;
	const double *x;
	size_t n;
	struct places *place;
};

static size_t times(const struct places *p, uint64_t site)
{
	size_t from = vc_lower_bound(p->at, 8, p->n, sizeof(*p->at), site), to = from;

	while (to < p->n && p->at[to] == site)
		to++;
	return to - from;
}

static bool varies(const struct search *s, size_t k, uint64_t site)
{
	size_t here = times(&s->place[k], site);

	for (size_t j = 0; here && j < s->n; j++)
		if (times(&s->place[j], site) != here)
			return true;
	return false;
}

/* 0: none that counts. Buffers are asked for above some size only, and their place then asks more
 * often than it turns. */
static uint64_t place_of(const struct vc_allocations *m, uint32_t i)
{
	return vc_workspace_is_buffer(m, i) ? 0 : m->take[i].site;
}

/* Do all named blocks of a turn vary in number? */
static bool is_counted(const struct search *s, size_t k, const struct vc_stretch *r)
{
	bool any = false;

	for (uint32_t i = r->from; i < r->from + r->period; i++) {
		uint64_t site = place_of(&s->m[k], i);

		if (site && !varies(s, k, site))
			return false;
		any |= site != 0;
	}
	return any;
}

static uint64_t mixed(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/* Which places a turn has, wherever it begins and however often each asks. 0: no memory. */
static uint64_t kind_of(const struct vc_allocations *m, const struct vc_stretch *r)
{
	uint64_t *at = malloc(r->period * sizeof(*at)), h = 1;

	if (!at)
		return 0;
	for (uint32_t i = 0; i < r->period; i++)
		at[i] = place_of(m, r->from + i);
	vc_sort_u64(at, r->period);
	for (uint32_t i = 0; i < r->period; i++)
		h = at[i] && (!i || at[i] != at[i - 1]) ? mixed(h, at[i]) | 1 : h;
	free(at);
	return h;
}

/* ---- one recording's loops ---- */

struct found {
	struct vc_stretch r;
	uint64_t kind;      /* of named ones: their places */
	uint64_t grows;     /* how often they ask in all recordings */
	uint64_t clock;     /* one of the places */
	double turns;       /* in the whole recording, as that place says */
	bool counted, taken, inner;
	size_t of;          /* the named one it belongs to */
};

struct list { struct found *at; size_t n; };

/* The last named stretch before r that turns as often and has no backward one yet; n: none. */
static size_t partner(const struct found *f, size_t n, const struct vc_stretch *r)
{
	double turns = vc_stretch_turns(r);

	for (size_t i = n; i-- > 0;)
		if (f[i].r.named && !f[i].taken && f[i].r.to <= r->from &&
		    fabs(vc_stretch_turns(&f[i].r) - turns) <= 1 &&
		    r->period <= LIKELY * f[i].r.period && f[i].r.period <= LIKELY * r->period)
			return i;
	return n;
}

/* Does a stretch inside of r have the same places? Then r adds nothing to turn for. */
static int is_outer(const struct search *s, size_t k, const struct vc_stretches *all, size_t i,
		    uint64_t kind, bool *outer)
{
	const struct vc_stretch *r = &all->at[i];

	*outer = false;
	for (size_t j = i + 1; j < all->n && all->at[j].from < r->to && !*outer; j++) {
		const struct vc_stretch *in = &all->at[j];
		uint64_t other;

		if (in->to > r->to || in->period >= r->period || !in->named ||
		    (in->to - in->from) * LIKELY < r->period)
			continue;
		other = kind_of(&s->m[k], in);
		if (!other)
			return VC_ENOMEM;
		*outer = other == kind;
	}
	return VC_OK;
}

static size_t in_turn(const struct vc_allocations *m, const struct vc_stretch *r, uint64_t site)
{
	size_t n = 0;

	for (uint32_t i = r->from; i < r->from + r->period; i++)
		n += place_of(m, i) == site;
	return n;
}

/* The place of a turn in the middle by how much more often it asks elsewhere, and how often that
 * is. */
static int wind(const struct search *s, size_t k, struct found *f)
{
	const struct vc_stretch *r = &f->r;
	struct wound { double grows; uint64_t site; } *w = malloc(r->period * sizeof(*w)), new;
	size_t n = 0;

	if (!w)
		return VC_ENOMEM;
	for (uint32_t i = r->from; i < r->from + r->period; i++) {
		new = (struct wound){ 0, place_of(&s->m[k], i) };
		if (!new.site)
			continue;
		for (size_t j = 0; j < s->n; j++)
			new.grows += (double)(j + 1) * (double)times(&s->place[j], new.site) /
				     (double)times(&s->place[k], new.site);
		size_t at = n++;
		for (; at > 0 && w[at - 1].grows > new.grows; at--)
			w[at] = w[at - 1];
		w[at] = new;
	}
	f->clock = w[n / 2].site;
	f->turns = (double)times(&s->place[k], f->clock) / (double)in_turn(&s->m[k], r, f->clock);
	free(w);
	f->grows = 1;
	for (size_t j = 0; j < s->n; j++)
		f->grows = mixed(f->grows, (uint64_t)llround(1e6 *
					(double)times(&s->place[j], f->clock) /
					(double)(times(&s->place[0], f->clock) + 1e-9)));
	return VC_OK;
}

/* A few blocks over and over, which many loops have. */
static bool is_slight(const struct vc_stretch *r)
{
	return r->period < SMALL && vc_stretch_turns(r) < MANY;
}

/* Stretches that do not stand inside of counted ones. */
static int sift(const struct search *s, size_t k, const struct vc_stretches *all, struct list *out)
{
	struct found *f = calloc(all->n + 1, sizeof(*f));
	uint32_t end = 0, bare = 0;
	size_t *n = &out->n;

	*out = (struct list){ f, 0 };
	if (!f)
		return VC_ENOMEM;
	for (size_t i = 0; i < all->n; i++) {
		const struct vc_stretch *r = &all->at[i];
		struct found new = { .r = *r, .of = *n };

		if (r->to <= end || (!r->named && (r->to <= bare || is_slight(r))))
			continue;
		new.counted = r->named && is_counted(s, k, r);
		if (new.counted) {
			bool outer, follows;

			new.kind = kind_of(&s->m[k], r);
			if (!new.kind || is_outer(s, k, all, i, new.kind, &outer) ||
			    wind(s, k, &new) ||
			    vc_visits_follow(s->m, s->x, s->n, new.clock, r->period, &follows))
				return VC_ENOMEM;
			if (outer || !follows)
				continue;
			end = r->to;
		}
		if (!r->named) {
			bare = r->to;
			new.of = partner(f, *n, r);
			if (new.of < *n)
				f[new.of].taken = true;
		}
		f[(*n)++] = new;
	}
	return VC_OK;
}

/* Does a turn of a counted loop of some recording turn this one inside? Then it stands in a single
 * turn, or in a first or last one that is unlike the others. */
static bool is_inner(const struct search *s, const struct list *all, size_t k, size_t i)
{
	const struct vc_stretch *r = &all[k].at[i].r;
	uint32_t named = r->from;

	while (!place_of(&s->m[k], named))
		named++;
	uint64_t site = place_of(&s->m[k], named);

	for (size_t j = 0; j < s->n; j++)
		for (size_t o = 0; o < all[j].n; o++) {
			const struct found *f = &all[j].at[o];

			if (f->counted && f->r.named &&
			    in_turn(&s->m[j], &f->r, site) > in_turn(&s->m[k], r, site))
				return true;
		}
	return false;
}

/* What stands inside of others leaves, and what has no names goes with what it belongs to. */
static void settle(const struct search *s, struct list *all)
{
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < all[k].n; i++)
			if (all[k].at[i].counted && is_inner(s, all, k, i))
				all[k].at[i].inner = true;
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < all[k].n; i++) {
			struct found *f = &all[k].at[i];

			f->counted = f->r.named ? f->counted && !f->inner :
						  f->of < i && all[k].at[f->of].counted;
		}
}

/* ---- how often ---- */

static size_t how_many(const struct list *l, uint64_t kind)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->at[i].counted && l->at[i].r.named && l->at[i].kind == kind;
	return n;
}

/* Do the loops of recording k turn together: as much more often elsewhere, and as often in all, but
 * for the first and the last turn of each visit? (A validation comes less often than training.) */
static bool together(const struct list *l, const struct found *f, const struct found *by)
{
	double off = 2 * (double)fmin(how_many(l, f->kind), how_many(l, by->kind));

	return f->grows == by->grows && fabs(f->turns - by->turns) <= off;
}

/* How often the program comes to loop `by` of recording k: as often as there are stretches of its
 * kind, in the recording that has most of them (a single turn is no stretch), and of the kind that
 * is least torn of those that turn together. */
static size_t instances(const struct search *s, const struct list *all, size_t k,
			const struct found *by)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < all[k].n; i++) {
		const struct found *f = &all[k].at[i];
		size_t most = 0;

		if (!f->counted || !f->r.named || !together(&all[k], f, by))
			continue;
		for (size_t j = 0; j < s->n; j++) {
			size_t n = how_many(&all[j], f->kind);

			most = n > most ? n : most;
		}
		least = most < least ? most : least;
	}
	return least;
}

/* Turns of all stretches of its kind. */
static double all_turns(const struct list *l, uint64_t kind)
{
	double n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->at[i].counted && l->at[i].r.named && l->at[i].kind == kind)
			n += vc_stretch_turns(&l->at[i].r);
	return n;
}

static int add(const struct search *s, const struct list *all, size_t k, size_t i,
	       struct vc_loops *out)
{
	const struct found *f = &all[k].at[i], *by = f->r.named ? f : &all[k].at[f->of];
	const struct vc_stretch *r = &f->r;
	double own = by->turns, comes = (double)instances(s, all, k, by);
	double in_all = all_turns(&all[k], by->kind);
	double torn = fmax(1, (double)how_many(&all[k], by->kind) / comes);
	double share = torn > 1 ? (double)vc_stretch_turns(r) * comes / in_all : 1;
	struct vc_sample *c;

	if (in_all < MOSTLY * own)
		return VC_OK; /* a few that are alike by chance */
	c = calloc(s->n + 1, sizeof(*c));
	if (!c || !vc_vec_one(out->at, out->n)) {
		free(c);
		return VC_ENOMEM;
	}
	for (size_t j = 0; j < s->n; j++) {
		size_t at = j;

		for (; at > 0 && c[at - 1].x > s->x[j]; at--)
			c[at] = c[at - 1];
		c[at] = (struct vc_sample){ s->x[j], own / comes *
					    (double)times(&s->place[j], by->clock) /
					    (double)times(&s->place[k], by->clock) };
	}
	out->at[out->n++] = (struct vc_loop){ .from = r->from, .to = r->to, .period = r->period,
					      .count = c, .counts = s->n, .turns = own / comes,
					      .share = share };
	for (uint32_t a = r->from; a < r->to; a++)
		out->like[a] = r->from + (a - r->from) % r->period;
	return VC_OK;
}

static int sift_one(const struct search *s, size_t k, struct list *out)
{
	struct vc_stretches all = { 0 };
	int rc = vc_stretches_find(&s->m[k], &all, NULL);

	if (rc == VC_OK)
		rc = sift(s, k, &all, out);
	vc_stretches_fini(&all);
	return rc;
}

static int find(const struct search *s, struct list *all, struct vc_loops *out)
{
	for (size_t k = 0; k < s->n; k++) {
		struct places *p = &s->place[k];

		p->at = malloc((s->m[k].n + 1) * sizeof(*p->at));
		out[k] = (struct vc_loops){ .like = malloc((s->m[k].n + 1) * sizeof(uint32_t)) };
		if (!p->at || !out[k].like)
			return VC_ENOMEM;
		for (uint32_t i = 0; i < s->m[k].n; i++) {
			out[k].like[i] = VC_UNMATCHED;
			if (place_of(&s->m[k], i))
				p->at[p->n++] = place_of(&s->m[k], i);
		}
		vc_sort_u64(p->at, p->n);
	}
	for (size_t k = 0; k < s->n; k++)
		VC_TRY(sift_one(s, k, &all[k]));
	settle(s, all);
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < all[k].n; i++)
			if (all[k].at[i].counted)
				VC_TRY(add(s, all, k, i, &out[k]));
	return VC_OK;
}

int vc_turns_find(const struct vc_allocations *m, const double *x, size_t n, struct vc_loops *out,
		  struct vc_error *err)
{
	struct search s = { m, x, n, calloc(n + 1, sizeof(*s.place)) };
	struct list *all = calloc(n + 1, sizeof(*all));
	int rc = s.place && all ? find(&s, all, out) : VC_ENOMEM;

	for (size_t k = 0; k < n; k++) {
		free(s.place ? s.place[k].at : NULL);
		free(all ? all[k].at : NULL);
	}
	VC_FREE(s.place, all);
	return rc ? vc_nomem(err, "the loops of recordings") : VC_OK;
}
