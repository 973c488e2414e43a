/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.h - what a transform leaves open, as an interval of the peak. */
#ifndef VC_BOUNDS_H
#define VC_BOUNDS_H

#include "simulator/session.h"

/* Transforms with a parameter `bound` (best, low, high) say what the recording does not settle: a
 * run is repeated with all of them low and all of them high, and out's interval spans the three.
 * Nothing happens when the user chose a bound. */
int vc_bounds_interval(const struct vc_session *s, const struct vc_plan *p, struct vc_result *out,
		       struct vc_error *err);

#endif
