/* SPDX-License-Identifier: Apache-2.0 */
/* torch_index.h - the free blocks of one pool and stream in PyTorch's exact order.
 *
 * Order: size, then tie. A two-level bitmap finds the first class of sizes that is not empty;
 * inside a class the first blocks are a list and the others a treap through their own links, so
 * nothing is allocated and a class costs one or two cache lines. With another fit rule sizes
 * inside a class are not compared (`t->k->fit`), see torch_fit.c. */
#pragma once

#include "simulator/models/torch.h"
#include "simulator/models/treap.h"

static inline uint32_t torch_bit_low(uint64_t x) { return (uint32_t)__builtin_ctzll(x); }
static inline uint32_t torch_bit_high(uint64_t x) { return 63 - (uint32_t)__builtin_clzll(x); }

static inline uint32_t torch_class(uint64_t size)
{
	uint64_t u = size >> 9;
	uint32_t e, c;

	if (u < TORCH_EXACT)
		return (uint32_t)u;
	e = torch_bit_high(u) - 6; /* 6 bits below the highest one */
	c = TORCH_EXACT + (e - 5) * 64 + (uint32_t)(u >> e) - 64;
	return c < TORCH_CLASSES ? c : TORCH_CLASSES - 1;
}

/* Free blocks of one class; equal ties: only once torn. */
VC_TREAP(torch_free, struct torch_block,
	 x->size != y->size ? x->size < y->size : x->tie != y->tie ? x->tie < y->tie : x < y)
/* Unmapped ranges. */
VC_TREAP(torch_place, struct torch_block, x->addr < y->addr)

/* ---- one class: a short list of its first blocks, and a treap of all that come after them ----
 *
 * Requests take the first block of a class and frees mostly bring it back, so the list is what they
 * touch: one cache line, however many blocks there are. In the list kid[0] is the next block and
 * kid[1] how many come after this one. */
enum { TORCH_FRONT = 6 }; /* blocks in the list at most; filled up with half as many */
#define TORCH_BEHIND 0x8000 /* in klass: the block is in the treap */

static inline void torch_put_behind(struct torch *t, struct torch_set *s, uint32_t c, uint32_t i)
{
	t->b[i].klass = (uint16_t)(c | TORCH_BEHIND);
	torch_free_put(t->b, &s->behind[c], i);
}

/* The last block of a list that is full goes behind it. */
static inline void torch_drop_last(struct torch *t, struct torch_set *s, uint32_t c)
{
	uint32_t *link = &s->root[c], i;

	for (; t->b[*link].kid[1]; link = &t->b[*link].kid[0])
		t->b[*link].kid[1]--;
	i = *link;
	*link = 0;
	torch_put_behind(t, s, c, i);
}

/* Before the first block of the list that does not come before it, or behind the whole list. */
static inline void torch_put_among(struct torch *t, struct torch_set *s, uint32_t c, uint32_t i)
{
	uint32_t *link = &s->root[c], behind = s->behind[c], n = t->b[*link].kid[1] + 1;

	if (behind && torch_free_before(&t->b[behind], &t->b[i])) {
		torch_put_behind(t, s, c, i);
		return;
	}
	while (*link && torch_free_before(&t->b[*link], &t->b[i]))
		link = &t->b[*link].kid[0];
	if (!*link && (behind || n == TORCH_FRONT)) {
		torch_put_behind(t, s, c, i);
		return;
	}
	t->b[i].kid[0] = *link;
	t->b[i].kid[1] = *link ? t->b[*link].kid[1] + 1 : 0;
	*link = i;
	for (uint32_t k = s->root[c]; k != i; k = t->b[k].kid[0])
		t->b[k].kid[1]++;
	if (n == TORCH_FRONT)
		torch_drop_last(t, s, c);
}

/* The list has run empty. */
static inline void torch_fill_front(struct torch *t, struct torch_set *s, uint32_t c)
{
	uint32_t at[TORCH_FRONT / 2], n = 0;

	for (; n < TORCH_FRONT / 2 && s->behind[c]; n++) {
		at[n] = torch_free_end(t->b, s->behind[c], 0);
		torch_free_cut(t->b, &s->behind[c], at[n]);
	}
	for (uint32_t k = n, next = 0; k-- > 0; next = at[k]) {
		t->b[at[k]].klass = (uint16_t)c;
		t->b[at[k]].kid[0] = next;
		t->b[at[k]].kid[1] = n - 1 - k;
	}
	s->root[c] = at[0];
}

static inline void torch_index_put(struct torch *t, struct torch_set *s, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	uint32_t c = torch_class(x->size);

	x->klass = (uint16_t)c;
	x->age = s->pool->calls;
	if (s->root[c]) {
		torch_put_among(t, s, c, i);
		return;
	}
	s->bits[c >> 6] |= 1ull << (c & 63);
	s->summary |= 1ull << (c >> 6);
	s->root[c] = i;
	x->kid[0] = x->kid[1] = 0;
}

