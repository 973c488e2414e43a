/* SPDX-License-Identifier: Apache-2.0 */
/* torch_core.c - blocks: rounding, search, split, hand-out, free, merge. The path of every event.
 */

#include "simulator/models/torch_index.h"

/* The path of every event is one function each for alloc and free: calls would cost a tenth. */
#define INLINE inline __attribute__((always_inline))

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

uint64_t torch_rounded(const struct torch *t, const uint32_t *division, bool raw, uint64_t n)
{
	uint32_t high = torch_bit_high(n), i = high < 20 ? 0 : high - 20;
	uint64_t d = division[i < TORCH_DIVISIONS ? i : TORCH_DIVISIONS - 1];

	/* 512 in PyTorch; a parameter here. */
	if (d > (raw ? 0u : 1u) && n > t->k->min_block * d)
		return next_division(n, d);
	return (n + t->k->min_block - 1) / t->k->min_block * t->k->min_block;
}

static uint64_t rounded(const struct torch *t, uint64_t n)
{
	uint64_t min = t->k->min_block;

	if (n < min)
		return min;
	if (t->conf.any_division)
		return torch_rounded(t, t->conf.division, t->r->raw_division, n);
	return (n + min - 1) & ~(min - 1);
}

static uint64_t alloc_size(const struct torch *t, uint64_t size)
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

static bool is_whole(const struct torch_block *x)
{
	return !x->range && !x->prev && !x->next;
}

/* Which of two free blocks of one size comes first is known where they lie in one segment. */
static bool in_one_segment(const struct torch *t, uint32_t i, uint32_t j)
{
	enum { MOST = 64 }; /* farther apart they count as unknown, which is safe */
	uint32_t k = t->b[i].next;

	if (t->b[i].range || t->b[j].range)
		return t->b[i].range == t->b[j].range;
	for (int n = 0; k && k != j && n < MOST; n++)
		k = t->b[k].next;
	return k == j;
}

/* Does it hang on the driver's addresses that block i is the one? Of segments that are free as a
 * whole one is as good as another. */
void torch_note_order(struct torch *t, uint32_t i)
{
	enum { MOST = 16 };
	uint32_t j = torch_index_step(t, i, 1);

	for (int n = 0; j && t->b[j].size == t->b[i].size; n++) {
		bool alike = is_whole(&t->b[i]) && is_whole(&t->b[j]);

		if (n == MOST || !(alike || in_one_segment(t, i, j))) {
			t->m->now.by_address = 1;
			return;
		}
		j = torch_index_step(t, j, 1);
	}
}

static INLINE uint32_t take(struct torch *t, struct torch_want *w)
{
	uint64_t size = w->size;
	uint32_t i;

	if (t->collects)
		w->set->pool->calls++;
	i = t->best ? torch_index_find(t, w->set, size) : torch_fit_find(t, w->set, size);
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
	if (t->by_driver && !t->m->now.by_address)
		torch_note_order(t, i);
	torch_index_cut(t, w->set, i);
	return i;
}

uint32_t torch_take(struct torch *t, struct torch_want *w)
{
	return take(t, w);
}

/* ---- hand out ---- */
static INLINE bool may_split(const struct torch *t, uint64_t rest, const struct torch_want *w)
{
	const struct torch_pool *p = w->set->pool;

	if (p->owner && p->owner->no_split)
		return false;
	if (p->small || w->ex)
		return rest >= t->k->min_block;
	return rest > t->k->split_rest && w->size < t->conf.max_split;
}

static void order_by_rule(struct torch *t, struct torch_block *x)
{
	x->tie = t->k->fit == TORCH_RECENT ? ~++t->stamp : x->addr;
}

static INLINE uint32_t cut_front(struct torch *t, struct torch_set *s, uint32_t i, uint64_t size)
{
	uint32_t n = torch_slot(t);
	struct torch_block *x = &t->b[n], *old = &t->b[i];
	bool was = torch_is_split(old);

	x->addr = old->addr;
	x->size = size;
	x->tie = old->tie;
	x->requested = 0;
	x->prev = old->prev;
	x->next = i;
	x->set = old->set;
	x->range = old->range;
	x->large = old->large;
	if (x->prev)
		t->b[x->prev].next = n;
	old->prev = n;
	old->addr += size;
	old->size -= size;
	old->state = TORCH_FREE;
	if (t->order == TORCH_BY_SEGMENT)
		old->tie += size >> 9;
	else if (t->order == TORCH_BY_OBJECT)
		x->tie = ++t->number;
	else
		old->tie = old->addr;
	if (!t->best)
		order_by_rule(t, old);
	torch_index_put(t, s, i);
	if (x->range)
		return n;
	if (was) {
		torch_down(t, TORCH_SPLIT_BYTES, x->large, size);
	} else {
		torch_up(t, TORCH_SPLIT_BYTES, x->large, old->size);
		torch_up(t, TORCH_SPLIT, x->large, 1);
	}
	return n;
}

