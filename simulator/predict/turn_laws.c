/* SPDX-License-Identifier: Apache-2.0 */
/* turn_laws.c - see turn_laws.h */
#include "simulator/predict/turn_laws.h"

#include <math.h>

#define NEARLY 1e-6 /* of a number of turns: bounds rounding */

static bool is_whole(double v)
{
	return fabs(v - round(v)) < NEARLY;
}

/* turns: as the law says, which may be a part of one more. */
static void take(struct vc_turn_count *c, double turns, bool whole)
{
	turns = fmax(turns, 0);
	if (isnan(c->best)) {
		*c = (struct vc_turn_count){ turns, turns, turns, whole, whole };
		return;
	}
	c->always &= whole;
	c->low = fmin(c->low, turns);
	c->high = fmax(c->high, turns);
}

/* The same share of x everywhere. */
static void proportional(const struct vc_sample *s, size_t n, double x, struct vc_turn_count *c)
{
	double each = s[n - 1].y / s[n - 1].x;

	for (size_t i = 0; i < n; i++)
		if (fabs(s[i].y - each * s[i].x) > NEARLY * (1 + s[i].y))
			return;
	if (is_whole(each * x)) {
		take(c, round(each * x), true);
		return;
	}
	take(c, ceil(each * x), false);
	take(c, floor(each * x), false);
}

/* So many for each c of x, rounded up (the last one is not full) or down (it is dropped). */
static void rounded(const struct vc_sample *s, size_t n, double x, bool up, struct vc_turn_count *c)
{
	double low = 0, high = INFINITY; /* of the units that a turn takes */

	for (size_t i = 0; i < n; i++) {
		double more = s[i].x / (up ? s[i].y : s[i].y + 1);
		double fewer = up ? s[i].y - 1 : s[i].y;
		double less = fewer > 0 ? s[i].x / fewer : INFINITY;

		low = fmax(low, more);
		high = fmin(high, less);
	}
	if (low > high || (up ? low == high : low >= high))
		return;
	if (up) {
		take(c, ceil(x / low - NEARLY), is_whole(x / low));
		take(c, isinf(high) ? 1 : floor(x / high) + 1, false);
	} else if (!isinf(high)) {
		take(c, floor(x / high + NEARLY), true);
		take(c, ceil(x / low) - 1, true);
	}
}

/* Do all of them make the same of x and turns? */
static bool is_same(const struct vc_sample *s, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (fabs(s[i].x * s[i].y - s[0].x * s[0].y) > NEARLY)
			return false;
	return true;
}

/* A whole constant divided by x. */
static void inverse(const struct vc_sample *s, size_t n, double x, bool up, struct vc_turn_count *c)
{
	double low = 0, high = INFINITY;

	for (size_t i = 0; i < n; i++) {
		low = fmax(low, up ? (s[i].y - 1) * s[i].x + 1 : s[i].y * s[i].x);
		high = fmin(high, up ? s[i].y * s[i].x : (s[i].y + 1) * s[i].x - 1);
	}
	if (low > high)
		return;
	if (n > 2 && is_same(s, n)) /* three that divide it show it by no chance */
		low = high = s[0].x * s[0].y;
	bool one = is_whole(1 / x); /* turns of one are always full */

	/* What divides without rest in a recording does so by no chance. Where rounding up and down
	 * both have one that does, the last turn is full only where both say so. */
	c->whole &= !up || is_whole(high / x);
	take(c, fmax(1, up ? ceil(high / x - NEARLY) : floor(low / x + NEARLY)),
	     !up || is_whole(high / x));
	take(c, fmax(1, up ? ceil(low / x - NEARLY) : floor(high / x + NEARLY)), one);
}

static void line(const struct vc_sample *s, size_t n, double x, struct vc_turn_count *c)
{
	double slope = (s[n - 1].y - s[0].y) / (s[n - 1].x - s[0].x);

	for (size_t i = 0; i < n; i++)
		if (fabs(s[i].y - s[0].y - slope * (s[i].x - s[0].x)) > NEARLY * (1 + s[i].y))
			return;
	double at = s[0].y + slope * (x - s[0].x);

	if (n > 2 && slope > 0 && is_whole(slope)) /* three show such a one by no chance */
		*c = (struct vc_turn_count){ NAN, NAN, NAN, true, true };
	take(c, is_whole(at) ? round(at) : ceil(at), is_whole(at));
	if (!is_whole(at))
		take(c, floor(at), false);
}

/* It grew, and does no longer. */
static void full(const struct vc_sample *s, size_t n, double x, struct vc_turn_count *c)
{
	if (n < 3 || s[n - 1].y != s[n - 2].y || s[n - 2].y <= s[0].y)
		return;
	for (size_t i = n - 1; i-- > 0;)
		if (s[i].x <= x) {
			take(c, s[i].y, true);
			break;
		}
	take(c, s[n - 1].y, true);
}

struct vc_turn_count vc_turns_at(const struct vc_sample *s, size_t n, double x)
{
	struct vc_turn_count c = { NAN, NAN, NAN, true, true };
	bool grows = s[n - 1].y >= s[0].y;

	if (grows) {
		proportional(s, n, x, &c);
		if (n > 2 && !isnan(c.best))
			return c; /* three show that by no chance */
		rounded(s, n, x, true, &c);
		rounded(s, n, x, false, &c);
		line(s, n, x, &c);
		full(s, n, x, &c);
	} else {
		inverse(s, n, x, false, &c);
		inverse(s, n, x, true, &c);
	}
	for (size_t i = 0; isnan(c.best) && i < n; i++) { /* the data decide */
		double power = grows ? 1 : -1, each = 0;

		for (size_t k = 0; k < n; k++)
			each += s[k].y / pow(s[k].x, power) / (double)n;
		take(&c, round(each * pow(x, power)), false);
		for (size_t k = 0; k < n; k++)
			take(&c, round(s[k].y * pow(x / s[k].x, power)), false);
	}
	return c;
}
