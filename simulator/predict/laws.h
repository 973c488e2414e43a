/* SPDX-License-Identifier: Apache-2.0 */
/* laws.h - how one size depends on one parameter, from a few recorded values. */
#ifndef VC_LAWS_H
#define VC_LAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vc_law_kind {
	VC_LAW_CONST,     /* the same everywhere */
	VC_LAW_LINEAR,    /* proportional to x */
	VC_LAW_QUADRATIC, /* proportional to x*x, x^3 or x^4 */
	VC_LAW_PADDED,    /* proportional to x (or x*x) rounded up to a multiple */
	VC_LAW_AFFINE,    /* a + b*x, or a + c*x*x where the family has squares only */
	VC_LAW_CURVE,     /* a + b*x + c*x*x through three recordings */
	VC_LAW_STEP,      /* none of these: another algorithm was chosen; held up, never down */
	VC_LAW_ALONE,     /* one recording only */
	VC_LAW_KINDS
};

enum { VC_PAD_POWER = -1 };

struct vc_sample { double x, y; }; /* y: requested bytes */

struct vc_law {
	enum vc_law_kind kind;
	double a, b, c, d, e; /* y = a + b*p + c*p^2 + d*p^3 + e*p^4, p = x rounded up to a multiple
			       * of pad */
	double pad;       /* 0: none; VC_PAD_POWER: to the next power of two */
	double last;      /* VC_LAW_PADDED: the largest sample's x */
	unsigned pads;    /* and which of the multiples explain the samples as well (bits) */
	double least;     /* never below this many bytes */
	double residual;  /* largest miss on the samples, bytes */
	double power;     /* 0, or y ~ x^power explains the samples as well, and grows faster */
};

/* Fit the lowest-degree law that is exact on all samples (ascending x, n >= 1); when none is, the
 * one through the samples nearest to the largest x. `side`: 1 or 2, the parameter is a side whose
 * square counts (no size of the family is linear in it, some are quadratic); 3: a volume's, whose
 * cube counts. */
struct vc_law vc_law_fit(const struct vc_sample *s, size_t n, unsigned side);
double vc_law_at(const struct vc_law *l, double x); /* bytes, at least 1 */
/* The largest (high) or smallest size there of all paddings that explain the samples; for other
 * laws the size. */
double vc_law_end(const struct vc_law *l, double x, bool high);

#endif
