/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - see time.h */
#include "simulator/time/time.h"

#include <pthread.h>

#include "common/kernel_name.h"
#include "common/vec.h"
#include "simulator/time/time_change.h"
#include "simulator/time/time_speeds.h"
#include "simulator/time/time_tempo.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/session/whatif.h"

struct vc_time {
	struct vc_keeps keeps;                /* first: what the session knows of it */
	struct vc_profile *profile; size_t n; /* one per recording */
	struct vc_speeds speeds;              /* --speed */
	struct vc_tempo tempo;                /* over those with steps */
	char axis[VC_TEMPO_AXES][VC_PARAM_TEXT];
	pthread_mutex_t lock;                 /* of tempo, which matches when first asked */
	char why[200];                        /* why there is no tempo */
};

/* ---- reading ---- */

static const struct vc_time *time_of(const struct vc_session *s)
{
	return (const struct vc_time *)s->time;
}

static int add_streamed(const struct vc_recording *s, struct vc_profile *p, struct vc_error *err)
{
	struct vc_source *src = vc_recording_source(s, NULL, err);
	struct vc_event ev[512];
	long n = 0;
	int r = src ? VC_OK : VC_EIO;

	while (r == VC_OK && (n = src->type->next(src, ev, 512, err)) > 0)
		r = vc_profile_add(p, ev, (size_t)n, s->device->device, src->meta, err);
	if (r == VC_OK && n < 0)
		r = (int)n;
	if (r == VC_OK)
		r = vc_profile_finish(p, 0, s->device->device, s->meta, err);
	vc_source_free(src);
	return r;
}

/* How many iterations the requests for memory show, where no marks do. */
static size_t iterations(const struct vc_recording *s, const struct vc_profile *p)
{
	struct vc_anatomy a = { 0 };
	size_t n;

	if (p->marks || !p->n || vc_anatomy_of(&a, &s->trace, s->device->device, NULL) < 0)
		return 0;
	n = a.confidence >= 0.5 ? a.iterations : 0;
	vc_anatomy_fini(&a);
	return n;
}

static int read_profile(const struct vc_recording *s, struct vc_profile *p, struct vc_error *err)
{
	int r;

	if (s->streamed)
		return add_streamed(s, p, err);
	r = vc_profile_add(p, s->trace.ev, s->trace.n, s->device->device, s->meta, err);
	return r < 0 ? r : vc_profile_finish(p, iterations(s, p), s->device->device,
							      s->meta, err);
}

static bool has_kernels(const struct vc_recording *s)
{
	return s->meta->how[VC_CAP_KERNELS] == VC_HOW_RECORDED || s->device->kernels;
}

/* ---- the parameters ---- */

static double param(const struct vc_meta *m, const char *name)
{
	for (size_t i = 0; i < m->params; i++)
		if (!strcmp(m->param[i].name, name))
			return m->param[i].value;
	return NAN;
}

/* A change that was made in the program was timed there. */
static bool is_own(const struct vc_session *s)
{
	return !s->whatif || (s->whatif->rerun && s->whatif->rerun->made.n);
}

static const struct vc_recording *recording(const struct vc_session *s, size_t i)
{
	return is_own(s) ? s->rec : &s->whatif->recording[i];
}

/* Parameters in which the recordings differ; with one recording, all it has. Those of evaluation
 * alone do not touch the training step. */
static void axes(struct vc_time *t, const struct vc_session *s)
{
	const struct vc_meta *m = recording(s, 0)->meta;

	for (size_t i = 0; i < m->params && t->tempo.axes < VC_TEMPO_AXES; i++) {
		const char *name = m->param[i].name;
		bool differs = t->n == 1, all = true;

		for (size_t k = 1; k < t->n; k++) {
			double v = param(recording(s, k)->meta, name);
			all &= !isnan(v);
			differs |= v != m->param[i].value;
		}
		if (!differs || !all || !strncmp(name, "eval_", 5) || !(m->param[i].value > 0))
			continue;
		snprintf(t->axis[t->tempo.axes++], VC_PARAM_TEXT, "%.*s", VC_PARAM_TEXT - 1, name);
	}
}

