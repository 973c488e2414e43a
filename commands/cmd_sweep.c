/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sweep.c - vramcast sweep: many what-if runs of one family, on all cores, one line each. */
#include <errno.h>
#include <unistd.h>

#include "commands/progress.h"
#include "commands/run_and_write.h"
#include "common/vec.h"
#include "simulator/advise/report.h"
#include "simulator/time/time.h"
#include "simulator/search/vary.h"
#include "simulator/session/whatif.h"
#include "common/workers.h"

struct config {
	struct vc_run_options run;
	struct vc_list vary;
	uint64_t threads;
	const char *shard, *output, *scenarios;
	bool resume, table, json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option sweep_options[] = {
	{ 0, "vary", VC_O_LIST, AT(vary), "KEY=VALUES",
	  "batch=1..64, seq=256,512, gpu=a,b, conf=x|y, ...; repeat for combinations", NULL },
	{ 0, "scenarios", VC_O_TEXT, AT(scenarios), "FILE",
	  "instead of --vary one run a line, {\"id\":7,\"batch\":8,\"gpu\":\"t4\"}; - is standard "
	  "input", NULL },
	{ 'j', "jobs", VC_O_JOBS, AT(threads), "N",
	  "threads (default: all cores); changes no output", NULL },
	{ 0, "shard", VC_O_TEXT, AT(shard), "I/N|auto",
	  "do part I of N only (I from 1); auto asks Slurm, Kubernetes or MPI", NULL },
	{ 0, "resume", VC_O_FLAG, AT(resume), NULL, "keep the runs that the -o file already has",
	  NULL },
	{ 'o', "output", VC_O_FILE, AT(output), "FILE", "lines of JSON into FILE", NULL },
	{ 0, "as", VC_O_AS, 0, "table|json", "a table for people (default on a terminal), or "
	  "lines of JSON", NULL },
	{ 0, "table", VC_O_FLAG, AT(table), NULL, NULL, NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "lines of JSON (default elsewhere)", NULL },
	VC_OPTION_END
};

struct line {
	bool wrong; char *json, *text; };

struct sweep {
	const struct config *cfg;
	struct vc_session base;
	struct vc_run_options opt; /* of the base */
	char set[160];
	const char *set_text;
	bool one;                  /* recording, whose program may tell of other values */
	struct vc_vary vary;
	size_t part, parts;        /* runs part, part + parts, ... */
	size_t *run;               /* numbers of the runs to do */
	size_t n;
	struct vc_session *at;     /* sessions by combination of recorded parameters */
	size_t *session;           /* which of them, by run done */
	char **none;               /* of a session that there is none of: why, else NULL */
	size_t sessions, wrong;    /* runs that there is no answer for */
	struct line *line;
	FILE *file;
	struct vc_progress *progress;
	bool table;
};

/* ---- which part of the work ---- */

static bool number(const char *name, size_t *value)
{
	const char *text = getenv(name);
	uint64_t v;

	if (!text || vc_parse_uint(text, &v, NULL) < 0)
		return false;
	*value = (size_t)v;
	return true;
}

/* Slurm arrays start and step where the user says; the others count from 0. */
static bool ask_scheduler(size_t *part, size_t *parts)
{
	static const char *const rank[][2] = {
		{ "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS" }, { "PMIX_RANK", "PMIX_SIZE" },
		{ "PMI_RANK", "PMI_SIZE" }, { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE" }, /* MVAPICH2 */
		{ "SLURM_PROCID", "SLURM_NTASKS" },
	};
	size_t id, first = 0, step = 1;

	if (number("SLURM_ARRAY_TASK_ID", &id) && number("SLURM_ARRAY_TASK_COUNT", parts)) {
		number("SLURM_ARRAY_TASK_MIN", &first);
		number("SLURM_ARRAY_TASK_STEP", &step);
		*part = (id - first) / (step ? step : 1);
		return true;
	}
	for (size_t i = 0; i < sizeof(rank) / sizeof(*rank); i++)
		if (number(rank[i][0], part) && number(rank[i][1], parts))
			return true;
	return false;
}

static int choose_part(struct sweep *s, struct vc_error *err)
{
	const char *text = s->cfg->shard;
	unsigned long i, n;
	char end;

	s->parts = 1;
	if (!text)
		return VC_OK;
	if (!strcmp(text, "auto")) {
		if (!ask_scheduler(&s->part, &s->parts))
			return vc_fail(err, VC_EUSAGE,
				       "--shard auto: no array index in the environment "
				       "(SLURM_ARRAY_TASK_ID and _COUNT, JOB_COMPLETION_INDEX "
				       "and JOB_COMPLETIONS, ...); write --shard 1/8");
	} else if (sscanf(text, "%lu/%lu%c", &i, &n, &end) == 2 && i >= 1 && i <= n) {
		s->part = i - 1;
		s->parts = n;
	} else {
		return vc_fail(err, VC_EUSAGE,
			       "--shard %s: write I/N with I from 1 to N, or auto", text);
	}
	return s->part < s->parts ? VC_OK :
		       vc_fail(err, VC_EUSAGE, "--shard: part %zu of %zu", s->part + 1, s->parts);
}

/* ---- resuming ---- */

/* Why its line cannot be read; NULL: it can. */
static const char *broken(const struct sweep *w, size_t run)
{
	return w->vary.broken ? w->vary.broken[run] : NULL;
}

/* What a line of this run begins with: {"id":3,"vary":{"batch":8}, */
static void write_head(struct vc_emit *e, const struct sweep *w, size_t run)
{
	double x;

	vc_emit_uint(e, "id", NULL, vc_vary_id(&w->vary, run));
	vc_emit_object(e, "vary", NULL);
	for (size_t k = 0; k < w->vary.keys && !broken(w, run); k++) {
		const char *value = vc_vary_value(&w->vary, run, k);

		if (!w->vary.key[k].option && !vc_parse_real(value, &x, NULL))
			vc_emit_real(e, w->vary.key[k].name, NULL, x);
		else
			vc_emit_text(e, w->vary.key[k].name, NULL, value);
	}
	vc_emit_end(e);
}

/* 1: the line is one that this sweep writes for the run, 0: it is not, < 0: failed. */
static int is_line_of(const struct sweep *w, size_t run, const char *line, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_JSONL, err);
	char *head;
	size_t n = 0;
	int r = VC_ENOMEM;

	VC_HAVE(e, "the runs", err);
	vc_emit_object(e, NULL, NULL);
	write_head(e, w, run);
	vc_emit_end(e);
	head = vc_emit_take(e, &n, err);
	if (head) /* all but "}" and the end of the line */
		r = n > 2 && !strncmp(line, head, n - 2);
	free(head);
	return r;
}

static bool is_torn(const char *line)
{
	static const char begin[] = "{\"id\":";
	size_t n = strlen(line);

	return !strncmp(line, begin, n < sizeof(begin) - 1 ? n : sizeof(begin) - 1);
}

/* Marks the runs that the file has. A torn last line is cut off; anything else in it is not ours
 * to lose. */
static int resume_from(struct sweep *w, FILE *f, bool *have, struct vc_error *err)
{
	const char *path = w->cfg->output;
	char *line = NULL;
	size_t cap = 0;
	long good = 0;
	ssize_t len;
	int r = 1;

	while (r == 1 && (len = getline(&line, &cap, f)) > 0) {
		uint64_t id = strlen(line) > 6 ? strtoull(line + 6, NULL, 10) : 0;
		size_t run = vc_vary_find(&w->vary, id);

		if (line[len - 1] != '\n' && is_torn(line))
			break;
		r = run < w->vary.runs && line[len - 1] == '\n' ? is_line_of(w, run, line, err) : 0;
		if (r == 1) {
			have[run] = true;
			good = ftell(f);
		}
	}
	free(line);
	if (r == 0)
		return vc_fail(err, VC_EUSAGE, "--resume: %s holds a line that is not of this "
			       "sweep (another --vary?); name another file, or leave --resume out "
			       "to write it anew", path);
	if (r == 1 && ftruncate(fileno(f), good))
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	return r < 0 ? r : VC_OK;
}

static int resume(struct sweep *w, bool *have, struct vc_error *err)
{
	FILE *f = fopen(w->cfg->output, "r+");
	int r = f ? resume_from(w, f, have, err) :
		    VC_OK; /* not there yet, or open_file says why not */

	if (f)
		fclose(f);
	return r;
}

static int choose_runs(struct sweep *s, struct vc_error *err)
{
	bool *have = calloc(s->vary.runs, sizeof(*have));
	int r = VC_OK;

	s->run = calloc(s->vary.runs, sizeof(*s->run));
	if (!have || !s->run)
		r = vc_nomem(err, "the runs");
	if (r == VC_OK && s->cfg->resume && s->cfg->output)
		r = resume(s, have, err);
	for (size_t i = s->part; r == VC_OK && i < s->vary.runs; i += s->parts)
		if (!have[i])
			s->run[s->n++] = i;
	free(have);
	s->line = calloc(s->n + 1, sizeof(*s->line));
	s->session = calloc(s->n + 1, sizeof(*s->session));
	if (r == VC_OK && (!s->line || !s->session))
		r = vc_nomem(err, "the runs");
	return r;
}

/* ---- one session per combination of recorded parameters ---- */

static int params_of(const struct sweep *s, size_t run, struct vc_param_value *at, char *text,
		     size_t n)
{
	size_t k = 0, len = 0;

	*text = '\0';
	for (size_t i = 0; i < s->vary.keys; i++) {
		if (s->vary.key[i].option)
			continue;
		const char *value = vc_vary_value(&s->vary, run, i);
		at[k].name = (char *)s->vary.key[i].name;
		vc_parse_real(value, &at[k++].value, NULL);
		if (len < n)
			len += (size_t)snprintf(text + len, n - len, "%s%s=%s", len ? ", " : "",
						s->vary.key[i].name, value);
	}
	return (int)k;
}

static int check_numbers(const struct sweep *s, size_t run, struct vc_error *err)
{
	double x;

	for (size_t i = 0; i < s->vary.keys; i++)
		if (!s->vary.key[i].option &&
		    vc_parse_real(vc_vary_value(&s->vary, run, i), &x, err) < 0)
			return vc_wrap(err, "\"%s\"", s->vary.key[i].name);
	return VC_OK;
}

static int prepare(struct sweep *s, struct vc_error *err)
{
	struct vc_param_value at[VC_VARY_KEYS];
	char text[256];

	s->at = calloc(s->n + 1, sizeof(*s->at));
	s->none = calloc(s->n + 1, sizeof(*s->none));
	VC_HAVE(s->at && s->none, "the predictions", err);
	for (size_t i = 0; i < s->n; i++) {
		int k = params_of(s, s->run[i], at, text, sizeof(text));
		size_t j = 0;

		while (j < s->sessions && strcmp(s->at[j].change, text))
			j++;
		s->session[i] = j;
		if (j < s->sessions || !k || broken(s, s->run[i]))
			continue;
		if (!s->base.whatif || (s->one && !s->base.whatif->rerun))
			return vc_fail(err, VC_EUSAGE, "--vary %s: one recording cannot tell; "
				       "give two, as FILE@%s=VALUE%s%s", at[0].name, at[0].name,
				       s->base.why[0] ? "; its program cannot be asked: " : "",
				       s->base.why);
		int r = check_numbers(s, s->run[i], err);
		if (r >= 0)
			r = vc_session_at(&s->base, at, (size_t)k, text, &s->at[j], err);
		s->sessions++;
		if (r < 0 && (!s->vary.listed || vc_is_final(r)))
			return r;
		if (r >= 0)
			continue;
		snprintf(s->at[j].change, sizeof(s->at[j].change), "%s", text);
		s->none[j] = strdup(err->message);
		VC_HAVE(s->none[j], "the predictions", err);
		*err = (struct vc_error){ 0 };
	}
	return VC_OK;
}

/* ---- a run ---- */

struct one {
	struct vc_run_options opt;
	struct vc_tenants tenants;
	const char *conf, *gpu, *torch, *model, *transform;
};

static int set_option(struct one *o, const char *name, const char *value,
		      struct vc_error *err)
{
	int r = VC_OK;

