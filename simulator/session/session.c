/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - see session.h */
#include "simulator/session/session.h"

#include "simulator/replay/transform.h"
#include "simulator/session/answer.h"
#include "simulator/session/bounds.h"
#include "simulator/session/completion.h"
#include "simulator/session/purposes.h"
#include "simulator/session/shelf.h"
#include "simulator/session/span.h"
#include "simulator/session/verify.h"
#include "simulator/session/whatif.h"

/* ---- opening ---- */

static struct vc_recording_ask ask_of(const struct vc_run_options *o, unsigned flags)
{
	return (struct vc_recording_ask){ .device = o->device,
					  .rank = o->rank,
					  .torch = o->torch.n ? o->torch.at[0] : NULL,
					  .claimed = o->torch.n == 1 ? o->torch.at[0] : NULL,
					  .total = o->capacity != VC_NOT_GIVEN ? o->capacity : 0,
					  .verify = o->verify, .asker = o->asker,
					  .without = o->without,
					  .flags = flags };
}

static void begin(struct vc_session *s, const struct vc_run_options *opt)
{
	*s = (struct vc_session){ .opt = opt, .matched = 1 };
	s->rec = &s->own;
}

int vc_session_open_one(struct vc_session *s, const struct vc_run_options *opt, const char *path,
			unsigned flags, struct vc_error *err)
{
	struct vc_recording_ask ask = ask_of(opt, flags);

	begin(s, opt);
	if (opt->shelf) {
		VC_TRY(vc_shelf_take(opt->shelf, path, &ask, &s->lent, err));
		s->shelf = opt->shelf;
		if (s->lent) {
			s->rec = s->lent;
			return VC_OK;
		}
	}
	VC_TRY(vc_recording_open(&s->own, path, &ask, err));
	return opt->verify ? vc_verify(&s->own, &ask, err) : VC_OK;
}

static int open_several(struct vc_session *s, size_t n, char **paths, unsigned flags,
			struct vc_error *err)
{
	struct vc_recording_ask ask = ask_of(s->opt, flags);

	s->own.path = paths[0];
	s->whatif = vc_whatif_open(s->opt, n, paths, &ask, err);
	if (!s->whatif)
		return err->status ? (int)err->status : VC_ENOMEM;
	s->rec = &s->whatif->as_asked.rec;
	s->matched = s->whatif->as_asked.matched;
	return VC_OK;
}

static void describe(struct vc_session *s, const struct vc_list *what)
{
	size_t n = strlen(s->change);

	for (size_t i = 0; i < what->n && n < sizeof(s->change); i++)
		n += (size_t)snprintf(s->change + n, sizeof(s->change) - n, "%s%s",
				      n ? ", " : "", what->at[i]);
}

/* What was made in the program is no transform of its recording any more. */
static void take_made(struct vc_session *s)
{
	const struct vc_rerun *r = s->whatif ? s->whatif->rerun : NULL;

	if (s->whatif)
		snprintf(s->why, sizeof(s->why), "%s", s->whatif->why);
	if (!r || !r->made.n)
		return;
	describe(s, &r->made);
	s->rest = *s->opt;
	s->rest.transform.at += r->made.n;
	s->rest.transform.n -= r->made.n;
	s->opt = &s->rest;
}

