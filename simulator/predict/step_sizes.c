/* SPDX-License-Identifier: Apache-2.0 */
/* step_sizes.c - see step_sizes.h
 *
 * A law through one size of each recording takes the data of two steps for the effect of the
 * parameter: 900 nodes of 4 graphs and 1,100 of 8 say nothing about 16. The middle of all steps
 * does, and the steps themselves are a sample of how far one may lie beside it (the bootstrap:
 * Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979). Blocks
 * of one step are resampled together, so that what varies together stays together. */
#include "simulator/predict/step_sizes.h"

#include "common/vec.h"
#include "simulator/anatomy/anatomy.h"

#define SAME 0.002   /* sizes that differ by less are one: rounding of a launch */
#define UNLIKE 2     /* by how much more or less one block of a step may grow than the step */
#define SHARE 0.005   /* of a step's bytes that have to vary before anything is resampled */
enum { DISTINCT = 3, TREND = 4 }; /* lengths that take turns are two; sizes that only grow, or only
				   * shrink, over so many steps follow no data */
enum { MANY = 16, JUDGED = 256 }; /* steps that show it, at most: bounds time */

#define NO_STEP UINT32_MAX

struct range { size_t from, n; }; /* allocations of a step, in order of `list` */

void vc_step_sizes_fini(struct vc_step_sizes *s)
{
	VC_FREE(s->place, s->step, s->size, s->mean, s->sigma);
	*s = (struct vc_step_sizes){ 0 };
}

bool vc_step_sizes_has(const struct vc_step_sizes *s, size_t i)
{
	return s->vary && s->place[i] && s->mean[s->place[i] - 1] > 0;
}

double vc_step_sizes_mean(const struct vc_step_sizes *s, const struct vc_allocations *m, size_t i)
{
	return vc_step_sizes_has(s, i) ? s->mean[s->place[i] - 1] : (double)m->take[i].size;
}

/* ---- steps side by side ---- */

struct steps {
	uint32_t *list;      /* allocations by step, those of the first step last */
	struct range *step;
	size_t n, reference;
};

/* The step in the middle by its number of allocations. */
static size_t choose(const struct steps *t)
{
	size_t best = 0, least = SIZE_MAX;

	for (size_t g = 0; g < t->n; g++) {
		size_t below = 0, above = 0;

		for (size_t k = 0; k < t->n; k++) {
			below += t->step[k].n < t->step[g].n;
			above += t->step[k].n > t->step[g].n;
		}
		size_t off = below > above ? below - above : above - below;
		if (off < least) {
			least = off;
			best = g;
		}
	}
	return best;
}

/* The first step, which makes states and handles, goes last. */
static size_t step_of(const struct steps *t, uint32_t iteration)
{
	return iteration ? iteration - 1 : t->n;
}

static void deal(struct steps *t, const struct vc_anatomy *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a->block[i].iteration <= t->n)
			t->step[step_of(t, a->block[i].iteration)].n++;
	for (size_t g = 0, at = 0; g <= t->n; g++) {
		t->step[g].from = at;
		at += t->step[g].n;
		t->step[g].n = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (a->block[i].iteration <= t->n) {
			struct range *r = &t->step[step_of(t, a->block[i].iteration)];

			t->list[r->from + r->n++] = (uint32_t)i;
		}
	t->reference = choose(t);
}

static double bytes(const struct vc_allocations *m, const struct steps *t, size_t g)
{
	double all = 0;

	for (size_t i = 0; i < t->step[g].n; i++)
		all += (double)m->take[t->list[t->step[g].from + i]].size;
	return all;
}

/* Bytes of n blocks that are asked for where some of the others are, too; site: room for theirs. */
static double shared(const struct vc_take *a, size_t n, const struct vc_take *b, size_t others,
		     uint64_t *site)
{
	double all = 0;

	for (size_t i = 0; i < others; i++)
		site[i] = b[i].site;
	vc_sort_u64(site, others);
	for (size_t i = 0; i < n; i++)
		all += a[i].site && vc_find_u64(site, others, a[i].site) ? (double)a[i].size : 0;
	return all;
}

