/* SPDX-License-Identifier: Apache-2.0 */
/* loops.c - see loops.h
 *
 * What one recording has more of than the other is a run of allocations without counterpart. It
 * is made of turns of a loop where it repeats what stands beside it, block for block. The events
 * of its last turn are repeated; which block each repeated free gives back follows from the
 * turn's own: of the blocks of that kind that live, the latest, the one before it, ... (a loop
 * hands its state to the next turn, the backward pass takes the turns in reverse order). When the
 * recording gave back the last of a kind, so does the longer run. */
#include "simulator/predict/loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "simulator/predict/turn_laws.h"
#include "simulator/predict/workspaces.h"

#define APART 2.5 /* turns: the first and the last may differ from the others, and do not count */

enum {
	MOST = 1 << 22, /* events of a longer run; bounds memory */
	CLOSE = 32,     /* allocations between runs of one loop, at least */
	PARTS = 512,    /* turns that are tried; bounds time */
	RUNS = 64,      /* and pieces of them; bounds time */
	SHORTEST = 4,   /* allocations of a turn: less are buffers that come and go */
};

/* Blocks of one place and size. */
static bool alike(const struct vc_allocations *m, size_t i, size_t j)
{
	const struct vc_take *a = &m->take[i], *b = &m->take[j];

	return a->size == b->size && a->site == b->site && a->stream == b->stream;
}

/* The shortest period of allocations [i, i + n), which need not hold it a whole number of times.
 * fail: n entries of workspace. */
static uint32_t period(const struct vc_allocations *m, size_t i, uint32_t n, uint32_t *fail)
{
	fail[0] = 0;
	for (uint32_t k = 1, q = 0; k < n; k++) {
		while (q && !alike(m, i + k, i + q))
			q = fail[q - 1];
		q += alike(m, i + k, i + q);
		fail[k] = q;
	}
	return n - fail[n - 1];
}

struct region { size_t from, to; };

/* The longest stretch of turns of p allocations that begins before `end` and ends behind i. */
static struct region turns(const struct vc_allocations *m, size_t i, size_t end, uint32_t p)
{
	struct region best = { 0 };
	size_t k = i;

	while (k > 0 && k + p < m->n && i - k < p && !alike(m, k, k + p))
		k--; /* i may stand in its last turn */
	while (k > 0 && k + p < m->n && alike(m, k - 1, k - 1 + p))
		k--;
	for (size_t to; k < end; k = to + 1) {
		for (to = k; to + p < m->n && alike(m, to, to + p); to++)
			;
		if (to - k >= p && to + p > i && to + p - k > best.to - best.from)
			best = (struct region){ k, to + p };
	}
	return best;
}

static int push(struct vc_loops *l, const struct vc_loop *new)
{
	if (!vc_vec_one(l->at, l->n))
		return VC_ENOMEM;
	l->at[l->n++] = *new;
	return 0;
}

/* What is compared: allocations of b, recorded at x, and of o, recorded at y. */
struct search {
	const struct vc_allocations *b, *o;
	const uint32_t *match;
	double x, y;
	struct vc_loops *out;
	uint32_t *fail; /* workspace */
};

/* The loop of the other recording that this one is matched with. */
static struct region counterpart(const struct search *s, const struct region *r, uint32_t p)
{
	struct region best = { 0 };

	for (size_t k = r->from, next = k; k < r->to; k++) {
		uint32_t j = s->match[k];

		if (j == VC_UNMATCHED || k < next || !(s->b->take[k].size == s->o->take[j].size))
			continue;
		struct region there = turns(s->o, j, j + 1, p);
		if (there.to - there.from > best.to - best.from)
			best = there;
		next = k + p;
	}
	return best;
}

/* Do the allocations without counterpart in [i, end) come from turns of p allocations, as many
 * more than in the other recording as the parameter says? The first and the last turns may be
 * others in both. 1: yes, < 0: no memory. */
