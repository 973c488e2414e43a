/* SPDX-License-Identifier: Apache-2.0 */
/* packing.c - see packing.h: several orders, then a search below the best of them. */
#include "simulator/packing/packing.h"

#include "common/vec.h"
#include "simulator/packing/pack_parts.h"

/* ---- lives in sections ---- */

static int check_blocks(const struct vc_packing *p, struct vc_error *err)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct vc_pack_block *b = &p->block[i];
		bool wraps = b->upper <= b->lower;

		if (wraps && (b->before > p->begin || b->lower >= p->end || b->upper < p->begin ||
			      p->begin >= p->end))
			return vc_fail(err, VC_EFORMAT,
				       "block %zu: it ends at %llu, before it begins at %llu", i,
				       (unsigned long long)b->upper, (unsigned long long)b->lower);
		if (b->size > INT64_MAX - sum)
			return vc_fail(err, VC_EFORMAT,
				       "block %zu: all sizes together are 2^63 bytes or more", i);
		sum += b->size;
	}
	return VC_OK;
}

/* A birth or a death. At the same moment deaths come first: lives are half open. */
struct turn { uint64_t time; bool birth; uint32_t piece, stretch; };
VC_COMPARE(by_time, struct turn, VC_THEN(VC_ORDER(x->time, y->time), VC_ORDER(x->birth, y->birth)))

static void put_life(struct turn *turn, size_t *n, struct vc_piece *x, uint32_t piece,
		     const uint64_t life[2])
{
	turn[(*n)++] = (struct turn){ life[0], true, piece, x->stretches };
	turn[(*n)++] = (struct turn){ life[1], false, piece, x->stretches };
	x->stretches++;
	x->time += life[1] - life[0];
}

static size_t list_turns(struct vc_pieces *s, const struct vc_packing *p, struct turn *turn)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct vc_pack_block *b = &p->block[i];
		struct vc_piece *x = &s->at[s->n];
		const uint64_t plain[2] = { b->lower, b->upper }, last[2] = { b->lower, p->end },
			       first[2] = { p->begin - b->before, b->upper };

		if (!b->size)
			continue;
		*x = (struct vc_piece){ .size = b->size, .index = (uint32_t)i };
		put_life(turn, &n, x, (uint32_t)s->n, b->lower < b->upper ? plain : last);
		if (b->upper <= b->lower && first[0] < b->upper)
			put_life(turn, &n, x, (uint32_t)s->n, first);
		s->n++;
	}
	vc_sort(turn, n, sizeof(*turn), by_time);
	return n;
}

/* Between a death and the next birth blocks only go: the time from one birth behind a death to the
 * next is one section, in which everything that lives in it may be taken to live together. No two
 * blocks meet elsewhere. */
static void cut(struct vc_pieces *s, const struct turn *turn, size_t turns)
{
	bool died = false;
	uint64_t load = 0;

	for (size_t i = 0; i < turns; i++) {
		struct vc_piece *x = &s->at[turn[i].piece];
		struct vc_stretch *at = &x->at[turn[i].stretch];

		if (turn[i].birth) {
			s->sections += died || !s->sections;
			died = false;
			load += x->size;
			at->from = s->sections - 1;
			s->load[at->from] = load;
		} else {
			died = true;
			load -= x->size;
			at->to = s->sections;
			x->length += at->to - at->from;
		}
	}
	for (uint32_t k = 0; k < s->sections; k++)
		s->bound = s->load[k] > s->bound ? s->load[k] : s->bound;
}

static int init_pieces(struct vc_pieces *s, const struct vc_packing *p, struct vc_error *err)
{
	struct turn *turn = calloc(4 * p->n + 1, sizeof(*turn));

	*s = (struct vc_pieces){ .at = calloc(p->n + 1, sizeof(*s->at)),
				 .load = calloc(2 * p->n + 1, sizeof(*s->load)) };
	if (turn && s->at && s->load)
		cut(s, turn, list_turns(s, p, turn));
	free(turn);
	return turn && s->at && s->load ? VC_OK : vc_nomem(err, "the blocks to place");
}

static void fini_pieces(struct vc_pieces *s)
{
	VC_FREE(s->at, s->load);
}

static bool together(const struct vc_piece *a, const struct vc_piece *b)
{
	for (uint32_t i = 0; i < a->stretches; i++)
		for (uint32_t k = 0; k < b->stretches; k++)
			if (a->at[i].from < b->at[k].to && b->at[k].from < a->at[i].to)
				return true;
	return false;
}

