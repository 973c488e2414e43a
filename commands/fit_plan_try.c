/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan_try.c - fit --find plan: one layout, in dry runs.
 *
 * Where the command line takes how many samples a step has, few micro-batches are played: what the
 * step repeats then is done as often as all of them take, in a replay of the kernels and in one of
 * the allocator. Where nothing repeats, or the allocator would come near to its limit, more are
 * played, at last all. */
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/fit_plan.h"
#include "commands/own_program.h"
#include "commands/trial.h"
#include "common/value.h"
#include "simulator/replay/cards.h"
#include "simulator/search/longer.h"

enum { ROLES = 64 };

/* The report; the role that needs most stays in *w. */
static int read_report(const char *path, struct vc_way *w, struct vc_error *err)
{
	struct vc_value *report = vc_value_load(path, err);
	const struct vc_value *runs = vc_value_get(report, "runs");

	for (const struct vc_value *v = runs ? runs->first : NULL; v; v = v->next) {
		const char *verdict = vc_value_text(v, "verdict");
		const char *how = vc_value_text(vc_value_get(v, "ended"), "how");
		int is = verdict ? vc_verdict_by_name(verdict) : VC_OOM;
		uint64_t used = 0, rank = 0;

		vc_value_count(vc_value_get(v, "peak_used"), &used);
		vc_value_count(vc_value_get(v, "rank"), &rank);
		w->early |= how && !strcmp(how, "before_memory");
		if (is > (int)w->verdict)
			w->verdict = (enum vc_verdict)is;
		if (!w->roles++ || used > w->used) {
			w->used = used;
			w->rank = rank;
			vc_value_count(vc_value_get(v, "margin"), &w->margin);
		}
	}
	vc_value_free(report);
	return report ? VC_OK : (int)err->status;
}

/* What the recorded role says of all micro-batches, of which w->played were played. */
static int lengthen(struct vc_session *s, struct vc_way *w, struct vc_error *err)
{
	struct vc_longer longer;
	uint64_t stages = w->l.at[VC_PP];
	bool timed;

	VC_TRY(vc_time_lengthen(s, w->played, w->micro, stages, &timed, err));
	VC_TRY(vc_longer_find(s, w->played, w->micro, stages, &longer, err));
	w->whole = w->whole && timed && longer.known;
	w->more = longer.more > w->more ? longer.more : w->more;
	return VC_OK;
}

static int read_role(const struct vc_ways *f, struct vc_session *s, struct vc_way *w,
		     struct vc_error *err)
{
	VC_TRY(vc_time_open(s, err));
	if (w->played < w->micro && w->verdict != VC_OOM)
		VC_TRY(lengthen(s, w, err));
	if (vc_time_profile(s))
		w->flops += vc_time_profile(s)->shares.flops;
	return VC_OK;
}

/* The recordings of the roles; time stays 0 where one of them does not tell it. */
static int read_times(const struct vc_ways *f, const char *folder, struct vc_way *w,
		      struct vc_error *err)
{
	struct vc_run_options o = vc_run_options_none();
	struct vc_session *s = calloc(ROLES, sizeof(*s)), *each[ROLES];
	char pattern[260];
	glob_t at = { 0 };
	size_t n = 0;
	int r = s ? VC_OK : vc_nomem(err, "the roles of a layout");

	o.speed = f->ask->run->speed;
	snprintf(pattern, sizeof(pattern), "%s/plan*.vct", folder);
	if (r == VC_OK && glob(pattern, 0, NULL, &at) != 0)
		at.gl_pathc = 0;
	w->whole = w->played == w->micro || at.gl_pathc > 0;
	for (; r == VC_OK && n < at.gl_pathc && n < ROLES; n++) {
		each[n] = &s[n];
		r = vc_session_open_one(&s[n], &o, at.gl_pathv[n], 0, err);
		if (r == VC_OK)
			r = read_role(f, &s[n], w, err);
	}
	if (r == VC_OK && n && w->whole)
		r = vc_time_ranks(each, n, &w->time, err);
	if (r == VC_OK && w->time.step_ns)
		r = vc_time_within(each, n, (uint64_t[VC_SHARED]){ w->l.at[VC_TP], w->l.at[VC_CP],
				   w->l.at[VC_EP] }, w->within, err);
	if (n)
		w->flops *= (double)f->ask->world / (double)n;
	for (size_t i = 0; i < n; i++)
		vc_session_close(&s[i]);
	globfree(&at);
	free(s);
	w->whole = w->whole && r == VC_OK;
	return r == VC_ENOMEM || (r < 0 && f->ask->run->speed) ? r : VC_OK;
}

/* In place of the old text, which it frees. */
static char *put(char *text, const char *name, const char *value)
{
	char *with = text ? vc_program_put(text, name, value) : NULL;

	free(text);
	return with;
}