static int loop_of(const struct search *s, size_t i, size_t end, uint32_t p)
{
	struct region r = p < SHORTEST ? (struct region){ 0 } : turns(s->b, i, end, p), o;
	size_t len = r.to - r.from, other, alone = 0;

	if (p < SHORTEST || len < 2 * (size_t)p) /* what most of those that are tried are */
		return 0;
	o = counterpart(s, &r, p);
	other = o.to - o.from;
	if (len <= other || (len - other) % p)
		return 0;
	double per = (double)(len - other) / p / (s->x - s->y);
	if (fabs((double)len / p - per * s->x) > APART)
		return 0;
	for (size_t k = i < r.from ? i : r.from; k < (end > r.to ? end : r.to); k++)
		alone += s->match[k] == VC_UNMATCHED;
	if (alone < len - other || alone > len - other + (len - other) / 8)
		return 0;
	for (size_t k = r.from; k < r.to; k++)
		s->out->like[k] = (uint32_t)(r.from + (k - r.from) % p);
	struct vc_loop new = {
		.from = (uint32_t)r.from, .to = (uint32_t)r.to, .period = p, .per = per };
	return push(s->out, &new) ? VC_ENOMEM : 1;
}

/* The run without counterpart that follows closely on those up to `end`, which are `all`
 * allocations: where it ends; 0: none does. */
static size_t next_run(const struct search *s, size_t end, size_t *all)
{
	size_t last = end + (*all > CLOSE ? *all : CLOSE), k = end;

	while (k < s->b->n && k < last && s->match[k] != VC_UNMATCHED)
		k++;
	if (k == s->b->n || k == last)
		return 0;
	for (; k < s->b->n && s->match[k] == VC_UNMATCHED; k++)
		++*all;
	return k;
}

/* Periods to try: that of the last of the runs in [i, end), and the whole parts of all that is
 * alone in them. */
static int one_cluster(const struct search *s, size_t i, size_t end, size_t all)
{
	size_t from = end, buffers = 0;
	int found = 0;

	for (size_t k = i; k < end; k++)
		buffers += s->match[k] == VC_UNMATCHED &&
			   vc_workspace_is_buffer(s->b, (uint32_t)k);
	if (buffers == all)
		return 0;
	while (from > i && s->match[from - 1] == VC_UNMATCHED)
		from--;
	if (end - from > 1)
		found = loop_of(s, i, end, period(s->b, from, (uint32_t)(end - from), s->fail));
	for (size_t parts = 1; !found && parts <= all / 2 && parts < PARTS; parts++)
		if (all % parts == 0)
			found = loop_of(s, i, end, (uint32_t)(all / parts));
	return found;
}

int vc_loops_find(const struct vc_allocations *b, double x, const struct vc_allocations *o,
		  double y, const uint32_t *match, struct vc_loops *out, struct vc_error *err)
{
	struct search s = { b, o, match, x, y, out, malloc((b->n + 1) * sizeof(*s.fail)) };
	int rc = s.fail ? 0 : VC_ENOMEM;

	*out = (struct vc_loops){ .like = malloc((b->n + 1) * sizeof(*out->like)) };
	if (!out->like)
		rc = VC_ENOMEM;
	for (size_t i = 0; out->like && i < b->n; i++)
		out->like[i] = VC_UNMATCHED;
	for (size_t i = 0, end, first, all; rc >= 0 && x > y && i<b->n; i = rc> 0 ? end : first) {
		all = 0;
		rc = 0;
		for (end = i; end < b->n && match[end] == VC_UNMATCHED; end++)
			all++;
		first = end + (end == i);
		for (int runs = 0; all && !rc && end && runs < RUNS; runs++) {
			rc = one_cluster(&s, i, end, all);
			end = rc ? end : next_run(&s, end, &all);
		}
	}
	free(s.fail);
	return rc < 0 ? vc_nomem(err, "the loops of a recording") : 0;
}

void vc_loops_skip(const struct vc_loops *l, double more, bool *skip)
{
	for (size_t j = 0; j < l->n; j++) {
		const struct vc_loop *p = &l->at[j];
		size_t from = p->from + p->period, n = (size_t)(more * p->per + 0.5) * p->period;

		for (size_t i = from; i < from + n && i < p->to; i++)
			skip[i] = true;
	}
}

void vc_loops_once(const struct vc_loops *l, bool *skip)
{
	for (size_t j = 0; j < l->n; j++) {
		const struct vc_loop *p = &l->at[j];
		size_t turns = (p->to - p->from) / p->period;

		for (size_t i = p->from + p->period; i < p->from + turns * p->period; i++)
			skip[i] = true;
	}
}