static inline void torch_index_cut(struct torch *t, struct torch_set *s, uint32_t i)
{
	uint32_t c = t->b[i].klass, *link;

	if (c & TORCH_BEHIND) {
		torch_free_cut(t->b, &s->behind[c & ~(uint32_t)TORCH_BEHIND], i);
		return;
	}
	for (link = &s->root[c]; *link != i; link = &t->b[*link].kid[0])
		t->b[*link].kid[1]--;
	*link = t->b[i].kid[0];
	if (s->root[c])
		return;
	if (s->behind[c]) {
		torch_fill_front(t, s, c);
		return;
	}
	s->bits[c >> 6] &= ~(1ull << (c & 63));
	if (!s->bits[c >> 6])
		s->summary &= ~(1ull << (c >> 6));
}

/* The last block of a class, 0: none. */
static inline uint32_t torch_class_last(const struct torch *t, const struct torch_set *s,
					uint32_t c)
{
	uint32_t i = s->root[c];

	if (s->behind[c])
		return torch_free_end(t->b, s->behind[c], 1);
	while (i && t->b[i].kid[0])
		i = t->b[i].kid[0];
	return i;
}

/* The neighbour of `i` in its class c; 0: none. */
static inline uint32_t torch_class_step(const struct torch *t, const struct torch_set *s,
					uint32_t c, uint32_t i, int side)
{
	uint32_t n = s->root[c], best;

	if (t->b[i].klass & TORCH_BEHIND) {
		best = torch_free_step(t->b, s->behind[c], i, side);
		if (best || side)
			return best;
		i = 0; /* the last of the list */
	} else if (side) {
		n = t->b[i].kid[0];
		return n ? n : torch_free_end(t->b, s->behind[c], 0);
	}
	for (best = 0; n != i; n = t->b[n].kid[0])
		best = n;
	return best;
}

static inline struct torch_set *torch_set_of(const struct torch *t, uint32_t i)
{
	return t->set[t->b[i].set];
}

/* The first class at or above c that is not empty, or TORCH_CLASSES. */
static inline uint32_t torch_class_up(const struct torch_set *s, uint32_t c)
{
	uint32_t w = c >> 6;
	uint64_t x;

	if (c >= TORCH_CLASSES)
		return TORCH_CLASSES;
	x = s->bits[w] & (~0ull << (c & 63));
	if (x)
		return w * 64 + torch_bit_low(x);
	x = s->summary & (~0ull << w) & ~(1ull << w);
	if (!x)
		return TORCH_CLASSES;
	w = torch_bit_low(x);
	return w * 64 + torch_bit_low(s->bits[w]);
}

/* The last class below c that is not empty, or TORCH_CLASSES. */
static inline uint32_t torch_class_down(const struct torch_set *s, uint32_t c)
{
	for (uint32_t w = c >> 6; ; w--) {
		uint64_t x = w < TORCH_WORDS ? s->bits[w] : 0;

		if (w == c >> 6)
			x &= (1ull << (c & 63)) - 1;
		if (x)
			return w * 64 + torch_bit_high(x);
		if (!w)
			return TORCH_CLASSES;
	}
}

/* The first free block of at least `size` bytes, 0: none. */
static inline uint32_t torch_index_find(const struct torch *t, const struct torch_set *s,
					uint64_t size)
{
	uint32_t c = torch_class(size), best = 0;

	for (uint32_t n = s->root[c]; n; n = t->b[n].kid[0])
		if (t->b[n].size >= size)
			return n;
	for (uint32_t n = s->behind[c]; n; ) {
		if (t->b[n].size >= size) {
			best = n;
			n = t->b[n].kid[0];
		} else {
			n = t->b[n].kid[1];
		}
	}
	if (best)
		return best;
	c = torch_class_up(s, c + 1);
	return c < TORCH_CLASSES ? s->root[c] : 0;
}

static inline uint32_t torch_index_first(const struct torch_set *s)
{
	uint32_t c = torch_class_up(s, 0);

	return c < TORCH_CLASSES ? s->root[c] : 0;
}

static inline uint32_t torch_index_last(const struct torch *t, const struct torch_set *s)
{
	uint32_t c = torch_class_down(s, TORCH_CLASSES);

	return c < TORCH_CLASSES ? torch_class_last(t, s, c) : 0;
}

/* The neighbour of `i` in exact order: side 1 the next, side 0 the previous; 0: none. */
static inline uint32_t torch_index_step(const struct torch *t, uint32_t i, int side)
{
	const struct torch_set *s = t->set[t->b[i].set];
	uint32_t c = t->b[i].klass & ~(uint32_t)TORCH_BEHIND;
	uint32_t best = torch_class_step(t, s, c, i, side);

	if (best)
		return best;
	c = side ? torch_class_up(s, c + 1) : torch_class_down(s, c);
	return c >= TORCH_CLASSES ? 0 : side ? s->root[c] : torch_class_last(t, s, c);
}

