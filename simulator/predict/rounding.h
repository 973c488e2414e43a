/* SPDX-License-Identifier: Apache-2.0 */
/* rounding.h - lengths that a program may round up before it asks for memory. */
#ifndef VC_ROUNDING_H
#define VC_ROUNDING_H

#include <stdbool.h>
#include <stddef.h>

#include "simulator/predict/allocations.h"
#include "simulator/predict/laws.h"

/* By how much the next power of two is larger than each of the values; 1: not by the same
 * everywhere, or they are powers of two themselves. */
double vc_rounding_power(const double *x, size_t n);

/* May the n blocks follow values that are rounded up by that ratio? Bytes come in whole numbers for
 * each unit: no, where nearly all do so for the value itself, and not for the rounded one. */
bool vc_rounding_may_be(const struct vc_law *law, const struct vc_take *t, size_t n, double ratio);

/* Values recorded at x[0..n) cannot tell `at` from itself rounded up where each of them is in the
 * same proportion to its own. The largest (high) or smallest value of which `at` may be one; at:
 * nothing else explains the recordings. powers: may they be rounded to powers of two? */
double vc_rounding_other(const double *x, size_t n, double at, bool powers, bool high);

/* The same of what does not differ between the recordings: the factor by which it may be larger, or
 * smaller, where all of them are rounded up to one value. */
double vc_rounding_step(const double *x, size_t n, double at, bool high);

/* A value whose recording would settle it. */
double vc_rounding_tells(const double *x, size_t n);

#endif
