/* SPDX-License-Identifier: Apache-2.0 */
/* widths.h - by how much an interval is wider than what the recordings say: calibrated on ladders,
 * by the kind of evidence. */
#ifndef VC_WIDTHS_H
#define VC_WIDTHS_H

#include "simulator/predict/family.h"

/* Logarithms: what is missed times a factor, and at least so much; and where the data decide sizes
 * the standard deviation of a step's bytes times a factor. */
struct vc_width {
	const char *name;
	double up, down, least_up, least_down, noise_up, noise_down;
};

/* Do the data decide sizes in some of the recordings? */
bool vc_width_by_data(const struct vc_family_report *r);

/* Of a prediction from r->recordings recordings (two and more); at_one: for the value 1 of a number
 * of samples, which was not recorded. */
const struct vc_width *vc_width_of(const struct vc_family_report *r, bool at_one);

#endif
