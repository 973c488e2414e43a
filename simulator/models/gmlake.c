/* SPDX-License-Identifier: Apache-2.0 */
/* gmlake.c - GMLake (ASPLOS'24): PyTorch's caching allocator whose large free blocks are stitched.
 *
 * After GMLake/src/CUDACachingAllocator.cpp of antgroup/glake (for PyTorch 2.0); function names in
 * comments are theirs. Read, not driven. Large blocks are pieces of virtual segments in pages of
 * 2 MiB. A stitched ("fused") block is another range of addresses mapped on the pages of several
 * free blocks. It is kept when it is freed: then its pages serve the blocks that they belong to
 * again, and it serves a later request whenever all its pages are free.
 *
 * Here a fused block is a list of spans of pages. While it is in use, the chunks that its pages
 * make up are live; walk() shows the request in the first of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/vec.h"
#include "simulator/models/chunks.h"
#include "simulator/models/torch_size.h"

#define MIB (1ull << 20)
#define MIN_BLOCK 512u          /* kMinBlockSize */
#define SMALL_SIZE (1 * MIB)    /* kSmallSize: largest request of the small pool */
#define SMALL_BUFFER (2 * MIB)  /* kSmallBuffer */
#define LARGE_BUFFER (20 * MIB) /* kLargeBuffer */
#define LARGE_ALLOC (10 * MIB)  /* kMinLargeAlloc: from here on a segment of its own size */
#define PAGE (2 * MIB)          /* kGranularity */
#define FUSED 0x80000000u       /* cookies of fused blocks */

struct config { uint64_t frag_limit, level, auto_gc; double reuse_limit; };

struct span { uint64_t addr, size; uint32_t chunk; }; /* chunk: while in use */

struct fused {
	uint64_t addr, size; /* size 0: slot not in use */
	uint64_t busy;       /* bytes of its pages that are in use, by itself or by others */
	uint64_t used, requested; /* used 0: not in use itself */
	struct span *span;
	uint32_t spans, stream;
	bool doomed; /* goes when it is freed: some of its pages went */
};

struct lake {
	struct vc_chunks k; /* list 2 * stream: small blocks, + 1: large ones */
	const struct config *conf;
	struct fused *f;
	size_t fuseds, cap;
	uint32_t *pick; /* chunks of the block that is being stitched */
	size_t picked, room;
	uint64_t stitched; /* total_fuse_size */
	uint64_t limit;    /* set_per_process_memory_fraction */
};

/* ---- pages ---- */
static uint64_t overlap(uint64_t a, uint64_t n, uint64_t b, uint64_t m)
{
	uint64_t from = a > b ? a : b, to = a + n < b + m ? a + n : b + m;

	return to > from ? to - from : 0;
}

/* Pages begin (sign 1) or end to be in use. */
static void touch(struct lake *g, uint64_t addr, uint64_t size, int64_t sign)
{
	for (size_t i = 0; i < g->fuseds; i++)
		for (uint32_t k = 0; k < g->f[i].spans; k++)
			g->f[i].busy += (uint64_t)sign * overlap(g->f[i].span[k].addr,
								 g->f[i].span[k].size, addr, size);
}

/* The free chunk in which a page lies. */
static uint32_t chunk_at(const struct lake *g, uint64_t addr)
{
	uint32_t i = vc_chunks_at(&g->k, addr)->first;

	while (g->k.c[i].addr + g->k.c[i].size <= addr)
		i = g->k.c[i].next;
	return i;
}

/* Free pages become a live chunk that serves no request by itself. */
static uint32_t carve(struct vc_model *m, uint64_t addr, uint64_t size, uint32_t stream)
{
	struct lake *g = m->state;
	uint32_t i = chunk_at(g, addr);

	if (g->k.c[i].addr < addr) {
		uint32_t low = i;

		vc_chunks_take(&g->k, low, addr - g->k.c[low].addr);
		vc_chunks_put(&g->k, low);
		i = g->k.c[low].next;
	}
	vc_chunks_take(&g->k, i, size);
	touch(g, addr, size, 1);
	g->k.c[i].live = true;
	g->k.c[i].id = g->k.c[i].requested = 0;
	g->k.c[i].stream = stream;
	return i;
}