bool vc_loops_more(const struct vc_loops *l, double own, double x, enum vc_bound bound,
		   int64_t *more)
{
	bool partly = false;

	for (size_t j = 0; j < l->n; j++) {
		const struct vc_loop *p = &l->at[j];
		int64_t has = (p->to - p->from) / p->period;
		double d = (x - own) * p->per;

		if (p->count) {
			struct vc_turn_count c = vc_turns_at(p->count, p->counts, x);

			d = bound == VC_BOUND_LOW  ? c.low :
			    bound == VC_BOUND_HIGH ? c.high : c.best;
			d -= p->turns;
			partly |= !c.whole || (c.low != c.high && !c.always);
			d *= p->share;
			if (fabs((double)has - p->turns * p->share) > APART) /* data decide */
				d *= (double)has / (p->turns * p->share);
		}
		more[j] = llround(d);
		more[j] = p->count ? (more[j] < -has ? -has : more[j]) : more[j] < 0 ? 0 : more[j];
	}
	return partly;
}

bool vc_loops_at_end(const struct vc_loops *l, uint32_t i, bool first)
{
	for (size_t j = 0; l->n && l->like[i] != VC_UNMATCHED && j < l->n; j++) {
		const struct vc_loop *p = &l->at[j];
		uint32_t turns = (p->to - p->from) / p->period;

		if (i >= p->from && i < p->to)
			return p->count && turns > 1 &&
			       (i - p->from) / p->period == (first ? 0 : turns - 1);
	}
	return false;
}

void vc_loops_fini(struct vc_loops *l)
{
	for (size_t j = 0; j < l->n; j++)
		free(l->at[j].count);
	free(l->at);
	free(l->like);
	*l = (struct vc_loops){ 0 };
}

void vc_looped_fini(struct vc_looped *t)
{
	vc_trace_fini(&t->trace);
	free(t->of);
	*t = (struct vc_looped){ 0 };
}

/* ---- a longer run ---- */

/* Live blocks of one kind, in order of birth: as recorded, and in the longer run. */
#define LEFT_OUT UINT64_MAX
struct live { uint64_t *id; size_t n, room; };
struct kind { struct live was, is; };

struct turner {
	const struct vc_allocations *b;
	struct vc_looped *out;
	struct kind *kind;
	size_t kinds;
	uint32_t *kind_of;   /* by allocation; VC_UNMATCHED: of no loop */
	uint32_t
		*rank; /* by event: which of its kind a free gave back, counted from the latest */
	uint64_t *now;       /* by recorded id: what was given back instead, or LEFT_OUT */
	bool *inside;        /* by event: of a turn */
	uint32_t *copies;    /* by allocation: blocks of turns that repeat it, and live */
	size_t room;
};

static int add(struct live *l, uint64_t id)
{
	if (!vc_vec_room(l->id, l->room, l->n + 1))
		return VC_ENOMEM;
	l->id[l->n++] = id;
	return 0;
}

/* Take out the block that has `rank` later ones; the oldest where there are not so many. */
static uint64_t take_out(struct live *l, size_t rank)
{
	size_t at = rank < l->n ? l->n - 1 - rank : 0;
	uint64_t id = l->id[at];

	memmove(&l->id[at], &l->id[at + 1], (l->n - at - 1) * sizeof(*l->id));
	l->n--;
	return id;
}

static size_t rank_of(const struct live *l, uint64_t id)
{
	for (size_t k = 0; k < l->n; k++)
		if (l->id[l->n - 1 - k] == id)
			return k;
	return l->n;
}

static uint32_t alloc_of(const struct turner *t, uint64_t id)
{
	return id < t->b->ids && t->b->of_id[id] ? t->b->of_id[id] - 1 : VC_UNMATCHED;
}

static int out(struct turner *t, const struct vc_event *like, uint64_t id)
{
	struct vc_event e = *like;

	e.id = id;
	return t->out->trace.n < MOST ? vc_trace_append(&t->out->trace, &e, 1, NULL) : VC_ENOMEM;
}

/* A new block like allocation i. */
static int repeat_alloc(struct turner *t, const struct vc_event *e, uint32_t i)
{
	uint64_t id = t->out->ids++;

	if (!vc_vec_room(t->out->of, t->room, id - t->out->from + 1))
		return VC_ENOMEM;
	t->copies[i]++;
	t->out->of[id - t->out->from] = i;
	return add(&t->kind[t->kind_of[i]].is, id) ? VC_ENOMEM : out(t, e, id);
}

