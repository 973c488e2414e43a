/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - what the driver says is free, and this process's resident and pinned memory. */
#pragma once

#include "common/std.h"

void vc_cuda_sample(void);
/* When the context is new. */
void vc_cuda_sample_first(void);
/* At most five times a second, and only where CUDA is in use already. */
void vc_cuda_sample_sometimes(void);
/* Nothing was sampled yet, and nothing is pinned: another recording begins. */
void vc_cuda_sample_forget(void);
/* Host memory is pinned, and is so no more: its size then. */
void vc_cuda_pin(uint64_t at, uint64_t size);
uint64_t vc_cuda_unpin(uint64_t at);
