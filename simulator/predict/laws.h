/* SPDX-License-Identifier: Apache-2.0 */
/* laws.h - how one size depends on one parameter, from a few recorded values. */
#pragma once

#include "common/error.h"

enum vc_law_kind {
	VC_LAW_CONST,     /* the same everywhere */
	VC_LAW_LINEAR,    /* proportional to x */
	VC_LAW_QUADRATIC, /* proportional to x*x, x^3 or x^4 */
	VC_LAW_AFFINE,    /* a + b*x */
	VC_LAW_CURVE,     /* a + b*x + c*x*x through three recordings */
	VC_LAW_STEP,      /* none of these: another algorithm was chosen; held up, never down */
	VC_LAW_ALONE      /* one recording only */
};

struct vc_sample { double x, y; }; /* y: requested bytes */

struct vc_law {
	enum vc_law_kind kind;
	double a, b, c, d, e; /* y = a + b*x + c*x^2 + d*x^3 + e*x^4 */
	double least;         /* never below this many bytes */
	double residual;      /* largest miss on the samples, bytes */
	double from, to;      /* a line: where the two samples are that it goes through */
	bool sure;            /* exact on more samples than it has coefficients */
};

/* Fit the lowest-degree law that is exact on all samples (ascending x, n >= 1); when none is, the
 * one through the samples nearest to the largest x. */
struct vc_law vc_law_fit(const struct vc_sample *s, size_t n);
double vc_law_at(const struct vc_law *l, double x); /* bytes, at least 1 */

/* The smallest or the largest size there that the samples allow: of a law that is not sure also
 * what the sample `own` says by itself, as it is and in proportion. */
double vc_law_end(const struct vc_law *l, const struct vc_sample *own, double x, bool high);
/* Of a line through two samples: another law through both, a power of x (`counts`) or one with x*x.
 */
double vc_law_other(const struct vc_law *l, bool counts, double x);

/* The law of sizes that vary with the data, each the mean of several: in proportion where that
 * misses no mean by more than three times `noise` (relative, of one mean), else of the degree (0 to
 * 2) that misses least, or the line through the outer ones. */
struct vc_law vc_law_fit_means(const struct vc_sample *s, size_t n, double noise);
