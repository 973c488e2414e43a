/* SPDX-License-Identifier: Apache-2.0 */
/* laws.c - the lowest-degree law that is exact on all recordings, else a flagged guess. */
#include "simulator/predict/laws.h"

#include <math.h>

#define BESIDE 0.25/* of the smallest sample: rounding, not another algorithm */

#define NEARLY 0.01/* of what the samples differ by: a line of numbers that were rounded */

#define BORDER 64  /* pixels around a picture at most */

/* Frameworks pad sequences and vocabularies to such multiples. */
static const double multiple[] = { 8, 16, 32, 64, 128, VC_PAD_POWER };

static double padded(double x, double pad)
{
	if (pad == VC_PAD_POWER)
		return exp2(ceil(log2(x) - 1e-9));
	return pad > 0 ? ceil(x / pad) * pad : x;
}

static double raw(const struct vc_law *l, double x)
{
	double p = padded(x, l->pad);

	return l->a + l->b * p + l->c * p * p + l->d * p * p * p + l->e * p * p * p * p;
}

double vc_law_at(const struct vc_law *l, double x)
{
	double y = round(raw(l, x)), least = l->least > 1 ? l->least : 1;

	return y > least ? y : least;
}

static double miss(const struct vc_law *l, const struct vc_sample *s, size_t n)
{
	double worst = 0;

	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(raw(l, s[i].x) - s[i].y));
	return worst;
}

static bool exact(const struct vc_law *l, const struct vc_sample *s, size_t n)
{
	return miss(l, s, n) < 0.5;
}

static bool is_whole(double v)
{
	return fabs(v - round(v)) < 1e-6;
}

/* y = k * p^degree through the last sample. */
static struct vc_law power(const struct vc_sample *s, size_t n, int degree, double pad)
{
	double p = padded(s[n - 1].x, pad);
	struct vc_law l = { .kind = degree == 1 ? VC_LAW_LINEAR : VC_LAW_QUADRATIC, .pad = pad };

	if (degree == 1)
		l.b = s[n - 1].y / p;
	else if (degree == 2)
		l.c = s[n - 1].y / (p * p);
	else if (degree == 3) /* a volume's side, pairs of pairs */
		l.d = s[n - 1].y / (p * p * p);
	else                  /* attention over an image's side */
		l.e = s[n - 1].y / (p * p * p * p);
	if (pad != 0)
		l.kind = VC_LAW_PADDED;
	return l;
}

/* 100 and 150 padded to multiples of 64 are 128 and 192, in the same proportion; but bytes come
 * in whole numbers for each unit, and 1.28 of them do not. (Not so for sides: those are cut into
 * patches.) */
static bool is_padded(const struct vc_law *unpadded, const struct vc_sample *s, size_t n,
		      struct vc_law *out)
{
	int degree = unpadded->kind == VC_LAW_LINEAR ? 1 : 2;
	double each = degree == 1 ? unpadded->b : unpadded->c;

	if (each == round(each) || each <= 0)
		return false;
	for (size_t i = 0; i < sizeof(multiple) / sizeof(*multiple); i++) {
		struct vc_law l = power(s, n, degree, multiple[i]);
		double whole = degree == 1 ? l.b : l.c;

		if (whole < 1 || whole != round(whole) || !exact(&l, s, n))
			continue;
		*out = l;
		return true;
	}
	return false;
}

/* All multiples that explain the samples as well as that of the law. */
static void note_pads(struct vc_law *l, int degree, const struct vc_sample *s, size_t n)
{
	l->last = s[n - 1].x;
	for (size_t i = 0; i < sizeof(multiple) / sizeof(*multiple); i++) {
		struct vc_law other = power(s, n, degree, multiple[i]);

		l->pads |= exact(&other, s, n) ? 1u << i : 0;
	}
}

