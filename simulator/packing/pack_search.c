/* SPDX-License-Identifier: Apache-2.0 */
/* pack_search.c - is there a packing of at most this height? Depth first, by exclusion.
 *
 * Any packing can be let down until every block rests on the floor or on a block, and can be built
 * in the order of offsets. So only such packings are tried: the next block rests on those placed,
 * and is not lower than the one before. Left out besides:
 *  - a block that would stand above the lowest place where another one would end: the other could
 *    be put there first;
 *  - where in some section what stands and what is still to come exceed the height.
 * (Moffitt, MiniMalloc, ASPLOS 2023, describes these rules.) */
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "simulator/packing/pack_parts.h"

struct undo { uint32_t piece, rest; };

struct vc_pack_search {
	const struct vc_pieces *s;
	const struct vc_neighbours *near; /* lent */
	uint32_t *size, *rest; /* per piece, in units: how large; where it would rest now */
	uint32_t *least;  /* per section: the lowest place where some of it could rest */
	uint32_t *load;   /* per section: sizes still to come */
	uint32_t *rank;   /* per piece: its place in the order of preference */
	struct undo *undo; size_t undos, undo_cap;
	uint32_t *todo; size_t todos, todo_cap; /* lists of the parts on the way */
	struct vc_stretch blame; /* where the last dead end was */
	bool jump;        /* see solve */
	bool scaled;
	bool wraps;       /* some piece has two stretches */
	uint64_t unit;    /* all sizes are multiples of it */
	uint32_t capacity;
	struct vc_layout *l;
	struct vc_budget *b;
};

/* What is still to be placed and hangs together: pieces (in x->todo, in order of preference) whose
 * lives lie in these sections. */
struct part {
	size_t at; uint32_t n;
	uint32_t from, to;
	uint32_t offset;  /* nothing may be put lower */
	uint32_t rank;    /* at that offset: only ranks from here on */
};

/* The largest that divides all sizes; sizes in such units. False: they take more than 31 bits. */
static bool scale(struct vc_pack_search *x)
{
	uint64_t sum = 0;

	x->unit = 0;
	for (size_t i = 0; i < x->s->n; i++) {
		uint64_t a = x->s->at[i].size;

		sum += a;
		while (x->unit) {
			uint64_t rest = a % x->unit;

			a = x->unit;
			x->unit = rest;
		}
		x->unit = a;
	}
	for (size_t i = 0; i < x->s->n; i++)
		x->size[i] = (uint32_t)(x->s->at[i].size / x->unit);
	return x->s->n && sum / x->unit <= INT32_MAX;
}

struct vc_pack_search *vc_pack_search_new(const struct vc_pieces *s, const struct vc_near *near,
				struct vc_error *err)
{
	struct vc_pack_search *x = calloc(1, sizeof(*x));
	size_t n = s->n + 1;

	if (x) {
		x->s = s;
		x->near = near->of;
		x->rest = calloc(n, sizeof(*x->rest));
		x->size = calloc(n, sizeof(*x->size));
		x->load = calloc(s->sections + 1, sizeof(*x->load));
		x->least = calloc(s->sections + 1, sizeof(*x->load));
		x->rank = calloc(n, sizeof(*x->rank));
		for (size_t i = 0; i < s->n; i++)
			x->wraps = x->wraps || s->at[i].stretches > 1;
	}
	if (x && x->rest && x->size && x->load && x->least && x->rank) {
		x->scaled = scale(x);
		return x;
	}
	vc_pack_search_free(x);
	vc_nomem(err, "the search for a packing");
	return NULL;
}

void vc_pack_search_free(struct vc_pack_search *x)
{
	if (x)
		VC_FREE(x->rest, x->size, x->load, x->least, x->rank, x->undo, x->todo);
	free(x);
}

/* ---- one step down, and back ---- */

static bool has_room(struct vc_pack_search *x, const struct part *p, uint32_t piece)
{
	return vc_vec_room(x->undo, x->undo_cap, x->undos + x->near[piece].n + 1) &&
	       vc_vec_room(x->todo, x->todo_cap, x->todos + p->n + 1);
}

static void move_load(struct vc_pack_search *x, const struct vc_piece *p, uint32_t by)
{
	for (uint32_t k = 0; k < p->stretches; k++)
		for (uint32_t s = p->at[k].from; s < p->at[k].to; s++)
			x->load[s] += by;
}

