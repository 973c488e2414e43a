/* SPDX-License-Identifier: Apache-2.0 */
/* start_heap.h - the heap that a recording begins with, as a list of segments and their blocks. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/meta.h"
#include "simulator/replay/model.h"

/* Blocks tile their segment: real sizes are the distances between addresses. Each block gets its
 * size and what else its segment says. Errors: VC_EFORMAT. */
int vc_start_heap_tile(struct vc_extent *x, size_t n, struct vc_error *err);
/* Bytes of all segments. */
uint64_t vc_start_heap_bytes(const struct vc_extent *x, size_t n);
/* Where the range of addresses begins in which a segment lies; 0: nobody recorded it. */
uint64_t vc_start_heap_base(const struct vc_meta *m, const struct vc_event *segment);
