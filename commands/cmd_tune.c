/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tune.c - vramcast tune: which allocator settings serve a recording best. */
#include <pthread.h>
#include <stdatomic.h>

#include "commands/progress.h"
#include "commands/run_and_write.h"
#include "common/vec.h"
#include "simulator/advise/report.h"
#include "common/workers.h"
#include "simulator/session/answer.h"

struct config {
	struct vc_run_options run;
	uint64_t threads, top;
	bool json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option tune_options[] = {
	{ 'j', "jobs", VC_O_JOBS, AT(threads), "N",
	  "threads (default: all cores); changes no output", NULL },
	{ 0, "top", VC_O_UINT, AT(top), "N", "how many of the best to show", "8" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};

#define CONF 256
enum { FINAL = 24 }; /* trials whose order counts what is open about them */
#define WORTH 0.005 /* of peak reserved memory: less than half a percent is not worth a setting */

struct trial {
	char conf[CONF];
	unsigned options;   /* how many settings it takes */
	enum vc_verdict verdict;
	enum vc_level level;
	struct vc_basis basis;
	bool has_interval; uint64_t low, high; /* of peak_reserved */
	bool decided;       /* its span is known */
	struct vc_stats stats;
	bool given_up;      /* worse than all that is shown, whatever came next */
};

struct tune {
	const struct config *cfg;
	struct vc_session session;
	struct vc_plan plan;       /* as it is now; trials differ in conf only */
	struct trial *trial;       /* [0]: as it is now, [1]: defaults */
	size_t n;
	pthread_mutex_t lock;      /* of peak */
	uint64_t *peak;            /* of the best that fit so far, ascending, at most `kept` */
	size_t peaks, kept;        /* kept: whose order counts what is open about them */
	struct vc_progress *progress;
	_Atomic uint64_t hopeless; /* a trial that reserves more is of no interest */
};

/* ---- what is tried ---- */

/* One setting with the values to try; the first of each is "leave it". Values are those that
 * guides and reports name; the fine structure between them is noise of one recording. */
struct dial { const char *name; unsigned since; const char *value[8]; };
static const struct dial dials[] = {
	{ "expandable_segments", 1, { "", "True" } },
	{ "max_split_size_mb", 0, { "", "32", "64", "128", "256", "512" } },
	{ "roundup_power2_divisions", 0, { "", "2", "4", "8", "16" } },
	{ "large_segment_size_mb", 11, { "", "12", "32", "64", "128" } },
	{ "garbage_collection_threshold", 0, { "", "0.6", "0.8" } },
};
#define DIALS (sizeof(dials) / sizeof(*dials))

static size_t values_of(const struct tune *t, size_t d, unsigned minor)
{
	size_t n = 0;

	if (minor < dials[d].since)
		return 1;
	/* Without a limit garbage collection never runs. */
	if (d == 4 && t->plan.fraction < 0)
		return 1;
	while (n < 8 && dials[d].value[n])
		n++;
	return n;
}

/* A large segment above the split limit is refused by the versions that know it. */
static bool is_contradiction(const size_t pick[DIALS])
{
	const char *split = dials[1].value[pick[1]], *segment = dials[3].value[pick[3]];

	return *split && *segment && strtoul(split, NULL, 10) < strtoul(segment, NULL, 10);
}

static void write_conf(struct trial *x, const size_t pick[DIALS])
{
	size_t n = 0;

	for (size_t d = 0; d < DIALS; d++) {
		if (!pick[d])
			continue;
		n += (size_t)snprintf(x->conf + n, CONF - n, "%s%s:%s", n ? "," : "", dials[d].name,
				      dials[d].value[pick[d]]);
		x->options++;
	}
}

static bool is_there(const struct tune *t, const char *conf)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->trial[i].conf, conf))
			return true;
	return false;
}

