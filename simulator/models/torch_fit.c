/* SPDX-License-Identifier: Apache-2.0 */
/* torch_fit.c - other rules than PyTorch's best fit, to see what fragmentation they would cause.
 *
 * Blocks keep their classes of sizes; `tie` carries the order of the rule (address, or the time of
 * the free), and every class that can serve the request offers its first candidate. */
#include "simulator/models/torch_index.h"

static bool is_better(const struct torch *t, uint32_t i, uint32_t best)
{
	uint64_t a = t->b[i].tie, b;

	if (!best)
		return true;
	b = t->b[best].tie;
	if (t->k->fit == TORCH_NEXT && (a >= t->cursor) != (b >= t->cursor))
		return a >= t->cursor; /* wraps around once */
	return a < b;
}

/* Everything in a class of exactly one size fits or does not; other classes are looked through. */
static uint32_t best_of_class(const struct torch *t, const struct torch_set *s, uint32_t c,
			      uint64_t size)
{
	uint32_t best = 0;

	for (uint32_t i = s->root[c]; i; i = torch_class_step(t, s, c, i, 1))
		if (t->b[i].size >= size && is_better(t, i, best))
			best = i;
	return best;
}

uint32_t torch_fit_find(struct torch *t, struct torch_set *s, uint64_t size)
{
	uint32_t best = 0;

	if (t->k->fit == TORCH_WORST) {
		best = torch_index_last(t, s);
		return best && t->b[best].size >= size ? best : 0;
	}
	for (uint32_t c = torch_class_up(s, torch_class(size)); c < TORCH_CLASSES;
	     c = torch_class_up(s, c + 1)) {
		uint32_t i = best_of_class(t, s, c, size);

		if (i && is_better(t, i, best))
			best = i;
	}
	if (best)
		t->cursor = t->b[best].addr + size;
	return best;
}
