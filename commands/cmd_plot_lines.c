/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plot_lines.c - results that sweep and sim wrote as JSON, read back. */
#include "commands/cmd_plot_lines.h"

#include "commands/fit_plan.h"
#include "common/format.h"
#include "common/param.h"
#include "common/value.h"
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

/* fit --find plan --json: its layouts in an array. */
static bool has_plans(const char *head)
{
	return strstr(head, "\"vramcast.fit-plan/1\"");
}

static const char *head_of(struct vc_input *in, char head[65])
{
	size_t got = 0;
	const uint8_t *p = in ? vc_input_peek(in, 64, &got, NULL) : NULL;

	snprintf(head, 65, "%.*s", p ? (int)(got < 64 ? got : 64) : 0, p ? (const char *)p : "");
	return head;
}

int vc_lines_probe(const char *path)
{
	struct vc_input *in = !vc_input_is_stream(path) ? vc_input_open(path, NULL) : NULL;
	char head[65];
	int is = *head_of(in, head) != '{' ? VC_LINES_NONE : has_plans(head) ? VC_LINES_PLANS :
		 strstr(head, "\"vary\"") || has_runs(head) ? VC_LINES_RUNS : VC_LINES_NONE;

	vc_input_close(in);
	return is;
}

/* ---- one run ---- */

struct field { const char *name; uint64_t *at; };

static void read_counts(const struct vc_value *from, const struct field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vc_value_count(vc_value_get(from, f[i].name), f[i].at);
}
#define READ_COUNTS(from, f) read_counts(from, f, sizeof(f) / sizeof(*(f)))

static void read_verdict(const struct vc_value *run, const char *key, enum vc_verdict *to)
{
	const char *text = vc_value_text(run, key);
	int v = text ? vc_verdict_by_name(text) : -1;

	if (v >= 0)
		*to = (enum vc_verdict)v;
}

static bool is_true(const struct vc_value *run, const char *key)
{
	const struct vc_value *v = vc_value_get(run, key);

	return v && v->kind == VC_J_TRUE;
}

/* The verdicts and the level: what older versions wrote has the verdict only. */
static void read_trust(const struct vc_value *run, struct vc_result *r)
{
	const char *level = vc_value_text(run, "level");

	if (level)
		r->trust.level = vc_level_by_name(level);
	read_verdict(run, "verdict", &r->trust.verdict);
	read_verdict(run, "verdict_low", &r->trust.low);
	read_verdict(run, "verdict_high", &r->trust.high);
	r->trust.checked = is_true(run, "checked");
	r->trust.reproduced = is_true(run, "reproduced");
	r->stats.cut_short = is_true(run, "cut_short");
}

static int read_text(const struct vc_value *run, const char *key, char **to, struct vc_error *err)
{
	const char *text = vc_value_text(run, key);

	if (text)
		VC_HAVE(*to = strdup(text), "the results", err);
	return VC_OK;
}

/* A number above zero; else 0. */
static double rate_of(const struct vc_value *time, const char *key)
{
	const struct vc_value *v = vc_value_get(time, key);

	return v && v->real > 0 ? v->real : 0;
}

/* How long the run and a step of it take, where it is known. */
static void read_time(const struct vc_value *time, struct vc_result *r)
{
	const struct field fields[] = { { "predicted_ns", &r->stats.predicted_ns },
					{ "step_ns", &r->timing.step_ns } };

	READ_COUNTS(time, fields);
	r->timing.flushes = rate_of(time, "flushes_per_step");
	r->timing.samples = rate_of(time, "samples_per_s") * (double)r->timing.step_ns / 1e9;
}

static int read_moment(const struct vc_value *moment, struct vc_result *r, struct vc_error *err)
{
	struct vc_moment *m = &r->moment;
	const struct field fields[] = {
		{ "event", &m->event }, { "steps", &m->steps },
		{ "elapsed_ns", &m->elapsed_ns }, { "allocated", &m->allocated },
		{ "reserved", &m->reserved }, { "cached", &m->cached },
		{ "stranded", &m->stranded }, { "request", &m->request },
		{ "device_free", &m->free }, { "held_most", &m->bytes },
	};
	const char *what = vc_value_text(moment, "what");
	uint64_t n;

	m->looked = moment != NULL;
	m->at_oom = what && !strcmp(what, "oom");
	m->splits = vc_value_count(vc_value_get(moment, "stranded"), &n);
	r->stats.has_times = vc_value_count(vc_value_get(moment, "elapsed_ns"), &n);
	READ_COUNTS(moment, fields);
	return read_text(moment, "held_most_by", &m->who, err);
}

