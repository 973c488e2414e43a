/* SPDX-License-Identifier: Apache-2.0 */
/* uncertainty.c - see uncertainty.h
 *
 * Three or more recordings: each is predicted by the others. What they miss, and where those
 * families see the asked value, widens the interval: the jackknife+ (Barber, Candes, Ramdas and
 * Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics 49, 2021), in the
 * form that takes the outermost of them (jackknife-minmax), because there are few.
 * Two recordings: each is predicted in the order of the other's events. Their laws go through both,
 * so what is missed is structure that no law of a size holds: allocations more, and others.
 * A miss grows with the distance (in doublings) from what is known. How far truths lay outside even
 * so, on families that no rule was made for, is in the table below, by the kind of evidence: a
 * split conformal prediction (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World",
 * 2005) whose scores are those of whole families. */
#include "simulator/session/uncertainty.h"

#include "common/param.h"
#include "common/workers.h"

enum { MOST = 16, SAMPLES = 16 }; /* recordings; samples of the data of steps */

/* Segments of 2 MiB that what is not certain may need, one in each of the two pools. */
enum { SEGMENTS = 4 << 20 };

/* One recording: where allocations land with other sizes moved the peak by up to 10 % down and 12 %
 * up from both ends on 1,106 pairs of recordings, and by up to 96 MiB of small runs
 * (docs/measurements/predictions.md). */
enum { GUARD_LOW = 10, GUARD_HIGH = 8, LEAST_LOW = 32 << 20, LEAST_HIGH = 128 << 20 };

enum { DATA_PART = 4 }; /* of one recording whose steps vary with their data */

/* Where something is open besides, what lies outside is a share of what is known to be open. */
#define OPEN 0.5

/* Where loops run more often in one recording, and it is not as large as the order of events of
 * the others says: what an iteration leaves counts, and how many there are nobody knows. */
#define LEAVES 0.02
#define LEFT 1.0

/* At least, where nothing tried what two recordings say of sizes that follow no sure law: truths of
 * programs never seen lay up to 17 % outside (docs/measurements/holdouts.md). */
#define UNTRIED 0.25

/* Above these shares the recordings say little of what is asked for: allocations that only some of
 * them have, bytes whose law is not sure. Where most are not, sizes follow something else (data
 * that so few steps do not show). */
#define MUCH_UNMATCHED 0.02
#define MUCH_UNSURE 0.05
#define MOST_UNSURE 0.5

/* docs/measurements/calibration.md; tests/ladders/widths.py makes the rows. */
static const struct vc_evidence kinds[VC_EVIDENCES] = {
	[VC_EVIDENCE_LAWS] = { "laws", 1.0, 1.0, 0.0, 0.0 },
	[VC_EVIDENCE_SAMPLE] = { "a single sample", 1.5, 1.5, 0.01, 0.01 },
	[VC_EVIDENCE_PLANS] = { "measured plans", 1.5, 1.5, 0.01, 0.01 },
	[VC_EVIDENCE_LINES] = { "lines, loops", 1.5, 1.5, 0.08, 0.05 },
	[VC_EVIDENCE_LOOSE] = { "loose", 1.5, 1.5, 0.05, 0.05, true },
	[VC_EVIDENCE_DATA] = { "data", 1.5, 1.5, 0.06, 0.05, true },
	[VC_EVIDENCE_UNSURE] = { "unsure", 1.5, 1.5, 0.15, 0.15, true },
	[VC_EVIDENCE_ONE] = { "one recording", 0, 0, 0, 0 },
};

struct vc_uncertainty {
	pthread_mutex_t lock;
	char settings[256];        /* of what follows; "": nothing yet */
	struct vc_family *without[MOST]; /* three and more: the family without that recording */
	bool opened;
	double by[MOST];           /* log(predicted / truth) of each; NAN: nobody can say */
	double far[MOST];          /* doublings between it and what predicted it */
	double is[MOST];           /* what it reserves; NAN: nobody asked */
};

struct vc_uncertainty *vc_uncertainty_new(struct vc_error *err)
{
	struct vc_uncertainty *m = calloc(1, sizeof(*m));