	if (!strcmp(name, "conf"))
		o->conf = value, o->opt.conf = (struct vc_list){ &o->conf, 1 };
	else if (!strcmp(name, "gpu"))
		o->gpu = value, o->opt.gpu = (struct vc_list){ &o->gpu, 1 };
	else if (!strcmp(name, "torch"))
		o->torch = value, o->opt.torch = (struct vc_list){ &o->torch, 1 };
	else if (!strcmp(name, "model"))
		o->model = value, o->opt.model = (struct vc_list){ &o->model, 1 };
	else if (!strcmp(name, "transform") || !strcmp(name, "x"))
		o->transform = value,
		o->opt.transform = (struct vc_list){ &o->transform, *value != '\0' };
	else if (!strcmp(name, "fraction"))
		r = vc_parse_real(value, &o->opt.fraction, err);
	else if (!strcmp(name, "capacity"))
		r = vc_parse_size(value, &o->opt.capacity, err);
	else if (!strcmp(name, "context"))
		r = vc_parse_size(value, &o->opt.context, err);
	else
		r = vc_parse_size(value, &o->tenants.others, err);
	return r < 0 ? vc_wrap(err, "--vary %s", name) : r;
}

/* A mistyped card is told before the first run, not after a thousand. */
static int check_values(const struct sweep *w, struct vc_error *err)
{
	int r = VC_OK;

	/* a line of a list says it for itself */
	if (vc_request_models(&w->cfg->run.model) > 1)
		return vc_fail(err, VC_EUSAGE, "-m: a sweep takes one model; write --vary "
			       "model=torch,cupy or --vary model=all for several");
	for (size_t k = 0; k < w->vary.keys && !w->vary.listed; k++)
		for (size_t i = 0; r == VC_OK && w->vary.key[k].option && i < w->vary.key[k].n;
		     i++) {
			struct one o = { .opt = *w->base.opt, .tenants = w->base.tenants };
			struct vc_plan *plan = NULL;
			size_t n;

			if (i && !strcmp(w->vary.key[k].value[i], w->vary.key[k].value[i - 1]))
				continue;
			r = set_option(&o, w->vary.key[k].name, w->vary.key[k].value[i], err);
			if (r == VC_OK)
				r = vc_request_plans(w->base.rec, &o.opt, &o.tenants, &plan,
						     &n, err);
			free(plan);
		}
	return r;
}

static void write_line(struct vc_emit *e, const struct sweep *w, size_t run,
		       const struct vc_session *s, const struct vc_plan *p,
		       const struct vc_result *r)
{
	vc_emit_object(e, NULL, NULL);
	write_head(e, w, run);
	vc_report_run(e, s, p, r);
	/* without a capacity that is no number, and null */
	vc_emit_real(e, "used_share", NULL, (double)r->stats.peak_used / (double)p->capacity);
	vc_report_trust(e, s, p, r);
	vc_emit_end(e);
}

/* Between 85 and 95 % of the card nothing is wasted and small surprises still fit. */
static const char *band(double share)
{
	return share > 0.95  ? "tight" :
	       share >= 0.85 ? "good" :
	       share >= 0.70 ? "roomy" :
			       "wasteful";
}

/* How fast it runs, and how often the cache would be emptied. */
static void pace(const struct vc_result *r, char *to, size_t n)
{
	const struct vc_timing *t = &r->timing;
	size_t at = strlen(vc_time_pace_words(t, to, n));

	if (t->flushes > 0)
		snprintf(to + at, n - at, "%s%.3g flushes/step", at ? "  " : "", t->flushes);
}

#define ROW "%-40s %-9s %14s %-18s"

static char *table_row(const struct sweep *w, size_t run, const struct vc_plan *p,
		       const struct vc_result *r)
{
	uint64_t used = r->stats.peak_used;
	enum vc_verdict v = vc_result_verdict(r);
	double share = p->capacity ? (double)used / (double)p->capacity : 0;
	bool died = vc_result_replayed(r) == VC_OOM;
	char text[256], peak[32], need[40], room[48] = "", *row = malloc(512);
	int n;

	if (!row)
		return NULL;
	if (p->capacity && v == VC_UNDECIDED && r->has_interval)
		snprintf(room, sizeof(room), "%6.1f..%.1f %%",
			 100 * (double)r->trust.used_low / (double)p->capacity,
			 100 * (double)r->trust.used_high / (double)p->capacity);
	else if (p->capacity && v != VC_OOM)
		snprintf(room, sizeof(room), "%6.1f %%  %-8s", 100 * share, band(share));
	/* a run that died did not reach its peak: what it had, and that it wanted more */
	snprintf(need, sizeof(need), "%s%s", died ? "> " : "", vc_bytes_text(used, peak));
	if (r->trust.cannot[0]) {
		snprintf(need, sizeof(need), "cannot tell");
		*room = '\0';
	}
	n = snprintf(row, 512, ROW, vc_vary_text(&w->vary, run, text, 256), vc_verdict_name(v),
		     need, room);
	pace(r, row + n, 512 - (size_t)n);
	for (n = (int)strlen(row); n && row[n - 1] == ' ';)
		row[--n] = '\0';
	return row;
}

static int say(struct sweep *w, size_t i, const struct vc_session *s, const struct vc_plan *p,
	       const struct vc_result *r, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_JSONL, err);

