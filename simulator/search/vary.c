/* SPDX-License-Identifier: Apache-2.0 */
/* vary.c - values of a sweep and their combinations. */
#include "simulator/search/vary.h"

#include "common/io.h"
#include "common/param.h"
#include "common/value.h"
#include "common/vec.h"
#include "simulator/replay/model.h"

enum { MOST = 100000 };
#define NO_ID UINT64_MAX

static const char *const options[] = { "conf", "gpu", "capacity", "torch", "model", "fraction",
				       "context", "used", "transform", "x", NULL };

static int push(struct vc_vary_key *k, const char *text, size_t len, struct vc_error *err)
{
	if (k->n >= MOST)
		return vc_fail(err, VC_EUSAGE, "--vary %s: more than %d values", k->name, MOST);
	if (!vc_vec_one(k->value, k->n) || !(k->value[k->n] = strndup(text, len)))
		return vc_nomem(err, "the values to vary");
	k->n++;
	return VC_OK;
}

/* "1..64", "8..64+8", "1..64*2" */
static int range(struct vc_vary_key *k, const char *text, const char *dots, struct vc_error *err)
{
	char from[64], to[64], shown[64];
	const char *end = dots + 2 + strcspn(dots + 2, "+*");
	double a, b, step = 1;

	snprintf(from, sizeof(from), "%.*s", (int)(dots - text), text);
	snprintf(to, sizeof(to), "%.*s", (int)(end - dots - 2), dots + 2);
	if (vc_parse_amount(from, &a, err) < 0 || vc_parse_amount(to, &b, err) < 0 ||
	    (*end && vc_parse_amount(end + 1, &step, err) < 0))
		return vc_wrap(err, "--vary %s=%s", k->name, text);
	if (a > b || step <= 0 || (*end == '*' && (step <= 1 || a <= 0)))
		return vc_fail(err, VC_EUSAGE, "--vary %s=%s: an empty range or one without end",
			       k->name, text);
	for (double x = a; x <= b * (1 + 1e-12); x = *end == '*' ? x * step : x + step) {
		snprintf(shown, sizeof(shown), "%.12g", x);
		VC_TRY(push(k, shown, strlen(shown), err));
	}
	return VC_OK;
}

static int numbers(struct vc_vary_key *k, const char *text, struct vc_error *err)
{
	char one[128];

	while (*text) {
		size_t len = strcspn(text, ",");
		double x;

		snprintf(one, sizeof(one), "%.*s", (int)len, text);
		char *dots = strstr(one, "..");
		if (dots)
			VC_TRY(range(k, one, dots, err));
		else if (vc_parse_amount(one, &x, err) < 0)
			return vc_wrap(err, "--vary %s", k->name);
		else
			VC_TRY(push(k, one, strlen(one), err));
		text += len + (text[len] == ',');
	}
	return VC_OK;
}

/* The end of one settings string: a comma whose next word names a setting that this string already
 * has, or that names none, starts another. */
static size_t settings_end(const char *text)
{
	size_t first = strcspn(text, ":,");

	for (size_t i = strcspn(text, ","); text[i]; i += 1 + strcspn(text + i + 1, ",")) {
		const char *next = text + i + 1;
		size_t word = strcspn(next, ":,");

		if (next[word] != ':' || (word == first && !strncmp(next, text, word)))
			return i;
	}
	return strlen(text);
}

/* "2.0..2.15": every version from one to the other, as the model lists them. */
static int versions(struct vc_vary_key *k, const char *text, size_t len, struct vc_error *err)
{
	const struct vc_model_type *m = vc_model_by_name("torch");
	const char *dots = strstr(text, "..");
	bool inside = false;
	int r = VC_OK;

	if (!m || !dots || dots >= text + len)
		return push(k, text, len, err);
	for (size_t i = 0; r == VC_OK && m->versions[i]; i++) {
		const char *v = m->versions[i];
		size_t n = strlen(v);

		inside |= n == (size_t)(dots - text) && !strncmp(v, text, n);
		if (inside)
			r = push(k, v, n, err);
		if (inside && n == (size_t)(text + len - dots - 2) && !strncmp(v, dots + 2, n))
			return r;
	}
	return r < 0 ? r : vc_fail(err, VC_EUSAGE, "--vary torch=%.*s: no such range (the first "
				   "version is %s)", (int)len, text, m->versions[0]);
}

