/* SPDX-License-Identifier: Apache-2.0 */
/* torch_slow.c - malloc after the search failed: new segments, garbage collection, releases,
 * retries.
 *
 * Order of the steps: CUDACachingAllocator.cpp, DeviceCachingAllocator::malloc, 2.0 - 2.15. */

#include "simulator/models/torch_index.h"

static bool scratch_room(struct torch *t, uint32_t n)
{
	uint32_t cap = t->scratch_cap ? t->scratch_cap : 256;
	uint32_t *p;

	while (cap < n)
		cap *= 2;
	if (cap == t->scratch_cap)
		return true;
	p = realloc(t->scratch, cap * sizeof(*p));
	if (!p) {
		t->nomem = true;
		return false;
	}
	t->scratch = p;
	t->scratch_cap = cap;
	return true;
}

/* The free blocks of a pool in set order, into scratch; how many. */
static uint32_t list_free(struct torch *t, const struct torch_pool *p)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->sets; k++)
		for (uint32_t i = torch_index_first(p->order[k]); i;
		     i = torch_index_step(t, i, 1)) {
			if (n == t->scratch_cap && !scratch_room(t, n + 1))
				return 0;
			t->scratch[n++] = i;
		}
	return n;
}

/* Releasing an expandable block is a failed assertion in 2.1 - 2.4. */
static bool is_wrong_release(struct torch *t, uint32_t i, struct torch_want *w)
{
	if (!t->b[i].range || t->r->release_skips)
		return false;
	torch_raise(t, "!block->expandable_segment_ INTERNAL ASSERT FAILED");
	w->raised = true;
	return true;
}

static bool release(struct torch *t, uint32_t i, struct torch_want *w)
{
	w->raised |= !torch_release_segment(t, i);
	return !w->raised;
}

/* ---- a new segment ---- */
static uint32_t new_segment(struct torch *t, struct torch_want *w)
{
	struct torch_pool *p = w->set->pool;
	struct torch_block *x;
	uint64_t addr;
	uint32_t i;

	if (!vc_device_alloc(t->m->device, w->asz, &addr))
		return 0;
	if (p->owner)
		p->owner->held++;
	i = torch_slot(t);
	x = &t->b[i];
	*x = (struct torch_block){ .addr = addr, .size = w->asz, .tie = torch_new_tie(t, addr),
				   .set = w->set->index, .state = TORCH_FREE,
				   .large = !p->small };
	t->total += w->asz;
	torch_up(t, TORCH_SEGMENT, !p->small, 1);
	torch_up(t, TORCH_RESERVED_BYTES, !p->small, w->asz);
	if (w->asz >= t->conf.max_split)
		torch_up_one(&t->oversize_segments, 1);
	t->device_alloc++;
	if (t->m->trace)
		torch_emit(t, VC_TR_SEGMENT_ALLOC, x, w->asz);
	if (t->torn)
		torch_torn_segment(t, addr, w->asz);
	return i;
}

static uint32_t new_block(struct torch *t, struct torch_want *w, bool retry)
{
	struct torch_private *owner = w->set->pool->owner;
	uint64_t prop = vc_device_config(t->m->device)->prop_total;
	uint32_t i;

	t->retries += retry;
	if (t->limit != TORCH_UNLIMITED && t->total + w->asz > t->limit)
		return 0;
	if (t->conf.throw_oom) {
		uint64_t most = (uint64_t)(t->conf.fraction * (double)prop);

		if (t->total + w->asz > most) {
			t->rejections++;
			w->rejected = true;
			return 0;
		}
	}
	if (!w->ex || (owner && !t->r->private_expandable))
		return new_segment(t, w);
	i = torch_expand(t, w);
	if (i && owner)
		owner->held++;
	return i;
}

/* ---- garbage collection of the default large pool ---- */
static int32_t age_of(const struct torch *t, uint32_t i)
{
	return (int32_t)(t->pool[1].calls - t->b[i].age);
}

struct collection { double sum; uint64_t got; uint32_t left; };

/* One pass over the blocks in scratch; false: nothing was released. */
static bool collect_pass(struct torch *t, struct torch_want *w, uint32_t n, struct collection *c)
{
	double mean = c->sum / c->left;
	bool freed = false;

	for (uint32_t k = 0; k < n && !w->raised; k++) {
		uint32_t i = t->scratch[k];

		if (!i || torch_is_split(&t->b[i]) || (t->b[i].range && t->r->release_skips) ||
		    (double)age_of(t, i) < mean)
			continue;
		if (is_wrong_release(t, i, w))
			return false;
		freed = true;
		c->got += t->b[i].size;
		c->sum -= age_of(t, i);
		c->left--;
		if (!release(t, i, w))
			return false;
		t->scratch[k] = 0;
	}
	return freed;
}

