/* SPDX-License-Identifier: Apache-2.0 */
/* full_turns.c - see full_turns.h */
#include "simulator/predict/full_turns.h"

#include <math.h>
#include <stdlib.h>

#include "common/vec.h"

#define ROUND 1.02 /* a turn ends at a whole sample, word or frame */

struct keys { uint64_t *at; size_t n; }; /* place, size and stream of blocks, ascending */

struct vc_full_turns {
	const struct vc_allocations *m;
	const struct vc_loops *loops;
	const double *x;       /* the parameter, by recording */
	size_t n;
	struct keys *turned, *asked; /* of blocks of stretches, and of all, by recording */
};

static uint64_t key_of(const struct vc_take *t)
{
	uint64_t x = (t->site ^ t->size * 0x9e3779b97f4a7c15ull) + t->stream;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull; /* Steele, Lea and Flood's splitmix64 */
	return x ^ x >> 29;
}

static bool has(const struct keys *k, uint64_t key)
{
	return vc_find_u64(k->at, k->n, key);
}

static int read_keys(struct vc_full_turns *t, size_t k)
{
	const struct vc_allocations *m = &t->m[k];
	struct keys *all = &t->asked[k], *turned = &t->turned[k];

	all->at = malloc((m->n + 1) * sizeof(*all->at));
	turned->at = malloc((m->n + 1) * sizeof(*turned->at));
	if (!all->at || !turned->at)
		return VC_ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		all->at[all->n++] = key_of(&m->take[i]);
		if (t->loops[k].like[i] != VC_UNMATCHED)
			turned->at[turned->n++] = all->at[i];
	}
	vc_sort_u64(all->at, all->n);
	vc_sort_u64(turned->at, turned->n);
	return VC_OK;
}

int vc_full_turns_new(const struct vc_allocations *m, const struct vc_loops *loops,
		      const double *x, size_t n, struct vc_full_turns **out, struct vc_error *err)
{
	struct vc_full_turns *t = calloc(1, sizeof(*t));
	int rc = VC_ENOMEM;

	if (t) {
		*t = (struct vc_full_turns){ m, loops, x, n, calloc(n + 1, sizeof(*t->turned)),
					     calloc(n + 1, sizeof(*t->asked)) };
		rc = t->turned && t->asked ? VC_OK : VC_ENOMEM;
	}
	for (size_t k = 0; rc == VC_OK && k < n; k++)
		rc = read_keys(t, k);
	*out = t;
	return rc ? vc_nomem(err, "the turns of loops") : VC_OK;
}

void vc_full_turns_free(struct vc_full_turns *t)
{
	for (size_t k = 0; t && k < t->n; k++) {
		free(t->turned ? t->turned[k].at : NULL);
		free(t->asked ? t->asked[k].at : NULL);
	}
	if (t)
		VC_FREE(t->turned, t->asked, t);
}

/* The loop of recording `base` that has a block of that key in a turn; NULL: none counts. */
static const struct vc_loop *loop_of(const struct vc_full_turns *t, size_t base, uint64_t key)
{
	const struct vc_loops *l = &t->loops[base];

	for (size_t p = 0; p < l->n; p++)
		for (uint32_t i = l->at[p].from; i < l->at[p].from + l->at[p].period; i++)
			if (l->at[p].count && key_of(&t->m[base].take[i]) == key)
				return &l->at[p];
	return NULL;
}

/* Recording k, at x, makes one turn: is `share` of a full one as much as may be left for it, where
 * turns are as large as the counts of all recordings say? */
static bool is_rest(const struct vc_loop *p, double x, double share)
{
	double least = 0, most = INFINITY; /* units of the parameter that a full turn takes */
	bool one = false;

	for (size_t i = 0; i < p->counts; i++) {
		const struct vc_sample *c = &p->count[i];

		least = fmax(least, c->x / c->y);
		most = c->y > 1 ? fmin(most, c->x / (c->y - 1)) : most;
		one |= c->x == x && round(c->y) == 1;
	}
	return one && share < 1 && share >= x / most / ROUND && share <= x / least * ROUND;
}

bool vc_full_turns_has(const struct vc_full_turns *t, size_t base, size_t i, size_t k, uint32_t j)
{
	uint64_t key;

	if (!t || t->m[base].take[i].size == t->m[k].take[j].size ||
	    t->loops[k].like[j] != VC_UNMATCHED)
		return false;
	key = key_of(&t->m[base].take[i]);
	if (!has(&t->turned[base], key) || has(&t->turned[k], key))
		return false; /* a stretch of k says what its full turns ask for */
	const struct vc_loop *p = has(&t->asked[k], key) ? NULL : loop_of(t, base, key);

	return has(&t->asked[k], key) ||
	       (p && is_rest(p, t->x[k], (double)t->m[k].take[j].size /
					 (double)t->m[base].take[i].size));
}
