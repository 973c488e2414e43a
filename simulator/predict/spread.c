/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - see spread.h
 *
 * A law through one size of each recording takes the data of two steps for the effect of the
 * parameter: 900 nodes of 4 graphs and 1,100 of 8 say nothing about 16. The middle of all steps
 * does, and the steps themselves are a sample of how far one may lie beside it (the bootstrap:
 * Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979). Blocks
 * of one step are drawn together, so that what varies together stays together. */
#include "simulator/predict/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "common/workers.h"
#include "simulator/anatomy/anatomy.h"

#define SAME 0.002   /* sizes that differ by less are one: rounding of a launch */
#define UNLIKE 2     /* by how much more or less one block of a step may grow than the step */
#define SHARE 0.005   /* of a step's bytes that have to vary before anything is drawn */
enum { THREADS = 4 };
enum { DISTINCT = 3, TREND = 4 }; /* lengths that take turns are two; sizes that only grow, or only
				   * shrink, over so many steps follow no data */
/* Steps that show whether an order comes back, how often at least, how long it may be, and of how
 * many steps one may be otherwise. */
enum { MANY = 16, TURNS = 2, LONGEST_TURN = 64, OTHERWISE = 10 };
enum { JUDGED = 256 }; /* steps that show all of that, at most: bounds time */

#define NO_STEP UINT32_MAX

struct range { size_t from, n; }; /* allocations of a step, in order of `list` */

void vc_spread_fini(struct vc_spread *s)
{
	for (size_t i = 0; i < VC_SPREAD_KNOWN; i++)
		vc_spread_factors_put(s->known[i]);
	VC_FREE(s->place, s->step, s->size, s->mean, s->sigma, s->twin);
	*s = (struct vc_spread){ 0 };
}

bool vc_spread_has(const struct vc_spread *s, size_t i)
{
	return s->varies && s->place[i] && s->mean[s->place[i] - 1] > 0;
}

double vc_spread_middle(const struct vc_spread *s, const struct vc_allocations *m, size_t i)
{
	return vc_spread_has(s, i) ? s->mean[s->place[i] - 1] : (double)m->take[i].size;
}

