/* SPDX-License-Identifier: Apache-2.0 */
/* packing.h - where blocks of known size and life would best lie: the offline problem.
 *
 * Blocks that live at the same moment must not overlap; the height, the end of the highest block,
 * should be small (dynamic storage allocation, strip packing with fixed x). Finding the least
 * height is NP-hard, so the answer comes with a lower bound, and says when both are equal. */
#pragma once

#include "common/error.h"

/* Lives in [lower, upper). Where upper <= lower it lives over the end of what repeats: in
 * [lower, end) and in [begin - before, upper). */
struct vc_pack_block {
	uint64_t lower, upper, size;
	uint64_t offset; /* found */
	uint64_t before;
};

struct vc_packing {
	struct vc_pack_block *block; /* owned by the caller */
	size_t n;
	uint64_t begin, end;  /* what repeats; only where a block lives over its end */

	/* found */
	uint64_t bound;  /* no packing is lower */
	uint64_t height;
	bool proven;     /* height is the least possible */
	const char *how; /* what found it: "by size, first fit", "search"; static */
	uint64_t work;   /* elementary steps taken */
};

/* How many elementary steps may be taken for each effort; a step is about a nanosecond. */
#define VC_PACK_EFFORT_STEPS 100000000ull

/* Place every block. The same blocks and the same effort give the same offsets: the budget is
 * counted in steps, not in seconds. The first order is always tried, whatever the effort.
 * Errors: VC_ENOMEM; VC_EFORMAT for a block without a life, or whose sizes add up to 2^63. */
int vc_pack(struct vc_packing *p, uint64_t effort, struct vc_error *err);

/* The same blocks without placing them: p->bound only. */
int vc_pack_bound(struct vc_packing *p, struct vc_error *err);