/* "all": each of them. */
static int models(struct vc_vary_key *k, const char *text, size_t len, struct vc_error *err)
{
	int r = VC_OK;

	if (len != 3 || strncmp(text, "all", 3))
		return push(k, text, len, err);
	for (size_t i = 0; r == VC_OK && vc_models[i]; i++)
		r = push(k, vc_models[i]->name, strlen(vc_models[i]->name), err);
	return r;
}

static int words(struct vc_vary_key *k, const char *text, struct vc_error *err)
{
	bool bars = strchr(text, '|') != NULL, conf = !strcmp(k->name, "conf");
	int (*one)(struct vc_vary_key *, const char *, size_t, struct vc_error *) =
		!strcmp(k->name, "torch") ? versions : !strcmp(k->name, "model") ? models : push;

	do {
		size_t len = bars ? strcspn(text, "|") :
			     conf ? settings_end(text) :
				    strcspn(text, ",");

		VC_TRY(one(k, text, len, err));
		text += len;
	} while (*text++);
	return VC_OK;
}

static void begin_key(struct vc_vary_key *k, const char *name, size_t len)
{
	*k = (struct vc_vary_key){ 0 };
	snprintf(k->name, sizeof(k->name), "%.*s", (int)len, name);
	for (size_t i = 0; options[i]; i++)
		k->option |= !strcmp(k->name, options[i]);
}

static int next_key(struct vc_vary *v, const char *name, size_t n, struct vc_error *err)
{
	if (v->keys == VC_VARY_KEYS)
		return vc_fail(err, VC_EUSAGE, "--vary: at most %d keys", VC_VARY_KEYS);
	for (size_t i = 0; i < v->keys; i++)
		if (!strncmp(v->key[i].name, name, n) && !v->key[i].name[n])
			return vc_fail(err, VC_EUSAGE, "--vary %s is given twice: write all its "
				       "values in one, %s=A,B", v->key[i].name, v->key[i].name);
	begin_key(&v->key[v->keys++], name, n);
	return VC_OK;
}

static int count_runs(struct vc_vary *v, struct vc_error *err)
{
	const struct vc_vary_key *k = &v->key[v->keys - 1];

	if (!k->n)
		return vc_fail(err, VC_EUSAGE, "--vary %s: no values", k->name);
	v->runs = (v->keys == 1 ? 1 : v->runs) * k->n;
	if (v->runs > MOST * 10ul)
		return vc_fail(err, VC_EUSAGE, "--vary: %zu combinations are too many", v->runs);
	return VC_OK;
}

int vc_vary_add(struct vc_vary *v, const char *text, struct vc_error *err)
{
	struct vc_vary_key *k = &v->key[v->keys];
	const char *equals = strchr(text, '=');

	if (!equals || equals == text || equals - text >= VC_VARY_NAME)
		return vc_fail(err, VC_EUSAGE, "--vary %s: write KEY=VALUES, as in batch=8,16,32",
			       text);
	VC_TRY(next_key(v, text, (size_t)(equals - text), err));
	VC_TRY(k->option ? words(k, equals + 1, err) : numbers(k, equals + 1, err));
	return count_runs(v, err);
}

int vc_vary_words(struct vc_vary *v, const char *name, const struct vc_list *values,
		  struct vc_error *err)
{
	VC_TRY(next_key(v, name, strlen(name), err));
	for (size_t i = 0; i < values->n; i++)
		VC_TRY(push(&v->key[v->keys - 1], values->at[i], strlen(values->at[i]), err));
	return count_runs(v, err);
}

int vc_vary_split(struct vc_vary *v, const char *text, const char *option, bool ranges,
		  struct vc_error *err)
{
	const char *equals = strchr(text, '=');
	char *copy, *word[VC_VARY_MOST];
	struct vc_list values = { .n = 0 };
	int r;

	if (!equals || equals == text || !equals[1])
		return vc_fail(err, VC_EUSAGE, "--%s %s: write NAME=A,B", option, text);
	if (ranges && strstr(equals, ".."))
		return vc_vary_add(v, text, err);
	copy = strdup(text);
	VC_HAVE(copy, "the values to vary", err);
	copy[equals - text] = '\0';
	for (char *at = copy + (equals - text) + 1, *next; at && values.n < VC_VARY_MOST;
	     at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		word[values.n++] = at;
	}
	values.at = (const char **)word;
	r = vc_vary_words(v, copy, &values, err);
	free(copy);
	return r;
}

/* ---- one run a line ---- */

/* What is read of one line. `any`: one was good, so that the keys are known. */
struct line { uint64_t id; bool named, any; };

