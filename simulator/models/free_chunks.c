/* SPDX-License-Identifier: Apache-2.0 */
/* free_chunks.c - see free_chunks.h */
#include "simulator/models/free_chunks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/vec.h"

#define GRAIN 256u /* sizes below it share a class */

/* ---- free chunks, by size ---- */
static uint32_t class_of(uint64_t size)
{
	uint64_t u = size / GRAIN;
	uint32_t e = 63 - (uint32_t)__builtin_clzll(u | 16) - 4, c = e * 16 + (uint32_t)(u >> e);

	return c < CHUNKS_CLASSES ? c : CHUNKS_CLASSES - 1;
}

/* Heap priority in the treap: a bijective mix of the slot, so there are no ties. */
static uint32_t priority(uint32_t i)
{
	return i * 2654435761u;
}

static bool before(const struct chunks *h, const struct chunk *x, const struct chunk *y)
{
	return !h->by_place && x->size != y->size ? x->size < y->size : x->order < y->order;
}

void chunks_put(struct chunks *h, uint32_t i)
{
	struct chunk *c = h->c;
	struct chunks_set *s = &h->set[c[i].set];
	uint32_t k = class_of(c[i].size), *link = &s->root[k], n, *kid[2];

	c[i].state = CHUNK_FREE;
	c[i].order = h->fifo ? ++h->turn : c[i].addr;
	if (!s->root[k] || c[i].addr < c[s->low[k]].addr)
		s->low[k] = i;
	s->bits[k / 64] |= 1ull << (k & 63);
	while ((n = *link) && priority(n) > priority(i))
		link = &c[n].kid[before(h, &c[n], &c[i])];
	*link = i;
	kid[0] = &c[i].kid[0];
	kid[1] = &c[i].kid[1];
	while (n) { /* what hung there is parted at i */
		int low = before(h, &c[n], &c[i]);

		*kid[!low] = n;
		kid[!low] = &c[n].kid[low];
		n = *kid[!low];
	}
	*kid[0] = *kid[1] = 0;
}

static uint32_t leftmost(const struct chunk *c, uint32_t n)
{
	while (n && c[n].kid[0])
		n = c[n].kid[0];
	return n;
}

void chunks_cut(struct chunks *h, uint32_t i)
{
	struct chunk *c = h->c;
	struct chunks_set *s = &h->set[c[i].set];
	uint32_t k = class_of(c[i].size), *link = &s->root[k], l = c[i].kid[0], r = c[i].kid[1];

	while (*link != i)
		link = &c[*link].kid[before(h, &c[*link], &c[i])];
	while (l && r) {
		int low = priority(l) > priority(r);

		*link = low ? l : r;
		link = &c[*link].kid[low];
		*(low ? &l : &r) = *link;
	}
	*link = l ? l : r;
	if (!s->root[k])
		s->bits[k / 64] &= ~(1ull << (k & 63));
	if (h->by_place && s->low[k] == i)
		s->low[k] = leftmost(c, s->root[k]);
}

/* The first class from k on that is not empty, or CHUNKS_CLASSES. */
static uint32_t class_from(const struct chunks_set *s, uint32_t k)
{
	uint32_t w = k / 64;
	uint64_t x;

	if (k >= CHUNKS_CLASSES)
		return CHUNKS_CLASSES;
	for (x = s->bits[w] & ~0ull << (k & 63); !x; x = s->bits[w])
		if (++w == CHUNKS_WORDS)
			return CHUNKS_CLASSES;
	return w * 64 + (uint32_t)__builtin_ctzll(x);
}

uint32_t chunks_best(const struct chunks *h, uint32_t set, uint64_t size)
{
	const struct chunks_set *s = &h->set[set];
	uint32_t k = class_of(size), best = 0;

	for (uint32_t n = s->root[k]; n;) {
		bool fits = h->c[n].size >= size;

		best = fits ? n : best;
		n = h->c[n].kid[!fits];
	}
	if (best)
		return best;
	k = class_from(s, k + 1);
	return k < CHUNKS_CLASSES ? leftmost(h->c, s->root[k]) : 0;
}

