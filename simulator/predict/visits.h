/* SPDX-License-Identifier: Apache-2.0 */
/* visits.h - how often a loop turns each time the program comes to it. */
#ifndef VC_VISITS_H
#define VC_VISITS_H

#include "simulator/predict/allocations.h"

/* Does the parameter decide how often the loop turns, of which each turn of `period` allocations
 * asks at `site`? What of the n recordings decides it, at the values x: that of the least value and
 * that of the largest one which come there at all. False, too, where a program comes there more
 * often but each time for as many turns (an optimizer that a scaler lets skip a step), and where
 * visits of one recording differ among themselves as those of the two do (layers that are dropped
 * by chance). Errors: VC_ENOMEM. */
int vc_visits_follow(const struct vc_allocations *m, const double *x, size_t n, uint64_t site,
		     uint32_t period, bool *follow);

#endif
