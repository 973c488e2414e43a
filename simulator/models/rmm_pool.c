/* SPDX-License-Identifier: Apache-2.0 */
/* rmm_pool.c - RMM's pool_memory_resource: coalescing best fit with a list per stream.
 *
 * After rmm/mr/pool_memory_resource.hpp, rmm/mr/detail/stream_ordered_memory_resource.hpp and
 * coalescing_free_list.hpp (to 25.10 below rmm/mr/device). Function names in comments are theirs.
 *
 * A list there is kept by address and searched for the smallest that fits, the first of equal ones:
 * the order of chunks.h. Merging lists block by block ends with the same blocks in any order. */

#include "common/vec.h"
#include "simulator/models/chunks.h"
#include "simulator/models/rmm.h"

/* From which release on: to 25.2 the words are shorter; to 25.10 what is asked from the device is a
 * multiple of 16; to 26.8 a pool keeps all that it has. */
enum { RMM_26_10, RMM_25_12, RMM_25_4, RMM_24_12 };

struct config {
	uint64_t release, maximum; /* maximum 0: none */
	char initial[VC_PARAM_TEXT];
};

struct pool {
	struct vc_chunks k;
	uint32_t *owner; /* streams by the number of their list: in the order of their events, which
			  * CUDA makes at a stream's first call */
	size_t room;    /* of `owner` */
	uint32_t *of;   /* the list of a stream by index, plus one; 0: none yet */
	size_t streams; /* room of `of` */
	bool made;      /* the constructor has run */
};

#define EXCEEDED "std::bad_alloc: out_of_memory: RMM failure: Maximum pool size exceeded"

struct bytes { char s[40]; };

/* rmm::detail::format_bytes */
static struct bytes format_bytes(uint64_t n)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double size = (double)n;
	struct bytes o;
	int i = 0;

	for (; size > 1024; i++) /* 1,024 bytes are not 1 KiB there */
		size /= 1024;
	snprintf(o.s, sizeof(o.s), "%f %s", size, unit[i]);
	return o;
}

/* rmm::out_of_memory of cuda_memory_resource, whose cudaMalloc of `size` bytes failed. */
static void malloc_text(char *to, size_t room, uint64_t size, uint64_t release)
{
	char bytes[64] = "";

	if (release != RMM_24_12)
		snprintf(bytes, sizeof(bytes), " (failed to allocate %" PRIu64 " bytes)", size);
	snprintf(to, room, "std::bad_alloc: out_of_memory: CUDA error%s: cudaErrorMemoryAllocation "
		 "out of memory", bytes);
}

/* The reason for which the pool cannot serve `size` bytes, and the refusal itself. The places in
 * RMM's source that stand in its sentences are left out. */
static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size,
		  const char *reason, uint64_t release)
{
	if (release == RMM_24_12)
		snprintf(m->note, sizeof(m->note), EXCEEDED);
	else
		snprintf(m->note, sizeof(m->note), EXCEEDED " (failed to allocate %s): %s",
			 format_bytes(size).s, reason);
	return vc_model_refuse(m, rq, size, m->refusal.alloc_size);
}

/* What the pool takes at its start: "half" of the free bytes of the device (Python's default:
 * rmm::percent_of_free_device_memory(50)) or a number of bytes; 0 where half of a device without a
 * size would say nothing. */
static int initial_size(const struct vc_model *m, uint64_t *size, struct vc_error *err)
{
	const char *text = ((const struct config *)m->config)->initial;

	if (!strcmp(text, "half"))
		*size = vc_device_config(m->device)->total >= VC_DEVICE_UNLIMITED ?
				0 : vc_device_available(m->device) / 2 / 256 * 256;
	else if (vc_parse_size(text, size, err) < 0)
		return vc_wrap(err, "initial_pool_size");
	return VC_OK;
}

/* What cuda_memory_resource asks cudaMalloc for when the pool asks it for `size` bytes:
 * device_memory_resource::allocate rounds to alignof(std::max_align_t). */
static uint64_t malloc_size(uint64_t size, uint64_t release)
{
	return release <= RMM_25_12 ? size : (size + 15) / 16 * 16;
}