static void place(struct vc_pack_search *x, uint32_t piece)
{
	uint32_t end = x->rest[piece] + x->size[piece];

	move_load(x, &x->s->at[piece], 0u - x->size[piece]);
	for (uint32_t k = 0; k < x->near[piece].n; k++) {
		uint32_t i = x->near[piece].at[k];

		if (x->rest[i] >= end)
			continue;
		x->undo[x->undos++] = (struct undo){ i, x->rest[i] };
		x->rest[i] = end;
	}
	x->l->offset[piece] = (end - x->size[piece]) * x->unit;
}

static void take_back(struct vc_pack_search *x, uint32_t piece, size_t undos)
{
	while (x->undos > undos) {
		x->undos--;
		x->rest[x->undo[x->undos].piece] = x->undo[x->undos].rest;
	}
	move_load(x, &x->s->at[piece], x->size[piece]);
}

/* ---- choosing ---- */

static void widen(struct vc_stretch *a, struct vc_stretch b)
{
	a->from = b.from < a->from ? b.from : a->from;
	a->to = b.to > a->to ? b.to : a->to;
}

static bool meets(struct vc_stretch a, struct vc_stretch b)
{
	return a.from < b.to && b.from < a.to;
}

struct choice { uint32_t offset, rank, piece; };

/* No piece may rest as high as the lowest end that another could have: that one could be put there
 * first. */
static uint32_t lowest_end(const struct vc_pack_search *x, const struct part *p, uint32_t *piece)
{
	uint32_t low = UINT32_MAX;

	for (uint32_t k = 0; k < p->n; k++) {
		uint32_t i = x->todo[p->at + k], end = x->rest[i] + x->size[i];

		if (end < low) {
			low = end;
			*piece = i;
		}
	}
	return low;
}

/* The next candidate behind `c`: the lowest place first, then the order of preference. Of those
 * that rest equally high only one order counts. */
static bool choose(const struct vc_pack_search *x, const struct part *p, uint32_t lowest,
		   struct choice *c)
{
	uint32_t low = UINT32_MAX, best = UINT32_MAX;

	for (uint32_t k = 0; k < p->n; k++) {
		uint32_t i = x->todo[p->at + k], rest = x->rest[i];

		if (rest >= low || rest < c->offset || rest >= lowest ||
		    (rest == c->offset && x->rank[i] < c->rank) ||
		    rest + x->size[i] > x->capacity)
			continue;
		low = rest;
		best = i;
	}
	if (best == UINT32_MAX)
		return false;
	*c = (struct choice){ low, x->rank[best] + 1, best };
	return true;
}

/* The lowest place, per section, where something of the part could rest, `but` left out. */
static void find_least(struct vc_pack_search *x, const struct part *p, uint32_t offset,
		       uint32_t but)
{
	memset(x->least + p->from, 0xff, (p->to - p->from) * sizeof(*x->least));
	for (uint32_t k = 0; k < p->n; k++) {
		uint32_t i = x->todo[p->at + k], at = x->rest[i] > offset ? x->rest[i] : offset;
		const struct vc_piece *q = &x->s->at[i];

		if (i == but)
			continue;
		x->b->left -= q->length;
		for (uint32_t j = 0; j < q->stretches; j++)
			for (uint32_t s = q->at[j].from; s < q->at[j].to; s++)
				x->least[s] = at < x->least[s] ? at : x->least[s];
	}
}

/* Does what is to come fit in each section above that? If not, the dead end is where all live that
 * live in the worst section. */
static bool is_possible(struct vc_pack_search *x, const struct part *p, const struct choice *c)
{
	uint64_t most = 0;
	uint32_t worst = 0;

	find_least(x, p, c->offset, c->piece);
	for (uint32_t s = p->from; s < p->to; s++) {
		uint64_t top = x->load[s] ? (uint64_t)x->least[s] + x->load[s] : 0;

		if (top > most) {
			most = top;
			worst = s;
		}
	}
	if (most <= x->capacity)
		return true;
	x->blame = (struct vc_stretch){ worst, worst + 1 };
	for (uint32_t k = 0; k < p->n; k++) {
		const struct vc_piece *q = &x->s->at[x->todo[p->at + k]];

		if (meets(x->blame, q->at[0]) && q->at[0].from <= worst && worst < q->at[0].to)
			widen(&x->blame, q->at[0]);
	}
	return false;
}

/* ---- the search ---- */

static enum vc_pack_found solve(struct vc_pack_search *x, const struct part *p);