static void build(struct vc_time *t, const struct vc_session *s)
{
	axes(t, s);
	for (size_t i = 0; i < t->n && t->tempo.n < 16; i++) {
		const struct vc_profile *p = &t->profile[i];
		size_t k = t->tempo.n;

		if (!p->n)
			snprintf(t->why, sizeof(t->why), "no kernels were recorded%s", t->n > 1 ?
				 " in some of the recordings" : "");
		else if (!p->steps || !p->beats || !p->step_ns)
			snprintf(t->why, sizeof(t->why),
				 "no steps could be told apart among the kernels%s",
				 t->n > 1 ? " of some of the recordings" : "");
		if (!p->steps || !p->beats || !p->step_ns)
			continue;
		for (size_t a = 0; a < t->tempo.axes; a++)
			t->tempo.x[k][a] = param(recording(s, i)->meta, t->axis[a]);
		t->tempo.at[t->tempo.n++] = p;
	}
}

static void drop(struct vc_keeps *k)
{
	struct vc_time *t = (struct vc_time *)k;

	vc_tempo_fini(&t->tempo);
	for (size_t i = 0; i < t->n; i++)
		vc_profile_fini(&t->profile[i]);
	vc_speeds_fini(&t->speeds);
	pthread_mutex_destroy(&t->lock);
	VC_FREE(t->profile, t);
}

int vc_time_open(struct vc_session *s, struct vc_error *err)
{
	size_t n = is_own(s) ? 1 : s->whatif->recordings;
	struct vc_time *t;
	bool any = false;
	int r = VC_OK;

	for (size_t i = 0; i < n; i++)
		any |= has_kernels(recording(s, i));
	if (!any && s->opt->speed)
		return vc_fail(err, VC_EUSAGE, "--speed: no kernels were recorded, so no time can "
			       "be computed with it");
	if (!any || s->time)
		return VC_OK;
	t = calloc(1, sizeof(*t));
	if (!t || !(t->profile = calloc(n, sizeof(*t->profile)))) {
		free(t);
		return vc_nomem(err, "the kernels of the recordings");
	}
	pthread_mutex_init(&t->lock, NULL);
	t->keeps.drop = drop;
	s->time = &t->keeps;
	if (s->opt->speed)
		r = vc_speeds_read(&t->speeds, s->opt->speed, err);
	for (; r == VC_OK && t->n < n; t->n++) {
		t->profile[t->n].speeds = &t->speeds;
		r = read_profile(recording(s, t->n), &t->profile[t->n], err);
	}
	if (r == VC_OK)
		build(t, s);
	return r;
}

const struct vc_profile *vc_time_profile(const struct vc_session *s)
{
	return s->time && time_of(s)->n ? &time_of(s)->profile[0] : NULL;
}

bool vc_time_is_half(const struct vc_session *s)
{
	const struct vc_profile *p = vc_time_profile(s);
	double half = 0, other = 0;

	for (size_t i = 0; p && i < p->beats; i++) {
		if (vc_kernel_call(p->beat[i].name) == VC_CALL_OTHER)
			continue;
		if (vc_kernel_bound(p->beat[i].name) == VC_BOUND_HALF)
			half += p->beat[i].ns;
		else
			other += p->beat[i].ns;
	}
	return half > other;
}

/* ---- an answer ---- */

/* The value of a parameter in this session: predicted ones stand in its meta. train_batch is the
 * batch of the training step. */
static double target(const struct vc_session *s, const char *axis)
{
	char train[VC_PARAM_TEXT + 8];
	double v;

	snprintf(train, sizeof(train), "train_%s", axis);
	v = param(s->rec->meta, train);
	return isnan(v) ? param(s->rec->meta, axis) : v;
}

static double batch_of(const struct vc_session *s)
{
	static const char *const names[] = { "train_batch", "batch", "batch_size", "micro_batch",
					    "bs" };
	double v = NAN;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && isnan(v); i++)
		v = param(s->rec->meta, names[i]);
	return v > 0 ? v : 0;
}