static int repeat(struct turner *t, size_t from, size_t to)
{
	for (size_t k = from; k < to; k++) {
		const struct vc_event *e = &t->b->trace->ev[k];
		bool free_it = e->kind == VC_EV_FREE;

		if (e->kind == VC_EV_PLAN)
			VC_TRY(out(t, e, k)); /* see vc_outline_borrows */
		if (e->device != t->b->device || (e->kind != VC_EV_ALLOC && !free_it))
			continue;
		uint32_t i = alloc_of(t, e->id);
		struct kind *q = i == VC_UNMATCHED || t->kind_of[i] == VC_UNMATCHED ?
					 NULL : &t->kind[t->kind_of[i]];

		if (q && !free_it)
			VC_TRY(repeat_alloc(t, e, i));
		else if (q && q->is.n)
			VC_TRY(out(t, e, take_out(&q->is, t->rank[k])));
	}
	t->out->turns++;
	return VC_OK;
}

/* What a block of a turn is given back with behind its loop, a list of all of them for one: those
 * of turns that repeat it. */
static int free_copies(struct turner *t, size_t k, uint32_t i, struct kind *q)
{
	for (; !t->inside[k] && t->copies[i] && q->is.n > q->was.n; t->copies[i]--)
		VC_TRY(out(t, &t->b->trace->ev[k], take_out(&q->is, t->rank[k])));
	return VC_OK;
}

/* One recorded event, with the block that stands for its own. */
static int recorded(struct turner *t, size_t k)
{
	const struct vc_event *e = &t->b->trace->ev[k];
	uint32_t i = e->device == t->b->device && e->kind <= VC_EV_USE ? alloc_of(t, e->id) :
									 VC_UNMATCHED;
	struct kind *q = i == VC_UNMATCHED || t->kind_of[i] == VC_UNMATCHED ?
				 NULL : &t->kind[t->kind_of[i]];

	if (q && t->now[e->id] == LEFT_OUT && e->kind != VC_EV_FREE)
		return VC_OK;
	if (!q || (e->kind != VC_EV_ALLOC && e->kind != VC_EV_FREE))
		return out(t, e, e->kind == VC_EV_PLAN ? k :
				 q && t->now[e->id] ? t->now[e->id] : e->id);
	if (e->kind == VC_EV_ALLOC)
		return add(&q->was, e->id) || add(&q->is, e->id) ? VC_ENOMEM : out(t, e, e->id);
	t->rank[k] = (uint32_t)rank_of(&q->was, e->id);
	if (t->rank[k] >= q->was.n || !q->is.n)
		return 0;
	take_out(&q->was, t->rank[k]);
	if (!t->inside[k] && t->now[e->id] == LEFT_OUT && q->is.n <= q->was.n)
		return VC_OK; /* it was not made */
	t->now[e->id] = take_out(&q->is, t->rank[k]);
	VC_TRY(out(t, e, t->now[e->id]));
	VC_TRY(free_copies(t, k, i, q));
	while (!q->was.n && q->is.n)
		VC_TRY(out(t, e, take_out(&q->is, 0)));
	return VC_OK;
}

/* Events [from, to) of turns that are not made: their blocks are known, but asked for by nobody. */
static int leave_out(struct turner *t, size_t from, size_t to)
{
	for (size_t k = from; k < to; k++) {
		const struct vc_event *e = &t->b->trace->ev[k];
		uint32_t i = e->device == t->b->device && e->kind <= VC_EV_USE ?
				     alloc_of(t, e->id) : VC_UNMATCHED;
		struct kind *q = i == VC_UNMATCHED || t->kind_of[i] == VC_UNMATCHED ?
					 NULL : &t->kind[t->kind_of[i]];

		if (!q || (e->kind != VC_EV_ALLOC && e->kind != VC_EV_FREE)) {
			if (!q || t->now[e->id] != LEFT_OUT)
				VC_TRY(recorded(t, k));
			continue;
		}
		if (e->kind == VC_EV_ALLOC) {
			t->now[e->id] = LEFT_OUT;
			VC_TRY(add(&q->was, e->id));
			continue;
		}
		size_t rank = rank_of(&q->was, e->id);
		if (rank < q->was.n)
			take_out(&q->was, rank);
	}
	return VC_OK;
}

