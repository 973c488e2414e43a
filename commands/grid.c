/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - see grid.h */
#define _GNU_SOURCE /* asprintf */
#include "commands/grid.h"

#include <pthread.h>
#include <time.h>

#include "commands/environments.h"
#include "common/emit.h"
#include "common/param.h"
#include "common/workers.h"

enum { MOST_PLACES = 64 }; /* environments of one grid */

/* ---- axes ---- */

int vc_grid_add_words(struct vc_grid *g, enum vc_grid_axis axis, const char *name,
		      const struct vc_list *values, struct vc_error *err)
{
	g->axis[g->vary.keys] = axis;
	return vc_vary_words(&g->vary, name, values, err);
}

int vc_grid_add(struct vc_grid *g, enum vc_grid_axis axis, const char *text, struct vc_error *err)
{
	static const char *const option[] = { "torch", "package", "conf", "env", "vary" };

	g->axis[g->vary.keys] = axis;
	return vc_vary_split(&g->vary, text, option[axis], axis == VC_GRID_VARY, err);
}

char *vc_grid_name(const struct vc_grid *g, size_t i, char *buf, size_t n)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t k = 0; k < g->vary.keys && at < n; k++) {
		const char *value = vc_vary_value(&g->vary, i, k);

		at += (size_t)snprintf(buf + at, n - at, "%s%s=%s", at ? " " : "",
				       g->vary.key[k].name, *value ? value : "(none)");
	}
	return buf;
}

/* ---- environments ---- */

/* What value i of axis k wants: "torch=2.10". NULL: *err says why not. */
static char *wanted(const struct vc_grid *g, size_t k, size_t i, struct vc_error *err)
{
	const char *value = g->vary.key[k].value[i];
	char *text = NULL;

	if (g->axis[k] == VC_GRID_TORCH && !vc_env_is_version(value))
		vc_fail(err, VC_EUSAGE, "--torch: '%s' is no version of PyTorch (2.10 or 2.10.1), "
			"nor the file of a wheel", value);
	else if (asprintf(&text, "%s=%s", g->vary.key[k].name, value) < 0)
		vc_nomem(err, "the environments");
	return text;
}

static int make_all(struct vc_grid *g, const char *python, char **what, size_t n,
		    struct vc_error *err)
{
	char (*path)[VC_ENV_PATH] = calloc(n, sizeof(*path));
	int r = path ? vc_env_need(python, n, what, path, err) : vc_nomem(err, "the environments");

	for (size_t k = 0, from = 0; k < g->vary.keys && r == VC_OK; k++) {
		if (g->axis[k] > VC_GRID_PACKAGE)
			continue;
		g->path[k] = calloc(g->vary.key[k].n, sizeof(char *));
		for (size_t i = 0; g->path[k] && i < g->vary.key[k].n; i++)
			g->path[k][i] = strdup(path[from++]);
	}
	free(path);
	return r;
}

int vc_grid_prepare(struct vc_grid *g, const char *python, struct vc_error *err)
{
	char *what[MOST_PLACES];
	size_t n = 0;
	int r = VC_OK;

	for (size_t k = 0; k < g->vary.keys && r == VC_OK; k++)
		for (size_t i = 0; i < g->vary.key[k].n && r == VC_OK; i++) {
			if (g->axis[k] > VC_GRID_PACKAGE)
				continue;
			if (n == MOST_PLACES)
				r = vc_fail(err, VC_EUSAGE, "more than %d environments",
					    MOST_PLACES);
			else if ((what[n] = wanted(g, k, i, err)))
				n++;
			else
				r = (int)err->status;
		}
	if (r == VC_OK && n)
		r = make_all(g, python, what, n, err);
	while (n)
		free(what[--n]);
	return r;
}

/* ---- a point ---- */

/* As its user wrote it; a number is known by its name in the recording, too. */
static int put_value(struct vc_kept_wish *w, struct vc_program *p, struct vc_param_value *at,
		     const char *name, const char *value, struct vc_error *err)
{
	double x;

	if (!vc_program_takes(p, name))
		return vc_fail(err, VC_EUSAGE, "--vary %s: {%s} stands nowhere in the command line",
			       name, name);
	if (vc_parse_real(value, &x, NULL) == 0)
		at[w->n++] = (struct vc_param_value){ (char *)(uintptr_t)name, x };
	for (size_t i = 0; i < p->argument.n; i++) {
		char *text = vc_program_put(p->argument.at[i].text, name, value);

		VC_HAVE(text, "a command line", err);
		free(p->argument.at[i].text);
		p->argument.at[i].text = text;
	}
	return VC_OK;
}

static size_t index_of(const struct vc_grid *g, size_t i, size_t k)
{
	const char *value = vc_vary_value(&g->vary, i, k);
	size_t at = 0;

	while (at < g->vary.key[k].n && g->vary.key[k].value[at] != value)
		at++;
	return at;
}

