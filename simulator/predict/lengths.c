/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.c - see lengths.h
 *
 * In steps of one size each, all of them grow alike from one recording to the other, and by a
 * power of the parameter. Where one step grew by 1.6 and the next by 2.3 the amount of data is
 * that of the longest sample of each batch, and the longest of more samples is longer: like the
 * largest of n random lengths, by some percent with each doubling. */
#include "simulator/predict/lengths.h"

#include <math.h>
#include <stdlib.h>

#include "common/vec.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/predict/spread.h"

#define SPREAD 1.01    /* steps that grow this much unlike */
#define FLATTEST                                                                                 \
	0.1 /* exponent of the best guess: lengths of text and speech, 0.1 to 0.3 over the first \
	     */
#define STEEPEST 0.5   /* doublings */
#define AT_LEAST 0.25  /* the upper end's exponent, however little two recordings show */
/* Standard deviations of what the steps need by which unseen ones may need more: where several
 * recordings show steps, and where one does. */
#define MARGIN 1.0
#define MARGIN_ALONE 2.0
enum { STEPS = 3, MOST = 256 }; /* samples: any ratio is one of whole numbers up to more */

struct pair { uint32_t group; double ratio, size; };

VC_COMPARE(by_ratio, struct pair,
	   VC_THEN(VC_ORDER(x->group, y->group), VC_ORDER(x->ratio, y->ratio)))

void vc_lengths_fini(struct vc_lengths *l)
{
	free(l->group);
	free(l->power);
	free(l->amount);
	free(l->pool);
	*l = (struct vc_lengths){ 0 };
}

/* Steps of the base: training iterations. */
static int read_groups(struct vc_lengths *l, const struct vc_allocations *m, struct vc_error *err)
{
	struct vc_anatomy a;

	VC_TRY(vc_anatomy_of(&a, m->trace, m->device, err));
	if (a.n == m->n && a.confidence >= VC_ANATOMY_SURE && a.iterations >= STEPS) {
		l->groups = a.iterations;
		for (size_t i = 0; i < m->n; i++)
			l->group[i] = a.block[i].iteration < a.iterations ?
					      a.block[i].iteration + 1 : 0;
	}
	vc_anatomy_fini(&a);
	return 0;
}

/* By how much a step's data grew to another recording: the middle of its bytes; NAN: it did not. */
static int growths(const struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		   size_t other, double *growth, struct vc_error *err)
{
	const struct vc_allocations *b = &o->m[base], *k = &o->m[other];
	const uint32_t *match = o->match[other];
	struct pair *p = malloc((b->n + 1) * sizeof(*p));
	size_t n = 0;

	VC_HAVE(p, "the steps of a recording", err);
	for (size_t i = 0; i < b->n; i++) {
		double size = (double)b->take[i].size;
		double ratio = match[i] == UINT32_MAX ? 1 : (double)k->take[match[i]].size / size;

		if (l->group[i] && fabs(ratio - 1) > 1e-3 && !(o->plan && o->plan[i]))
			p[n++] = (struct pair){ l->group[i], ratio, size };
	}
	qsort(p, n, sizeof(*p), by_ratio);
	for (size_t g = 0; g < l->groups; g++)
		growth[g] = NAN;
	for (size_t from = 0, to; from < n; from = to) {
		double all = 0, sum = 0;

		for (to = from; to < n && p[to].group == p[from].group; to++)
			all += p[to].size;
		for (size_t i = from; i < to; i++)
			if ((sum += p[i].size) * 2 >= all) {
				growth[p[from].group - 1] = p[i].ratio;
				break;
			}
	}
	free(p);
	return 0;
}

/* As one batch that is not full beside another one, or beside a full one, is: so many samples. */
static bool is_rest(double growth, double from, double to)
{
	for (double n = 1; n <= from && n <= MOST; n++)
		if (round(growth * n) <= to && fabs(round(growth * n) / (growth * n) - 1) < 2e-3)
			return true;
	return from > MOST;
}

static bool is_power(double growth, double ratio)
{
	for (int p = 1; p <= 4; p++)
		if (fabs(growth / pow(ratio, p) - 1) < 2e-3)
			return true;
	return false;
}

/* Steps that grow unlike each other, and not by a power of the parameter either: keep those, the
 * others follow laws. A single one may be of a batch that is not full. */
static bool mark(const double *growth, size_t groups, double from, double to, bool *free_steps)
{
	double lo = INFINITY, hi = 0, ratio = to / from;
	size_t known = 0, none = 0;

	for (size_t g = 0; g < groups; g++) {
		if (isnan(growth[g]))
			continue;
		lo = fmin(lo, growth[g]);
		hi = fmax(hi, growth[g]);
		known++;
		none += is_power(growth[g], ratio) ? 0 : is_rest(growth[g], from, to) ? 1 : 2;
	}
	if (known < STEPS || none < 2 || hi < SPREAD * lo)
		return false;
	for (size_t g = 0; g < groups; g++)
		free_steps[g] |= !isnan(growth[g]) && !is_power(growth[g], ratio);
	return true;
}

