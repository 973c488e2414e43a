/* SPDX-License-Identifier: Apache-2.0 */
/* spread.h - where one more run of a program ends whose sizes the data decide. */
#pragma once

#include "simulator/replay/result.h"

enum { VC_SPREAD_MOST = 16 };

/* In 99 of 100 cases, by the peaks of n runs (2 to VC_SPREAD_MOST) and of n + 1 with the recorded
 * values. Returns which of the n reserved nearest to the middle. */
unsigned vc_spread(const struct vc_peaks *run, const struct vc_peaks *recorded, unsigned n,
		   uint64_t *least, uint64_t *most);