/* Runs before it were broken: they get its value, which nobody looks at. */
static int first_value(struct vc_vary *v, const struct vc_value *m, struct vc_error *err)
{
	struct vc_vary_key *k = &v->key[v->keys];

	begin_key(k, m->key, strlen(m->key));
	v->keys++;
	while (k->n < v->runs)
		VC_TRY(push(k, m->text, strlen(m->text), err));
	return VC_OK;
}

static int scenario_value(struct vc_vary *v, const struct line *l, const struct vc_value *m,
			  struct vc_error *err)
{
	struct vc_vary_key *k = v->key;

	while (k < v->key + v->keys && strncmp(k->name, m->key, sizeof(k->name) - 1))
		k++;
	if (k == v->key + v->keys && (l->any || v->keys == VC_VARY_KEYS))
		return vc_fail(err, VC_EFORMAT, l->any ? "\"%s\" is not in the lines before: all "
			       "lines name the same keys" : "\"%s\" is one key too many", m->key);
	if (k == v->key + v->keys)
		VC_TRY(first_value(v, m, err));
	if (k->n > v->runs)
		return vc_fail(err, VC_EFORMAT, "\"%s\" is there twice", m->key);
	/* one that is no number is told with its run */
	return push(k, m->text, strlen(m->text), err);
}

static int scenario_members(struct vc_vary *v, struct line *l, const struct vc_value *object,
			    struct vc_error *err)
{
	if (object->kind != VC_J_OBJECT)
		return vc_fail(err, VC_EFORMAT, "one JSON object per line is expected");
	for (const struct vc_value *m = object->first; m; m = m->next)
		if (!strcmp(m->key, "id")) {
			l->named = vc_value_count(m, &l->id);
			if (!l->named)
				return vc_fail(err, VC_EFORMAT, "\"id\" is no whole number");
		}
	for (const struct vc_value *m = object->first; m; m = m->next) {
		if (!strcmp(m->key, "id"))
			continue;
		if (m->kind != VC_J_TEXT && m->kind != VC_J_NUMBER)
			return vc_fail(err, VC_EFORMAT, "\"%s\" is no text or number", m->key);
		VC_TRY(scenario_value(v, l, m, err));
	}
	for (size_t k = 0; k < v->keys; k++)
		if (v->key[k].n == v->runs)
			return vc_fail(err, VC_EFORMAT, "\"%s\" is missing: all lines name the "
				       "same keys", v->key[k].name);
	return v->keys ? VC_OK : vc_fail(err, VC_EFORMAT, "the line varies nothing");
}

static void free_key(struct vc_vary_key *k, size_t keep)
{
	while (k->n > keep)
		free(k->value[--k->n]);
}

/* Whatever was taken of the line is let go of. */
static int break_line(struct vc_vary *v, const struct line *l, struct vc_error *err)
{
	for (size_t k = 0; k < v->keys; k++) {
		struct vc_vary_key *key = &v->key[k];

		free_key(key, l->any ? v->runs : 0);
		if (!l->any)
			free(key->value);
		else
			VC_TRY(push(key, key->value[0], strlen(key->value[0]), err));
	}
	v->keys = l->any ? v->keys : 0;
	v->broken[v->runs] = strdup(err->message);
	VC_HAVE(v->broken[v->runs], "the scenarios", err);
	*err = (struct vc_error){ 0 };
	return VC_OK;
}

/* The id of a line that is no JSON, where one can be made out. */
static bool id_in(const char *text, uint64_t *id)
{
	unsigned long long found;
	const char *at = strstr(text, "\"id\"");

	if (!at || sscanf(at, "\"id\" : %llu", &found) != 1)
		return false;
	*id = found;
	return true;
}

static int scenario(struct vc_vary *v, bool *any, const char *text, size_t n, const char *where,
		    struct vc_error *err)
{
	struct vc_value *value = vc_value_parse(text, n, err);
	struct line l = { .id = v->runs, .any = *any };
	int r = value ? scenario_members(v, &l, value, err) : (int)err->status;

	vc_value_free(value);
	if (r == VC_ENOMEM)
		return r;
	VC_HAVE(vc_vec_one(v->id, v->runs) && vc_vec_one(v->broken, v->runs), "the scenarios",
		err);
	v->broken[v->runs] = NULL;
	if (r < 0) {
		if (!l.named && !id_in(text, &l.id))
			l.id = NO_ID;
		vc_wrap(err, "%s", where);
		VC_TRY(break_line(v, &l, err));
	}
	*any = *any || r == VC_OK;
	v->id[v->runs++] = l.id;
	return VC_OK;
}