static int list_trials(struct tune *t, struct vc_error *err)
{
	const char *dot = strchr(t->plan.torch, '.');
	unsigned minor = dot ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
	size_t dim[DIALS], all = 1;

	for (size_t d = 0; d < DIALS; d++)
		all *= dim[d] = values_of(t, d, minor);
	t->trial = calloc(all + 1, sizeof(*t->trial));
	VC_HAVE(t->trial, "the trials", err);
	snprintf(t->trial[0].conf, CONF, "%s", t->plan.conf);
	t->trial[0].options = *t->plan.conf ? 1 : 0;
	t->n = 1;
	for (size_t i = 0; i < all; i++) {
		size_t pick[DIALS], rest = i;

		for (size_t d = DIALS; d-- > 0; rest /= dim[d])
			pick[d] = rest % dim[d];
		if (is_contradiction(pick))
			continue;
		t->trial[t->n] = (struct trial){ 0 };
		write_conf(&t->trial[t->n], pick);
		if (!is_there(t, t->trial[t->n].conf))
			t->n++;
	}
	return VC_OK;
}

/* ---- trying ---- */

/* Reserved memory only grows, and so many others fit with less: what comes next decides neither
 * which are shown nor which is recommended. */
static bool is_hopeless(void *arg, const struct vc_stats *so_far)
{
	struct tune *t = arg;

	return so_far->peak_reserved > atomic_load(&t->hopeless);
}

/* One that fits without a flush: none ranks before it that reserves more. */
static void note_good(struct tune *t, uint64_t peak)
{
	uint64_t near;
	size_t i;

	pthread_mutex_lock(&t->lock);
	i = t->peaks < t->kept ? t->peaks++ : t->kept;
	for (; i && t->peak[i - 1] > peak; i--)
		if (i < t->kept)
			t->peak[i] = t->peak[i - 1];
	if (i < t->kept)
		t->peak[i] = peak;
	if (t->peaks == t->kept) {
		near = (uint64_t)((1 + WORTH) * (double)t->peak[0]) + 1;
		atomic_store(&t->hopeless,
			     near > t->peak[t->kept - 1] ? near : t->peak[t->kept - 1]);
	}
	pthread_mutex_unlock(&t->lock);
}

/* As it is now counts for itself, to its end. */
static int replay_one(struct tune *t, size_t i, struct vc_result *r, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	const struct vc_enough enough = { t, is_hopeless };
	struct vc_plan p = t->plan;

	p.conf = t->trial[i].conf;
	p.enough = i && p.assume == VC_ASSUME_NOTHING ? &enough : NULL;
	return vc_session_replay(&t->session, &p, nobody, r, err);
}

static void note(struct trial *x, const struct vc_result *r)
{
	x->given_up = r->given_up;
	x->stats = r->stats;
	x->verdict = vc_result_verdict(r);
	x->has_interval = r->has_interval;
	x->low = r->has_interval ? r->low : r->stats.peak_reserved;
	x->high = r->has_interval ? r->high : r->stats.peak_reserved;
	x->level = r->trust.level;
	x->basis = r->basis;
}

static int try_one(void *arg, size_t at, struct vc_error *err)
{
	struct tune *t = arg;
	/* Expandable segments come last in the list, and are the best more often than not. */
	size_t i = at ? t->n - at : 0;
	struct vc_result r;

	if (replay_one(t, i, &r, err) < 0)
		return vc_wrap(err, "settings \"%s\"", t->trial[i].conf);
	note(&t->trial[i], &r);
	if (!r.given_up && t->trial[i].verdict == VC_FITS && !r.stats.flushes)
		note_good(t, r.stats.peak_reserved);
	vc_result_fini(&r);
	return VC_OK;
}

/* The same with all that is open about it. */
static int decide_one(void *arg, size_t i, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct tune *t = arg;
	struct vc_plan p = t->plan;
	struct vc_result r;

	p.conf = t->trial[i].conf;
	if (vc_session_run(&t->session, &p, nobody, &r, err) < 0)
		return vc_wrap(err, "settings \"%s\"", p.conf);
	note(&t->trial[i], &r);
	t->trial[i].decided = true;
	vc_result_fini(&r);
	return VC_OK;
}

