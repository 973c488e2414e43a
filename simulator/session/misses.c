/* SPDX-License-Identifier: Apache-2.0 */
/* misses.c - see misses.h
 *
 * Three or more recordings: each is predicted by the others. What they miss, and where those
 * families see the asked value, widens the interval: the jackknife+ (Barber, Candes, Ramdas and
 * Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics 49, 2021), in the
 * form that takes the outermost of them (jackknife-minmax), because there are few.
 * Two recordings: each is predicted in the order of the other's events. Their laws go through both,
 * so what is missed is structure that no law of a size holds: blocks more, and others.
 * A miss grows with the distance (in doublings) from what is known, and by factors that were
 * calibrated on ladders (predict/widths.h). */
#include "simulator/session/misses.h"

#include "common/vec.h"
#include "common/workers.h"
#include "common/param.h"
#include "simulator/predict/single.h"
#include "simulator/predict/widths.h"
#include "simulator/session/draws.h"

/* What is not certain by some bytes is not by a segment of 2 MiB in each of the two pools. */
enum { SEGMENTS = 4 << 20, SEGMENT = 2 << 20 };
/* Sizes that are not exact may fall on the other side of 1 MiB, where another pool of segments
 * begins: one of 2 MiB more for each pool. */
enum { SLACK = 4 << 20 };
/* Of a run whose windows are padded at the asked value only, as shifted windows are. */
#define COPIES 1.05

/* kSmallSize, kMinLargeAlloc and kLargeBuffer of c10/core/AllocatorConfig.h: blocks between the
 * first two share segments of the third. */
enum { SHARES_FROM = 1 << 20, SHARES_TO = 10 << 20, SHARED = 20 << 20 };

/* Recordings; replays of a step's data dealt anew, and how many of the smallest may be left
 * out. */
enum { MOST = 16, DRAWS = 32, TRIM = 2 };

/* And how much more than the largest of plans others may need: with a hundredth one of 346
 * intervals of programs with convolutions ended below the truth, by 0.1 %; with none four did, and
 * on an H100 one ended 1.5 % below (docs/measurements/calibration.md). */
#define MORE_PLANS 1.02

/* One recording: where blocks land with other sizes moved the peak by up to 10 % down and 12 % up
 * from both ends on 1,106 pairs of recordings (docs/measurements/predictions.md). */
enum { GUARD_LOW = 10, GUARD_HIGH = 8 };
/* But at least so many bytes: small runs are as large as the 20 MiB segments that their few large
 * blocks break up (a run of 360 MiB needed 96 MiB more than that guard at four times its batch).
 */
enum { LEAST_LOW = 32 << 20, LEAST_HIGH = 128 << 20 };

enum { LITTLE = 100 }; /* a hundredth of all bytes asked for */

/* Doublings beyond which a straight line through peaks says nothing. */
enum { FAR = 2 };

/* Both ends of what one recording says of another value, wider by where blocks may land. */
static void guard(uint64_t *low, uint64_t *high)
{
	uint64_t down = *low / GUARD_LOW, up = *high / GUARD_HIGH;

	down = down > LEAST_LOW ? down : LEAST_LOW;
	*low -= down < *low / 2 ? down : *low / 2;
	*high += up > LEAST_HIGH ? up : LEAST_HIGH;
}

struct vc_misses {
	pthread_mutex_t lock;
	char settings[256];        /* of what follows; "": nothing yet */
	struct vc_family *without[MOST]; /* three and more: the family without that recording */
	struct vc_family *alone;   /* of the first recording, where all of them are alike */
	bool opened;
	double peak[MOST];         /* of each */
	double by[MOST];           /* log(predicted / truth) of each; NAN: nobody can say */
	double far[MOST];          /* doublings between it and what predicted it */
};

struct vc_misses *vc_misses_new(struct vc_error *err)
{
	struct vc_misses *m = calloc(1, sizeof(*m));

