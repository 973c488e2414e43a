/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - serves requests from the places of a plan. Knows no CUDA and no PyTorch.
 *
 * The program's requests are followed along those of the plan. A place is given out only when
 * nothing that lives overlaps it, whatever the plan says; a request that differs gets none. Not
 * safe for threads by itself. */
#pragma once

#include "common/memory_plan.h"

struct vc_arena_counts {
	uint64_t requests;
	uint64_t served;
	uint64_t differs;  /* another size or stream than planned, or not in the plan */
	uint64_t occupied; /* the planned place is not free */
	uint64_t left;     /* the plan has no place for it */
	uint64_t jumps;    /* the thread was lost and found elsewhere */
};

struct vc_arena;
/* Takes the plan over when it succeeds. NULL: no memory. */
struct vc_arena *vc_arena_new(struct vc_memory_plan *plan, struct vc_error *err);
void vc_arena_free(struct vc_arena *a);
uint64_t vc_arena_size(const struct vc_arena *a);
const struct vc_arena_counts *vc_arena_counts(const struct vc_arena *a);

/* The offset for a request of the stream with that handle; VC_PLAN_NOWHERE: none. */
uint64_t vc_arena_take(struct vc_arena *a, uint64_t size, uint64_t stream);
/* It could not be used after all: as if the place had not been free. */
void vc_arena_refuse(struct vc_arena *a, uint64_t offset);
/* Give the block at that offset back; its size, 0 = no block begins there. */
uint64_t vc_arena_give(struct vc_arena *a, uint64_t offset);
