/* SPDX-License-Identifier: Apache-2.0 */
/* torch_seed.c - a heap that exists before the first event.
 *
 * What a snapshot does not say is chosen so that it is exact where it can be: ages are 0; segment
 * and object numbers follow the order that the heap says; a virtual range begins at its first
 * mapped run, unless pages in front of it were seen to be mapped later. */

#include "common/vec.h"
#include "common/windows.h"
#include "simulator/models/torch_index.h"

struct seeding {
	struct torch *t;
	const struct vc_heap *heap;
	struct vc_block *blocks;
	struct torch_set *set;  /* of the current segment */
	uint32_t range, last;   /* of the current expandable segment: its last block so far */
};

static struct torch_set *set_for(struct torch *t, const struct vc_extent *seg)
{
	struct torch_pool *p = &t->pool[!seg->small];
	struct torch_private *priv;

	if (seg->pool) {
		priv = torch_private_find(t, seg->pool);
		if (!priv)
			priv = torch_private_new(t, seg->pool);
		if (!priv)
			return NULL;
		if (!priv->use)
			priv->use = 1;
		priv->held++;
		p = priv->pool[!seg->small];
	}
	return torch_set_make(t, p, seg->stream);
}

static uint64_t page_of(const struct torch *t, const struct torch_set *s)
{
	return s->pool->small ? t->k->small_segment : t->conf.large_segment;
}

/* Append a block to the chain that is being built. */
static uint32_t append(struct seeding *s, uint64_t addr, uint64_t size, enum torch_state state)
{
	struct torch *t = s->t;
	struct torch_block *x;
	uint32_t i;

	if (!torch_ensure(t, 1))
		return 0;
	i = torch_slot(t);
	x = &t->b[i];
	*x = (struct torch_block){.addr = addr,
				  .size = size, .prev = s->last, .set = s->set->index,
				  .range = s->range, .state = state,
				  .large = !s->set->pool->small };
	if (t->r->order != TORCH_BY_SEGMENT || !s->last)
		x->tie = torch_new_tie(t, addr);
	else
		x->tie = t->b[s->last].tie + (t->b[s->last].size >> 9);
	if (s->last)
		t->b[s->last].next = i;
	s->last = i;
	return i;
}

/* The rest of the current virtual range is unmapped. */
static bool close_range(struct seeding *s)
{
	struct torch *t = s->t;
	const struct torch_range *v = &t->range[s->range];
	uint64_t end;
	uint32_t i;

	if (!s->range)
		return true;
	end = t->b[s->last].addr + t->b[s->last].size;
	if (end < v->base + v->size) {
		i = append(s, end, v->base + v->size - end, TORCH_UNMAPPED);
		if (!i)
			return false;
		torch_unmapped_put(t, i);
	}
	s->range = s->last = 0;
	return true;
}

/* Whether a mapped run can be a later part of the current virtual range. */
static bool continues(const struct seeding *s, const struct vc_extent *seg,
		      const struct torch_set *set)
{
	const struct torch_range *v = &s->t->range[s->range];

	return s->range && s->set == set && seg->addr >= v->base &&
	       seg->addr + seg->size <= v->base + v->size && !((seg->addr - v->base) % v->page);
}

static bool open_run(struct seeding *s, const struct vc_extent *seg, struct torch_set *set)
{
	struct torch *t = s->t;
	uint64_t page = page_of(t, set), size = torch_reserve_size(t, set->stream), end;
	uint64_t base = seg->base ? seg->base : seg->addr;
	uint32_t i;

	if (continues(s, seg, set)) {
		end = t->b[s->last].addr + t->b[s->last].size;
		i = end < seg->addr ? append(s, end, seg->addr - end, TORCH_UNMAPPED) : 0;
		if (i)
			torch_unmapped_put(t, i);
		return !t->nomem;
	}
	if (!close_range(s))
		return false;
	if (size < seg->addr - base + seg->size)
		size = seg->addr - base + seg->size;
	size = (size + page - 1) / page * page;
	s->set = set;
	s->last = 0;
	s->range = torch_range_new(t);
	if (!s->range)
		return false;
	t->range[s->range] = (struct torch_range){ base, size, page, true };
	vc_device_avoid(t->m->device, base, size);
	i = base < seg->addr ? append(s, base, seg->addr - base, TORCH_UNMAPPED) : 0;
	if (i)
		torch_unmapped_put(t, i);
	return !t->nomem;
}

