/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plot_lines.c - results that sweep and sim wrote as JSON, read back. */
#include "commands/cmd_plot_lines.h"

#include "common/json.h"
#include "common/param.h"
#include "common/vec.h"

enum { KEYS = 8 };

struct varied { char key[48], value[96]; };
struct line { struct varied vary[KEYS]; size_t n; };

struct lines {
	struct vc_result *run; struct line *line; size_t n;
};

/* sim --json and sim -o x.json: one document, its runs in an array. */
static bool has_runs(const char *head)
{
	return strstr(head, "\"vramcast.sim/1\"") || strstr(head, "\"vramcast.result/1\"");
}

int vc_lines_probe(const char *path)
{
	struct vc_input *in = !vc_input_is_stream(path) ? vc_input_open(path, NULL) : NULL;
	size_t got = 0;
	const uint8_t *p = in ? vc_input_peek(in, 64, &got, NULL) : NULL;
	char head[65] = "";

	if (p)
		memcpy(head, p, got < 64 ? got : 64);
	vc_input_close(in);
	return head[0] == '{' && (strstr(head, "\"vary\"") || has_runs(head));
}

static int read_vary(struct vc_json *j, struct line *l, struct vc_error *err)
{
	int t;

	while ((t = vc_json_next(j, err)) == VC_J_KEY) {
		struct varied spare, *v = l->n < KEYS ? &l->vary[l->n++] : &spare;
		snprintf(v->key, sizeof(v->key), "%s", j->text);
		t = vc_json_next(j, err);
		*v->value = '\0';
		if (t == VC_J_TEXT || t == VC_J_NUMBER)
			snprintf(v->value, sizeof(v->value), "%s", j->text);
		else if (t < 0 || vc_json_skip(j, t, err) < 0)
			return err->status;
	}
	return t < 0 ? t : VC_OK;
}

static void keep_number(struct vc_result *r, const char *key, uint64_t v)
{
	struct vc_stats *s = &r->stats;
	const struct { const char *name; uint64_t *at; } field[] = {
		{ "capacity", &r->info.capacity }, { "peak_requested", &s->peak_requested },
		{ "peak_allocated", &s->peak_allocated }, { "peak_active", &s->peak_active },
		{ "peak_reserved", &s->peak_reserved }, { "peak_used", &s->peak_used },
		{ "segments_peak", &s->segments_peak }, { "segment_allocs", &s->segment_allocs },
		{ "flushes", &s->flushes }, { "ooms", &s->ooms }, { "peak_event", &s->peak_event },
		{ "lower_bound", &s->lower_bound },
	};

	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		if (!strcmp(field[i].name, key))
			*field[i].at = v;
}

/* The verdicts and the level: what older versions wrote has the verdict only. */
static void keep_trust(struct vc_result *r, const char *key, const char *text)
{
	int v = vc_verdict_by_name(text);

	if (!strcmp(key, "level"))
		r->trust.level = vc_level_by_name(text);
	if (v < 0)
		return;
	if (!strcmp(key, "verdict"))
		r->trust.verdict = (enum vc_verdict)v;
	else if (!strcmp(key, "verdict_low"))
		r->trust.low = (enum vc_verdict)v;
	else if (!strcmp(key, "verdict_high"))
		r->trust.high = (enum vc_verdict)v;
}

static int keep_text(struct vc_result *r, const char *key, const char *text, struct vc_error *err)
{
	const struct { const char *name; char **at; } field[] = { { "model", &r->info.model },
		{ "torch", &r->info.torch }, { "conf", &r->info.conf }, { "gpu", &r->info.gpu } };

	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		if (!strcmp(field[i].name, key)) {
			free(*field[i].at);
			*field[i].at = strdup(text);
			if (!*field[i].at)
				return vc_nomem(err, "the results");
		}
	keep_trust(r, key, text);
	return VC_OK;
}

