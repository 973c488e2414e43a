/* SPDX-License-Identifier: Apache-2.0 */
/* pack_search.c - is there a packing of at most this height? Depth first, by exclusion.
 *
 * Any packing can be let down until every block rests on the floor or on a block, and can be built
 * in the order of offsets. So only such packings are tried: the next block rests on those placed,
 * and is not lower than the one before. Left out besides:
 *  - a block that would stand above the lowest place where another one would end: the other could
 *    be put there first;
 *  - where in some section what stands and what is still to come exceed the height, or a block has
 *    no room any more above what stands.
 * What falls apart into lives that do not meet is searched part by part.
 * (Moffitt, MiniMalloc, ASPLOS 2023, describes these rules.) */

#include "common/vec.h"
#include "simulator/packing/pack_parts.h"

/* What a step changed, and what it was. */
struct undo { uint32_t *at, was; };

struct vc_pack_search {
	const struct vc_pieces *s;
	const struct vc_neighbours *near; /* lent */
	uint32_t *size, *rest; /* per piece, in units: how large; where it would rest now */
	uint32_t *meets;  /* per piece: neighbours that are still to come */
	uint32_t *trouble; /* per piece: its dead ends in this run */
	uint32_t *least;  /* per section: the lowest place where some of it could rest */
	uint32_t *load;   /* per section: sizes still to come */
	uint32_t *first, *in; /* per section: its pieces are in[first[s]] to in[first[s + 1] - 1] */
	uint32_t *reach;  /* per section: scratch */
	uint32_t *rank;   /* per piece: its place in the order of preference */
	struct undo *undo; size_t undos, undo_cap;
	uint32_t *todo; size_t todos, todo_cap; /* lists of the parts on the way */
	struct part *part; size_t parts, part_cap;
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

#define GONE UINT32_MAX /* where something that is placed would rest */

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

/* Which pieces live in each section. */
static void list_in(struct vc_pack_search *x, uint32_t piece)
{
	const struct vc_piece *p = &x->s->at[piece];

	for (uint32_t k = 0; k < p->stretches; k++)
		for (uint32_t s = p->at[k].from; s < p->at[k].to; s++)
			x->in[x->first[s] + x->reach[s]++] = piece;
}

static bool list_sections(struct vc_pack_search *x)
{
	const struct vc_pieces *s = x->s;
	size_t total = 0;

	for (size_t i = 0; i < s->n; i++) {
		total += s->at[i].length;
		for (uint32_t k = 0; k < s->at[i].stretches; k++) {
			x->first[s->at[i].at[k].from]++;
			x->first[s->at[i].at[k].to]--;
		}
	}
	x->in = calloc(total + 1, sizeof(*x->in));
	if (!x->in || total > UINT32_MAX)
		return false;
	for (uint32_t k = 0, lives = 0, at = 0; k <= s->sections; k++) {
		lives += x->first[k];
		x->first[k] = at;
		at += lives;
	}
	for (uint32_t i = 0; i < s->n; i++)
		list_in(x, i);
	return true;
}

struct vc_pack_search *vc_pack_search_new(const struct vc_pieces *s, const struct vc_near *near,
				struct vc_error *err)
{
	struct vc_pack_search *x = calloc(1, sizeof(*x));
	size_t n = s->n + 1, sections = (size_t)s->sections + 1;

