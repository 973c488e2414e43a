/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_rewind.h - the heap at the first event: the final heap, played backwards. */
#pragma once

#include "simulator/sources/snapshot_tree.h"

/* Segments in address order, blocks of each tile it. */
struct snapshot_heap {
	struct snapshot_segment *segment; size_t segments;
	struct snapshot_block *block; size_t blocks, cap;
	uint64_t contradictions; /* events that do not fit the state around them */
};

/* The heap of one device as listed at the end, sorted by address. */
int snapshot_final_heap(const struct snapshot *s, uint16_t device, struct snapshot_heap *h,
			struct vc_error *err);
/* The same heap before the events of that device. */
int snapshot_start_heap(const struct snapshot *s, uint16_t device, struct snapshot_heap *h,
			struct vc_error *err);
void snapshot_heap_fini(struct snapshot_heap *h);
