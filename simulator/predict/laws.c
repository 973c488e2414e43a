/* SPDX-License-Identifier: Apache-2.0 */
/* laws.c - the lowest-degree law that is exact on all recordings, else a flagged guess. */
#include "simulator/predict/laws.h"

#define SHIFTED 8  /* units more or less than the parameter says: tokens, frames */

static double raw(const struct vc_law *l, double x)
{
	return l->a + x * (l->b + x * (l->c + x * (l->d + x * l->e)));
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

/* y = k * x^degree through the last sample. */
static struct vc_law power(const struct vc_sample *s, size_t n, int degree)
{
	double k = s[n - 1].y / pow(s[n - 1].x, degree);
	struct vc_law l = { .kind = degree == 1 ? VC_LAW_LINEAR : VC_LAW_QUADRATIC };

	*(degree == 1 ? &l.b : degree == 2 ? &l.c : degree == 3 ? &l.d : &l.e) = k;
	return l;
}

/* One coefficient; third powers are of a volume's side, fourth ones of attention over a picture's.
 */
static bool pure(const struct vc_sample *s, size_t n, struct vc_law *out)
{
	*out = (struct vc_law){ .kind = VC_LAW_CONST, .a = s[n - 1].y };
	for (int degree = 1; degree <= 4 && !exact(out, s, n); degree++)
		*out = power(s, n, degree);
	return exact(out, s, n);
}

static struct vc_law line(const struct vc_sample *p, const struct vc_sample *q)
{
	double slope = (q->y - p->y) / (q->x - p->x);

	return (struct vc_law){ .kind = VC_LAW_AFFINE, .a = p->y - slope * p->x, .b = slope,
				.from = p->x, .to = q->x };
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

/* Neither constant nor proportional nor a line: the size belongs to an algorithm that changes with
 * x. Growth goes on along the last two samples, what shrank is held at its largest, and nothing
 * becomes smaller than it was seen. */
static struct vc_law step(const struct vc_sample *s, size_t n)
{
	struct vc_law l = line(&s[n - 2], &s[n - 1]);

	if (s[n - 1].y < s[n - 2].y) {
		l = (struct vc_law){ .a = s[n - 2].y };
		for (size_t i = 0; i < n; i++)
			l.a = fmax(l.a, s[i].y);
	}
	l.kind = VC_LAW_STEP;
	l.residual = miss(&l, s, n);
	l.least = s[0].y;
	for (size_t i = 1; i < n; i++)
		l.least = fmin(l.least, s[i].y);
	return l;
}

/* Two samples fix a line, but one that starts far below zero grew faster than x: only x and x*x
 * together explain that. A few units below zero is a length minus one or two. */
static bool too_steep(const struct vc_law *l, double x)
{
	return l->a < 0 && -l->a > 2.5 * l->b && -l->a > 0.1 * l->b * x;
}

/* A line through two samples is as good as known where it is one in x + k, k whole: a class token,
 * a word more. */
static bool is_shifted(const struct vc_law *l)
{
	double k = l->a / l->b;

	return l->b > 0 && is_whole(k) && fabs(k) <= SHIFTED;
}

static struct vc_law fit(const struct vc_sample *s, size_t n)
{
	struct vc_law l;

	if (pure(s, n, &l))
		return l;
	l = line(&s[n - 2], &s[n - 1]);
	if (s[n - 1].y < s[n - 2].y)
		return step(s, n);
	if (exact(&l, s, n) && (n > 2 || !too_steep(&l, s[0].x)))
		return l;
	if (n == 2) {
		double u = s[0].y / s[0].x, v = s[1].y / s[1].x;

		l = (struct vc_law){ .kind = VC_LAW_CURVE, .c = (v - u) / (s[1].x - s[0].x) };
		l.b = u - l.c * s[0].x;
		return l.b >= 0 ? l : step(s, n);
	}
	l = curve(s + n - 3);
	/* Any three samples lie on a curve: whole bytes for each unit and each pair make it one. */
	if (l.c > 0 && l.b >= 0 && exact(&l, s, n) &&
	    (n > 3 || (is_whole(2 * l.b) && is_whole(2 * l.c))))
		return l;
	return step(s, n);
}

struct vc_law vc_law_fit(const struct vc_sample *s, size_t n)
{
	struct vc_law l;

	if (n == 1)
		return (struct vc_law){ .kind = VC_LAW_ALONE, .a = s[0].y };
	l = fit(s, n);
	l.sure = l.kind == VC_LAW_AFFINE ? n > 2 || is_shifted(&l) :
		 l.kind == VC_LAW_CURVE  ? n > 3 || (n > 2 && fabs(l.a) < 1) :
					   l.kind != VC_LAW_STEP;
	return l;
}

double vc_law_end(const struct vc_law *l, const struct vc_sample *own, double x, bool high)
{
	double at = vc_law_at(l, x), kept = own->y, grown = own->y * x / own->x;
	double miss = at * l->residual / fmax(own->y, vc_law_at(l, own->x));

	if (l->sure || l->kind == VC_LAW_ALONE)
		return at;
	return high ? fmax(at + miss, fmax(kept, grown)) :
		      fmax(1, fmin(at - miss, fmin(kept, grown)));
}

/* What grows with samples has no squares but of a similarity of all with all, which is pure; what
 * grows with a length may have them. */
double vc_law_other(const struct vc_law *l, bool counts, double x)
{
	double u = l->from, v = l->to, y = raw(l, u), z = raw(l, v), c;

	if (counts)
		return round(y * pow(x / u, log(z / y) / log(v / u)));
	if (l->a >= 0)
		return round(y + (z - y) / (v * v - u * u) * (x * x - u * u));
	c = (z / v - y / u) / (v - u);
	return round(x * (y / u + c * (x - u)));
}

static struct vc_law mean_of_degree(const struct vc_sample *s, size_t n, int degree, double *miss)
{
	double logs = 0, k;
	struct vc_law l = { .kind = VC_LAW_CONST };

	*miss = 0;
	for (size_t i = 0; i < n; i++)
		logs += log(s[i].y / pow(s[i].x, degree));
	k = exp(logs / (double)n);
	for (size_t i = 0; i < n; i++)
		*miss = fmax(*miss, fabs(log(s[i].y / (k * pow(s[i].x, degree)))));
	if (degree)
		l.kind = degree == 2 ? VC_LAW_QUADRATIC : VC_LAW_LINEAR;
	*(degree == 2 ? &l.c : degree ? &l.b : &l.a) = k;
	return l;
}

struct vc_law vc_law_fit_means(const struct vc_sample *s, size_t n, double noise)
{
	static const int degrees[] = { 1, 0, 2 };
	double least = INFINITY, slope = n > 1 ? (s[n - 1].y - s[0].y) / (s[n - 1].x - s[0].x) : 0;
	struct vc_law best = { .kind = VC_LAW_CONST };

	/* What varies with the data grows with the amount of it unless that is off. */
	for (size_t k = 0; k < 3 && (k == 0 || least > 3 * noise); k++) {
		double miss;
		struct vc_law l = mean_of_degree(s, n, degrees[k], &miss);

		if (miss < least) {
			least = miss;
			best = l;
		}
	}
	if (least > 3 * noise && slope > 0 && s[0].y > slope * s[0].x)
		best = (struct vc_law){ .kind = VC_LAW_AFFINE, .b = slope,
					.a = s[0].y - slope * s[0].x };
	best.sure = true; /* for what it misses are the samples of steps */
	return best;
}
