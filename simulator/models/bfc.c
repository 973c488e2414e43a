/* SPDX-License-Identifier: Apache-2.0 */
/* bfc.c - best fit with coalescing: the allocator of TensorFlow, XLA and JAX.
 *
 * After xla/tsl/framework/bfc_allocator.cc (before: tsl/framework, core/common_runtime).
 * Its 21 bins by powers of two, each ordered by size and then address and looked through from the
 * request's own bin upwards, are one order over all free chunks: the smallest that fits, the lowest
 * of equal ones. chunks.h keeps that order. */
#include "simulator/models/bfc.h"

#define MIB (1ull << 20)
#define FIRST_REGION (2 * MIB) /* of a growing pool: 2 MiB, BFCAllocator::BFCAllocator */
#define MAX_SLACK (128 * MIB)  /* a larger remainder is split off, unless fragmentation_fraction */

/* ---- regions ---- */
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
	if (!got && !(b->conf->backpedal == BFC_ONCE && b->backpedalled)) {
		b->backpedalled = true;
		while (!got && (size = back_off(size)) >= rounded)
			got = ask_device(m, size, &addr);
	}
	if (!got)
		return false;
	if (!raised && b->curr < 1ull << 62) /* there it gets 0 in the end, and Extend hangs */
		b->curr *= 2;
	vc_chunks_region(&b->k, addr, size, 0);
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, stream, addr, size);
	return true;
}

/* DeallocateFreeRegions: all regions without a live chunk, if that can help. */
static bool give_back(struct vc_model *m, uint64_t rounded, uint32_t stream)
{
	struct bfc *b = m->state;
	uint64_t idle = 0;

	for (uint32_t i = 0; i < b->k.regions; i++)
		idle += vc_chunks_idle(&b->k, &b->k.region[i]) ? b->k.region[i].size : 0;
	if (!b->collect || !idle || rounded > b->limit - m->now.reserved + idle)
		return false;
	for (uint32_t i = 0; i < b->k.regions; i++)
		if (vc_chunks_idle(&b->k, &b->k.region[i]))
			vc_chunks_give_back(m, &b->k.region[i], stream);
	vc_chunks_pack(&b->k);
	return true;
}

/* ---- entry points ---- */
static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t rounded)
{
	bfc_text_oom(m, rq->size, rounded);
	return vc_model_refuse(m, rq, rounded, m->refusal.alloc_size);
}

static void take(struct vc_model *m, uint32_t i, const struct vc_request *rq, uint64_t rounded,
		 struct vc_block *out)
{
	struct bfc *b = m->state;
	uint64_t size = b->k.c[i].size;
	bool splits = size >= 2 * rounded || size - rounded >= b->split;

	vc_chunks_take(&b->k, i, splits ? rounded : size);
	vc_chunks_serve(m, i, rq, out);
	b->allocs++;
	b->largest = out->size > b->largest ? out->size : b->largest;
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
	VC_HAVE(vc_chunks_room(&b->k, 2, 0), "the bfc model", err);
	i = vc_chunks_best(&b->k, 0, rounded);
	if (!i && extend(m, rounded, rq->stream))
		i = vc_chunks_best(&b->k, 0, rounded);
	if (!i && give_back(m, rounded, rq->stream)) {
		m->now.retries++;
		if (extend(m, rounded, rq->stream))
			i = vc_chunks_best(&b->k, 0, rounded);
	}
	if (!i)
		return refuse(m, rq, rounded);
	take(m, i, rq, rounded, out);
	return VC_DONE;
}

static int bfc_free(struct vc_model *m, struct vc_block *block)
{
	uint32_t i = vc_chunks_unserve(m, block);

	if (i)
		vc_chunks_free(m->state, 0, i);
	return VC_DONE;
}

static int bfc_check(const struct vc_model *m, struct vc_error *err)
{
	const struct bfc *b = m->state;

	if (m->now.reserved > b->limit)
		return vc_fail(err, VC_EINTERNAL, "bfc: more is reserved than the limit");
	return vc_chunks_check(m, err);
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
	b->conf = k;
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
	.name = "bfc",
	.summary = "TensorFlow's, XLA's and JAX's best fit with coalescing, to the byte",
	.owner = "TensorFlow's BFC", .params = bfc_params, .config_size = sizeof(struct bfc_config),
	.state_size = sizeof(struct bfc), .keeps_regions = true, .init = bfc_init,
	.alloc = bfc_alloc, .free = bfc_free, .walk = vc_chunks_walk, .check = bfc_check,
	.fini = vc_chunks_fini,
};