static void garbage_collect(struct torch *t, struct torch_want *w)
{
	uint64_t threshold = (uint64_t)(t->conf.gc * (double)t->limit), target;
	struct collection c = { 0, 0, 0 };
	uint32_t n;

	if (t->total <= threshold)
		return;
	target = t->total - threshold;
	n = list_free(t, &t->pool[1]);
	for (uint32_t k = 0; k < n; k++) {
		if (torch_is_split(&t->b[t->scratch[k]]))
			continue;
		c.sum += age_of(t, t->scratch[k]);
		c.left++;
	}
	while (c.left && c.got < target)
		if (!collect_pass(t, w, n, &c))
			return;
}

/* ---- releases ---- */
static bool releasable(const struct torch *t, uint32_t i)
{
	return !(t->b[i].range && t->r->release_skips);
}

/* From the largest downwards until enough oversize bytes are gone. */
static bool release_downwards(struct torch *t, struct torch_want *w, uint32_t i, uint64_t want)
{
	uint64_t released = 0;

	while (i && released < want && t->b[i].size >= t->conf.max_split) {
		uint32_t cur = i;

		i = torch_index_step(t, cur, 0);
		if (!releasable(t, cur))
			continue;
		if (is_wrong_release(t, cur, w))
			return false;
		released += t->b[cur].size;
		if (!release(t, cur, w))
			return false;
	}
	return released >= want;
}

static bool release_oversize(struct torch *t, struct torch_want *w)
{
	uint64_t want = w->size > t->conf.max_split ? w->size : t->conf.max_split;
	uint32_t i;

	if (t->conf.max_split == TORCH_UNLIMITED)
		return false;
	i = torch_index_find(t, w->set, want);
	if (i && t->by_driver)
		torch_note_order(t, i);
	if (i && releasable(t, i)) {
		if (is_wrong_release(t, i, w))
			return false;
		return release(t, i, w);
	}
	/* The walk starts below the place of `want`. */
	i = i ? torch_index_step(t, i, 0) : torch_index_last(t, w->set);
	return release_downwards(t, w, i, want);
}

/* false: raised */
static bool release_pool(struct torch *t, struct torch_pool *p)
{
	uint32_t n = list_free(t, p), mapped = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = t->scratch[k];

		if (t->b[i].range)
			t->scratch[mapped++] = i;
		else if (!torch_is_split(&t->b[i]) && !torch_release_segment(t, i))
			return false;
	}
	for (uint32_t k = 0; k < mapped; k++)
		torch_unmap(t, t->scratch[k]);
	return true;
}

static int release_private(struct torch *t, uint64_t only)
{
	uint32_t at = torch_map_next(&t->freeable, 0);

	while (at != UINT32_MAX) {
		struct torch_private *p = t->priv[t->freeable.e[at].value];

		if (only && p->id != only) {
			at = torch_map_next(&t->freeable, at + 1);
			continue;
		}
		if (only && torch_sync(t, p) != VC_DONE)
			return VC_RAISED;
		if (p->use) {
			torch_raise(t, "it->second->use_count == 0 INTERNAL ASSERT FAILED");
			return VC_RAISED;
		}
		if (!release_pool(t, p->pool[0]) || !release_pool(t, p->pool[1]))
			return VC_RAISED;
		if (p->held <= 0) {
			torch_private_delete(t, p);
			at = torch_map_next(&t->freeable, at);
		} else {
			at = torch_map_next(&t->freeable, at + 1);
		}
	}
	return VC_DONE;
}

int torch_release_cached(struct torch *t, uint64_t pool)
{
	if (!t->r->empty_skips || (!pool && !torch_capturing(t))) {
		int r = torch_sync(t, NULL);

		if (r != VC_DONE)
			return r;
		if (!release_pool(t, &t->pool[1]) || !release_pool(t, &t->pool[0]))
			return VC_RAISED;
	}
	return release_private(t, pool);
}

/* ---- private pools that help out ---- */
static uint32_t overflow_search(struct torch *t, struct torch_want *w)
{
	const struct torch_map *map = &t->on_oom;
	struct torch_want try = *w;
	uint32_t i;

	if (w->set->pool->owner)
		return 0;
	try.ex = w->ex && !t->r->overflow_plain;
	for (uint32_t at = torch_map_next(map, 0); at != UINT32_MAX;
	     at = torch_map_next(map, at + 1)) {
		struct torch_private *p = torch_pool_visit(t, map->e[at].key);

		if (!p) {
			w->raised = true;
			return 0;
		}
		try.set = torch_set_make(t, p->pool[!w->set->pool->small], w->set->stream);
		i = try.set ? torch_take(t, &try) : 0;
		if (i) {
			*w = try;
			return i;
		}
	}
	return 0;
}