static int ask_tempo(struct vc_time *t, const struct vc_tempo_ask *ask, struct vc_timing *out,
		     struct vc_tempo_answer *a, struct vc_error *err)
{
	struct vc_error why = { 0 };
	int r;

	pthread_mutex_lock(&t->lock);
	r = vc_tempo_at(&t->tempo, ask, a, &why);
	pthread_mutex_unlock(&t->lock);
	if (r == VC_ENOMEM)
		return vc_nomem(err, "the time of a step");
	if (r < 0)
		snprintf(out->why, sizeof(out->why), "%.*s", (int)sizeof(out->why) - 1,
			 why.message);
	return r < 0 ? 1 : VC_OK;
}

/* The ends of what is not known: which of its two limits a kernel has on another card is a guess
 * from its name, and how much it gains from 16 bit one from what it was called for. */
static int ends(struct vc_time *t, const struct vc_change *c, struct vc_tempo_ask *ask,
		struct vc_timing *out, struct vc_tempo_answer *a, struct vc_error *err)
{
	double least = fmin(fmin(c->bytes, c->tf32), fmin(c->fp32, c->half)),
	       most = fmax(fmax(c->bytes, c->tf32), fmax(c->fp32, c->half));
	struct vc_tempo_answer slow, fast;
	int r;

	ask->bytes = ask->fp32 = ask->tf32 = ask->half = least;
	ask->cast = c->step.cast ? &c->slow : NULL;
	r = ask_tempo(t, ask, out, &slow, err);
	ask->bytes = ask->fp32 = ask->tf32 = ask->half = most;
	ask->cast = c->step.cast ? &c->fast : NULL;
	if (!r)
		r = ask_tempo(t, ask, out, &fast, err);
	if (!r) {
		a->low_ns = fmin(a->low_ns, fast.low_ns);
		a->high_ns = fmax(a->high_ns, slow.high_ns);
		out->roofline = true;
	}
	return r;
}

/* Kernels whose work is known: what is known of kernels and of the program's side of a step. On
 * another card than the one that was played both may be off. */
static int widen(const struct vc_time *t, const struct vc_change *c, struct vc_timing *out,
		 struct vc_tempo_answer *a)
{
	const struct vc_profile *p = t->tempo.at[a->base];
	double more = c->other_card || c->step.cast ? 1.15 : 1;

	a->low_ns = fmin(a->low_ns, a->step_ns * p->least / more);
	a->high_ns = fmax(a->high_ns, a->step_ns * p->most * more);
	out->roofline = c->other_card || c->step.cast;
	return VC_OK;
}

static int ask_all(struct vc_time *t, const struct vc_change *c, struct vc_tempo_ask *ask,
		   struct vc_timing *out, struct vc_tempo_answer *a, struct vc_error *err)
{
	int r;

	ask->bytes = c->bytes;
	ask->fp32 = c->fp32;
	ask->tf32 = c->tf32;
	ask->half = c->half;
	ask->cast = c->step.cast ? &c->cast : NULL;
	ask->optimizer_ns = c->optimizer_ns;
	ask->here = t->tempo.at[0]->card;
	ask->there = c->other_card ? c->there : NULL;
	ask->weights = c->step.frozen ? 0.5 : 0; /* the gradient of what comes in is left */
	r = ask_tempo(t, ask, out, a, err);
	if (!r && t->tempo.at[0]->card)
		return widen(t, c, out, a);
	return r || (!c->other_card && !c->step.cast) ? r : ends(t, c, ask, out, a, err);
}

/* there: the card. What a step computes is known where it was recorded at these values. */
static void describe(const struct vc_profile *p, const struct vc_tempo_answer *a,
		     const struct vc_card *there, struct vc_timing *o)
{
	o->modelled = p->modelled;
	if (!p->card || !(p->shares.ns > 0))
		return;
	o->unknown = p->shares.unknown / p->shares.ns;
	o->kernel = p->shares.name;
	if (a->step_ns > 0 && there)
		o->mfu = vc_profile_ideal(p, there) / a->step_ns;
}

