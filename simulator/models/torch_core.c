/* SPDX-License-Identifier: Apache-2.0 */
/* torch_core.c - blocks: rounding, search, split, hand-out, free, merge. The path of every event. */
#include <stdlib.h>
#include <string.h>

#include "simulator/models/torch_index.h"

/* Segment numbers sit above offsets in units of 512 bytes (32 TiB), so one compare orders both. */
#define SEGMENT_SHIFT 36

bool torch_ensure(struct torch *t, uint32_t n)
{
	uint32_t cap = t->cap ? 2 * t->cap : 1024;
	struct torch_block *b;

	if (t->used + n <= t->cap)
		return true;
	b = cap > t->cap ? aligned_alloc(64, (size_t)cap * sizeof(*b)) : NULL;
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

uint32_t torch_slot(struct torch *t)
{
	uint32_t i = t->spare;

	if (i)
		t->spare = t->b[i].next;
	else
		i = t->used++;
	return i;
}

void torch_drop(struct torch *t, uint32_t i)
{
	t->b[i].state = TORCH_UNUSED;
	t->b[i].next = t->spare;
	t->spare = i;
}

uint64_t torch_new_tie(struct torch *t, uint64_t addr)
{
	switch (t->r->order) {
	case TORCH_BY_OBJECT:
		return ++t->number;
	case TORCH_BY_SEGMENT:
		return ++t->number << SEGMENT_SHIFT;
	default:
		return addr;
	}
}

void torch_emit(struct torch *t, enum vc_trace_kind kind, const struct torch_block *b, uint64_t size)
{
	struct vc_trace_entry e = { .kind = kind, .stream = t->set[b->set]->stream, .addr = b->addr,
				    .size = size };

	if (b->state == TORCH_LIVE || b->state == TORCH_PENDING)
		e.id = b->id;

	t->m->trace(t->m->trace_arg, &e);
}

/* ---- sizes ---- */
static uint64_t next_division(uint64_t n, uint64_t d)
{
	uint64_t floor, step, base;

	if (d <= 1 || !(n & (n - 1)))
		return n;
	floor = 1ull << torch_bit_high(n);
	step = floor / d;
	if (!step)
		return 2 * floor;
	base = n & ~(step - 1);
	return n == base ? n : base + step;
}

static uint64_t rounded_by_division(const struct torch *t, uint64_t n)
{
	uint32_t high = torch_bit_high(n), i = high < 20 ? 0 : high - 20;
	uint64_t d = t->conf.division[i < TORCH_DIVISIONS ? i : TORCH_DIVISIONS - 1];

	/* 512 in PyTorch; a parameter here. */
	if (d > (t->r->raw_division ? 0u : 1u) && n > t->k->min_block * d)
		return next_division(n, d);
	return (n + t->k->min_block - 1) / t->k->min_block * t->k->min_block;
}

uint64_t torch_rounded(const struct torch *t, uint64_t n)
{
	uint64_t min = t->k->min_block;

	if (n < min)
		return min;
	if (t->conf.any_division)
		return rounded_by_division(t, n);
	return (n + min - 1) & ~(min - 1);
}

uint64_t torch_alloc_size(const struct torch *t, uint64_t size)
{
	uint64_t round = t->k->round_large;

	if (size <= t->k->small_limit)
		return t->k->small_segment;
	if (size < t->k->large_limit)
		return t->conf.large_segment;
	return (size + round - 1) / round * round;
}

/* ---- search ---- */
/* What the block can grow to by mapping what follows it. */
static uint64_t growth(const struct torch *t, uint32_t i)
{
	uint32_t next = t->b[i].next;

	return t->b[i].size + (next && t->b[next].state == TORCH_UNMAPPED ? t->b[next].size : 0);
}

static uint32_t among_expandable(const struct torch *t, uint32_t i, bool ex)
{
	uint32_t j;

	if (!ex) {
		while (i && t->b[i].range)
			i = torch_index_step(t, i, 1);
		return i;
	}
	while (t->b[i].range) {
		uint64_t g = growth(t, i);

		if (g == t->b[i].size) /* nothing behind it can grow to less */
			return i;
		j = torch_index_step(t, i, 1);
		if (!j || growth(t, j) >= g)
			return i;
		i = j;
	}
	return i;
}

uint32_t torch_take(struct torch *t, struct torch_want *w)
{
	uint64_t size = w->size;
	uint32_t i;

	if (t->limit != TORCH_UNLIMITED && t->conf.gc > 0)
		w->set->pool->calls++;
	i = t->k->fit == TORCH_BEST ? torch_index_find(t, w->set, size)
				    : torch_fit_find(t, w->set, size);
	if (i && t->b[i].range)
		i = among_expandable(t, i, w->ex);
	if (!i)
		return 0;
	if (size < t->conf.max_split) {
		if (t->b[i].size >= t->conf.max_split)
			return 0;
	} else if (t->b[i].size >= size + t->conf.non_split_rounding) {
		return 0;
	}
	torch_index_cut(t, i);
	return i;
}

/* ---- hand out ---- */
static bool may_split(const struct torch *t, uint32_t i, uint64_t size, bool ex)
{
	const struct torch_pool *p = t->set[t->b[i].set]->pool;
	uint64_t rest = t->b[i].size - size;

	if (p->owner && p->owner->no_split)
		return false;
	if (p->small || ex)
		return rest >= t->k->min_block;
	return size < t->conf.max_split && rest > t->k->split_rest;
}

/* Cut `size` bytes off the front of block i; the rest keeps the object and goes to the index. */
uint32_t torch_cut_front(struct torch *t, uint32_t i, uint64_t size)
{
	uint32_t n = torch_slot(t);
	struct torch_block *x = &t->b[n], *old = &t->b[i];
	bool was = torch_is_split(old), large = torch_is_large(t, i);

	x->addr = old->addr;
	x->size = size;
	x->requested = 0;
	x->prev = old->prev;
	x->next = i;
	x->set = old->set;
	x->range = old->range;
	if (x->prev)
		t->b[x->prev].next = n;
	old->prev = n;
	old->addr += size;
	old->size -= size;
	switch (t->r->order) {
	case TORCH_BY_OBJECT:
		x->tie = ++t->number;
		break;
	case TORCH_BY_SEGMENT:
		x->tie = old->tie;
		old->tie += size >> 9;
		break;
	default:
		x->tie = x->addr;
		old->tie = old->addr;
	}
	if (t->k->fit != TORCH_BEST)
		old->tie = t->k->fit == TORCH_RECENT ? ~++t->stamp : old->addr;
	old->state = TORCH_FREE;
	torch_index_put(t, i);
	if (!x->range) {
		if (was) {
			torch_down(t, TORCH_SPLIT_BYTES, large, size);
		} else {
			torch_up(t, TORCH_SPLIT_BYTES, large, old->size);
			torch_up(t, TORCH_SPLIT, large, 1);
		}
	}
	return n;
}

void torch_occupy(struct torch *t, uint32_t i, uint64_t n, uint64_t id)
{
	struct torch_block *x = &t->b[i];
	bool large = torch_is_large(t, i);

	x->state = TORCH_LIVE;
	x->requested = n;
	x->id = id;
	x->wait = 0;
	torch_up(t, TORCH_ALLOCATION, large, 1);
	torch_up(t, TORCH_ALLOCATED_BYTES, large, x->size);
	torch_up(t, TORCH_ACTIVE, large, 1);
	torch_up(t, TORCH_ACTIVE_BYTES, large, x->size);
	torch_up(t, TORCH_REQUESTED_BYTES, large, n);
	if (x->size >= t->conf.max_split)
		torch_up_one(&t->oversize_allocs, 1);
}

uint32_t torch_hand_out(struct torch *t, uint32_t i, const struct torch_want *w)
{
	if (may_split(t, i, w->size, w->ex)) {
		i = torch_cut_front(t, i, w->size);
	} else if (torch_is_split(&t->b[i]) && !t->b[i].range) {
		bool large = torch_is_large(t, i);

		torch_down(t, TORCH_SPLIT_BYTES, large, t->b[i].size);
		torch_down(t, TORCH_SPLIT, large, 1);
	}
	torch_occupy(t, i, w->rq->size, w->rq->id);
	return i;
}

/* ---- free ---- */
uint64_t torch_merge(struct torch *t, uint32_t dst, uint32_t src)
{
	struct torch_block *d = &t->b[dst], *s = &t->b[src];
	uint32_t want = d->state == TORCH_UNMAPPED ? TORCH_UNMAPPED : TORCH_FREE;
	uint64_t size = s->size;

	if (!src || s->state != want)
		return 0;
	if (want == TORCH_FREE)
		torch_index_cut(t, src);
	else
		torch_unmapped_cut(t, src);
	if (d->prev == src) {
		d->addr = s->addr;
		if (t->r->order != TORCH_BY_OBJECT)
			d->tie = s->tie;
		d->prev = s->prev;
		if (d->prev)
			t->b[d->prev].next = dst;
	} else {
		d->next = s->next;
		if (d->next)
			t->b[d->next].prev = dst;
	}
	d->size += size;
	torch_drop(t, src);
	return size;
}

void torch_complete_free(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	bool large = torch_is_large(t, i);
	uint64_t size = x->size, k;
	int64_t blocks = 0, bytes = 0;

	x->state = TORCH_FREE;
	k = torch_merge(t, i, x->prev);
	blocks -= k > 0;
	bytes -= (int64_t)k;
	k = torch_merge(t, i, x->next);
	blocks -= k > 0;
	bytes -= (int64_t)k;
	if (t->k->fit != TORCH_BEST)
		x->tie = t->k->fit == TORCH_RECENT ? ~++t->stamp : x->addr;
	torch_index_put(t, i);
	if (torch_is_split(x)) {
		blocks++;
		bytes += (int64_t)x->size;
	}
	if (!x->range) {
		if (blocks > 0)
			torch_up(t, TORCH_SPLIT, large, 1);
		else if (blocks < 0)
			torch_down(t, TORCH_SPLIT, large, (uint64_t)-blocks);
		if (bytes > 0)
			torch_up(t, TORCH_SPLIT_BYTES, large, (uint64_t)bytes);
		else if (bytes < 0)
			torch_down(t, TORCH_SPLIT_BYTES, large, (uint64_t)-bytes);
	}
	torch_down(t, TORCH_ACTIVE, large, 1);
	torch_down(t, TORCH_ACTIVE_BYTES, large, size);
	torch_down(t, TORCH_REQUESTED_BYTES, large, x->requested);
}

bool torch_free_block(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	bool large = torch_is_large(t, i);

	torch_down(t, TORCH_ALLOCATION, large, 1);
	torch_down(t, TORCH_ALLOCATED_BYTES, large, x->size);
	if (x->size >= t->conf.max_split)
		t->oversize_allocs.cur--;
	if (x->wait && torch_defer(t, i))
		return false;
	torch_complete_free(t, i);
	return true;
}

void torch_release_segment(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	struct torch_pool *p = t->set[x->set]->pool;

	t->device_free++;
	if (t->m->trace)
		torch_emit(t, VC_TR_SEGMENT_FREE, x, x->size);
	torch_index_cut(t, i);
	vc_device_free(t->m->device, x->addr, x->size);
	t->total -= x->size;
	if (p->owner)
		p->owner->held--;
	torch_down(t, TORCH_SEGMENT, !p->small, 1);
	torch_down(t, TORCH_RESERVED_BYTES, !p->small, x->size);
	if (x->size >= t->conf.max_split)
		t->oversize_segments.cur--;
	torch_drop(t, i);
}
