/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.h - the physical and kernel planes, where a CUPTI library can be opened. */
#ifndef VC_CUPTI_H
#define VC_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The driver calls this inside cuInit, in processes that use CUDA (CUDA_INJECTION64_PATH). */
int InitializeInjection(void);

/* Fetch what CUPTI still holds; at most a few seconds. Safe to call at any end of the process. */
void vc_cupti_finish(void);
/* In a forked child: CUPTI's threads do not exist here. */
void vc_cupti_forget(void);

/* ---- records (cupti_records.c) ---- */

typedef int vc_cupti_next(uint8_t *buffer, size_t valid, void **record);
/* Every record of a completed buffer becomes a journal record. */
void vc_cupti_read(vc_cupti_next *next, uint8_t *buffer, size_t valid);
/* The handle behind a stream id of CUPTI's. */
void vc_cupti_stream(uint32_t id, uint64_t handle);
void vc_cupti_lost(uint64_t records);

#endif
