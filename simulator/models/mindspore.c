/* SPDX-License-Identifier: Apache-2.0 */
/* mindspore.c - MindSpore's best-fit pool on a GPU, after mem_dynamic_allocator.cc,
 * gpu_memory_allocator.cc and cuda_driver.cc of MindSpore 2.0.
 *
 * Free pieces stand in a std::multimap by size, so of equal ones the first that was put in is
 * taken. All requests go to the common pool: the persistent one is for weights, and a recording of
 * another framework does not say which those are. */
#include <inttypes.h>
#include <stdio.h>

#include "simulator/models/chunks.h"

#define ALIGN 512u              /* DYNAMIC_MEM_ALIGN_SIZE; also the smallest remainder */
#define MIN_FREE (10ull << 20)  /* kMinimumAllocMem: with less on the device it does not ask */
#define RETRY_RATE 0.99f        /* mem_malloc_retry_rate_ */
#define RETRIES 11              /* one more than mem_malloc_retry_conut_max_ */
#define RETRY_ALIGN 4           /* mem_malloc_align_size_ */

struct config { uint64_t unit, limit; };
struct state { struct vc_chunks k; uint64_t left; }; /* of the limit */

static uint64_t free_mem_size(const struct vc_model *m)
{
	const struct state *st = m->state;
	uint64_t n = vc_device_available(m->device);

	return n < st->left ? n : st->left;
}

/* CalMemBlockAllocSize; 0: it does not even ask. */
static uint64_t block_size(const struct vc_model *m, uint64_t size)
{
	const struct config *k = m->config;
	uint64_t free = free_mem_size(m), n = k->unit;

	if (free < size || free < MIN_FREE)
		return 0;
	while (n < size)
		n *= 2;
	return n < free ? n : free;
}

/* CudaDriver::AllocDeviceMem: after a refusal somewhat less, computed in 32-bit floating point.
 * What it gets in the end, 0: nothing. */
static uint64_t device_alloc(struct vc_model *m, uint64_t size, uint64_t *addr)
{
	bool got = vc_device_alloc(m->device, size, addr);

	for (int k = 0; !got && k < RETRIES; k++) {
		size = (uint64_t)((float)size * RETRY_RATE) / RETRY_ALIGN * RETRY_ALIGN;
		got = size && vc_device_alloc(m->device, size, addr);
	}
	return got ? size : 0;
}

static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size, uint64_t block)
{
	uint64_t free = free_mem_size(m);

	if (block) /* the exception of GPUMemoryAllocator::AllocDeviceMem */
		snprintf(m->note, sizeof(m->note), "Alloc device memory[%" PRIu64 "] failed.",
			 block);
	else if (free < size)
		snprintf(m->note, sizeof(m->note), "Memory not enough: current free memory size[%"
			 PRIu64 "] is smaller than required size[%" PRIu64 "].", free, size);
	else
		snprintf(m->note, sizeof(m->note), "Device memory size [%" PRIu64 "] is smaller "
			 "than minimum alloc size [%" PRIu64 "].", free, (uint64_t)MIN_FREE);
	return vc_model_refuse(m, rq, size, block);
}

/* AddMemBlockAndMemBuf: the slot of a new block, 0: refused. */
static uint32_t add_block(struct vc_model *m, const struct vc_request *rq, uint64_t size,
			  uint64_t *asked)
{
	struct state *st = m->state;
	uint64_t addr, got;

	*asked = block_size(m, size);
	got = *asked ? device_alloc(m, *asked, &addr) : 0;
	st->left -= got;
	if (got < size) /* what it got is lost: the real one does not keep the address either */
		return 0;
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, rq->stream, addr, got);
	return vc_chunks_region(&st->k, addr, got, 0);
}

static int mindspore_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
			   struct vc_error *err)
{
	struct vc_chunks *k = m->state;
	uint64_t size = rq->size ? vc_chunks_round(rq->size, ALIGN) : ALIGN, asked = 0;
	uint32_t i;

	*out = (struct vc_block){ 0 };
	VC_HAVE(vc_chunks_room(k, 2, 0), "the mindspore model", err);
	if (size < rq->size || size > 1ull << 62)
		return refuse(m, rq, rq->size, 0);
	i = vc_chunks_best(k, 0, size);
	if (!i)
		i = add_block(m, rq, size, &asked);
	if (!i)
		return refuse(m, rq, size, asked);
	vc_chunks_take(k, i, k->c[i].size - size >= ALIGN ? size : k->c[i].size); /* IsSplit */
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

static int mindspore_free(struct vc_model *m, struct vc_block *b)
{
	vc_chunks_free(m->state, 0, vc_chunks_unserve(m, b));
	return VC_DONE;
}

static int mindspore_init(struct vc_model *m, struct vc_error *err)
{
	struct state *st = m->state;
	const struct config *k = m->config;

	if (!k->unit || k->unit > 1ull << 46)
		return vc_fail(err, VC_EUSAGE,
			       "unit is the size of a block, from 1 byte to 64 TiB");
	st->k.by = VC_BY_SIZE_AND_AGE;
	st->left = k->limit;
	return VC_OK;
}

static const struct vc_param mindspore_params[] = {
	{ "unit", VC_P_SIZE, offsetof(struct config, unit), "1GiB",
	  "a new block of the pool has this size, doubled until the request fits "
	  "(mempool_block_size)", NULL },
	{ "limit", VC_P_SIZE, offsetof(struct config, limit), "1024GiB",
	  "most that it takes from the device (max_device_memory)", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_mindspore = {
	.name          = "mindspore",
	.summary       = "MindSpore's pool on a GPU: best fit in blocks of 1 GiB, kept for good",
	.owner         = "MindSpore",
	.params        = mindspore_params,
	.config_size   = sizeof(struct config),
	.state_size    = sizeof(struct state),
	.keeps_regions = true,
	.init          = mindspore_init,
	.alloc         = mindspore_alloc,
	.free          = mindspore_free,
	.walk          = vc_chunks_walk,
	.check         = vc_chunks_check,
	.fini          = vc_chunks_fini,
};
