/* SPDX-License-Identifier: Apache-2.0 */
/* bfc.c - best fit with coalescing: the allocator of TensorFlow, XLA and JAX.
 *
 * After xla/tsl/framework/bfc_allocator.cc (before: tsl/framework, core/common_runtime).
 * Its 21 bins by powers of two, each ordered by size and then address and looked through from the
 * request's own bin upwards, are one order over all free chunks: the smallest that fits, the lowest
 * of equal ones. Here classes of sizes with a bitmap, and a treap in each, keep that order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "simulator/models/bfc.h"

#define MIB (1ull << 20)
#define FIRST_REGION (2 * MIB) /* of a growing pool: 2 MiB, BFCAllocator::BFCAllocator */
#define MAX_SLACK (128 * MIB)  /* a larger remainder is split off, unless fragmentation_fraction */

/* ---- free chunks, by size and address ---- */
static uint32_t class_of(uint64_t size)
{
	uint64_t u = size / BFC_GRAIN;
	uint32_t e = 63 - (uint32_t)__builtin_clzll(u | 16) - 4, c = e * 16 + (uint32_t)(u >> e);

	return c < BFC_CLASSES ? c : BFC_CLASSES - 1;
}

/* Heap priority in the treap: a bijective mix of the slot, so there are no ties. */
static uint32_t priority(uint32_t i)
{
	return i * 2654435761u;
}

static bool before(const struct bfc_chunk *x, const struct bfc_chunk *y)
{
	return x->size != y->size ? x->size < y->size : x->addr < y->addr;
}

static void put_free(struct bfc *b, uint32_t i)
{
	struct bfc_chunk *c = b->c;
	uint32_t k = class_of(c[i].size), *link = &b->root[k], n, *kid[2];

	b->bits[k / 64] |= 1ull << (k & 63);
	while ((n = *link) && priority(n) > priority(i))
		link = &c[n].kid[before(&c[n], &c[i])];
	*link = i;
	kid[0] = &c[i].kid[0];
	kid[1] = &c[i].kid[1];
	while (n) { /* what hung there is parted at i */
		int low = before(&c[n], &c[i]);

		*kid[!low] = n;
		kid[!low] = &c[n].kid[low];
		n = *kid[!low];
	}
	*kid[0] = *kid[1] = 0;
}

static void cut_free(struct bfc *b, uint32_t i)
{
	struct bfc_chunk *c = b->c;
	uint32_t k = class_of(c[i].size), *link = &b->root[k], l = c[i].kid[0], r = c[i].kid[1];

	while (*link != i)
		link = &c[*link].kid[before(&c[*link], &c[i])];
	while (l && r) {
		int low = priority(l) > priority(r);

		*link = low ? l : r;
		link = &c[*link].kid[low];
		*(low ? &l : &r) = *link;
	}
	*link = l ? l : r;
	if (!b->root[k])
		b->bits[k / 64] &= ~(1ull << (k & 63));
}

/* The smallest free chunk of at least `size` bytes, 0: none. */
static uint32_t find_free(const struct bfc *b, uint64_t size)
{
	uint32_t k = class_of(size), best = 0, n = b->root[k], w;
	uint64_t x;

	while (n) {
		bool fits = b->c[n].size >= size;

		best = fits ? n : best;
		n = b->c[n].kid[!fits];
	}
	if (best || ++k == BFC_CLASSES)
		return best;
	w = k / 64;
	for (x = b->bits[w] & ~0ull << (k & 63); !x && ++w < BFC_WORDS; )
		x = b->bits[w];
	for (n = x ? b->root[w * 64 + (uint32_t)__builtin_ctzll(x)] : 0; n; n = b->c[n].kid[0])
		best = n;
	return best;
}

/* ---- chunks ---- */
/* Room for the two chunks and the region that one request can add. */
static bool ensure(struct bfc *b)
{
	b->used = b->used ? b->used : 1; /* slot 0 means none */
	return vc_vec_room(b->c, b->cap, b->used + 2) &&
	       vc_vec_room(b->region, b->room, b->regions + 1);
}