/* Twice over the pairs: to count, and to write down. */
static int init_near(struct vc_near *near, const struct vc_pieces *s, struct vc_error *err)
{
	size_t total = 0;

	*near = (struct vc_near){ .of = calloc(s->n + 1, sizeof(*near->of)) };
	VC_HAVE(near->of, "neighbours", err);
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->n; k++)
			near->of[i].n += k != i && together(&s->at[i], &s->at[k]);
	for (size_t i = 0; i < s->n; i++)
		total += near->of[i].n;
	near->store = calloc(total + 1, sizeof(*near->store));
	VC_HAVE(near->store, "neighbours", err);
	total = 0;
	for (size_t i = 0; i < s->n; i++) {
		near->of[i].at = near->store + total;
		for (uint32_t k = 0; k < s->n; k++)
			if (k != i && together(&s->at[i], &s->at[k]))
				near->store[total++] = k;
	}
	return VC_OK;
}

static void fini_near(struct vc_near *near)
{
	VC_FREE(near->of, near->store);
}

/* ---- orders ---- */

enum { MOST_SEARCHED = 3000 /* blocks: neighbours are kept, as many as n * n */ };
enum order {
	BY_SIZE, BY_AREA, BY_LENGTH, BY_LOAD, BY_BIRTH, ORDERS,
	/* for the search only: what lives long or is crowded comes first (those of MiniMalloc, and
	 * one that counts sections, not time) */
	LENGTH_AREA = ORDERS, LOAD_AREA, LOAD_LENGTH, SECTIONS, ALL_ORDERS
};

struct ranked { uint64_t key[3]; uint32_t piece; };

VC_COMPARE(by_key, struct ranked,
	   VC_THEN(VC_ORDER(y->key[0], x->key[0]), VC_THEN(VC_ORDER(y->key[1], x->key[1]),
		   VC_THEN(VC_ORDER(y->key[2], x->key[2]), VC_ORDER(x->piece, y->piece)))))

/* The fullest section that a piece lives in. */
static uint64_t load_of(const struct vc_pieces *s, const struct vc_piece *p)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < p->stretches; k++)
		for (uint32_t i = p->at[k].from; i < p->at[k].to; i++)
			most = s->load[i] > most ? s->load[i] : most;
	return most;
}

static void rank(const struct vc_pieces *s, enum order by, struct ranked *r, uint32_t *order)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct vc_piece *p = &s->at[i];
		uint64_t area = p->size > UINT64_MAX / p->time ? UINT64_MAX : p->size * p->time;
		uint64_t birth = UINT64_MAX - p->at[0].from;
		uint64_t load = by == BY_LOAD || by > ORDERS ? load_of(s, p) : 0;
		const uint64_t key[ALL_ORDERS][3] = {
			[BY_SIZE] = { p->size, p->time, birth },
			[BY_AREA] = { area, p->size, birth },
			[BY_LENGTH] = { p->time, p->size, birth },
			[BY_LOAD] = { load, area, birth },
			[BY_BIRTH] = { birth, p->size, 0 },
			[LENGTH_AREA] = { p->time, area, birth },
			[LOAD_AREA] = { load, area, p->time },
			[LOAD_LENGTH] = { load, p->time, area },
			[SECTIONS] = { p->size * p->length, p->length, load } };

		memcpy(r[i].key, key[by], sizeof(r[i].key));
		r[i].piece = (uint32_t)i;
	}
	vc_sort(r, s->n, sizeof(*r), by_key);
	for (size_t i = 0; i < s->n; i++)
		order[i] = r[i].piece;
}

/* ---- trying ---- */

struct attempt {
	struct vc_packing *p;
	struct vc_pieces s;
	struct vc_layout best, now;
	uint32_t *order[ALL_ORDERS], *tried, *liked, *trouble;
	bool likes;
	struct ranked *ranked;
	struct vc_fit *fit;
	struct vc_pack_search *search;
	struct vc_near near;
	uint64_t bound; /* raised where a search shows that less is impossible */
	struct vc_budget budget;
};

static void keep(struct attempt *a, const char *how)
{
	struct vc_layout was = a->best;

	if (a->now.height >= a->best.height)
		return;
	a->best = a->now;
	a->now = was;
	a->p->how = how;
}