/* One recording and -x: by its program where that can be asked. */
static int open_changed(struct vc_session *s, const struct vc_run_options *opt, char *path,
			unsigned flags, struct vc_error *err)
{
	struct vc_run_wish wish = { .of = NULL };
	struct vc_list made = { opt->transform.at, vc_rerun_makes(opt) };
	struct vc_transform_use u;

	VC_TRY(vc_session_open_one(s, opt, path, flags, err));
	/* nothing is noted in it, for no value is asked for */
	wish.of = (struct vc_recording *)(uintptr_t)s->rec;
	wish.made = &made;
	if (!made.n && vc_rerun_asked(opt, "rerun") &&
	    vc_transform_parse(&u, opt->transform.at[0], &(struct vc_error){ 0 }) == VC_OK)
		return vc_fail(err, VC_EUSAGE, "--by rerun: -x %s: %s", opt->transform.at[0],
			       vc_transform_unmade(&u));
	if (!made.n)
		return VC_OK;
	VC_TRY(opt->runner->may(opt, &wish, s->why, err));
	if (s->why[0] && vc_rerun_asked(opt, "rerun"))
		return vc_fail(err, VC_EUSAGE, "--by rerun: %s", s->why);
	if (s->why[0])
		return VC_OK;
	vc_session_close(s);
	begin(s, opt);
	VC_TRY(open_several(s, 1, &path, flags, err));
	if (s->whatif->rerun)
		return VC_OK;
	char why[VC_RERUN_WHY];

	snprintf(why, sizeof(why), "%s", s->whatif->why);
	vc_session_close(s);
	VC_TRY(vc_session_open_one(s, opt, path, flags, err));
	snprintf(s->why, sizeof(s->why), "%s", why);
	return VC_OK;
}

int vc_session_open(struct vc_session *s, const struct vc_run_options *opt, size_t n, char **paths,
		    unsigned flags, struct vc_error *err)
{
	begin(s, opt);
	if (opt->seeds != VC_NOT_GIVEN && (opt->seeds < 1 || opt->seeds > VC_RERUN_SEEDS))
		return vc_fail(err, VC_EUSAGE, "--seeds goes from 1 to %d", VC_RERUN_SEEDS);
	if (!n)
		return vc_fail(err, VC_EUSAGE,
			       "name a trace (a recording, a snapshot, or - for standard input)");
	if (n == 1 && !opt->set.n && opt->transform.n && opt->runner)
		VC_TRY(open_changed(s, opt, paths[0], flags, err));
	else if (n == 1 && !opt->set.n)
		VC_TRY(vc_session_open_one(s, opt, paths[0], flags, err));
	else
		VC_TRY(open_several(s, n, paths, flags, err));
	VC_TRY(vc_tenants_parse(&opt->used, &s->tenants, err));
	describe(s, &opt->set);
	take_made(s);
	return VC_OK;
}

int vc_session_at(const struct vc_session *from, const struct vc_param_value *at, size_t n,
		  const char *text, struct vc_session *out, struct vc_error *err)
{
	begin(out, from->opt);
	out->own.path = from->rec->path;
	out->tenants = from->tenants;
	out->time = from->time;
	out->time_lent = true;
	snprintf(out->change, sizeof(out->change), "%s", text);
	snprintf(out->why, sizeof(out->why), "%s", from->why);
	out->whatif = vc_whatif_again(from->whatif, at, n, err);
	if (!out->whatif)
		return err->status ? (int)err->status : VC_ENOMEM;
	out->rec = &out->whatif->as_asked.rec;
	out->matched = out->whatif->as_asked.matched;
	return VC_OK;
}

void vc_session_close(struct vc_session *s)
{
	if (s->time && !s->time_lent)
		s->time->drop(s->time);
	s->time = NULL;
	vc_whatif_close(s->whatif);
	s->whatif = NULL;
	if (s->lent)
		vc_shelf_give_back(s->shelf, s->lent);
	s->lent = NULL;
	vc_recording_close(&s->own);
}

struct vc_source *vc_session_source(const struct vc_session *s, struct vc_error *err)
{
	return vc_recording_source(s->rec, &s->opt->transform, err);
}

int vc_session_plans(const struct vc_session *s, struct vc_plan **plans, size_t *n,
		     struct vc_error *err)
{
	return vc_request_plans(s->rec, s->opt, &s->tenants, plans, n, err);
}

/* ---- answers ---- */