/* Power of a sample's length in each size, where the step's own growth tells. */
static void powers(struct vc_lengths *l, const struct vc_allocations *b,
		   const struct vc_allocations *k, const uint32_t *match, const double *growth,
		   double ratio)
{
	for (size_t i = 0; i < b->n; i++) {
		double length = l->group[i] ? log(growth[l->group[i] - 1] / ratio) : 0;

		if (match[i] == UINT32_MAX || isnan(length) || fabs(length) < 0.02)
			continue;
		double p = log((double)k->take[match[i]].size / (double)b->take[i].size / ratio) /
			   length;
		l->power[i] = (float)(p < 0 ? 0 : p > 2 ? 2 : p);
	}
}

/* Blocks whose size is the same everywhere, and those of steps that follow laws, leave. */
static void settle(struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		   const bool *free_steps)
{
	const struct vc_allocations *b = &o->m[base];

	for (size_t i = 0; i < b->n; i++) {
		bool moves = false;

		for (size_t k = 0; k < o->n; k++)
			moves |= o->match[k] && o->match[k][i] != UINT32_MAX &&
				 o->m[k].take[o->match[k][i]].size != b->take[i].size;
		if (l->group[i] && (!moves || !free_steps[l->group[i] - 1]))
			l->group[i] = 0;
		if (l->group[i])
			l->amount[l->group[i] - 1] += (double)b->take[i].size;
	}
}

/* How the data per sample of the longest step grows with the parameter. */
static void slope(struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		  double *const *growth)
{
	double x[2] = { INFINITY, 0 }, longest[2] = { 1, 1 }, n = 0, sum = 0, squares = 0;

	l->least = INFINITY;
	for (size_t k = 0; k < o->n; k++) {
		double most = 0;

		if (k != base && !o->match[k])
			continue;
		for (size_t g = 0; g < l->groups; g++) {
			double a = l->amount[g] *
				   (k == base ? 1 : growth[k][g] * o->x[base] / o->x[k]);

			if (!(a > 0))
				continue;
			most = fmax(most, a);
			l->longest = k == base ? most : l->longest;
			l->least = fmin(l->least, a);
			n++;
			sum += log(a);
			squares += log(a) * log(a);
		}
		l->most = fmax(l->most, most);
		if (o->x[k] < x[0]) {
			x[0] = o->x[k];
			longest[0] = most;
		}
		if (o->x[k] > x[1]) {
			x[1] = o->x[k];
			longest[1] = most;
		}
	}
	double e = log(longest[1] / longest[0]) / log(x[1] / x[0]);
	l->sigma = sqrt(fmax(0, squares / n - sum / n * (sum / n)));
	l->margin = exp(MARGIN * l->sigma);
	l->exponent = !(e > FLATTEST) ? FLATTEST : e > STEEPEST ? STEEPEST : e;
}

/* The steps of all recordings, as long as they would be at the base's value: what is drawn from. */
static int gather(struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		  double *const *growth, struct vc_error *err)
{
	l->pool = malloc(o->n * l->groups * sizeof(*l->pool));
	VC_HAVE(l->pool, "the steps of a recording", err);
	for (size_t k = 0; k < o->n; k++)
		for (size_t g = 0; g < l->groups; g++) {
			double ratio = o->x[base] / o->x[k];
			double a = k == base ? l->amount[g] :
				   o->match[k] ? l->amount[g] * growth[k][g] * ratio *
						 pow(ratio, l->exponent) : 0;

			if (a > 0)
				l->pool[l->pooled++] = a;
		}
	return VC_OK;
}

static int compare(struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		   double **growth, bool *free_steps, struct vc_error *err)
{
	const struct vc_allocations *b = &o->m[base];

	for (size_t k = 0; k < o->n; k++) {
		if (!o->match[k])
			continue;
		growth[k] = calloc(l->groups, sizeof(**growth));
		VC_HAVE(growth[k], "the steps of a recording", err);
		VC_TRY(growths(l, o, base, k, growth[k], err));
		l->vary |= mark(growth[k], l->groups, o->x[base], o->x[k], free_steps);
	}
	for (size_t k = 0; l->vary && k < o->n; k++)
		if (o->match[k])
			powers(l, b, &o->m[k], o->match[k], growth[k], o->x[k] / o->x[base]);
	if (l->vary) {
		settle(l, o, base, free_steps);
		slope(l, o, base, growth);
		VC_TRY(gather(l, o, base, growth, err));
	}
	return 0;
}

