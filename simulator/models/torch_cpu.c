/* SPDX-License-Identifier: Apache-2.0 */
/* torch_cpu.c - PyTorch's CPU allocator (c10/core/impl/alloc_cpu.cpp, c10/core/CPUAllocator.cpp):
 * posix_memalign for each request, free for each block, and an account of the bytes that were
 * asked for. It caches nothing. Where the C library puts a block is no rule of PyTorch's: the
 * device says, and what may not be is refused. What the C library itself rounds and keeps is not
 * counted. */

#include "simulator/models/chunks.h"

#define ALIGNMENT 64u /* gAlignment in c10/core/alignment.h */

struct state { struct vc_chunks k; uint64_t granules; }; /* of memory behind the blocks */

/* Memory comes in granules, which blocks share. */
static bool back(struct vc_model *m, uint64_t bytes)
{
	struct state *st = m->state;
	uint64_t granules = vc_chunks_round(bytes, VC_DEVICE_GRANULE) / VC_DEVICE_GRANULE;

	if (granules > st->granules &&
	    !vc_device_create(m->device, (granules - st->granules) * VC_DEVICE_GRANULE))
		return false;
	if (granules < st->granules)
		vc_device_release(m->device, (st->granules - granules) * VC_DEVICE_GRANULE);
	st->granules = granules;
	return true;
}

/* Only a device that follows a recording can say such a thing: an event of it is missing. */
static bool is_impossible(struct vc_model *m, uint64_t addr, uint64_t size)
{
	const struct vc_chunks *k = m->state;
	size_t next = vc_first_above(k->region, k->regions, addr, addr);
	const struct vc_region *r = next ? &k->region[next - 1] : NULL;

	if (addr % ALIGNMENT)
		snprintf(m->note, sizeof(m->note), "the address %" PRIx64 " is no multiple of %u",
			 addr, ALIGNMENT);
	else if (r && addr - r->addr < r->size)
		snprintf(m->note, sizeof(m->note), "a block of %" PRIu64 " bytes at %" PRIx64
			 " has not been freed", r->size, r->addr);
	else if (next < k->regions && k->region[next].addr - addr < size)
		snprintf(m->note, sizeof(m->note), "a block of %" PRIu64 " bytes at %" PRIx64
			 " has not been freed", k->region[next].size, k->region[next].addr);
	else
		return false;
	return true;
}

static int torch_cpu_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
			   struct vc_error *err)
{
	struct vc_chunks *k = m->state;
	uint64_t addr, size = rq->size ? rq->size : 1;
	uint32_t i;

	*out = (struct vc_block){ 0 };
	VC_HAVE(vc_chunks_room(k, 1, 0), "the CPU allocator", err);
	if (size > vc_device_config(m->device)->total || !back(m, m->now.reserved + size)) {
		snprintf(m->note, sizeof(m->note), "DefaultCPUAllocator: can't allocate memory: "
			 "you tried to allocate %" PRIu64 " bytes. Error code 12 (Cannot allocate "
			 "memory)", rq->size);
		return vc_model_refuse(m, rq, size, size);
	}
	vc_device_reserve(m->device, size, &addr);
	if (is_impossible(m, addr, size)) {
		vc_device_unreserve(m->device, addr, size);
		back(m, m->now.reserved);
		return VC_RAISED;
	}
	i = vc_chunks_region(k, addr, size, 0);
	vc_chunks_take(k, i, size);
	vc_chunks_serve(m, i, rq, out);
	m->now.reserved += size;
	m->now.segments++;
	return VC_DONE;
}

static int torch_cpu_free(struct vc_model *m, struct vc_block *b)
{
	uint32_t i = vc_chunks_unserve(m, b);

	if (!i)
		return VC_DONE;
	vc_chunks_lose(m->state, i);
	vc_device_unreserve(m->device, b->addr, b->size);
	m->now.reserved -= b->size;
	m->now.segments--;
	back(m, m->now.reserved);
	return VC_DONE;
}

const struct vc_model_type vc_model_torch_cpu = {
	.name = "torch_cpu",
	.summary = "PyTorch's CPU allocator: each request as asked, of the C library",
	.owner = "PyTorch", .state_size = sizeof(struct state), .placed_below = true,
	.alloc = torch_cpu_alloc, .free = torch_cpu_free, .walk = vc_chunks_walk,
	.check = vc_chunks_check, .fini = vc_chunks_fini,
};