uint32_t chunks_last(const struct chunks *h, uint32_t set)
{
	const struct chunks_set *s = &h->set[set];
	uint32_t w = CHUNKS_WORDS, n = 0;

	while (w && !s->bits[w - 1])
		w--;
	if (w)
		n = s->root[w * 64 - 1 - (uint32_t)__builtin_clzll(s->bits[w - 1])];
	while (n && h->c[n].kid[1])
		n = h->c[n].kid[1];
	return n;
}

uint32_t chunks_at(const struct chunks *h, uint32_t set, uint64_t size, uint64_t addr)
{
	struct chunk key = { .size = size, .order = addr };
	uint32_t n = h->set[set].root[class_of(size)];

	while (n && (h->c[n].size != size || h->c[n].order != addr))
		n = h->c[n].kid[before(h, &h->c[n], &key)];
	return n;
}

/* The lowest of a treap by address that is large enough; chunks below `bound` only. */
static uint32_t first_of(const struct chunks *h, uint32_t n, uint64_t size, uint64_t bound)
{
	while (n) {
		uint32_t l = first_of(h, h->c[n].kid[0], size, bound);

		if (l || h->c[n].addr >= bound)
			return l;
		if (h->c[n].size >= size)
			return n;
		n = h->c[n].kid[1];
	}
	return 0;
}

/* Every chunk of the classes above is large enough, so their lowest ones decide; of its own class
 * only what lies below those is of interest. */
uint32_t chunks_first(const struct chunks *h, uint32_t set, uint64_t size)
{
	const struct chunks_set *s = &h->set[set];
	uint32_t own = class_of(size), best = 0, in_own;
	uint64_t bound = UINT64_MAX;

	for (uint32_t k = class_from(s, own + 1); k < CHUNKS_CLASSES; k = class_from(s, k + 1))
		if (h->c[s->low[k]].addr < bound) {
			best = s->low[k];
			bound = h->c[best].addr;
		}
	in_own = s->root[own] ? first_of(h, s->root[own], size, bound) : 0;
	return in_own ? in_own : best;
}

/* ---- chunks ---- */
bool chunks_ensure(struct chunks *h, uint32_t set)
{
	h->used = h->used ? h->used : 1; /* slot 0 means none */
	return vc_vec_room(h->c, h->cap, h->used + 3) && set <= UINT16_MAX &&
	       vc_vec_zeroed(h->set, h->sets, set + 1u);
}

void chunks_fini(struct chunks *h)
{
	VC_FREE(h->c, h->set);
}

static uint32_t new_chunk(struct chunks *h, uint64_t addr, uint64_t size, uint32_t set)
{
	uint32_t i = h->spare;

	if (i)
		h->spare = h->c[i].kid[0];
	else
		i = h->used++;
	h->c[i] = (struct chunk){ .addr = addr, .size = size, .set = (uint16_t)set,
				  .state = CHUNK_FREE };
	return i;
}

static void retire(struct chunks *h, uint32_t i)
{
	h->c[i].state = CHUNK_UNUSED;
	h->c[i].kid[0] = h->spare;
	h->spare = i;
}

uint32_t chunks_region(struct chunks *h, uint64_t addr, uint64_t size, uint32_t set)
{
	uint32_t i = new_chunk(h, addr, size, set);

	h->c[i].head = i;
	return i;
}

void chunks_split(struct chunks *h, uint32_t i, uint64_t size)
{
	uint32_t rest = new_chunk(h, h->c[i].addr + size, h->c[i].size - size, h->c[i].set);
	struct chunk *c = h->c;

	c[i].size = size;
	c[rest].head = c[i].head;
	c[rest].prev = i;
	c[rest].next = c[i].next;
	c[i].next = rest;
	if (c[rest].next)
		c[c[rest].next].prev = rest;
	chunks_put(h, rest);
}

void chunks_absorb(struct chunks *h, uint32_t i)
{
	struct chunk *c = h->c;
	uint32_t n = c[i].next;

	c[i].size += c[n].size;
	c[i].next = c[n].next;
	if (c[n].next)
		c[c[n].next].prev = i;
	retire(h, n);
}

