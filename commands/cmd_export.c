/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - vramcast export: a trace as .vct, or a replay of it in another program's format.
 */

#include "common/site.h"
#include "simulator/session/session.h"
#include "simulator/session/write_trace.h"
#include "commands/cmd_plot_lines.h"
#include "commands/run_and_write.h"

struct config {
	struct vc_run_options run;
	const char *to, *output;
	uint64_t level, block;
	bool no_stacks, no_addresses, redact;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option export_options[] = {
	{ 0, "to", VC_O_TEXT, AT(to), "FORMAT[:K=V,...]",
	  "vct, or the name of a sink (vramcast list sinks); default: what FILE's extension says, "
	  "else vct", NULL },
	{ 'o', "output", VC_O_FILE, AT(output), "FILE", "where to (- is standard output)", NULL },
	{ 0, "level", VC_O_UINT, AT(level), "N", "vct: zstd level", "3" },
	{ 0, "block", VC_O_UINT, AT(block), "N",
	  "vct: events per block, which is what damage costs", "65536" },
	{ 0, "no-stacks", VC_O_FLAG, AT(no_stacks), NULL,
	  "vct: leave out call sites (they hold user names and paths)", NULL },
	{ 0, "no-addresses", VC_O_FLAG, AT(no_addresses), NULL,
	  "vct: leave out addresses (smaller; cannot be verified any more)", NULL },
	{ 0, "redact", VC_O_FLAG, AT(redact), NULL,
	  "call sites without folders (they hold user names), no command line, no host", NULL },
	VC_OPTION_END
};

static int write_vct(const struct vc_session *s, const struct config *c, struct vc_error *err)
{
	struct vc_encoder_options o = { .level = (int)c->level, .block = (uint32_t)c->block,
					.no_addresses = c->no_addresses,
					.no_stacks = c->no_stacks, .redact = c->redact,
					.copy = true };

	return vc_trace_write(s->rec, &s->opt->transform, c->output, &o, err);
}

/* ---- a replay through a sink ---- */

struct job {
	struct vc_session *s;
	const struct vc_sink_type *sink;
	const char *params;      /* of the sink, NULL: none */
	const struct vc_observer_type *watch[VC_WATCH_MOST];
	struct vc_results results;
};

/* "csv" or "csv:what=blocks" */
static int choose_sink(struct job *j, const char *to, struct vc_error *err)
{
	const char *colon = strchr(to, ':');
	void *config;
	char name[64];
	int r;

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - to) : (int)strlen(to), to);
	j->sink = vc_name_sink("--to", name, err);
	if (!j->sink)
		return err->status;
	j->params = colon ? colon + 1 : NULL;
	config = calloc(1, j->sink->config_size ? j->sink->config_size : 1);
	r = config ? vc_params_parse(j->sink->params, config, j->params, err) :
		     vc_nomem(err, "options");
	free(config);
	return r;
}

static bool as_recorded(const struct vc_run_options *o)
{
	return !(o->model.n + o->torch.n + o->conf.n + o->gpu.n + o->used.n + o->set.n +
		o->transform.n) && o->capacity == VC_NOT_GIVEN && o->context == VC_NOT_GIVEN &&
		isnan(o->fraction) && !o->start;
}

static bool wants_history(const struct vc_sink_type *k)
{
	for (size_t i = 0; k->observers && k->observers[i]; i++)
		if (!strcmp(k->observers[i], "history"))
			return true;
	return false;
}

/* A history without a what-if is that of the recording: every device, at the recorded addresses. */
static int follow_all(struct job *j, struct vc_error *err)
{
	const struct vc_session *s = j->s;
	const struct vc_census *c = &s->rec->census;
	bool one = s->opt->device != VC_NOT_GIVEN || s->opt->rank != VC_NOT_GIVEN;
	int r = VC_OK;

	j->results.at = calloc(c->devices, sizeof(*j->results.at));
	VC_HAVE(j->results.at, "the results", err);
	for (size_t i = 0; i < c->devices && r == VC_OK; i++) {
		struct vc_recording on = vc_recording_on(s->rec, &c->device[i]);

		if (one && on.device != s->rec->device)
			continue;
		r = vc_job_follow(&on, on.torch, j->watch, &j->results.at[j->results.n], err);
		j->results.n += r == VC_OK;
	}
	return r;
}

static int run_plans(struct job *j, struct vc_error *err)
{
	struct vc_plan *plan = NULL;
	size_t n = 0;
	int r = vc_session_plans(j->s, &plan, &n, err);

	if (r == VC_OK)
		r = vc_run_plans(j->s, plan, n, j->watch, &j->results, err);
	free(plan);
	return r;
}