/* get_event: the number of the stream's list; UINT32_MAX: no memory for it here. */
static uint32_t list_of(struct pool *p, uint32_t stream)
{
	if (stream < p->streams && p->of[stream])
		return p->of[stream] - 1;
	if (!vc_vec_zeroed(p->of, p->streams, (size_t)stream + 1) ||
	    !vc_vec_room(p->owner, p->room, p->k.lists + 1) ||
	    !vc_chunks_room(&p->k, 2, p->k.lists))
		return UINT32_MAX;
	p->owner[p->k.lists - 1] = stream;
	p->of[stream] = p->k.lists;
	return p->of[stream] - 1;
}

/* size_to_grow. What is left may be a byte short of a multiple, because halves are not rounded. */
static uint64_t size_to_grow(const struct vc_model *m, uint64_t size)
{
	uint64_t max = ((const struct config *)m->config)->maximum, left;

	if (!max)
		return size > m->now.reserved ? size : m->now.reserved;
	left = (max - m->now.reserved + RMM_ALIGNMENT - 1) / RMM_ALIGNMENT * RMM_ALIGNMENT;
	if (size > left)
		return 0;
	return size > left / 2 ? size : left / 2;
}

/* try_to_expand: the new free chunk, in list `to`; 0: refused, and the reason in `why`. */
static uint32_t expand(struct vc_model *m, uint64_t try, uint64_t size, uint32_t to, char *why,
		       size_t room)
{
	struct pool *p = m->state;
	const struct config *k = m->config;
	uint64_t max = k->maximum, addr;

	m->refusal.alloc_size = size;
	while (try >= size) {
		if (vc_device_alloc(m->device, malloc_size(try, k->release), &addr)) {
			vc_model_tell(m, VC_TR_SEGMENT_ALLOC, p->owner[to], addr, try);
			return vc_chunks_region(&p->k, addr, try, to);
		}
		if (try == size) {
			malloc_text(why, room, size, k->release);
			return 0;
		}
		try = size > try / 2 ? size : try / 2;
	}
	snprintf(why, room, "Not enough room to grow, current/max/try size = %s, %s, %s",
		 format_bytes(m->now.reserved).s, format_bytes(max ? max : UINT64_MAX).s,
		 format_bytes(size).s);
	return 0;
}

/* reclaim_free_blocks (26.10 on): a pool that has reached its maximum gives back pieces that are
 * free as a whole, from low to high addresses, until the request is below it. */
static void reclaim(struct vc_model *m, uint64_t size, uint32_t own)
{
	struct pool *p = m->state;
	uint64_t max = ((const struct config *)m->config)->maximum;

	for (uint32_t i = 0; i < p->k.regions; i++) {
		struct vc_region *r = &p->k.region[i];

		if (max >= size && max - m->now.reserved < size && vc_chunks_idle(&p->k, r) &&
		    p->k.c[r->first].stream == own)
			vc_chunks_give_back(m, r, p->owner[own]);
	}
	vc_chunks_pack(&p->k);
}

/* expand_pool */
static uint32_t grow(struct vc_model *m, uint64_t size, uint32_t own, char *why, size_t room)
{
	const struct config *k = m->config;

	if (k->release == RMM_26_10 && k->maximum && size_to_grow(m, size) < size)
		reclaim(m, size, own);
	return expand(m, size_to_grow(m, size), size, own, why, room);
}

/* get_block without its growth: own list, other lists, then other lists merged into the own. */
static uint32_t find(struct pool *p, uint32_t own, uint64_t size)
{
	uint32_t i = vc_chunks_best(&p->k, own, size);

	for (uint32_t l = 0; !i && l < p->k.lists; l++)
		i = l == own ? 0 : vc_chunks_best(&p->k, l, size);
	for (uint32_t l = 0; !i && l < p->k.lists; l++) {
		if (l == own)
			continue;
		vc_chunks_move(&p->k, l, own); /* merge_lists */
		i = vc_chunks_best(&p->k, own, size);
	}
	return i;
}

/* The constructor: its first piece belongs to the default stream, whose event is then the first. */
static int make(struct vc_model *m, const struct vc_request *rq, struct vc_error *err)
{
	struct pool *p = m->state;
	const struct config *k = m->config;
	uint64_t initial;
	char why[512];

	VC_TRY(initial_size(m, &initial, err));
	VC_HAVE(!initial || list_of(p, 0) != UINT32_MAX, "the rmm_pool model", err);
	if (initial && !expand(m, initial, initial, 0, why, sizeof(why)))
		return refuse(m, rq, initial, why, k->release);
	p->made = true;
	return VC_DONE;
}

