/* SPDX-License-Identifier: Apache-2.0 */
/* torch_arena.c - block objects: where they live, their order, their line in the history. */
#define _DEFAULT_SOURCE /* madvise */

#include <sys/mman.h>

#include "simulator/models/torch_index.h"

/* Segment numbers sit above offsets in units of 512 bytes (32 TiB), so one compare orders both. */
#define SEGMENT_SHIFT 36

/* The blocks of a large heap are touched all over: with large pages each of them is a miss of the
 * cache, but not one of the address translation too. A machine without them ignores the wish. */
enum { HUGE_PAGE = 2 << 20 };

static struct torch_block *new_arena(size_t bytes)
{
	void *at = aligned_alloc(bytes < HUGE_PAGE ? sizeof(struct torch_block) : HUGE_PAGE, bytes);

#ifdef MADV_HUGEPAGE
	if (at && bytes >= HUGE_PAGE)
		(void)madvise(at, bytes, MADV_HUGEPAGE);
#endif
	return at;
}

bool torch_ensure(struct torch *t, uint32_t n)
{
	uint32_t cap = t->cap ? 2 * t->cap : 1024;
	struct torch_block *b;

	if (t->used + n <= t->cap)
		return true;
	b = cap > t->cap ? new_arena((size_t)cap * sizeof(*b)) : NULL;
	if (!b) {
		t->nomem = true;
		return false;
	}
	if (t->cap)
		memcpy(b, t->b, (size_t)t->used * sizeof(*b));
	else
		memset(b, 0, sizeof(*b)); /* block 0 means none */
	free(t->b);
	t->b = b;
	t->cap = cap;
	if (!t->used)
		t->used = 1;
	return true;
}

uint64_t torch_new_tie(struct torch *t, uint64_t addr)
{
	switch (t->r->order) {
	case TORCH_BY_OBJECT: return ++t->number;
	case TORCH_BY_SEGMENT: return ++t->number << SEGMENT_SHIFT;
	default: return addr;
	}
}

void torch_emit(struct torch *t, enum vc_trace_kind kind, const struct torch_block *b,
		uint64_t size)
{
	struct vc_trace_entry e = { .kind = kind, .stream = t->set[b->set]->stream, .addr = b->addr,
				    .size = size };

	if (b->state == TORCH_LIVE || b->state == TORCH_PENDING)
		e.id = b->id;

	t->m->trace(t->m->trace_arg, &e);
}

uint64_t torch_merge(struct torch *t, uint32_t dst, uint32_t src)
{
	struct torch_block *d = &t->b[dst];
	uint64_t size = t->b[src].size;

	if (!src || t->b[src].state != d->state)
		return 0;
	if (d->state == TORCH_FREE)
		torch_index_cut(t, torch_set_of(t, src), src);
	else
		torch_unmapped_cut(t, src);
	torch_absorb(t, d, dst, src);
	return size;
}