static int try_orders(struct attempt *a, struct vc_error *err)
{
	static const char *const how[ORDERS][2] = {
		{ "by size, first fit", "by size, best fit" },
		{ "by area, first fit", "by area, best fit" },
		{ "by life, first fit", "by life, best fit" },
		{ "by load, first fit", "by load, best fit" },
		{ "by birth, first fit", "by birth, best fit" } };
	struct vc_budget first = { INT64_MAX };

	for (int by = 0; by < ORDERS; by++) {
		rank(&a->s, by, a->ranked, a->order[by]);
		for (int tight = 0; tight < 2 && a->best.height > a->bound; tight++) {
			bool is_first = !by && !tight;

			if (a->budget.left < 0 && !is_first)
				return VC_OK;
			VC_TRY(vc_fit_place(a->fit, a->order[by], tight, a->best.height, &a->now,
					    is_first ? &first : &a->budget, err));
			if (is_first)
				a->budget.left -= INT64_MAX - first.left;
			keep(a, how[by][tight]);
		}
	}
	return VC_OK;
}

/* A mixture of the orders: ranks, weighed by chance. */
static void mix(struct attempt *a, uint64_t *seed)
{
	uint64_t noise = vc_dice(seed) % 4 * (a->s.n + 1);

	for (size_t i = 0; i < a->s.n; i++)
		a->ranked[i] = (struct ranked){ { UINT64_MAX / 2, 0, 0 }, (uint32_t)i };
	for (int by = 0; by < ORDERS; by++) {
		uint64_t weight = vc_dice(seed) % 16;

		for (size_t k = 0; weight > 5 && k < a->s.n; k++)
			a->ranked[a->order[by][k]].key[0] -= weight * k;
	}
	for (size_t i = 0; noise && i < a->s.n; i++)
		a->ranked[i].key[0] -= vc_dice(seed) % noise;
}

/* The order that was best, with blocks a few places from where they were, and those in front that
 * had no room in the last searches: the more often, the farther. */
static void vary(struct attempt *a, uint64_t *seed)
{
	uint64_t places = 1u << vc_dice(seed) % 6, ahead = 4u << vc_dice(seed) % 7, most = 1;

	for (size_t i = 0; i < a->s.n; i++)
		most = a->trouble[i] > most ? a->trouble[i] : most;
	for (size_t k = 0; k < a->s.n; k++)
		a->ranked[k] = (struct ranked){ { UINT64_MAX / 2 - k - vc_dice(seed) % places +
						  ahead * a->trouble[a->liked[k]] / most, 0, 0 },
						a->liked[k] };
}

static void next_order(struct attempt *a, uint64_t round, uint64_t *seed)
{
	if (round < ORDERS) {
		memcpy(a->tried, a->order[round], a->s.n * sizeof(*a->tried));
		return;
	}
	if (a->likes && vc_dice(seed) % 8 < 6)
		vary(a, seed);
	else
		mix(a, seed);
	vc_sort(a->ranked, a->s.n, sizeof(*a->ranked), by_key);
	for (size_t k = 0; k < a->s.n; k++)
		a->tried[k] = a->ranked[k].piece;
}

/* Steps of one way down without a turn. */
static int64_t dive_of(const struct vc_pieces *s)
{
	uint64_t each = s->sections + 2 * s->n;

	for (size_t i = 0; i < s->n; i++)
		each += s->at[i].length;
	return (int64_t)(each * s->n);
}

static enum vc_pack_found look(struct attempt *a, const uint32_t *order, uint64_t want, bool jump,
			       int64_t steps)
{
	struct vc_budget b = { steps < a->budget.left ? steps : a->budget.left };
	int64_t had = b.left;
	enum vc_pack_found r = vc_pack_search_run(a->search, order, want, jump, &a->now, &b);

	a->budget.left -= had - b.left;
	if (r == VC_PACK_NONE)
		a->bound = want + 1; /* nothing of that height is possible */
	return r;
}

/* A search with an order of its own, which leaves out much. A good order leads down almost without
 * a turn back, a bad one nowhere. The wanted height is the bound, or between it and the best. */
static void improve(struct attempt *a, uint64_t round, int64_t steps, uint64_t *seed)
{
	uint64_t room = a->best.height - 1 - a->bound;
	uint64_t want = round % 4 ? a->best.height - 1 - room / (round % 4 == 2 ? 16 : 4) :
				    a->bound;
	const uint32_t *trouble = vc_pack_search_trouble(a->search);
	enum vc_pack_found r;

	next_order(a, round, seed);
	r = look(a, a->tried, want, true, steps);
	for (size_t i = 0; i < a->s.n; i++)
		a->trouble[i] += trouble[i] - a->trouble[i] / 32;
	if (r != VC_PACK_FOUND || a->now.height >= a->best.height)
		return;
	keep(a, "search");
	memcpy(a->liked, a->tried, a->s.n * sizeof(*a->liked));
	a->likes = true;
}

/* Searches that leave nothing out for a packing as low as the bound, where the least is left to
 * choose: each with one of the orders, for twice as long when all had their turn. They prove where
 * they end. */