/* ---- fused blocks ---- */
/* Its chunks show the request: the first one its number, each of them its part of the bytes. */
static void serve_fused(struct vc_model *m, uint32_t n, const struct vc_request *rq, uint64_t size,
			struct vc_block *out)
{
	struct lake *g = m->state;
	struct fused *f = &g->f[n];
	uint64_t left = rq->size;

	for (uint32_t k = 0; k < f->spans && f->span[k].chunk; k++) {
		struct vc_chunk *c = &g->k.c[f->span[k].chunk];

		c->requested = left < c->size ? left : c->size;
		c->id = k ? 0 : rq->id;
		left -= c->requested;
	}
	f->used = size;
	f->requested = rq->size;
	m->now.requested += rq->size;
	m->now.allocated += size;
	m->now.active += size;
	*out = (struct vc_block){ f->addr, size, (void *)(uintptr_t)(FUSED | n) };
}

/* get_free_block: the smallest fused block that is large enough and not too large, plus one. */
static uint32_t find_fused(const struct lake *g, uint32_t stream, uint64_t size)
{
	uint32_t best = 0;

	for (size_t i = 0; i < g->fuseds; i++) {
		const struct fused *f = &g->f[i], *b = &g->f[best ? best - 1 : 0];

		if (f->size < size || f->busy || f->stream != stream ||
		    (double)f->size > (double)size * g->conf->reuse_limit)
			continue;
		if (!best || f->size < b->size || (f->size == b->size && f->addr < b->addr))
			best = (uint32_t)i + 1;
	}
	return best;
}

/* Its first pages; what it has beyond that stays with the blocks below. */
static void take_fused(struct vc_model *m, uint32_t n, uint64_t size)
{
	struct lake *g = m->state;

	for (uint32_t k = 0; k < g->f[n].spans; k++) {
		struct span *s = &g->f[n].span[k];
		uint64_t part = s->size < size ? s->size : size;

		s->chunk = part ? carve(m, s->addr, part, g->f[n].stream) : 0;
		size -= part;
	}
}

static void drop_fused(struct vc_model *m, struct fused *f)
{
	struct lake *g = m->state;

	vc_device_unmap(m->device, f->addr, f->size);
	vc_device_unreserve(m->device, f->addr, f->size);
	g->stitched -= f->size;
	free(f->span);
	*f = (struct fused){ 0 };
}

/* garbage_collect_fused_blocks(2, 0): all that are not in use themselves. */
static void collect_fused(struct vc_model *m)
{
	struct lake *g = m->state;

	for (size_t i = 0; i < g->fuseds; i++)
		if (g->f[i].size && !g->f[i].used)
			drop_fused(m, &g->f[i]);
	while (g->fuseds && !g->f[g->fuseds - 1].size)
		g->fuseds--;
}

static uint32_t fused_slot(struct lake *g)
{
	uint32_t n = 0;

	while (n < g->fuseds && g->f[n].size)
		n++;
	return n;
}

static void unpick(struct lake *g)
{
	while (g->picked)
		vc_chunks_put(&g->k, g->pick[--g->picked]);
}

/* The largest free blocks of the stream until their sum is enough; false: it never is. */
static bool pick(struct lake *g, uint32_t list, uint64_t size, uint64_t *sum)
{
	uint32_t i;

	g->picked = 0;
	*sum = 0;
	while (*sum < size && (i = vc_chunks_largest(&g->k, list)) &&
	       vc_vec_room(g->pick, g->room, g->picked + 1)) {
		vc_chunks_cut(&g->k, i);
		g->pick[g->picked++] = i;
		*sum += g->k.c[i].size;
	}
	if (*sum >= size && g->picked > 1)
		return true;
	unpick(g);
	return false;
}