/* What is replayed on the card of a plan. NULL: failure. */
static struct vc_prediction *prediction(const struct vc_session *s, const struct vc_plan *plan,
					struct vc_job *job, struct vc_error *err)
{
	struct vc_prediction *p = s->whatif ? vc_whatif_on(s->whatif, plan->card, err) : NULL;

	*job = (struct vc_job){ .rec = p ? &p->rec : s->rec, .change = s->change,
				.reran = p && s->whatif->rerun && p->ran.whole };
	return p;
}

static int replay(const struct vc_job *job, const struct vc_plan *plan,
		  const struct vc_observer_type *const *observers, struct vc_result *out,
		  struct vc_error *err)
{
	struct vc_plan now = *plan;
	int r;

	vc_completion_default(job->rec, &now);
	VC_TRY(vc_job_run(job, &now, observers, out, err));
	r = vc_purposes_fill(job->rec, &plan->transform, out, err);
	if (r < 0)
		vc_result_fini(out);
	return r;
}

/* What is asked about an interval. p: NULL where alternatives of a prediction do not count. */
struct span { const struct vc_session *s; struct vc_prediction *p; struct vc_job job; };

/* What recordings and waiting streams leave open. */
static int widen(const struct span *a, const struct vc_plan *plan, struct vc_result *out,
		 struct vc_error *err)
{
	int r = a->p ? vc_whatif_interval(a->s->whatif, a->p, plan, out, err) : VC_OK;

	return r < 0 || out->basis.ground != VC_GROUND_ASKED ?
		       r : vc_completion_interval(&a->job, plan, out, err);
}

/* What transforms leave open: the same with all of it small, and all of it large. */
static int add_bound(const struct span *a, const struct vc_plan *plan, const char *bound,
		     struct vc_result *out, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan other = *plan;
	struct vc_bounds b;
	struct vc_result r;
	int rc = vc_bounds_at(&plan->transform, bound, &b, err);

	other.transform = b.transform;
	if (rc == VC_OK)
		rc = replay(&a->job, &other, nobody, &r, err);
	if (rc == VC_OK) {
		rc = widen(a, &other, &r, err);
		vc_result_open_interval(&r);
		out->low = r.low < out->low ? r.low : out->low;
		out->high = r.high > out->high ? r.high : out->high;
		vc_result_fini(&r);
	}
	vc_bounds_fini(&b);
	return rc;
}

/* Where nothing limits it: else the run that runs out would seem to need less than it does. A model
 * that takes what the device has needs as much as it can get. */
static int find_need(const struct span *a, const struct vc_plan *plan, struct vc_result *out,
		     struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan free = vc_plan_unlimited(plan);
	struct vc_result r;

	out->need = out->stats.peak_reserved;
	if (!plan->capacity || (vc_result_replayed(out) == VC_FITS && plan->torch[0]))
		return VC_OK;
	VC_TRY(replay(&a->job, &free, nobody, &r, err));
	out->need = r.stats.peak_reserved;
	vc_result_fini(&r);
	return VC_OK;
}

/* A profile has no addresses that its replay could be held against: what its own counters say is as
 * likely. */
static void widen_by_counters(const struct span *a, const struct vc_plan *plan,
			      struct vc_result *out)
{
	const struct vc_recording *rec = a->job.rec;
	const struct vc_device_info *on = vc_meta_device_known(rec->meta, rec->device->device);

	if (a->p || plan->transform.n || rec->fidelity.exact || !on || !on->reserved)
		return;
	vc_result_open_interval(out);
	out->low = on->reserved < out->low ? on->reserved : out->low;
	out->high = on->reserved > out->high ? on->reserved : out->high;
	out->has_interval = out->low != out->high;
}

static int interval(const struct span *a, const struct vc_plan *plan, struct vc_result *out,
		    struct vc_error *err)
{
	struct vc_plan free = vc_plan_unlimited(plan);
	bool had, other = vc_answer_other_torch(a->job.rec, plan),
		  changed = vc_bounds_wanted(&plan->transform),
		  resized = vc_answer_resized(a->job.rec, plan);
	int r = VC_OK;