	if (x) {
		x->s = s;
		x->near = near->of;
		x->rest = calloc(n, sizeof(*x->rest));
		x->size = calloc(n, sizeof(*x->size));
		x->meets = calloc(n, sizeof(*x->meets));
		x->trouble = calloc(n, sizeof(*x->trouble));
		x->load = calloc(sections, sizeof(*x->load));
		x->least = calloc(sections, sizeof(*x->least));
		x->first = calloc(sections, sizeof(*x->first));
		x->reach = calloc(sections, sizeof(*x->reach));
		x->rank = calloc(n, sizeof(*x->rank));
		for (size_t i = 0; i < s->n; i++)
			x->wraps = x->wraps || s->at[i].stretches > 1;
	}
	if (x && x->rest && x->size && x->meets && x->trouble && x->load && x->least &&
	    x->first && x->reach && x->rank && 	    list_sections(x)) {
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
		VC_FREE(x->rest, x->size, x->meets, x->trouble, x->load, x->least, x->first,
			x->in, x->reach, x->rank, x->undo, x->todo, x->part);
	free(x);
}

/* ---- one step down, and back ---- */

static bool has_room(struct vc_pack_search *x, const struct part *p, uint32_t piece)
{
	return vc_vec_room(x->undo, x->undo_cap,
			   x->undos + x->near[piece].n + x->s->sections + 2) &&
	       vc_vec_room(x->todo, x->todo_cap, x->todos + 2 * (size_t)p->n + 1) &&
	       vc_vec_room(x->part, x->part_cap, x->parts + p->n + 1);
}

static void change(struct vc_pack_search *x, uint32_t *at, uint32_t to)
{
	x->undo[x->undos++] = (struct undo){ at, *at };
	*at = to;
}

/* The lowest place, per section, where something could rest. */
static void find_least(struct vc_pack_search *x, uint32_t from, uint32_t to, uint32_t below)
{
	for (uint32_t s = from; s < to; s++) {
		uint32_t low = GONE;

		if (x->least[s] >= below)
			continue;
		for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++)
			low = x->rest[x->in[k]] < low ? x->rest[x->in[k]] : low;
		x->b->left -= (x->first[s + 1] - x->first[s]) / 2 + 4;
		if (low != x->least[s])
			change(x, &x->least[s], low);
	}
}

static void widen(struct vc_stretch *a, struct vc_stretch b)
{
	a->from = b.from < a->from ? b.from : a->from;
	a->to = b.to > a->to ? b.to : a->to;
}

static void move_load(struct vc_pack_search *x, uint32_t piece, uint32_t by)
{
	const struct vc_piece *p = &x->s->at[piece];

	for (uint32_t k = 0; k < p->stretches; k++)
		for (uint32_t s = p->at[k].from; s < p->at[k].to; s++)
			x->load[s] += by;
}

/* False: a neighbour has no place above it. */
static bool place(struct vc_pack_search *x, uint32_t piece)
{
	const struct vc_piece *p = &x->s->at[piece];
	uint32_t end = x->rest[piece] + x->size[piece];
	struct vc_stretch touched = p->at[0];
	bool fits = true;

	x->l->offset[piece] = x->rest[piece] * x->unit;
	move_load(x, piece, 0u - x->size[piece]);
	change(x, &x->rest[piece], GONE);
	x->b->left -= x->near[piece].n + p->length / 2;
	for (uint32_t k = 0; k < x->near[piece].n; k++) {
		uint32_t i = x->near[piece].at[k];

		x->meets[i]--;
		if (x->rest[i] >= end)
			continue;
		change(x, &x->rest[i], end);
		widen(&touched, x->s->at[i].at[0]);
		if (end + x->size[i] > x->capacity) {
			fits = false;
			x->blame = x->s->at[i].at[0];
			x->trouble[i] += 2;
		}
	}
	if (fits && x->wraps)
		find_least(x, 0, x->s->sections, end);
	else if (fits)
		find_least(x, touched.from, touched.to, end);
	return fits;
}

static void take_back(struct vc_pack_search *x, uint32_t piece, size_t undos)
{
	while (x->undos > undos) {
		x->undos--;
		*x->undo[x->undos].at = x->undo[x->undos].was;
	}
	for (uint32_t k = 0; k < x->near[piece].n; k++)
		x->meets[x->near[piece].at[k]]++;
	move_load(x, piece, x->size[piece]);
}

/* ---- choosing ---- */

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

/* Does what is to come fit in each section? If not, the dead end is where all live that live in
 * the worst section. */
static bool is_possible(struct vc_pack_search *x, const struct part *p)
{
	uint64_t most = 0;
	uint32_t worst = 0;

	for (uint32_t s = p->from; s < p->to; s++) {
		uint32_t low = x->least[s] < p->offset ? p->offset : x->least[s];
		uint64_t top = x->load[s] ? (uint64_t)low + x->load[s] : 0;

		if (top > most) {
			most = top;
			worst = s;
		}
	}
	if (most <= x->capacity)
		return true;
	x->blame = (struct vc_stretch){ worst, worst + 1 };
	for (uint32_t k = x->first[worst]; k < x->first[worst + 1]; k++) {
		uint32_t i = x->in[k];

		x->trouble[i]++;
		if (x->rest[i] != GONE)
			widen(&x->blame, x->s->at[i].at[0]);
	}
	return false;
}

/* ---- the search ---- */

/* No life of a part goes on in another. */
static void cut(struct vc_pack_search *x, const struct part *p, const struct choice *c, uint32_t n)
{
	uint32_t end;

	memset(x->reach + p->from, 0, (p->to - p->from) * sizeof(*x->reach));
	for (uint32_t k = 0; k < n; k++) {
		struct vc_stretch at = x->s->at[x->todo[x->todos + k]].at[0];

		if (x->reach[at.from] < at.to)
			x->reach[at.from] = at.to;
	}
	if (x->wraps)
		x->reach[p->from] = p->to;
	for (uint32_t s = p->from; s < p->to; s = end) {
		end = x->reach[s] ? x->reach[s] : s + 1;
		for (uint32_t k = s + 1; k < end; k++)
			end = x->reach[k] > end ? x->reach[k] : end;
		if (x->reach[s])
			x->part[x->parts++] = (struct part){ .from = s, .to = end,
				.offset = c->offset, .rank = c->rank };
	}
}

/* What is left of a part behind a choice. What meets nothing any more lies where it rests. */
static uint32_t list_rest(struct vc_pack_search *x, const struct part *p, const struct choice *c)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		uint32_t i = x->todo[p->at + k];

