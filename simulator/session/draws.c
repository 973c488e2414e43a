/* SPDX-License-Identifier: Apache-2.0 */
/* draws.c - see draws.h
 *
 * Where data decide sizes, the laws of blocks say how large the data of a step are, but not how
 * what is reserved hangs on their order. The draws differ in that order only, so none of them is
 * the better guess by itself; the recorded peaks hold what the order does to this program. So the
 * guess loses to a straight line by no more than by how far all draws lie beside it. */
#include "simulator/session/draws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/workers.h"

enum { MOST = 16 };

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
static int peak_of(const struct vc_recording *rec, const struct vc_trace *events, double *peak,
		   struct vc_error *err)
{
	struct vc_plan plan = { .model = vc_model_by_name("torch"), .fraction = -1,
				.conf = rec->meta->conf ? rec->meta->conf : "",
				.start = rec->device->has_start ? VC_START_WARM : VC_START_COLD };
	struct vc_job job = { .rec = rec, .events = events };
	struct vc_result r = { 0 };

	*peak = NAN;
	if (!plan.model)
		return VC_OK;
	snprintf(plan.torch, sizeof(plan.torch), "%s", rec->torch);
	VC_TRY(vc_job_widen(&job, &plan, &r, err));
	*peak = (double)r.low;
	return VC_OK;
}

struct draws {
	const struct vc_whatif *w;
	const struct vc_family_ask *ask;
	double said[VC_DRAWS_TRIED]; /* the peak of each draw but the first */
};

static int try_one(void *arg, size_t i, struct vc_error *err)
{
	struct draws *a = arg;
	struct vc_family_ask ask = *a->ask;
	struct vc_trace t;
	int r;

	ask.draw = (unsigned)i + 1;
	VC_TRY(vc_family_at(a->w->family, &ask, &t, NULL, err));
	r = peak_of(&a->w->recording[0], &t, &a->said[i], err);
	vc_trace_fini(&t);
	return r;
}

/* The draw nearest to the line; 0: the one that the prediction has. */
static int nearest(const struct vc_whatif *w, const struct vc_prediction *p,
		   struct vc_family_ask *ask, double line, struct vc_error *err)
{
	struct draws a = { .w = w, .ask = ask };
	const struct vc_work work = { .n = VC_DRAWS_TRIED, .arg = &a, .job = try_one,
				      .threads = vc_workers_most(VC_WHATIF_THREADS) };
	double least, said;

	VC_TRY(peak_of(&w->recording[0], &p->rec.trace, &said, err));
	least = fabs(said - line);
	if (least > 0)
		VC_TRY(vc_workers_run(&work, err));
	for (unsigned d = 1; least > 0 && d <= VC_DRAWS_TRIED; d++)
		if (fabs(a.said[d - 1] - line) < least) {
			least = fabs(a.said[d - 1] - line);
			ask->draw = d;
		}
	return VC_OK;
}

int vc_draws_choose(const struct vc_whatif *w, struct vc_prediction *p, struct vc_error *err)
{
	struct vc_family_ask ask = { .at = w->at, .n = w->n, .card = p->card, .as_planned = true };
	double peak[MOST], line;

	if (!p->report.drawn || p->report.single || w->recordings > MOST)
		return VC_OK;
	for (size_t i = 0; i < w->recordings; i++)
		VC_TRY(peak_of(&w->recording[i], NULL, &peak[i], err));
	line = vc_draws_line(w, peak);
	if (isnan(line))
		return VC_OK;
	VC_TRY(nearest(w, p, &ask, line, err));
	if (!ask.draw)
		return VC_OK;
	vc_trace_fini(&p->rec.trace);
	return vc_family_at(w->family, &ask, &p->rec.trace, &p->report, err);
}
