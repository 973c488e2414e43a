/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - see emit.h. Values become text once; JSON prints them at once, people's tables and CSV
 * collect cells first (cells.h). */
#include "common/emit.h"

#include <stdarg.h>

#include "common/cells.h"
#include "common/json.h"
#include "common/utf8.h"
#include "common/vec.h"

#define MAX_DEPTH 32

enum shape { OBJECT, ARRAY, ROWS /* array of objects shown as lines */, ROW };

struct level { enum shape shape; bool hidden, any; const char *key; };

struct vc_emit {
	const char *color; /* of the next line, or NULL; lent */
	struct vc_output *out;
	enum vc_emit_mode mode;
	struct level level[MAX_DEPTH];
	int depth;
	struct vc_cells c;                    /* the group or table being collected */
	char *scalars; size_t scalars_len;    /* people: an array of plain values */
	bool nomem, csv_done, unknown;
};

struct vc_emit *vc_emit_new(struct vc_output *out, enum vc_emit_mode mode, struct vc_error *err)
{
	struct vc_emit *e = calloc(1, sizeof(*e));

	if (!e) {
		vc_nomem(err, "the report");
		return NULL;
	}
	e->out = out;
	e->mode = mode;
	e->c = (struct vc_cells){ .out = out, .csv = mode == VC_EMIT_CSV };
	return e;
}

void vc_emit_markdown(struct vc_emit *e)
{
	e->c.markdown = true;
}

static bool is_json(const struct vc_emit *e)
{
	return e->mode == VC_EMIT_JSON || e->mode == VC_EMIT_JSONL;
}

static struct level *top(struct vc_emit *e)
{
	return e->depth ? &e->level[e->depth - 1] : NULL;
}

/* ---- JSON ---- */

static void json_string(struct vc_emit *e, const char *s)
{
	vc_json_quote(e->out, s, strlen(s));
}

static void json_break(struct vc_emit *e)
{
	if (e->mode != VC_EMIT_JSON)
		return;
	vc_output_text(e->out, "\n");
	for (int i = 0; i < e->depth; i++)
		vc_output_text(e->out, "  ");
}

static void json_lead(struct vc_emit *e, const char *key)
{
	struct level *l = top(e);

	if (l) {
		if (l->any)
			vc_output_text(e->out, ",");
		l->any = true;
		json_break(e);
	}
	if (l && l->shape == OBJECT && key) {
		json_string(e, key);
		vc_output_text(e->out, e->mode == VC_EMIT_JSON ? ": " : ":");
	}
}

static void json_open(struct vc_emit *e, const char *key, enum shape shape)
{
	json_lead(e, key);
	vc_output_text(e->out, shape == OBJECT ? "{" : "[");
}

/* ---- structure ---- */

static void heading(struct vc_emit *e, const char *label)
{
	vc_cells_group(&e->c);
	if (*label)
		vc_output_printf(e->out, "%s%s\n", e->depth && label[0] != ' ' ? "\n" : "", label);
}

static void push(struct vc_emit *e, enum shape shape, const char *key, bool hidden)
{
	if (e->depth < MAX_DEPTH)
		e->level[e->depth++] =
			(struct level){ .shape = shape, .key = key, .hidden = hidden };
}

void vc_emit_object(struct vc_emit *e, const char *key, const char *label)
{
	struct level *l = top(e);

	if (is_json(e)) {
		json_open(e, key, OBJECT);
		push(e, OBJECT, key, false);
		return;
	}
	if (l && l->shape == ROWS) {
		if (!l->any && !l->hidden && e->mode == VC_EMIT_TEXT)
			vc_cells_group(&e->c); /* what was said before the table stands before it */
		l->any = true;
		push(e, ROW, key, l->hidden);
		return;
	}
	if (e->mode == VC_EMIT_TEXT && label && !(l && (l->hidden || l->shape == ROW)))
		heading(e, label);
	push(e, l && l->shape == ROW ? ROW : OBJECT, key,
	     l && (l->hidden || !label || l->shape == ROW));
}

void vc_emit_array(struct vc_emit *e, const char *key, const char *label)
{
	struct level *l = top(e);
	bool hidden = l && (l->hidden || l->shape == ROW || (e->mode == VC_EMIT_TEXT && !label));

	if (is_json(e)) {
		json_open(e, key, ARRAY);
		push(e, ARRAY, key, false);
		return;
	}
	if (e->mode == VC_EMIT_CSV)
		hidden = e->csv_done || e->depth > 1;
	push(e, ROWS, label ? label : key, hidden);
}

