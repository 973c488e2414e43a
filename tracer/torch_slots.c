/* SPDX-License-Identifier: Apache-2.0 */
/* torch_slots.c - where the functions of PyTorch's CUDA allocator stand in its vtable.
 *
 * Computed by a C++ compiler from each version's own c10/cuda/CUDACachingAllocator.h (the value
 * of a pointer to member is 1 + 8 * slot in the Itanium ABI). Slot 2, `allocate`, has never
 * moved. */
#include "tracer/torch.h"

static const struct vc_torch_slots table[] = {
	{ .first = 0, .last = 0, .raw_alloc = 4, .raw_alloc_with_stream = 5, .fraction = 9,
	  .trim = 10, .use = 13, .pool_begin = 18, .pool_end = 19, .pool_release = 21,
	  .pool_style = VC_POOL_BY_GRAPH },
	{ .first = 1, .last = 2, .raw_alloc = 4, .raw_alloc_with_stream = 5, .fraction = 9,
	  .trim = 10, .use = 13, .pool_begin = 18, .pool_end = 19, .pool_release = 20,
	  .pool_style = VC_POOL_BY_STREAM },
	{ .first = 3, .last = 4, .raw_alloc = 6, .raw_alloc_with_stream = 7, .fraction = 11,
	  .trim = 12, .use = 15, .pool_begin = 20, .pool_end = 21, .pool_release = 22 },
	{ .first = 5, .last = 5, .raw_alloc = 6, .raw_alloc_with_stream = 7, .fraction = 11,
	  .trim = 12, .use = 15, .pool_begin = 20, .pool_end = 21, .pool_release = 22 },
	{ .first = 6, .last = 7, .raw_alloc = 6, .raw_alloc_with_stream = 7, .fraction = 12,
	  .trim = 13, .use = 18, .pool_begin = 23, .pool_end = 24, .pool_release = 25,
	  .pool_create = 27 },
	{ .first = 8, .last = 8, .raw_alloc = 6, .raw_alloc_with_stream = 7, .fraction = 12,
	  .trim = 13, .use = 18, .pool_begin = 23, .pool_end = 24, .pool_release = 25,
	  .pool_create = 27, .use_on_oom = 28, .trim_takes_pool = 1 },
	{ .first = 9, .last = 9, .raw_alloc = 12, .raw_alloc_with_stream = 13, .fraction = 17,
	  .trim = 7, .use = 22, .pool_begin = 24, .pool_end = 25, .pool_release = 26,
	  .pool_create = 28, .use_on_oom = 29, .trim_takes_pool = 1 },
	{ .first = 10, .last = 12, .raw_alloc = 13, .raw_alloc_with_stream = 14, .fraction = 18,
	  .trim = 7, .use = 24, .pool_begin = 26, .pool_end = 27, .pool_release = 28,
	  .pool_create = 30, .use_on_oom = 31, .no_split = 32, .trim_takes_pool = 1 },
	{ .first = 13, .last = 15, .raw_alloc = 13, .raw_alloc_with_stream = 14, .fraction = 18,
	  .trim = 7, .use = 24, .pool_begin = 26, .pool_end = 27, .pool_release = 30,
	  .pool_create = 32, .use_on_oom = 33, .no_split = 34, .trim_takes_pool = 1 },
};

/* Of a version nobody has looked at: only what has never moved. */
static const struct vc_torch_slots unknown = { .first = 0 };

const struct vc_torch_slots *vc_torch_slots(int minor)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (minor >= table[i].first && minor <= table[i].last)
			return &table[i];
	return &unknown;
}
