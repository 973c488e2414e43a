/* SPDX-License-Identifier: Apache-2.0 */
/* rounding.c - see rounding.h
 *
 * Frameworks pad lengths to multiples (of 8 for tensor cores, of 64 and 128 for windows and blocks
 * of attention), and transforms of Fourier's kind to the next power of two. */
#include "simulator/predict/rounding.h"

#include <math.h>

enum { POWER_OF_TWO = 0 };
static const double multiple[] = { POWER_OF_TWO, 8, 16, 32, 64, 128 };
enum { WAYS = sizeof(multiple) / sizeof(*multiple) };

static double up(double x, double pad)
{
	return pad > 0 ? ceil(x / pad) * pad : exp2(ceil(log2(x) - 1e-9));
}

/* Does it explain the recordings as well as no rounding does? */
static bool is_open(const double *x, size_t n, double pad)
{
	double ratio = up(x[0], pad) / x[0];

	for (size_t i = 1; i < n; i++)
		if (fabs(up(x[i], pad) / x[i] / ratio - 1) > 1e-9)
			return false;
	return pad > 0 ? ratio == 1 : true; /* 50 and 100 to multiples of 128 are chance */
}

double vc_rounding_other(const double *x, size_t n, double at, bool high)
{
	double most = at;

	for (size_t i = 0; n > 1 && i < WAYS; i++) {
		double v = is_open(x, n, multiple[i]) ?
				   up(at, multiple[i]) / (up(x[0], multiple[i]) / x[0]) : at;

		most = (v > most) == high ? v : most;
	}
	return most;
}

double vc_rounding_step(const double *x, size_t n, double at, bool high)
{
	double most = 1;

	for (size_t i = 0; n > 1 && i < WAYS; i++) {
		bool same = true;
		double all = up(x[0], multiple[i]), v = up(at, multiple[i]) / all;

		for (size_t k = 1; k < n; k++)
			same &= up(x[k], multiple[i]) == all;
		most = same && (v > most) == high ? v : most;
	}
	return most;
}

double vc_rounding_tells(const double *x, size_t n)
{
	double low = INFINITY;

	for (size_t i = 0; i < n; i++)
		low = fmin(low, x[i]);
	return n > 1 ? 2 * floor(low * 0.75) + 1 : 0; /* between low and twice that, odd */
}
