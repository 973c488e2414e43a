/* SPDX-License-Identifier: Apache-2.0 */
/* torch_expand.c - expandable segments: virtual ranges whose pages come and go (2.1 on). */

#include "simulator/models/torch_index.h"

uint32_t torch_range_new(struct torch *t)
{
	uint32_t cap = t->range_cap ? 2 * t->range_cap : 16;
	struct torch_range *p;

	for (uint32_t i = 1; i < t->ranges; i++)
		if (!t->range[i].used)
			return i;
	if (!t->ranges)
		t->ranges = 1; /* 0 means none */
	if (t->ranges < t->range_cap)
		return t->ranges++;
	p = realloc(t->range, cap * sizeof(*p));
	if (!p) {
		t->nomem = true;
		return 0;
	}
	t->range = p;
	t->range_cap = cap;
	return t->ranges++;
}

static uint32_t reserve(struct torch *t, struct torch_want *w)
{
	uint64_t page = w->set->pool->small ? t->k->small_segment : t->conf.large_segment;
	uint64_t size = torch_reserve_size(t, w->set->stream), addr;
	uint32_t i, v;

	size = (size + page - 1) / page * page;
	vc_device_reserve(t->m->device, size, &addr);
	if (t->r->small_range_fails && size < w->size) {
		vc_device_unreserve(t->m->device, addr, size);
		return 0;
	}
	v = torch_range_new(t);
	if (!v || !torch_ensure(t, 1))
		return 0;
	t->range[v] = (struct torch_range){ addr, size, page, true };
	i = torch_slot(t);
	t->b[i] = (struct torch_block){ .addr = addr, .size = size, .tie = torch_new_tie(t, addr),
					.set = w->set->index, .range = v, .state = TORCH_UNMAPPED,
					.large = !w->set->pool->small };
	torch_unmapped_put(t, i);
	return i;
}

static bool is_idle(const struct torch *t, uint32_t i)
{
	return i && (t->b[i].state == TORCH_FREE || t->b[i].state == TORCH_UNMAPPED);
}

/* The lowest place whose free surroundings, mapped or not, can hold the request. */
static uint32_t find_place(struct torch *t, struct torch_want *w)
{
	uint32_t root = w->set->unmapped;

	if (root && t->b[torch_place_end(t->b, root, 0)].range !=
			    t->b[torch_place_end(t->b, root, 1)].range)
		t->m->now.by_address = 1; /* which range comes first is the driver's */
	for (uint32_t u = torch_place_end(t->b, root, 0); u;
	     u = torch_place_step(t->b, root, u, 1)) {
		uint32_t c = is_idle(t, t->b[u].prev) ? t->b[u].prev : u;
		uint64_t sum = 0;

		for (uint32_t i = c; is_idle(t, i); i = t->b[i].next) {
			sum += t->b[i].size;
			if (sum >= w->size)
				return c;
		}
	}
	return reserve(t, w);
}

static bool take_pages(struct torch *t, uint64_t addr, uint64_t size, uint64_t page)
{
	for (uint64_t got = 0; got < size; got += page) {
		if (vc_device_create(t->m->device, page))
			continue;
		for (; got; got -= page)
			vc_device_release(t->m->device, page);
		return false;
	}
	for (uint64_t at = 0; at < size; at += page)
		vc_device_map(t->m->device, addr + at, page);
	return true;
}

/* A new unmapped or free block of `size` bytes behind block i, which gives them up. */
static uint32_t cut_tail(struct torch *t, uint32_t i, uint64_t size, enum torch_state state)
{
	uint32_t n = torch_slot(t);
	struct torch_block *x = &t->b[n], *b = &t->b[i];

	b->size -= size;
	*x = (struct torch_block){.addr = b->addr + b->size,
				  .size = size, .prev = i, .next = b->next, .set = b->set,
				  .range = b->range, .state = state,
				  .large = b->large };
	if (t->r->order == TORCH_BY_OBJECT)
		x->tie = ++t->number;
	else
		x->tie = t->r->order == TORCH_BY_SEGMENT ? b->tie + (b->size >> 9) : x->addr;
	if (x->next)
		t->b[x->next].prev = n;
	b->next = n;
	return n;
}

