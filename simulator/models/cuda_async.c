/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_async.c - cudaMallocAsync: the memory pools of the CUDA driver, between two bounds.
 *
 * The driver's source is closed, and nothing here was compared with it. What is documented (CUDA
 * programming guide, "Stream-ordered memory allocator"; runtime API, cudaMemPoolAttr) holds in both
 * bounds: memory freed on a stream serves that stream at once; other streams after that stream was
 * waited for, or earlier under three switches; what is held above the release threshold is given
 * back when something is waited for.
 *
 * low: the driver remaps pages, so that any free bytes serve any request, on any stream that the
 * switches allow. high: nothing is remapped; free bytes serve where they lie, and other streams
 * only once the freeing one was waited for or the device is full.
 *
 * In `low` chunks are addresses only, cut from one range; memory is counted apart from them. */

#include "common/vec.h"
#include "simulator/models/chunks.h"
#include "simulator/models/torch_size.h"

#define GRAIN 512u           /* alignment that users saw; not documented */
#define RANGE (64ull << 40)  /* low: addresses to cut from */

enum { LOW, HIGH };
enum { TORCH, CUDA };
enum { ALL, OWN };
enum { DONE, UNIFIED, STREAMS }; /* lists: waited for, used on several streams, then by stream */

struct config { uint64_t bound, framework, reuse, threshold, grow; };

struct pool {
	struct vc_chunks k;
	const struct config *conf;
	uint64_t *idle; /* low: free bytes of each list */
	size_t room;
	uint64_t limit; /* set_per_process_memory_fraction */
};

static bool ensure(struct pool *p, uint32_t list)
{
	return vc_chunks_room(&p->k, 2, list > UNIFIED ? list : UNIFIED) &&
	       vc_vec_zeroed(p->idle, p->room, p->k.lists);
}

/* Where memory that stream `stream` freed waits. */
static uint32_t list_of(const struct pool *p, uint32_t stream)
{
	bool any = p->conf->bound == LOW && p->conf->reuse == ALL;

	return any ? DONE : STREAMS + stream;
}

/* ---- high: chunks stay where they are ---- */
static uint64_t drop_idle(struct vc_model *m, uint64_t keep)
{
	struct pool *p = m->state;
	uint64_t before = m->now.reserved;

	for (uint32_t i = 0; i < p->k.regions; i++) {
		struct vc_region *r = &p->k.region[i];

		/* Not yet waited for: the driver may not give it back. */
		if (m->now.reserved > keep && vc_chunks_idle(&p->k, r) &&
		    p->k.c[r->first].stream == DONE)
			vc_chunks_give_back(m, r, 0);
	}
	vc_chunks_pack(&p->k);
	return before - m->now.reserved;
}

static uint32_t grow(struct vc_model *m, uint64_t size, uint32_t stream)
{
	struct pool *p = m->state;
	uint64_t bytes = vc_chunks_round(size, p->conf->grow), addr;

	m->refusal.alloc_size = bytes;
	if (!vc_device_alloc(m->device, bytes, &addr)) {
		bytes = vc_chunks_round(size, VC_DEVICE_GRANULE);
		if (!vc_device_alloc(m->device, bytes, &addr))
			return 0;
	}
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, stream, addr, bytes);
	return vc_chunks_region(&p->k, addr, bytes, list_of(p, stream));
}

/* The device is full: the driver lets the stream wait for another one, or waits for all. */
static uint32_t find_elsewhere(struct vc_model *m, uint64_t size, uint32_t stream)
{
	struct pool *p = m->state;
	uint32_t i = 0;

	for (uint32_t l = UNIFIED; p->conf->reuse == ALL && !i && l < p->k.lists; l++)
		i = vc_chunks_best(&p->k, l, size);
	if (i)
		return i;
	for (uint32_t l = UNIFIED; p->conf->reuse == ALL && l < p->k.lists; l++)
		vc_chunks_move(&p->k, l, DONE);
	m->now.retries++;
	i = vc_chunks_best(&p->k, DONE, size);
	if (!i && drop_idle(m, 0))
		i = grow(m, size, stream);
	return i;
}

static uint32_t find_high(struct vc_model *m, uint64_t size, uint32_t stream)
{
	struct pool *p = m->state;
	uint32_t i = vc_chunks_best(&p->k, list_of(p, stream), size);

	if (!i)
		i = vc_chunks_best(&p->k, DONE, size);
	if (!i)
		i = grow(m, size, stream);
	return i ? i : find_elsewhere(m, size, stream);
}

/* ---- low: any free bytes do ---- */
static uint64_t take_idle(uint64_t *idle, uint64_t most)
{
	uint64_t n = *idle < most ? *idle : most;

	*idle -= n;
	return n;
}