static uint32_t new_chunk(struct bfc *b, uint64_t addr, uint64_t size)
{
	uint32_t i = b->spare;

	if (i)
		b->spare = b->c[i].kid[0];
	else
		i = b->used++;
	b->c[i] = (struct bfc_chunk){ .addr = addr, .size = size };
	return i;
}

static void drop_chunk(struct bfc *b, uint32_t i)
{
	b->c[i].live = false;
	b->c[i].kid[0] = b->spare;
	b->spare = i;
}

/* SplitChunk: the low part keeps its slot, the rest becomes a free chunk behind it. */
static void split(struct bfc *b, uint32_t i, uint64_t size)
{
	uint32_t rest = new_chunk(b, b->c[i].addr + size, b->c[i].size - size);

	b->c[i].size = size;
	b->c[rest].prev = i;
	b->c[rest].next = b->c[i].next;
	b->c[i].next = rest;
	if (b->c[rest].next)
		b->c[b->c[rest].next].prev = rest;
	put_free(b, rest);
}

/* Merge: chunk `i` takes in its upper neighbour, which is in no class. */
static void absorb_next(struct bfc *b, uint32_t i)
{
	uint32_t n = b->c[i].next;

	b->c[i].size += b->c[n].size;
	b->c[i].next = b->c[n].next;
	if (b->c[n].next)
		b->c[b->c[n].next].prev = i;
	drop_chunk(b, n);
}

/* ---- regions ---- */
static void tell(const struct vc_model *m, enum vc_trace_kind kind, uint32_t stream, uint64_t addr,
		 uint64_t size)
{
	struct vc_trace_entry e = { .kind = kind, .stream = stream, .addr = addr, .size = size };

	if (m->trace)
		m->trace(m->trace_arg, &e);
}

static void add_region(struct vc_model *m, uint64_t addr, uint64_t size)
{
	struct bfc *b = m->state;
	uint32_t at = b->regions, i = new_chunk(b, addr, size);

	for (; at && b->region[at - 1].addr > addr; at--)
		b->region[at] = b->region[at - 1];
	b->region[at] = (struct bfc_region){ addr, size, i };
	b->regions++;
	put_free(b, i);
	m->now.reserved += size;
	m->now.segments++;
}

/* The back-off of Extend: nine tenths, computed in 32-bit floating point as there. */
static uint64_t back_off(uint64_t bytes)
{
	float less = (float)bytes * 0.9f;
	uint64_t n = ((uint64_t)less + BFC_GRAIN - 1) / BFC_GRAIN * BFC_GRAIN;

	/* Up to 2.21 sizes below 2,560 bytes rounded up to themselves, for ever. */
	return n < bytes ? n : bytes - BFC_GRAIN;
}

static bool ask_device(struct vc_model *m, uint64_t size, uint64_t *addr)
{
	m->refusal.alloc_size = size;
	return vc_device_alloc(m->device, size, addr);
}

/* Extend: a region that holds `rounded` bytes at least. */
static bool extend(struct vc_model *m, uint64_t rounded, uint32_t stream)
{
	struct bfc *b = m->state;
	uint64_t left = b->limit > m->now.reserved ? b->limit - m->now.reserved : 0, size, addr = 0;
	bool raised = false, got;

	left = left / BFC_GRAIN * BFC_GRAIN;
	m->refusal.alloc_size = rounded;
	if (rounded > left)
		return false;
	for (; rounded > b->curr; raised = true)
		b->curr *= 2;
	size = b->curr < left ? b->curr : left;
	got = ask_device(m, size, &addr);
	if (!got && !(b->k->backpedal == BFC_ONCE && b->backpedalled)) {
		b->backpedalled = true;
		while (!got && (size = back_off(size)) >= rounded)
			got = ask_device(m, size, &addr);
	}
	if (!got)
		return false;
	if (!raised && b->curr < 1ull << 62) /* there it gets 0 in the end, and Extend hangs */
		b->curr *= 2;
	add_region(m, addr, size);
	tell(m, VC_TR_SEGMENT_ALLOC, stream, addr, size);
	return true;
}

static bool is_idle(const struct bfc *b, const struct bfc_region *r)
{
	return !b->c[r->first].live && b->c[r->first].size == r->size;
}

