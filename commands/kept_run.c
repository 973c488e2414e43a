/* SPDX-License-Identifier: Apache-2.0 */
/* kept_run.c - see kept_run.h
 *
 * A run is known by all that decides it: the program's text and files, its values, the packages
 * around its interpreter, the card, and who runs it. */
#define _GNU_SOURCE /* asprintf */
#include "commands/kept_run.h"

#include <errno.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/own_program.h"
#include "commands/trial.h"
#include "common/emit.h"
#include "common/value.h"
#include "simulator/session/job.h"

enum { SPARE = 3600 }; /* seconds in which what was used is not forgotten: somebody may be at it */

/* ---- what it is known by ---- */

static void write_time(struct vc_output *o, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		vc_output_printf(o, "%s %lld.%ld\n", path, (long long)st.st_mtim.tv_sec,
				 st.st_mtim.tv_nsec);
}

/* Of the packages that its interpreter finds: to install one changes the folder. */
static void write_packages(struct vc_output *o, const struct vc_program *p)
{
	const char *slash = strrchr(p->interpreter, '/');
	struct vc_error ignored = { 0 };
	char pattern[800], folder[512];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%.*s/../lib/python3*/*-packages",
		 slash ? (int)(slash - p->interpreter) : 0, p->interpreter);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			write_time(o, found.gl_pathv[i]);
	globfree(&found);
	for (size_t i = 0; i + 1 < p->option.n; i++)
		if (!strcmp(p->option.at[i].text, "--torch") &&
		    vc_own_folder("env", folder, sizeof(folder), &ignored) == VC_OK) {
			snprintf(pattern, sizeof(pattern), "%s/%.200s/ready", folder,
				 p->option.at[i + 1].text);
			write_time(o, pattern);
		}
	for (size_t i = 0; i < p->package.n; i++)
		vc_output_printf(o, "%s %s\n", p->package.at[i].name, p->package.at[i].text);
}

static bool is_changed(const struct vc_kept_wish *w)
{
	return w->made && (w->made->change || w->made->recompute || w->made->budget);
}

static int key_of(const struct vc_kept_wish *w, const char *capacity, uint64_t *key,
		  struct vc_error *err)
{
	const struct vc_program *p = w->program;
	struct vc_output *o = vc_output_memory(err);
	struct stat us = { 0 };
	char hash[17] = "", *text;
	size_t n = 0;

	VC_HAVE(o, "the name of a run", err);
	stat("/proc/self/exe", &us);
	vc_output_printf(o, "%s %lld %lld.%ld\n%s %s %u %s\n", VC_VERSION, (long long)us.st_size,
			 (long long)us.st_mtim.tv_sec, us.st_mtim.tv_nsec, w->card,
			 capacity ? capacity : "", w->seed, w->conf ? w->conf : "");
	vc_program_write(o, p, true);
	if (is_changed(w))
		vc_output_printf(o, "\n%s\n%s%s%s", w->made->change ? w->made->change : "",
				 w->made->recompute ? w->made->recompute : "",
				 w->made->budget ? "\n" : "",
				 w->made->budget ? w->made->budget : "");
	for (size_t i = 0; i < w->n; i++)
		vc_output_printf(o, "\n%s=%.17g", w->at[i].name, w->at[i].value);
	for (size_t i = 0; w->environment && i < w->environment->n; i++)
		vc_output_printf(o, "\n%s=%s", w->environment->at[i].name,
				 w->environment->at[i].text);
	for (size_t i = 0; i < p->file.n; i++)
		vc_output_printf(o, "\n%s %s", p->file.at[i].name,
				 vc_program_hash(p->file.at[i].name, hash) ? hash : "");
	vc_output_text(o, "\n");
	write_packages(o, p);
	text = vc_output_take(o, &n);
	vc_output_close(o);
	VC_HAVE(text, "the name of a run", err);
	*key = vc_program_hash_bytes(text, n, 0);
	free(text);
	return VC_OK;
}

/* ---- what is known of it ---- */

/* What dryrun said of it: {"runs": [{...}]} */
static void emit_report(struct vc_emit *e, const char *report)
{
	struct vc_value *v = vc_value_load(report, &(struct vc_error){ 0 });
	const struct vc_value *runs = vc_value_get(v, "runs"), *run = runs ? runs->first : NULL;
	const struct vc_value *close = vc_value_get(run, "too_close_to_call");
	const char *verdict = vc_value_text(run, "verdict");
	uint64_t used = 0;

	vc_emit_text(e, "verdict", NULL, close && close->kind == VC_J_TRUE ? "too close to call" :
		     verdict ? verdict : "");
	vc_value_count(vc_value_get(run, "peak_used"), &used);
	vc_emit_uint(e, "peak_used", NULL, used);
	vc_value_free(v);
}

static uint64_t largest_workspace(const struct vc_recording *rec)
{
	uint64_t most = 0;

	for (size_t i = 0; i < rec->trace.n; i++)
		if (rec->trace.ev[i].kind == VC_EV_PLAN && rec->trace.ev[i].size > most)
			most = rec->trace.ev[i].size;
	return most;
}

/* As its user wrote it. */
static void emit_command(struct vc_emit *e, const struct vc_program *p)
{
	char line[400];
	size_t at = 0;

	for (size_t i = 0; i < p->argument.n && at < sizeof(line); i++)
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s", i ? " " : "",
				       p->argument.at[i].text);
	vc_emit_text(e, "command", NULL, line);
}

