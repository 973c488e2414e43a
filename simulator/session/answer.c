/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - see answer.h */
#include "simulator/session/answer.h"

#include "simulator/session/bounds.h"
#include "simulator/session/completion.h"
#include "simulator/session/verify.h"
#include "simulator/session/whatif.h"

/* ---- the level ---- */

static bool all_recordings(const struct vc_session *s, bool (*is)(const struct vc_recording *))
{
	bool all = (s->whatif && !s->whatif->rerun) || is(s->rec);

	for (size_t i = 0; s->whatif && i < s->whatif->recordings; i++)
		all &= is(&s->whatif->recording[i]);
	return all;
}

static bool is_checked(const struct vc_recording *rec)
{
	return rec->fidelity.checked;
}

static bool is_reproduced(const struct vc_recording *rec)
{
	return rec->fidelity.checked && rec->fidelity.exact;
}

bool vc_answer_checked(const struct vc_session *s)
{
	return all_recordings(s, is_checked);
}

bool vc_answer_reproduced(const struct vc_session *s)
{
	return all_recordings(s, is_reproduced);
}

/* "2.9.1+cu128" and "2.9" have the same allocator. */
static bool same_release(const char *a, const char *b)
{
	char *x, *y;
	unsigned long major = strtoul(a, &x, 10);

	return major == strtoul(b, &y, 10) && *x == '.' && *y == '.' &&
	       strtoul(x + 1, NULL, 10) == strtoul(y + 1, NULL, 10);
}

bool vc_answer_other_torch(const struct vc_recording *rec, const struct vc_plan *p)
{
	return p->torch[0] && rec->made_by[0] && !same_release(p->torch, rec->made_by);
}

static enum vc_level worse(enum vc_level a, enum vc_level b)
{
	return a > b ? a : b;
}

/* Another model than the recorded one, or one whose rules were changed, is another allocator under
 * the same requests. */
static bool is_other_allocator(const struct vc_recording *rec, const struct vc_plan *p)
{
	return p->model != vc_recording_model(rec) || p->params[0] ||
	       vc_answer_other_torch(rec, p);
}

/* A replay for which nothing was argued: one of other requests or models has levels of its own. */
static bool is_as_it_was(const struct vc_session *s, const struct vc_plan *p,
			 const struct vc_result *r)
{
	const char *was = s->rec->meta->conf;

	if (s->whatif || p->transform.n || is_other_allocator(s->rec, p))
		return true;
	return !strcmp(p->conf, was ? was : "") && vc_plan_on_recorded_device(s->rec, p) &&
	       (r->info.warm || !s->rec->device->has_start);
}

bool vc_answer_resized(const struct vc_recording *rec, const struct vc_plan *p)
{
	const char *was = rec->meta->conf;

	return rec->device->slept && (strcmp(p->conf, was ? was : "") != 0 ||
				      !vc_plan_on_recorded_device(rec, p));
}

enum vc_level vc_answer_level(const struct vc_session *s, const struct vc_plan *p,
			      const struct vc_result *r)
{
	const struct vc_whatif *w = s->whatif;
	enum vc_level l = is_other_allocator(s->rec, p) ? VC_ALLOCATOR_ONLY : VC_EXACT;

	if (w && w->rerun)
		l = worse(l, VC_RERUN);
	else if (w && !w->as_asked.report.same)
		l = worse(l, w->as_asked.report.single ? VC_BOUNDS : VC_EXTRAPOLATED);
	if (vc_answer_resized(s->rec, p))
		l = worse(l, vc_plan_on_recorded_device(s->rec, p) ? VC_BOUNDS : VC_UNKNOWN);
	if (p->transform.n)
		l = worse(l, vc_bounds_unknown(&p->transform) ? VC_UNKNOWN : VC_BOUNDS);
	/* A check that somebody left out takes nothing from what is weaker anyway. */
	if (s->opt->verify ? !vc_answer_reproduced(s) : !all_recordings(s, vc_verify_possible))
		l = worse(l, VC_UNVERIFIED);
	else if (!s->opt->verify && l < VC_EXTRAPOLATED)
		l = VC_UNVERIFIED;
	if (l == VC_EXACT && r && !r->basis.exact &&
	    !(r->basis.ground == VC_GROUND_ASKED && is_as_it_was(s, p, r)))
		return VC_BOUNDS;
	return l;
}

/* ---- another version ---- */