static void settle(const struct vc_session *s, const struct vc_plan *plan,
		   const struct vc_tempo_answer *a, struct vc_result *r)
{
	const struct vc_time *t = time_of(s);
	struct vc_timing *o = &r->timing;
	const struct vc_profile *p = t->tempo.at[a->base];
	double extra = (double)o->driver_ns, step = a->step_ns + extra;
	bool recorded = a->at_values && !plan->transform.n;
	const struct vc_card *there = !recorded ? NULL : plan->card ? plan->card : p->card;

	o->step_ns = (uint64_t)(step + 0.5);
	o->low_ns = (uint64_t)(a->low_ns + extra + 0.5);
	o->high_ns = (uint64_t)(a->high_ns + extra + 0.5);
	o->recorded_ns = p->step_ns;
	o->busy = step > 0 ? a->busy * a->step_ns / step : 0;
	o->wait = step > 0 ? a->wait * a->step_ns / step : 0;
	o->matched = a->matched;
	o->renamed = a->renamed;
	o->same = a->same;
	describe(p, a, there, o);
	o->recordings = t->tempo.n;
	/* the whole run: what was not a step took as long as it did */
	const struct vc_recording *base = recording(s, 0);
	for (size_t i = 0; i < t->n; i++)
		if (&t->profile[i] == p)
			base = recording(s, i);
	double whole = (double)base->census.last_ns +
		       (double)(p->steps + 1) * (step - (double)p->step_ns);
	r->stats.predicted_ns = (uint64_t)fmax(whole, step * (double)(p->steps ? p->steps : 1));
}

/* Whether too much of its step is of kernels that nobody knows; the reason goes to why. */
static bool is_unknown(const struct vc_profile *p, char *why, size_t n)
{
	char name[VC_KERNEL_NAME];

	if (!p->card || p->shares.unknown <= VC_TIME_UNKNOWN * p->shares.ns)
		return false;
	snprintf(why, n, "%.0f %% of it is of kernels of which nobody knows what they compute, as "
		 "%.60s ('vramcast probe' measures kernels)",
		 100 * p->shares.unknown / p->shares.ns, vc_kernel_name(p->shares.name, name));
	return true;
}

/* What the plan makes of a step. 1: unknown, the reason is in o->why. */
static int predict(const struct vc_session *s, const struct vc_plan *plan, struct vc_timing *o,
		   struct vc_tempo_answer *a, struct vc_error *err)
{
	struct vc_time *t = (struct vc_time *)s->time;
	struct vc_tempo_ask ask = { .passes = 1, .bytes = 1, .fp32 = 1, .tf32 = 1, .half = 1 };
	struct vc_change c;
	int rc;

	o->samples = batch_of(s);
	if (!t || !t->tempo.n) {
		snprintf(o->why, sizeof(o->why), "%s", t && t->why[0] ? t->why :
			 "no kernels were recorded");
		return 1;
	}
	if (is_unknown(t->tempo.at[0], o->why, sizeof(o->why)))
		return 1;
	rc = vc_change_read(s, t->tempo.at[0], plan, &c, o->why, sizeof(o->why));
	for (size_t i = 0; rc == VC_OK && i < t->tempo.axes; i++) {
		ask.x[i] = target(s, t->axis[i]);
		if (isnan(ask.x[i]))
			ask.x[i] = t->tempo.x[0][i];
	}
	if (rc != VC_OK)
		return rc;
	ask.passes = c.step.passes;
	ask.recompute = c.step.recompute;
	ask.part = c.part;
	ask.parts = c.parts;
	o->samples *= c.step.passes;
	rc = ask_all(t, &c, &ask, o, a, err);
	if (rc == VC_OK && !a->phases &&
	    (c.step.recompute || c.step.passes != 1 || c.step.cast || c.optimizer_ns > 0)) {
		snprintf(o->why, sizeof(o->why),
			 "the names of the kernels do not tell the backward pass");
		rc = 1;
	}
	return rc;
}

int vc_time_answer(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *r,
		   struct vc_error *err)
{
	struct vc_tempo_answer a;
	int rc = vc_change_flushes(s, plan, r, err);

