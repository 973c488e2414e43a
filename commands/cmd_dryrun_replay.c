/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_replay.c - what the recording of a dry run says beyond the run itself: the first
 * iteration apart from the others, and the peak with fresh device addresses in the other order.
 *
 * PyTorch takes of equally large free blocks the one with the lower address. A program does not
 * see addresses, so its requests are the same in any order, and the exact model of the allocator
 * over the recorded requests is the second run, and the third. */
#define _GNU_SOURCE /* glob, asprintf */
#include <glob.h>
#include <sys/stat.h>

#include "commands/cmd_dryrun.h"
#include "simulator/session/session.h"
#include "simulator/time/time.h"

static void raise_phase(struct vc_peaks *to, const struct vc_peaks *p)
{
	if (p->peak_allocated > to->peak_allocated)
		to->peak_allocated = p->peak_allocated;
	if (p->peak_reserved > to->peak_reserved)
		to->peak_reserved = p->peak_reserved;
}

/* The recording as it was made, for the phases and the recorded peak. */
static int follow(const struct vc_session *s, struct vc_dryrun_replay *to, struct vc_error *err)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_phases, NULL };
	struct vc_result r;
	VC_TRY(vc_job_follow(s->rec, s->rec->torch, watch, &r, err));
	if (!to->phases.steps)
		to->phases.steps = r.phases.steps;
	raise_phase(&to->phases.first, &r.phases.first);
	raise_phase(&to->phases.steady, &r.phases.steady);
	vc_raise(&to->reserved, r.stats.peak_reserved);
	vc_raise(&to->allocated, r.stats.peak_allocated);
	vc_result_fini(&r);
	return 0;
}

static void read_time(const struct vc_profile *p, struct vc_dryrun_replay *to)
{
	if (!p || !p->card || !p->step_ns)
		return;
	to->step_ns = p->step_ns;
	to->least_ns = p->step_min_ns;
	to->most_ns = p->step_max_ns;
	vc_time_profile_words(p, to->time, sizeof(to->time));
}

/* The least share of the card that the program allowed itself (set_per_process_memory_fraction). */
static double least_fraction(const struct vc_session *s, double least)
{
	for (size_t i = 0; i < s->rec->trace.n; i++) {
		const struct vc_event *e = &s->rec->trace.ev[i];
		double f;

		if (e->kind != VC_EV_FRACTION)
			continue;
		memcpy(&f, &e->size, sizeof(f));
		if (f > 0 && f < 1 && (!(least > 0) || f < least))
			least = f;
	}
	return least;
}

static int one_order(struct vc_session *s, const struct vc_plan *plan,
		     struct vc_dryrun_replay *to, enum vc_verdict *verdict, struct vc_error *err)
{
	struct vc_result r;
	VC_TRY(vc_session_run(s, plan, NULL, &r, err));
	if (!to->least_reserved || r.stats.peak_reserved < to->least_reserved)
		to->least_reserved = r.stats.peak_reserved;
	if (r.stats.peak_reserved > to->most_reserved)
		to->most_reserved = r.stats.peak_reserved;
	*verdict = vc_result_verdict(&r);
	vc_result_fini(&r);
	return 0;
}

/* The driver's other order may turn the verdict; the orders that are drawn only widen. */
static int other_ways(struct vc_session *s, const struct vc_dryrun *run,
		      struct vc_dryrun_replay *to, struct vc_error *err)
{
	struct vc_dryrun_replay one = { 0 };
	struct vc_plan *plan;
	enum vc_verdict verdict, drawn;
	size_t n;
	VC_TRY(vc_session_plans(s, &plan, &n, err));
	plan->va = run->up ? VC_VA_CONTEXT : VC_VA_UP;
	plan->start = VC_START_COLD; /* dry runs are recorded from the start */
	int rc = one_order(s, plan, &one, &verdict, err);
	for (size_t i = 0; i < VC_VA_ORDERS && rc >= 0; i++) {
		plan->va = vc_va_order[i].va;
		plan->va_order = vc_va_order[i].order;
		rc = one_order(s, plan, &one, &drawn, err);
	}
	free(plan);
	VC_TRY(rc);
	if (one.least_reserved > to->least_reserved)
		to->least_reserved = one.least_reserved;
	if (one.most_reserved > to->most_reserved)
		to->most_reserved = one.most_reserved;
	if (verdict > to->other)
		to->other = verdict;
	return 0;
}

/* ---- other workspaces ---- */

/* By how much the workspace of a convolution on an H100 was larger than that of the plan which the
 * same cuDNN names first without a card: 3,347 different ones of 33 programs of real size
 * (docs/measurements/gpu.md), MiB by share of them. Half are the same; the card parts sums into
 * tiles for its multiprocessors, which take 16.25 MiB at most. */
static const struct {
	double share, mib;
} further[] = {
	{ 0, -5 },   { .05, -.6 }, { .1, 0 },    { .55, 0 },     { .75, 1.7 },  { .8, 3.9 },
	{ .9, 6.8 }, { .95, 8 },   { .98, 11.3 }, { .99, 14.5 }, { 1, 16.25 },
};
enum { DRAWS = 16 };