/* get_fused_fragmented_blocks: the number of a new fused block plus one; 0: none, or < 0. */
static int64_t stitch(struct vc_model *m, uint32_t stream, uint64_t size, uint64_t time)
{
	struct lake *g = m->state;
	uint32_t list = 2 * stream + 1, n = fused_slot(g);
	struct fused f = { .size = size, .busy = size, .stream = stream };
	uint64_t sum, over;

	if (time < g->conf->level || size < g->conf->frag_limit ||
	    !vc_vec_zeroed(g->f, g->cap, (size_t)n + 1) || !pick(g, list, size, &sum))
		return 0;
	f.spans = (uint32_t)g->picked;
	f.span = calloc(g->picked, sizeof(*f.span));
	if (!f.span || !vc_device_reserve(m->device, size, &f.addr)) {
		unpick(g);
		free(f.span);
		return VC_ENOMEM;
	}
	over = sum - size;
	for (uint32_t k = 0; k < f.spans; k++) {
		uint32_t i = g->pick[k];
		struct vc_chunk *c = &g->k.c[i];
		uint64_t part = c->size - (k + 1 == f.spans ? over : 0);

		vc_chunks_put(&g->k, i);
		f.span[k] = (struct span){ c->addr, part, carve(m, c->addr, part, stream) };
	}
	for (uint64_t at = 0; at < size; at += PAGE)
		vc_device_map(m->device, f.addr + at, PAGE);
	g->f[n] = f;
	g->fuseds = n < g->fuseds ? g->fuseds : (size_t)n + 1;
	g->stitched += size;
	return (int64_t)n + 1;
}

/* ---- segments ---- */
/* VmmSegment: addresses, and pages one by one. */
static bool create(struct vc_model *m, uint64_t size, uint64_t *addr)
{
	uint64_t n = 0;

	while (n < size && vc_device_create(m->device, PAGE))
		n += PAGE;
	if (n == size && vc_device_reserve(m->device, size, addr)) {
		for (n = 0; n < size; n += PAGE)
			vc_device_map(m->device, *addr + n, PAGE);
		return true;
	}
	for (; n; n -= PAGE)
		vc_device_release(m->device, PAGE);
	return false;
}

/* realloc_block: a free chunk of a new segment, 0: none. */
static uint32_t grow(struct vc_model *m, uint32_t list, uint64_t size)
{
	struct lake *g = m->state;
	bool large = list & 1;
	uint64_t bytes = !large ? SMALL_BUFFER : size < LARGE_ALLOC ? LARGE_BUFFER : size, addr;

	m->refusal.alloc_size = bytes;
	if (bytes > g->limit || m->now.reserved > g->limit - bytes ||
	    !(large ? create(m, bytes, &addr) : vc_device_alloc(m->device, bytes, &addr)))
		return 0;
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, list / 2, addr, bytes);
	return vc_chunks_region(&g->k, addr, bytes, list);
}

/* The bytes in use among the pages of a fused block, counted anew. */
static uint64_t busy(const struct lake *g, const struct fused *f)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < f->spans; k++)
		for (uint32_t i = chunk_at(g, f->span[k].addr);
		     i && g->k.c[i].addr < f->span[k].addr + f->span[k].size; i = g->k.c[i].next)
			sum += !g->k.c[i].live ? 0 : overlap(g->k.c[i].addr, g->k.c[i].size,
							     f->span[k].addr, f->span[k].size);
	return sum;
}

/* Pages of the fused block go. While it is in use they are among those that its request does not
 * need, which stand last. */
static void lose_pages(struct vc_model *m, struct fused *f)
{
	const struct lake *g = m->state;

	if (!f->used) {
		drop_fused(m, f);
		return;
	}
	while (f->spans && !f->span[f->spans - 1].chunk)
		f->spans--;
	f->busy = busy(g, f);
	f->doomed = true;
}

static void release_region(struct vc_model *m, struct vc_region *r)
{
	struct lake *g = m->state;
	uint32_t list = g->k.c[r->first].stream;
	bool large = list & 1;

	for (size_t i = 0; large && i < g->fuseds; i++)
		for (uint32_t k = 0; k < g->f[i].spans; k++)
			if (overlap(g->f[i].span[k].addr, g->f[i].span[k].size, r->addr, r->size)) {
				lose_pages(m, &g->f[i]);
				break;
			}
	if (!large) {
		vc_chunks_give_back(m, r, list / 2);
		return;
	}
	vc_chunks_forget(&g->k, r);
	vc_model_tell(m, VC_TR_SEGMENT_FREE, list / 2, r->addr, r->size);
	for (uint64_t n = 0; n < r->size; n += PAGE) {
		vc_device_unmap(m->device, r->addr + n, PAGE);
		vc_device_release(m->device, PAGE);
	}
	vc_device_unreserve(m->device, r->addr, r->size);
}