VC_COMPARE(by_id, struct vc_vary_id, VC_ORDER(x->id, y->id))
VC_COMPARE(by_id_and_run, struct vc_vary_id,
	   VC_THEN(VC_ORDER(x->id, y->id), VC_ORDER(x->run, y->run)))

static void sort(struct vc_vary *v)
{
	for (size_t i = 0; i < v->runs; i++)
		v->order[i] = (struct vc_vary_id){ v->id[i], i };
	vc_sort(v->order, v->runs, sizeof(*v->order), by_id_and_run);
}

/* Broken lines that do not say who they are get the number of the line, or what is free behind. */
static void name(struct vc_vary *v)
{
	uint64_t next = v->runs;

	for (size_t i = 0; i < v->runs; i++)
		if (v->id[i] != NO_ID && v->id[i] >= next)
			next = v->id[i] + 1;
	for (size_t i = 0; i < v->runs; i++)
		if (v->id[i] == NO_ID)
			v->id[i] = vc_vary_find(v, i) < v->runs ? next++ : i;
}

/* Of lines with the same id the first has it. */
static int part(struct vc_vary *v, struct vc_error *err)
{
	for (size_t i = 1; i < v->runs; i++) {
		size_t run = v->order[i].run;
		char text[80];

		if (v->order[i].id != v->order[i - 1].id || v->order[i].id == NO_ID)
			continue;
		snprintf(text, sizeof(text), "id %llu is there twice: this line, not the first "
			 "with it", (unsigned long long)v->id[run]);
		v->id[run] = NO_ID;
		free(v->broken[run]);
		v->broken[run] = strdup(text);
		VC_HAVE(v->broken[run], "the scenarios", err);
	}
	return VC_OK;
}

static int order(struct vc_vary *v, struct vc_error *err)
{
	v->order = calloc(v->runs + 1, sizeof(*v->order));
	VC_HAVE(v->order, "the scenarios", err);
	sort(v);
	VC_TRY(part(v, err));
	sort(v);
	name(v);
	sort(v);
	return VC_OK;
}

int vc_vary_scenarios(struct vc_vary *v, const char *path, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	size_t n, cap = 0, number = 0;
	char *line = NULL, where[300];
	bool any = false;
	int r = in ? 1 : (int)err->status;

	v->listed = true;
	while (r >= 0 && (r = vc_input_line(in, SIZE_MAX / 4, &line, &cap, &n, err)) > 0) {
		snprintf(where, sizeof(where), "%.200s, line %zu", path, ++number);
		if (v->runs >= MOST)
			r = vc_fail(err, VC_EUSAGE, "more than %d scenarios: share them out over "
				    "several files", MOST);
		else if (n)
			r = scenario(v, &any, line, n, where, err);
	}
	free(line);
	vc_input_close(in);
	if (r >= 0 && v->runs && !any)
		return vc_fail(err, VC_EFORMAT, "%s", v->broken[0]);
	return r < 0 ? r : order(v, err);
}

uint64_t vc_vary_id(const struct vc_vary *v, size_t i)
{
	return v->listed ? v->id[i] : i;
}

size_t vc_vary_find(const struct vc_vary *v, uint64_t id)
{
	struct vc_vary_id key = { id, 0 }, *at;

	if (!v->listed)
		return id < v->runs ? (size_t)id : v->runs;
	at = bsearch(&key, v->order, v->runs, sizeof(key), by_id);
	return at ? at->run : v->runs;
}

void vc_vary_fini(struct vc_vary *v)
{
	for (size_t k = 0; k < v->keys; k++) {
		free_key(&v->key[k], 0);
		free(v->key[k].value);
	}
	for (size_t i = 0; v->broken && i < v->runs; i++)
		free(v->broken[i]);
	VC_FREE(v->id, v->order, v->broken);
	*v = (struct vc_vary){ 0 };
}

const char *vc_vary_value(const struct vc_vary *v, size_t i, size_t k)
{
	if (v->listed)
		return v->key[k].value[i];
	for (size_t j = v->keys; j-- > k + 1;)
		i /= v->key[j].n;
	return v->key[k].value[i % v->key[k].n];
}

const char *vc_vary_text(const struct vc_vary *v, size_t i, char *buf, size_t n)
{
	size_t at = 0;

	*buf = '\0';
	for (size_t k = 0; k < v->keys && at < n; k++)
		at += (size_t)snprintf(buf + at, n - at, "%s%s=%s", k ? " " : "", v->key[k].name,
				       vc_vary_value(v, i, k));
	return buf;
}
