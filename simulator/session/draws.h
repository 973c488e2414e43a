/* SPDX-License-Identifier: Apache-2.0 */
/* draws.h - which of the ways to deal the data of steps anew is the best guess: the middle of all
 * of them by their peaks, of which those near a straight line through the recorded peaks count
 * most (predict/spread.h makes the draws). */
#pragma once

#include "simulator/session/whatif.h"

enum { VC_DRAWS_TRIED = 32 };

/* On a straight line through the peaks of the two recordings nearest to what is asked, of all
 * peak[] by recording. NAN: more than one parameter is asked for. */
double vc_draws_line(const struct vc_whatif *w, const double *peak);

/* Take that draw for the prediction, whose trace and report are those of the middle of all draws;
 * nothing where it has no such data. */
int vc_draws_choose(const struct vc_whatif *w, struct vc_prediction *p, struct vc_error *err);