/* DeallocateFreeRegions: all regions without a live chunk, if that can help. */
static bool give_back(struct vc_model *m, uint64_t rounded, uint32_t stream)
{
	struct bfc *b = m->state;
	uint64_t idle = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->regions; i++)
		idle += is_idle(b, &b->region[i]) ? b->region[i].size : 0;
	if (!b->collect || !idle || rounded > b->limit - m->now.reserved + idle)
		return false;
	for (uint32_t i = 0; i < b->regions; i++) {
		struct bfc_region *r = &b->region[i];

		if (!is_idle(b, r)) {
			b->region[kept++] = *r;
			continue;
		}
		cut_free(b, r->first);
		drop_chunk(b, r->first);
		vc_device_free(m->device, r->addr, r->size);
		m->now.reserved -= r->size;
		m->now.segments--;
		tell(m, VC_TR_SEGMENT_FREE, stream, r->addr, r->size);
	}
	b->regions = kept;
	return true;
}

/* ---- entry points ---- */
static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t rounded)
{
	m->refusal.rounded = rounded;
	m->refusal.device_free = vc_device_available(m->device);
	m->now.ooms++;
	bfc_text_oom(m, rq->size, rounded);
	tell(m, VC_TR_OOM, rq->stream, m->refusal.device_free, rounded);
	return VC_REFUSED;
}

static void take(struct vc_model *m, uint32_t i, const struct vc_request *rq, uint64_t rounded)
{
	struct bfc *b = m->state;
	struct bfc_chunk *c;

	cut_free(b, i);
	if (b->c[i].size >= 2 * rounded || b->c[i].size - rounded >= b->split)
		split(b, i, rounded);
	c = &b->c[i];
	c->live = true;
	c->requested = rq->size;
	c->id = rq->id;
	c->stream = rq->stream;
	m->now.requested += rq->size;
	m->now.allocated += c->size;
	m->now.active += c->size;
	b->allocs++;
	b->largest = c->size > b->largest ? c->size : b->largest;
	b->peak = m->now.allocated > b->peak ? m->now.allocated : b->peak;
}

static int bfc_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		     struct vc_error *err)
{
	struct bfc *b = m->state;
	uint64_t rounded = (rq->size + BFC_GRAIN - 1) / BFC_GRAIN * BFC_GRAIN;
	uint32_t i;

	*out = (struct vc_block){ 0 };
	if (!rq->size) /* no chunk, a null pointer */
		return VC_DONE;
	if (rounded < rq->size || rounded > 1ull << 62)
		return refuse(m, rq, rq->size);
	if (!ensure(b))
		return vc_nomem(err, "the bfc model");
	i = find_free(b, rounded);
	if (!i && extend(m, rounded, rq->stream))
		i = find_free(b, rounded);
	if (!i && give_back(m, rounded, rq->stream)) {
		m->now.retries++;
		if (extend(m, rounded, rq->stream))
			i = find_free(b, rounded);
	}
	if (!i)
		return refuse(m, rq, rounded);
	take(m, i, rq, rounded);
	*out = (struct vc_block){ b->c[i].addr, b->c[i].size, (void *)(uintptr_t)i };
	return VC_DONE;
}

static int bfc_free(struct vc_model *m, struct vc_block *block)
{
	struct bfc *b = m->state;
	uint32_t i = (uint32_t)(uintptr_t)block->cookie, n, p;

	if (!i)
		return VC_DONE;
	m->now.requested -= b->c[i].requested;
	m->now.allocated -= b->c[i].size;
	m->now.active -= b->c[i].size;
	b->c[i].live = false;
	n = b->c[i].next;
	p = b->c[i].prev;
	if (n && !b->c[n].live) {
		cut_free(b, n);
		absorb_next(b, i);
	}
	if (p && !b->c[p].live) {
		cut_free(b, p);
		absorb_next(b, p);
		i = p;
	}
	put_free(b, i);
	return VC_DONE;
}