static int count_one(void *arg, size_t i, struct vc_error *err)
{
	const struct tune *t = arg;

	vc_progress_say(t->progress, "%zu of %zu settings", i + 1, t->n);
	return VC_OK;
}

/* Fits before flushes before undecided before runs out; then fewer flushes, less memory at the
 * upper end of what it may need, fewer settings, fewer driver calls. */
static int compare(const void *a, const void *b)
{
	const struct trial *x = a, *y = b;
	const uint64_t key[5][2] = {
		{ x->verdict, y->verdict }, { x->stats.flushes, y->stats.flushes },
		{ x->high, y->high }, { x->options, y->options },
		{ x->stats.segment_allocs, y->stats.segment_allocs } };

	if (x->decided != y->decided)
		return x->decided ? -1 : 1;
	if (x->given_up != y->given_up)
		return x->given_up ? 1 : -1;
	/* Of settings that all run out, the one that gets furthest. */
	if (x->verdict == VC_OOM && y->verdict == VC_OOM && x->stats.ooms != y->stats.ooms)
		return x->stats.ooms < y->stats.ooms ? -1 : 1;
	if (x->verdict == VC_OOM && y->verdict == VC_OOM && x->stats.events != y->stats.events)
		return x->stats.events > y->stats.events ? -1 : 1;
	for (int k = 0; k < 5; k++)
		if (key[k][0] != key[k][1])
			return key[k][0] < key[k][1] ? -1 : 1;
	return strcmp(x->conf, y->conf);
}

/* The simplest of those that are nearly as good as the best. */
static const struct trial *recommended(const struct tune *t)
{
	const struct trial *best = &t->trial[0], *pick = best;

	for (size_t i = 1; i < t->n && i < FINAL; i++) {
		const struct trial *x = &t->trial[i];

		if (x->decided && x->verdict == best->verdict &&
		    x->stats.flushes == best->stats.flushes &&
		    x->stats.ooms == best->stats.ooms && x->options < pick->options &&
		    (double)x->high <= (1 + WORTH) * (double)best->high)
			pick = x;
	}
	return pick;
}

/* Whatever is open about both of them: a verdict that may be otherwise recommends nothing. */
static bool is_better(const struct trial *best, const struct trial *now)
{
	if (best->verdict == VC_UNDECIDED)
		return false;
	if (best->verdict != now->verdict)
		return best->verdict < now->verdict;
	if (best->basis.exact && now->basis.exact && best->stats.flushes != now->stats.flushes)
		return best->stats.flushes < now->stats.flushes;
	return (double)best->high < (1 - WORTH) * (double)now->low;
}

/* By its best estimate, which is not sure. */
static bool may_help(const struct trial *best, const struct trial *now)
{
	if (best->basis.exact || best->basis.ground == VC_GROUND_ASKED)
		return false;
	return best->stats.ooms < now->stats.ooms || best->stats.flushes < now->stats.flushes ||
	       best->stats.peak_reserved < now->stats.peak_reserved;
}

/* ---- saying it ---- */

/* People see the table only; programs the same fields of single trials too. */
static void emit_trial(struct vc_emit *e, const struct trial *x, bool row)
{
	vc_emit_text(e, "conf", NULL, x->conf);
	vc_emit_text(e, NULL, row ? "settings" : NULL, *x->conf ? x->conf : "(defaults)");
	vc_emit_text(e, "verdict", row ? "verdict" : NULL, vc_verdict_name(x->verdict));
	vc_emit_bytes(e, "peak_reserved", row ? "peak reserved" : NULL, x->stats.peak_reserved);
	vc_emit_bytes(e, NULL, row ? "at most" : NULL, x->high);
	vc_result_emit_interval(e, x->has_interval, x->low, x->high);
	vc_emit_text(e, "level", NULL, vc_level_name(x->level));
	vc_emit_uint(e, "flushes", row ? "flushes" : NULL, x->stats.flushes);
	vc_emit_uint(e, "segment_allocs", row ? "cudaMallocs" : NULL, x->stats.segment_allocs);
}