static uint32_t find_low(struct vc_model *m, uint64_t size, uint32_t stream)
{
	struct pool *p = m->state;
	uint64_t *own = &p->idle[list_of(p, stream)], *done = &p->idle[DONE];
	uint64_t idle = *own + (own == done ? 0 : *done), more = 0, addr;

	if (!p->k.regions) {
		if (!vc_device_reserve(m->device, RANGE, &addr))
			return 0;
		vc_chunks_region(&p->k, addr, RANGE, DONE);
	}
	if (idle < size) {
		more = vc_chunks_round(size - idle, p->conf->grow);
		m->refusal.alloc_size = more;
		if (!vc_device_create(m->device, more)) {
			more = vc_chunks_round(size - idle, VC_DEVICE_GRANULE);
			if (!vc_device_create(m->device, more))
				return 0;
		}
		m->now.reserved += more;
		m->now.segments = 1;
	}
	idle = take_idle(own, size);
	idle += take_idle(done, size - idle);
	*own += more - (size - idle);
	return vc_chunks_best(&p->k, DONE, size);
}

/* ---- entry points ---- */
static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size)
{
	const struct pool *p = m->state;
	const struct vc_device_config *d = vc_device_config(m->device);
	uint64_t used = m->now.requested;

	if (p->conf->framework == TORCH) /* CUDAMallocAsyncAllocator.cpp */
		snprintf(m->note, sizeof(m->note), "Allocation on device %u would exceed allowed "
			 "memory. (out of memory)\nCurrently allocated     : %s\n"
			 "Requested               : %s\nDevice limit            : %s\n"
			 "Free (according to CUDA): %s\n"
			 "PyTorch limit (set by user-supplied memory fraction)\n"
			 "                        : %s", d->index, torch_size_text(used).s,
			 torch_size_text(rq->size).s, torch_size_text(d->total).s,
			 torch_size_text(vc_device_available(m->device)).s,
			 torch_size_text(p->limit).s);
	else
		snprintf(m->note, sizeof(m->note), "cudaMallocAsync of %" PRIu64 " bytes: "
			 "cudaErrorMemoryAllocation: out of memory", rq->size);
	return vc_model_refuse(m, rq, size, m->refusal.alloc_size);
}

static int async_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		       struct vc_error *err)
{
	struct pool *p = m->state;
	uint64_t size = vc_chunks_round(rq->size, GRAIN);
	uint32_t i;

	*out = (struct vc_block){ 0 };
	if (!rq->size) /* a null pointer */
		return VC_DONE;
	VC_HAVE(ensure(p, list_of(p, rq->stream)), "the cuda_async model", err);
	if (size < rq->size || size > RANGE / 2 || m->now.requested + rq->size > p->limit)
		return refuse(m, rq, rq->size);
	i = p->conf->bound == LOW ? find_low(m, size, rq->stream) : find_high(m, size, rq->stream);
	if (!i)
		return refuse(m, rq, size);
	vc_chunks_take(&p->k, i, size);
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

static int async_free(struct vc_model *m, struct vc_block *block)
{
	struct pool *p = m->state;
	uint32_t i = vc_chunks_unserve(m, block), list;

	if (!i)
		return VC_DONE;
	list = list_of(p, p->k.c[i].stream);
	if (p->k.c[i].shared && list != DONE)
		list = UNIFIED;
	if (p->conf->bound == LOW) {
		p->idle[list] += p->k.c[i].size;
		list = DONE; /* its addresses */
	}
	vc_chunks_free(&p->k, list, i);
	return VC_DONE;
}

/* PyTorch's backend frees a block that several streams used on a stream of its own, which waits for
 * all of them. */
static void async_use(struct vc_model *m, struct vc_block *block, uint32_t stream)
{
	struct pool *p = m->state;
	uint32_t i = (uint32_t)(uintptr_t)block->cookie;

	if (i && p->k.c[i].stream != stream)
		p->k.c[i].shared = true;
}

/* What is unused above `keep` goes back to the system. */
static void release(struct vc_model *m, uint64_t keep)
{
	struct pool *p = m->state;
	uint64_t gone;

	if (p->conf->bound == HIGH) {
		drop_idle(m, keep);
		return;
	}
	gone = m->now.reserved > keep ? m->now.reserved - keep : 0;
	gone = (gone < p->idle[DONE] ? gone : p->idle[DONE]) / VC_DEVICE_GRANULE *
	       VC_DEVICE_GRANULE;
	if (!gone)
		return;
	p->idle[DONE] -= gone;
	vc_device_release(m->device, gone);
	m->now.reserved -= gone;
	m->now.segments = m->now.reserved != 0;
}

static void wait_for(struct vc_model *m, uint32_t stream, uint64_t keep)
{
	struct pool *p = m->state;

	for (uint32_t l = UNIFIED; l < p->k.lists; l++) {
		if (stream != VC_STREAM_ALL && l != STREAMS + stream)
			continue;
		vc_chunks_move(&p->k, l, DONE);
		p->idle[DONE] += p->idle[l];
		p->idle[l] = 0;
	}
	if (p->k.lists)
		release(m, keep);
}

static void async_sync(struct vc_model *m, uint32_t stream)
{
	const struct pool *p = m->state;

	wait_for(m, stream, p->conf->framework == TORCH ? UINT64_MAX : p->conf->threshold);
}

/* empty_cache of the backend: the device is waited for, then cudaMemPoolTrimTo(0). */
static int async_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	wait_for(m, VC_STREAM_ALL, 0);
	return VC_DONE;
}