static int read_interval(const struct vc_value *run, struct vc_result *r, struct vc_error *err)
{
	const struct vc_value *v = vc_value_get(run, "interval");

	if (!v || v->kind != VC_J_ARRAY)
		return VC_OK;
	r->has_interval = vc_value_count(v->first, &r->low) &&
			  vc_value_count(v->first->next, &r->high);
	return r->has_interval ? VC_OK : vc_fail(err, VC_EFORMAT, "an interval is two numbers");
}

static void read_vary(const struct vc_value *vary, struct line *l)
{
	for (const struct vc_value *v = vary ? vary->first : NULL; v && l->n < KEYS; v = v->next) {
		snprintf(l->vary[l->n].key, sizeof(l->vary->key), "%s", v->key);
		snprintf(l->vary[l->n++].value, sizeof(l->vary->value), "%s", v->text);
	}
}

static int read_run(const struct vc_value *run, struct vc_result *r, struct line *l,
		    struct vc_error *err)
{
	struct vc_stats *s = &r->stats;
	const struct field fields[] = {
		{ "capacity", &r->info.capacity }, { "peak_requested", &s->peak_requested },
		{ "peak_allocated", &s->peak_allocated }, { "peak_active", &s->peak_active },
		{ "peak_reserved", &s->peak_reserved }, { "peak_used", &s->peak_used },
		{ "segments_peak", &s->segments_peak }, { "segment_allocs", &s->segment_allocs },
		{ "flushes", &s->flushes }, { "ooms", &s->ooms }, { "peak_event", &s->peak_event },
		{ "lower_bound", &s->lower_bound },
	};

	READ_COUNTS(run, fields);
	read_trust(run, r);
	VC_TRY(read_text(run, "model", &r->info.model, err));
	VC_TRY(read_text(run, "torch", &r->info.torch, err));
	VC_TRY(read_text(run, "conf", &r->info.conf, err));
	VC_TRY(read_text(run, "gpu", &r->info.gpu, err));
	read_time(vc_value_get(run, "time"), r);
	VC_TRY(read_moment(vc_value_get(run, "moment"), r, err));
	VC_TRY(read_interval(run, r, err));
	read_vary(vc_value_get(run, "vary"), l);
	s->events = 1; /* it ran */
	s->allocs = s->peak_requested != 0;
	if (s->peak_used > s->peak_reserved)
		r->info.context = s->peak_used - s->peak_reserved;
	r->trust.used_low = (r->has_interval ? r->low : s->peak_reserved) + r->info.context;
	r->trust.used_high = (r->has_interval ? r->high : s->peak_reserved) + r->info.context;
	r->trust.endless = s->cut_short && r->trust.verdict == VC_UNDECIDED;
	return VC_OK;
}

/* ---- layouts of a job ---- */

/* "tp=2 pp=1 dp=4 micro=1" */
static int read_layout(const struct vc_value *plan, struct vc_result *r, struct vc_error *err)
{
	const struct vc_value *with = vc_value_get(plan, "with");
	char text[200];
	size_t n = 0;
	uint64_t degree;

	for (size_t i = 0; i < VC_LAYOUT_NAMES; i++)
		if (vc_value_count(vc_value_get(plan, vc_layout_names[i]), &degree) && degree > 1)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%llu",
					      n ? " " : "", vc_layout_names[i],
					      (unsigned long long)degree);
	for (const struct vc_value *v = with ? with->first : NULL; v && n < sizeof(text);
	     v = v->next)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%s", n ? " " : "", v->key,
				      v->text);
	r->info.vary = strdup("cards");
	r->info.by = strdup("layout");
	r->info.by_value = strdup(n ? text : "one card");
	VC_HAVE(r->info.vary && r->info.by && r->info.by_value, "the layouts", err);
	return VC_OK;
}