static int put_point(const struct vc_grid *g, size_t i, struct vc_kept_wish *w,
		     struct vc_program *p, struct vc_program *more, struct vc_param_value *at,
		     struct vc_error *err)
{
	for (size_t k = 0; k < g->vary.keys; k++) {
		const char *name = g->vary.key[k].name, *value = vc_vary_value(&g->vary, i, k);

		if (g->axis[k] == VC_GRID_TORCH) {
			VC_TRY(vc_texts_add(&p->option, NULL, "--torch", err));
			VC_TRY(vc_texts_add(&p->option, NULL, value, err));
		} else if (g->axis[k] == VC_GRID_PACKAGE) {
			VC_TRY(vc_env_put_front(&more->environment,
						g->path[k][index_of(g, i, k)], err));
		} else if (g->axis[k] == VC_GRID_CONF) {
			w->conf = value;
		} else if (g->axis[k] == VC_GRID_ENV) {
			VC_TRY(vc_texts_add(&more->environment, name, value, err));
		} else {
			VC_TRY(put_value(w, p, at, name, value, err));
		}
	}
	return VC_OK;
}

static int put_change(const struct vc_grid_change *c, struct vc_kept_wish *w,
		      struct vc_program *more, char conf[400], char name[400], struct vc_error *err)
{
	size_t n = strlen(name);

	snprintf(name + n, 400 - n, "%s%s", n ? " " : "", c->words);
	w->made = c->made;
	if (c->conf) {
		bool alone = !w->conf || !*w->conf;

		snprintf(conf, 400, "%s%s%s", alone ? "" : w->conf, alone ? "" : ",", c->conf);
		w->conf = conf;
	}
	return c->variable ? vc_texts_add(&more->environment, c->variable, c->value, err) : VC_OK;
}

int vc_grid_run_one(const struct vc_grid *g, size_t i, struct vc_grid_point *to,
		    struct vc_error *err)
{
	struct vc_program *p = vc_program_copy(g->program, err), *more = vc_program_new(err);
	struct vc_param_value at[VC_VARY_KEYS];
	struct vc_error own = { 0 };
	char name[400], conf[400];
	struct vc_kept_wish w = { .program = p, .card = g->card, .capacity = g->capacity,
				  .at = at, .again = g->again,
				  .with = vc_grid_name(g, i, name, sizeof(name)) };
	int r = p && more ? put_point(g, i, &w, p, more, at, err) : VC_ENOMEM;

	if (r == VC_OK && g->change)
		r = put_change(g->change, &w, more, conf, name, err);
	if (r == VC_OK) {
		w.environment = &more->environment;
		r = vc_kept_run(&w, &to->kept, NULL, &own);
		snprintf(to->why, sizeof(to->why), "%.599s", r < 0 ? own.message : "");
		to->done = true;
		if (r < 0 && own.status != VC_EIO)
			*err = own;
		else
			r = VC_OK;
	}
	vc_program_free(p);
	vc_program_free(more);
	return r;
}

/* ---- all of them ---- */

struct crew {
	struct vc_grid *g;
	struct vc_progress *line;
	pthread_mutex_t lock;
	size_t done, ran;
	time_t began;
};

static time_t now(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void show(struct crew *c)
{
	size_t left = c->g->vary.runs - c->done;
	char rest[60] = "";

	if (c->ran)
		snprintf(rest, sizeof(rest), ", about %lld s left",
			 (long long)(now() - c->began) * (long long)left / (long long)c->ran);
	vc_progress_say(c->line, "%zu of %zu runs are there, %zu at a time%s", c->done,
			c->g->vary.runs, c->g->jobs, rest);
}

static int job(void *arg, size_t i, struct vc_error *err)
{
	struct crew *c = arg;
	int r = vc_grid_run_one(c->g, i, &c->g->at[i], err);

	pthread_mutex_lock(&c->lock);
	c->done++;
	c->ran += !c->g->at[i].kept.reused;
	show(c);
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* In order, for whoever reads along. */
static int told(void *arg, size_t i, struct vc_error *err)
{
	struct crew *c = arg;
	const struct vc_grid_point *p = &c->g->at[i];
	char name[240], peak[32];

	(void)err;
	if (c->g->con->quiet || p->kept.reused)
		return VC_OK;
	vc_progress_hush(c->line);
	fprintf(stderr, "vramcast: %s: %s%s%s\n", vc_grid_name(c->g, i, name, sizeof(name)),
		p->why[0] ? p->why : vc_bytes_text(p->kept.reserved, peak),
		p->why[0] ? "" : " reserved, ", p->why[0] ? "" : p->kept.verdict);
	return VC_OK;
}

int vc_grid_run(struct vc_grid *g, struct vc_error *err)
{
	struct crew c = { .g = g, .began = now(), .lock = PTHREAD_MUTEX_INITIALIZER };
	struct vc_work w = { .n = g->vary.runs, .threads = g->jobs, .arg = &c, .job = job,
			     .done = told };
	int r;

	g->at = calloc(g->vary.runs, sizeof(*g->at));
	VC_HAVE(g->at, "the runs", err);
	c.line = vc_progress_open(g->con);
	show(&c);
	r = vc_workers_run(&w, err);
	vc_progress_close(c.line);
	return r;
}

void vc_grid_fini(struct vc_grid *g)
{
	for (size_t k = 0; k < g->vary.keys; k++) {
		for (size_t i = 0; g->path[k] && i < g->vary.key[k].n; i++)
			free(g->path[k][i]);
		free(g->path[k]);
	}
	free(g->at);
	vc_vary_fini(&g->vary);
}
