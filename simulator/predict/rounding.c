/* SPDX-License-Identifier: Apache-2.0 */
/* rounding.c - see rounding.h
 *
 * Frameworks pad lengths to multiples (of 8 for tensor cores, of 64 and 128 for windows and blocks
 * of attention), and transforms of Fourier's kind to the next power of two. */
#include "simulator/predict/rounding.h"

#include <math.h>

#define FEW 0.01 /* of the bytes that grow: no more than chance */

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

double vc_rounding_power(const double *x, size_t n)
{
	return n > 1 && is_open(x, n, POWER_OF_TWO) ? up(x[0], POWER_OF_TWO) / x[0] : 1;
}

/* Bytes for each unit, or for each pair of units and so on; 0: it is not known. */
static double each(const struct vc_law *l, double *degree)
{
	const double by[] = { l->b, l->c, l->d, l->e };

	if (l->kind != VC_LAW_LINEAR && l->kind != VC_LAW_QUADRATIC && l->kind != VC_LAW_AFFINE)
		return 0;
	for (int k = 0; k < 4; k++)
		if (by[k] > 0) {
			*degree = k + 1;
			return by[k];
		}
	return 0;
}

static bool is_whole(double v)
{
	return fabs(v - round(v)) < 1e-6 * fmax(1, v);
}

bool vc_rounding_may_be(const struct vc_law *law, const struct vc_take *t, size_t n, double ratio)
{
	double whole = 0, both = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		double degree = 1, v = each(&law[i], &degree), size = (double)t[i].size;

		all += v > 0 ? size : 0;
		if (!(v > 0) || !is_whole(v))
			continue;
		whole += size;
		both += is_whole(v / pow(ratio, degree)) ? size : 0;
	}
	return ratio == 1 || 2 * whole < all || both > FEW * whole || !(all > 0);
}

double vc_rounding_other(const double *x, size_t n, double at, bool powers, bool high)
{
	double most = at;

	for (size_t i = powers ? 0 : 1; n > 1 && i < WAYS; i++) {
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