	VC_TRY(rc);
	if (s->time && time_of(s)->tempo.n && vc_result_replayed(r) == VC_OOM) {
		r->timing.samples = batch_of(s);
		snprintf(r->timing.why, sizeof(r->timing.why), "it runs out of memory");
		return VC_OK;
	}
	rc = predict(s, plan, &r->timing, &a, err);
	if (rc == VC_OK)
		settle(s, plan, &a, r);
	return rc < 0 ? rc : VC_OK;
}

int vc_time_step(const struct vc_session *s, const struct vc_plan *plan, struct vc_timing *o,
		 struct vc_error *err)
{
	struct vc_tempo_answer a;
	int rc;

	*o = (struct vc_timing){ .flushes = -1, .mallocs = -1, .frees = -1 };
	rc = predict(s, plan, o, &a, err);
	if (rc != VC_OK)
		return rc < 0 ? rc : VC_OK;
	o->step_ns = (uint64_t)(a.step_ns + 0.5);
	o->low_ns = (uint64_t)(a.low_ns + 0.5);
	o->high_ns = (uint64_t)(a.high_ns + 0.5);
	o->recorded_ns = time_of(s)->tempo.at[a.base]->step_ns;
	describe(time_of(s)->tempo.at[a.base], &a, NULL, o);
	return VC_OK;
}

int vc_time_lengthen(struct vc_session *s, uint64_t have, uint64_t want, uint64_t stages,
		     bool *done, struct vc_error *err)
{
	struct vc_time *t = (struct vc_time *)s->time;

	*done = false;
	return t && t->n ? vc_profile_lengthen(&t->profile[0], s->rec->meta, have, want, stages,
					       done, err) : VC_OK;
}

/* Whether the recording shows a step that can be played; else the reason goes to why. */
static bool is_played(const struct vc_time *t, char *why, size_t n)
{
	static const char no_work[] = "a recording does not say what its kernels compute (that of "
		"a dry run does)";
	const char *reason = !t || !t->n ? t && t->why[0] ? t->why : "no kernels were recorded" :
		!t->profile[0].card ? no_work :
		!t->profile[0].steps ? "no whole step was recorded" : NULL;

	if (reason)
		snprintf(why, n, "%s", reason);
	return !reason && !is_unknown(&t->profile[0], why, n);
}

/* Who plays; *known: all can. NULL: no memory. */
static struct vc_player *players(struct vc_session *const *s, size_t n, char *why, size_t len,
				 bool *known)
{
	struct vc_player *who = calloc(n + 1, sizeof(*who));

	*known = who && n;
	for (size_t i = 0; *known && i < n; i++) {
		const struct vc_time *t = (const struct vc_time *)s[i]->time;

		*known = is_played(t, why, len);
		if (*known)
			who[i] = (struct vc_player){ &t->profile[0], s[i]->rec->meta };
	}
	return who;
}

int vc_time_ranks(struct vc_session *const *s, size_t n, struct vc_timing *o, struct vc_error *err)
{
	double ns[3] = { 0 };
	struct vc_player *who;
	bool known;
	int r = VC_OK;

	*o = (struct vc_timing){ .modelled = true };
	who = players(s, n, o->why, sizeof(o->why), &known);
	VC_HAVE(who, "the ranks of a job", err);
	if (known)
		r = vc_profiles_meet(who, n, ns, err);
	o->low_ns = (uint64_t)ns[0];
	o->step_ns = (uint64_t)ns[1];
	o->high_ns = (uint64_t)ns[2];
	if (known && !o->step_ns)
		snprintf(o->why, sizeof(o->why), "what ranks send does not match");
	free(who);
	return r;
}

int vc_time_within(struct vc_session *const *s, size_t n, const uint64_t ranks[VC_SHARED],
		   double ns[2], struct vc_error *err)
{
	char why[200];
	bool known;
	struct vc_player *who = players(s, n, why, sizeof(why), &known);
	int r = VC_OK;

	ns[0] = ns[1] = 0;
	VC_HAVE(who, "the ranks of a job", err);
	if (known)
		r = vc_profiles_within(who, n, ranks, ns, err);
	free(who);
	return r;
}