/* Sections in which nothing is to come part what is left and right of them. */
static bool next_part(const struct vc_pack_search *x, const struct part *whole, struct part *p)
{
	p->from = p->to;
	while (p->from < whole->to && !x->load[p->from])
		p->from++;
	p->to = p->from;
	while (p->to < whole->to && x->load[p->to])
		p->to++;
	if (x->wraps && p->from < whole->to) {
		p->from = whole->from;
		p->to = whole->to;
	}
	return p->from < whole->to;
}

/* What is left of `p` behind that choice, part by part. */
static enum vc_pack_found solve_rest(struct vc_pack_search *x, const struct part *p,
				     const struct choice *c)
{
	struct part sub = { .to = p->from, .offset = c->offset, .rank = c->rank };
	enum vc_pack_found r = VC_PACK_FOUND;
	size_t were = x->todos;

	if (!is_possible(x, p, c))
		return VC_PACK_NONE;
	while (r == VC_PACK_FOUND && next_part(x, p, &sub)) {
		sub.at = x->todos = were;
		sub.n = 0;
		if (!vc_vec_room(x->todo, x->todo_cap, x->todos + p->n))
			return VC_PACK_TIRED;
		for (uint32_t k = 0; k < p->n; k++) {
			uint32_t i = x->todo[p->at + k], from = x->s->at[i].at[0].from;

			if (i != c->piece && from >= sub.from && from < sub.to)
				x->todo[sub.at + sub.n++] = i;
		}
		x->todos += sub.n;
		r = solve(x, &sub);
	}
	x->todos = were;
	return r;
}

/* With x->jump, when there is no way on only those choices are made anew that live where the dead
 * end is. Others may matter, over what stands between: so "none" proves nothing then. */
static enum vc_pack_found solve(struct vc_pack_search *x, const struct part *p)
{
	struct choice c = { p->offset, p->rank, 0 };
	struct vc_stretch blame = { UINT32_MAX, 0 };
	uint32_t lowest_piece = 0, lowest = lowest_end(x, p, &lowest_piece);

	while (choose(x, p, lowest, &c)) {
		enum vc_pack_found r = VC_PACK_TIRED;
		size_t undos = x->undos;

		if (x->jump && blame.to && !meets(blame, x->s->at[c.piece].at[0]))
			continue;
		x->b->left -= 32 + 2 * (int64_t)p->n + (p->to - p->from) / 2;
		if (x->b->left < 0 || !has_room(x, p, c.piece))
			return r;
		place(x, c.piece);
		r = p->n > 1 ? solve_rest(x, p, &c) : VC_PACK_FOUND;
		take_back(x, c.piece, undos);
		if (r != VC_PACK_NONE)
			return r;
		if (x->jump && !meets(x->blame, x->s->at[c.piece].at[0]))
			return r;
		widen(&blame, x->blame);
	}
	widen(&blame, x->s->at[lowest_piece].at[0]);
	x->blame = blame;
	return VC_PACK_NONE;
}

enum vc_pack_found vc_pack_search_run(struct vc_pack_search *x, const uint32_t *order,
				      uint64_t capacity, bool jump, struct vc_layout *l,
				      struct vc_budget *b)
{
	struct part whole = { .n = (uint32_t)x->s->n, .to = x->s->sections };
	const struct choice nothing = { .piece = UINT32_MAX };
	enum vc_pack_found r;

	if (!x->scaled || !vc_vec_room(x->todo, x->todo_cap, x->s->n + 1))
		return VC_PACK_TIRED;
	memset(x->rest, 0, x->s->n * sizeof(*x->rest));
	for (uint32_t k = 0; k < x->s->sections; k++)
		x->load[k] = (uint32_t)(x->s->load[k] / x->unit);
	memcpy(x->todo, order, x->s->n * sizeof(*x->todo));
	for (uint32_t k = 0; k < x->s->n; k++)
		x->rank[order[k]] = k;
	x->todos = x->s->n;
	x->undos = 0;
	x->capacity = (uint32_t)(capacity / x->unit);
	x->l = l;
	x->jump = jump;
	x->b = b;
	r = solve_rest(x, &whole, &nothing);
	l->height = r == VC_PACK_FOUND ? 0 : UINT64_MAX;
	for (size_t i = 0; r == VC_PACK_FOUND && i < x->s->n; i++)
		if (l->offset[i] + x->s->at[i].size > l->height)
			l->height = l->offset[i] + x->s->at[i].size;
	return r == VC_PACK_NONE && jump ? VC_PACK_TIRED : r;
}
