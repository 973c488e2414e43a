/* SPDX-License-Identifier: Apache-2.0 */
/* budget_file.c - see budget_file.h */
#include "commands/budget_file.h"

#include "commands/run_start.h"
#include "commands/trial.h"
#include "common/emit.h"
#include "common/value.h"

#define SCHEMA "vramcast.choice/1"

static void emit_units(struct vc_emit *e, const struct vc_budget *b, const uint8_t *how)
{
	vc_emit_array(e, "units", NULL);
	for (size_t i = 0; i < b->n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "name", NULL, b->at[i].name);
		vc_emit_text(e, "do", NULL, vc_budget_word[vc_budget_done(b, how, i)]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static void emit_choice(struct vc_emit *e, const struct vc_budget *b, const uint8_t *how,
			uint64_t limit, uint64_t share, uint64_t twice)
{
	if (limit)
		vc_emit_uint(e, "limit", NULL, limit);
	if (b->compiled)
		vc_emit_uint(e, "share", NULL, share);
	if (twice)
		vc_emit_uint(e, "twice", NULL, twice);
	emit_units(e, b, how);
	vc_emit_end(e);
}

static char *spec_of(const struct vc_budget *b, const uint8_t *how, bool timed, uint64_t limit,
		     uint64_t share, uint64_t twice, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_JSON, err);

	if (!e)
		return NULL;
	vc_emit_object(e, NULL, NULL);
	if (timed)
		vc_emit_bool(e, "timed", NULL, true);
	emit_choice(e, b, how, limit, share, twice);
	return vc_emit_take(e, NULL, err);
}

char *vc_budget_spec(const struct vc_budget *b, const uint8_t *how, bool timed, uint64_t limit,
		     struct vc_error *err)
{
	return spec_of(b, how, timed, limit, 0, 0, err);
}

int vc_budget_save(const struct vc_budget *b, const uint8_t *how, const struct vc_budget_made *m,
		   const char *path, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(path, VC_EMIT_JSON, err);

	if (!e)
		return err->status;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, SCHEMA);
	vc_emit_text(e, "command", NULL, m->command);
	vc_emit_uint(e, "used", NULL, m->used);
	if (m->expandable)
		vc_emit_text(e, "conf", NULL, VC_BUDGET_CONF);
	emit_choice(e, b, how, m->limit, m->share, m->twice);
	return vc_emit_done(e, err);
}

static size_t way_of(const char *word)
{
	size_t way = 0;

	while (word && way < VC_BUDGET_WAYS && strcmp(word, vc_budget_word[way]))
		way++;
	return word ? way : VC_BUDGET_WAYS;
}

/* The units of a file, each with something that the hook does. */
static int read_units(struct vc_budget *b, uint8_t **how, const struct vc_value *v,
		      const char *path, struct vc_error *err)
{
	const struct vc_value *units = vc_value_get(v, "units");
	const char *schema = vc_value_text(v, "schema");
	size_t n = 0;

	if (!schema || strcmp(schema, SCHEMA) || !units || units->kind != VC_J_ARRAY)
		return vc_fail(err, VC_EFORMAT, "%s is no choice of modules: write one by "
			       "'vramcast fit --find budget --save FILE'", path);
	for (const struct vc_value *u = units->first; u; u = u->next)
		n++;
	b->at = calloc(n + 1, sizeof(*b->at));
	*how = calloc(n + 1, sizeof(**how));
	VC_HAVE(b->at && *how, "a choice of modules", err);
	for (const struct vc_value *u = units->first; u; u = u->next) {
		const char *name = vc_value_text(u, "name");
		size_t way = way_of(vc_value_text(u, "do"));

		if (!name || way == VC_BUDGET_WAYS)
			return vc_fail(err, VC_EFORMAT, "%s: unit %zu needs a \"name\", and \"do\" "
				       "that is \"keep\", \"recompute\", \"products\", "
				       "\"lower\", \"offload\" or \"recompute_offload\"",
				       path, b->n + 1);
		b->at[b->n].name = strdup(name);
		VC_HAVE(b->at[b->n].name, "a choice of modules", err);
		(*how)[b->n++] = (uint8_t)way;
	}
	return VC_OK;
}

static int start(const char *spec, const char *path, size_t argc, char **argv, struct vc_error *err)
{
	struct vc_hooked done = { 0 };
	char folder[200];
	int code;

	VC_TRY(vc_trial_folder(folder, err));
	code = vc_hook_set(&(struct vc_hook){ .folder = folder, .budget = spec }, err);
	if (code == VC_OK)
		code = vc_run_start(argv, argc, err);
	vc_hook_read(folder, &done);
	vc_trial_remove(folder);
	if (code >= 0 && done.units < done.of)
		fprintf(stderr, "vramcast run: the program called %" PRIu64 " of the %" PRIu64
			" modules in %s: it may have needed more memory\n", done.units, done.of,
			path);
	else if (code >= 0 && !done.of)
		fprintf(stderr, "vramcast run: the program called none of the modules in %s: "
			"nothing was changed\n", path);
	return code;
}

/* Behind the settings that are there. */
static int set_conf(const char *conf, struct vc_error *err)
{
	const char *own = getenv("PYTORCH_ALLOC_CONF");
	char text[512];

	own = own && *own ? own : getenv("PYTORCH_CUDA_ALLOC_CONF");
	snprintf(text, sizeof(text), "%.400s%s%.100s", own ? own : "", own && *own ? "," : "",
		 conf);
	if (setenv("PYTORCH_CUDA_ALLOC_CONF", text, 1) < 0 ||
	    setenv("PYTORCH_ALLOC_CONF", text, 1) < 0)
		return vc_nomem(err, "the environment");
	return VC_OK;
}

int vc_budget_run(const char *path, size_t argc, char **argv, struct vc_error *err)
{
	struct vc_value *v = vc_value_load(path, err);
	struct vc_budget b = { 0 };
	uint8_t *how = NULL;
	uint64_t limit = 0, share = 0, twice = 0;
	char *spec = NULL;
	int r = v ? read_units(&b, &how, v, path, err) : (int)err->status;

	vc_value_count(vc_value_get(v, "limit"), &limit);
	b.compiled = vc_value_count(vc_value_get(v, "share"), &share);
	vc_value_count(vc_value_get(v, "twice"), &twice);
	if (r == VC_OK && vc_value_text(v, "conf"))
		r = set_conf(vc_value_text(v, "conf"), err);
	vc_value_free(v);
	if (r == VC_OK && !(spec = spec_of(&b, how, false, limit, share, twice, err)))
		r = err->status;
	if (r == VC_OK)
		r = start(spec, path, argc, argv, err);
	free(how);
	free(spec);
	vc_budget_fini(&b);
	return r;
}
