/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_calls.h - calls of libraries into the CUDA runtime, where they go through the linker. */
#ifndef VC_CUDA_CALLS_H
#define VC_CUDA_CALLS_H

#include <stdint.h>

/* Free bytes of the current device; 0 when they cannot be had. */
uint64_t vc_cuda_free_bytes(void);
/* A DEVICE_SAMPLE of the current device. */
void vc_cuda_sample(void);
/* Put our functions in front of the driver's mapping calls in PyTorch's table of them. */
void vc_cuda_watch_driver(void);
/* The allocator has left a call: ranges it unmapped piece by piece are whole now. */
void vc_cuda_settle(void);

#endif