uint32_t torch_cut_front(struct torch *t, uint32_t i, uint64_t size)
{
	return cut_front(t, torch_set_of(t, i), i, size);
}

/* While blocks wait for other streams, active is more than allocated and has its own peak. */
static void active_peak(struct torch *t, bool large)
{
	const struct torch_stat *s = t->stat[large];
	int64_t v[4] = { s[TORCH_ALLOCATION].cur + t->blocks[large].cur,
			 t->all[TORCH_ALLOCATION].cur + t->blocks[2].cur,
			 s[TORCH_ALLOCATED_BYTES].cur + t->bytes[large].cur,
			 t->all[TORCH_ALLOCATED_BYTES].cur + t->bytes[2].cur };
	struct torch_pending *p[4] = { &t->blocks[large], &t->blocks[2], &t->bytes[large],
				      &t->bytes[2] };

	for (int k = 0; k < 4; k++)
		if (v[k] > p[k]->peak)
			p[k]->peak = v[k];
}

static INLINE void occupy(struct torch *t, uint32_t i, uint64_t n, uint64_t id)
{
	struct torch_block *x = &t->b[i];
	bool large = x->large;

	x->state = TORCH_LIVE;
	x->requested = n;
	x->id = id;
	x->wait = 0;
	torch_up(t, TORCH_ALLOCATION, large, 1);
	torch_up(t, TORCH_ALLOCATED_BYTES, large, x->size);
	torch_up(t, TORCH_REQUESTED_BYTES, large, n);
	if (t->blocks[2].cur)
		active_peak(t, large);
	if (x->size >= t->conf.max_split)
		torch_up_one(&t->oversize_allocs, 1);
}

void torch_occupy(struct torch *t, uint32_t i, uint64_t n, uint64_t id)
{
	occupy(t, i, n, id);
}

static INLINE uint32_t hand_out(struct torch *t, uint32_t i, const struct torch_want *w)
{
	struct torch_block *x = &t->b[i];

	if (may_split(t, x->size - w->size, w)) {
		i = cut_front(t, w->set, i, w->size);
	} else if (torch_is_split(x) && !x->range) {
		torch_down(t, TORCH_SPLIT_BYTES, x->large, x->size);
		torch_down(t, TORCH_SPLIT, x->large, 1);
	}
	occupy(t, i, w->rq->size, w->rq->id);
	return i;
}

uint32_t torch_hand_out(struct torch *t, uint32_t i, const struct torch_want *w)
{
	return hand_out(t, i, w);
}

/* ---- free ---- */
/* Block 0 is never free, so links need no test. */
static INLINE void complete_free(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	struct torch_set *s = t->set[x->set];
	uint32_t prev = x->prev, next = x->next;
	uint64_t size = x->size, before = size;
	int64_t blocks = 0;

	if (t->torn) {
		torch_torn_complete(t, i);
		return;
	}
	x->state = TORCH_FREE;
	torch_down(t, TORCH_REQUESTED_BYTES, x->large, x->requested);
	if (t->b[prev].state == TORCH_FREE) {
		torch_index_cut(t, s, prev);
		torch_absorb(t, x, i, prev);
		blocks--;
	}
	if (t->b[next].state == TORCH_FREE) {
		torch_index_cut(t, s, next);
		torch_absorb(t, x, i, next);
		blocks--;
	}
	if (!t->best)
		order_by_rule(t, x);
	torch_index_put(t, s, i);
	if (x->range)
		return;
	/* The merged neighbours leave the statistic, the whole block enters it when it is split. */
	if (torch_is_split(x))
		torch_count_split(t, x->large, blocks + 1, (int64_t)before);
	else
		torch_count_split(t, x->large, blocks, (int64_t)(before - x->size));
}

/* A block that had to wait for other streams. */
void torch_complete_free(struct torch *t, uint32_t i)
{
	torch_count_waiting(t, i, -1);
	complete_free(t, i);
}

static INLINE int free_block(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];

	torch_down(t, TORCH_ALLOCATION, x->large, 1);
	torch_down(t, TORCH_ALLOCATED_BYTES, x->large, x->size);
	if (x->size >= t->conf.max_split)
		t->oversize_allocs.cur--;
	if (x->wait && torch_defer(t, i)) {
		torch_count_waiting(t, i, 1);
		return VC_WAITS;
	}
	complete_free(t, i);
	return t->torn && torch_failed(t) ? VC_RAISED : VC_DONE;
}

int torch_free_block(struct torch *t, uint32_t i)
{
	return free_block(t, i);
}