int vc_lengths_read(struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		    struct vc_error *err)
{
	const struct vc_allocations *b = &o->m[base];

	*l = (struct vc_lengths){ .group = calloc(b->n + 1, sizeof(*l->group)),
				  .power = malloc((b->n + 1) * sizeof(*l->power)) };
	int rc = l->group && l->power ? read_groups(l, b, err) :
					vc_nomem(err, "the steps of a recording");
	if (rc || !l->groups)
		return rc;
	for (size_t i = 0; i < b->n; i++)
		l->power[i] = 1;
	l->amount = calloc(l->groups, sizeof(*l->amount));
	double **growth = calloc(o->n, sizeof(*growth));
	bool *free_steps = calloc(l->groups, sizeof(*free_steps));

	rc = l->amount && growth && free_steps ? compare(l, o, base, growth, free_steps, err) :
						 vc_nomem(err, "the steps of a recording");
	for (size_t k = 0; growth && k < o->n; k++)
		free(growth[k]);
	VC_FREE(growth, free_steps);
	return rc;
}

/* Amounts that differ from all others by more than the allocator's rounding. */
static size_t unlike(const struct vc_lengths *l)
{
	size_t n = 0;

	for (size_t g = 1; g < l->groups; g++) { /* the first step makes states and handles */
		bool new = l->amount[g] > 0;

		for (size_t k = 1; k < g; k++)
			new &= fabs(l->amount[g] / l->amount[k] - 1) > 0.005;
		n += new;
	}
	return n;
}

static void span(struct vc_lengths *l)
{
	double n = 0, sum = 0, squares = 0;

	l->least = INFINITY;
	for (size_t g = 1; g < l->groups; g++) {
		double a = l->amount[g];

		if (!(a > 0))
			continue;
		l->most = fmax(l->most, a);
		l->least = fmin(l->least, a);
		n++;
		sum += log(a);
		squares += log(a) * log(a);
	}
	l->longest = l->most;
	l->sigma = sqrt(fmax(0, squares / n - sum / n * (sum / n)));
	l->margin = exp(MARGIN_ALONE * l->sigma);
	l->exponent = FLATTEST;
}

int vc_lengths_alone(struct vc_lengths *l, const struct vc_allocations *m, const bool *moves,
		     struct vc_error *err)
{
	*l = (struct vc_lengths){ .group = calloc(m->n + 1, sizeof(*l->group)),
				  .power = malloc((m->n + 1) * sizeof(*l->power)) };
	int rc = l->group && l->power ? read_groups(l, m, err) :
					vc_nomem(err, "the steps of a recording");

	if (rc || !l->groups)
		return rc;
	l->amount = calloc(l->groups, sizeof(*l->amount));
	VC_HAVE(l->amount, "the steps of a recording", err);
	for (size_t i = 0; i < m->n; i++) {
		l->power[i] = 1;
		l->group[i] = moves[i] ? l->group[i] : 0;
		if (l->group[i])
			l->amount[l->group[i] - 1] += (double)m->take[i].size;
	}
	l->vary = l->groups > STEPS && unlike(l) >= STEPS;
	if (l->vary)
		span(l);
	return 0;
}

double vc_lengths_longer(const struct vc_lengths *l, size_t i, double ratio, enum vc_bound bound)
{
	if (bound == VC_BOUND_LOW)
		return l->least / l->margin / l->amount[l->group[i] - 1];
	if (bound == VC_BOUND_HIGH) /* steps of unlike sizes, which break the cache into pieces */
		return l->most / l->longest * l->margin *
		       (ratio > 1 ? pow(ratio, fmax(l->exponent, AT_LEAST)) : 1);
	return ratio > 1 ? pow(ratio, l->exponent) : 1;
}

/* By what factor the step of allocation i is longer in that draw: it has the data of any step. */
static double drawn(const struct vc_lengths *l, size_t i, unsigned draw)
{
	size_t own = l->group[i] - 1;
	uint64_t x = ((uint64_t)draw << 32 | own) * 0x9e3779b97f4a7c15ull;

	if (draw <= VC_DRAW_OWN)
		return 1;
	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull; /* splitmix64, as in plans.c */
	double there = l->pooled ? l->pool[(x >> 32) % l->pooled] :
				   l->amount[(x >> 32) % l->groups];

	return there > 0 ? there / l->amount[own] : 1;
}

double vc_lengths_size(const struct vc_lengths *l, uint64_t size, size_t i, double ratio,
		       enum vc_bound bound, unsigned draw)
{
	double bytes = (double)size * ratio *
		       pow(vc_lengths_longer(l, i, ratio, bound) * drawn(l, i, draw), l->power[i]);

	return bytes < 1 ? 1 : round(bytes);
}
