/* SPDX-License-Identifier: Apache-2.0 */
/* torch_layout.h - PyTorch's CUDA allocator in a process that has it loaded: which version it is,
 * where its functions stand in its vtable, and a copy of that table. For the libraries that put
 * functions of theirs in front. */
#pragma once

#include "common/std.h"

enum { VC_TORCH_BEFORE = 2,   /* offset to top and type info stand before the vtable's address */
       VC_TORCH_SLOTS = 96,
       VC_TORCH_ALLOCATE = 2, /* a slot that has never moved */
       VC_TORCH_CUDA = 1 };   /* c10::DeviceType */

enum vc_torch_pool_style {
	VC_POOL_BY_ID,     /* begin(device, pool, filter), end(device, pool) */
	VC_POOL_BY_STREAM, /* 2.1, 2.2: begin(device, stream, pool), end(device, stream) */
	VC_POOL_BY_GRAPH,  /* 2.0: begin(device, graph, pool), end(device, graph) */
};

/* Positions in the allocator's vtable, 0 = not there in this version. */
struct vc_torch_slots {
	int first, last; /* minor versions of PyTorch 2 */
	int deleter, raw_alloc, raw_alloc_with_stream, raw_delete, fraction, trim, use;
	int stats, reset_peaks;
	int pool_begin, pool_end, pool_release, pool_create, use_on_oom, no_split;
	int trim_takes_pool; /* emptyCache(MempoolId_t) */
	int pool_style;      /* enum vc_torch_pool_style */
};

/* Of a version that nobody has looked at all positions are 0. */
const struct vc_torch_slots *vc_torch_slots(int minor);
/* Copies a vtable and what stands before it. However long it is (2.14 has 57 entries): what we do
 * not know stays as it is. */
void vc_torch_copy_table(void *table[VC_TORCH_BEFORE + VC_TORCH_SLOTS], void **original);
/* "2.9.1+cu128" from .../torch/version.py, beside the library that holds `inside`. */
bool vc_torch_version(const void *inside, char *out, size_t n);
/* 9 of it; -1: not a PyTorch 2. */
int vc_torch_minor_of(const char *version);

/* A function's address as an object pointer, the way POSIX wants it for dlsym, without a warning.
 */
#define VC_FUNCTION(f) (*(void **)&(void (*[]) (void)){ (void (*)(void))(f) }[0])