		if (i == c->piece)
			continue;
		if (x->meets[i])
			x->todo[x->todos + n++] = i;
		else
			x->l->offset[i] = x->rest[i] * x->unit;
	}
	return n;
}

static bool fill_part(struct vc_pack_search *x, struct part *p, size_t from, uint32_t n)
{
	p->at = x->todos;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = x->todo[from + k], at = x->s->at[i].at[0].from;

		if (at >= p->from && at < p->to)
			x->todo[p->at + p->n++] = i;
	}
	x->todos += p->n;
	return is_possible(x, p);
}

static enum vc_pack_found solve(struct vc_pack_search *x, const struct part *p);

static enum vc_pack_found solve_rest(struct vc_pack_search *x, const struct part *p,
				     const struct choice *c)
{
	enum vc_pack_found r = VC_PACK_FOUND;
	size_t todos = x->todos, parts = x->parts;
	uint32_t n = list_rest(x, p, c);

	cut(x, p, c, n);
	x->todos += n;
	for (size_t k = parts; k < x->parts && r == VC_PACK_FOUND; k++)
		r = fill_part(x, &x->part[k], todos, n) ? VC_PACK_FOUND : VC_PACK_NONE;
	for (size_t k = parts, to = x->parts; k < to && r == VC_PACK_FOUND; k++) {
		struct part sub = x->part[k];

		r = solve(x, &sub);
	}
	x->todos = todos;
	x->parts = parts;
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
		x->b->left -= 32 + 3 * (int64_t)p->n + (p->to - p->from);
		if (x->b->left < 0 || !has_room(x, p, c.piece))
			return r;
		r = place(x, c.piece) ? solve_rest(x, p, &c) : VC_PACK_NONE;
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

static void reset(struct vc_pack_search *x, const uint32_t *order)
{
	memset(x->rest, 0, x->s->n * sizeof(*x->rest));
	memset(x->trouble, 0, x->s->n * sizeof(*x->trouble));
	memset(x->least, 0, x->s->sections * sizeof(*x->least));
	for (uint32_t k = 0; k < x->s->sections; k++)
		x->load[k] = (uint32_t)(x->s->load[k] / x->unit);
	memcpy(x->todo, order, x->s->n * sizeof(*x->todo));
	for (uint32_t k = 0; k < x->s->n; k++) {
		x->rank[order[k]] = k;
		x->meets[k] = x->near[k].n;
	}
}

enum vc_pack_found vc_pack_search_run(struct vc_pack_search *x, const uint32_t *order,
				      uint64_t capacity, bool jump, struct vc_layout *l,
				      struct vc_budget *b)
{
	struct part whole = { .n = (uint32_t)x->s->n, .to = x->s->sections };
	const struct choice nothing = { .piece = UINT32_MAX };
	enum vc_pack_found r;

	x->todos = x->s->n;
	x->undos = x->parts = 0;
	if (!x->scaled || !has_room(x, &whole, 0))
		return VC_PACK_TIRED;
	reset(x, order);
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

const uint32_t *vc_pack_search_trouble(const struct vc_pack_search *x)
{
	return x->trouble;
}
