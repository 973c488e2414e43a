/* SPDX-License-Identifier: Apache-2.0 */
/* counts.c - see counts.h
 *
 * Two samples fix a line, whatever the law is: 50 and 101 tokens of two pictures give the same
 * line for what grows with the tokens, and a wrong one for attention over them, 2,500 and 10,201.
 * But what grows with the tokens shows the count itself: all those lines have one root. A product
 * of two such counts has nothing left to choose but its factor, so two samples that it explains
 * are evidence. */
#include "simulator/predict/counts.h"

#include <math.h>
#include <stdlib.h>

enum {
	TELLING = 1024, /* bytes of a block that is looked at */
	OFTEN = 8,      /* lines through one root that make it a count */
};

struct root { double at; size_t n; };

static double power_of(double x, unsigned side)
{
	return side ? x * x : x;
}

/* Coefficient of the count, and the constant, by that: r of w + r; NAN: no line. */
static double root_of(const struct vc_law *l, unsigned side)
{
	double slope = side ? l->c : l->b;

	return l->kind == VC_LAW_AFFINE && slope > 0 && l->pad == 0 && l->d == 0 ? l->a / slope :
										   NAN;
}

static bool same(double a, double b)
{
	return fabs(a - b) <= 1e-6 * (1 + fabs(a));
}

static int by_place(const void *x, const void *y)
{
	double a = ((const struct root *)x)->at, b = ((const struct root *)y)->at;

	return a < b ? -1 : a > b;
}

static int by_number(const void *x, const void *y)
{
	size_t a = ((const struct root *)x)->n, b = ((const struct root *)y)->n;

	return a > b ? -1 : a < b;
}

int vc_counts_find(const struct vc_law *law, const struct vc_take *t, size_t n, unsigned side,
		   struct vc_counts *out, struct vc_error *err)
{
	struct root *r = malloc((n + 1) * sizeof(*r));
	size_t lines = 0, kept = 0;

	*out = (struct vc_counts){ .n = 1, .side = side };
	VC_HAVE(r, "the laws of a family", err);
	for (size_t i = 0; side < 3 && i < n; i++) {
		double at = root_of(&law[i], side);

		if (!isnan(at) && t[i].size >= TELLING)
			r[lines++] = (struct root){ at, 1 };
	}
	qsort(r, lines, sizeof(*r), by_place);
	for (size_t i = 0; i < lines; i++)
		if (kept && same(r[kept - 1].at, r[i].at))
			r[kept - 1].n++;
		else
			r[kept++] = r[i];
	qsort(r, kept, sizeof(*r), by_number);
	for (size_t i = 0; i < kept && out->n < VC_COUNTS && r[i].n >= OFTEN; i++)
		out->root[out->n++] = r[i].at;
	free(r);
	return 0;
}

/* Two samples lie on any line, three on any curve. */
bool vc_counts_doubt(const struct vc_counts *u, const struct vc_law *l, size_t samples)
{
	if (u->n < 2 || samples < 2 || u->side > 2)
		return false;
	if (l->kind == VC_LAW_STEP)
		return true;
	return l->kind == VC_LAW_CURVE ? samples <= 3 : l->kind == VC_LAW_AFFINE && samples == 2;
}

double vc_counts_power(const struct vc_counts *u, const struct vc_law *l,
		       const struct vc_sample *s, size_t n)
{
	double root = root_of(l, u->side);

	if (n != 2 || isnan(root) || root >= 0)
		return 0;
	for (size_t i = 1; i < u->n; i++)
		if (same(u->root[i], root))
			return 0;
	return log(s[1].y / s[0].y) / log(s[1].x / s[0].x);
}

bool vc_counts_product(const struct vc_counts *u, const struct vc_sample *s, size_t n,
		       struct vc_law *out)
{
	double w = power_of(s[n - 1].x, u->side);

	for (size_t i = 0; i < u->n; i++)
		for (size_t j = i ? i : 1; j < u->n; j++) {
			double p = u->root[i], q = u->root[j];
			double k = s[n - 1].y / ((w + p) * (w + q));
			struct vc_law l = { .kind = VC_LAW_CURVE, .a = k * p * q };
			bool fits = w + p > 0 && w + q > 0;

			*(u->side ? &l.c : &l.b) = k * (p + q);
			*(u->side ? &l.e : &l.c) = k;
			for (size_t m = 0; fits && m < n; m++)
				fits = fabs(vc_law_at(&l, s[m].x) - s[m].y) < 0.5;
			if (!fits)
				continue;
			*out = l;
			return true;
		}
	return false;
}
