/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - see spread.h
 *
 * Peaks vary as much, in logarithms, at the recorded values as at those that are asked for, so both
 * say how much; how far one more run may lie beside the mean is Student's t. Whether a step finds
 * room in the cache hangs on the order of sizes, so that what is reserved may be either of two,
 * twice as much as the other, where tensors vary by some percent. So an end is the nearer one of
 * two: by what was reserved, and by tensors with as little and as much beside them as in any run,
 * and a quarter of that range more: eight programs with ten seeds, two of other people with up to
 * twenty, are inside as often so as by what was reserved alone (97.0 and 97.2 %), and those that
 * were widest are a third to a half narrower. */
#include "simulator/session/spread.h"

#include "common/error.h"

static const double quantile[] = { /* two-sided 99 %, by degrees of freedom */
	63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
	2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
	2.771, 2.763, 2.756, 2.750, 2.744 };

#define BEYOND 0.25

struct logs {
	double held[VC_SPREAD_MOST + 1], reserved[VC_SPREAD_MOST + 1];
};

/* low, high: the least and the most that was reserved beside what tensors held. */
static void read_logs(const struct vc_peaks *p, unsigned n, struct logs *out, double *low,
		      double *high)
{
	for (unsigned i = 0; i < n; i++) {
		out->held[i] = log(fmax(1, (double)p[i].peak_allocated));
		out->reserved[i] = log(fmax(1, (double)p[i].peak_reserved));
		*low = fmin(*low, out->reserved[i] - out->held[i]);
		*high = fmax(*high, out->reserved[i] - out->held[i]);
	}
}

static double squares(const double *x, unsigned n, double *mean)
{
	double sum = 0;

	*mean = 0;
	for (unsigned i = 0; i < n; i++)
		*mean += x[i] / n;
	for (unsigned i = 0; i < n; i++)
		sum += (x[i] - *mean) * (x[i] - *mean);
	return sum;
}

/* How far one more may lie beside *mean, of x. */
static double reach(const double *x, const double *recorded, unsigned n, double *mean)
{
	unsigned freedom = 2 * n - 1;
	double there = squares(recorded, n + 1, mean), here = squares(x, n, mean);

	return quantile[freedom - 1] * sqrt((there + here) / freedom * (1 + 1.0 / n));
}

static uint64_t bytes_of(double x)
{
	return x < log(0x1p62) ? (uint64_t)exp(x) : 1ull << 62;
}

unsigned vc_spread(const struct vc_peaks *run, const struct vc_peaks *recorded, unsigned n,
		   uint64_t *least, uint64_t *most)
{
	double low = INFINITY, high = -INFINITY, held, mean, far, from, to, beyond;
	unsigned middle = 0;
	struct logs here, there;

	read_logs(run, n, &here, &low, &high);
	read_logs(recorded, n + 1, &there, &low, &high);
	far = reach(here.held, there.held, n, &held);
	beyond = BEYOND * (high - low);
	from = held - far + low - beyond;
	to = held + far + high + beyond;
	far = reach(here.reserved, there.reserved, n, &mean);
	from = fmax(from, mean - far);
	to = fmin(to, mean + far);
	for (unsigned i = 0; i < n; i++) {
		from = fmin(from, here.reserved[i]);
		to = fmax(to, here.reserved[i]);
		if (fabs(here.reserved[i] - mean) < fabs(here.reserved[middle] - mean))
			middle = i;
	}
	*least = bytes_of(from);
	*most = bytes_of(to);
	return middle;
}
