/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.h - what a transform leaves open, as an interval of the peak. */
#ifndef VC_BOUNDS_H
#define VC_BOUNDS_H

#include "simulator/session/session.h"

/* Transforms with a parameter `bound` (best, low, high) say what the recording does not settle: a
 * run is repeated with all of them low and all of them high, and out's interval spans the three,
 * and by how much each was found to be off. Nothing happens where the user chose a bound. Errors:
 * those of the runs. */
int vc_bounds_interval(const struct vc_session *s, const struct vc_plan *p, struct vc_result *out,
		       struct vc_error *err);

/* Do the transforms asked for leave anything open, and is an interval that says it wanted? Not
 * where the user chose one of the bounds, or where nobody measured how far one of them is off. */
bool vc_bounds_wanted(const struct vc_run_options *o);

/* How far the transforms are to be trusted: "exact" where each says that it is, "bounds",
 * "unknown" where one gives no margin. */
const char *vc_bounds_level(const struct vc_run_options *o);

#endif
