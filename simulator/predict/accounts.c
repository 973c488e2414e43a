/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.c - what share of a recording's bytes has a counterpart in the others. */
#include <stdlib.h>

#include "common/vec.h"
#include "simulator/predict/scaling.h"

/* A block and the one behind it, by place and size. */
static uint64_t pair_at(const struct vc_allocations *b, size_t i)
{
	const struct vc_take *t = &b->take[i];
	uint64_t h = 0;

	for (int k = 0; k < 2; k++, t++) {
		h = (h ^ t->site) * 0x9e3779b97f4a7c15ull;
		h = ((h ^ (h >> 29)) ^ t->size) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 31;
	}
	return h;
}

/* Bytes without counterpart that do what matched ones do: next to the same block of the same
 * place and size as one of those. A program that asked for some of its data more often (one more
 * evaluation of a loss) is no other configuration. 0: no memory. */
static uint64_t repeated(const struct vc_allocations *b, const struct vc_scaling *v)
{
	uint64_t bytes = 0, *pair = malloc((b->n + 1) * sizeof(*pair));
	size_t n = 0;

	for (size_t i = 0; pair && i + 1 < b->n; i++)
		if (v->origin[i] == VC_BY_LAW && v->origin[i + 1] == VC_BY_LAW)
			pair[n++] = pair_at(b, i);
	if (pair)
		vc_sort_u64(pair, n);
	for (size_t i = 1; pair && i + 1 < b->n; i++) {
		uint64_t here = pair_at(b, i), before = pair_at(b, i - 1);

		if (v->origin[i] == VC_BY_COUNTERPART &&
		    !(v->loops.n && v->loops.like[i] != VC_UNMATCHED) &&
		    (vc_find_u64(pair, n, here) || vc_find_u64(pair, n, before)))
			bytes += b->take[i].size;
	}
	free(pair);
	return bytes;
}

void vc_scaling_account(const struct vc_allocations *b, const struct vc_spread *s,
			const bool *plan, struct vc_scaling *v)
{
	for (size_t i = 0; i < b->n; i++) {
		if (plan[i])
			continue;
		v->bytes += b->take[i].size;
		bool turn = v->loops.n && v->loops.like[i] != VC_UNMATCHED &&
			    v->origin[i] == VC_BY_COUNTERPART;

		turn |= vc_spread_has(s, i); /* the same of another step */
		if (v->origin[i] == VC_ALONE || v->origin[i] == VC_OPEN) {
			v->unsettled += b->take[i].size;
			v->alone = b->take[i].size > v->alone ? b->take[i].size : v->alone;
		} else if (v->origin[i] != VC_BY_COUNTERPART || turn) {
			v->matched += b->take[i].size;
		}
	}
	v->share = v->bytes ? (double)(v->matched + repeated(b, v)) / (double)v->bytes : 1;
}