bool torch_release_segment(struct torch *t, uint32_t i)
{
	struct torch_block *x = &t->b[i];
	struct torch_pool *p = torch_set_of(t, i)->pool;
	uint64_t whole = x->size;

	t->device_free++;
	if (t->torn || torch_is_split(x))
		whole = torch_torn_free(t, i);
	if (t->m->trace && (whole || t->r->traced_early))
		torch_emit(t, VC_TR_SEGMENT_FREE, x, x->size);
	if (!whole)
		return false;
	torch_index_cut(t, torch_set_of(t, i), i);
	if (t->away.n && torch_away_end(t, x->addr))
		vc_device_unreserve(t->m->device, x->addr, whole);
	else
		vc_device_free(t->m->device, x->addr, whole);
	t->total -= x->size;
	if (p->owner)
		p->owner->held--;
	torch_down(t, TORCH_SEGMENT, x->large, 1);
	torch_down(t, TORCH_RESERVED_BYTES, x->large, x->size);
	if (x->size >= t->conf.max_split)
		t->oversize_segments.cur--;
	torch_drop(t, i);
	return true;
}

/* ---- entry points ---- */
int torch_finished(struct torch *t, int answer, struct vc_error *err)
{
	torch_publish_slow(t);
	if (t->nomem || !vc_device_ok(t->m->device))
		return vc_nomem(err, "the torch model");
	return answer;
}

static int refused_at_once(struct torch *t, const struct vc_request *rq, struct vc_block *out)
{
	*out = (struct vc_block){ 0, 0, NULL };
	if (!rq->size) /* a null pointer, which needs no memory */
		return VC_DONE;
	torch_raise(t, "%s out of memory. Tried to allocate more than 1EB memory.",
		    torch_device_name[t->r->device]);
	return VC_REFUSED;
}

static int alloc_slowly(struct torch *t, struct torch_want *w, struct vc_block *out,
			struct vc_error *err)
{
	uint32_t i = 0;
	int r;

	w->asz = alloc_size(t, w->size);
	if (w->asz > t->largest)
		t->largest = w->asz;
	t->medium |= w->size > t->k->small_limit && w->size < t->k->large_limit;
	r = torch_slow(t, w, &i);
	if (r == VC_DONE) {
		i = hand_out(t, i, w);
		*out = (struct vc_block){ t->b[i].addr, t->b[i].size, (void *)(uintptr_t)i };
	}
	return torch_finished(t, r, err);
}

static int alloc_exactly(struct torch *t, struct torch_want *w, struct vc_block *out,
			 struct vc_error *err)
{
	uint32_t i = 0;
	int r = torch_exact(t, w, &i);

	if (r == VC_DONE)
		*out = (struct vc_block){ t->b[i].addr, t->b[i].size, (void *)(uintptr_t)i };
	return torch_finished(t, r, err);
}

int torch_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		struct vc_error *err)
{
	struct torch *t = m->state;
	struct torch_want w = { .rq = rq, .ex = t->conf.expandable };
	struct torch_pool *p;
	bool small;
	uint32_t i;

	if (rq->size - 1 >= (1ull << 60) - 1)
		return refused_at_once(t, rq, out);
	if (t->used + TORCH_HEADROOM > t->cap && !torch_ensure(t, TORCH_HEADROOM))
		return vc_nomem(err, "the torch model");
	if (rq->exact && torch_misplaced(t, rq))
		return VC_RAISED;
	if (t->waiting && !torch_capturing(t) && !torch_process_events(t))
		return VC_RAISED;
	w.size = rq->size + t->r->padding;
	w.size = t->conf.any_division ? rounded(t, w.size)
	       : (w.size + t->k->min_block - 1) & ~(t->k->min_block - 1);
	small = w.size + t->r->small_below <= t->k->small_limit;
	p = t->scopes ? torch_choose_pool(t, small, rq->stream) : &t->pool[!small];
	if (p->owner && p->owner->served) /* vLLM turns the option off there */
		w.ex = false;
	if (rq->stream < p->streams && p->of[rq->stream])
		w.set = p->of[rq->stream];
	else if (!(w.set = torch_set_make(t, p, rq->stream)))
		return vc_nomem(err, "the torch model");
	if (rq->exact)
		return alloc_exactly(t, &w, out, err);
	i = take(t, &w);
	if (!i)
		return alloc_slowly(t, &w, out, err);
	i = hand_out(t, i, &w);
	*out = (struct vc_block){ t->b[i].addr, t->b[i].size, (void *)(uintptr_t)i };
	if (t->away.n && torch_is_away(t, out->addr))
		torch_away_count(t);
	torch_publish(t);
	return VC_DONE;
}

int torch_free(struct vc_model *m, struct vc_block *b)
{
	struct torch *t = m->state;
	uint32_t i = (uint32_t)(uintptr_t)b->cookie;
	int r = i ? free_block(t, i) : VC_DONE;

	if (t->away.n && torch_is_away(t, b->addr))
		torch_away_count(t);
	torch_publish(t);
	return r;
}
