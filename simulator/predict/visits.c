/* SPDX-License-Identifier: Apache-2.0 */
/* visits.c - see visits.h
 *
 * A visit is a run of requests of one place that are no more than two turns apart. The parameter is
 * the same at each visit of a recording, so what differs between visits of one recording is not its
 * work. Two recordings are held against each other by a t-test of the logarithms of their turns:
 * visit by visit where both have as many (an evaluation may turn twice as often as a step, in
 * both), else of their means (Welch, "The generalization of 'Student's' problem when several
 * different population variances are involved", Biometrika 34, 1947). */
#include "simulator/predict/visits.h"

#include <math.h>
#include <stdlib.h>

#include "common/vec.h"

#define APART 2      /* turns between two visits */
#define SURE 4       /* standard errors: five to ten visits show that by chance in 1 of 100 */
#define ROUNDING 1e-9

struct visits { double *turns; size_t n; }; /* logarithms */

static int read(const struct vc_allocations *m, uint64_t site, uint32_t period, struct visits *v)
{
	uint32_t last = 0;

	*v = (struct visits){ 0 };
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->take[i].site != site)
			continue;
		if (!v->n || i - last > APART * period) {
			if (!vc_vec_one(v->turns, v->n))
				return VC_ENOMEM;
			v->turns[v->n++] = 0;
		}
		v->turns[v->n - 1]++;
		last = i;
	}
	for (size_t i = 0; i < v->n; i++)
		v->turns[i] = log(v->turns[i]);
	return VC_OK;
}

/* The mean of n values (less those of `from`, where that is given), and its squared error. */
static double mean(const double *y, const double *from, size_t n, double *squared)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += (y[i] - (from ? from[i] : 0)) / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += pow(y[i] - (from ? from[i] : 0) - sum, 2);
	*squared = n > 1 ? squares / (double)(n - 1) / (double)n : 0;
	return sum;
}

static bool differ(const struct visits *a, const struct visits *b)
{
	double error[2] = { 0, 0 }, off;

	if (!a->n || !b->n)
		return false;
	off = a->n == b->n ? mean(a->turns, b->turns, a->n, &error[0]) :
			     mean(a->turns, NULL, a->n, &error[0]) -
				     mean(b->turns, NULL, b->n, &error[1]);
	return fabs(off) > ROUNDING && fabs(off) > SURE * sqrt(error[0] + error[1]);
}

int vc_visits_follow(const struct vc_allocations *m, const double *x, size_t n, uint64_t site,
		     uint32_t period, bool *follow)
{
	struct visits end[2] = { { 0 }, { 0 } };
	double at[2] = { INFINITY, -INFINITY };
	int rc = VC_OK;

	for (size_t k = 0; !rc && k < n; k++) {
		struct visits v;

		rc = read(&m[k], site, period, &v);
		for (int e = 0; !rc && v.n && e < 2; e++) {
			if (e ? x[k] <= at[e] : x[k] >= at[e])
				continue;
			at[e] = x[k];
			free(end[e].turns);
			end[e] = (struct visits){ 0 };
			rc = read(&m[k], site, period, &end[e]);
		}
		free(v.turns);
	}
	*follow = !rc && at[0] < at[1] && differ(&end[0], &end[1]);
	free(end[0].turns);
	free(end[1].turns);
	return rc;
}
