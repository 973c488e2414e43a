/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan.c - fit --find plan: over how many cards to spread a model, and how. Each way to divide
 * the cards of --world among the names that stand in the program's arguments, with each of the
 * values of --vary, is a dry run of one rank, and of every role where the stages of a pipeline
 * differ. Their kernels are played against each other; among what fits, the least time for the same
 * work comes first. */
#include <unistd.h>

#include "commands/fit_plan.h"
#include "commands/stop.h"
#include "commands/trial.h"
#include "common/vec.h"
#include "common/workers.h"
#include "simulator/replay/cards.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6 };
enum { MACHINE = 8, MOST_PLANS = 4096, JOBS = 8 };

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

/* Micro-batches of a step on each card; 0: not told, or not the same number on all. */
static uint64_t micro_batches(const struct vc_ways *f, const struct vc_way *w)
{
	size_t key;
	double each = fmax(1, vc_ways_samples(f, w, &key)) * (double)w->l.at[VC_DP];
	double n = f->by_batch ? (double)f->ask->batch / each : 0;

	return n >= 1 && n == floor(n) ? (uint64_t)n : 0;
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
			w.micro = micro_batches(f, &w);
			if (f->by_batch && !w.micro) {
				f->uneven++;
				continue;
			}
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
	if (!f->n)
		return vc_fail(err, VC_EUSAGE, "--global-batch %llu is no multiple of what any "
			       "layout takes at a time", (unsigned long long)f->ask->batch);
	vc_sort(f->way, f->n, sizeof(*f->way), by_share);
	return VC_OK;
}

/* ---- the trials ---- */

/* Layouts that may be tried. */
static size_t most_of(const struct vc_ways *f)
{
	return !f->ask->counted || f->n < f->ask->trials ? f->n : (size_t)f->ask->trials;
}

/* The next one to try, or NULL: none until another has ended (*wait), or at all. */
static struct vc_way *choose(struct vc_ways *f, bool *wait)
{
	struct vc_way *best = NULL;
	double most = 0, n;

	*wait = false;
	vc_ways_mark(f);
	for (size_t i = 0; i < f->n && !f->stopped && f->tried < most_of(f); i++) {
		struct vc_way *w = &f->way[i];

		if (!w->open)
			continue;
		*wait = true;
		if (!vc_ways_hold(f, w) && (n = vc_ways_save(f, w)) > most) {
			most = n;
			best = w;
		}
	}
	return best;
}

/* What came of it, for whoever waits. */
static void tell_trial(struct vc_ways *f, const struct vc_way *w)
{
	char text[200], used[32], time[32];

	if (f->quiet || w->end == VC_WAY_UNTRIED)
		return;
	vc_progress_hush(f->progress);
	fprintf(stderr, "vramcast: %s: %s%s%s%s%s\n", vc_ways_name(f, w, text), vc_ways_word(w),
		w->end == VC_WAY_RAN ? ", " : "",
		w->end == VC_WAY_RAN ? vc_bytes_text(w->used, used) : "",
		w->time.step_ns ? ", a step takes " : "",
		w->time.step_ns ? vc_ns_text(w->time.step_ns, time) : "");
}

/* One layout, which nobody else looks at meanwhile but for what begun says. */
static int try_one(struct vc_ways *f, struct vc_way *w, struct vc_error *err)
{
	char text[200], folder[240];
	struct vc_way own = *w;
	size_t i = (size_t)(w - f->way);
	int r;

	f->tried++;
	w->begun = true;
	vc_progress_say(f->progress, "layout %zu of %zu: %s", f->tried, f->n,
			vc_ways_name(f, w, text));
	snprintf(folder, sizeof(folder), "%s/%zu", f->folder, i);
	pthread_mutex_unlock(&f->lock);
	r = vc_way_try(f, folder, &own, err);
	pthread_mutex_lock(&f->lock);
	own.begun = true;
	*w = own;
	f->stopped |= r < 0;
	if (r == VC_OK)
		tell_trial(f, w);
	pthread_cond_broadcast(&f->ended);
	return r;
}

/* One of several that take the next layout each time, until none is left. */
static int try_some(void *arg, size_t k, struct vc_error *err)
{
	struct vc_ways *f = arg;
	struct vc_way *w;
	bool wait = true;
	int r = VC_OK;

	(void)k;
	pthread_mutex_lock(&f->lock);
	while (r == VC_OK && ((w = choose(f, &wait)) || wait))
		if (w)
			r = try_one(f, w, err);
		else
			pthread_cond_wait(&f->ended, &f->lock);
	pthread_mutex_unlock(&f->lock);
	return r;
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

static int try_rounds(struct vc_ways *f, struct vc_error *err)
{
	size_t jobs = f->ask->jobs ? f->ask->jobs : vc_workers_most(JOBS);
	struct vc_work work = { .arg = f, .job = try_some, .n = jobs, .threads = jobs };
	int r = vc_workers_run(&work, err);

	vc_ways_count(f);
	return r;
}

static int try_all(struct vc_ways *f, struct vc_error *err)
{
	char log[240];
	int r = vc_trial_folder(f->folder, err);

	if (r == VC_OK)
		r = try_rounds(f, err);
	if (!gather(f) && r == VC_OK) {
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

/* --global-batch and its names in the command line stand together. */
static int check_batch(struct vc_ways *f, size_t argc, char **argv, struct vc_error *err)
{
	bool given = f->ask->batch != VC_NOT_GIVEN;

	f->by_batch = stands_in(VC_WAYS_BATCH, argc, argv) || stands_in(VC_WAYS_MICRO, argc, argv);
	if (f->by_batch && (!given || !f->ask->batch))
		return vc_fail(err, VC_EUSAGE, "how many samples has a step? --global-batch N, "
			       "from 1");
	if (given && !f->by_batch)
		return vc_fail(err, VC_EUSAGE, "--global-batch: neither {" VC_WAYS_BATCH "} nor {"
			       VC_WAYS_MICRO "} stands in the command line");
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
	VC_TRY(check_batch(f, argc, argv, err));
	VC_TRY(vc_ways_cost_check(f, argc, argv, err));
	f->capacity = run->capacity != VC_NOT_GIVEN ? run->capacity : f->card->total;
	return VC_OK;
}

static int find_plan(const struct vc_fit_ask *ask, size_t argc, char **argv,
		     struct vc_console *con)
{
	struct vc_ways f = { .ask = ask, .quiet = con->quiet, .argc = argc, .argv = argv,
			  .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
	int r = check(&f, argc, argv, &con->err);

	if (r == VC_OK)
		r = list_ways(&f, &con->err);
	f.progress = vc_progress_open(con);
	vc_stop_guard(NULL);
	if (r == VC_OK)
		r = try_all(&f, &con->err);
	vc_progress_close(f.progress);
	if (r == VC_OK || (r == VC_ESTOPPED && f.tried)) {
		vc_sort(f.way, f.tried, sizeof(*f.way), by_need);
		int said = vc_ways_say(&f, &con->err);
		r = said < 0 ? said : r;
	}
	r = r == VC_OK ? code_of(&f) : r;
	vc_vary_fini(&f.vary);
	free(f.way);
	return r;
}

const struct vc_fit_find vc_fit_plan = { .name = "plan", .run = find_plan };