static int pool_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		      struct vc_error *err)
{
	struct pool *p = m->state;
	uint64_t release = ((const struct config *)m->config)->release;
	uint64_t size = (rq->size + RMM_ALIGNMENT - 1) / RMM_ALIGNMENT * RMM_ALIGNMENT;
	uint32_t own, i;
	char why[512];
	int r;

	*out = (struct vc_block){ 0 };
	if (!p->made && (r = make(m, rq, err)) != VC_DONE)
		return r;
	if (!rq->size) /* a null pointer */
		return VC_DONE;
	own = list_of(p, rq->stream);
	VC_HAVE(own != UINT32_MAX && vc_chunks_room(&p->k, 2, own), "the rmm_pool model", err);
	if (size < rq->size)
		return refuse(m, rq, rq->size, "more than 2^64 bytes", release);
	i = find(p, own, size);
	if (!i)
		i = grow(m, size, own, why, sizeof(why));
	if (!i)
		return refuse(m, rq, size, why, release);
	/* allocate_and_insert_remainder: the rest stays with the list that gave. */
	vc_chunks_take(&p->k, i, size);
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

void rmm_pool_free_on(struct vc_model *m, struct vc_block *block, uint32_t stream)
{
	struct pool *p = m->state;
	uint32_t i = vc_chunks_unserve(m, block), to;

	if (!i)
		return;
	to = list_of(p, stream);
	if (to == UINT32_MAX) /* never for the stream of a request */
		to = list_of(p, p->k.c[i].stream);
	vc_chunks_free(&p->k, to, i);
}

static int pool_free(struct vc_model *m, struct vc_block *block)
{
	const struct pool *p = m->state;
	uint32_t i = (uint32_t)(uintptr_t)block->cookie;

	rmm_pool_free_on(m, block, i ? p->k.c[i].stream : 0);
	return VC_DONE;
}

static int pool_init(struct vc_model *m, struct vc_error *err)
{
	const struct config *k = m->config;
	uint64_t initial;

	VC_TRY(initial_size(m, &initial, err));
	if (initial % RMM_ALIGNMENT || k->maximum % RMM_ALIGNMENT)
		return vc_fail(err, VC_EUSAGE,
			       "initial_pool_size and maximum_pool_size are multiples of 256 bytes "
			       "in RMM");
	if (k->maximum && initial > k->maximum)
		return vc_fail(err, VC_EUSAGE, "initial_pool_size, %s, is more than "
			       "maximum_pool_size, %s", format_bytes(initial).s,
			       format_bytes(k->maximum).s);
	return VC_OK;
}

static void pool_fini(struct vc_model *m)
{
	struct pool *p = m->state;

	VC_FREE(p->owner, p->of);
	vc_chunks_fini(m);
}

static const struct vc_param pool_params[] = {
	{ "initial_pool_size", VC_P_TEXT, offsetof(struct config, initial), "half",
	  "what it takes at its start: half of the free bytes of the card (as in Python; without a "
	  "card 0), or so many bytes", NULL },
	{ "maximum_pool_size", VC_P_SIZE, offsetof(struct config, maximum), "0",
	  "most that it takes from the device; 0: no limit", NULL },
	{ "release", VC_P_ENUM, offsetof(struct config, release), "26.10",
	  "whose rules and words: those of RMM from this release on (24.12: as far back as read)",
	  "26.10,25.12,25.4,24.12" },
	VC_PARAM_END };

const struct vc_model_type vc_model_rmm_pool = {
	.name = "rmm_pool",
	.summary = "RMM's pool: coalescing best fit with a list per stream, to the byte",
	.owner = "RMM's pool", .params = pool_params, .config_size = sizeof(struct config),
	.state_size = sizeof(struct pool), .keeps_regions = true, .init = pool_init,
	.alloc = pool_alloc, .free = pool_free, .walk = vc_chunks_walk, .check = vc_chunks_check,
	.fini = pool_fini,
};
