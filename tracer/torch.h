/* SPDX-License-Identifier: Apache-2.0 */
/* torch.h - what the PyTorch hooks share. */
#pragma once

#include "common/torch_layout.h"

/* A symbol of a loaded PyTorch library, whatever scope it was opened in; NULL: not there. */
void *vc_torch_symbol(const char *library, const char *name);
/* The same, looked up once and kept in *slot: any thread may come first. */
void *vc_torch_symbol_once(_Atomic(void *) *slot, const char *library, const char *name);
/* Writes the version of the loaded PyTorch into the journal. */
void vc_torch_describe(void);
/* Its minor version: 9 for 2.9; -1 unknown. */
int vc_torch_minor(void);

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

/* In a forked child. */
void vc_torch_cpu_forget(void);
void vc_torch_forget(void);
