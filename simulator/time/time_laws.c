/* SPDX-License-Identifier: Apache-2.0 */
/* time_laws.c - how the time of one kernel depends on a parameter.
 *
 * Work grows with the data, and below some size a kernel takes what a launch takes: t = max(floor,
 * a + b*x). Attention grows with the square of the length: b*x + c*x*x where a straight line would
 * start below zero. */

#include "simulator/time/time_tempo.h"

#define AT_FLOOR 1.15  /* within this of the shortest kernel there is no telling what it would do */
#define NOISE 0.02     /* differences below this share, or below 100 ns, are none */
#define NOISE_NS 100.0
#define BENT 0.03    /* a line through three that misses one by more is no line */
#define BELOW 0.10     /* a line may start this far below zero (of its first point) and be noise */

static double value(const struct vc_pace_law *l, double x)
{
	return fmax(l->floor, l->a + l->b * x + l->c * x * x);
}

double vc_pace_at(const struct vc_pace_law *l, double x, int bound)
{
	double best = value(l, x);
	double one = fmax(l->floor, l->ns + l->low_b * (x - l->x));
	double two = fmax(l->floor, l->ns + l->high_b * (x - l->x));

	/* Between not at all and at once: as far from the one as from the other, as a factor. */
	if (!bound && l->open && x > l->x)
		return sqrt(fmin(best, fmin(one, two)) * fmax(best, fmax(one, two)));
	if (bound < 0)
		return fmin(best, fmin(one, two));
	return bound > 0 ? fmax(best, fmax(one, two)) : best;
}

static double miss(const struct vc_pace_law *l, const struct vc_pace_sample *s, size_t n)
{
	double worst = 0;

	for (size_t i = 0; i < n; i++)
		if (s[i].ns > 0)
			worst = fmax(worst, fabs(value(l, s[i].x) - s[i].ns) / s[i].ns);
	return worst;
}

static void constant(struct vc_pace_law *l, double ns)
{
	l->a = ns;
	l->b = l->c = 0;
}

static void proportional(struct vc_pace_law *l)
{
	l->a = l->c = 0;
	l->b = l->ns / l->x;
}

/* Through two points: a + b*x, or b*x + c*x*x, or a power. */
static void through_two(struct vc_pace_law *l, const struct vc_pace_sample *s)
{
	double b = (s[1].ns - s[0].ns) / (s[1].x - s[0].x), a = s[0].ns - b * s[0].x;

	l->low_b = l->high_b = b;
	if (b < 0) {                       /* another algorithm was chosen */
		constant(l, s[1].ns);
		l->low_b = 0;
		l->high_b = s[1].ns / s[1].x;
		l->residual = (s[0].ns - s[1].ns) / s[0].ns;
	} else if (a >= 0) {
		l->a = a;
		l->b = b;
	} else if (a > -BELOW * s[0].ns) {
		proportional(l);
	} else {
		l->c = (s[1].ns / s[1].x - s[0].ns / s[0].x) / (s[1].x - s[0].x);
		l->b = s[0].ns / s[0].x - l->c * s[0].x;
		l->high_b = fmax(b, l->b + 2 * l->c * s[1].x);
		if (l->b < 0) {            /* steeper than a square: keep it a square */
			l->b = 0;
			l->c = s[1].ns / (s[1].x * s[1].x);
		}
	}
}

/* Least squares of p + q*u over the samples, each weighted by 1/ns: y = first*f + second*g. */
static void solve(const struct vc_pace_sample *s, size_t n, int first, double *p, double *q)
{
	double ff = 0, fg = 0, gg = 0, fy = 0, gy = 0;

	for (size_t i = 0; i < n; i++) {
		double f = pow(s[i].x, first) / s[i].ns, g = pow(s[i].x, first + 1) / s[i].ns;

		ff += f * f;
		fg += f * g;
		gg += g * g;
		fy += f;
		gy += g;
	}
	double det = ff * gg - fg * fg;
	*q = det != 0 ? (ff * gy - fg * fy) / det : 0;
	*p = ff > 0 ? (fy - fg * *q) / ff : 0;
}

static void through_many(struct vc_pace_law *l, const struct vc_pace_sample *s, size_t n)
{
	struct vc_pace_law square = *l;
	double last = (s[n - 1].ns - s[n - 2].ns) / (s[n - 1].x - s[n - 2].x);

	solve(s, n, 0, &l->a, &l->b);
	solve(s, n, 1, &square.b, &square.c);
	if (l->b < 0) {
		constant(l, l->ns);
	} else if (l->a < 0 && l->a > -BELOW * s[0].ns) {
		proportional(l);
	}
	if (square.b >= 0 && square.c > 0 && 2 * miss(&square, s, n) < miss(l, s, n)) {
		l->a = 0;
		l->b = square.b;
		l->c = square.c;
	}
	/* What reads its weights first and computes later turns upwards once: the last two are
	 * beyond that. */
	if (miss(l, s, n) > BENT && last > l->b + 2 * l->c * l->x) {
		double fitted = l->b + 2 * l->c * l->x;

		through_two(l, s + n - 2);
		l->low_b = fmax(0, fmin(fitted, l->low_b));
		return;
	}
	double slope = l->b + 2 * l->c * l->x;
	l->low_b = fmax(0, fmin(slope, last));
	l->high_b = fmax(slope, last);
}

struct vc_pace_law vc_pace_fit(const struct vc_pace_sample *s, size_t n, double floor)
{
	struct vc_pace_law l = { .floor = floor < s[n - 1].ns ? floor : 0, .x = s[n - 1].x,
				 .ns = s[n - 1].ns };
	size_t above = 0;
	double lo = s[0].ns, hi = s[0].ns;

	for (size_t i = 0; i < n; i++) {
		above = s[i].ns > AT_FLOOR * floor ? above + 1 : 0; /* of those at the end */
		lo = fmin(lo, s[i].ns);
		hi = fmax(hi, s[i].ns);
	}
	if (!above) {                              /* nobody knows how much work it is */
		l.floor = 0;
		constant(&l, l.ns);
		l.high_b = l.ns / l.x;
	} else if (n == 1) {
		proportional(&l);
		l.high_b = l.b;
	} else if (hi - lo <= NOISE * hi + NOISE_NS) {
		constant(&l, l.ns);
	} else if (above == 1) {
		proportional(&l);
		l.high_b = l.b;
		l.low_b = (l.ns - s[n - 2].ns) / (l.x - s[n - 2].x);
	} else if (above == 2) {
		through_two(&l, s + n - 2);
	} else {
		through_many(&l, s + n - above, above);
	}
	l.residual = fmax(l.residual, miss(&l, s + n - (above ? above : 1), above ? above : 1));
	return l;
}
