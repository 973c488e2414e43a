/* SPDX-License-Identifier: Apache-2.0 */
/* torch_torn.c - a heap that PyTorch itself has torn: a part of a segment was given back.
 *
 * Releasing oversize blocks does not ask whether a block is a whole segment. Usually it is one,
 * because blocks of max_split_size or more are not split; but blocks split before the limit was
 * lowered are not (release_available_cached_blocks of CUDACachingAllocator.cpp, 2.0 to 2.15, seen
 * in the object code). cudaFree then gets the address of a part. In the middle of a segment that
 * is an error. At its start it gives the whole segment back, the block object is deleted, and the
 * block behind keeps a link to it. The next new block takes the same object, so the link leads to a
 * stranger; here too, because unused objects are taken last in, first out like those of the C
 * library's heap. From then on (`torn`) merges look before they touch a neighbour, and what the
 * real program would still find, an assertion or a CUDA error, is an answer. */
#include "simulator/models/torch_index.h"

#define UNIT 512 /* sizes in `whole`; blocks are multiples of it */

static uint64_t hash_of(uint64_t addr)
{
	return addr / UNIT;
}

void torch_torn_segment(struct torch *t, uint64_t addr, uint64_t size)
{
	if (!torch_map_put(&t->whole, hash_of(addr), addr, (uint32_t)((size + UNIT - 1) / UNIT)))
		t->nomem = true;
}

/* Until now a segment was the chain of its blocks. */
static void tear(struct torch *t)
{
	t->torn = true;
	for (uint32_t i = 1; i < t->used; i++) {
		const struct torch_block *x = &t->b[i];
		uint64_t size = 0;

		if (x->state == TORCH_UNUSED || x->prev || x->range)
			continue;
		for (uint32_t k = i; k; k = t->b[k].next)
			size += t->b[k].size;
		torch_torn_segment(t, x->addr, size);
	}
}

uint64_t torch_torn_free(struct torch *t, uint32_t i)
{
	uint64_t addr = t->b[i].addr, size;
	uint32_t *whole;

	if (!t->torn && !t->b[i].prev)
		tear(t);
	whole = t->torn ? torch_map_find(&t->whole, hash_of(addr), addr) : NULL;
	if (!whole) {
		torch_text_cuda_error(t);
		return 0;
	}
	size = (uint64_t)*whole * UNIT;
	torch_map_erase(&t->whole, hash_of(addr), addr);
	return size;
}

bool torch_failed(struct torch *t)
{
	bool failed = t->failed;

	t->failed = false;
	return failed;
}

/* Take in a neighbour, or what the link leads to by now. Bytes; 0 also when that failed. */
static uint64_t take_in(struct torch *t, uint32_t i, uint32_t src)
{
	const struct torch_block *s = &t->b[src];
	uint64_t size = s->size;

	if (!src || t->failed || s->state == TORCH_LIVE || s->state == TORCH_PENDING ||
	    s->state == TORCH_UNMAPPED)
		return 0;
	t->failed = true;
	if (s->state == TORCH_UNUSED || src == i) { /* its own neighbour: it took that object */
		torch_raise(t, "free(): double free detected (the real program ends here: a part "
			       "of a segment was given back earlier)");
		return 0;
	}
	if (!torch_is_split(s)) {
		torch_raise(t, "dst->is_split() && src->is_split() INTERNAL ASSERT FAILED");
		return 0;
	}
	t->failed = false;
	if (s->state == TORCH_FREE)
		torch_index_cut(t, torch_set_of(t, src), src);
	torch_absorb(t, &t->b[i], i, src);
	return size;
}

void torch_torn_complete(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	const uint64_t before = x->size;
	uint64_t got[2];

	/* Nothing is counted yet: an assertion leaves the statistics as they were. */
	x->state = TORCH_LOST;
	got[0] = take_in(t, i, x->prev);
	got[1] = take_in(t, i, x->next);
	if (t->failed) {
		torch_count_waiting(t, i, 1);
		return;
	}
	x->state = TORCH_FREE;
	torch_down(t, TORCH_REQUESTED_BYTES, x->large, x->requested);
	torch_index_put(t, torch_set_of(t, i), i);
	if (!x->range)
		torch_count_split(t, x->large, torch_is_split(x) - !!got[0] - !!got[1],
				  (int64_t)(torch_is_split(x) ? before
							      : -(got[0] + got[1])));
}