/* In percent of what is reserved. The same program under another version, 2.6 to 2.15, allocated up
 * to 3.3 % more or less; where its blocks then landed moved what it reserved by up to 10.9 % down
 * and 13.1 % up from what was predicted (docs/measurements/predictions.md). */
enum { VERSION_DOWN = 12, VERSION_UP = 14 };
enum { PAGE = 2 << 20 };
enum { PIECES = 64 << 20 }; /* more than any rounding of an end moves it */

void vc_answer_widen_torch(struct vc_result *out)
{
	out->low -= out->low / 100 * VERSION_DOWN;
	out->low -= out->low % PAGE;
	out->high += out->high / 100 * VERSION_UP + PAGE - 1;
	out->high -= out->high % PAGE;
}

/* ---- what recordings cannot tell ---- */

#define TELLING 0.02 /* share of the allocations, ... */
#define UNSURE 0.5   /* ... of the bytes */
#define TELLS 0.2 /* of the best guess: no number where the interval is wider */

static const char *why_not(const struct vc_family_report *r, char *buf, size_t n)
{
	if (r->single)
		snprintf(buf, n, "one recording shows no law");
	else if (r->data)
		snprintf(buf, n, "sizes of steps vary with their data");
	else if (r->unmatched > TELLING)
		snprintf(buf, n, "%.0f %% of the allocations are in some of them only",
			 100 * r->unmatched);
	else if (r->unsure > UNSURE)
		snprintf(buf, n, "most sizes follow no law that they show for certain");
	else if (r->plans)
		snprintf(buf, n, "layers may need other workspace there");
	else
		snprintf(buf, n, "they miss each other by too much");
	return buf;
}

/* The one place that names it. */
static const char *what_can(const struct vc_whatif *w, char *buf, size_t n)
{
	const struct vc_recording *rec = &w->recording[0];
	const char *command = rec->meta->command;
	bool known = rec->meta->program != NULL;
	size_t at = (size_t)snprintf(buf, n, "vramcast %s%.200s", known ? "sim " : "dryrun",
				     known ? rec->path : "");
	char values[160] = "";

	for (size_t i = 0, k = 0; i < w->n && k < sizeof(values) && at < n; i++) {
		at += (size_t)snprintf(buf + at, n - at, " --%s %s=%g", known ? "set" : "param",
				       w->at[i].name, w->at[i].value);
		k += (size_t)snprintf(values + k, sizeof(values) - k, "%s%s=%g", k ? ", " : "",
				      w->at[i].name, w->at[i].value);
	}
	if (at < n && known)
		snprintf(buf + at, n - at, " --by rerun");
	else if (at < n)
		snprintf(buf + at, n - at, " -o new.vct -- %.100s (with %s)",
			 command && *command ? command : "python train.py", values);
	return buf;
}

void vc_answer_who_can(const struct vc_session *s, char *buf, size_t n)
{
	char why[120], command[320];

	snprintf(buf, n, "these recordings cannot tell how much (%s); this command can: %s",
		 why_not(&s->whatif->as_asked.report, why, sizeof(why)),
		 what_can(s->whatif, command, sizeof(command)));
}

const char *vc_answer_cannot(const struct vc_session *s, uint64_t best, uint64_t low, uint64_t high,
			     char *buf, size_t n)
{
	const struct vc_whatif *w = s->whatif;

	*buf = '\0';
	if (w && !w->rerun && !s->opt->force && !s->opt->assume &&
	    !w->as_asked.report.same && low < high &&
	    (vc_whatif_untried(w, &w->as_asked) || (double)(high - low) > TELLS * (double)best))
		vc_answer_who_can(s, buf, n);
	return buf;
}

/* ---- the verdict ---- */

struct ask { const struct vc_job *job; const struct vc_plan *plan; };

/* How the run ends that needs so many bytes more (or fewer, < 0). */
static int replay_end(const struct ask *q, int64_t more, enum vc_verdict *v, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan plan = *q->plan;
	struct vc_result r;

	plan.more = more;
	vc_completion_default(q->job->rec, &plan);
	VC_TRY(vc_job_run(q->job, &plan, nobody, &r, err));
	*v = vc_result_replayed(&r);
	vc_result_fini(&r);
	return VC_OK;
}