static int async_fraction(struct vc_model *m, double f, struct vc_error *err)
{
	struct pool *p = m->state;

	m->now.has_limit = true;
	m->now.limit = p->limit = (uint64_t)(f * (double)vc_device_config(m->device)->total);
	return VC_DONE;
}

/* low: addresses mean nothing where pages are remapped; blocks are shown one behind the other. */
static int walk_low(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct pool *p = m->state;
	struct vc_extent x = { .what = VC_X_SEGMENT, .size = m->now.reserved,
			       .requested = m->now.requested, .allocated = m->now.allocated,
			       .active = m->now.active };
	int rc;

	if (!m->now.reserved)
		return VC_OK;
	x.addr = p->k.region[0].addr;
	rc = fn(arg, &x);
	for (uint32_t i = p->k.region[0].first; i && rc >= 0; i = p->k.c[i].next) {
		const struct vc_chunk *c = &p->k.c[i];

		if (!c->live)
			continue;
		x.what = VC_X_LIVE;
		x.size = c->size;
		x.requested = c->requested;
		x.id = c->id;
		x.stream = c->stream;
		rc = fn(arg, &x);
		x.addr += c->size;
	}
	x = (struct vc_extent){ .what = VC_X_FREE, .addr = x.addr,
				.size = m->now.reserved - m->now.active };
	if (rc >= 0 && x.size)
		rc = fn(arg, &x);
	return rc < 0 ? rc : VC_OK;
}

static int async_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct pool *p = m->state;

	return p->conf->bound == LOW ? walk_low(m, fn, arg) : vc_chunks_walk(m, fn, arg);
}

static int async_check(const struct vc_model *m, struct vc_error *err)
{
	const struct pool *p = m->state;
	uint64_t sum = m->now.active;

	if (p->conf->bound == HIGH)
		return vc_chunks_check(m, err);
	for (size_t l = 0; l < p->room; l++)
		sum += p->idle[l];
	return sum == m->now.reserved ? VC_OK :
		vc_fail(err, VC_EINTERNAL, "cuda_async: %" PRIu64 " bytes are live or free, "
			"%" PRIu64 " are reserved", sum, m->now.reserved);
}

static int async_init(struct vc_model *m, struct vc_error *err)
{
	struct pool *p = m->state;

	p->conf = m->config;
	p->limit = UINT64_MAX;
	if (!p->conf->grow || p->conf->grow % VC_DEVICE_GRANULE || p->conf->grow > RANGE / 2)
		return vc_fail(err, VC_EUSAGE, "grow is a multiple of 2 MiB");
	return VC_OK;
}

static void async_fini(struct vc_model *m)
{
	struct pool *p = m->state;

	free(p->idle);
	vc_chunks_fini(m);
}

#define AT(field) offsetof(struct config, field)

static const struct vc_param async_params[] = {
	{ "bound", VC_P_ENUM, AT(bound), "high",
	  "high: memory stays where it lies; low: the driver remaps pages at will", "low,high" },
	{ "framework", VC_P_ENUM, AT(framework), "torch",
	  "who calls it: PyTorch's backend:cudaMallocAsync, which gives no memory back by itself, "
	  "or a program with the pool as CUDA makes it", "torch,cuda" },
	{ "reuse", VC_P_ENUM, AT(reuse), "all",
	  "what other streams may take before a wait: all that the three cudaMemPoolReuse switches "
	  "allow, or nothing (all three off)", "all,own" },
	{ "release_threshold", VC_P_SIZE, AT(threshold), "0",
	  "framework=cuda: what is kept when something is waited for "
	  "(cudaMemPoolAttrReleaseThreshold)", NULL },
	{ "grow", VC_P_SIZE, AT(grow), "32MiB",
	  "steps in which memory is taken from the device; not documented, seen by users", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_cuda_async = {
	.name = "cuda_async",
	.summary = "cudaMallocAsync, the driver's pools: two bounds (closed, not driven)",
	.owner = "the driver's pool", .params = async_params, .config_size = sizeof(struct config),
	.state_size = sizeof(struct pool), .init = async_init, .alloc = async_alloc,
	.free = async_free, .use = async_use, .sync = async_sync, .trim = async_trim,
	.fraction = async_fraction, .walk = async_walk, .check = async_check, .fini = async_fini,
};