double vc_law_end(const struct vc_law *l, double x, bool high)
{
	double most = vc_law_at(l, x), at = raw(l, l->last);

	for (size_t i = 0; i < sizeof(multiple) / sizeof(*multiple); i++) {
		double grows = padded(x, multiple[i]) / padded(l->last, multiple[i]);
		double v = round(at * (l->c > 0 ? grows * grows : grows));

		if (l->pads & 1u << i && (v > most) == high)
			most = v;
	}
	return most;
}

static bool pure(const struct vc_sample *s, size_t n, unsigned side, struct vc_law *out)
{
	struct vc_law l;

	*out = (struct vc_law){ .kind = VC_LAW_CONST, .a = s[n - 1].y };
	if (exact(out, s, n))
		return true;
	for (int degree = 1; degree <= 4; degree++) {
		*out = power(s, n, degree, 0);
		if (!exact(out, s, n))
			continue;
		if (degree < 3 && !side && is_padded(out, s, n, &l)) {
			*out = l;
			note_pads(out, degree, s, n);
		}
		return true;
	}
	for (size_t i = 0; i < sizeof(multiple) / sizeof(*multiple); i++)
		for (int degree = 1; degree <= 2; degree++) {
			*out = power(s, n, degree, multiple[i]);
			if (!exact(out, s, n))
				continue;
			note_pads(out, degree, s, n);
			return true;
		}
	return false;
}

/* The law of degree one (in x, in x*x or in x*x*x) through two samples. */
static struct vc_law line(const struct vc_sample *p, const struct vc_sample *q, unsigned side)
{
	struct vc_law l = { .kind = VC_LAW_AFFINE };
	double power = side > 2 ? 3 : side ? 2 : 1, u = pow(p->x, power), v = pow(q->x, power);
	double slope = (q->y - p->y) / (v - u);

	l.a = p->y - slope * u;
	if (side > 2)
		l.d = slope;
	else if (side)
		l.c = slope;
	else
		l.b = slope;
	return l;
}

/* The square or the cube of a side with a border, (x + p)^2, p whole: padding before a
 * convolution, or what it leaves at the rim. Two samples give p, and that it is whole is the
 * evidence. */
static bool bordered(const struct vc_sample *s, size_t n, unsigned side, struct vc_law *out)
{
	double degree = side > 2 ? 3 : 2, u = s[n - 2].x, v = s[n - 1].x;
	double r = pow(s[n - 1].y / s[n - 2].y, 1 / degree), p = (v - u * r) / (r - 1);
	double w = round(p), k = s[n - 1].y / pow(v + w, degree);

	if (!(r > 1) || fabs(p - w) > 1e-4 || w == 0 || fabs(w) > BORDER || u + w <= 0)
		return false;
	*out = (struct vc_law){ .kind = VC_LAW_CURVE, .a = k * pow(w, degree) };
	if (side > 2) {
		out->d = k;
		out->c = 3 * k * w;
		out->b = 3 * k * w * w;
	} else {
		out->c = k;
		out->b = 2 * k * w;
	}
	return exact(out, s, n);
}

/* The same of a padded value, a few units more or less, where the line through the values
 * themselves needs parts of bytes. */
static bool padded_line(const struct vc_sample *s, size_t n, struct vc_law *out)
{
	for (size_t i = 0; i < sizeof(multiple) / sizeof(*multiple); i++) {
		struct vc_sample p = { padded(s[n - 2].x, multiple[i]), s[n - 2].y };
		struct vc_sample q = { padded(s[n - 1].x, multiple[i]), s[n - 1].y };

		if (!(q.x > p.x))
			continue;
		*out = line(&p, &q, 0);
		out->pad = multiple[i];
		if (out->b == round(out->b) && fmod(out->a, out->b) == 0 &&
		    fabs(out->a) <= 2 * multiple[i] * out->b && exact(out, s, n))
			return true;
	}
	return false;
}