/* release_cached_blocks: segments without a live block, and what is stitched of their pages. */
static void release_cached(struct vc_model *m)
{
	struct vc_chunks *k = m->state;

	for (uint32_t i = 0; i < k->regions; i++)
		if (vc_chunks_idle(k, &k->region[i]))
			release_region(m, &k->region[i]);
	vc_chunks_pack(k);
}

/* ---- entry points ---- */
static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size)
{
	const struct lake *g = m->state;
	const struct vc_device_config *d = vc_device_config(m->device);
	char allowed[64] = "";

	if (g->limit != UINT64_MAX)
		snprintf(allowed, sizeof(allowed), "%s allowed; ", torch_size_text(g->limit).s);
	snprintf(m->note, sizeof(m->note), "CUDA out of memory. Tried to allocate %s (GPU %u; %s "
		 "total capacity; %s already allocated; %s free; %s%s reserved in total by "
		 "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb "
		 "to avoid fragmentation.  See documentation for Memory Management and "
		 "PYTORCH_CUDA_ALLOC_CONF", torch_size_text(m->refusal.alloc_size).s, d->index,
		 torch_size_text(d->total).s, torch_size_text(m->now.allocated).s,
		 torch_size_text(vc_device_available(m->device)).s, allowed,
		 torch_size_text(m->now.reserved).s);
	return vc_model_refuse(m, rq, size, m->refusal.alloc_size);
}

/* Where a request goes: a chunk in *i, or a fused block plus one in *n, or neither; < 0: failure.
 * The order of malloc(). */
static int find(struct vc_model *m, uint32_t stream, uint64_t size, uint32_t *i, int64_t *n)
{
	struct lake *g = m->state;
	bool large = size > SMALL_SIZE;
	uint32_t list = 2 * stream + large;

	*n = 0;
	*i = vc_chunks_best(&g->k, list, size);
	if (*i)
		return VC_OK;
	if (large && (*n = find_fused(g, stream, size)) > 0) {
		if (!vc_chunks_room(&g->k, 2 + 2 * (size_t)g->f[*n - 1].spans, list))
			return VC_ENOMEM;
		take_fused(m, (uint32_t)*n - 1, size);
		return VC_OK;
	}
	for (uint64_t time = 0; time < 3 && !*i; time++) {
		if (large && (*n = stitch(m, stream, size, time)) != 0)
			return *n < 0 ? VC_ENOMEM : VC_OK;
		if (time == 1) {
			release_cached(m);
			m->now.retries++;
		}
		*i = time < 2 ? grow(m, list, size) : 0;
	}
	return VC_OK;
}