	VC_HAVE(e, "the runs", err);
	write_line(e, w, w->run[i], s, p, r);
	w->line[i].json = vc_emit_take(e, NULL, err);
	if (w->table)
		w->line[i].text = table_row(w, w->run[i], p, r);
	return w->line[i].json ? VC_OK : VC_ENOMEM;
}

/* One bad line of many scenarios is told in its place, and the others are run. */
static int say_wrong(struct sweep *w, size_t i, const char *why, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_JSONL, err);
	char text[256], row[1400];

	VC_HAVE(e, "the runs", err);
	vc_emit_object(e, NULL, NULL);
	write_head(e, w, w->run[i]);
	vc_emit_text(e, "error", NULL, why);
	vc_emit_end(e);
	w->line[i].json = vc_emit_take(e, NULL, err);
	snprintf(row, sizeof(row), "%-40s error: %s", vc_vary_text(&w->vary, w->run[i], text, 256),
		 why);
	w->line[i].text = w->table ? strdup(row) : NULL;
	w->line[i].wrong = true;
	return w->line[i].json ? VC_OK : VC_ENOMEM;
}

static int answer(struct sweep *w, size_t i, struct vc_error *err)
{
	/* not the heap at the peak: looking at it takes ten times as long as the replay */
	static const struct vc_observer_type *const watch[] = { &vc_observer_oom, &vc_observer_pace,
							   &vc_observer_moment, NULL };
	const struct vc_session *s = w->sessions ? &w->at[w->session[i]] : &w->base;
	struct one o = { .opt = *s->opt, .tenants = s->tenants };
	struct vc_plan *plan = NULL;
	struct vc_result r;
	size_t n = 0;
	int rc = VC_OK;

	for (size_t k = 0; rc == VC_OK && k < w->vary.keys; k++)
		if (w->vary.key[k].option)
			rc = set_option(&o, w->vary.key[k].name,
					vc_vary_value(&w->vary, w->run[i], k), err);
	if (rc == VC_OK)
		rc = vc_request_plans(s->rec, &o.opt, &o.tenants, &plan, &n, err);
	if (rc == VC_OK)
		rc = vc_session_run(s, &plan[0], watch, &r, err);
	if (rc == VC_OK) {
		rc = vc_time_answer(s, &plan[0], &r, err);
		if (rc == VC_OK)
			rc = say(w, i, s, &plan[0], &r, err);
		vc_result_fini(&r);
	}
	free(plan);
	return rc;
}