static void emit_facts(struct vc_emit *e, const struct vc_kept_wish *w,
		       const struct vc_recording *rec, const struct vc_result *r, bool oom,
		       const char *report)
{
	const struct vc_program *p = rec->meta->program;

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.run/1");
	emit_command(e, w->program);
	vc_emit_text(e, "with", NULL, w->with ? w->with : "");
	vc_emit_text(e, "card", NULL, w->card);
	vc_emit_text(e, "torch", NULL, rec->meta->torch ? rec->meta->torch : "");
	vc_emit_bool(e, "oom", NULL, oom);
	emit_report(e, report);
	vc_emit_uint(e, "peak_requested", NULL, r->stats.peak_requested);
	vc_emit_uint(e, "peak_allocated", NULL, r->stats.peak_allocated);
	vc_emit_uint(e, "peak_reserved", NULL, r->stats.peak_reserved);
	vc_emit_uint(e, "flushes", NULL, r->stats.flushes);
	vc_emit_uint(e, "workspace", NULL, largest_workspace(rec));
	vc_emit_object(e, "files", NULL);
	for (size_t i = 0; p && i < p->file.n; i++)
		if (access(p->file.at[i].name, F_OK) == 0) /* the hook is gone, and decided by us */
			vc_emit_text(e, p->file.at[i].name, NULL, p->file.at[i].text);
	vc_emit_end(e);
	vc_emit_end(e);
}

/* From the recording in `part`, whose name will be `path`. */
static int write_facts(const struct vc_kept_wish *w, const char *part, bool oom, const char *path,
		       struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .flags = VC_SESSION_IN_MEMORY };
	struct vc_recording rec = { 0 };
	struct vc_result r = { 0 };
	char file[VC_RERUN_PATH], report[VC_RERUN_PATH];
	struct vc_emit *e;
	int rc = vc_recording_open(&rec, part, &ask, err);

	if (rc == VC_OK)
		rc = vc_job_follow(&rec, rec.torch, NULL, &r, err);
	if (rc == VC_OK) {
		vc_kept_beside(path, ".run", file);
		vc_kept_beside(path, ".json", report);
		e = vc_emit_file(file, VC_EMIT_JSON, err);
		rc = e ? VC_OK : (int)err->status;
		if (e) {
			emit_facts(e, w, &rec, &r, oom, report);
			rc = vc_emit_done(e, err);
		}
		vc_result_fini(&r);
	}
	vc_recording_close(&rec);
	return rc;
}

/* ---- the run ---- */

static void say(struct vc_progress *line, const struct vc_kept_wish *w, const char *capacity)
{
	vc_progress_say(line, "the program runs without a card%s%s on %s%s",
			w->with && *w->with ? " at " : "", w->with ? w->with : "", w->card,
			capacity ? " with more memory" : "");
}

/* Programs that catch it may go on for a while, and then end in their own way: code. */
static int ended_in_oom(const char *path, const char *report, int code, bool *oom,
			struct vc_error *err)
{
	struct vc_value *v = code ? vc_value_load(report, &(struct vc_error){ 0 }) : NULL;
	const struct vc_value *runs = vc_value_get(v, "runs");
	const char *verdict = vc_value_text(runs ? runs->first : NULL, "verdict");
	bool refused = verdict && !strcmp(verdict, "oom");
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN };
	struct vc_recording rec = { 0 };
	int r = vc_recording_open(&rec, path, &ask, err);

	*oom = r == VC_OK && (rec.device->ends_in_oom || refused);
	vc_recording_close(&rec);
	vc_value_free(v);
	return r;
}

/* Why it failed, as far as it says so at the end: ": NameError: ...". */
static void last_words(const char *log, char *out, size_t n)
{
	char line[1024];
	FILE *f = fopen(log, "r");

	out[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] && line[0] != ' ' && strncmp(line, "vramcast: ", 10))
			snprintf(out, n, ": %.200s", line);
	}
	if (f)
		fclose(f);
}

/* A rank of a job has its number in the name of its recording. */
static void take_rank(const char *part)
{
	char pattern[VC_RERUN_PATH + 40];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%.*s.rank*.vct", (int)(strlen(part) - 4), part);
	if (glob(pattern, 0, NULL, &found) == 0)
		rename(found.gl_pathv[0], part);
	globfree(&found);
}

