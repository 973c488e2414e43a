/* SPDX-License-Identifier: Apache-2.0 */
/* rounding.h - lengths that a program may round up before it asks for memory. */
#ifndef VC_ROUNDING_H
#define VC_ROUNDING_H

#include <stdbool.h>
#include <stddef.h>

/* Values recorded at x[0..n) cannot tell `at` from itself rounded up where each of them is in the
 * same proportion to its own. The largest (high) or smallest value of which `at` may be one; at:
 * nothing else explains the recordings. */
double vc_rounding_other(const double *x, size_t n, double at, bool high);

/* The same of what does not differ between the recordings: the factor by which it may be larger, or
 * smaller, where all of them are rounded up to one value. */
double vc_rounding_step(const double *x, size_t n, double at, bool high);

/* A value whose recording would settle it. */
double vc_rounding_tells(const double *x, size_t n);

#endif