static int job(void *arg, size_t i, struct vc_error *err)
{
	struct sweep *w = arg;
	struct vc_error why = { 0 };
	const char *wrong = broken(w, w->run[i]);
	int rc;

	if (!wrong && w->sessions)
		wrong = w->none[w->session[i]];
	rc = wrong ? VC_EFORMAT : answer(w, i, w->vary.listed ? &why : err);

	if (rc == VC_OK || !w->vary.listed)
		return rc;
	if (!vc_is_final(rc))
		return say_wrong(w, i, wrong ? wrong : why.message, err);
	*err = why;
	return rc;
}

static int done(void *arg, size_t i, struct vc_error *err)
{
	struct sweep *w = arg;
	struct line *l = &w->line[i];
	int bad = 0, why;

	vc_progress_hush(w->progress);
	if (w->file)
		bad = fputs(l->json, w->file) < 0 || fflush(w->file);
	if (l->text)
		bad |= puts(l->text) < 0;
	else if (!w->file)
		bad |= fputs(l->json, stdout) < 0;
	if (w->progress && !w->file)
		bad |= fflush(stdout);
	why = errno;
	w->wrong += l->wrong;
	vc_progress_say(w->progress, "%zu of %zu runs", i + 1, w->n);
	VC_FREE(l->json, l->text);
	*l = (struct line){ 0 };
	return bad ? vc_fail(err, VC_EIO, "cannot write %s: %s",
			     w->file ? w->cfg->output : "standard output", strerror(why)) :
		     VC_OK;
}

