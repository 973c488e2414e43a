/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - call stacks of allocations, when --stacks asks for them. */
#pragma once

#include "common/std.h"

/* The node of the stack we are called from, 0: stacks are off or there is none. A node and its
 * callers go into the journal when they are first seen. Takes Python's lock for --stacks py: call
 * it before any lock of the allocator. */
uint32_t vc_stacks_here(void);

/* A step has ended: --stacks py:N stops after N of them, but for requests that fail. */
void vc_stacks_step(void);
/* Are failures the only thing left to look at, and will we be called when one has happened? */
bool vc_stacks_only_failures(void);

/* Another recording begins, with options of its own. */
void vc_stacks_forget(void);
void vc_stacks_before_fork(void);
void vc_stacks_after_fork(bool child);
