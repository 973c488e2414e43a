/* SPDX-License-Identifier: Apache-2.0 */
/* turn_laws.h - how often a loop turns at another value of the parameter. */
#ifndef VC_TURN_LAWS_H
#define VC_TURN_LAWS_H

#include "simulator/predict/laws.h"
#include "simulator/predict/single.h"

struct vc_turn_count {
	double best, low, high;
	bool whole;  /* by the simplest law all turns are full */
	bool always; /* by all laws that explain the samples */
};

/* How often at x, from samples (ascending x, y: turns; n >= 2), by every law that explains all of
 * them: proportional, rounded up or down to whole turns, a constant divided by x, a line, full
 * from some value on. Where none does (the data decide), low and high are of the samples' extremes.
 * best is that of the simplest. */
struct vc_turn_count vc_turns_at(const struct vc_sample *s, size_t n, double x);

#endif