static int open_file(struct sweep *w, struct vc_error *err)
{
	if (!w->cfg->output || !strcmp(w->cfg->output, "-"))
		return VC_OK;
	w->file = fopen(w->cfg->output, w->cfg->resume ? "a" : "w");
	return w->file ? VC_OK : vc_fail(err, VC_EIO, "cannot write %s: %s", w->cfg->output,
					 strerror(errno));
}

static int run_all(struct sweep *w, struct vc_console *con)
{
	struct vc_work work = { .n = w->n, .arg = w, .job = job, .done = done,
				.threads = w->cfg->threads };
	int r;

	w->progress = vc_progress_open(con);
	vc_progress_say(w->progress, "0 of %zu runs", w->n);
	r = vc_workers_run(&work, &con->err);
	vc_progress_close(w->progress);
	return r;
}

/* One recording is a family of one where a parameter varies: its program is asked. */
static int open_base(struct sweep *w, size_t argc, char **argv, struct vc_error *err)
{
	w->opt = w->cfg->run;
	size_t first = 0;

	while (first + 1 < w->vary.runs && broken(w, first))
		first++;
	for (size_t k = 0; argc == 1 && !w->opt.set.n && k < w->vary.keys && !w->one; k++) {
		if (w->vary.key[k].option || !w->vary.key[k].n || vc_rerun_asked(&w->opt,
										   "recordings"))
			continue;
		snprintf(w->set, sizeof(w->set), "%s=%s", w->vary.key[k].name,
			 vc_vary_value(&w->vary, first, k));
		w->set_text = w->set;
		w->opt.set = (struct vc_list){ &w->set_text, 1 };
		w->one = true;
	}
	/* a program runs on the cards that are named */
	for (size_t k = 0; w->one && !w->opt.gpu.n && k < w->vary.keys; k++)
		if (!strcmp(w->vary.key[k].name, "gpu"))
			w->opt.gpu = (struct vc_list){ (const char **)w->vary.key[k].value,
						       w->vary.key[k].n };
	return vc_session_open(&w->base, &w->opt, argc, argv, VC_SESSION_IN_MEMORY, err);
}