static int read_plan(const struct vc_value *plan, struct vc_result *r, struct vc_error *err)
{
	uint64_t equal = 0;
	struct vc_timing *t = &r->timing;
	const struct field fields[] = { { "peak_used", &r->stats.peak_used },
					{ "step_ns", &t->step_ns }, { "step_low_ns", &t->low_ns },
					{ "step_high_ns", &t->high_ns }, { "equal_ns", &equal } };

	READ_COUNTS(plan, fields);
	read_trust(plan, r);
	r->trust.level = VC_RERUN;
	if (equal && t->step_ns) {
		t->low_ns = vc_muldiv(t->low_ns, equal, t->step_ns);
		t->high_ns = vc_muldiv(t->high_ns, equal, t->step_ns);
		t->step_ns = equal;
	}
	r->stats.events = 1;
	r->stats.peak_reserved = r->trust.used_low = r->trust.used_high = r->stats.peak_used;
	return read_layout(plan, r, err);
}

/* Those that ran. */
static int read_plans(struct lines *all, const struct vc_value *doc, struct vc_error *err)
{
	const struct vc_value *plans = vc_value_get(doc, "plans");
	uint64_t world = 0, capacity = 0;

	vc_value_count(vc_value_get(doc, "world"), &world);
	vc_value_count(vc_value_get(doc, "capacity"), &capacity);
	for (const struct vc_value *v = plans ? plans->first : NULL; v; v = v->next) {
		struct vc_result *r;

		if (!vc_value_text(v, "verdict"))
			continue;
		VC_HAVE(vc_vec_one(all->run, all->n), "the layouts", err);
		VC_HAVE(vc_vec_one(all->line, all->n), "the layouts", err);
		r = &all->run[all->n];
		*r = (struct vc_result){ .info = { .capacity = capacity, .value = (double)world } };
		all->line[all->n++] = (struct line){ .n = 0 };
		VC_TRY(read_text(doc, "gpu", &r->info.gpu, err));
		VC_TRY(read_plan(v, r, err));
	}
	return VC_OK;
}

/* ---- all of them ---- */

static int add_run(struct lines *all, const struct vc_value *run, struct vc_error *err)
{
	if (run->kind != VC_J_OBJECT)
		return vc_fail(err, VC_EFORMAT, "a line is not an object");
	if (!vc_vec_one(all->run, all->n) || !vc_vec_one(all->line, all->n))
		return vc_nomem(err, "the results");
	all->run[all->n] = (struct vc_result){ 0 };
	all->line[all->n] = (struct line){ .n = 0 };
	all->n++;
	return read_run(run, &all->run[all->n - 1], &all->line[all->n - 1], err);
}

/* What sim --json and fit --find plan --json write. */
static int read_document(struct lines *all, struct vc_input *in, struct vc_error *err)
{
	struct vc_value *doc = vc_value_read(in, err);
	const struct vc_value *runs = vc_value_get(doc, "runs");
	int rc = doc ? VC_OK : (int)err->status;

	for (const struct vc_value *v = runs ? runs->first : NULL; v && rc == VC_OK; v = v->next)
		rc = add_run(all, v, err);
	if (rc == VC_OK && !runs)
		rc = read_plans(all, doc, err);
	vc_value_free(doc);
	return rc;
}

static int read_lines(struct lines *all, struct vc_input *in, struct vc_error *err)
{
	size_t cap = 0, n, number = 0;
	char *line = NULL;
	int rc;

	while ((rc = vc_input_line(in, SIZE_MAX / 4, &line, &cap, &n, err)) > 0) {
		struct vc_value *v = n ? vc_value_parse(line, n, err) : NULL;

		number += n != 0;
		rc = v ? add_run(all, v, err) : (int)err->status;
		vc_value_free(v);
		if (rc < 0)
			break;
	}
	free(line);
	return rc < 0 ? vc_wrap(err, "line %zu", number) : rc;
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

int vc_lines_read(const char *path, struct vc_result **result, size_t *n, struct vc_error *err)
{
	struct lines all = { 0 };
	struct vc_input *in = vc_input_open(path, err);
	char head[65];
	int rc = !in ? (int)err->status : has_runs(head_of(in, head)) || has_plans(head) ?
		 read_document(&all, in, err) : read_lines(&all, in, err);

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