uint32_t chunks_release(struct chunks *h, uint32_t i)
{
	uint32_t n = h->c[i].next, p = h->c[i].prev;

	if (n && h->c[n].state == CHUNK_FREE) {
		chunks_cut(h, n);
		chunks_absorb(h, i);
	}
	if (p && h->c[p].state == CHUNK_FREE) {
		chunks_cut(h, p);
		chunks_absorb(h, p);
		i = p;
	}
	chunks_put(h, i);
	return i;
}

void chunks_drop(struct chunks *h, uint32_t i)
{
	struct chunk *c = h->c;
	uint32_t n = c[i].next;

	if (c[i].prev)
		c[c[i].prev].next = 0;
	if (n)
		c[n].prev = 0;
	for (uint32_t k = n; k; k = c[k].next)
		c[k].head = n;
	retire(h, i);
}

/* ---- what all models do around it ---- */
/* The stream that may have a free chunk; 0 where any may. */
static uint32_t owner_of(const struct chunks *h, const struct chunk *c)
{
	return h->by_stream ? c->set : 0;
}

void chunks_give(struct chunks *h, struct vc_model *m, uint32_t i, const struct vc_request *rq,
		 struct vc_block *out)
{
	struct chunk *c = &h->c[i];

	c->state = CHUNK_LIVE;
	c->id = rq->id;
	c->requested = rq->size;
	c->stream = rq->stream;
	m->now.requested += rq->size;
	m->now.allocated += c->size;
	m->now.active += c->size;
	*out = (struct vc_block){ c->addr, c->size, (void *)(uintptr_t)i };
}

uint32_t chunks_take(struct chunks *h, struct vc_model *m, const struct vc_block *b)
{
	uint32_t i = (uint32_t)(uintptr_t)b->cookie;

	m->now.requested -= h->c[i].requested;
	m->now.allocated -= h->c[i].size;
	m->now.active -= h->c[i].size;
	return i;
}

void chunks_tell(struct vc_model *m, enum vc_trace_kind kind, uint32_t stream, uint64_t addr,
		 uint64_t size)
{
	struct vc_trace_entry e = { .kind = kind, .stream = stream, .addr = addr, .size = size };

	if (kind == VC_TR_SEGMENT_ALLOC || kind == VC_TR_SEGMENT_MAP)
		m->now.reserved += size;
	else if (kind == VC_TR_SEGMENT_FREE || kind == VC_TR_SEGMENT_UNMAP)
		m->now.reserved -= size;
	m->now.segments += kind == VC_TR_SEGMENT_ALLOC;
	m->now.segments -= kind == VC_TR_SEGMENT_FREE;
	if (m->trace)
		m->trace(m->trace_arg, &e);
}

VC_COMPARE(by_address, struct chunk, VC_ORDER(x->addr, y->addr))

/* The first chunks of all regions, by address; `next` of these copies is the slot itself. */
static size_t heads_of(const struct chunks *h, struct chunk **heads)
{
	size_t n = 0;

	for (uint32_t i = 1; i < h->used; i++)
		n += h->c[i].state != CHUNK_UNUSED && !h->c[i].prev;
	*heads = malloc((n + 1) * sizeof(**heads));
	n = 0;
	for (uint32_t i = 1; *heads && i < h->used; i++)
		if (h->c[i].state != CHUNK_UNUSED && !h->c[i].prev) {
			(*heads)[n] = h->c[i];
			(*heads)[n++].next = i;
		}
	if (n > 1)
		qsort(*heads, n, sizeof(**heads), by_address);
	return n;
}

/* By address: which goes first decides where the device puts what comes next. */
uint64_t chunks_give_back(struct chunks *h, struct vc_model *m, uint32_t set)
{
	struct chunk *heads = NULL;
	size_t n = heads_of(h, &heads);
	uint64_t bytes = 0;

	for (size_t k = 0; heads && k < n; k++) {
		uint32_t i = heads[k].next;
		struct chunk *c = &h->c[i];

		if (c->state != CHUNK_FREE || c->next || (set != UINT32_MAX && c->set != set))
			continue;
		chunks_cut(h, i);
		vc_device_free(m->device, c->addr, c->size);
		chunks_tell(m, VC_TR_SEGMENT_FREE, owner_of(h, c), c->addr, c->size);
		bytes += c->size;
		retire(h, i);
	}
	free(heads);
	return bytes;
}

