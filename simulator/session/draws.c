/* SPDX-License-Identifier: Apache-2.0 */
/* draws.c - see draws.h
 *
 * Where data decide sizes, the laws of blocks say how large the data of a step are, but not how
 * what is reserved hangs on their order. The draws differ in that order only, so none of them is
 * the better guess by itself; the recorded peaks hold what the order does to this program. So each
 * draw counts as much as a straight line through the peaks makes it likely, and the guess is the
 * middle of all draws (the median of a posterior sample). */
#include "simulator/session/draws.h"

#include "common/vec.h"
#include "common/workers.h"

enum { MOST = 16 };

/* Standard deviation of a peak beside the line, as a share: on ladders whose sizes are data, any
 * from 3 to 7 % were as good within a tenth of a per cent (docs/measurements/calibration.md). Where
 * steps are as long as their longest sample it is that of their lengths. */
#define OFF 0.05

double vc_draws_line(const struct vc_whatif *w, const double *peak)
{
	double x[2] = { NAN, NAN }, y[2] = { 0, 0 }, far[2] = { INFINITY, INFINITY };

	for (size_t i = 0; w->n == 1 && i < w->recordings; i++) {
		double at = vc_family_value(w->family, i, w->at[0].name);
		double away = fabs(log(at / w->at[0].value));
		size_t k = away < far[0] ? 0 : 1;

		if (isnan(at) || isnan(peak[i]) || !(away < far[k]))
			continue;
		if (!k) {
			x[1] = x[0];
			y[1] = y[0];
			far[1] = far[0];
		}
		x[k] = at;
		y[k] = peak[i];
		far[k] = away;
	}
	return y[0] + (y[1] - y[0]) / (x[1] - x[0]) * (w->at[0].value - x[0]);
}

/* Peak of a recording, or of other events in place of its own, where nothing limits it. */
static int peak_of(const struct vc_recording *rec, const struct vc_trace *events,
		   struct vc_source *source, double *peak, struct vc_error *err)
{
	struct vc_plan plan = { .model = vc_model_by_name("torch"), .fraction = -1,
				.conf = rec->meta->conf ? rec->meta->conf : "",
				.start = rec->device->has_start ? VC_START_WARM : VC_START_COLD };
	struct vc_job job = { .rec = rec, .events = events, .source = source };
	struct vc_result r = { 0 };

	*peak = NAN;
	if (!plan.model) {
		vc_source_free(source);
		return VC_OK;
	}
	snprintf(plan.torch, sizeof(plan.torch), "%s", rec->torch);
	VC_TRY(vc_job_widen(&job, &plan, &r, err));
	*peak = (double)r.low;
	return VC_OK;
}

/* Ways to deal data: the first is that of the middle of all draws. */
struct way { double said; unsigned draw; size_t order; double weight; };

struct ways {
	const struct vc_whatif *w;
	const struct vc_family_ask *ask;
	struct way at[VC_DRAWS_TRIED + 1];
	size_t n;
};

static int try_one(void *arg, size_t i, struct vc_error *err)
{
	struct ways *a = arg;
	struct way *way = &a->at[i + 1];
	struct vc_family_ask ask = *a->ask;
	const struct vc_recording *rec = &a->w->recording[0];
	struct vc_error why = { 0 };
	struct vc_source *events;

	ask.draw = way->draw;
	ask.has_order = true;
	ask.order = way->order;
	events = vc_family_source(a->w->family, &ask, rec->meta, &why);
	if (!events) /* that recording lacks too much to set the order */
		return why.status == VC_ENOMEM ? vc_nomem(err, "the samples of steps") : VC_OK;
	return peak_of(rec, NULL, events, &way->said, err);
}

/* Draws in the order of each recording, in turn; recordings of fewer turns do not set the order of
 * more. Where nothing is drawn in the order of the nearest one there are only the orders. */
static void find_ways(struct ways *a, const struct vc_prediction *p)
{
	size_t orders = p->report.turns ? 1 : a->w->recordings;

	a->n = p->report.drawn || p->report.lengths ? VC_DRAWS_TRIED : orders;
	for (size_t i = 0; i < a->n; i++)
		a->at[i + 1] = (struct way){ .said = NAN, .draw = (unsigned)i + 1,
					     .order = (p->report.base + i) % orders };
	for (size_t i = 0; orders == 1 && i < a->n; i++)
		a->at[i + 1].order = p->report.base;
}

/* Those whose peak nobody knows come last. */
VC_COMPARE(by_said, struct way,
	   VC_THEN(VC_ORDER(isnan(x->said), isnan(y->said)),
		   VC_THEN(VC_ORDER(x->said, y->said), VC_ORDER(x->draw, y->draw))))

/* The middle of all ways by their weights, which sorts them. */
static const struct way *middle(struct ways *a, double line, double off)
{
	double unit = off * a->at[0].said, least = INFINITY, all = 0, sum = 0;
	size_t n = 0;

	qsort(a->at, a->n + 1, sizeof(*a->at), by_said);
	for (; n <= a->n && !isnan(a->at[n].said); n++)
		least = fmin(least, pow((a->at[n].said - line) / unit, 2));
	for (size_t i = 0; i < n; i++) {
		a->at[i].weight = exp((least - pow((a->at[i].said - line) / unit, 2)) / 2);
		all += a->at[i].weight;
	}
	for (size_t i = 0; i < n; i++)
		if ((sum += a->at[i].weight) * 2 >= all)
			return &a->at[i];
	return NULL;
}

/* The middle of all ways to deal data, for ask. */
static int weigh(const struct vc_whatif *w, const struct vc_prediction *p, double line,
		 struct vc_family_ask *ask, struct vc_error *err)
{
	struct ways a = { .w = w, .ask = ask };
	const struct way *best;

	VC_TRY(peak_of(&w->recording[0], &p->rec.trace, NULL, &a.at[0].said, err));
	find_ways(&a, p);
	const struct vc_work work = { .n = a.n, .arg = &a, .job = try_one,
				      .threads = vc_whatif_threads(w) };
	VC_TRY(vc_workers_run(&work, err));
	best = middle(&a, line, p->report.drawn ? OFF : fmax(OFF, p->report.noise));
	if (best && best->draw) {
		ask->draw = best->draw;
		ask->has_order = true;
		ask->order = best->order;
	}
	return VC_OK;
}

int vc_draws_choose(const struct vc_whatif *w, struct vc_prediction *p, struct vc_error *err)
{
	struct vc_family_ask ask = vc_whatif_ask(w, p);
	bool data = p->report.drawn || p->report.noise > 0;
	double peak[MOST], line;

	ask.as_planned = true;
	if (!data || p->report.single || p->report.same || w->recordings > MOST)
		return VC_OK;
	for (size_t i = 0; i < w->recordings; i++)
		VC_TRY(peak_of(&w->recording[i], NULL, NULL, &peak[i], err));
	line = vc_draws_line(w, peak);
	if (isnan(line))
		return VC_OK;
	VC_TRY(weigh(w, p, line, &ask, err));
	if (!ask.draw)
		return VC_OK;
	vc_trace_fini(&p->rec.trace);
	return vc_family_at(w->family, &ask, &p->rec.trace, &p->report, err);
}