static int lake_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		      struct vc_error *err)
{
	struct lake *g = m->state;
	uint64_t size = vc_chunks_round(rq->size, rq->size > SMALL_SIZE ? PAGE : MIN_BLOCK);
	uint32_t i;
	int64_t n;

	*out = (struct vc_block){ 0 };
	if (!rq->size) /* a null pointer */
		return VC_DONE;
	VC_HAVE(vc_chunks_room(&g->k, 8, 2 * rq->stream + 1), "the gmlake model", err);
	if (size < rq->size || size > 1ull << 46)
		return refuse(m, rq, rq->size);
	if (find(m, rq->stream, size, &i, &n) < 0)
		return vc_nomem(err, "the gmlake model");
	if (n) {
		serve_fused(m, (uint32_t)n - 1, rq, size, out);
		if (g->stitched > g->conf->auto_gc)
			collect_fused(m);
		return VC_DONE;
	}
	if (!i)
		return refuse(m, rq, size);
	vc_chunks_take(&g->k, i, size);
	if (size > SMALL_SIZE)
		touch(g, g->k.c[i].addr, size, 1);
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

static void give_back(struct lake *g, uint32_t i, bool large)
{
	uint32_t list = 2 * g->k.c[i].stream + large;

	if (large)
		touch(g, g->k.c[i].addr, g->k.c[i].size, -1);
	vc_chunks_free(&g->k, list, i);
}

static int lake_free(struct vc_model *m, struct vc_block *block)
{
	struct lake *g = m->state;
	uint32_t i = (uint32_t)(uintptr_t)block->cookie;
	struct fused *f;

	if (!i)
		return VC_DONE;
	if (!(i & FUSED)) {
		vc_chunks_unserve(m, block);
		give_back(g, i, g->k.c[i].size > SMALL_SIZE);
		return VC_DONE;
	}
	f = &g->f[i & ~FUSED];
	m->now.requested -= f->requested;
	m->now.allocated -= f->used;
	m->now.active -= f->used;
	f->used = 0;
	for (uint32_t k = 0; k < f->spans && f->span[k].chunk; k++) {
		give_back(g, f->span[k].chunk, true);
		f->span[k].chunk = 0;
	}
	if (f->doomed)
		drop_fused(m, f);
	return VC_DONE;
}

static int lake_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	(void)pool, (void)err;
	release_cached(m);
	return VC_DONE;
}

static int lake_fraction(struct vc_model *m, double f, struct vc_error *err)
{
	struct lake *g = m->state;

	(void)err;
	g->limit = (uint64_t)(f * (double)vc_device_config(m->device)->total);
	return VC_DONE;
}

static int lake_check(const struct vc_model *m, struct vc_error *err)
{
	const struct lake *g = m->state;

	for (size_t i = 0; i < g->fuseds; i++)
		if (busy(g, &g->f[i]) != g->f[i].busy || g->f[i].used > g->f[i].busy)
			return vc_fail(err, VC_EINTERNAL, "gmlake: of the fused block at 0x%" PRIx64
				       " %" PRIu64 " bytes are in use, not %" PRIu64, g->f[i].addr,
				       busy(g, &g->f[i]), g->f[i].busy);
	return vc_chunks_check(m, err);
}

static int lake_init(struct vc_model *m, struct vc_error *err)
{
	struct lake *g = m->state;

	g->conf = m->config;
	g->limit = UINT64_MAX;
	if (!(g->conf->reuse_limit >= 1))
		return vc_fail(err, VC_EUSAGE, "reuse_limit is at least 1, not %g",
			       g->conf->reuse_limit);
	return VC_OK;
}

static void lake_fini(struct vc_model *m)
{
	struct lake *g = m->state;

	for (size_t i = 0; i < g->fuseds; i++)
		free(g->f[i].span);
	VC_FREE(g->f, g->pick);
	vc_chunks_fini(m);
}

#define AT(field) offsetof(struct config, field)

static const struct vc_param lake_params[] = {
	{ "frag_limit", VC_P_SIZE, AT(frag_limit), "512MiB",
	  "smallest request that is stitched (fragLimit)", NULL },
	{ "reuse_limit", VC_P_REAL, AT(reuse_limit), "10",
	  "a stitched block serves requests down to one part in so many of its size (reuseLimit)",
	  NULL },
	{ "defrag_level", VC_P_UINT, AT(level), "0",
	  "0: stitch before new memory is asked for; 1: when there is none; 2: when the cache was "
	  "given back, too (defragLevel)", NULL },
	{ "auto_gc", VC_P_SIZE, AT(auto_gc), "1000GiB",
	  "stitched addresses are given up above so much of them (autoGC, there in GiB)", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_gmlake = {
	.name        = "gmlake",
	.summary     = "GMLake: large free blocks of PyTorch are stitched (read, not driven)",
	.owner       = "GMLake",
	.params      = lake_params,
	.config_size = sizeof(struct config),
	.state_size  = sizeof(struct lake),
	.init        = lake_init,
	.alloc       = lake_alloc,
	.free        = lake_free,
	.trim        = lake_trim,
	.fraction    = lake_fraction,
	.walk        = vc_chunks_walk,
	.check       = lake_check,
	.fini        = lake_fini,
};
