/* SPDX-License-Identifier: Apache-2.0 */
/* run_and_write.c - see run_and_write.h */
#include "commands/run_and_write.h"

#include <sys/wait.h>
#include <unistd.h>

#include "commands/progress.h"
#include "common/param.h"
#include "simulator/findings/leaks.h"
#include "simulator/time/time.h"

/* ---- which sink ---- */

static const char *extension(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	return dot ? dot + 1 : "";
}

static bool is_converted(const char *path)
{
	return !strcmp(extension(path), "png") || !strcmp(extension(path), "pdf");
}

const struct vc_sink_type *vc_name_sink(const char *option, const char *name, struct vc_error *err)
{
	const struct vc_sink_type *t = vc_sink_by_name(name);
	const char *names[64], *near;
	size_t n = 0, used = 0;
	char list[400];

	if (t)
		return t;
	for (; n < 64 && vc_sinks[n]; n++)
		names[n] = vc_sinks[n]->name;
	for (size_t i = 0; vc_sinks[i]; i++)
		if (!strcmp(vc_sinks[i]->extension, name) && used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", vc_sinks[i]->name);
	if (used) {
		vc_fail(err, VC_EUSAGE, "%s %s: that is an extension, which FILE's name says (-o "
			"FILE.%s); written so are %s", option, name, name, list);
		return NULL;
	}
	near = vc_nearest(name, names, n);
	vc_fail(err, VC_EUSAGE, "%s %s: there is no such %s%s%s%s ('vramcast list sinks')", option,
		name, strcmp(option, "-t") ? "format" : "picture", near ? ", did you mean " : "",
		near ? near : "", near ? "?" : "");
	return NULL;
}

static const struct vc_sink_type *of_type(const char *path, const char *ext, const char *type,
					  struct vc_error *err)
{
	const struct vc_sink_type *t = vc_name_sink("-t", type, err);
	size_t n = strlen(type);

	/* the same picture in another format: owners, owners_dot */
	for (size_t i = 0; t && strcmp(t->extension, ext) && vc_sinks[i]; i++)
		if (!strncmp(vc_sinks[i]->name, type, n) && vc_sinks[i]->name[n] == '_' &&
		    !strcmp(vc_sinks[i]->extension, ext))
			t = vc_sinks[i];
	if (t && strcmp(t->extension, ext)) {
		vc_fail(err, VC_EUSAGE, "-o %s: the picture %s is written as .%s", path, t->name,
			t->extension);
		t = NULL;
	}
	return t;
}

const struct vc_sink_type *vc_choose_sink(const char *path, const char *type, size_t results,
					  struct vc_error *err)
{
	bool drawn = is_converted(path) || !strcmp(path, "-");
	const char *ext = drawn ? "svg" : extension(path);
	const struct vc_sink_type *t;

	if (!strcmp(path, "-") && type && !strcmp(type, "html"))
		ext = "html";
	if (type)
		return of_type(path, ext, type, err);
	if (!strcmp(ext, "svg"))
		return vc_sink_by_name(results == VC_LAYOUTS_ONLY ? "layouts" :
				       results == VC_TOTALS_ONLY  ? "sweep" :
				       results > 1                ? "compare" :
								    "timeline");
	t = vc_sink_by_extension(path);
	if (!t)
		vc_fail(err, VC_EUSAGE, "-o %s: the extension says nothing to me (.svg .png .pdf "
			".html .txt; 'vramcast list sinks')", path);
	return t;
}

/* ---- running ---- */

size_t vc_runs_asked(const struct vc_run_options *o)
{
	const struct vc_list *list[] = { &o->torch, &o->conf, &o->gpu };
	size_t n = vc_request_models(&o->model);

	for (size_t i = 0; i < 3; i++)
		n *= list[i]->n ? list[i]->n : 1;
	return n;
}

void vc_watch(const struct vc_observer_type *list[VC_WATCH_MOST], const char *name)
{
	const struct vc_observer_type *o = vc_observer_by_name(name);
	size_t n = 0;

	while (list[n] && list[n] != o)
		n++;
	if (n + 1 < VC_WATCH_MOST)
		list[n] = o;
}

void vc_watch_for(const struct vc_observer_type *list[VC_WATCH_MOST],
		  const struct vc_sink_type *sink, uint64_t events)
{
	for (size_t i = 0; sink->observers && sink->observers[i]; i++)
		if (strcmp(sink->observers[i], "lives") || !sink->lives_limit ||
		    events <= sink->lives_limit)
			vc_watch(list, sink->observers[i]);
}

int vc_run_plans(const struct vc_session *s, const struct vc_plan *plan, size_t n,
		 const struct vc_observer_type *const *watch, struct vc_results *out,
		 struct vc_error *err)
{
	struct vc_result *at = realloc(out->at, (out->n + n + 1) * sizeof(*at));
	struct vc_leak leak = vc_leak_find(s);
	int r = at ? VC_OK : vc_nomem(err, "the results");

	out->at = at ? at : out->at;
	for (size_t i = 0; i < n && r == VC_OK; i++) {
		at[out->n] = (struct vc_result){ 0 };
		r = vc_session_run(s, &plan[i], watch, &at[out->n], err);
		if (r < 0)
			break;
		at[out->n].fidelity = s->rec->fidelity;
		at[out->n].fidelity.diverged_why = NULL;
		at[out->n].leak = leak;
		r = vc_time_answer(s, &plan[i], &at[out->n++], err);
	}
	return r;
}

void vc_results_fini(struct vc_results *r)
{
	for (size_t i = 0; i < r->n; i++)
		vc_result_fini(&r->at[i]);
	free(r->at);
	*r = (struct vc_results){ 0 };
}

/* ---- writing ---- */

/* The picture goes to rsvg-convert through a pipe, and what it makes of it into `to`. */
static int start_converter(const char *path, FILE *to, pid_t *pid)
{
	int fd[2];

	if (!to || pipe(fd))
		return -1;
	*pid = fork();
	if (*pid == 0) {
		dup2(fd[0], 0);
		dup2(fileno(to), 1);
		close(fd[0]);
		close(fd[1]);
		execlp("rsvg-convert", "rsvg-convert", "-f", extension(path), "-z",
		       strcmp(extension(path), "pdf") ? "2" : "0.75", (char *)NULL);
		_exit(127);
	}
	close(fd[0]);
	if (*pid < 0)
		close(fd[1]);
	return *pid < 0 ? -1 : fd[1];
}

static int convert(const char *path, const char *svg, size_t n, struct vc_output *out,
		   struct vc_error *err)
{
	FILE *made = tmpfile(); /* of no name: gone whatever happens */
	char part[4096];
	int status = 0, in;
	pid_t pid = 0;

	in = start_converter(path, made, &pid);
	for (ssize_t w; in >= 0 && n && (w = write(in, svg, n)) > 0; svg += w)
		n -= (size_t)w;
	if (in >= 0)
		close(in);
	if (in < 0 || waitpid(pid, &status, 0) < 0)
		status = -1;
	if (status == 0 && n == 0) {
		rewind(made);
		while ((n = fread(part, 1, sizeof(part), made)) > 0)
			vc_output_write(out, part, n);
	}
	if (made)
		fclose(made);
	if (status == -1)
		return vc_fail(err, VC_EIO, "%s: cannot start rsvg-convert", path);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return vc_fail(err, VC_ENOSUP, "%s: rsvg-convert is not installed (Debian "
			       "package librsvg2-bin); write .svg instead", path);
	return status || n ? vc_fail(err, VC_EIO, "%s: rsvg-convert failed", path) : VC_OK;
}

static int write_converted(const struct vc_results *r, const struct vc_sink_type *sink,
			   const void *cfg, const char *path, struct vc_output *out,
			   struct vc_error *err)
{
	struct vc_output *drawn = vc_output_memory(err);
	size_t n = 0;
	int rc = drawn ? sink->write(r->at, r->n, cfg, drawn, err) : (int)err->status;
	char *svg = rc == VC_OK ? vc_output_take(drawn, &n) : NULL;

	if (rc == VC_OK)
		rc = svg ? convert(path, svg, n, out, err) : vc_nomem(err, "the picture");
	free(svg);
	vc_output_close(drawn);
	return rc;
}

int vc_write_results(const struct vc_results *r, const struct vc_sink_type *sink,
		     const char *params, const char *path, struct vc_error *err)
{
	void *cfg = calloc(1, sink->config_size ? sink->config_size : 1);
	struct vc_output *out = NULL;
	int rc = cfg ? vc_params_parse(sink->params, cfg, params, err) : vc_nomem(err, "options");

	if (rc == VC_OK && !(out = vc_output_open(path, err)))
		rc = err->status;
	if (rc == VC_OK)
		rc = is_converted(path) ? write_converted(r, sink, cfg, path, out, err) :
					  sink->write(r->at, r->n, cfg, out, err);
	if (rc == VC_OK)
		rc = vc_output_commit(out, err);
	vc_output_close(out);
	free(cfg);
	return rc;
}

struct line { struct vc_advice_listener heard; struct vc_progress *line; };

static void tell_advice(struct vc_advice_listener *l, size_t done, size_t all)
{
	struct vc_progress *line = ((struct line *)l)->line;

	if (all)
		vc_progress_say(line, "looking for changes that would help: %zu of %zu", done + 1,
				all);
	else
		vc_progress_say(line, "looking for the largest batch that fits");
}

size_t vc_advise_aloud(const struct vc_session *s, const struct vc_plan *p,
		       const struct vc_result *r, const struct vc_console *con, bool keep,
		       struct vc_advice out[VC_ADVICE_MOST])
{
	struct line line = { { keep, tell_advice }, vc_progress_open(con) };
	size_t n = vc_advise(s, p, r, &line.heard, out);

	vc_progress_close(line.line);
	if (s->rec->streamed && vc_result_replayed(r) == VC_OOM && !con->quiet)
		fprintf(stderr, "vramcast: what would have helped is not looked for in more than "
				"%" PRIu64 " events; ask it of some steps: vramcast export -x "
				"window:iteration=1,iterations=5 TRACE -o SHORT.vct\n",
			VC_KEEP_EVENTS);
	return n;
}

int vc_check_width(const char *width, struct vc_error *err)
{
	uint64_t n;

	if (width && vc_parse_uint(width, &n, err) < 0)
		return vc_wrap(err, "--width");
	if (width && (n < 40 || n > 4000))
		return vc_fail(err, VC_EUSAGE, "--width goes from 40 to 4000, not %s", width);
	return VC_OK;
}

void vc_remark_cards(const struct vc_list *gpu, const struct vc_console *con)
{
	char line[600];

	/* of -g all nobody wrote the names */
	for (size_t i = 0; i < gpu->n && gpu->n < vc_cards_n / 2 && !con->quiet; i++)
		if (*vc_card_remark(gpu->at[i], line, sizeof(line)))
			fprintf(stderr, "vramcast: -g %s\n", line);
}