static void settle(struct attempt *a, uint64_t turn, int64_t dive)
{
	enum order by = ORDERS + turn % (ALL_ORDERS - ORDERS);
	uint64_t doubled = turn / (ALL_ORDERS - ORDERS);

	if (look(a, a->order[by], a->bound, false, dive << (doubled < 20 ? doubled : 20)) ==
	    VC_PACK_FOUND)
		keep(a, "search");
}

/* Both take turns: what improves has two thirds of the steps. */
static void search(struct attempt *a)
{
	uint64_t seed = 88172645463325252u; /* any number but 0 */
	uint64_t rounds = 0, turns = 0;
	int64_t dive = dive_of(&a->s), balance = 0;

	for (int by = ORDERS; by < ALL_ORDERS; by++)
		rank(&a->s, by, a->ranked, a->order[by]);
	while (a->budget.left > 0 && a->best.height > a->bound) {
		int64_t had = a->budget.left;

		if (balance >= 0) {
			settle(a, turns++, dive / 16);
			balance -= 2 * (had - a->budget.left);
		} else {
			improve(a, rounds++, dive / 2, &seed);
			balance += had - a->budget.left;
		}
	}
}

static int prepare(struct attempt *a, struct vc_error *err)
{
	size_t n = a->s.n + 1;

	a->best.offset = calloc(n, sizeof(uint64_t));
	a->now.offset = calloc(n, sizeof(uint64_t));
	a->ranked = calloc(n, sizeof(*a->ranked));
	a->order[0] = calloc(n * (ALL_ORDERS + 3), sizeof(uint32_t));
	VC_HAVE(a->best.offset && a->now.offset && a->ranked && a->order[0], "the orders", err);
	for (int k = 1; k < ALL_ORDERS; k++)
		a->order[k] = a->order[0] + n * (size_t)k;
	a->tried = a->order[0] + n * ALL_ORDERS;
	a->liked = a->tried + n;
	a->trouble = a->liked + n;
	a->best.height = UINT64_MAX;
	a->bound = a->s.bound;
	a->fit = vc_fit_new(&a->s, err);
	return a->fit ? VC_OK : VC_ENOMEM;
}

/* Looking at all pairs must be a small part of the effort. */
static int search_if_small(struct attempt *a, struct vc_error *err)
{
	int64_t pairs = (int64_t)a->s.n * (int64_t)a->s.n * 2;

	if (a->best.height == a->bound || a->s.n > MOST_SEARCHED || pairs > a->budget.left / 4)
		return VC_OK;
	a->budget.left -= pairs;
	VC_TRY(init_near(&a->near, &a->s, err));
	a->search = vc_pack_search_new(&a->s, &a->near, err);
	if (!a->search)
		return VC_ENOMEM;
	search(a);
	return VC_OK;
}

static int attempt(struct attempt *a, struct vc_error *err)
{
	VC_TRY(prepare(a, err));
	if (!a->s.n)
		a->best.height = 0;
	VC_TRY(try_orders(a, err));
	return search_if_small(a, err);
}

int vc_pack(struct vc_packing *p, uint64_t effort, struct vc_error *err)
{
	struct attempt a = { .p = p };
	int64_t steps = effort > 10000 ? 10000 * (int64_t)VC_PACK_EFFORT_STEPS :
					 (int64_t)(effort * VC_PACK_EFFORT_STEPS);
	int r = check_blocks(p, err);

	VC_TRY(r);
	a.budget.left = steps;
	p->how = "nothing to place";
	r = init_pieces(&a.s, p, err);
	if (r == VC_OK)
		r = attempt(&a, err);
	if (r == VC_OK) {
		for (size_t i = 0; i < p->n; i++)
			p->block[i].offset = 0;
		for (size_t i = 0; i < a.s.n; i++)
			p->block[a.s.at[i].index].offset = a.best.offset[i];
		p->height = a.best.height;
		p->bound = a.bound;
		p->proven = p->height == p->bound;
		p->work = (uint64_t)(steps - a.budget.left);
	}
	vc_pack_search_free(a.search);
	fini_near(&a.near);
	vc_fit_free(a.fit);
	VC_FREE(a.order[0], a.ranked, a.best.offset, a.now.offset);
	fini_pieces(&a.s);
	return r;
}

int vc_pack_bound(struct vc_packing *p, struct vc_error *err)
{
	struct vc_pieces s;
	int r = check_blocks(p, err);

	VC_TRY(r);
	r = init_pieces(&s, p, err);
	p->bound = r == VC_OK ? s.bound : 0;
	fini_pieces(&s);
	return r;
}