static void end_rows(struct vc_emit *e, const struct level *l)
{
	if (l->hidden)
		return;
	if (e->scalars) { /* it was an array of plain values after all */
		vc_cells_add(&e->c, l->key ? l->key : "", e->scalars, false);
		free(e->scalars);
		e->scalars = NULL;
		e->scalars_len = 0;
		return;
	}
	if (!e->c.rows)
		return;
	if (e->mode == VC_EMIT_TEXT && l->key && *l->key)
		vc_output_printf(e->out, "\n%s\n", l->key);
	vc_cells_table(&e->c);
	e->csv_done = true;
}

void vc_emit_end(struct vc_emit *e)
{
	struct level l;

	if (!e->depth)
		return;
	l = e->level[--e->depth];
	if (is_json(e)) {
		if (l.any)
			json_break(e);
		vc_output_text(e->out, l.shape == OBJECT ? "}" : "]");
		if (!e->depth)
			vc_output_text(e->out, "\n");
		return;
	}
	if (l.shape == ROWS)
		end_rows(e, &l);
	else if (l.shape == ROW && top(e) && top(e)->shape == ROWS && !l.hidden)
		e->c.rows++;
	else if (l.shape == OBJECT && !l.hidden && e->mode == VC_EMIT_TEXT)
		vc_cells_group(&e->c);
}

/* ---- values ---- */

static void add_scalar(struct vc_emit *e, const char *text)
{
	size_t n = strlen(text), lead = e->scalars ? 2 : 0;
	char *s = realloc(e->scalars, e->scalars_len + lead + n + 1);

	if (!s) {
		e->nomem = true;
		return;
	}
	memcpy(s + e->scalars_len, ", ", lead);
	memcpy(s + e->scalars_len + lead, text, n + 1);
	e->scalars = s;
	e->scalars_len += lead + n;
}

/* raw: for programs; text: for people. */
static void value(struct vc_emit *e, const char *const name[2], const char *raw, const char *text,
		  bool number)
{
	struct level *l = top(e);
	bool csv = e->mode == VC_EMIT_CSV;
	const char *head = csv ? name[0] : name[1];

	if (e->unknown) {
		raw = is_json(e) ? "null" : "";
		text = "-";
		number = e->unknown = false;
	}
	if (is_json(e)) {
		if (!name[0] && l && l->shape == OBJECT)
			return;
		json_lead(e, name[0]);
		vc_output_text(e->out, raw);
		return;
	}
	if (!l || l->hidden)
		return;
	if (l->shape == ROWS) {
		add_scalar(e, text);
		return;
	}
	if (!head || (csv && l->shape != ROW))
		return;
	vc_cells_add(&e->c, head, csv ? raw : text, number);
}

#define VALUE(raw, text, number) value(e, (const char *const[]){ key, label }, raw, text, number)

void vc_emit_uint(struct vc_emit *e, const char *key, const char *label, uint64_t v)
{
	char raw[32], text[40];
	size_t n = (size_t)snprintf(raw, sizeof(raw), "%" PRIu64, v), k = 0;

	for (size_t i = 0; i < n; i++) { /* 27,358 reads better than 27358 */
		if (i && (n - i) % 3 == 0)
			text[k++] = ',';
		text[k++] = raw[i];
	}
	text[k] = '\0';
	VALUE(raw, text, true);
}

void vc_emit_between(struct vc_emit *e, const char *key, const char *label, const uint64_t v[3])
{
	static const char *const end[] = { "_low", "", "_high" };
	char text[96], k[48];

	for (int i = 0; i < 3; i++) {
		snprintf(k, sizeof(k), "%s%s", key, end[i]);
		vc_emit_uint(e, k, NULL, v[i]);
	}
	if (v[0] == v[2])
		snprintf(text, sizeof(text), "%" PRIu64, v[1]);
	else
		snprintf(text, sizeof(text), "%" PRIu64 " (%" PRIu64 " .. %" PRIu64 ")", v[1], v[0],
			 v[2]);
	vc_emit_text(e, NULL, label, text);
}

void vc_emit_int(struct vc_emit *e, const char *key, const char *label, int64_t v)
{
	char raw[32];

	snprintf(raw, sizeof(raw), "%" PRId64, v);
	VALUE(raw, raw, true);
}

void vc_emit_bytes(struct vc_emit *e, const char *key, const char *label, uint64_t v)
{
	char raw[32], text[32];

	snprintf(raw, sizeof(raw), "%" PRIu64, v);
	VALUE(raw, vc_bytes_text(v, text), true);
}