static int walk_region(const struct bfc *b, const struct bfc_region *r, vc_extent_fn *fn, void *arg)
{
	struct vc_extent x = { .what = VC_X_SEGMENT, .addr = r->addr, .size = r->size };
	int rc;

	for (uint32_t i = r->first; i; i = b->c[i].next)
		if (b->c[i].live) {
			x.requested += b->c[i].requested;
			x.active += b->c[i].size;
		}
	x.allocated = x.active;
	rc = fn(arg, &x);
	for (uint32_t i = r->first; i && rc >= 0; i = b->c[i].next) {
		const struct bfc_chunk *c = &b->c[i];

		x = (struct vc_extent){ .what = c->live ? VC_X_LIVE : VC_X_FREE, .addr = c->addr,
					.size = c->size };
		if (c->live) {
			x.requested = c->requested;
			x.id = c->id;
			x.stream = c->stream;
		}
		rc = fn(arg, &x);
	}
	return rc;
}

static int bfc_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct bfc *b = m->state;
	int rc = VC_OK;

	for (uint32_t i = 0; i < b->regions && rc >= 0; i++)
		rc = walk_region(b, &b->region[i], fn, arg);
	return rc < 0 ? rc : VC_OK;
}

/* Chunks cover their region without a gap, no two free ones touch, each free one is found. */
static int check_region(const struct bfc *b, const struct bfc_region *r, uint64_t *live,
			struct vc_error *err)
{
	uint64_t at = r->addr;

	for (uint32_t i = r->first, last = 0; i; last = i, i = b->c[i].next) {
		const struct bfc_chunk *c = &b->c[i];
		uint32_t n = b->root[class_of(c->size)];

		while (!c->live && n && n != i)
			n = b->c[n].kid[before(&b->c[n], c)];
		if (c->addr != at || c->prev != last || (!c->live && n != i) ||
		    (last && !c->live && !b->c[last].live))
			return vc_fail(err, VC_EINTERNAL,
				       "bfc: the chunk at 0x%" PRIx64 " is not where it belongs",
				       c->addr);
		at += c->size;
		*live += c->live ? c->size : 0;
	}
	if (at != r->addr + r->size)
		return vc_fail(err, VC_EINTERNAL, "bfc: chunks leave the region at 0x%" PRIx64,
			       r->addr);
	return VC_OK;
}

static int bfc_check(const struct vc_model *m, struct vc_error *err)
{
	const struct bfc *b = m->state;
	uint64_t sum = 0, live = 0;

	for (uint32_t i = 0; i < b->regions; i++) {
		VC_TRY(check_region(b, &b->region[i], &live, err));
		sum += b->region[i].size;
	}
	if (sum != m->now.reserved || sum > b->limit || live != m->now.allocated)
		return vc_fail(err, VC_EINTERNAL,
			       "bfc: regions sum to %" PRIu64 " and live chunks to %" PRIu64
			       ", the totals say %" PRIu64 " and %" PRIu64,
			       sum, live, m->now.reserved, m->now.allocated);
	return VC_OK;
}

/* MinSystemMemory of gpu_device.cc: what TensorFlow leaves to the system, by the major number of
 * the compute capability, in builds with optimisation. */
static uint64_t system_memory(uint64_t available, uint64_t major)
{
	if (available < 2048 * MIB)
		return 225 * MIB;
	if (major <= 6)
		return 500 * MIB;
	return (major == 7 ? 1050 : major == 8 ? 1536 : 1800) * MIB;
}

/* SingleVirtualDeviceMemoryLimit of gpu_device.cc, CreateBFCAllocator of xla/pjrt/gpu. */
static uint64_t limit_of(const struct vc_model *m, const struct bfc_config *k)
{
	double total = (double)vc_device_config(m->device)->total;
	uint64_t available = vc_device_available(m->device);
	uint64_t system = system_memory(available, k->major);

	if (k->limit)
		return vc_device_limit(m->device, k->limit);
	if (k->fraction > 0)
		return vc_device_limit(m->device, (uint64_t)(total * k->fraction));
	if (k->framework == BFC_JAX)
		return vc_device_limit(m->device, (uint64_t)(total * 0.75));
	return system < available ? available - system : available;
}

