/* SPDX-License-Identifier: Apache-2.0 */
/* start_heap.c - see start_heap.h */
#include "simulator/replay/start_heap.h"

int vc_start_heap_tile(struct vc_extent *x, size_t n, struct vc_error *err)
{
	struct vc_extent *seg = NULL;

	for (size_t i = 0; i < n; i++, x++) {
		uint64_t end;

		if (x->what == VC_X_SEGMENT) {
			seg = x;
			continue;
		}
		if (!seg)
			return vc_fail(err, VC_EFORMAT,
				       "the starting heap begins without a segment");
		end = i + 1 < n && x[1].what != VC_X_SEGMENT ? x[1].addr :
							       seg->addr + seg->size;
		if (x->addr < seg->addr || end <= x->addr || end > seg->addr + seg->size)
			return vc_fail(err, VC_EFORMAT, "starting heap: block at %" PRIx64
				       " does not lie in its segment", x->addr);
		x->size = end - x->addr;
		x->stream = seg->stream;
		x->pool = seg->pool;
		x->small = seg->small;
		x->expandable = seg->expandable;
	}
	return VC_OK;
}

uint64_t vc_start_heap_bytes(const struct vc_extent *x, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i].what == VC_X_SEGMENT ? x[i].size : 0;
	return sum;
}

uint64_t vc_start_heap_base(const struct vc_meta *m, const struct vc_event *segment)
{
	for (size_t i = 0; i < m->bases; i++)
		if (m->base[i].addr == segment->addr && m->base[i].device == segment->device)
			return m->base[i].base;
	return 0;
}