static bool map_block(struct torch *t, struct torch_want *w, uint32_t i, uint64_t need)
{
	uint64_t page = t->range[t->b[i].range].page;
	uint64_t got = (need + page - 1) / page * page;
	struct torch_pool *p = w->set->pool;

	if (page % VC_DEVICE_GRANULE) {
		torch_raise(t, "CUDA driver error: invalid argument");
		w->raised = true;
		return false;
	}
	if (!torch_ensure(t, 4) || !take_pages(t, t->b[i].addr, got, page))
		return false;
	torch_unmapped_cut(t, i);
	t->b[i].state = TORCH_FREE;
	if (got < t->b[i].size)
		torch_unmapped_put(t, cut_tail(t, i, t->b[i].size - got, TORCH_UNMAPPED));
	t->total += got;
	torch_up(t, TORCH_RESERVED_BYTES, !p->small, got);
	t->device_alloc++;
	if (t->m->trace)
		torch_emit(t, VC_TR_SEGMENT_MAP, &t->b[i], got);
	torch_merge(t, i, t->b[i].prev);
	torch_merge(t, i, t->b[i].next);
	torch_index_put(t, w->set, i);
	return true;
}

uint32_t torch_expand(struct torch *t, struct torch_want *w)
{
	uint64_t size = w->size;
	uint32_t c = find_place(t, w);

	if (!c)
		return 0;
	if (t->b[c].state == TORCH_UNMAPPED &&
	    !map_block(t, w, c, t->b[c].size < size ? t->b[c].size : size))
		return 0;
	while (t->b[c].size < size) {
		uint32_t u = t->b[c].next;
		uint64_t need = size - t->b[c].size;

		/* Behind a range that is too small there is nothing (small_range_fails). */
		if (!u || !map_block(t, w, u, need < t->b[u].size ? need : t->b[u].size))
			return 0;
		c = u;
	}
	torch_index_cut(t, w->set, c);
	return c;
}

static void give_pages(struct torch *t, uint64_t addr, uint64_t size, uint64_t page)
{
	for (uint64_t at = 0; at < size; at += page) {
		vc_device_unmap(t->m->device, addr + at, page);
		vc_device_release(t->m->device, page);
	}
}

/* Partial pages at both ends become free blocks of their own; block i keeps the whole pages. */
static void keep_partial_pages(struct torch *t, uint32_t i, uint64_t lead, uint64_t middle)
{
	if (lead) {
		uint32_t n = torch_slot(t);
		struct torch_block *x = &t->b[n], *b = &t->b[i];

		*x = (struct torch_block){.addr = b->addr,
					  .size = lead, .tie = b->tie, .prev = b->prev, .next = i,
					  .set = b->set, .range = b->range, .state = TORCH_FREE,
					  .large = b->large };
		if (t->r->order == TORCH_BY_OBJECT)
			x->tie = ++t->number;
		if (x->prev)
			t->b[x->prev].next = n;
		b->prev = n;
		b->addr += lead;
		b->size -= lead;
		if (t->r->order != TORCH_BY_OBJECT)
			b->tie = t->r->order == TORCH_BY_SEGMENT ? b->tie + (lead >> 9) : b->addr;
		torch_index_put(t, torch_set_of(t, n), n);
	}
	if (t->b[i].size > middle)
		torch_index_put(t, torch_set_of(t, i),
				cut_tail(t, i, t->b[i].size - middle, TORCH_FREE));
}

void torch_unmap(struct torch *t, uint32_t i)
{
	struct torch_range *v = &t->range[t->b[i].range];
	uint64_t from = t->b[i].addr - v->base;
	uint64_t first = (from + v->page - 1) / v->page, last = (from + t->b[i].size) / v->page;
	struct torch_pool *p = t->set[t->b[i].set]->pool;
	uint64_t middle = (last - first) * v->page;

	if (first >= last || !torch_ensure(t, 2))
		return;
	torch_index_cut(t, torch_set_of(t, i), i);
	keep_partial_pages(t, i, first * v->page - from, middle);
	t->b[i].state = TORCH_UNMAPPED;
	give_pages(t, t->b[i].addr, middle, v->page);
	t->total -= middle;
	torch_down(t, TORCH_RESERVED_BYTES, !p->small, middle);
	t->device_free++;
	if (p->owner && t->r->private_expandable && p->owner->held > 0)
		p->owner->held--;
	if (t->m->trace)
		torch_emit(t, VC_TR_SEGMENT_UNMAP, &t->b[i], middle);
	torch_merge(t, i, t->b[i].prev);
	torch_merge(t, i, t->b[i].next);
	if (torch_is_split(&t->b[i])) {
		torch_unmapped_put(t, i);
		return;
	}
	vc_device_unreserve(t->m->device, v->base, v->size);
	v->used = false;
	torch_drop(t, i);
}