static int bfc_init(struct vc_model *m, struct vc_error *err)
{
	struct bfc *b = m->state;
	const struct bfc_config *k = m->config;

	if (!(k->fraction >= 0 && k->fraction <= 1))
		return vc_fail(err, VC_EUSAGE,
			       "fraction is a part of the device, from 0 (not set) to 1, not %g",
			       k->fraction);
	if (!(k->fragmentation >= 0 && k->fragmentation <= 1))
		return vc_fail(err, VC_EUSAGE,
			       "fragmentation_fraction is a part of the limit, from 0 (not set) to "
			       "1, not %g", k->fragmentation);
	b->k = k;
	b->limit = limit_of(m, k);
	if (b->limit > 1ull << 47)
		return vc_fail(err, VC_EUSAGE, "memory_limit is at most 128 TiB");
	/* A fixed pool on a device without a size would be a number that says nothing. */
	b->growth = k->growth == BFC_TRUE ||
		    (k->growth == BFC_DEFAULT && !k->limit &&
		     vc_device_config(m->device)->total >= VC_DEVICE_UNLIMITED);
	b->collect = k->collect == BFC_DEFAULT ? k->framework == BFC_TF : k->collect == BFC_TRUE;
	b->split = k->fragmentation > 0 ? (uint64_t)(k->fragmentation * (double)b->limit) :
					  MAX_SLACK;
	b->curr = b->growth && b->limit > FIRST_REGION ? FIRST_REGION : b->limit;
	b->curr = (b->curr + BFC_GRAIN - 1) / BFC_GRAIN * BFC_GRAIN;
	return VC_OK;
}

static void bfc_fini(struct vc_model *m)
{
	struct bfc *b = m->state;

	free(b->c);
	free(b->region);
}

#define AT(field) offsetof(struct bfc_config, field)

static const struct vc_param bfc_params[] = {
	{ "framework", VC_P_ENUM, AT(framework), "tf",
	  "whose defaults and whose words: TensorFlow's, or those of JAX", "tf,jax" },
	{ "growth", VC_P_ENUM, AT(growth), "default",
	  "grow region by region (allow_growth, XLA_PYTHON_CLIENT_PREALLOCATE=false) or take the "
	  "limit at once; default: at once, as in both frameworks, where a card is given",
	  "default,true,false" },
	{ "memory_limit", VC_P_SIZE, AT(limit), "0",
	  "most that it takes from the device; 0: as the framework has it",
	  NULL },
	{ "fraction", VC_P_REAL, AT(fraction), "0",
	  "the limit as a part of the device (per_process_gpu_memory_fraction, "
	  "XLA_CLIENT_MEM_FRACTION); 0: not set",
	  NULL },
	{ "garbage_collection", VC_P_ENUM, AT(collect), "default",
	  "give idle regions back before a request is refused; default: TensorFlow does, JAX does "
	  "not",
	  "default,true,false" },
	{ "fragmentation_fraction", VC_P_REAL, AT(fragmentation), "0",
	  "a remainder of so much of the limit is split off; 0: 128 MiB", NULL },
	{ "retry", VC_P_BOOL, AT(retry), "true",
	  "wait ten seconds for memory before a request is refused: only the words differ here",
	  NULL },
	{ "backpedal", VC_P_ENUM, AT(backpedal), "always",
	  "when the device refuses a region, try smaller ones each time (TensorFlow from 2.17 on) "
	  "or only the first time",
	  "always,once" },
	{ "compute_capability", VC_P_UINT, AT(major), "8",
	  "major number of the card's: what TensorFlow leaves to the system depends on it", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_bfc = {
	.name          = "bfc",
	.summary       = "TensorFlow's, XLA's and JAX's best fit with coalescing, to the byte",
	.owner         = "TensorFlow's BFC",
	.params        = bfc_params,
	.config_size   = sizeof(struct bfc_config),
	.state_size    = sizeof(struct bfc),
	.keeps_regions = true,
	.init          = bfc_init,
	.alloc         = bfc_alloc,
	.free          = bfc_free,
	.walk          = bfc_walk,
	.check         = bfc_check,
	.fini          = bfc_fini,
};