/* The object "time" of a run: how long the run and a step of it take, where it is known. */
static int read_time(struct vc_json *j, struct vc_result *r, struct vc_error *err)
{
	struct vc_timing *o = &r->timing;
	double rate = 0;
	char key[32];
	int t;

	while ((t = vc_json_next(j, err)) == VC_J_KEY) {
		snprintf(key, sizeof(key), "%s", j->text);
		t = vc_json_next(j, err);
		if (t < 0 || vc_json_skip(j, t, err) < 0)
			return err->status;
		if (t != VC_J_NUMBER || !(j->real > 0))
			continue;
		if (!strcmp(key, "predicted_ns") && j->is_integer)
			r->stats.predicted_ns = (uint64_t)j->integer;
		else if (!strcmp(key, "step_ns") && j->is_integer)
			o->step_ns = (uint64_t)j->integer;
		else if (!strcmp(key, "samples_per_s"))
			rate = j->real;
		else if (!strcmp(key, "flushes_per_step"))
			o->flushes = j->real;
	}
	o->samples = rate * (double)o->step_ns / 1e9;
	return t < 0 ? t : VC_OK;
}

static void keep_moment(struct vc_result *r, const char *key, uint64_t v)
{
	struct vc_moment *m = &r->moment;
	const struct { const char *name; uint64_t *at; } field[] = {
		{ "event", &m->event }, { "steps", &m->steps },
		{ "elapsed_ns", &m->elapsed_ns }, { "allocated", &m->allocated },
		{ "reserved", &m->reserved }, { "cached", &m->cached },
		{ "stranded", &m->stranded }, { "request", &m->request },
		{ "device_free", &m->free }, { "held_most", &m->bytes },
	};

	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		if (!strcmp(field[i].name, key))
			*field[i].at = v;
	m->splits |= !strcmp(key, "stranded");
	r->stats.has_times |= !strcmp(key, "elapsed_ns");
}

/* The object "moment" of a run. */
static int read_moment(struct vc_json *j, struct vc_result *r, struct vc_error *err)
{
	char key[32];
	int t;

	while ((t = vc_json_next(j, err)) == VC_J_KEY) {
		snprintf(key, sizeof(key), "%s", j->text);
		t = vc_json_next(j, err);
		if (t == VC_J_TEXT && !strcmp(key, "what"))
			r->moment.at_oom = !strcmp(j->text, "oom");
		if (t == VC_J_TEXT && !strcmp(key, "held_most_by")) {
			free(r->moment.who);
			r->moment.who = strdup(j->text);
			VC_HAVE(r->moment.who, "the results", err);
		}
		if (t == VC_J_NUMBER && j->is_integer && j->integer >= 0)
			keep_moment(r, key, (uint64_t)j->integer);
		if (t < 0 || vc_json_skip(j, t, err) < 0)
			return err->status;
	}
	r->moment.looked = true;
	return t < 0 ? t : VC_OK;
}

static int read_interval(struct vc_json *j, struct vc_result *r, struct vc_error *err)
{
	uint64_t end[2] = { 0 };
	size_t n = 0;
	int t;

	while ((t = vc_json_next(j, err)) == VC_J_NUMBER)
		if (n < 2 && j->is_integer && j->integer >= 0)
			end[n++] = (uint64_t)j->integer;
	r->has_interval = n == 2;
	r->low = end[0];
	r->high = end[1];
	return t < 0               ? t :
	       t == VC_J_ARRAY_END ? VC_OK :
				     vc_fail(err, VC_EFORMAT, "an interval is two numbers");
}

/* The members of a run, whose brace is read. */
static int read_members(struct vc_json *j, struct vc_result *r, struct line *l,
			struct vc_error *err)
{
	int t = VC_J_OBJECT, rc = VC_OK;
	char key[64];

	while (rc == VC_OK && (t = vc_json_next(j, err)) == VC_J_KEY) {
		snprintf(key, sizeof(key), "%s", j->text);
		t = vc_json_next(j, err);
		if (t < 0)
			return t;
		if (t == VC_J_OBJECT && !strcmp(key, "vary"))
			rc = read_vary(j, l, err);
		else if (t == VC_J_OBJECT && !strcmp(key, "time"))
			rc = read_time(j, r, err);
		else if (t == VC_J_OBJECT && !strcmp(key, "moment"))
			rc = read_moment(j, r, err);
		else if (t == VC_J_ARRAY && !strcmp(key, "interval"))
			rc = read_interval(j, r, err);
		else if (t == VC_J_NUMBER && j->is_integer && j->integer >= 0)
			keep_number(r, key, (uint64_t)j->integer);
		else if (t == VC_J_TEXT)
			rc = keep_text(r, key, j->text, err);
		else if (t == VC_J_TRUE && !strcmp(key, "checked"))
			r->trust.checked = true;
		else if (t == VC_J_TRUE && !strcmp(key, "reproduced"))
			r->trust.reproduced = true;
		else if (t == VC_J_TRUE && !strcmp(key, "cut_short"))
			r->stats.cut_short = true;
		else
			rc = vc_json_skip(j, t, err);
	}
	r->stats.events = 1; /* it ran */
	r->stats.allocs = r->stats.peak_requested != 0;
	if (r->stats.peak_used > r->stats.peak_reserved)
		r->info.context = r->stats.peak_used - r->stats.peak_reserved;
	r->trust.used_low = (r->has_interval ? r->low : r->stats.peak_reserved) + r->info.context;
	r->trust.used_high = (r->has_interval ? r->high : r->stats.peak_reserved) +
			     r->info.context;
	r->trust.endless = r->stats.cut_short && r->trust.verdict == VC_UNDECIDED;
	return t < 0 ? t : rc;
}