static bool open_segment(struct seeding *s, const struct vc_extent *seg)
{
	struct torch *t = s->t;
	struct torch_set *set = set_for(t, seg);
	bool large = !seg->small;

	if (!set)
		return false;
	if (seg->expandable) {
		if (!open_run(s, seg, set))
			return false;
	} else {
		if (!close_range(s))
			return false;
		s->set = set;
		s->range = s->last = 0;
		torch_up(t, TORCH_SEGMENT, large, 1);
		t->largest = seg->size > t->largest ? seg->size : t->largest;
		if (seg->size >= t->conf.max_split)
			torch_up_one(&t->oversize_segments, 1);
	}
	vc_device_adopt(t->m->device, seg->addr, seg->size);
	t->total += seg->size;
	torch_up(t, TORCH_RESERVED_BYTES, large, seg->size);
	return true;
}

/* Neighbours are known only when the whole segment is there, hence a second pass over its blocks.
 */
static void settle(struct torch *t, uint32_t i, bool split)
{
	bool large = t->b[i].large;

	if (t->b[i].state != TORCH_FREE)
		return;
	torch_index_put(t, torch_set_of(t, i), i);
	if (!split || t->b[i].range)
		return;
	torch_up(t, TORCH_SPLIT, large, 1);
	torch_up(t, TORCH_SPLIT_BYTES, large, t->b[i].size);
}

static uint32_t add_block(struct seeding *s, const struct vc_extent *x, struct vc_block *out)
{
	struct torch *t = s->t;
	uint32_t i = append(s, x->addr, x->size, TORCH_FREE);

	if (!i)
		return 0;
	t->b[i].requested = x->requested;
	if (x->what == VC_X_FREE)
		return i;
	torch_occupy(t, i, x->requested, x->id);
	*out = (struct vc_block){ x->addr, x->size, (void *)(uintptr_t)i };
	if (x->what == VC_X_PENDING) {
		torch_use(t, i, VC_STREAM_ALL);
		torch_free_block(t, i);
	}
	return i;
}

/* The blocks of the segment at extent `at`; false: no memory. */
static bool add_segment(struct seeding *s, size_t at)
{
	const struct vc_extent *x = s->heap->extent;
	size_t end = at + 1;
	uint32_t first = 0, i;

	if (!open_segment(s, &x[at]))
		return false;
	for (; end < s->heap->n && x[end].what != VC_X_SEGMENT; end++) {
		i = add_block(s, &x[end], &s->blocks[end]);
		if (!i)
			return false;
		if (!first)
			first = i;
	}
	for (i = first; i; i = s->t->b[i].next)
		settle(s->t, i, end - at > 2);
	return true;
}

/* A segment of the heap, and when it came: those with higher keys are younger. */
struct aged { uint64_t key; size_t at; };

VC_COMPARE(by_age, struct aged, VC_THEN(VC_ORDER(x->key, y->key), VC_ORDER(x->at, y->at)))

static uint64_t key_of(const struct vc_extent *x, enum vc_heap_order order)
{
	return order == VC_HEAP_DOWNWARDS ? UINT64_MAX - x->addr :
	       order == VC_HEAP_WINDOWS   ? UINT64_MAX - x->addr / VC_WINDOW : x->addr;
}

/* The segments in the order of their age; pieces of expandable ones stay side by side. */
static struct aged *list_segments(const struct vc_heap *heap, size_t *n)
{
	struct aged *all = calloc(heap->n + 1, sizeof(*all));
	bool grow = false;

	*n = 0;
	for (size_t i = 0; all && i < heap->n; i++) {
		const struct vc_extent *x = &heap->extent[i];

		if (x->what != VC_X_SEGMENT)
			continue;
		all[(*n)++] = (struct aged){ key_of(x, heap->order), i };
		grow |= x->expandable;
	}
	if (all && *n && !grow)
		vc_sort(all, *n, sizeof(*all), by_age);
	return all;
}

int torch_seed(struct vc_model *m, const struct vc_heap *heap, struct vc_block *blocks,
	       struct vc_error *err)
{
	struct torch *t = m->state;
	struct seeding s = { .t = t, .heap = heap, .blocks = blocks };
	struct aged *segment;
	size_t n;
	bool ok;

	if (heap->n && heap->extent[0].what != VC_X_SEGMENT)
		return vc_fail(err, VC_EFORMAT, "a starting heap must begin with a segment");
	segment = list_segments(heap, &n);
	ok = segment;
	for (size_t i = 0; ok && i < n; i++)
		ok = add_segment(&s, segment[i].at);
	free(segment);
	if (!ok || !close_range(&s) || t->nomem)
		return vc_nomem(err, "the starting heap");
	torch_publish_slow(t);
	return VC_OK;
}