/* What the best estimate reserves where nothing limits it. */
static int find_need(const struct ask *q, const struct vc_result *r, uint64_t *need,
		     struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan free = vc_plan_unlimited(q->plan);
	struct vc_result all;

	*need = r->need ? r->need : r->stats.peak_reserved;
	if (r->need || (vc_result_replayed(r) == VC_FITS && q->plan->torch[0]))
		return VC_OK;
	vc_completion_default(q->job->rec, &free);
	VC_TRY(vc_job_run(q->job, &free, nobody, &all, err));
	*need = all.stats.peak_reserved;
	vc_result_fini(&all);
	return VC_OK;
}

static uint64_t beside_of(const struct vc_result *r)
{
	uint64_t used = r->stats.peak_used, reserved = r->stats.peak_reserved;

	return used > reserved ? used - reserved : 0;
}

/* A best estimate that no device has room for cannot be replayed for an end that would fit. */
static int judge_beyond(const struct ask *q, struct vc_trust *a, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan free = vc_plan_unlimited(q->plan);
	struct vc_result all;

	vc_completion_default(q->job->rec, &free);
	VC_TRY(vc_job_run(q->job, &free, nobody, &all, err));
	if (vc_result_replayed(&all) == VC_OOM)
		a->low = VC_FITS;
	vc_result_fini(&all);
	return VC_OK;
}

/* Does the run fit by the upper end, for nothing but the device limits it? */
static bool is_far_below(const struct ask *q, const struct vc_result *r)
{
	uint64_t peak = r->stats.peak_reserved;

	return vc_result_replayed(r) == VC_FITS && q->plan->torch[0] && !r->stats.limited &&
	       !strstr(q->plan->conf, "memory_fraction") && r->high >= peak &&
	       r->stats.peak_used + (r->high - peak) <= q->plan->capacity;
}

/* Both ends of the interval on this device. */
static int replay_ends(const struct ask *q, struct vc_result *r, struct vc_error *err)
{
	struct vc_trust *a = &r->trust;
	enum vc_verdict end;
	uint64_t need;

	if (!r->has_interval || !q->plan->capacity || is_far_below(q, r))
		return VC_OK;
	VC_TRY(find_need(q, r, &need, err));
	if (a->high != VC_OOM && r->high > need) {
		VC_TRY(replay_end(q, (int64_t)(r->high - need), &end, err));
		a->high = end > a->high ? end : a->high;
	}
	if (a->low != VC_FITS && r->low < need) {
		VC_TRY(replay_end(q, -(int64_t)(need - r->low), &end, err));
		a->low = end < a->low ? end : a->low;
		if (a->low == VC_OOM && r->low + beside_of(r) <= q->plan->capacity)
			return judge_beyond(q, a, err);
	}
	return VC_OK;
}

static enum vc_verdict verdict_of(const struct vc_trust *a, enum vc_verdict best)
{
	switch (a->assumed) {
	case VC_ASSUME_LOW:
		return a->low;
	case VC_ASSUME_BEST:
		return best;
	case VC_ASSUME_HIGH:
		return a->high;
	case VC_ASSUME_NOTHING:
		break;
	}
	return a->low == a->high ? a->low : VC_UNDECIDED;
}

int vc_answer_decide(const struct vc_session *s, const struct vc_job *job,
		     const struct vc_plan *plan, struct vc_result *out, struct vc_error *err)
{
	const struct ask q = { job, plan };
	enum vc_verdict best = vc_result_replayed(out);
	struct vc_trust *a = &out->trust;
	uint64_t beside = beside_of(out);

	*a = (struct vc_trust){ .checked = vc_answer_checked(s),
				 .reproduced = vc_answer_reproduced(s),
				 .assumed = plan->assume, .low = best, .high = best };
	if (out->basis.decided) {
		a->low = out->basis.low;
		a->high = out->basis.high;
	} else {
		VC_TRY(replay_ends(&q, out, err));
	}
	if (out->has_interval)
		vc_answer_cannot(s, best == VC_FITS ? out->stats.peak_reserved :
						      out->low / 2 + out->high / 2, out->low,
				 out->high, a->cannot, sizeof(a->cannot));
	a->used_low = (out->has_interval ? out->low : out->stats.peak_reserved) + beside;
	a->used_high = (out->has_interval ? out->high : out->stats.peak_reserved) + beside;
	/* What the program would have asked for next is not recorded. */
	a->endless = out->stats.cut_short && best != VC_OOM;
	if (a->endless)
		a->high = VC_OOM;
	a->verdict = verdict_of(a, best);
	a->level = vc_answer_level(s, plan, out); /* from here on it counts */
	return VC_OK;
}