static int read_object(struct vc_json *j, struct vc_result *r, struct line *l, struct vc_error *err)
{
	int t = vc_json_next(j, err);

	if (t != VC_J_OBJECT)
		return t < 0 ? t : vc_fail(err, VC_EFORMAT, "a line is not an object");
	return read_members(j, r, l, err);
}

static int make_room(struct lines *all, struct vc_error *err)
{
	if (!vc_vec_one(all->run, all->n) || !vc_vec_one(all->line, all->n))
		return vc_nomem(err, "the results");
	all->run[all->n] = (struct vc_result){ 0 };
	all->line[all->n] = (struct line){ .n = 0 };
	return VC_OK;
}

static int add_line(struct lines *all, const char *text, size_t n, struct vc_error *err)
{
	int rc = make_room(all, err);
	struct vc_input *in;
	struct vc_json j;

	if (rc < 0)
		return rc;
	in = vc_input_memory(text, n, err);
	if (!in)
		return err->status;
	rc = vc_json_open(&j, in, err);
	if (rc == VC_OK) {
		rc = read_object(&j, &all->run[all->n], &all->line[all->n], err);
		vc_json_close(&j);
	}
	vc_input_close(in);
	all->n++;
	return rc;
}

static int read_runs(struct lines *all, struct vc_json *j, struct vc_error *err)
{
	int t, rc = VC_OK;

	while (rc == VC_OK && (t = vc_json_next(j, err)) == VC_J_OBJECT) {
		rc = make_room(all, err);
		if (rc == VC_OK) {
			rc = read_members(j, &all->run[all->n], &all->line[all->n], err);
			all->n++;
		}
	}
	return rc == VC_OK && t < 0 ? t : rc;
}

/* What sim --json writes. */
static int read_document(struct lines *all, struct vc_input *in, struct vc_error *err)
{
	struct vc_json j;
	int rc = vc_json_open(&j, in, err), t;

	if (rc < 0)
		return rc;
	t = vc_json_next(&j, err);
	while (rc == VC_OK && t >= 0 && (t = vc_json_next(&j, err)) == VC_J_KEY) {
		bool runs = !strcmp(j.text, "runs");

		t = vc_json_next(&j, err);
		rc = t < 0                   ? t :
		     runs && t == VC_J_ARRAY ? read_runs(all, &j, err) :
					       vc_json_skip(&j, t, err);
	}
	vc_json_close(&j);
	return rc == VC_OK && t < 0 ? t : rc;
}

static bool is_document(struct vc_input *in, struct vc_error *err)
{
	size_t got = 0;
	const uint8_t *p = vc_input_peek(in, 64, &got, err);
	char head[65] = "";

	if (p)
		memcpy(head, p, got < 64 ? got : 64);
	return has_runs(head);
}

static bool number_of(const char *text, double *v)
{
	uint64_t bytes;
	struct vc_error ignored;

	if (vc_parse_real(text, v, &ignored) == VC_OK)
		return true;
	if (vc_parse_size(text, &bytes, &ignored) != VC_OK)
		return false;
	*v = (double)bytes / (double)(1 << 30);
	return true;
}

/* Is this key a number in every line, and not the same one everywhere? */
static bool is_axis(const struct lines *all, size_t k)
{
	double first = 0, v;
	bool varies = false;

	for (size_t i = 0; i < all->n; i++) {
		if (k >= all->line[i].n ||
		    strcmp(all->line[i].vary[k].key, all->line[0].vary[k].key) ||
		    !number_of(all->line[i].vary[k].value, &v))
			return false;
		first = i ? first : v;
		varies = varies || v < first || v > first;
	}
	return varies;
}

