/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan.c - fit --find plan: over how many cards to spread a model, and how. Each way to divide
 * the cards of --world among the names that stand in the program's arguments, with each of the
 * values of --vary, is a dry run of one rank, and of every role where the stages of a pipeline
 * differ. Their kernels are played against each other; among what fits, the least time for the same
 * work comes first. */
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/fit_find.h"
#include "commands/own_program.h"
#include "commands/trial.h"
#include "common/emit.h"
#include "common/value.h"
#include "common/vec.h"
#include "common/param.h"
#include "common/workers.h"
#include "simulator/replay/cards.h"
#include "simulator/search/vary.h"
#include "simulator/time/time.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6, INTERRUPTED = 130 };
enum { TP, CP, PP, EP, DP, NAMES, MACHINE = 8, MOST_PLANS = 4096, ROLES = 64, JOBS = 8 };
static const char *const names[NAMES] = { "tp", "cp", "pp", "ep", "dp" };

struct way {
	uint64_t at[NAMES];
	size_t with;          /* run of --vary */
	enum { UNTRIED, RAN, FAILED } end;
	int code;             /* of the dry run */
	enum vc_verdict verdict;
	uint64_t used, left, roles, rank, margin; /* of the role that needs most */
	struct vc_timing time;            /* step_ns 0: not known */
	double flops, pace;               /* of a step, of all cards; ns for equal work */
};

struct find {
	const struct vc_fit_ask *ask;
	const struct vc_card *card;
	uint64_t capacity;
	bool named[NAMES];    /* {name} stands in the arguments */
	struct vc_vary vary;
	bool quiet, stopped;  /* the latter by an interrupt */
	struct way *way; size_t n, tried;
	char folder[200];     /* one of its own in it for each layout */
	size_t argc; char **argv;
	struct vc_progress *progress;
	pthread_mutex_t lock; /* of stopped, tried and the progress */
};

/* ---- which there are ---- */

/* How many cards work on one sample. */
static uint64_t share_of(const struct way *w)
{
	return w->at[TP] * w->at[CP] * w->at[PP];
}

/* The fewest cards on one sample first: they have least to tell each other. */
VC_COMPARE(by_share, struct way,
	   VC_THEN(VC_ORDER(share_of(x), share_of(y)),
		   VC_THEN(VC_ORDER(x->at[PP], y->at[PP]),
			   VC_THEN(VC_ORDER(x->at[EP], y->at[EP]), VC_ORDER(x->with, y->with)))))

/* 1, and where that name is in the arguments every number up to `most` that divides `world`. */
static bool is_tried(const struct find *f, int name, uint64_t v, uint64_t world, uint64_t most)
{
	return v == 1 || (f->named[name] && v <= most && world % v == 0);
}

