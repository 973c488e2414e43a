/* SPDX-License-Identifier: Apache-2.0 */
/* time_cost.h - how long a kernel takes on a card, from what it computes and moves. */
#pragma once

#include "common/kernel_work.h"
#include "simulator/replay/cards.h"

struct vc_costs {
	double ns;
	double doubt;   /* share by which it may be off, up or down; 0: nothing is known */
};

/* name: of the kernel. ns 0: such work is not known, or nothing is known of the card. */
struct vc_costs vc_cost_of(const struct vc_card *c, const struct vc_kernel_work *w,
			  const char *name);
/* The peak rate of that type, operations a second. */
double vc_cost_peak(const struct vc_card *c, const char *type);