int chunks_refuse(struct vc_model *m, const struct vc_request *rq, uint64_t rounded,
		  uint64_t alloc_size)
{
	m->refusal = (struct vc_refusal){ rounded, alloc_size, vc_device_available(m->device) };
	m->now.ooms++;
	chunks_tell(m, VC_TR_OOM, rq->stream, m->refusal.device_free, rounded);
	return VC_REFUSED;
}

/* ---- looking at it ---- */
static int walk_region(const struct chunks *h, uint32_t first, vc_extent_fn *fn, void *arg)
{
	const struct chunk *c = h->c;
	struct vc_extent x = { .what = VC_X_SEGMENT, .addr = c[first].addr,
			       .stream = owner_of(h, &c[first]) };
	int rc;

	for (uint32_t i = first; i; i = c[i].next) {
		x.size += c[i].size;
		if (c[i].state == CHUNK_LIVE) {
			x.requested += c[i].requested;
			x.active += c[i].size;
		}
	}
	x.allocated = x.active;
	rc = fn(arg, &x);
	for (uint32_t i = first; i && rc >= 0; i = c[i].next) {
		bool live = c[i].state == CHUNK_LIVE;

		x = (struct vc_extent){ .what = live ? VC_X_LIVE : VC_X_FREE, .addr = c[i].addr,
					.size = c[i].size,
					.stream = live ? c[i].stream : owner_of(h, &c[i]),
					.requested = live ? c[i].requested : 0,
					.id = live ? c[i].id : 0 };
		rc = fn(arg, &x);
	}
	return rc;
}

int chunks_walk(const struct chunks *h, vc_extent_fn *fn, void *arg)
{
	struct chunk *heads = NULL;
	size_t n = heads_of(h, &heads);
	int rc = heads ? VC_OK : VC_ENOMEM;

	for (size_t k = 0; k < n && rc >= 0; k++)
		rc = walk_region(h, heads[k].next, fn, arg);
	free(heads);
	return rc < 0 ? rc : VC_OK;
}

/* Chunks cover their region without a gap, no two free ones of a set touch, each free one is
 * found. */
static int check_chunk(const struct chunks *h, uint32_t i, bool merges, struct vc_error *err)
{
	const struct chunk *c = &h->c[i], *next = &h->c[c->next];
	uint32_t n = h->set[c->set].root[class_of(c->size)];

	while (c->state == CHUNK_FREE && n && n != i)
		n = h->c[n].kid[before(h, &h->c[n], c)];
	if ((c->state == CHUNK_FREE && n != i) ||
	    (c->next && (next->prev != i || next->addr != c->addr + c->size ||
			 next->head != c->head ||
			 (merges && c->state == CHUNK_FREE && next->state == CHUNK_FREE))))
		return vc_fail(err, VC_EINTERNAL, "the chunk at 0x%" PRIx64
			       " is not where it belongs", c->addr);
	return VC_OK;
}

int chunks_check(const struct chunks *h, const struct vc_model *m, struct vc_error *err)
{
	uint64_t sum = 0, live = 0;

	for (uint32_t i = 1; i < h->used; i++) {
		if (h->c[i].state == CHUNK_UNUSED)
			continue;
		VC_TRY(check_chunk(h, i, !h->buddies, err));
		sum += h->c[i].size;
		live += h->c[i].state == CHUNK_LIVE ? h->c[i].size : 0;
	}
	if (sum != m->now.reserved || live != m->now.allocated)
		return vc_fail(err, VC_EINTERNAL, "chunks sum to %" PRIu64 " and live ones to %"
			       PRIu64 ", the totals say %" PRIu64 " and %" PRIu64, sum, live,
			       m->now.reserved, m->now.allocated);
	return VC_OK;
}