	if (!m) {
		vc_nomem(err, "what recordings say of each other");
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void vc_misses_free(struct vc_misses *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < MOST; i++)
		vc_family_free(m->without[i]);
	vc_family_free(m->alone);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* Doublings between recording i and the nearest other one, at the values at[]. */
static double distance(const struct vc_whatif *w, size_t except, const struct vc_param_value *at,
		       size_t n)
{
	double least = INFINITY;

	for (size_t k = 0; k < w->recordings; k++) {
		double far = 0;

		for (size_t a = 0; k != except && a < n; a++) {
			double x = vc_family_value(w->family, k, at[a].name);

			far += isnan(x) ? 0 : fabs(log2(at[a].value / x));
		}
		if (k != except && far < least)
			least = far;
	}
	return least;
}

/* Peak of `events` (NULL: those of the recording) under the plan, which has no transforms. */
static int peak(const struct vc_recording *rec, struct vc_source *events,
		const struct vc_plan *plan, double *out, struct vc_error *err)
{
	struct vc_job job = { .rec = rec, .source = events };
	struct vc_result r = { 0 };

	VC_TRY(vc_job_widen(&job, plan, &r, err));
	*out = (double)r.low;
	return VC_OK;
}

/* The peak that `f` predicts for those values, NAN where it cannot. */
static int asked(const struct vc_whatif *w, struct vc_family *f, const struct vc_family_ask *ask,
		 const struct vc_prediction *p, const struct vc_plan *plan, double *out,
		 struct vc_error *err)
{
	const struct vc_recording *rec = p ? &p->rec : &w->recording[0];
	struct vc_error why = { 0 };
	struct vc_source *events = vc_family_source(f, ask, rec->meta, &why);

	*out = NAN;
	if (!events)
		return why.status == VC_ENOMEM ?
			       vc_nomem(err, "what recordings say of each other") : VC_OK;
	return peak(rec, events, plan, out, err);
}

/* Recording i, by all others or (two of them) in the order of the other one. */
static int miss_one(const struct vc_whatif *w, struct vc_misses *m, size_t i,
		    const struct vc_plan *plan, struct vc_error *err)
{
	const struct vc_meta *meta = w->recording[i].meta;
	bool two = w->recordings == 2;
	struct vc_family_ask ask = { .at = meta->param, .n = meta->params, .has_order = two,
				     .order = 1 - (two ? i : 0) };
	struct vc_family *f = two ? w->family : m->without[i];
	double said = NAN;

	m->by[i] = NAN;
	m->far[i] = distance(w, i, meta->param, meta->params);
	VC_TRY(peak(&w->recording[i], NULL, plan, &m->peak[i], err));
	if (!f || !(m->far[i] > 0))
		return VC_OK;
	VC_TRY(asked(w, f, &ask, NULL, plan, &said, err));
	m->by[i] = log(said / m->peak[i]);
	return VC_OK;
}

static int open_others(const struct vc_whatif *w, struct vc_misses *m, struct vc_error *err)
{
	const struct vc_trace *t[MOST];
	struct vc_reduction_card card = vc_family_card(w->family);

	for (size_t i = 0; w->recordings > 2 && i < w->recordings && !m->opened; i++) {
		struct vc_error why = { 0 };
		size_t n = 0;

		for (size_t k = 0; k < w->recordings; k++)
			if (k != i)
				t[n++] = &w->recording[k].trace;
		m->without[i] = vc_family_new(t, n, w->recording[0].device->device, false, &why);
		if (!m->without[i] && why.status == VC_ENOMEM)
			return vc_nomem(err, "what recordings say of each other");
		if (!m->without[i])
			continue;
		vc_family_recorded(m->without[i], &card);
		vc_family_ask_cudnn(m->without[i], vc_named_plans_answers(w->plans));
	}
	m->opened = true;
	return VC_OK;
}

/* The caller holds m->lock. */
static int find_misses(const struct vc_whatif *w, struct vc_misses *m, const struct vc_plan *plan,
		       const char *settings, struct vc_error *err)
{
	if (*settings && !strcmp(m->settings, settings))
		return VC_OK;
	VC_TRY(open_others(w, m, err));
	*m->settings = '\0';
	for (size_t i = 0; i < w->recordings; i++)
		VC_TRY(miss_one(w, m, i, plan, err));
	snprintf(m->settings, sizeof(m->settings), "%s", settings);
	return VC_OK;
}

static void widen(struct vc_result *out, double low, double high)
{
	vc_result_open_interval(out);
	if (low < (double)out->low)
		out->low = vc_size_of(low);
	if (high > (double)out->high)
		out->high = vc_size_of(high);
}

/* The value 1 of a number of samples has other strides: copies come and go. */
static bool at_one(const struct vc_whatif *w)
{
	for (size_t a = 0; a < w->n; a++)
		if (w->at[a].value == 1 && vc_single_counts(w->at[a].name))
			return true;
	return false;
}

/* What a block of so many bytes may need that finds no hole. From two recordings that is a segment,
 * which those of 1 to 10 MiB share; three are held against each other, which shows as much. */
static double needed(const struct vc_whatif *w, uint64_t bytes)
{
	bool shares = w->recordings == 2 && bytes > SHARES_FROM && bytes < SHARES_TO;

	return (double)(shares ? SHARED : bytes);
}

/* By how much bytes differ from what is so many logarithms smaller, or larger. */
static double less_by(double bytes, double logs)
{
	return bytes - bytes * exp(-logs);
}

static double more_by(double bytes, double logs)
{
	return bytes * exp(logs) - bytes;
}

/* far: doublings between the asked value and the nearest recording. */
static void widen_by_width(const struct vc_whatif *w, struct vc_prediction *p, double far,
			   struct vc_result *out)
{
	const struct vc_width *width = vc_width_of(&p->report, at_one(w));
	bool data = vc_width_by_data(&p->report);
	double away = data ? fmax(1, far) : 1, noise = away * p->report.noise;
	bool drawn = p->report.drawn || (data && !p->report.lengths);
	double line = data && !drawn && far < FAR ? vc_draws_line(w, w->misses->peak) : NAN;
	/* each way of rounding up was replayed: nothing is smaller than all of them, and what is
	 * not certain besides is so of the guess and not of the largest */
	bool replayed = !data && p->report.tells > 0;
	double least = replayed ? 0 : away;

	vc_result_open_interval(out);
	p->width = width;
	p->said_low = out->low;
	p->said_high = out->high;
	double low = (double)out->low, high = (double)out->high, most = away * SHARED;
	/* weights and states are no data */
	double low_data = fmax(0, low - (double)p->report.lasting);
	double high_data = fmax(0, high - (double)p->report.lasting);
	double down = less_by(low, width->down * p->missed) +
		      less_by(low_data, width->noise_down * noise);
	double up = more_by(high, width->up * p->missed) +
		    more_by(high_data, width->noise_up * noise);
	double least_down = less_by(low_data, least * width->least_down);
	double least_up = more_by(high_data, least * width->least_up);

	widen(out, low - fmax(down, data ? fmin(least_down, most) : least_down),
	      high + fmax(up, data ? fmin(least_up, most) : least_up));
	/* a turn that is not full may be an empty one as well, where no replay shows it */
	double unit = SEGMENTS + needed(w, p->report.varying);
	double less = p->report.one_turn ? unit : replayed ? 0 : SEGMENTS;

	/* the law of those who know no more than the peaks; draws know how peaks come about */
	if (line > 0)
		widen(out, line, line);
	if (data || width->least_up > 0 || p->report.varying || p->report.partly)
		widen(out, fmax(0, (double)p->said_low - less),
		      (double)(replayed ? p->said : p->said_high) + away * unit);
	/* what has to be padded is copied, which nothing showed that fits as it is */
	if ((replayed && p->said_high > p->said) || (!data && p->report.kind[VC_LAW_PADDED]))
		widen(out, (double)out->low, (double)p->said_high * COPIES);
	/* what has no counterpart may come once more, and find no hole */
	if (p->report.alone && !data && out->low < out->high)
		widen(out, (double)out->low,
		      (double)p->said_high + SEGMENTS + fmax(SHARED, (double)p->report.alone));
	if (out->low < out->high || p->report.loose)
		widen(out, fmax(0, (double)out->low - (replayed ? 0 : SEGMENT)),
		      (double)out->high + (double)p->report.loose + SEGMENT);
}

void vc_misses_widen_last(const struct vc_whatif *w, struct vc_prediction *p,
			  struct vc_result *out)
{
	const struct vc_family_report *report = &p->report;

	if (w->recordings >= 2 && w->recordings <= MOST)
		widen_by_width(w, p, distance(w, w->recordings, w->at, w->n), out);
	if (report->single)
		guard(&out->low, &out->high);
	else if (report->residual > 0 || report->rounded)
		out->high += SLACK;
	if (report->states) {
		vc_result_open_interval(out);
		out->high += report->states + SLACK;
	}
}

/* The last of the widening keeps the order of lower ends. */
uint64_t vc_misses_most(const struct vc_whatif *w, struct vc_prediction *p,
			const struct vc_plan *plan)
{
	uint64_t least = 0, most = VC_DEVICE_UNLIMITED;

	while (least < most) {
		uint64_t mid = least + (most - least + 1) / 2;
		struct vc_result last = { .has_interval = true, .low = mid, .high = mid + 1 };

		vc_misses_widen_last(w, p, &last);
		if (last.low <= plan->settled->most)
			least = mid;
		else
			most = mid - 1;
	}
	return least;
}

int vc_misses_settled(const struct vc_whatif *w, struct vc_prediction *p,
		      const struct vc_plan *plan, const struct vc_result *out,
		      struct vc_error *err)
{
	struct vc_result last = { .has_interval = out->has_interval, .low = out->low,
				  .high = out->high };

	/* where ways of rounding are replayed, the largest is held against one that may come yet */
	if (!plan->settled || !out->has_interval || p->report.tells > 0)
		return VC_OK;
	vc_misses_widen_last(w, p, &last);
	return vc_job_is_settled(plan, &last, err);
}

VC_COMPARE(by_value, double, VC_ORDER(*x, *y))

struct draws {
	const struct vc_whatif *w;
	struct vc_prediction *p;
	const struct vc_plan *plan;
	double said[DRAWS];
	size_t trim;
	double known[DRAWS]; size_t n; /* of those that are over, in order */
	const struct vc_result *before;
};

static int draw_one(void *arg, size_t i, struct vc_error *err)
{
	struct draws *a = arg;
	unsigned draw = (unsigned)i + 1;
	bool by_data = a->p->report.drawn || a->p->report.lengths;
	bool other = by_data && !a->p->report.turns && draw % 2;
	struct vc_family_ask ask = vc_whatif_ask(a->w, a->p);

	ask.draw = draw;
	ask.has_order = other;
	ask.order = draw / 2 % a->w->recordings;
	return asked(a->w, a->w->family, &ask, a->p, a->plan, &a->said[i], err);
}

/* 1: all that is asked of them is known. */
static int draw_known(void *arg, size_t i, struct vc_error *err)
{
	struct draws *a = arg;
	struct vc_result so_far = { .has_interval = true, .low = a->before->low,
				    .high = a->before->high };

	if (isnan(a->said[i]))
		return VC_OK;
	a->known[a->n++] = a->said[i];
	if (!a->plan->settled || !a->before->has_interval || a->n <= 2 * TRIM)
		return VC_OK;
	qsort(a->known, a->n, sizeof(*a->known), by_value);
	widen(&so_far, a->known[a->trim], a->known[a->n - 1] * (a->trim ? MORE_PLANS : 1));
	return vc_misses_settled(a->w, a->p, a->plan, &so_far, err);
}

/* Data of steps differ: replays with the steps' data dealt in other ways, every second one in the
 * order of another recording. What is reserved hangs on the order of sizes as much as on the
 * sizes. */
static int widen_by_draws(const struct vc_whatif *w, struct vc_prediction *p,
			  const struct vc_plan *plan, struct vc_result *out, struct vc_error *err)
{
	struct draws a = { .w = w, .p = p, .plan = plan, .before = out,
			   .trim = vc_width_by_data(&p->report) ? 0 : TRIM };
	const struct vc_work work = { .n = DRAWS, .arg = &a, .job = draw_one, .done = draw_known,
				      .threads = vc_whatif_threads(w) };
	int r;

	if (!p->report.drawn && !p->report.plans && !p->report.lengths)
		return VC_OK;
	r = vc_workers_run(&work, err);
	if (r < 0 || a.n <= 2 * TRIM)
		return r;
	qsort(a.known, a.n, sizeof(*a.known), by_value);
	/* the outermost plans are less likely than the outermost data, which have a tail; but who
	 * needs more than is said runs out of memory */
	widen(out, a.known[a.trim], a.known[a.n - 1] * (a.trim ? MORE_PLANS : 1));
	return r;
}

/* Recordings in which nothing differs (but words before they are padded), where all of them may be
 * rounded up to one value, say no more than one of them does. The caller holds m->lock. */
static int widen_as_one(const struct vc_whatif *w, struct vc_misses *m, struct vc_prediction *p,
			const struct vc_plan *plan, struct vc_result *out, struct vc_error *err)
{
	const struct vc_trace *t = &w->recording[p->report.base].trace;
	struct vc_family_ask ask = vc_whatif_ask(w, p);
	struct vc_plan whole = *plan;

	whole.enough = NULL; /* the guard moves its lower end */
	if (p->report.moving > p->report.bytes / LITTLE || !(p->report.tells > 0))
		return VC_OK;
	if (!m->alone)
		m->alone = vc_family_new(&t, 1, w->recording[0].device->device, false, err);
	if (!m->alone)
		return VC_ENOMEM;
	uint64_t end[2];

	for (ask.bound = VC_BOUND_LOW; ask.bound <= VC_BOUND_HIGH; ask.bound++) {
		double said;

		VC_TRY(asked(w, m->alone, &ask, p, &whole, &said, err));
		if (isnan(said))
			return VC_OK;
		end[ask.bound == VC_BOUND_HIGH] = vc_size_of(said);
	}
	guard(&end[0], &end[1]);
	widen(out, (double)end[0], (double)end[1]);
	return VC_OK;
}

/* A last turn of loops that is not full asks for other sizes than all others: a part of one, in the
 * place of the last turn or of the first, of which the backward pass makes what came last. */
static int widen_by_rests(const struct vc_whatif *w, struct vc_prediction *p,
			  const struct vc_plan *plan, struct vc_result *out, struct vc_error *err)
{
	static const double rest[] = { 0.2, 0.5, 0.8, -0.2, -0.5, -0.8 };

	for (size_t i = 0; p->report.partly && i < sizeof(rest) / sizeof(*rest); i++) {
		struct vc_family_ask ask = vc_whatif_ask(w, p);
		double said;

		ask.rest = rest[i];
		VC_TRY(asked(w, w->family, &ask, p, plan, &said, err));
		if (!isnan(said))
			widen(out, said, said);
	}
	return VC_OK;
}

/* The caller holds m->lock. */
static int find_for(const struct vc_whatif *w, struct vc_prediction *p,
		    const struct vc_plan *as_planned, const char *settings, struct vc_error *err)
{
	double far = distance(w, w->recordings, w->at, w->n);
	struct vc_plan plan = *as_planned;
	struct vc_misses *m = w->misses;

	plan.transform = (struct vc_list){ 0 };
	plan.enough = NULL; /* they are known for other questions, too */
	VC_TRY(find_misses(w, m, &plan, settings, err));
	for (size_t i = 0; i < w->recordings; i++)
		if (!isnan(m->by[i]))
			p->missed = fmax(p->missed, fabs(m->by[i]) * fmax(1, far / m->far[i]));
	return VC_OK;
}

int vc_misses_find(const struct vc_whatif *w, struct vc_prediction *p, const struct vc_plan *plan,
		   const char *settings, struct vc_error *err)
{
	int r = VC_OK;

	if (w->recordings < 2 || w->recordings > MOST)
		return VC_OK;
	pthread_mutex_lock(&w->misses->lock);
	r = find_for(w, p, plan, settings, err);
	pthread_mutex_unlock(&w->misses->lock);
	return r;
}

int vc_misses_widen(const struct vc_whatif *w, struct vc_prediction *p,
		    const struct vc_plan *as_planned, const char *settings, struct vc_result *out,
		    struct vc_error *err)
{
	const struct vc_family_ask ask = vc_whatif_ask(w, p);
	struct vc_plan plan = *as_planned;
	struct vc_misses *m = w->misses;
	int r;

	if (w->recordings < 2 || w->recordings > MOST)
		return VC_OK;
	plan.transform = (struct vc_list){ 0 };
	pthread_mutex_lock(&m->lock);
	r = find_for(w, p, &plan, settings, err);
	for (size_t i = 0; r == VC_OK && i < w->recordings; i++) {
		double said = NAN;

		if (m->without[i])
			r = asked(w, m->without[i], &ask, p, &plan, &said, err);
		if (!isnan(said))
			widen(out, said, said);
	}
	if (r == VC_OK)
		r = widen_as_one(w, m, p, &plan, out, err);
	pthread_mutex_unlock(&m->lock);
	if (r == VC_OK)
		r = widen_by_draws(w, p, &plan, out, err);
	return r == VC_OK ? widen_by_rests(w, p, &plan, out, err) : r;
}
