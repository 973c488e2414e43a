/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan.c - fit --find plan: over how many cards to spread a model, and how. Each way to divide
 * the cards of --world among the names that stand in the program's arguments, with each of the
 * values of --vary, is a dry run of one rank, and of every role where the stages of a pipeline
 * differ. Their kernels are played against each other; among what fits, the least time for the same
 * work comes first. */
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/fit_plan.h"
#include "commands/own_program.h"
#include "commands/trial.h"
#include "common/value.h"
#include "common/vec.h"
#include "common/param.h"
#include "common/workers.h"
#include "simulator/replay/cards.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6, INTERRUPTED = 130 };
enum { MACHINE = 8, MOST_PLANS = 4096, ROLES = 64, JOBS = 8 };

/* ---- which there are ---- */

static uint64_t share_of(const struct vc_way *w)
{
	return vc_layout_share(&w->l);
}

/* The fewest cards on one sample first: they have least to tell each other. */
VC_COMPARE(by_share, struct vc_way,
	   VC_THEN(VC_ORDER(share_of(x), share_of(y)),
		   VC_THEN(VC_ORDER(x->l.at[VC_PP], y->l.at[VC_PP]),
			   VC_THEN(VC_ORDER(x->l.at[VC_EP], y->l.at[VC_EP]),
				   VC_ORDER(x->l.with, y->l.with)))))

/* 1, and where that name is in the arguments every number up to `most` that divides `world`. */
static bool is_tried(const struct vc_ways *f, int name, uint64_t v, uint64_t world, uint64_t most)
{
	return v == 1 || (f->named[name] && v <= most && world % v == 0);
}

static int add(struct vc_ways *f, struct vc_way w, struct vc_error *err)
{
	uint64_t world = f->ask->world, rest = world / w.l.at[VC_PP];

	w.l.at[VC_DP] = world / share_of(&w);
	for (w.l.at[VC_EP] = 1; w.l.at[VC_EP] <= (f->named[VC_EP] ? rest : 1); w.l.at[VC_EP]++) {
		if (!is_tried(f, VC_EP, w.l.at[VC_EP], rest, rest))
			continue;
		for (w.l.with = 0; w.l.with < (f->vary.keys ? f->vary.runs : 1); w.l.with++) {
			if (f->n == MOST_PLANS)
				return vc_fail(err, VC_EUSAGE,
					       "more than %d layouts for %llu cards", MOST_PLANS,
					       (unsigned long long)world);
			VC_HAVE(vc_vec_one(f->way, f->n), "the layouts", err);
			f->way[f->n++] = w;
		}
	}
	return VC_OK;
}

static int list_ways(struct vc_ways *f, struct vc_error *err)
{
	uint64_t world = f->ask->world;
	struct vc_way w = { .end = VC_WAY_UNTRIED };

	for (w.l.at[VC_TP] = 1; w.l.at[VC_TP] <= MACHINE; w.l.at[VC_TP]++) {
		if (!is_tried(f, VC_TP, w.l.at[VC_TP], world, MACHINE))
			continue;
		uint64_t beside = world / w.l.at[VC_TP];
		for (w.l.at[VC_CP] = 1; w.l.at[VC_CP] <= beside; w.l.at[VC_CP]++) {
			if (!is_tried(f, VC_CP, w.l.at[VC_CP], beside, beside))
				continue;
			uint64_t last = beside / w.l.at[VC_CP];
			for (w.l.at[VC_PP] = 1; w.l.at[VC_PP] <= last; w.l.at[VC_PP]++)
				if (is_tried(f, VC_PP, w.l.at[VC_PP], last, last))
					VC_TRY(add(f, w, err));
		}
	}
	vc_sort(f->way, f->n, sizeof(*f->way), by_share);
	return VC_OK;
}

/* ---- a dry run ---- */