/* How much larger the data of step b are than those of step a. A first step makes states and
 * handles besides, which have call sites of their own. */
static double ratio_of(const struct vc_take *a, size_t na, const struct vc_take *b, size_t nb,
		       uint64_t *site)
{
	double x = shared(a, na, b, nb, site), y = shared(b, nb, a, na, site);

	return x > 0 && y > 0 ? y / x : 0;
}

/* Step g beside the reference step: by place where both make the same calls, else aligned. */
static int place_one(struct vc_step_sizes *s, const struct vc_allocations *m, const struct steps *t,
		     size_t g, struct vc_error *err)
{
	const uint32_t *a = t->list + t->step[g].from,
		       *b = t->list + t->step[t->reference].from;
	size_t na = t->step[g].n, nb = t->step[t->reference].n, same = 0;
	struct vc_take *take = malloc((na + nb + 1) * sizeof(*take));
	uint32_t *match = malloc((na + 1) * sizeof(*match));
	uint64_t *site = malloc((na + nb + 1) * sizeof(*site));
	int rc = take && match && site ? VC_OK : vc_nomem(err, "the steps of a recording");

	for (size_t i = 0; !rc && i < na; i++)
		take[i] = m->take[a[i]];
	for (size_t i = 0; !rc && i < nb; i++)
		take[na + i] = m->take[b[i]];
	while (!rc && na == nb && same < na && take[same].site == take[na + same].site)
		same++;
	double ratio = rc ? 0 : ratio_of(take, na, take + na, nb, site);
	if (!(ratio > 0)) /* no call sites were recorded */
		ratio = bytes(m, t, t->reference) / fmax(1, bytes(m, t, g));
	struct vc_ratios r = { .at = { 1, ratio / UNLIKE, ratio * UNLIKE }, .n = 3 };
	if (!rc && (na != nb || same < na)) /* one may grow while another one shrinks */
		rc = vc_align(take, na, take + na, nb, &r, match, err);
	for (size_t i = 0; !rc && i < na; i++) {
		uint32_t at = na == nb && same == na ? (uint32_t)i : match[i];

		s->step[a[i]] = (uint32_t)g;
		/* what a first step makes to stay (workspace of a handle) is no data of it */
		if (at == VC_UNMATCHED || vc_allocations_lasts(m, a[i]))
			continue;
		s->place[a[i]] = at + 1;
		s->size[g * s->places + at] = (double)m->take[a[i]].size;
	}
	VC_FREE(take, match, site);
	return rc;
}

/* ---- what varies ---- */

/* Does a place have several sizes in no order? Of a few steps nearly each has another one; of many
 * steps some are alike, because lengths are whole numbers, often rounded, and cut off. */
static bool is_data(const double *y, size_t all)
{
	size_t n = all < JUDGED ? all : JUDGED, distinct = 0, up = 0, down = 0;

	for (size_t i = 0; i < n; i++) {
		bool new = true;

		for (size_t k = 0; k < i; k++)
			new &= fabs(y[k] / y[i] - 1) > SAME;
		distinct += new;
		up += i && y[i] > y[i - 1] * (1 + SAME);
		down += i && y[i] * (1 + SAME) < y[i - 1];
	}
	if (distinct < DISTINCT || (n >= TREND && (!up || !down)))
		return false;
	return 2 * distinct > n || (n >= MANY && 4 * (up + down) >= n);
}

/* Sizes of a place in the steps that have it; y: room for them. Returns how many. */
static size_t sizes_of(const struct vc_step_sizes *s, size_t p, double *y)
{
	size_t n = 0;

	for (size_t g = 0; g < s->steps; g++)
		if (s->size[g * s->places + p] > 0)
			y[n++] = s->size[g * s->places + p];
	return n;
}

/* Of the logarithms of n values. */
static double deviation(const double *y, size_t n)
{
	double logs = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		logs += log(y[i]);
		squares += log(y[i]) * log(y[i]);
	}
	return n > 1 ? sqrt(fmax(0, (squares - logs * logs / (double)n) / (double)(n - 1))) : 0;
}