	if (other || resized || plan->transform.n || (out->basis.ground == VC_GROUND_ASKED &&
					   vc_completion_is_open(&a->job, plan)))
		r = find_need(a, plan, out, err);
	if (r == VC_OK)
		r = widen(a, plan, out, err);
	if (r == VC_OK && !a->p)
		r = vc_span_widen(&a->job, plan, out->need != 0, out, err);
	if (r == VC_OK)
		widen_by_counters(a, plan, out);
	had = out->has_interval || other;
	if (r < 0 || !(other || changed || resized))
		return r;
	vc_result_open_interval(out);
	if (changed && vc_bounds_open(&plan->transform)) {
		r = add_bound(a, &free, "low", out, err);
		if (r == VC_OK)
			r = add_bound(a, &free, "high", out, err);
	}
	if (changed)
		vc_bounds_margins(a->job.rec, &plan->transform, out);
	if (resized)
		vc_bounds_resized(out);
	if (other)
		vc_answer_widen_torch(out);
	out->has_interval = had || out->low != out->high;
	return r;
}

int vc_session_replay(const struct vc_session *s, const struct vc_plan *plan,
		      const struct vc_observer_type *const *observers, struct vc_result *out,
		      struct vc_error *err)
{
	struct vc_job job;

	if (!prediction(s, plan, &job, err) && s->whatif)
		return err->status ? (int)err->status : VC_ENOMEM;
	return replay(&job, plan, observers, out, err);
}

int vc_session_interval(const struct vc_session *s, const struct vc_plan *plan,
			struct vc_result *out, struct vc_error *err)
{
	struct span a = { .s = s };

	a.p = prediction(s, plan, &a.job, err);
	if (s->whatif && !a.p)
		return err->status ? (int)err->status : VC_ENOMEM;
	return interval(&a, plan, out, err);
}

int vc_session_interval_of_change(const struct vc_session *s, const struct vc_plan *plan,
				  struct vc_result *out, struct vc_error *err)
{
	struct span a = { .s = s };

	if (!prediction(s, plan, &a.job, err) && s->whatif)
		return err->status ? (int)err->status : VC_ENOMEM;
	return interval(&a, plan, out, err);
}

int vc_session_decide(const struct vc_session *s, const struct vc_plan *plan,
		      struct vc_result *out, struct vc_error *err)
{
	struct span a = { .s = s };

	a.p = prediction(s, plan, &a.job, err);
	if (s->whatif && !a.p)
		return err->status ? (int)err->status : VC_ENOMEM;
	VC_TRY(interval(&a, plan, out, err));
	return vc_answer_decide(s, &a.job, plan, out, err);
}

/* What must be live at once, in all of the run: one that runs out shows only the part before. */
static int find_floor(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *out,
		      struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan free = vc_plan_unlimited(plan);
	struct vc_result r;

	if (!plan->capacity || vc_result_replayed(out) != VC_OOM || s->rec->streamed ||
	    vc_transforms_on_demand(&plan->transform))
		return VC_OK;
	VC_TRY(vc_session_replay(s, &free, nobody, &r, err));
	if (r.stats.lower_bound > out->stats.lower_bound)
		out->stats.lower_bound = r.stats.lower_bound;
	vc_result_fini(&r);
	return VC_OK;
}

int vc_session_run(const struct vc_session *s, const struct vc_plan *plan,
		   const struct vc_observer_type *const *observers, struct vc_result *out,
		   struct vc_error *err)
{
	int r = vc_session_replay(s, plan, observers, out, err);

	VC_TRY(r);
	r = find_floor(s, plan, out, err);
	if (r == VC_OK)
		r = vc_session_decide(s, plan, out, err);
	if (r < 0)
		vc_result_fini(out);
	return r;
}
