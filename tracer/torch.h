/* SPDX-License-Identifier: Apache-2.0 */
/* torch.h - what the PyTorch hooks share. */
#pragma once

#include "common/std.h"

/* A symbol of a loaded PyTorch library, whatever scope it was opened in; NULL: not there. */
void *vc_torch_symbol(const char *library, const char *name);
/* The same, looked up once and kept in *slot: any thread may come first. */
void *vc_torch_symbol_once(_Atomic(void *) *slot, const char *library, const char *name);
/* Writes the version of the loaded PyTorch into the journal. */
void vc_torch_describe(void);
/* Its minor version: 9 for 2.9; -1 unknown. */
int vc_torch_minor(void);

enum vc_torch_pool_style {
	VC_POOL_BY_ID,     /* begin(device, pool, filter), end(device, pool) */
	VC_POOL_BY_STREAM, /* 2.1, 2.2: begin(device, stream, pool), end(device, stream) */
	VC_POOL_BY_GRAPH,  /* 2.0: begin(device, graph, pool), end(device, graph) */
};

/* Positions in the allocator's vtable, 0 = not there in this version. */
struct vc_torch_slots {
	int first, last; /* minor versions of PyTorch 2 */
	int raw_alloc, raw_alloc_with_stream, fraction, trim, use;
	int pool_begin, pool_end, pool_release, pool_create, use_on_oom, no_split;
	int trim_takes_pool; /* emptyCache(MempoolId_t) */
	int pool_style;      /* enum vc_torch_pool_style */
};
const struct vc_torch_slots *vc_torch_slots(int minor);

/* The CPU allocator is not recorded any more once a GPU's is. */
void vc_torch_cpu_stop(void);
/* PyTorch reports CPU memory, to whom `caller` belongs. */
void vc_torch_cpu_report(void *p, int64_t bytes, const void *caller);
/* Is this thread inside PyTorch's CUDA allocator? */
bool vc_torch_allocating(void);
bool vc_torch_enter(bool now); /* it is now, or not; whether it was */
/* Is a CUDA allocator being recorded in this process? From vc_torch_watch on. */
bool vc_torch_watching(void);
void vc_torch_watch(void);
void vc_torch_unwatch(void);

/* In a program that was found running: its CUDA allocator, where it has one in use; and never
 * mind it again. */
void vc_torch_hook(void);
void vc_torch_unhook(void);
bool vc_torch_cpu_wanted(void); /* is it the CPU's allocator that is recorded? */

/* A function's address as an object pointer, the way POSIX wants it for dlsym, without a warning.
 */
#define VC_FUNCTION(f) (*(void **)&(void (*[]) (void)){ (void (*)(void))(f) }[0])

/* In a forked child. */
void vc_torch_cpu_forget(void);
void vc_torch_forget(void);
