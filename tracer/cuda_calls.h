/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_calls.h - calls of libraries into the CUDA runtime, where they go through the linker. */
#pragma once

#include "common/std.h"

/* The function of that name that the library around `site` would have called without us; NULL:
 * none. */
void *vc_cuda_real(const void *site, const char *name);
/* Is this thread in a call of the runtime that is being recorded? What the driver does in it is
 * not. */
bool vc_cuda_inside(void);
/* Put our functions in front of the driver's mapping calls in PyTorch's table of them. */
void vc_cuda_watch_driver(void);
/* They stand there no more, and callers are looked up anew. */
void vc_cuda_unwatch_driver(void);
/* The allocator has left a call: ranges it unmapped piece by piece are whole now. */
void vc_cuda_settle(void);