static int run_out(struct torch *t, struct torch_want *w)
{
	struct vc_trace_entry e = { .kind = VC_TR_OOM, .stream = w->set->stream,
				    .addr = vc_device_available(t->m->device), .size = w->size };

	t->m->refusal = (struct vc_refusal){ w->size, w->asz, e.addr };
	t->m->note[0] = '\0';
	if (!t->m->first_text || !t->ooms)
		torch_text_oom(t, w);
	if (t->m->trace)
		t->m->trace(t->m->trace_arg, &e);
	t->ooms++;
	return VC_REFUSED;
}

static int refuse(struct torch *t, struct torch_want *w)
{
	if (w->rejected) { /* in a retry: seen in 2.12 after the option was lowered at run time */
		torch_text_rejected(t, w);
		return VC_REFUSED;
	}
	return run_out(t, w);
}

int torch_slow(struct torch *t, struct torch_want *w, uint32_t *found)
{
	if (t->limit != TORCH_UNLIMITED && t->conf.gc > 0)
		garbage_collect(t, w);
	if (w->raised)
		return VC_RAISED;
	if ((*found = new_block(t, w, false)))
		return VC_DONE;
	if (w->raised)
		return VC_RAISED;
	if (w->rejected) {
		torch_text_rejected(t, w);
		return VC_REFUSED;
	}
	if (t->r->overflow == TORCH_OVERFLOW_MID && (*found = overflow_search(t, w)))
		return VC_DONE;
	if (w->raised)
		return VC_RAISED;
	if (release_oversize(t, w) && (*found = new_block(t, w, false)))
		return VC_DONE;
	if (w->raised)
		return VC_RAISED;
	if (!torch_capturing(t)) {
		if (torch_release_cached(t, 0) != VC_DONE)
			return VC_RAISED;
		if ((*found = new_block(t, w, true)))
			return VC_DONE;
		if (w->raised)
			return VC_RAISED;
	}
	if (t->r->overflow == TORCH_OVERFLOW_LAST && (*found = overflow_search(t, w)))
		return VC_DONE;
	return w->raised ? VC_RAISED : refuse(t, w);
}

/* ---- a request at an exact address ---- */
static uint32_t containing(const struct torch *t, const struct torch_set *s, uint64_t addr,
			   uint64_t size)
{
	for (uint32_t i = torch_index_first(s); i; i = torch_index_step(t, i, 1))
		if (t->b[i].addr <= addr && addr + size <= t->b[i].addr + t->b[i].size)
			return i;
	return 0;
}

bool torch_misplaced(struct torch *t, const struct vc_request *rq)
{
	if (!t->r->exact || !(rq->addr % 512))
		return false;
	torch_raise(t, "mallocWithAddress: addr must be aligned to kMinBlockSize (512 bytes), "
		    "got 0x%llx", (unsigned long long)rq->addr);
	return true;
}

int torch_exact(struct torch *t, struct torch_want *w, uint32_t *found)
{
	uint64_t addr = w->rq->addr, before;
	uint32_t i = containing(t, w->set, addr, w->size), front = 0;

	if (!t->r->exact) {
		t->m->note[0] = '\0';
		return VC_REFUSED;
	}
	if (!i) {
		torch_raise(t, "Could not allocate CUDA storage at exact address 0x%llx",
			    (unsigned long long)addr);
		return VC_RAISED;
	}
	torch_index_cut(t, w->set, i);
	before = addr - t->b[i].addr;
	if (before) {
		front = torch_cut_front(t, i, before);
		torch_occupy(t, front, before, 0);
		torch_index_cut(t, w->set, i);
		if (t->m->trace)
			torch_emit(t, VC_TR_ALLOC, &t->b[front], before);
	}
	i = torch_hand_out(t, i, w);
	if (t->m->trace)
		torch_emit(t, VC_TR_ALLOC, &t->b[i], w->rq->size);
	if (front) {
		if (t->m->trace)
			torch_emit(t, VC_TR_FREE, &t->b[front], before);
		if (t->m->trace)
			torch_emit(t, VC_TR_FREE_DONE, &t->b[front], before);
		torch_free_block(t, front);
	}
	*found = i;
	return VC_DONE;
}
