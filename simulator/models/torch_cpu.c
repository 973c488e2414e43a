/* SPDX-License-Identifier: Apache-2.0 */
/* torch_cpu.c - PyTorch's CPU allocator (c10/core/impl/alloc_cpu.cpp, c10/core/CPUAllocator.cpp):
 * posix_memalign for each request, free for each block, and an account of the bytes that were
 * asked for. It caches nothing. Where the C library puts a block is no rule of PyTorch's: the
 * device says, and what may not be is refused. What the C library itself rounds and keeps is not
 * counted. */

#include "simulator/models/chunks.h"

#define ALIGNMENT 64u /* gAlignment in c10/core/alignment.h */

struct state {
	struct vc_chunks k; /* no regions: the live blocks, in a tree through their links, */
	uint32_t root;      /* by address */
	uint64_t granules;  /* of memory behind the blocks */
};

VC_TREAP(by_address, struct vc_chunk, x->addr < y->addr)

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
	const struct state *st = m->state;
	const struct vc_chunk *c = st->k.c, *hit;
	uint32_t below = 0, above = 0;

	for (uint32_t i = st->root; i; i = c[i].kid[c[i].addr <= addr])
		*(c[i].addr <= addr ? &below : &above) = i;
	hit = below && addr - c[below].addr < c[below].size ? &c[below] :
	      above && c[above].addr - addr < size ? &c[above] : NULL;
	if (addr % ALIGNMENT)
		snprintf(m->note, sizeof(m->note), "the address %" PRIx64 " is no multiple of %u",
			 addr, ALIGNMENT);
	else if (hit)
		snprintf(m->note, sizeof(m->note), "a block of %" PRIu64 " bytes at %" PRIx64
			 " has not been freed", hit->size, hit->addr);
	else
		return false;
	return true;
}

static int torch_cpu_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
			   struct vc_error *err)
{
	struct state *st = m->state;
	struct vc_chunks *k = &st->k;
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
	i = vc_chunks_new(k, addr, size, 0);
	by_address_put(k->c, &st->root, i);
	vc_chunks_serve(m, i, rq, out);
	m->now.reserved += size;
	m->now.segments++;
	return VC_DONE;
}

static int torch_cpu_free(struct vc_model *m, struct vc_block *b)
{
	struct state *st = m->state;
	uint32_t i = vc_chunks_unserve(m, b);

	if (!i)
		return VC_DONE;
	by_address_cut(st->k.c, &st->root, i);
	vc_chunks_drop(&st->k, i);
	vc_device_unreserve(m->device, b->addr, b->size);
	m->now.reserved -= b->size;
	m->now.segments--;
	back(m, m->now.reserved);
	return VC_DONE;
}

/* Each block is a segment of its own; the tree is as deep as the logarithm of their number. */
static int walk_below(const struct vc_chunk *c, uint32_t i, vc_extent_fn *fn, void *arg)
{
	struct vc_extent x = { .what = VC_X_SEGMENT, .addr = c[i].addr, .size = c[i].size,
			       .requested = c[i].requested, .allocated = c[i].size,
			       .active = c[i].size };
	int rc = c[i].kid[0] ? walk_below(c, c[i].kid[0], fn, arg) : VC_OK;

	rc = rc < 0 ? rc : fn(arg, &x);
	x = (struct vc_extent){ .what = VC_X_LIVE, .addr = c[i].addr, .size = c[i].size,
				.stream = c[i].stream, .requested = c[i].requested,
				.id = c[i].id };
	rc = rc < 0 ? rc : fn(arg, &x);
	return rc < 0 || !c[i].kid[1] ? rc : walk_below(c, c[i].kid[1], fn, arg);
}

static int torch_cpu_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct state *st = m->state;
	int rc = st->root ? walk_below(st->k.c, st->root, fn, arg) : VC_OK;

	return rc < 0 ? rc : VC_OK;
}

struct tally { uint64_t end, sum; };

static int add_up(void *arg, const struct vc_extent *x)
{
	struct tally *t = arg;

	if (x->what != VC_X_SEGMENT)
		return VC_OK;
	if (x->addr < t->end)
		return VC_EINTERNAL;
	t->end = x->addr + x->size;
	t->sum += x->size;
	return VC_OK;
}

static int torch_cpu_check(const struct vc_model *m, struct vc_error *err)
{
	struct tally t = { 0 };

	if (torch_cpu_walk(m, add_up, &t) < 0)
		return vc_fail(err, VC_EINTERNAL, "torch_cpu: a block below 0x%" PRIx64 " is not "
			       "where it belongs", t.end);
	if (t.sum != m->now.reserved || t.sum != m->now.allocated)
		return vc_fail(err, VC_EINTERNAL, "torch_cpu: blocks sum to %" PRIu64 ", the "
			       "totals say %" PRIu64 " and %" PRIu64, t.sum, m->now.reserved,
			       m->now.allocated);
	return VC_OK;
}

const struct vc_model_type vc_model_torch_cpu = {
	.name = "torch_cpu",
	.summary = "PyTorch's CPU allocator: each request as asked, of the C library",
	.owner = "PyTorch", .state_size = sizeof(struct state), .placed_below = true,
	.alloc = torch_cpu_alloc, .free = torch_cpu_free, .walk = torch_cpu_walk,
	.check = torch_cpu_check, .fini = vc_chunks_fini,
};