static int sweep_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct sweep w = { .cfg = config };
	struct vc_error *err = &con->err;
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < w.cfg->vary.n; i++)
		r = vc_vary_add(&w.vary, w.cfg->vary.at[i], err);
	if (r == VC_OK && w.cfg->scenarios)
		r = w.vary.keys ? vc_fail(err, VC_EUSAGE, "--vary and --scenarios both say what to "
					  "vary: leave one out") :
				  vc_vary_scenarios(&w.vary, w.cfg->scenarios, err);
	else if (r == VC_OK && !w.vary.keys)
		r = vc_fail(err, VC_EUSAGE, "say what to vary: --vary batch=1..64, --vary "
			    "conf=..., --vary gpu=..., or one run a line in --scenarios FILE");
	if (r == VC_OK && w.cfg->resume && !w.cfg->output)
		r = vc_fail(err, VC_EUSAGE, "--resume goes on with a file: name it with -o");
	vc_remark_cards(&w.cfg->run.gpu, con);
	w.table = w.cfg->table || (!w.cfg->json && !w.cfg->output && isatty(STDOUT_FILENO));
	if (r == VC_OK)
		r = choose_part(&w, err);
	if (r == VC_OK)
		r = open_base(&w, argc, argv, err);
	if (r == VC_OK)
		r = vc_time_open(&w.base, err);
	if (r == VC_OK)
		r = choose_runs(&w, err);
	if (r == VC_OK)
		r = prepare(&w, err);
	if (r == VC_OK)
		r = check_values(&w, err);
	if (r == VC_OK)
		r = open_file(&w, err);
	if (r == VC_OK && w.table && printf(ROW "\n", "run", "verdict", "used at peak",
					    "of the card") < 0)
		r = vc_fail(err, VC_EIO, "cannot write standard output: %s", strerror(errno));
	if (r == VC_OK)
		r = run_all(&w, con);
	if (w.file && fclose(w.file) && r == VC_OK)
		r = vc_fail(err, VC_EIO, "cannot write %s: %s", w.cfg->output, strerror(errno));
	for (size_t i = 0; i < w.n && w.line; i++) {
		VC_FREE(w.line[i].json, w.line[i].text);
	}
	for (size_t i = 0; i < w.sessions; i++) {
		vc_session_close(&w.at[i]);
		free(w.none[i]);
	}
	if (r == VC_OK && w.wrong)
		r = vc_fail(err, VC_EUSAGE, "%zu of %zu scenarios could not be run: \"error\" in "
			    "their lines says why", w.wrong, w.n);
	vc_session_close(&w.base);
	vc_vary_fini(&w.vary);
	VC_FREE(w.at, w.none, w.session, w.run, w.line);
	return r;
}

const struct vc_command vc_command_sweep = {
	.name = "sweep", .operands = "TRACE...",
	.summary = "many what-if runs: batch sizes, settings, cards; one line each",
	.details = "Every combination of the --vary lists is replayed; recordings that differ in a "
		   "parameter (a.vct@batch=8 b.vct@batch=16) make it a thing to vary. Lines of "
		   "JSON come in a fixed order whatever -j or --shard is. With -o FILE --resume an "
		   "interrupted sweep goes on.",
	.options = VC_OPTIONS(sweep_options, vc_run_options),
	.config_size = sizeof(struct config), .run = sweep_run,
};
