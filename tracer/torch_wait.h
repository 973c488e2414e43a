/* SPDX-License-Identifier: Apache-2.0 */
/* torch_wait.h - deferred frees: blocks that record_stream marked come back only when the events
 * the allocator recorded on those streams have passed. This finds out when that was seen. */
#pragma once

#include "common/std.h"

void vc_wait_use(uint64_t block, uint64_t stream);    /* record_stream */
bool vc_wait_free(uint64_t block);                    /* freed: is it deferred? */
void vc_wait_scope(int by);                           /* a pool scope begins (1) or ends (-1) */
void vc_wait_next(void);                              /* the allocator went on to something else */

/* Calls of the allocator into the runtime. */
void vc_wait_recorded(uint64_t event, uint64_t stream);
uint64_t vc_wait_passed(uint64_t event);              /* the block that is free now, or 0 */
/* Blocks that were there when the recording began, of which other streams may have used any. */
bool vc_wait_begin(uint64_t blocks);                  /* so many; false: memory is short */
void vc_wait_old(uint64_t block, uint64_t stream, uint16_t device); /* its own stream */
void vc_wait_clear(void);                             /* nothing is waited for */
void vc_wait_forget(void);                            /* in a forked child */
