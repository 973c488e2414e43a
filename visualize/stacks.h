/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - live bytes at one moment, and all bytes ever asked for, by call stack. */
#pragma once

#include "common/error.h"
#include "simulator/replay/result.h"

struct vc_stack {
	uint32_t site, label;        /* both 0: unknown */
	uint64_t bytes, blocks;      /* live at that moment */
	uint64_t all_bytes, all_blocks; /* over the run; 0 when the lives were not all kept */
};
struct vc_stacks { struct vc_stack *at; size_t n; uint64_t event; bool at_oom, has_all; };

/* The moment is the first refusal when there was one, else the peak of reserved memory. Ordered by
 * site and label. The caller ends it with vc_stacks_fini. Errors: VC_ENOMEM. */
int vc_stacks_init(struct vc_stacks *s, const struct vc_result *r, struct vc_error *err);
void vc_stacks_fini(struct vc_stacks *s);
/* What stands for an unknown call stack. */
#define VC_STACK_UNKNOWN "(unknown call stack)"