	if (!m) {
		vc_nomem(err, "what recordings say of each other");
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void vc_uncertainty_free(struct vc_uncertainty *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < MOST; i++)
		vc_family_free(m->without[i]);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* Doublings between the values at[] and the nearest recording but `except`. */
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
static int miss_one(const struct vc_whatif *w, struct vc_uncertainty *m, size_t i,
		    const struct vc_plan *plan, struct vc_error *err)
{
	const struct vc_meta *meta = w->recording[i].meta;
	bool two = w->recordings == 2;
	struct vc_family_ask ask = { .at = meta->param, .n = meta->params, .has_order = two,
				     .order = 1 - (two ? i : 0) };
	struct vc_family *f = two ? w->family : m->without[i];
	double said = NAN, truth;

	m->by[i] = m->is[i] = NAN;
	m->far[i] = distance(w, i, meta->param, meta->params);
	if (!f || !(m->far[i] > 0))
		return VC_OK;
	VC_TRY(peak(&w->recording[i], NULL, plan, &truth, err));
	VC_TRY(asked(w, f, &ask, NULL, plan, &said, err));
	m->is[i] = truth;
	m->by[i] = log(said / truth);
	return VC_OK;
}

static int open_others(const struct vc_whatif *w, struct vc_uncertainty *m, struct vc_error *err)
{
	const struct vc_trace *t[MOST];
	bool known;
	struct vc_reduction_card card = vc_family_card(w->family, &known);

	for (size_t i = 0; w->recordings > 2 && i < w->recordings && !m->opened; i++) {
		struct vc_error why = { 0 };
		size_t n = 0;

		for (size_t k = 0; k < w->recordings; k++)
			if (k != i)
				t[n++] = &w->recording[k].trace;
		m->without[i] = vc_family_new(t, n, w->recording[0].device->device, w->without,
					      &why);
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
static int find_misses(const struct vc_whatif *w, struct vc_uncertainty *m,
		       const struct vc_plan *plan, const char *settings, struct vc_error *err)
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
		out->low = vc_size_of(fmax(0, low));
	if (high > (double)out->high)
		out->high = vc_size_of(high);
}

/* What the recordings miss of each other, and what each of them but one says of the value. */
static int widen_by_others(const struct vc_whatif *w, struct vc_prediction *p,
			   const struct vc_plan *plan, const char *settings, double far,
			   struct vc_result *out, struct vc_error *err)
{
	const struct vc_family_ask ask = vc_whatif_ask(w, p);
	struct vc_uncertainty *m = w->uncertainty;

	VC_TRY(find_misses(w, m, plan, settings, err));
	p->missed = 0;
	for (size_t i = 0; i < w->recordings; i++) {
		double said = NAN;

		if (!isnan(m->by[i]))
			p->missed = fmax(p->missed, fabs(m->by[i]) * fmax(1, far / m->far[i]));
		if (m->without[i])
			VC_TRY(asked(w, m->without[i], &ask, p, plan, &said, err));
		if (!isnan(said))
			widen(out, said, said);
	}
	return VC_OK;
}

static bool is_power_of_two(double x)
{
	return x >= 1 && exp2(round(log2(x))) == x;
}

/* Scans and trees work in levels, and pad a length to a power of two: another one is as large as
 * the next, which no recordings of powers of two show but by their levels (allocations more). */
static int widen_by_padding(const struct vc_whatif *w, struct vc_prediction *p,
			    const struct vc_plan *plan, struct vc_result *out,
			    struct vc_error *err)
{
	struct vc_family_ask ask = vc_whatif_ask(w, p);
	struct vc_param_value at[VC_WHATIF_PARAMS];
	bool padded = false;
	double said = NAN;

	memcpy(at, w->at, w->n * sizeof(*at));
	for (size_t a = 0; a < w->n; a++) {
		bool powers = !vc_family_counts(at[a].name) && !is_power_of_two(at[a].value);

		for (size_t k = 0; powers && k < w->recordings; k++)
			powers = is_power_of_two(vc_family_value(w->family, k, at[a].name));
		if (powers)
			at[a].value = exp2(ceil(log2(at[a].value)));
		padded |= powers;
	}
	ask.at = at;
	if (padded && (p->report.unmatched > 0 || p->report.repeated > 0))
		VC_TRY(asked(w, w->family, &ask, p, plan, &said, err));
	if (!isnan(said))
		widen(out, said, said);
	return VC_OK;
}

struct samples {
	const struct vc_whatif *w;
	struct vc_prediction *p;
	const struct vc_plan *plan;
	double said[SAMPLES];
};

static int sample_one(void *arg, size_t i, struct vc_error *err)
{
	struct samples *a = arg;
	struct vc_family_ask ask = vc_whatif_ask(a->w, a->p);

	ask.sample = (unsigned)i + 1;
	ask.has_order = i % 2;
	ask.order = i / 2 % a->w->recordings;
	return asked(a->w, a->w->family, &ask, a->p, a->plan, &a->said[i], err);
}

/* Data of steps differ: replays with the steps' data resampled, every second one in the order of
 * another recording. What is reserved hangs on the order of sizes as much as on the sizes. */
static int widen_by_samples(const struct vc_whatif *w, struct vc_prediction *p,
			    const struct vc_plan *plan, struct vc_result *out,
			    struct vc_error *err)
{
	struct samples a = { .w = w, .p = p, .plan = plan };
	const struct vc_work work = { .n = SAMPLES, .arg = &a, .job = sample_one,
				      .threads = vc_whatif_threads(w) };

	if (!p->report.data)
		return VC_OK;
	VC_TRY(vc_workers_run(&work, err));
	for (size_t i = 0; i < SAMPLES; i++)
		if (!isnan(a.said[i]))
			widen(out, a.said[i], a.said[i]);
	return VC_OK;
}

static bool at_one(const struct vc_whatif *w)
{
	for (size_t a = 0; a < w->n; a++)
		if (w->at[a].value == 1 && vc_family_counts(w->at[a].name))
			return true;
	return false;
}

static enum vc_evidence_kind kind_of(const struct vc_family_report *r, bool one)
{
	return r->single ? VC_EVIDENCE_ONE :
	       r->data   ? VC_EVIDENCE_DATA :
	       r->unsure > MOST_UNSURE ? VC_EVIDENCE_UNSURE :
	       r->unmatched > MUCH_UNMATCHED || r->unsure > MUCH_UNSURE ? VC_EVIDENCE_LOOSE :
	       r->repeated > MUCH_UNMATCHED || r->lines > VC_MANY_LINES ? VC_EVIDENCE_LINES :
	       r->measured ? VC_EVIDENCE_PLANS : one ? VC_EVIDENCE_SAMPLE : VC_EVIDENCE_LAWS;
}

/* Both ends of what one recording says of another value, wider by where allocations may land. */
static void guard(uint64_t *low, uint64_t *high)
{
	uint64_t down = *low / GUARD_LOW, up = *high / GUARD_HIGH;

	down = down > LEAST_LOW ? down : LEAST_LOW;
	*low -= down < *low / 2 ? down : *low / 2;
	*high += up > LEAST_HIGH ? up : LEAST_HIGH;
}

/* Recording i is of values none of which is larger (sign 1) or smaller (-1) than what is asked. */
static bool is_on_side(const struct vc_whatif *w, size_t i, int sign)
{
	for (size_t a = 0; a < w->n; a++)
		if (sign * (vc_family_value(w->family, i, w->at[a].name) - w->at[a].value) > 0)
			return false;
	return true;
}

/* What the next smaller and the next larger values that were recorded reserve. */
struct neighbours {
	double below, above;
};

static struct neighbours find_neighbours(const struct vc_whatif *w)
{
	const double *is = w->uncertainty->is;
	struct neighbours n = { .below = NAN, .above = NAN };

	for (size_t i = 0; i < w->recordings; i++) {
		if (is_on_side(w, i, 1))
			n.below = fmax(n.below, is[i]);
		if (is_on_side(w, i, -1))
			n.above = fmin(n.above, is[i]);
	}
	return n;
}

/* far: doublings between the asked value and the nearest recording. */
static void widen_by_kind(struct vc_prediction *p, bool untried, double far, struct vc_result *out)
{
	const struct vc_evidence *e = p->evidence;
	double away = fmax(1, far), low = (double)out->low, high = (double)out->high;

	p->said_low = out->low;
	p->said_high = out->high;
	double open = e->least_up > 0 && low > 0 ? OPEN * log(high / low) : 0;
	/* what nothing tried, and besides, where the data decide, all that is open */
	double least = !untried ? 0 : UNTRIED + (p->report.data ? open / OPEN : 0);

	widen(out,
	      low * exp(-fmax(fmax(e->down * p->missed, open), fmax(least, away * e->least_down))),
	      high * exp(fmax(fmax(e->up * p->missed, open), fmax(least, away * e->least_up))));
	if (out->low < out->high)
		widen(out, low - SEGMENTS, high + SEGMENTS);
	if (p->report.repeated > MUCH_UNMATCHED && p->missed > LEAVES)
		widen(out, low * exp(-LEFT), high * exp(LEFT));
}

int vc_uncertainty_widen(const struct vc_whatif *w, struct vc_prediction *p,
			 const struct vc_plan *as_planned, const char *settings,
			 struct vc_result *out, struct vc_error *err)
{
	double far = distance(w, w->recordings, w->at, w->n);
	struct vc_plan plan = *as_planned;
	struct neighbours next;
	int r;

	vc_result_open_interval(out);
	p->evidence = &kinds[kind_of(&p->report, at_one(w))];
	if (p->report.single) {
		guard(&out->low, &out->high);
		if (p->report.data) { /* what another step needs is not known */
			out->low -= out->low / DATA_PART;
			out->high += out->high / DATA_PART;
		}
		return VC_OK;
	}
	plan.transform = (struct vc_list){ 0 };
	pthread_mutex_lock(&w->uncertainty->lock);
	r = widen_by_others(w, p, &plan, settings, far, out, err);
	next = find_neighbours(w);
	pthread_mutex_unlock(&w->uncertainty->lock);
	if (r == VC_OK)
		r = widen_by_samples(w, p, &plan, out, err);
	if (r == VC_OK)
		r = widen_by_padding(w, p, &plan, out, err);
	if (r == VC_OK)
		widen_by_kind(p, vc_whatif_untried(w, p), far, out);
	/* Between two recordings whose sizes follow no sure law all between them may be. */
	if (r == VC_OK && vc_whatif_untried(w, p) && !isnan(next.below + next.above))
		widen(out, next.below, next.above);
	return r;
}