/* The program, in front of which the hook stands where something is changed. */
static int run_changed(const struct vc_kept_wish *w, struct vc_trial *t, const char *part,
		       const char *report, int *code, bool *oom, struct vc_error *err)
{
	char folder[VC_RERUN_PATH + 32];
	struct vc_hook hook = { .folder = folder };
	int r = VC_OK;

	if (is_changed(w)) {
		hook.recompute = w->made->recompute;
		hook.change = w->made->change;
		hook.budget = w->made->budget;
		r = vc_trial_folder(folder, err);
		t->hook = &hook;
	}
	if (r == VC_OK)
		r = vc_trial_run(t, part, code, err);
	take_rank(part);
	if (r == VC_OK && vc_trial_recorded(part))
		r = ended_in_oom(part, report, *code, oom, err);
	if (r == VC_OK && is_changed(w) && !*oom)
		r = vc_made_check(w->made, folder, err);
	if (is_changed(w))
		vc_trial_remove(folder);
	return r;
}

/* Once, into `path`. */
static int run_once(const struct vc_kept_wish *w, const char *capacity, const char *path,
		    struct vc_progress *line, struct vc_error *err)
{
	const struct vc_program *p = w->program;
	char **argv = calloc(p->argument.n + 1, sizeof(*argv)), part[VC_RERUN_PATH + 32];
	char report[VC_RERUN_PATH], log[VC_RERUN_PATH + 40], why[240];
	const char *more[] = { "--report", report, NULL };
	struct vc_trial t = { .verb = "dryrun", .gpu = w->card, .capacity = capacity, .at = w->at,
			      .n = w->n, .argv = argv, .argc = p->argument.n, .as = p,
			      .conf = w->conf, .environment = w->environment, .more = more,
			      .progress = line };
	bool oom = false;
	int code = 0, r;

	VC_HAVE(argv, "a command line", err);
	for (size_t i = 0; i < p->argument.n; i++)
		argv[i] = i ? p->argument.at[i].text : p->interpreter;
	snprintf(part, sizeof(part), "%s.%ld.vct", path, (long)getpid());
	vc_kept_beside(path, ".json", report);
	say(line, w, capacity);
	snprintf(log, sizeof(log), "%s.log", part);
	r = run_changed(w, &t, part, report, &code, &oom, err);
	free(argv);
	last_words(log, why, sizeof(why));
	if (r == VC_OK && (!vc_trial_recorded(part) || (code && !oom)))
		r = vc_fail(err, VC_EIO, "a dry run of the program ended with code %d%s%s; what it "
			    "said is in %s", code, vc_trial_recorded(part) ? "" :
			    " and left no recording", why, log);
	if (r == VC_OK)
		r = write_facts(w, part, oom, path, err);
	if (r == VC_OK) {
		unlink(log);
		r = rename(part, path) < 0 ? vc_fail(err, VC_EIO, "cannot write %s", path) : VC_OK;
	} else {
		unlink(part);
	}
	if (r == VC_ESTOPPED) { /* it did not fail */
		unlink(log);
		unlink(report);
	}
	return r;
}

int vc_kept_run(const struct vc_kept_wish *w, struct vc_kept *out, const struct vc_console *con,
		struct vc_error *err)
{
	struct vc_progress *line = NULL;
	char folder[512], path[VC_RERUN_PATH], verdict[sizeof(out->verdict)] = "";
	const char *capacity[] = { w->capacity, w->once ? NULL : "1TiB" };
	bool reused = true;
	uint64_t key = 0;
	int r = VC_OK;

	*out = (struct vc_kept){ .oom = true };
	VC_TRY(vc_own_folder("runs", folder, sizeof(folder), err));
	for (size_t i = 0; r == VC_OK && i < (w->once ? 1 : 2) && out->oom; i++) {
		VC_TRY(key_of(w, capacity[i], &key, err));
		snprintf(path, sizeof(path), "%.520s/%016" PRIx64 ".vct", folder, key);
		if (w->again || !vc_kept_read(path, true, out)) {
			vc_kept_clean(folder);
			line = line || !con ? line : vc_progress_open(con);
			reused = false;
			r = run_once(w, capacity[i], path, line, err);
			if (r == VC_OK && !vc_kept_read(path, false, out))
				r = vc_fail(err, VC_EIO, "cannot read what is beside %s", path);
		}
		if (!i)
			snprintf(verdict, sizeof(verdict), "%s", out->verdict);
	}
	vc_progress_close(line);
	if (!reused && r == VC_OK)
		r = vc_kept_prune(SPARE, err);
	snprintf(out->verdict, sizeof(out->verdict), "%s", verdict);
	out->reused = reused;
	return r;
}
