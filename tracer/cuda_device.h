/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.h - the device that a thread works on. */
#pragma once

#include "common/std.h"

uint16_t vc_cuda_device(void);
/* Bytes of it; false: they cannot be had. */
bool vc_cuda_memory(uint64_t *available, uint64_t *total);
uint64_t vc_cuda_free_bytes(void); /* 0 when they cannot be had */
/* Say once which card a device is: the fact "gpu N", "TOTAL MAJOR.MINOR SMS NAME". */
void vc_cuda_device_fact(uint16_t device, uint64_t total);
void vc_cuda_device_forget(void); /* what was said */
