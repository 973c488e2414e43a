/* SPDX-License-Identifier: Apache-2.0 */
/* recompute_choice.c - dynamic programming. While layer i runs, forward or backward, what the
 * layers before it kept is gone if they are computed twice. So each layer asks that those before it
 * gave back at least what it needs beyond the budget. Of two ways to the same layer only that is
 * worth keeping which gave back more or costs less. */

#include "simulator/search/recompute.h"
#include "common/vec.h"

/* Ways to one layer that are told apart: what was given back counts in this many parts of all
 * that can be. */
enum { PARTS = 4096 };

struct way { uint64_t gone; double ns; uint32_t from; bool take; };

struct choice {
	const struct vc_layer_costs *c;
	uint64_t budget;
	struct way **at; size_t *n; /* by layer: the ways to its end */
	struct way *next;           /* room for those of one layer before they are thinned out */
};

VC_COMPARE(by_time, struct way,
	   VC_THEN(VC_ORDER(x->ns, y->ns), VC_ORDER(y->gone, x->gone)))

/* Keep those that give back more than every cheaper one, by at least a part. */
static size_t thin_out(struct way *w, size_t n, uint64_t part)
{
	size_t m = 0;

	if (n)
		vc_sort(w, n, sizeof(*w), by_time);
	for (size_t i = 0; i < n; i++)
		if (!m || w[i].gone >= w[m - 1].gone + (part ? part : 1))
			w[m++] = w[i];
	return m;
}

static bool is_room(const struct choice *x, uint64_t need, uint64_t gone)
{
	return need <= x->budget || need - x->budget <= gone;
}

static bool step(struct choice *x, size_t i, const struct way *from, size_t n)
{
	const struct vc_layer_cost *y = &x->c->at[i];
	size_t m = 0;

	for (size_t k = 0; k < n; k++) {
		if (!is_room(x, y->need, from[k].gone))
			continue;
		x->next[m] = from[k];
		x->next[m].from = (uint32_t)k;
		x->next[m++].take = false;
		if (!y->kept || !is_room(x, y->again, from[k].gone))
			continue;
		x->next[m++] = (struct way){ from[k].gone + y->kept, from[k].ns + y->ns,
					     (uint32_t)k, true };
	}
	x->n[i] = thin_out(x->next, m, x->c->total / PARTS);
	x->at[i] = calloc(x->n[i] + 1, sizeof(*x->at[i]));
	if (x->at[i] && x->n[i])
		memcpy(x->at[i], x->next, x->n[i] * sizeof(*x->at[i]));
	return x->at[i] != NULL;
}

static uint64_t peak_of(const struct vc_layer_costs *c, const bool *take)
{
	uint64_t gone = 0, peak = c->elsewhere;

	for (size_t i = 0; i <= c->n; i++) {
		uint64_t need = i == c->n ? c->loss : c->at[i].need;

		if (i < c->n && take[i] && c->at[i].again > need)
			need = c->at[i].again;
		if (need > gone && need - gone > peak)
			peak = need - gone;
		gone += i < c->n && take[i] ? c->at[i].kept : 0;
	}
	return peak;
}

static bool solve(struct choice *x, bool *take)
{
	static const struct way start = { 0 };
	const struct way *from = &start, *best = NULL;
	size_t n = 1;

	for (size_t i = 0; i < x->c->n; i++) {
		if (!step(x, i, from, n))
			return false;
		from = x->at[i];
		n = x->n[i];
	}
	for (size_t k = 0; k < n; k++)
		if (is_room(x, x->c->loss, from[k].gone) && (!best || from[k].ns < best->ns))
			best = &from[k];
	for (size_t i = x->c->n; best && i-- > 0;) {
		take[i] = best->take;
		best = i ? &x->at[i - 1][best->from] : best;
	}
	return best != NULL;
}

bool vc_recompute_choose(const struct vc_layer_costs *c, uint64_t budget, bool *take,
			 uint64_t *peak)
{
	struct choice x = { .c = c, .budget = budget };
	bool found;

	if (c->elsewhere > budget)
		return false;
	x.at = calloc(c->n, sizeof(*x.at));
	x.n = calloc(c->n, sizeof(*x.n));
	x.next = calloc(2 * (PARTS + 2), sizeof(*x.next));
	found = x.at && x.n && x.next && solve(&x, take);
	for (size_t i = 0; x.at && i < c->n; i++)
		free(x.at[i]);
	VC_FREE(x.at, x.n, x.next);
	if (found)
		*peak = peak_of(c, take);
	return found;
}