static inline void torch_unmapped_put(struct torch *t, uint32_t i)
{
	torch_place_put(t->b, &t->set[t->b[i].set]->unmapped, i);
}

static inline void torch_unmapped_cut(struct torch *t, uint32_t i)
{
	torch_place_cut(t->b, &t->set[t->b[i].set]->unmapped, i);
}

/* ---- statistics ---- */
static inline void torch_up(struct torch *t, enum torch_stat_kind k, bool large, uint64_t x)
{
	struct torch_stat *s = &t->stat[large][k];

	s->cur += (int64_t)x;
	s->up += (int64_t)x;
	if (s->cur > s->peak)
		s->peak = s->cur;
	t->all[k].cur += (int64_t)x;
	if (t->all[k].cur > t->all[k].peak)
		t->all[k].peak = t->all[k].cur;
}

static inline void torch_down(struct torch *t, enum torch_stat_kind k, bool large, uint64_t x)
{
	t->stat[large][k].cur -= (int64_t)x;
	t->all[k].cur -= (int64_t)x;
}

static inline void torch_up_one(struct torch_stat *s, uint64_t x)
{
	s->cur += (int64_t)x;
	s->up += (int64_t)x;
	if (s->cur > s->peak)
		s->peak = s->cur;
}

static inline void torch_count_split(struct torch *t, bool large, int64_t blocks, int64_t bytes)
{
	if (blocks > 0)
		torch_up(t, TORCH_SPLIT, large, 1);
	else if (blocks < 0)
		torch_down(t, TORCH_SPLIT, large, (uint64_t)-blocks);
	if (bytes > 0)
		torch_up(t, TORCH_SPLIT_BYTES, large, (uint64_t)bytes);
	else if (bytes < 0)
		torch_down(t, TORCH_SPLIT_BYTES, large, (uint64_t)-bytes);
}

/* A block that is freed but counts as active: it begins or ends to wait. */
static inline void torch_count_waiting(struct torch *t, uint32_t i, int64_t sign)
{
	const struct torch_block *x = &t->b[i];

	t->blocks[x->large].cur += sign;
	t->blocks[2].cur += sign;
	t->bytes[x->large].cur += sign * (int64_t)x->size;
	t->bytes[2].cur += sign * (int64_t)x->size;
}

/* Copy the totals that clients watch. */
static inline void torch_publish(struct torch *t)
{
	struct vc_totals *now = &t->m->now;

	now->requested = (uint64_t)t->all[TORCH_REQUESTED_BYTES].cur;
	now->allocated = (uint64_t)t->all[TORCH_ALLOCATED_BYTES].cur;
	now->active = now->allocated + (uint64_t)t->bytes[2].cur;
	now->split = (uint64_t)t->all[TORCH_SPLIT_BYTES].cur;
	if (!t->away.n)
		return;
	now->requested -= t->away.requested;
	now->allocated -= t->away.allocated;
	now->active -= t->away.active;
	now->split -= t->away.split;
}

static inline void torch_publish_slow(struct torch *t)
{
	struct vc_totals *now = &t->m->now;

	torch_publish(t);
	now->reserved = (uint64_t)t->all[TORCH_RESERVED_BYTES].cur - t->away.reserved;
	now->away = t->away.reserved;
	now->segments = (uint64_t)t->all[TORCH_SEGMENT].cur;
	now->retries = (uint64_t)t->retries;
	now->ooms = (uint64_t)t->ooms;
}

static inline bool torch_is_split(const struct torch_block *x)
{
	return x->prev || x->next;
}

/* A fresh block object; torch_ensure first. */
static inline uint32_t torch_slot(struct torch *t)
{
	uint32_t i = t->spare;

	if (i)
		t->spare = t->b[i].spare;
	else
		i = t->used++;
	return i;
}

static inline void torch_drop(struct torch *t, uint32_t i)
{
	t->b[i].state = TORCH_UNUSED;
	t->b[i].spare = t->spare;
	t->spare = i;
}

/* Append a free neighbour that has left its set; the survivor is x. */
static inline void torch_absorb(struct torch *t, struct torch_block *x, uint32_t i,
				uint32_t src)
{
	struct torch_block *s = &t->b[src];

	if (x->prev == src) {
		x->addr = s->addr;
		if (t->order != TORCH_BY_OBJECT)
			x->tie = s->tie;
		x->prev = s->prev;
		if (x->prev)
			t->b[x->prev].next = i;
	} else {
		x->next = s->next;
		if (x->next)
			t->b[x->next].prev = i;
	}
	x->size += s->size;
	torch_drop(t, src);
}