/* Which places vary with the data, and how much. y: room for a value a step. */
static void judge(struct vc_step_sizes *s, double *y)
{
	double vary = 0, all = 0;

	for (size_t p = 0; p < s->places; p++) {
		size_t n = sizes_of(s, p, y);
		double mean = 0;

		for (size_t i = 0; i < n; i++)
			mean += y[i] / (double)n;
		all += mean;
		if (n < DISTINCT || !is_data(y, n))
			continue;
		vary += mean;
		s->mean[p] = mean;
		s->sigma[p] = deviation(y, n);
	}
	s->vary = vary > SHARE * all;
}

static int make_room(struct vc_step_sizes *s, size_t n, const struct steps *t,
		     struct vc_error *err)
{
	s->steps = t->n;
	s->places = (uint32_t)t->step[t->reference].n;
	s->place = calloc(n + 1, sizeof(*s->place));
	s->step = malloc((n + 1) * sizeof(*s->step));
	s->size = calloc((t->n + 1) * (s->places + 1), sizeof(*s->size));
	s->mean = calloc(s->places + 1, sizeof(*s->mean));
	s->sigma = calloc(s->places + 1, sizeof(*s->sigma));
	VC_HAVE(s->place && s->step && s->size && s->mean && s->sigma, "the steps of a recording",
		err);
	memset(s->step, 0xff, n * sizeof(*s->step)); /* NO_STEP */
	return VC_OK;
}

static int read_steps(struct vc_step_sizes *s, const struct vc_allocations *m,
		      const struct vc_anatomy *a, struct vc_error *err)
{
	struct steps t = { .n = a->iterations - 1 };
	double *y = calloc(t.n + 1, sizeof(*y));
	int rc;

	t.list = malloc((m->n + 1) * sizeof(*t.list));
	t.step = calloc(t.n + 1, sizeof(*t.step));
	rc = t.list && t.step && y ? VC_OK : vc_nomem(err, "the steps of a recording");
	if (!rc) {
		deal(&t, a, m->n);
		rc = make_room(s, m->n, &t, err);
	}
	for (size_t g = 0; !rc && g <= t.n; g++)
		rc = place_one(s, m, &t, g, err);
	if (!rc) {
		judge(s, y);
		for (size_t g = 0; g < t.n; g++) /* how many blocks there are varies, too */
			y[g] = fmax(1, bytes(m, &t, g));
		s->noise = s->vary ? deviation(y, t.n) : 0;
	}
	VC_FREE(t.list, t.step, y);
	return rc;
}

int vc_step_sizes_read(struct vc_step_sizes *s, const struct vc_allocations *m,
		       struct vc_error *err)
{
	struct vc_anatomy a;
	int rc = VC_OK;

	*s = (struct vc_step_sizes){ 0 };
	VC_TRY(vc_anatomy_of(&a, m->trace, m->device, err));
	if (a.n == m->n && a.confidence >= VC_ANATOMY_SURE && a.iterations > DISTINCT)
		rc = read_steps(s, m, &a, err);
	vc_anatomy_fini(&a);
	return rc;
}

/* ---- resampling ---- */

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x * 0x2545f4914f6cdd1dull; /* Marsaglia and Vigna's xorshift64* */
}

void vc_step_sizes_sample(const struct vc_step_sizes *s, unsigned sample, uint32_t *from)
{
	uint64_t x = 0x9e3779b97f4a7c15ull * (sample + 1);

	for (size_t g = 0; g <= s->steps; g++) {
		uint32_t any = (uint32_t)((next(&x) >> 33) % s->steps);

		from[g] = sample ? any : (uint32_t)g;
	}
}

double vc_step_sizes_factor(const struct vc_step_sizes *s, size_t i, const uint32_t *from,
			    double ratio)
{
	uint32_t p = s->place[i] - 1;
	double size = s->size[from[s->step[i]] * s->places + p];

	return size > 0 ? pow(size / s->mean[p], 1 / sqrt(fmax(0.25, ratio))) : 1;
}