static struct vc_law curve(const struct vc_sample *s)
{
	struct vc_law l = { .kind = VC_LAW_CURVE };
	double d1 = (s[1].y - s[0].y) / (s[1].x - s[0].x);
	double d2 = (s[2].y - s[1].y) / (s[2].x - s[1].x);

	l.c = (d2 - d1) / (s[2].x - s[0].x);
	l.b = d1 - l.c * (s[0].x + s[1].x);
	l.a = s[0].y - l.b * s[0].x - l.c * s[0].x * s[0].x;
	return l;
}

/* The line through two of the samples that misses the others least. Lengths that are divided and
 * rounded up lie beside a line, and the last two of them show its slope badly. */
static struct vc_law fairest(const struct vc_sample *s, size_t n)
{
	struct vc_law best = line(&s[n - 2], &s[n - 1], 0);

	for (size_t i = 0; i + 1 < n; i++)
		for (size_t j = i + 1; j < n; j++) {
			struct vc_law l = line(&s[i], &s[j], 0);

			if (l.b > 0 && miss(&l, s, n) <= BESIDE * s[0].y &&
			    miss(&l, s, n) < miss(&best, s, n))
				best = l;
		}
	return best;
}

/* Neither constant nor proportional nor a line: the size belongs to an algorithm that changes with
 * x. Growth goes on along the last two samples, what shrank is held at its largest, and nothing
 * becomes smaller than it was seen, but what lies on a line but for rounding. */
static struct vc_law step(const struct vc_sample *s, size_t n)
{
	struct vc_law l = fairest(s, n);
	double most;

	if (s[n - 1].y < s[n - 2].y) {
		l = (struct vc_law){ .a = s[n - 2].y };
		for (size_t i = 0; i < n; i++)
			l.a = fmax(l.a, s[i].y);
	}
	l.kind = VC_LAW_STEP;
	l.residual = miss(&l, s, n);
	l.least = most = s[0].y;
	for (size_t i = 1; i < n; i++) {
		l.least = fmin(l.least, s[i].y);
		most = fmax(most, s[i].y);
	}
	if (n > 2 && l.b > 0 && l.residual <= NEARLY * (most - l.least))
		l.least = 0;
	return l;
}

/* Two samples fix a line, but one that starts far below zero grew faster than x: only x and x*x
 * together explain that. A few units below zero is a length minus one or two. */
static bool too_steep(const struct vc_law *l, double x)
{
	return l->a < 0 && -l->a > 2.5 * l->b && -l->a > 0.1 * l->b * x;
}

struct vc_law vc_law_fit(const struct vc_sample *s, size_t n, unsigned side)
{
	struct vc_law l;

	if (n == 1)
		return (struct vc_law){ .kind = VC_LAW_ALONE, .a = s[0].y };
	if (pure(s, n, side, &l))
		return l;
	l = line(&s[n - 2], &s[n - 1], side);
	if (s[n - 1].y < s[n - 2].y)
		return step(s, n);
	if (side) {
		struct vc_law b;
		if (bordered(s, n, side, &b))
			return b;
	}
	if (!side && l.b != round(l.b)) {
		struct vc_law p;
		if (padded_line(s, n, &p))
			return p;
	}
	if (exact(&l, s, n) && (n > 2 || side || !too_steep(&l, s[0].x)))
		return l;
	if (n == 2) {
		double u = s[0].y / s[0].x, v = s[1].y / s[1].x;
		l = (struct vc_law){ .kind = VC_LAW_CURVE, .c = (v - u) / (s[1].x - s[0].x) };
		l.b = u - l.c * s[0].x;
		return l.b >= 0 ? l : step(s, n);
	}
	l = curve(s + n - 3);
	/* Any three samples lie on a curve: whole bytes for each unit and each pair make it one. */
	if (l.c > 0 && exact(&l, s, n) &&
	    (side || n > 3 || (is_whole(2 * l.b) && is_whole(2 * l.c))) && (l.b >= 0 || side))
		return l;
	return step(s, n);
}