/* In place: names of files only become shorter. */
static void redact(struct vc_meta *m)
{
	for (size_t i = 0; i < m->frames; i++) {
		char *file = m->frame[i].file < m->strings ? m->string[m->frame[i].file] : NULL;
		const char *shown = file ? vc_site_public(file) : NULL;

		if (shown != file)
			memmove(file, shown, strlen(shown) + 1);
	}
}

static int write_sink(struct job *j, const char *path, struct vc_error *err)
{
	bool recorded = wants_history(j->sink) && as_recorded(j->s->opt);
	int r;

	vc_watch_for(j->watch, j->sink, j->s->rec->census.events);
	r = recorded ? follow_all(j, err) : run_plans(j, err);

	if (r == VC_OK && recorded && j->s->rec->fidelity.checked && !j->s->rec->fidelity.exact)
		fprintf(stderr,
			"vramcast: the model does not reproduce this recording (%s); what is "
			"written is the model's run\n",
			j->s->rec->fidelity.diverged_why ? j->s->rec->fidelity.diverged_why :
							   "it differs");
	if (r == VC_OK)
		r = vc_write_results(&j->results, j->sink, j->params, path, err);
	vc_results_fini(&j->results);
	return r;
}

/* ---- results of sweep and sim ---- */

/* Formats that need no more than the totals of runs. */
static int export_results(const struct config *c, size_t argc, char **argv, struct vc_error *err)
{
	static const char *const able[] = { "csv", "jsonl", "json", "markdown", "openmetrics",
					   "junit", NULL };
	struct job j = { 0 };
	int r = choose_sink(&j, !strcmp(c->to, "csv") ? "csv:what=runs" : c->to, err);
	bool ok = false;

	for (size_t i = 0; r == VC_OK && able[i]; i++)
		ok |= !strcmp(able[i], j.sink->name);
	if (r == VC_OK && !ok)
		r = vc_fail(err, VC_EUSAGE, "--to %s: needs the events of a run, results have "
			    "totals only (csv, jsonl, json, markdown, openmetrics, junit)",
			    j.sink->name);
	for (size_t i = 0; r == VC_OK && i < argc; i++)
		r = vc_lines_read(argv[i], &j.results.at, &j.results.n, err);
	if (r == VC_OK)
		r = vc_write_results(&j.results, j.sink, j.params, c->output, err);
	vc_results_fini(&j.results);
	return r;
}

static const char *format_of(const struct config *c)
{
	const struct vc_sink_type *k = c->output && vc_sink_by_extension(c->output) ?
		vc_choose_sink(c->output, NULL, vc_runs_asked(&c->run), &(struct vc_error){ 0 }) :
		NULL;

	return c->to ? c->to : k ? k->name : "vct";
}

static int export_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct config given = *(const struct config *)config, *c = &given;
	bool vct = !strcmp(c->to = format_of(c), "vct");
	struct vc_run_options o = c->run;
	struct vc_session s;
	struct job j = { .s = &s };
	int r = VC_OK;

	if (!c->block || c->block > 1u << 24 || c->level > 22)
		return vc_fail(&con->err, VC_EUSAGE,
			       "--block goes from 1 to 16777216, --level from 0 to 22");
	if (!c->output)
		return vc_fail(&con->err, VC_EUSAGE, "where to? give -o FILE (or -o -)");
	if (!vct && (c->no_stacks || c->no_addresses))
		return vc_fail(&con->err, VC_EUSAGE,
			       "--no-stacks and --no-addresses are for --to vct only");
	if (argc && vc_lines_probe(argv[0]))
		return vct ? vc_fail(&con->err, VC_EUSAGE,
				     "%s holds results: say --to csv, jsonl, json, markdown, "
				     "openmetrics or junit", argv[0]) : export_results(c, argc,
						     argv, &con->err);
	if (vct)
		o.verify = false;
	else
		r = choose_sink(&j, c->to, &con->err);
	if (r == VC_OK) {
		r = vc_session_open(&s, &o, argc, argv, vct ? VC_SESSION_NO_REQUESTS_OK : 0,
				    &con->err);
		if (r == VC_OK && c->redact && !vct)
			redact(s.rec->meta);
		if (r == VC_OK)
			r = vct ? write_vct(&s, c, &con->err) :
				  write_sink(&j, c->output, &con->err);
		vc_session_close(&s);
	}
	return r;
}

const struct vc_command vc_command_export = {
	.name = "export", .operands = "TRACE|RESULT --to FORMAT -o FILE",
	.summary = "a trace, or results of sim and sweep, as .vct or in another program's format",
	.options = VC_OPTIONS(export_options, vc_run_options),
	.config_size = sizeof(struct config), .run = export_run,
};
