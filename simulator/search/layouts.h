/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.h - ways to spread a job over cards, and what those that were played say about others. */
#pragma once

#include "common/std.h"

enum { VC_TP, VC_CP, VC_PP, VC_EP, VC_DP, VC_LAYOUT_NAMES };

struct vc_layout {
	uint64_t at[VC_LAYOUT_NAMES];
	size_t with;           /* what else it differs in */
	/* Once played, ns for equal work; 0: not known. */
	double own;            /* of a rank that waits for no other, in the mean, without the
				* collectives that join samples */
	double waits;          /* share of that by which waiting for other ranks makes it longer */
};

/* How many cards work on one sample. */
uint64_t vc_layout_share(const struct vc_layout *l);

/* A card holds no less of `l` than of `p`: it is spread over no more cards in any way. */
bool vc_layout_holds(const struct vc_layout *l, const struct vc_layout *p);

/* What a step of `l` takes at least, if spreading a sample over more cards makes no kernel cheaper,
 * spares none of what these tell each other, and a pipeline waits in proportion to its stages by
 * micro-batches. 0: none of the n that were played tells. */
double vc_layout_least(const struct vc_layout *l, const struct vc_layout *const *played, size_t n);