/* The report; the role that needs most stays in *w. */
static int read_report(const char *path, struct vc_way *w, struct vc_error *err)
{
	struct vc_value *report = vc_value_load(path, err);
	const struct vc_value *runs = vc_value_get(report, "runs");

	for (const struct vc_value *v = runs ? runs->first : NULL; v; v = v->next) {
		const char *verdict = vc_value_text(v, "verdict");
		int is = verdict ? vc_verdict_by_name(verdict) : VC_OOM;
		uint64_t used = 0, rank = 0;

		vc_value_count(vc_value_get(v, "peak_used"), &used);
		vc_value_count(vc_value_get(v, "rank"), &rank);
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
	for (; r == VC_OK && n < at.gl_pathc && n < ROLES; n++) {
		each[n] = &s[n];
		r = vc_session_open_one(&s[n], &o, at.gl_pathv[n], 0, err);
		if (r == VC_OK)
			r = vc_time_open(&s[n], err);
		if (r == VC_OK && vc_time_profile(&s[n]))
			w->flops += vc_time_profile(&s[n])->shares.flops;
	}
	if (r == VC_OK && n)
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
	return r == VC_ENOMEM || (r < 0 && f->ask->run->speed) ? r : VC_OK;
}

/* The arguments with the values of --vary in them. NULL: no memory. */
static char **fill(const struct vc_ways *f, const struct vc_way *w)
{
	char **line = calloc(f->argc + 1, sizeof(*line));

	for (size_t i = 0; line && i < f->argc; i++) {
		line[i] = strdup(f->argv[i]);
		for (size_t k = 0; k < f->vary.keys && line[i]; k++) {
			char *before = line[i];

			line[i] = vc_program_put(before, f->vary.key[k].name,
						 vc_vary_value(&f->vary, w->l.with, k));
			free(before);
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
			       w->l.at[VC_PP] > 1 ? "--roles" : NULL, "--until-oom", NULL };
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

static int try_in(const struct vc_ways *f, const char *folder, struct vc_way *w,
		  struct vc_error *err)
{
	char report[260];

	snprintf(report, sizeof(report), "%s/report", folder);
	VC_TRY(execute(f, folder, w, report, err));
	if (w->code == INTERRUPTED)
		return VC_OK;
	w->end = access(report, R_OK) == 0 ? VC_WAY_RAN : VC_WAY_FAILED;
	if (w->end == VC_WAY_RAN)
		VC_TRY(read_report(report, w, err));
	VC_TRY(read_times(f, folder, w, err));
	/* an error of its own says nothing about memory */
	if (w->code && w->verdict == VC_FITS)
		w->end = VC_WAY_FAILED;
	w->left = f->capacity > w->used ? f->capacity - w->used : 0;
	return VC_OK;
}

/* Layouts that may be tried. */
static size_t most_of(const struct vc_ways *f)
{
	return !f->ask->counted || f->n < f->ask->trials ? f->n : (size_t)f->ask->trials;
}

/* ---- what is not worth a dry run ---- */

/* A layout that computes more than SAME of what the least does trains on more samples a step: its
 * time counts for as many. */
#define SAME 1.25

static void set_paces(struct vc_ways *f)
{
	double least = INFINITY;

	for (size_t i = 0; i < f->n; i++)
		if (f->way[i].flops > 0 && f->way[i].time.step_ns && f->way[i].verdict != VC_OOM)
			least = fmin(least, f->way[i].flops);
	for (size_t i = 0; i < f->n; i++) {
		struct vc_way *w = &f->way[i];
		double more = w->flops > SAME * least ? w->flops / least : 1;

		w->pace = w->time.step_ns ? (double)w->time.step_ns / more : INFINITY;
		/* what ran out was not played to its end, nor by all ranks */
		w->l.own = w->verdict != VC_OOM ? w->within[0] / more : 0;
		w->l.waits = w->within[0] > 0 ? fmax(0, w->within[1] / w->within[0] - 1) : 0;
	}
}

/* ns for equal work of the fastest that fits. *step: of one step of it, 1 for equal work. */
static double fastest(const struct vc_ways *f, double *step)
{
	double best = INFINITY;

	*step = 1;
	for (size_t i = 0; i < f->n; i++) {
		const struct vc_way *w = &f->way[i];

		if (w->end == VC_WAY_RAN && w->verdict == VC_FITS && w->pace < best) {
			best = w->pace;
			*step = (double)w->time.step_ns / best;
		}
	}
	return best;
}

/* Of the ways from `i` on those that spread a sample over as many cards: they say nothing about
 * each other. Queued are those that could be GAP faster than the fastest so far; where trials were
 * counted all. *end: behind them. */
#define GAP 1.05

static int queue(struct vc_ways *f, size_t i, size_t *end, struct vc_error *err)
{
	const struct vc_layout **played = calloc(f->n + 1, sizeof(*played));
	bool counted = f->ask->counted;
	uint64_t share = share_of(&f->way[i]);
	double best, step;
	size_t n = 0;

	VC_HAVE(played, "the layouts", err);
	set_paces(f);
	best = fastest(f, &step);
	for (size_t k = 0; k < i; k++)
		if (f->way[k].end == VC_WAY_RAN)
			played[n++] = &f->way[k].l;
	for (f->queued = 0; i < f->n && (counted || share_of(&f->way[i]) == share); i++) {
		double least = counted ? 0 : vc_layout_least(&f->way[i].l, played, n);

		if (GAP * least >= best)
			f->least = f->slower++ ? fmin(f->least, least * step) : least * step;
		else if (f->queued < most_of(f))
			f->next[f->queued++] = i;
	}
	*end = i;
	free(played);
	return VC_OK;
}

/* One of them, on any thread; none any more after an interrupt. */
static int try_way(void *arg, size_t k, struct vc_error *err)
{
	struct vc_ways *f = arg;
	size_t i = f->next[k];
	struct vc_way *w = &f->way[i];
	char text[200], folder[240];
	bool stopped;
	int r;

	pthread_mutex_lock(&f->lock);
	stopped = f->stopped;
	vc_progress_say(f->progress, "layout %zu of %zu: %s", i + 1, f->n,
			vc_ways_name(f, w, text));
	pthread_mutex_unlock(&f->lock);
	if (stopped)
		return VC_OK;
	snprintf(folder, sizeof(folder), "%s/%zu", f->folder, i);
	if (mkdir(folder, 0700) < 0)
		return vc_fail(err, VC_EIO, "cannot make %s", folder);
	r = try_in(f, folder, w, err);
	vc_trial_remove(folder);
	pthread_mutex_lock(&f->lock);
	f->stopped |= w->code == INTERRUPTED;
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* What came of it, for whoever waits. */
static int tell_trial(void *arg, size_t i, struct vc_error *err)
{
	struct vc_ways *f = arg;
	const struct vc_way *w = &f->way[f->next[i]];
	char text[200], used[32], time[32];

	(void)err;
	if (f->quiet || w->end == VC_WAY_UNTRIED)
		return VC_OK;
	pthread_mutex_lock(&f->lock);
	vc_progress_hush(f->progress);
	fprintf(stderr, "vramcast: %s: %s%s%s%s%s\n", vc_ways_name(f, w, text), vc_ways_word(w),
		w->end == VC_WAY_RAN ? ", " : "",
		w->end == VC_WAY_RAN ? vc_bytes_text(w->used, used) : "",
		w->time.step_ns ? ", a step takes " : "",
		w->time.step_ns ? vc_ns_text(w->time.step_ns, time) : "");
	pthread_mutex_unlock(&f->lock);
	return VC_OK;
}

/* Those that were tried come to the front; does a program run with any? */
static bool gather(struct vc_ways *f)
{
	bool any = false;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct vc_way w = f->way[i];

		if (w.end == VC_WAY_UNTRIED)
			continue;
		any = any || w.end == VC_WAY_RAN;
		f->way[i] = f->way[n];
		f->way[n++] = w;
	}
	f->tried = n;
	return any;
}

/* The fewest cards on a sample first: what these show saves others. */
static int try_rounds(struct vc_ways *f, struct vc_error *err)
{
	struct vc_work work = { .arg = f, .job = try_way, .done = tell_trial,
				.threads = f->ask->jobs ? f->ask->jobs : vc_workers_most(JOBS) };

	f->next = calloc(f->n + 1, sizeof(*f->next));
	VC_HAVE(f->next, "the layouts", err);
	for (size_t i = 0; i < f->n && !f->stopped;) {
		VC_TRY(queue(f, i, &i, err));
		work.n = f->queued;
		if (work.n)
			VC_TRY(vc_workers_run(&work, err));
		f->tried += f->queued;
	}
	set_paces(f);
	return VC_OK;
}

static int try_all(struct vc_ways *f, struct vc_error *err)
{
	char log[240];
	int r = vc_trial_folder(f->folder, err);
	void (*before)(int) = signal(SIGINT, SIG_IGN); /* it ends the dry runs, and is told then */

	if (r == VC_OK)
		r = try_rounds(f, err);
	signal(SIGINT, before);
	if (!gather(f) && r == VC_OK && !f->stopped) {
		snprintf(log, sizeof(log), "%s/log", f->folder);
		vc_trial_show(log, f->progress);
		r = vc_fail(err, VC_EIO, "the program ran with none of %zu layouts; above is what "
			    "it said in the last one", f->tried);
	}
	if (f->folder[0])
		vc_trial_remove(f->folder);
	return r;
}

/* ---- the answer ---- */

VC_COMPARE(by_need, struct vc_way,
	   VC_THEN(VC_ORDER(x->end != VC_WAY_RAN, y->end != VC_WAY_RAN),
		   VC_THEN(VC_ORDER(x->verdict, y->verdict),
			   VC_THEN(VC_ORDER(x->pace, y->pace),
				   VC_THEN(VC_ORDER(x->used, y->used), by_share(x, y))))))

static int code_of(const struct vc_ways *f)
{
	enum vc_verdict best = f->way[0].verdict;

	if (f->stopped)
		return INTERRUPTED;
	if (f->way[0].end != VC_WAY_RAN)
		return NEVER;
	return best == VC_FITS ? FITS : best == VC_OOM ? NEVER : UNDECIDED;
}

/* ---- the request ---- */

static bool stands_in(const char *name, size_t argc, char **argv)
{
	char mark[VC_VARY_NAME + 4];

	snprintf(mark, sizeof(mark), "{%s}", name);
	for (size_t i = 0; i < argc; i++)
		if (strstr(argv[i], mark))
			return true;
	return false;
}

static int check_vary(struct vc_ways *f, size_t argc, char **argv, struct vc_error *err)
{
	for (size_t i = 0; i < f->ask->vary->n; i++)
		VC_TRY(vc_vary_split(&f->vary, f->ask->vary->at[i], "vary", true, err));
	for (size_t i = 0; i < f->vary.keys; i++)
		if (!stands_in(f->vary.key[i].name, argc, argv))
			return vc_fail(err, VC_EUSAGE, "--vary %s: {%s} stands nowhere in the "
				       "command line", f->vary.key[i].name, f->vary.key[i].name);
	return VC_OK;
}

static int check(struct vc_ways *f, size_t argc, char **argv, struct vc_error *err)
{
	const struct vc_run_options *run = f->ask->run;
	bool any = false;

	for (int i = 0; i < VC_LAYOUT_NAMES; i++) {
		f->named[i] = stands_in(vc_layout_names[i], argc, argv);
		any = any || (f->named[i] && i != VC_DP);
	}
	if (!any)
		return vc_fail(err, VC_EUSAGE, "a layout is found for a program that is told it: "
			       "write {tp}, {cp}, {pp} or {ep} into its arguments (fit --find "
			       "plan --world 64 -g h100-80g-sxm -- python train.py --tp {tp})");
	if (f->ask->world < 2 || f->ask->world > 1 << 20)
		return vc_fail(err, VC_EUSAGE, "over how many cards? --world N, from 2 to %d",
			       1 << 20);
	if (!f->ask->trials)
		return vc_fail(err, VC_EUSAGE, "--trials starts at 1");
	if (run->gpu.n != 1)
		return vc_fail(err, VC_EUSAGE, "a dry run plays a card: say which one with -g");
	VC_TRY(vc_card_find(run->gpu.at[0], &f->card, err));
	VC_TRY(check_vary(f, argc, argv, err));
	f->capacity = run->capacity != VC_NOT_GIVEN ? run->capacity : f->card->total;
	return VC_OK;
}

static int find_plan(const struct vc_fit_ask *ask, size_t argc, char **argv,
		     struct vc_console *con)
{
	struct vc_ways f = { .ask = ask, .quiet = con->quiet, .argc = argc, .argv = argv,
			  .lock = PTHREAD_MUTEX_INITIALIZER };
	int r = check(&f, argc, argv, &con->err);

	if (r == VC_OK)
		r = list_ways(&f, &con->err);
	f.progress = vc_progress_open(con);
	if (r == VC_OK)
		r = try_all(&f, &con->err);
	vc_progress_close(f.progress);
	if (r == VC_OK) {
		vc_sort(f.way, f.tried, sizeof(*f.way), by_need);
		r = vc_ways_say(&f, &con->err);
	}
	r = r == VC_OK ? code_of(&f) : r;
	vc_vary_fini(&f.vary);
	VC_FREE(f.way, f.next);
	return r;
}

const struct vc_fit_find vc_fit_plan = { .name = "plan", .run = find_plan };