bool vc_spread_doubts(const struct vc_spread *s, const struct vc_allocations *m, size_t i,
		      const struct vc_law *l, size_t n)
{
	bool power = l->kind == VC_LAW_CONST || l->kind == VC_LAW_LINEAR ||
		     l->kind == VC_LAW_QUADRATIC || l->kind == VC_LAW_ALONE;

	return s->varies && s->step[i] == NO_STEP && !power && (n < 3 || l->residual > 0) &&
	       !vc_allocations_lasts(m, i);
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

/* Standard deviation of the logarithm of a step's bytes: how many blocks there are varies, too. */
static double noise_of(const struct vc_allocations *m, const struct steps *t)
{
	double logs = 0, squares = 0, n = (double)t->n;

	for (size_t g = 0; g < t->n; g++) {
		double l = log(fmax(1, bytes(m, t, g)));

		logs += l;
		squares += l * l;
	}
	return sqrt(fmax(0, (squares - logs * logs / n) / (n - 1)));
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

/* Step a beside step b, whose blocks may be fewer: where one may grow while another one shrinks, or
 * as a whole, whichever leaves fewer of them alone. */
static int match_steps(const struct vc_take *a, size_t na, const struct vc_take *b, size_t nb,
		       double ratio, uint32_t *match, struct vc_error *err)
{
	struct vc_ratios r = { .at = { 1, ratio / UNLIKE, ratio * UNLIKE }, .n = 3 };
	uint32_t *whole = malloc((na + 1) * sizeof(*whole));
	size_t alone[2] = { 0 };
	int rc = whole ? vc_align(a, na, b, nb, &r, match, err) :
			 vc_nomem(err, "the steps of a recording");

	if (!rc)
		rc = vc_align_some(a, na, NULL, b, nb, NULL, ratio, 1, whole, err);
	for (size_t i = 0; !rc && i < na; i++) {
		alone[0] += match[i] == VC_UNMATCHED;
		alone[1] += whole[i] == VC_UNMATCHED;
	}
	if (!rc && alone[1] < alone[0])
		memcpy(match, whole, na * sizeof(*match));
	free(whole);
	return rc;
}

/* Step g beside the reference step: by place where both make the same calls, else aligned. */
static int place_one(struct vc_spread *s, const struct vc_allocations *m, const struct steps *t,
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
	if (!rc && (na != nb || same < na))
		rc = match_steps(take, na, take + na, nb, ratio, match, err);
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

/* Critics and makers that take turns have a few sizes, each again after as many steps. */
static bool take_turns(const double *y, size_t n)
{
	for (size_t period = 1; period <= n / TURNS && period <= LONGEST_TURN; period++) {
		size_t most = (n - period) / OTHERWISE, other = 0;

		for (size_t i = period; i < n && other <= most; i++)
			other += fabs(y[i] / y[i - period] - 1) > SAME;
		if (other <= most)
			return true;
	}
	return false;
}

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
	return 2 * distinct > n || (n >= MANY && 4 * (up + down) >= n && !take_turns(y, n));
}

/* Where others vary with the data, so does what differs between two steps: lengths that are cut off
 * are alike in most. But what grows from each step to the next follows a plan. */
static bool may_be_data(const double *y, size_t all)
{
	size_t n = all < JUDGED ? all : JUDGED, up = 0, down = 0;

	for (size_t i = 1; i < n; i++) {
		up += y[i] > y[i - 1] * (1 + SAME);
		down += y[i] * (1 + SAME) < y[i - 1];
	}
	return up + down > 0 && (n < TREND || (up < n - 1 && down < n - 1)) && !take_turns(y, n);
}

/* Sizes of a place in the steps that have it; y: room for them. Returns how many. */
static size_t sizes_of(const struct vc_spread *s, size_t p, double *y)
{
	size_t n = 0;

	for (size_t g = 0; g < s->steps; g++)
		if (s->size[g * s->places + p] > 0)
			y[n++] = s->size[g * s->places + p];
	return n;
}

static double mean_of(const double *y, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += y[i];
	return n ? sum / (double)n : 0;
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

/* Which places vary with the data, and how much. loose: others do, here or in another recording. y:
 * room for two values a step. */
static void judge(struct vc_spread *s, bool loose, double *y)
{
	double vary = 0, all = 0, *amount = y + s->steps;

	for (size_t g = 0; g < s->steps; g++)
		amount[g] = 0;
	for (size_t p = 0; p < s->places; p++) {
		size_t n = sizes_of(s, p, y);
		double mean = mean_of(y, n);

		all += mean;
		if (n < (loose ? 2 : DISTINCT) ||
		    !(loose ? may_be_data(y, n) || is_data(y, n) : is_data(y, n)))
			continue;
		vary += mean;
		s->mean[p] = mean;
		s->sigma[p] = deviation(y, n);
		for (size_t g = 0; g < s->steps; g++) {
			double v = s->size[g * s->places + p];
			amount[g] += v > 0 ? v : mean;
		}
	}
	s->varies = vary > SHARE * all;
	s->all = s->varies ? deviation(amount, s->steps) : 0;
}

/* Steps wait for nothing of each other. */
struct placing { struct vc_spread *s; const struct vc_allocations *m; const struct steps *t; };

static int place(void *arg, size_t g, struct vc_error *err)
{
	const struct placing *p = arg;

	return place_one(p->s, p->m, p->t, g, err);
}

static int place_all(struct vc_spread *s, const struct vc_allocations *m, const struct steps *t,
		     struct vc_error *err)
{
	struct placing p = { s, m, t };
	const struct vc_work work = { .n = t->n + 1, .arg = &p, .job = place,
				      .threads = vc_workers_most(THREADS) };

	for (size_t i = 0; i < m->n; i++)
		s->step[i] = NO_STEP;
	return vc_workers_run(&work, err);
}

static int read_steps(struct vc_spread *s, const struct vc_allocations *m,
		      const struct vc_anatomy *a, struct vc_error *err)
{
	struct steps t = { .n = a->iterations - 1 };
	double *y = NULL;
	int rc = VC_OK;

	t.list = malloc((m->n + 1) * sizeof(*t.list));
	t.step = calloc(t.n + 1, sizeof(*t.step));
	y = calloc(2 * t.n + 1, sizeof(*y));
	if (t.list && t.step && y)
		deal(&t, a, m->n);
	else
		rc = vc_nomem(err, "the steps of a recording");
	if (rc == VC_OK) {
		s->steps = t.n;
		s->places = (uint32_t)t.step[t.reference].n;
		s->place = calloc(m->n + 1, sizeof(*s->place));
		s->step = malloc((m->n + 1) * sizeof(*s->step));
		s->size = calloc((t.n + 1) * (s->places + 1), sizeof(*s->size));
		s->mean = calloc(s->places + 1, sizeof(*s->mean));
		s->sigma = calloc(s->places + 1, sizeof(*s->sigma));
		if (!s->place || !s->step || !s->size || !s->mean || !s->sigma)
			rc = vc_nomem(err, "the steps of a recording");
	}
	if (rc == VC_OK)
		rc = place_all(s, m, &t, err);
	if (rc == VC_OK) {
		judge(s, false, y);
		s->spreading = noise_of(m, &t);
	}
	VC_FREE(t.list, t.step, y);
	return rc;
}

struct varying { uint32_t step, i; uint64_t size; };

VC_COMPARE(by_size, struct varying,
	   VC_THEN(VC_ORDER(x->step, y->step),
		   VC_THEN(VC_ORDER(x->size, y->size), VC_ORDER(x->i, y->i))))

static int find_twins(struct vc_spread *s, const struct vc_allocations *m, struct vc_error *err)
{
	struct varying *t = s->varies ? malloc((m->n + 1) * sizeof(*t)) : NULL;

	if (!s->varies)
		return VC_OK;
	s->twin = malloc((m->n + 1) * sizeof(*s->twin));
	if (!t || !s->twin) {
		free(t);
		return vc_nomem(err, "the steps of a recording");
	}
	for (size_t i = 0; i < m->n; i++)
		if (vc_spread_has(s, i))
			t[s->twins++] = (struct varying){ s->step[i], (uint32_t)i,
							  m->take[i].size };
	qsort(t, s->twins, sizeof(*t), by_size);
	for (size_t i = 0; i < s->twins; i++)
		s->twin[i] = (struct vc_twin){ t[i].i, i && t[i].step == t[i - 1].step &&
							       t[i].size == t[i - 1].size };
	free(t);
	return VC_OK;
}

int vc_spread_read(struct vc_spread *s, const struct vc_allocations *m, struct vc_error *err)
{
	struct vc_anatomy a;
	int rc = VC_OK;

	*s = (struct vc_spread){ 0 };
	VC_TRY(vc_anatomy_of(&a, m->trace, m->device, err));
	if (a.n == m->n && a.confidence >= VC_ANATOMY_SURE && a.iterations > DISTINCT)
		rc = read_steps(s, m, &a, err);
	vc_anatomy_fini(&a);
	return rc;
}

int vc_spread_settle(struct vc_spread *s, const struct vc_allocations *m, bool others,
		     struct vc_error *err)
{
	double *y = s->steps ? malloc(2 * s->steps * sizeof(*y)) : NULL;

	if (!s->steps)
		return VC_OK;
	VC_HAVE(y, "the steps of a recording", err);
	if (others)
		judge(s, true, y);
	free(y);
	s->noise = s->varies ? s->spreading : 0;
	return find_twins(s, m, err);
}

/* ---- drawing ---- */

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x * 0x2545f4914f6cdd1dull; /* Marsaglia and Vigna's xorshift64* */
}

void vc_spread_draw(const struct vc_spread *s, unsigned draw, uint32_t *from)
{
	uint64_t x = 0x9e3779b97f4a7c15ull * (draw + 1);

	for (size_t g = 0; g <= s->steps; g++) {
		uint32_t any = (uint32_t)((next(&x) >> 33) % s->steps);

		from[g] = draw == VC_DRAW_OWN ? (uint32_t)g : any;
	}
}

static double factor_of(const struct vc_spread *s, size_t g, size_t p, double ratio)
{
	double drawn = s->size[g * s->places + p];

	return drawn > 0 && s->mean[p] > 0 ?
		       pow(drawn / s->mean[p], 1 / sqrt(fmax(0.25, ratio))) : 1;
}

struct vc_spread_factors {
	double ratio;
	size_t users; /* the recording's steps among them */
	double at[];  /* by step, the first one last, and place */
};

static struct vc_spread_factors *make_factors(const struct vc_spread *s, double ratio)
{
	struct vc_spread_factors *f =
		malloc(sizeof(*f) + ((s->steps + 1) * s->places + 1) * sizeof(*f->at));

	for (size_t g = 0; f && g <= s->steps; g++)
		for (size_t p = 0; p < s->places; p++)
			f->at[g * s->places + p] = factor_of(s, g, p, ratio);
	if (f) {
		f->ratio = ratio;
		f->users = 1;
	}
	return f;
}

struct vc_spread_factors *vc_spread_factors_get(struct vc_spread *s, double ratio)
{
	struct vc_spread_factors *f = NULL;

	for (size_t i = 0; i < VC_SPREAD_KNOWN && !f; i++)
		if (s->known[i] && s->known[i]->ratio == ratio)
			f = s->known[i];
	if (!f) {
		f = make_factors(s, ratio);
		if (!f)
			return NULL;
		vc_spread_factors_put(s->known[s->made % VC_SPREAD_KNOWN]);
		s->known[s->made++ % VC_SPREAD_KNOWN] = f;
	}
	f->users++;
	return f;
}

void vc_spread_factors_put(const struct vc_spread_factors *given)
{
	struct vc_spread_factors *f = (struct vc_spread_factors *)given;

	if (f && !--f->users)
		free(f);
}

double vc_spread_factor(const struct vc_spread *s, size_t i, const uint32_t *from,
			const struct vc_spread_factors *f)
{
	return f->at[from[s->step[i]] * s->places + s->place[i] - 1];
}

struct drawn { double peak; unsigned draw; };

VC_COMPARE(by_peak, struct drawn,
	   VC_THEN(VC_ORDER(x->peak, y->peak), VC_ORDER(x->draw, y->draw)))

/* Draws beside each other: the walk over a recording costs as much as one of them. */
enum { LANES = 8 };
struct lanes { double at[LANES]; };

/* Most bytes alive at once; order: allocations as they come, ~i as they go. */
static struct lanes peaks_of(const int32_t *order, size_t n, const struct lanes *size)
{
	struct lanes live = { { 0 } }, most = { { 0 } };

	for (size_t e = 0; e < n; e++) {
		int32_t i = order[e];
		double sign = i >= 0 ? 1 : -1;
		const struct lanes *s = &size[i >= 0 ? i : ~i];

		for (size_t k = 0; k < LANES; k++) {
			live.at[k] += sign * s->at[k];
			most.at[k] = live.at[k] > most.at[k] ? live.at[k] : most.at[k];
		}
	}
	return most;
}

static int draw_all(const struct vc_spread *s, const struct vc_allocations *m,
		    const double *middle, const struct vc_spread_factors *f, const int32_t *order,
		    struct drawn *d, struct vc_error *err)
{
	struct lanes *size = malloc((m->n + 1) * sizeof(*size));
	uint32_t *from = malloc((s->steps + 1) * sizeof(*from));
	bool there = size && from;

	for (size_t i = 0; there && i < m->n; i++)
		for (size_t l = 0; l < LANES; l++)
			size[i].at[l] = middle[i];
	for (unsigned k = 0; there && k < VC_DRAWS; k += LANES) {
		for (unsigned l = 0; l < LANES; l++) {
			vc_spread_draw(s, k + l, from);
			for (size_t t = 0; t < s->twins; t++) {
				uint32_t i = s->twin[t].i;

				size[i].at[l] = middle[i] * vc_spread_factor(s, i, from, f);
			}
		}
		struct lanes peak = peaks_of(order, m->steps, size);
		for (unsigned l = 0; l < LANES; l++)
			d[k + l] = (struct drawn){ peak.at[l], k + l };
	}
	VC_FREE(size, from);
	return there ? VC_OK : vc_nomem(err, "the draws of steps");
}

int vc_spread_choose(const struct vc_spread *s, const struct vc_allocations *m,
		     const double *middle, const struct vc_spread_factors *f, unsigned rank,
		     uint32_t *from, struct vc_error *err)
{
	int32_t *order = malloc((m->steps + 1) * sizeof(*order));
	struct drawn d[VC_DRAWS];
	int rc;

	VC_HAVE(order, "the draws of steps", err);
	for (size_t i = 0; i < m->n; i++) {
		order[m->born[i]] = (int32_t)i;
		if (m->died[i] != VC_NEVER)
			order[m->died[i]] = ~(int32_t)i;
	}
	rc = draw_all(s, m, middle, f, order, d, err);
	free(order);
	if (rc < 0)
		return rc;
	qsort(d, VC_DRAWS, sizeof(*d), by_peak);
	vc_spread_draw(s, d[rank].draw, from);
	return VC_OK;
}

struct vc_law vc_spread_law(const struct vc_sample *s, size_t n, double noise)
{
	struct vc_law best = { .kind = VC_LAW_CONST };
	double least = INFINITY;

	/* What varies with the data grows with the amount of it unless that is off. */
	for (size_t k = 0; k < 3 && (k == 0 || least > 3 * noise); k++) {
		static const int degrees[] = { 1, 0, 2 };
		double logs = 0, miss = 0, c;
		int degree = degrees[k];

		for (size_t i = 0; i < n; i++)
			logs += log(s[i].y / pow(s[i].x, degree));
		c = exp(logs / (double)n);
		for (size_t i = 0; i < n; i++)
			miss = fmax(miss, fabs(log(s[i].y / (c * pow(s[i].x, degree)))));
		if (miss >= least)
			continue;
		least = miss;
		best = (struct vc_law){ .kind = degree == 2 ? VC_LAW_QUADRATIC :
						degree      ? VC_LAW_LINEAR : VC_LAW_CONST };
		*(degree == 2 ? &best.c : degree ? &best.b : &best.a) = c;
	}
	double slope = n > 1 ? (s[n - 1].y - s[0].y) / (s[n - 1].x - s[0].x) : 0;
	if (least > 3 * noise && slope > 0 && s[0].y > slope * s[0].x)
		best = (struct vc_law){ .kind = VC_LAW_AFFINE, .b = slope,
					.a = s[0].y - slope * s[0].x };
	return best;
}