static int add(struct find *f, struct way w, struct vc_error *err)
{
	uint64_t world = f->ask->world, rest = world / w.at[PP];

	w.at[DP] = world / share_of(&w);
	for (w.at[EP] = 1; w.at[EP] <= (f->named[EP] ? rest : 1); w.at[EP]++) {
		if (!is_tried(f, EP, w.at[EP], rest, rest))
			continue;
		for (w.with = 0; w.with < (f->vary.keys ? f->vary.runs : 1); w.with++) {
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

static int list_ways(struct find *f, struct vc_error *err)
{
	uint64_t world = f->ask->world;
	struct way w = { .end = UNTRIED };

	for (w.at[TP] = 1; w.at[TP] <= MACHINE; w.at[TP]++) {
		if (!is_tried(f, TP, w.at[TP], world, MACHINE))
			continue;
		uint64_t beside = world / w.at[TP];
		for (w.at[CP] = 1; w.at[CP] <= beside; w.at[CP]++) {
			if (!is_tried(f, CP, w.at[CP], beside, beside))
				continue;
			uint64_t last = beside / w.at[CP];
			for (w.at[PP] = 1; w.at[PP] <= last; w.at[PP]++)
				if (is_tried(f, PP, w.at[PP], last, last))
					VC_TRY(add(f, w, err));
		}
	}
	vc_sort(f->way, f->n, sizeof(*f->way), by_share);
	return VC_OK;
}

/* ---- a dry run ---- */

/* The report; the role that needs most stays in *w. */
static int read_report(const char *path, struct way *w, struct vc_error *err)
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
static int read_times(const struct find *f, const char *folder, struct way *w,
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
	if (n)
		w->flops *= (double)f->ask->world / (double)n;
	for (size_t i = 0; i < n; i++)
		vc_session_close(&s[i]);
	globfree(&at);
	free(s);
	return r == VC_ENOMEM || (r < 0 && f->ask->run->speed) ? r : VC_OK;
}

/* The arguments with the values of --vary in them. NULL: no memory. */
static char **fill(const struct find *f, const struct way *w)
{
	char **line = calloc(f->argc + 1, sizeof(*line));

	for (size_t i = 0; line && i < f->argc; i++) {
		line[i] = strdup(f->argv[i]);
		for (size_t k = 0; k < f->vary.keys && line[i]; k++) {
			char *before = line[i];

			line[i] = vc_program_put(before, f->vary.key[k].name,
						 vc_vary_value(&f->vary, w->with, k));
			free(before);
		}
		if (!line[i]) {
			vc_own_free(line);
			return NULL;
		}
	}
	return line;
}

static int execute(const struct find *f, const char *folder, struct way *w, const char *report,
		   struct vc_error *err)
{
	char world[24], capacity[24], log[240], file[260];
	const char *more[] = { "--world", world, "--stacks", "off", "--report", report,
			       w->at[PP] > 1 ? "--roles" : NULL, NULL };
	struct vc_param_value at[NAMES];
	char **line = fill(f, w);
	int r;

	VC_HAVE(line, "the arguments of a layout", err);
	snprintf(world, sizeof(world), "%llu", (unsigned long long)f->ask->world);
	snprintf(capacity, sizeof(capacity), "%llu", (unsigned long long)f->capacity);
	snprintf(log, sizeof(log), "%s/log", f->folder);
	snprintf(file, sizeof(file), "%s/plan.vct", folder);
	for (int i = 0; i < NAMES; i++)
		at[i] = (struct vc_param_value){ (char *)(uintptr_t)names[i], (double)w->at[i] };
	r = vc_trial_run(&(struct vc_trial){ .verb = "dryrun", .gpu = f->card->name,
			    .capacity = f->capacity != f->card->total ? capacity : NULL,
			    .steps = f->ask->steps, .more = more, .at = at, .n = NAMES,
			    .argv = line, .argc = f->argc, .log = log }, file, &w->code, err);
	vc_own_free(line);
	return r;
}

static int try_in(const struct find *f, const char *folder, struct way *w, struct vc_error *err)
{
	char report[260];

	snprintf(report, sizeof(report), "%s/report", folder);
	VC_TRY(execute(f, folder, w, report, err));
	if (w->code == INTERRUPTED)
		return VC_OK;
	w->end = access(report, R_OK) == 0 ? RAN : FAILED;
	if (w->end == RAN)
		VC_TRY(read_report(report, w, err));
	VC_TRY(read_times(f, folder, w, err));
	/* an error of its own says nothing about memory */
	if (w->code && w->verdict == VC_FITS)
		w->end = FAILED;
	w->left = f->capacity > w->used ? f->capacity - w->used : 0;
	return VC_OK;
}

/* "tp=2 dp=4 micro=1" */
static const char *name_of(const struct find *f, const struct way *w, char buf[200])
{
	size_t n = 0;

	for (int i = 0; i < NAMES; i++)
		if (f->named[i] || i == DP)
			n += (size_t)snprintf(buf + n, 200 - n, "%s%s=%llu", n ? " " : "", names[i],
					      (unsigned long long)w->at[i]);
	for (size_t k = 0; k < f->vary.keys && n < 200; k++)
		n += (size_t)snprintf(buf + n, 200 - n, " %s=%s", f->vary.key[k].name,
				      vc_vary_value(&f->vary, w->with, k));
	return buf;
}

/* Layouts that may be tried. */
static size_t most_of(const struct find *f)
{
	return f->n < f->ask->trials ? f->n : (size_t)f->ask->trials;
}

static const char *words_of(const struct way *w)
{
	if (w->end == FAILED)
		return "did not run";
	return w->verdict == VC_FITS ? "fits" : w->verdict == VC_OOM ? "out of memory" :
		w->verdict == VC_FLUSHES ? "at the limit" : "too close to call";
}

/* One of them, on any thread; none any more after an interrupt. */
static int try_way(void *arg, size_t i, struct vc_error *err)
{
	struct find *f = arg;
	struct way *w = &f->way[i];
	char text[200], folder[240];
	bool stopped;
	int r;

	pthread_mutex_lock(&f->lock);
	stopped = f->stopped;
	vc_progress_say(f->progress, "layout %zu of %zu: %s", i + 1, most_of(f),
			name_of(f, w, text));
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
	struct find *f = arg;
	const struct way *w = &f->way[i];
	char text[200], used[32], time[32];

	(void)err;
	if (f->quiet || w->end == UNTRIED)
		return VC_OK;
	pthread_mutex_lock(&f->lock);
	vc_progress_hush(f->progress);
	fprintf(stderr, "vramcast: %s: %s%s%s%s%s\n", name_of(f, w, text), words_of(w),
		w->end == RAN ? ", " : "", w->end == RAN ? vc_bytes_text(w->used, used) : "",
		w->time.step_ns ? ", a step takes " : "",
		w->time.step_ns ? vc_ns_text(w->time.step_ns, time) : "");
	pthread_mutex_unlock(&f->lock);
	return VC_OK;
}

/* Those that were tried come to the front; does a program run with any? */
static bool gather(struct find *f)
{
	bool any = false;

	for (size_t i = 0; i < f->n; i++) {
		struct way w = f->way[i];

		if (w.end == UNTRIED)
			continue;
		any = any || w.end == RAN;
		f->way[i] = f->way[f->tried];
		f->way[f->tried++] = w;
	}
	return any;
}

static int try_all(struct find *f, struct vc_error *err)
{
	struct vc_work work = { .n = most_of(f), .arg = f, .job = try_way, .done = tell_trial,
				.threads = f->ask->jobs ? f->ask->jobs : vc_workers_most(JOBS) };
	char log[240];
	int r = vc_trial_folder(f->folder, err);
	void (*before)(int) = signal(SIGINT, SIG_IGN); /* it ends the dry runs, and is told then */

	if (r == VC_OK)
		r = vc_workers_run(&work, err);
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

/* A layout that computes more than SAME of what the least does trains on more samples a step: its
 * time counts for as many. */
#define SAME 1.25

static void set_paces(struct find *f)
{
	double least = INFINITY;

	for (size_t i = 0; i < f->tried; i++)
		if (f->way[i].flops > 0)
			least = fmin(least, f->way[i].flops);
	for (size_t i = 0; i < f->tried; i++) {
		struct way *w = &f->way[i];
		double more = w->flops > SAME * least ? w->flops / least : 1;

		w->pace = w->time.step_ns ? (double)w->time.step_ns / more : INFINITY;
	}
}

static uint64_t two_digits(uint64_t ns)
{
	uint64_t unit = 1;

	while (ns / unit >= 100)
		unit *= 10;
	return (ns + unit / 2) / unit * unit;
}

VC_COMPARE(by_need, struct way,
	   VC_THEN(VC_ORDER(x->end != RAN, y->end != RAN),
		   VC_THEN(VC_ORDER(x->verdict, y->verdict),
			   VC_THEN(VC_ORDER(x->pace, y->pace),
				   VC_THEN(VC_ORDER(x->used, y->used), by_share(x, y))))))

/* The samples at a time of a layout, where --vary says them; 0: it does not. */
static double samples_of(const struct find *f, const struct way *w, size_t *key)
{
	double x;

	for (*key = 0; *key < f->vary.keys; ++*key)
		if ((!strcmp(f->vary.key[*key].name, "micro") ||
		     !strcmp(f->vary.key[*key].name, "batch")) &&
		    vc_parse_real(vc_vary_value(&f->vary, w->with, *key), &x, NULL) == 0)
			return x;
	return 0;
}

static bool is_same_but(const struct find *f, const struct way *x, const struct way *y, size_t key)
{
	bool same = !memcmp(x->at, y->at, sizeof(x->at));

	for (size_t k = 0; k < f->vary.keys; k++)
		same &= k == key || !strcmp(vc_vary_value(&f->vary, x->with, k),
					    vc_vary_value(&f->vary, y->with, k));
	return same;
}

/* So many more samples at a time fit, by what the nearest number that ran needs less or more.
 * False: it is not known. */
static bool more_samples(const struct find *f, const struct way *w, uint64_t *more)
{
	const struct way *best = NULL;
	double own, other, nearest = INFINITY, each;
	size_t key;

	own = samples_of(f, w, &key);
	for (size_t i = 0; own && w->end == RAN && i < f->tried; i++) {
		const struct way *o = &f->way[i];

		other = samples_of(f, o, &key);
		if (o->end == RAN && o->rank == w->rank && other != own &&
		    is_same_but(f, w, o, key) && fabs(other - own) < nearest) {
			nearest = fabs(other - own);
			best = o;
		}
	}
	if (!best || w->verdict != VC_FITS)
		return false;
	each = ((double)w->used - (double)best->used) / (own - samples_of(f, best, &key));
	*more = w->left > w->margin ? (uint64_t)((double)(w->left - w->margin) / each) : 0;
	return each > 0;
}

static void say_with(struct vc_emit *e, const struct find *f, const struct way *w)
{
	if (!f->vary.keys)
		return;
	vc_emit_object(e, "with", NULL);
	for (size_t k = 0; k < f->vary.keys; k++)
		vc_emit_text(e, f->vary.key[k].name, NULL, vc_vary_value(&f->vary, w->with, k));
	vc_emit_end(e);
	for (size_t k = 0; k < f->vary.keys; k++)
		vc_emit_text(e, NULL, f->vary.key[k].name, vc_vary_value(&f->vary, w->with, k));
}

static void say_way(struct vc_emit *e, const struct find *f, const struct way *w)
{
	bool ran = w->end == RAN, timed = ran && w->time.step_ns, known;
	uint64_t more = 0;
	size_t key;

	vc_emit_object(e, NULL, NULL);
	for (int i = 0; i < NAMES; i++)
		vc_emit_uint(e, names[i], f->named[i] || i == DP ? names[i] : NULL, w->at[i]);
	say_with(e, f, w);
	vc_emit_uint(vc_emit_known(e, timed), "step_ns", NULL, w->time.step_ns);
	vc_emit_ns(vc_emit_known(e, timed), NULL, "a step", two_digits(w->time.step_ns));
	vc_emit_uint(vc_emit_known(e, timed), "step_low_ns", NULL, w->time.low_ns);
	vc_emit_uint(vc_emit_known(e, timed), "step_high_ns", NULL, w->time.high_ns);
	vc_emit_text(e, "time_why", NULL, timed || !*w->time.why ? NULL : w->time.why);
	vc_emit_uint(vc_emit_known(e, ran && w->flops > 0), "flops", NULL, (uint64_t)w->flops);
	vc_emit_bytes(vc_emit_known(e, ran), "peak_used", "peak", w->used);
	vc_emit_bytes(vc_emit_known(e, ran), "left", "left", w->left);
	known = more_samples(f, w, &more);
	vc_emit_uint(vc_emit_known(e, known), "more_samples",
		     samples_of(f, w, &key) ? "more samples" : NULL, more);
	vc_emit_uint(vc_emit_known(e, ran), "rank", "at rank", w->rank);
	vc_emit_uint(e, "roles", NULL, ran ? w->roles : 0);
	vc_emit_text(e, "verdict", NULL, ran ? vc_verdict_name(w->verdict) : NULL);
	vc_emit_text(e, NULL, "verdict", words_of(w));
	vc_emit_int(e, "exit_code", NULL, w->code);
	vc_emit_end(e);
}

/* Why the time of what fits is not known, each reason once. */
static void say_unknown(struct vc_emit *e, const struct find *f)
{
	for (size_t i = 0; i < f->tried; i++) {
		const struct way *w = &f->way[i];
		bool said = w->end != RAN || w->verdict == VC_OOM || w->time.step_ns ||
			!*w->time.why;
		char text[200];

		for (size_t k = 0; k < i && !said; k++)
			said = !f->way[k].time.step_ns && !strcmp(f->way[k].time.why, w->time.why);
		if (!said)
			vc_emit_line(e, "The time of %s is not known: %s.", name_of(f, w, text),
				     w->time.why);
	}
}

static int say(const struct find *f, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(f->ask->json, err);

	if (!e)
		return err->status;
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.fit-plan/1");
	vc_emit_text(e, "gpu", NULL, f->card->name);
	vc_emit_bytes(e, "capacity", NULL, f->capacity);
	vc_emit_uint(e, "world", NULL, f->ask->world);
	vc_emit_uint(e, "untried", NULL, f->n - f->tried);
	vc_emit_line(e, "%llu cards of %s; of those that fit the fastest first",
		     (unsigned long long)f->ask->world, f->card->title);
	vc_emit_array(e, "plans", "");
	for (size_t i = 0; i < f->tried; i++)
		say_way(e, f, &f->way[i]);
	vc_emit_end(e);
	say_unknown(e, f);
	if (f->n > f->tried && !f->stopped)
		vc_emit_line(e, "%zu layouts with more cards on one sample were not tried "
			     "(--trials)", f->n - f->tried);
	if (f->stopped)
		vc_emit_line(e, "Interrupted: that is what had been tried.");
	if (f->vary.keys)
		vc_emit_line(e, "More samples: as far as each needs what the nearest number that "
			     "ran did; --vary tries it.");
	vc_emit_line(e, "Times are computed from what kernels do: rough. Layouts that train on "
		     "more samples a step rank by the time for as many.");
	vc_emit_end(e);
	return vc_emit_done(e, err);
}

static int code_of(const struct find *f)
{
	enum vc_verdict best = f->way[0].verdict;

	if (f->stopped)
		return INTERRUPTED;
	if (f->way[0].end != RAN)
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

static int check_vary(struct find *f, size_t argc, char **argv, struct vc_error *err)
{
	for (size_t i = 0; i < f->ask->vary->n; i++)
		VC_TRY(vc_vary_split(&f->vary, f->ask->vary->at[i], "vary", true, err));
	for (size_t i = 0; i < f->vary.keys; i++)
		if (!stands_in(f->vary.key[i].name, argc, argv))
			return vc_fail(err, VC_EUSAGE, "--vary %s: {%s} stands nowhere in the "
				       "command line", f->vary.key[i].name, f->vary.key[i].name);
	return VC_OK;
}

static int check(struct find *f, size_t argc, char **argv, struct vc_error *err)
{
	const struct vc_run_options *run = f->ask->run;
	bool any = false;

	for (int i = 0; i < NAMES; i++) {
		f->named[i] = stands_in(names[i], argc, argv);
		any = any || (f->named[i] && i != DP);
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
	struct find f = { .ask = ask, .quiet = con->quiet, .argc = argc, .argv = argv,
			  .lock = PTHREAD_MUTEX_INITIALIZER };
	int r = check(&f, argc, argv, &con->err);

	if (r == VC_OK)
		r = list_ways(&f, &con->err);
	f.progress = vc_progress_open(con);
	if (r == VC_OK)
		r = try_all(&f, &con->err);
	vc_progress_close(f.progress);
	if (r == VC_OK) {
		set_paces(&f);
		vc_sort(f.way, f.tried, sizeof(*f.way), by_need);
		r = say(&f, &con->err);
	}
	r = r == VC_OK ? code_of(&f) : r;
	vc_vary_fini(&f.vary);
	free(f.way);
	return r;
}

const struct vc_fit_find vc_fit_plan = { .name = "plan", .run = find_plan };
