/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - what a family counts in: not a parameter x itself but x + r (a picture's side has
 * x*x + r patches and other tokens, a strided convolution hands on (x - 3) / 4 frames), and sizes
 * that are products of two such counts. */
#ifndef VC_COUNTS_H
#define VC_COUNTS_H

#include "simulator/predict/align.h"
#include "simulator/predict/laws.h"

enum { VC_COUNTS = 8 };

/* The counts w + root[i] that many sizes are proportional to, where w is the parameter or, with
 * `side`, its square; root[0] is always 0. */
struct vc_counts { double root[VC_COUNTS]; size_t n; unsigned side; };

/* From the laws of the n allocations t, one law each; side as in vc_law_fit. Errors: VC_ENOMEM. */
int vc_counts_find(const struct vc_law *law, const struct vc_take *t, size_t n, unsigned side,
		   struct vc_counts *out, struct vc_error *err);

/* Is this law a guess that a product of two counts may replace? */
bool vc_counts_doubt(const struct vc_counts *u, const struct vc_law *l, size_t samples);

/* A line through two samples that starts below zero, at no count that others share: it may as
 * well be a power of the parameter. Returns that power, 0: it is no such line. */
double vc_counts_power(const struct vc_counts *u, const struct vc_law *l,
		       const struct vc_sample *s, size_t n);

/* A size proportional to the product of two counts, exact on all samples (n >= 2). */
bool vc_counts_product(const struct vc_counts *u, const struct vc_sample *s, size_t n,
		       struct vc_law *out);

#endif
