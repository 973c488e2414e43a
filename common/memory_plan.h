/* SPDX-License-Identifier: Apache-2.0 */
/* memory_plan.h - a plan of where each request of a program goes, as a file (.vcp; the reference
 * of formats has it line by line).
 *
 * Read by the allocator inside a program, too, so this needs nothing but libc. */
#pragma once

#include "common/error.h"

#define VC_PLAN_UNIT 512u /* sizes and offsets are multiples of it, as PyTorch's blocks are */
#define VC_PLAN_NOWHERE UINT64_MAX

struct vc_plan_request {
	uint64_t size;   /* rounded */
	uint64_t offset; /* in the arena; VC_PLAN_NOWHERE: left to the program's own allocator */
	uint32_t stream; /* in order of first appearance */
};

/* The part of the arena that only this stream uses. The lowest `stays` bytes still hold blocks when
 * the program empties its cache, the rest can be given back then; 0: not to be divided. No block
 * lies across. */
struct vc_plan_area { uint64_t at, size, bound, stays; };

struct vc_memory_plan {
	uint64_t arena; /* bytes, all areas together */
	/* Requests [first, last) repeat when all were made; equal: nothing does. */
	size_t first, last;
	struct vc_plan_area *area; size_t areas; /* one per stream; owned */
	struct vc_plan_request *request; size_t n; /* owned */
};

int vc_memory_plan_write(const struct vc_memory_plan *p, FILE *to);
/* Reads all of `from` (called `name` in errors) into an empty plan and checks it: VC_EFORMAT. */
int vc_memory_plan_read(struct vc_memory_plan *p, FILE *from, const char *name,
			struct vc_error *err);
void vc_memory_plan_fini(struct vc_memory_plan *p);