void vc_emit_ns(struct vc_emit *e, const char *key, const char *label, uint64_t v)
{
	char raw[32], text[32];

	snprintf(raw, sizeof(raw), "%" PRIu64, v);
	VALUE(raw, vc_ns_text(v, text), true);
}

void vc_emit_real(struct vc_emit *e, const char *key, const char *label, double v)
{
	char raw[40], text[40];

	if (!isfinite(v)) {
		vc_emit_null(e, key, label);
		return;
	}
	snprintf(raw, sizeof(raw), "%.10g", v);
	snprintf(text, sizeof(text), "%.4g", v);
	VALUE(raw, text, true);
}

void vc_emit_bool(struct vc_emit *e, const char *key, const char *label, bool v)
{
	VALUE(v ? "true" : "false", v ? "yes" : "no", false);
}

void vc_emit_null(struct vc_emit *e, const char *key, const char *label)
{
	e->unknown = true;
	VALUE("", "", false);
}

struct vc_emit *vc_emit_known(struct vc_emit *e, bool known)
{
	e->unknown = !known;
	return e;
}

void vc_emit_text(struct vc_emit *e, const char *key, const char *label, const char *v)
{
	if (!v || e->unknown) {
		vc_emit_null(e, key, label);
	} else if (is_json(e)) {
		if (!key && top(e) && top(e)->shape == OBJECT)
			return;
		json_lead(e, key);
		json_string(e, v);
	} else {
		VALUE(v, v, false);
	}
}

void vc_emit_line(struct vc_emit *e, const char *fmt, ...)
{
	const char *color = e->color ? e->color : "";
	char line[4096];
	va_list ap;

	if (e->mode != VC_EMIT_TEXT || (top(e) && top(e)->hidden))
		return;
	vc_cells_group(&e->c);
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (e->c.markdown) { /* a paragraph, or what stands indented below one */
		vc_output_text(e->out, *line == ' ' ? "- " : "\n");
		vc_cells_marked(&e->c, line + (*line == '\n'));
		vc_output_text(e->out, "\n");
		return;
	}
	vc_output_printf(e->out, *color ? "\033[%s%s%s\033[0m\n" : "%s%s%s\n", color,
			 *color ? "m" : "", vc_utf8_plain(line));
	e->color = NULL;
}

void vc_emit_color(struct vc_emit *e, const char *color)
{
	e->color = color;
}

int vc_emit_finish(struct vc_emit *e, struct vc_error *err)
{
	int r;

	while (e->depth)
		vc_emit_end(e);
	vc_cells_group(&e->c);
	r = e->nomem || e->c.nomem ? vc_nomem(err, "the report") : VC_OK;
	VC_FREE(e->scalars, e->c.cell, e);
	return r;
}

struct vc_emit *vc_emit_file(const char *path, enum vc_emit_mode mode, struct vc_error *err)
{
	struct vc_output *out = path ? vc_output_open(path, err) : vc_output_memory(err);
	struct vc_emit *e = out ? vc_emit_new(out, mode, err) : NULL;

	if (!e)
		vc_output_close(out);
	return e;
}

struct vc_emit *vc_emit_stdout(bool json, struct vc_error *err)
{
	return vc_emit_file("-", json ? VC_EMIT_JSON : VC_EMIT_TEXT, err);
}

int vc_emit_done(struct vc_emit *e, struct vc_error *err)
{
	struct vc_output *out = e->out;
	int r = vc_emit_finish(e, err);

	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

char *vc_emit_take(struct vc_emit *e, size_t *n, struct vc_error *err)
{
	struct vc_output *out = e->out;
	char *text = vc_emit_finish(e, err) < 0 ? NULL : vc_output_take(out, n);

	if (!text)
		vc_nomem(err, "the report");
	vc_output_close(out);
	return text;
}

void vc_emit_drop(struct vc_emit *e)
{
	struct vc_output *out = e->out;

	vc_emit_finish(e, NULL);
	vc_output_close(out);
}

char *vc_bytes_text(uint64_t bytes, char *buf)
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	int u = 0;

	while (v >= 1024 && u < 6) {
		v /= 1024;
		u++;
	}
	if (!u)
		snprintf(buf, 32, "%" PRIu64 " bytes", bytes);
	else
		snprintf(buf, 32, "%.2f %s", v, unit[u]);
	return buf;
}

char *vc_ns_text(uint64_t ns, char *buf)
{
	if (ns < 1000)
		snprintf(buf, 32, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(buf, 32, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, 32, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, 32, "%.2f s", (double)ns / 1e9);
	return buf;
}