/* Number the kinds of blocks that turns make. */
static int find_kinds(struct turner *t, const struct vc_loops *l)
{
	const struct vc_allocations *b = t->b;
	uint32_t *slot = calloc(vc_align_slots(b->n) + b->n + 1, sizeof(*slot));
	uint32_t *of = slot + vc_align_slots(b->n); /* kind + 1 of turns by kind of all */

	if (!slot)
		return VC_ENOMEM;
	vc_align_kinds(b->take, b->n, t->kind_of, slot);
	for (size_t i = 0; i < b->n; i++)
		if (l->like[i] != VC_UNMATCHED && !of[t->kind_of[i]])
			of[t->kind_of[i]] = (uint32_t)++t->kinds;
	for (size_t i = 0; i < b->n; i++)
		t->kind_of[i] = of[t->kind_of[i]] ? of[t->kind_of[i]] - 1 : VC_UNMATCHED;
	free(slot);
	t->kind = calloc(t->kinds + 1, sizeof(*t->kind));
	return t->kind ? 0 : VC_ENOMEM;
}

/* A turn ends with the request behind it: what comes before that is its own. */
static void mark_turns(struct turner *t, const struct vc_loops *l)
{
	for (size_t j = 0; j < l->n; j++) {
		const struct vc_loop *p = &l->at[j];
		size_t end = p->to < t->b->n ? t->b->event[p->to] : t->b->trace->n;

		for (size_t k = t->b->event[p->from]; k < end; k++)
			t->inside[k] = true;
	}
}

static int turn_all(struct turner *t, const struct vc_loops *l, const int64_t *more)
{
	size_t k = 0;
	int rc = 0;

	for (size_t j = 0; !rc && j <= l->n; j++) {
		const struct vc_loop *p = j < l->n ? &l->at[j] : NULL;
		size_t turns = p ? (p->to - p->from) / p->period : 0;
		size_t fewer = p && more[j] < 0 ? (size_t)-more[j] : 0;
		size_t turn = p ? p->from + (turns - fewer) / 2 * p->period : 0; /* in the middle */
		size_t last = turn + (fewer ? fewer : 1) * (p ? p->period : 0);
		size_t from = p ? t->b->event[turn] : 0;
		size_t end = p && last < t->b->n ? t->b->event[last] : t->b->trace->n;

		for (; !rc && k < (fewer ? from : end); k++)
			rc = recorded(t, k);
		if (fewer && !rc && k == from) {
			rc = leave_out(t, from, end);
			t->out->turns += fewer;
			k = end;
		}
		for (int64_t added = 0; p && !rc && added < more[j]; added++)
			rc = repeat(t, from, end);
	}
	return rc;
}

int vc_loops_repeat(const struct vc_loops *l, const struct vc_allocations *b, const int64_t *more,
		    struct vc_looped *out, struct vc_error *err)
{
	struct turner t = { .b = b, .out = out };
	int rc = 0;

	*out = (struct vc_looped){ .from = b->ids + 1, .ids = b->ids + 1 };
	t.kind_of = malloc((b->n + 1) * sizeof(*t.kind_of));
	t.rank = calloc(b->trace->n + 1, sizeof(*t.rank));
	t.now = calloc(b->ids + 1, sizeof(*t.now));
	t.inside = calloc(b->trace->n + 1, sizeof(*t.inside));
	t.copies = calloc(b->n + 1, sizeof(*t.copies));
	rc = t.kind_of && t.rank && t.now && t.inside && t.copies ? find_kinds(&t, l) : VC_ENOMEM;
	if (!rc)
		mark_turns(&t, l);
	if (!rc)
		rc = turn_all(&t, l, more);
	for (size_t k = 0; t.kind && k < t.kinds; k++) {
		VC_FREE(t.kind[k].was.id, t.kind[k].is.id);
	}
	VC_FREE(t.kind, t.kind_of, t.rank, t.now, t.inside, t.copies);
	if (!rc)
		return 0;
	vc_looped_fini(out);
	return vc_nomem(err, "the longer run");
}