static uint64_t saves(const struct trial *best, const struct trial *now)
{
	return now->low > best->high ? now->low - best->high : 0;
}

static void emit_hope(struct vc_emit *e, const struct trial *best, const struct trial *now)
{
	char a[32], b[32], c[32], d[32];

	vc_emit_line(e, "\nNo setting surely helps. The best is perhaps %s: %s at the peak, and "
		     "between %s and %s, where now it is %s.%s", *best->conf ? best->conf :
		     "(defaults)", vc_bytes_text(best->stats.peak_reserved, a),
		     vc_bytes_text(best->low, b), vc_bytes_text(best->high, c),
		     vc_bytes_text(now->stats.peak_reserved, d),
		     best->basis.ground != VC_GROUND_PAST ? "" :
		     " The recording begins in the middle of the run: one from the start of the "
		     "program would tell.");
}

static void emit_advice(struct vc_emit *e, const struct tune *t, const struct trial *now,
			bool better)
{
	const struct trial *best = recommended(t);
	uint64_t saved = saves(best, now);
	char a[32], b[32], c[32], line[CONF + 32];

	if (!better) {
		vc_emit_text(e, "line", NULL, NULL);
		if (may_help(best, now)) {
			emit_hope(e, best, now);
			return;
		}
		vc_emit_line(e, "\nNo setting helps: the best of %zu needs %s at the peak, as it "
			     "is now it needs %s%s.", t->n, vc_bytes_text(best->stats.peak_reserved,
					     a),
			     vc_bytes_text(now->stats.peak_reserved, b),
			     best->verdict == VC_OOM	    ? " and runs out all the same" :
			     best->verdict == VC_UNDECIDED ? " and may run out all the same" :
							     "");
		return;
	}
	snprintf(line, sizeof(line), "PYTORCH_CUDA_ALLOC_CONF=%s", best->conf);
	vc_emit_text(e, "line", NULL, line);
	vc_emit_line(e, "\n%s\n\n%s instead of %s at the peak (%s, now: %s), %" PRIu64
		     " flushes instead of %" PRIu64 "%s%s.",
		     line, vc_bytes_text(best->stats.peak_reserved, a),
		     vc_bytes_text(now->stats.peak_reserved, b), vc_verdict_name(best->verdict),
		     vc_verdict_name(now->verdict), best->stats.flushes, now->stats.flushes,
		     saved ? "; it saves at least " : "", saved ? vc_bytes_text(saved, c) : "");
}