/* The same for one size of a draw. Steele, Lea and Flood's splitmix64. */
static uint64_t drawn_size(uint64_t size, uint64_t draw)
{
	uint64_t x = size + (draw + 1) * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	double u = (double)((x ^ x >> 31) >> 11) / (double)(1ull << 53);
	size_t i = 1;
	while (u > further[i].share)
		i++;
	double from = further[i - 1].mib, part = (u - further[i - 1].share) /
		(further[i].share - further[i - 1].share);
	double more = (from + part * (further[i].mib - from)) * (1 << 20);
	return more < -(double)size / 2 ? size / 2 : (uint64_t)((double)size + more);
}

static bool is_workspace(const struct vc_dryrun_outcome *o, uint64_t size)
{
	size_t i = 0;
	while (i < o->workspaces && o->workspace[i] != size)
		i++;
	return i < o->workspaces;
}

/* Of a block that is given back before another is asked for. */
static void draw_workspaces(struct vc_trace *t, const struct vc_dryrun_outcome *o, uint64_t draw)
{
	struct vc_event *last = NULL;
	for (struct vc_event *e = t->ev; e < t->ev + t->n; e++) {
		if (e->kind == VC_EV_FREE && last && last->id == e->id &&
		    is_workspace(o, last->size))
			last->size = drawn_size(last->size, draw);
		if (e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE)
			last = e->kind == VC_EV_ALLOC ? e : NULL;
	}
}

static int one_draw(const struct vc_session *s, const struct vc_dryrun *run, uint64_t draw,
		    const struct vc_plan *plan, struct vc_dryrun_replay *to, struct vc_error *err)
{
	struct vc_trace t = { .meta = s->rec->trace.meta };
	struct vc_job job = { .rec = s->rec, .events = &t };
	struct vc_result r;
	int rc = vc_trace_append(&t, s->rec->trace.ev, s->rec->trace.n, err);
	if (!rc) {
		draw_workspaces(&t, &run->o, draw);
		rc = vc_job_run(&job, plan, NULL, &r, err);
	}
	free(t.ev);
	VC_TRY(rc);
	vc_lower(&to->least_drawn, r.stats.peak_reserved);
	vc_raise(&to->most_drawn, r.stats.peak_reserved);
	vc_lower(&to->least_allocated, r.stats.peak_allocated);
	vc_raise(&to->most_allocated, r.stats.peak_allocated);
	vc_result_fini(&r);
	return 0;
}

static int other_workspaces(struct vc_session *s, const struct vc_dryrun *run,
			    struct vc_dryrun_replay *to, struct vc_error *err)
{
	struct vc_dryrun_replay one = { .least_drawn = to->reserved, .most_drawn = to->reserved,
		.least_allocated = to->allocated, .most_allocated = to->allocated };
	struct vc_plan *planned, plan;
	size_t n;
	VC_TRY(vc_session_plans(s, &planned, &n, err));
	plan = vc_plan_unlimited(planned);
	plan.va = run->up ? VC_VA_UP : VC_VA_CONTEXT;
	plan.start = VC_START_COLD;
	int rc = 0;
	for (uint64_t draw = 0; draw < DRAWS && rc >= 0; draw++)
		rc = one_draw(s, run, draw, &plan, &one, err);
	free(planned);
	if (rc >= 0 && one.most_drawn > to->most_drawn) { /* of several ranks the largest */
		to->least_drawn = one.least_drawn;
		to->most_drawn = one.most_drawn;
		to->least_allocated = one.least_allocated;
		to->most_allocated = one.most_allocated;
	}
	return rc < 0 ? rc : 0;
}

static void replay_one(struct vc_dryrun *run, char *path, bool other)
{
	struct vc_dryrun_replay *to = &run->o.replay;
	struct vc_run_options opt = vc_run_options_none();
	struct vc_session s;
	struct vc_error ignored = { 0 };
	opt.capacity = run->total;
	opt.context = run->context + run->beside;
	opt.verify = true;
	int rc = vc_session_open(&s, &opt, 1, &path, 0, &ignored);
	if (!rc && s.rec->fidelity.exact && !s.rec->device->has_start)
		rc = follow(&s, to, &ignored);
	else
		rc = -1;
	if (!rc)
		to->fraction = least_fraction(&s, to->fraction);
	if (!rc && !to->step_ns && vc_time_open(&s, &ignored) == VC_OK)
		read_time(vc_time_profile(&s), to);
	if (!rc && other)
		rc = other_ways(&s, run, to, &ignored);
	if (!rc && run->o.workspaces)
		rc = other_workspaces(&s, run, to, &ignored);
	vc_session_close(&s);
	if (rc)
		to->others++;
	else
		to->traces++;
}

static bool is_of_this_run(const char *path, const struct vc_dryrun *run)
{
	struct stat st;
	return stat(path, &st) == 0 && st.st_mtime >= run->started;
}

void vc_dryrun_replay(struct vc_dryrun *run, bool other)
{
	const char *dot = run->out ? strrchr(run->out, '.') : NULL;
	char *pattern;
	glob_t ranks;
	if (!run->out)
		return;
	if (is_of_this_run(run->out, run))
		replay_one(run, run->out, other);
	if (!dot || strchr(dot, '/'))
		dot = run->out + strlen(run->out);
	if (asprintf(&pattern, "%.*s.rank*%s", (int)(dot - run->out), run->out, dot) < 0)
		return;
	if (glob(pattern, 0, NULL, &ranks) == 0) {
		for (size_t i = 0; i < ranks.gl_pathc; i++)
			if (is_of_this_run(ranks.gl_pathv[i], run))
				replay_one(run, ranks.gl_pathv[i], other);
		globfree(&ranks);
	}
	free(pattern);
}