/* The first key that is an axis; the capacity of the card only where no other is. KEYS: none. */
static size_t find_axis(const struct lines *all)
{
	size_t found = KEYS;

	for (size_t k = 0; all->n && k < all->line[0].n; k++)
		if (is_axis(all, k) &&
		    (found == KEYS || !strcmp(all->line[0].vary[found].key, "capacity")))
			found = k;
	return found;
}

/* Does the value of a key change from line to line? */
static bool differs(const struct lines *all, size_t k)
{
	for (size_t i = 1; i < all->n; i++)
		if (k >= all->line[i].n ||
		    strcmp(all->line[i].vary[k].value, all->line[0].vary[k].value))
			return true;
	return false;
}

/* All other keys that vary, as the second axis of what is drawn. */
static int set_second(struct lines *all, size_t axis, struct vc_error *err)
{
	for (size_t i = 0; i < all->n; i++) {
		struct vc_run_info *r = &all->run[i].info;
		char by[KEYS * 50] = "", value[KEYS * 100] = "";

		for (size_t k = 0; k < all->line[i].n && k < all->line[0].n; k++) {
			if (k == axis || !differs(all, k))
				continue;
			snprintf(by + strlen(by), sizeof(by) - strlen(by), "%s%s", *by ? ", " : "",
				 all->line[i].vary[k].key);
			snprintf(value + strlen(value), sizeof(value) - strlen(value), "%s%s",
				 *by && *value ? ", " : "",
				 *all->line[i].vary[k].value ? all->line[i].vary[k].value :
							       "default");
		}
		if (!*by)
			continue;
		r->by = strdup(by);
		r->by_value = strdup(value);
		VC_HAVE(r->by && r->by_value, "the results", err);
	}
	return VC_OK;
}

static int set_axis(struct lines *all, struct vc_error *err)
{
	size_t k = find_axis(all);

	if (k == KEYS)
		return VC_OK;
	for (size_t i = 0; i < all->n; i++) {
		all->run[i].info.vary = strdup(all->line[i].vary[k].key);
		VC_HAVE(all->run[i].info.vary, "the results", err);
		number_of(all->line[i].vary[k].value, &all->run[i].info.value);
	}
	return set_second(all, k, err);
}

/* One line at a time: a line may be longer than what the input shows at first. */
static int read_lines(struct lines *all, struct vc_input *in, struct vc_error *err)
{
	size_t want = 4096, got;
	int rc = VC_OK;

	while (rc == VC_OK) {
		const uint8_t *p = vc_input_peek(in, want, &got, err);
		if (!p)
			return err->status ? (int)err->status : VC_OK;
		const uint8_t *nl = memchr(p, '\n', got);
		if (!nl && got >= want) {
			want *= 2;
			continue;
		}
		size_t n = nl ? (size_t)(nl - p) : got;
		if (!got)
			return VC_OK;
		if (n)
			rc = add_line(all, (const char *)p, n, err);
		vc_input_skip(in, nl ? n + 1 : n);
	}
	return rc < 0 ? vc_wrap(err, "line %zu", all->n) : rc;
}

int vc_lines_read(const char *path, struct vc_result **result, size_t *n, struct vc_error *err)
{
	struct lines all = { 0 };
	struct vc_input *in = vc_input_open(path, err);
	int rc = !in ? (int)err->status : is_document(in, err) ? read_document(&all, in, err) :
		 read_lines(&all, in, err);

	vc_input_close(in);
	if (rc == VC_OK && !all.n)
		rc = vc_fail(err, VC_EFORMAT, "there are no results in it");
	if (rc == VC_OK)
		rc = set_axis(&all, err);
	for (size_t i = 0; rc == VC_OK && i < all.n; i++)
		if (!(all.run[i].info.trace = strdup(path)))
			rc = vc_nomem(err, "the results");
	for (size_t i = 0; i < all.n; i++)
		if (rc == VC_OK && !vc_vec_one(*result, *n))
			rc = vc_nomem(err, "the results");
		else if (rc == VC_OK)
			(*result)[(*n)++] = all.run[i];
		else
			vc_result_fini(&all.run[i]);
	VC_FREE(all.run, all.line);
	return rc == VC_OK ? rc : vc_wrap(err, "%s, read as results of sim or sweep", path);
}
