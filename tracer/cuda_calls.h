/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_calls.h - calls of libraries into the CUDA runtime, where they go through the linker. */
#ifndef VC_CUDA_CALLS_H
#define VC_CUDA_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* The function of that name that the library around `site` would have called without us; NULL:
 * none. */
void *vc_cuda_real(const void *site, const char *name);
/* Is this thread in a call of the runtime that is being recorded? What the driver does in it is
 * not. */
bool vc_cuda_inside(void);
/* The one this thread works on. */
uint16_t vc_cuda_device(void);
/* Free bytes of the current device; 0 when they cannot be had. */
uint64_t vc_cuda_free_bytes(void);
/* What the driver says is free, and this process's resident and pinned memory. */
void vc_cuda_sample(void);
/* The same; at most five times a second,
 * and only where CUDA is in use already. */
void vc_cuda_sample_sometimes(void);
/* Say once which card a device is: the fact "gpu N", "TOTAL MAJOR.MINOR SMS NAME"
 * (device_fact.c). */
void vc_device_fact(uint16_t device, uint64_t total);
/* Put our functions in front of the driver's mapping calls in PyTorch's table of them. */
void vc_cuda_watch_driver(void);
/* The allocator has left a call: ranges it unmapped piece by piece are whole now. */
void vc_cuda_settle(void);

#endif