/* The arguments with the values of --vary in them. NULL: no memory. */
static char **fill(const struct vc_ways *f, const struct vc_way *w)
{
	char **line = calloc(f->argc + 1, sizeof(*line)), micro[24], batch[24];

	snprintf(micro, sizeof(micro), "%llu", (unsigned long long)w->played);
	snprintf(batch, sizeof(batch), "%llu",
		 (unsigned long long)(w->micro ? f->ask->batch / w->micro * w->played : 0));
	for (size_t i = 0; line && i < f->argc; i++) {
		line[i] = strdup(f->argv[i]);
		for (size_t k = 0; k < f->vary.keys; k++)
			line[i] = put(line[i], f->vary.key[k].name,
				      vc_vary_value(&f->vary, w->l.with, k));
		if (w->micro) {
			line[i] = put(line[i], VC_WAYS_MICRO, micro);
			line[i] = put(line[i], VC_WAYS_BATCH, batch);
		}
		if (!line[i]) {
			vc_own_free(line);
			return NULL;
		}
	}
	return line;
}

static int execute(const struct vc_ways *f, const char *folder, struct vc_way *w,
		   const char *report, struct vc_error *err)
{
	char world[24], capacity[24], log[240], file[260];
	const char *more[] = { "--world", world, "--stacks", "off", "--report", report,
			       w->l.at[VC_PP] > 1 ? "--roles" : NULL, "--stages", "--until-oom",
			       NULL };
	struct vc_param_value at[VC_LAYOUT_NAMES];
	char **line = fill(f, w);
	int r;

	VC_HAVE(line, "the arguments of a layout", err);
	snprintf(world, sizeof(world), "%llu", (unsigned long long)f->ask->world);
	snprintf(capacity, sizeof(capacity), "%llu", (unsigned long long)f->capacity);
	snprintf(log, sizeof(log), "%s/log", f->folder);
	snprintf(file, sizeof(file), "%s/plan.vct", folder);
	for (int i = 0; i < VC_LAYOUT_NAMES; i++)
		at[i] = (struct vc_param_value){ (char *)(uintptr_t)vc_layout_names[i],
						 (double)w->l.at[i] };
	r = vc_trial_run(&(struct vc_trial){ .verb = "dryrun", .gpu = f->card->name,
			    .capacity = f->capacity != f->card->total ? capacity : NULL,
			    .steps = f->ask->steps, .more = more, .at = at, .n = VC_LAYOUT_NAMES,
			    .argv = line, .argc = f->argc, .log = log }, file, &w->code, err);
	vc_own_free(line);
	return r;
}

/* So many micro-batches of it. */
static int try_some(const struct vc_ways *f, const char *folder, struct vc_way *w,
		    struct vc_error *err)
{
	char report[260];

	snprintf(report, sizeof(report), "%s/report", folder);
	VC_TRY(execute(f, folder, w, report, err));
	w->end = access(report, R_OK) == 0 ? VC_WAY_RAN : VC_WAY_FAILED;
	if (w->end == VC_WAY_RAN)
		VC_TRY(read_report(report, w, err));
	VC_TRY(read_times(f, folder, w, err));
	if (w->verdict == VC_OOM) { /* not played to its end, nor by all ranks */
		w->time = (struct vc_timing){ .step_ns = 0 };
		w->within[0] = w->within[1] = 0;
	}
	/* an error of its own says nothing about memory */
	if (w->code && w->verdict == VC_FITS)
		w->end = VC_WAY_FAILED;
	w->used += w->more;
	w->left = f->capacity > w->used ? f->capacity - w->used : 0;
	if (w->more && w->verdict == VC_FITS && w->left < w->margin)
		w->verdict = VC_UNDECIDED; /* as a dry run has it */
	return VC_OK;
}

/* What all micro-batches take is known from those that were played. */
static bool is_settled(const struct vc_way *w)
{
	return w->end == VC_WAY_RAN && (w->verdict == VC_OOM || (w->whole && w->left));
}

/* With fewer, a stage of a pipeline does not come to do the same twice. */
enum { FEW = 4, FEW_BY_STAGE = 3 };

int vc_way_try(const struct vc_ways *f, const char *folder, struct vc_way *w, struct vc_error *err)
{
	const struct vc_way fresh = *w;
	uint64_t stages = w->l.at[VC_PP], few = stages > 1 ? FEW_BY_STAGE * stages : FEW;
	int r = VC_OK;

	for (bool done = false; r == VC_OK && !done; few *= 2) {
		*w = fresh;
		w->played = 3 * few <= 2 * w->micro ? few : w->micro;
		if (mkdir(folder, 0700) < 0)
			return vc_fail(err, VC_EIO, "cannot make %s", folder);
		r = try_some(f, folder, w, err);
		vc_trial_remove(folder);
		done = w->played == w->micro || is_settled(w);
		if (w->end == VC_WAY_FAILED)
			few = w->micro; /* it may be that it does not run with so few */
	}
	return r;
}
