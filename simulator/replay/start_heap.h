/* SPDX-License-Identifier: Apache-2.0 */
/* start_heap.h - the heap that a recording begins with, as a list of segments and their blocks. */
#ifndef VC_START_HEAP_H
#define VC_START_HEAP_H

#include "common/error.h"
#include "simulator/replay/model.h"

/* Blocks tile their segment: real sizes are the distances between addresses. Each block gets its
 * size and what else its segment says, each segment the sums of its blocks. Errors: VC_EFORMAT. */
int vc_start_heap_tile(struct vc_extent *x, size_t n, struct vc_error *err);

#endif