static void emit_all(struct vc_emit *e, const struct tune *t, const struct trial *now)
{
	const struct vc_result as_now = { .basis = now->basis };
	bool better = is_better(recommended(t), now);
	char cannot[400];

	vc_answer_cannot(&t->session, now->stats.peak_reserved, now->low, now->high, cannot,
			 sizeof(cannot));
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.tune/1");
	vc_report_trace(e, &t->session, &t->plan, &as_now);
	vc_emit_text(e, "torch", NULL, t->plan.torch);
	vc_emit_uint(e, "capacity", NULL, t->plan.capacity);
	vc_emit_uint(e, "tried", NULL, t->n);
	vc_emit_object(e, "now", NULL);
	emit_trial(e, now, false);
	vc_emit_end(e);
	vc_emit_object(e, "recommended", NULL);
	emit_trial(e, recommended(t), false);
	vc_emit_end(e);
	vc_emit_bool(e, "helps", NULL, better);
	vc_emit_bytes(e, "saves_at_least", NULL, better ? saves(recommended(t), now) : 0);
	vc_emit_text(e, "cannot_tell", NULL, *cannot ? cannot : NULL);
	vc_emit_array(e, "best", *cannot ? NULL : "The best settings:");
	for (size_t i = 0; i < t->n && i < t->cfg->top; i++) {
		vc_emit_object(e, NULL, NULL);
		emit_trial(e, &t->trial[i], !*cannot);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	if (*cannot) {
		vc_emit_text(e, "line", NULL, NULL);
		vc_emit_line(e, "%s", cannot);
	} else {
		emit_advice(e, t, now, better);
	}
	vc_emit_end(e);
}

static int say(const struct tune *t, const struct trial *now, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(t->cfg->json, err);

	if (!e)
		return err->status;
	emit_all(e, t, now);
	return vc_emit_done(e, err);
}

/* All of them by their best estimates; then what is open about the first ones, which may change
 * their order, about the others that are shown, and about what is set now. */
static int try_all(struct tune *t, struct vc_error *err)
{
	struct vc_work work = { .n = t->n, .arg = t, .job = try_one, .done = count_one,
				.threads = t->cfg->threads };
	size_t left = 0;

	VC_TRY(vc_workers_run(&work, err));
	/* How far one went that was given up is chance where there are several threads, and so is
	 * whether one was that ended just before. */
	for (size_t i = 1; i < t->n; i++) {
		t->trial[i].given_up = t->trial[i].stats.peak_reserved > t->hopeless;
		left += !t->trial[i].given_up;
	}
	vc_sort(t->trial + 1, t->n - 1, sizeof(*t->trial), compare);
	work.n = t->kept < 1 + left ? t->kept : 1 + left;
	work.job = decide_one;
	work.done = NULL;
	vc_progress_say(t->progress, "all that is open about the best %zu of %zu settings", work.n,
			t->n);
	return vc_workers_run(&work, err);
}

static int search(struct tune *t, struct vc_error *err)
{
	struct vc_plan *plan = NULL;
	size_t n = 0;
	VC_TRY(vc_session_plans(&t->session, &plan, &n, err));
	t->plan = plan[0];
	free(plan);
	if (strcmp(t->plan.model->name, "torch") != 0)
		return vc_fail(err, VC_EUSAGE,
			       "tune knows the settings of the torch model only, not of %s",
			       t->plan.model->name);
	int r = list_trials(t, err);
	if (r == VC_OK) {
		t->kept = t->cfg->top < t->n ? (size_t)t->cfg->top + 1 : t->n;
		t->kept = t->kept > FINAL ? t->kept : FINAL;
		t->kept = t->kept < t->n ? t->kept : t->n;
		t->peak = calloc(t->kept, sizeof(*t->peak));
		VC_HAVE(t->peak, "the trials", err);
		r = try_all(t, err);
	}
	return r;
}

static int tune_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct tune t = { .cfg = config, .lock = PTHREAD_MUTEX_INITIALIZER,
			  .hopeless = UINT64_MAX };
	struct trial now = { 0 };
	int r = vc_session_open(&t.session, &t.cfg->run, argc, argv, VC_SESSION_IN_MEMORY,
				&con->err);

	vc_remark_cards(&t.cfg->run.gpu, con);
	t.progress = vc_progress_open(con);
	if (r == VC_OK)
		r = search(&t, &con->err);
	vc_progress_close(t.progress);
	if (r == VC_OK) {
		now = t.trial[0];
		vc_sort(t.trial, t.n < FINAL ? t.n : FINAL, sizeof(*t.trial), compare);
		r = say(&t, &now, &con->err);
	}
	if (r == VC_OK && t.trial[0].verdict >= VC_UNDECIDED)
		r = t.trial[0].verdict == VC_OOM ? 3 : 6;
	VC_FREE(t.trial, t.peak);
	vc_session_close(&t.session);
	return r;
}

const struct vc_command vc_command_tune = {
	.name = "tune", .operands = "TRACE",
	.summary = "the best allocator settings for a recording, as a line to paste",
	.details =
	"Replays the recording under the useful combinations of PyTorch's allocator settings and "
		   "ranks\nthem: fits before flushes before undecided before runs out, then fewer "
		   "flushes, then less memory, then\nfewer settings. Exit code 3: it runs out of "
		   "memory under all of them; 6: the best of them is undecided.",
	.options = VC_OPTIONS(tune_options, vc_run_options),
	.config_size = sizeof(struct config), .run = tune_run,
};
