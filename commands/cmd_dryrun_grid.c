/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_grid.c - see cmd_dryrun_grid.h */
#include "commands/cmd_dryrun_grid.h"

#include "commands/grid.h"
#include "commands/sides.h"
#include "commands/stop.h"
#include "commands/tried.h"
#include "common/param.h"

enum { SHOWN = 8, BAR = 24 };
#define ALIKE 0.01 /* a peak that changed by less is nothing to be told */

bool vc_dryrun_is_grid(const struct vc_dryrun_config *c)
{
	return c->package.n || c->conf.n || c->env.n || c->vary.n ||
	       (c->torch && strchr(c->torch, ','));
}

static int add_axes(const struct vc_dryrun_config *c, struct vc_grid *g, struct vc_error *err)
{
	const struct { const struct vc_list *list; enum vc_grid_axis axis; } more[] = {
		{ &c->package, VC_GRID_PACKAGE }, { &c->env, VC_GRID_ENV },
		{ &c->vary, VC_GRID_VARY } };
	char text[1024];

	snprintf(text, sizeof(text), "torch=%s", c->torch ? c->torch : "");
	if (c->torch)
		VC_TRY(vc_grid_add(g, VC_GRID_TORCH, text, err));
	if (c->conf.n)
		VC_TRY(vc_grid_add_words(g, VC_GRID_CONF, "conf", &c->conf, err));
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		for (size_t k = 0; k < more[i].list->n; k++)
			VC_TRY(vc_grid_add(g, more[i].axis, more[i].list->at[k], err));
	return VC_OK;
}

/* ---- rows ---- */

static bool ran(const struct vc_grid *g, size_t i)
{
	return !g->at[i].why[0];
}

static bool is_curve(const struct vc_grid *g)
{
	double x;

	return g->vary.keys == 1 && g->axis[0] == VC_GRID_VARY && g->vary.runs > 1 &&
	       vc_parse_real(g->vary.key[0].value[0], &x, NULL) == 0;
}

static void emit_bar(struct vc_emit *e, const struct vc_grid *g, size_t i)
{
	char bar[BAR + 1] = "";
	uint64_t most = 1;

	for (size_t k = 0; k < g->vary.runs; k++)
		most = ran(g, k) && g->at[k].kept.reserved > most ? g->at[k].kept.reserved : most;
	memset(bar, '#', (size_t)(g->at[i].kept.reserved * BAR / most));
	vc_emit_text(e, NULL, "", bar);
}

static void emit_row(struct vc_emit *e, const struct vc_grid *g, size_t i)
{
	const struct vc_kept *k = &g->at[i].kept;
	const struct { const char *key, *label; uint64_t bytes; } peak[] = {
		{ "peak_requested", "requested", k->requested },
		{ "peak_allocated", "allocated", k->allocated },
		{ "peak_reserved", "reserved", k->reserved },
		{ "workspace", "workspace", k->workspace } };
	char id[9];

	vc_emit_object(e, NULL, NULL);
	vc_emit_object(e, "with", NULL);
	for (size_t a = 0; a < g->vary.keys; a++)
		vc_emit_text(e, g->vary.key[a].name, NULL, vc_vary_value(&g->vary, i, a));
	vc_emit_end(e);
	for (size_t a = 0; a < g->vary.keys; a++) {
		const char *value = vc_vary_value(&g->vary, i, a);

		vc_emit_text(e, NULL, g->vary.key[a].name, *value ? value : "(none)");
	}
	for (size_t p = 0; p < sizeof(peak) / sizeof(*peak); p++)
		if (ran(g, i))
			vc_emit_bytes(e, peak[p].key, peak[p].label, peak[p].bytes);
		else
			vc_emit_text(e, NULL, peak[p].label, "-");
	vc_emit_text(e, "verdict", "verdict", ran(g, i) ? k->verdict : "did not run");
	snprintf(id, sizeof(id), "%.8s", k->id);
	vc_emit_text(e, NULL, "run", ran(g, i) ? id : "");
	if (ran(g, i)) {
		vc_emit_bytes(e, "peak_used", NULL, k->used);
		vc_emit_text(e, "run", NULL, k->id);
		vc_emit_text(e, "trace", NULL, k->path);
		vc_emit_bool(e, "reused", NULL, k->reused);
		if (is_curve(g))
			emit_bar(e, g, i);
	} else {
		vc_emit_text(e, "why", NULL, g->at[i].why);
	}
	vc_emit_end(e);
}

static bool fits(const struct vc_kept *k)
{
	return strcmp(k->verdict, "oom") != 0;
}

/* No assumption that peaks grow with the value. */
static void emit_best(struct vc_emit *e, const struct vc_grid *g)
{
	const char *largest = NULL, *least = NULL;
	uint64_t bytes = UINT64_MAX;
	double most = 0, x;
	char t[32];

	for (size_t i = 0; i < g->vary.runs; i++) {
		const struct vc_kept *k = &g->at[i].kept;
		const char *value = vc_vary_value(&g->vary, i, 0);

		if (!ran(g, i) || vc_parse_real(value, &x, NULL) < 0)
			continue;
		if (fits(k) && (!largest || x > most)) {
			largest = value;
			most = x;
		}
		if (k->reserved < bytes) {
			least = value;
			bytes = k->reserved;
		}
	}
	vc_emit_text(e, "largest_that_fits", NULL, largest);
	vc_emit_text(e, "least_memory", NULL, least);
	if (least)
		vc_emit_line(e, "\nthe largest that fits: %s=%s; the least memory: %s=%s (%s)",
			     g->vary.key[0].name, largest ? largest : "none",
			     g->vary.key[0].name, least, vc_bytes_text(bytes, t));
}

/* ---- what grew ---- */

struct pair { size_t from, to; uint64_t change; };

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool is_alike(const struct vc_kept *a, const struct vc_kept *b)
{
	return (double)apart(a->reserved, b->reserved) < ALIKE * (double)a->reserved &&
	       (double)apart(a->allocated, b->allocated) < ALIKE * (double)a->allocated;
}

static size_t first_axis(const struct vc_grid *g)
{
	size_t axis = 0;

	while (axis < g->vary.keys && g->vary.key[axis].n < 2)
		axis++;
	return axis;
}

/* Neighbours along the first axis with several values, all else the same. Returns how many. */
static size_t find_pairs(const struct vc_grid *g, struct pair *out, size_t *alike)
{
	size_t axis = first_axis(g), stride = 1, n = 0;

	*alike = 0;
	for (size_t k = axis + 1; k < g->vary.keys; k++)
		stride *= g->vary.key[k].n;
	for (size_t i = 0; axis < g->vary.keys && i + stride < g->vary.runs; i++) {
		const struct vc_kept *a = &g->at[i].kept, *b = &g->at[i + stride].kept;

		if (i / stride % g->vary.key[axis].n == g->vary.key[axis].n - 1 || !ran(g, i) ||
		    !ran(g, i + stride))
			continue;
		if (is_alike(a, b))
			(*alike)++;
		else
			out[n++] = (struct pair){ i, i + stride,
						  apart(a->reserved, b->reserved) +
							  apart(a->allocated, b->allocated) };
	}
	return n;
}

/* Of many the largest changes. */
static bool is_shown(const struct pair *p, size_t n, size_t i)
{
	size_t larger = 0;

	for (size_t k = 0; k < n; k++)
		larger += p[k].change > p[i].change || (p[k].change == p[i].change && k < i);
	return larger < SHOWN;
}

static void emit_change(struct vc_emit *e, const struct vc_grid *g, const struct pair *p,
			const char *words)
{
	const struct vc_kept *a = &g->at[p->from].kept, *b = &g->at[p->to].kept;
	char from[240], to[240], ta[32], tb[32];

	vc_grid_name(g, p->from, from, sizeof(from));
	vc_grid_name(g, p->to, to, sizeof(to));
	vc_emit_text(e, "from", NULL, from);
	vc_emit_text(e, "to", NULL, to);
	vc_emit_text(e, "a", NULL, a->id);
	vc_emit_text(e, "b", NULL, b->id);
	vc_emit_int(e, "reserved_change", NULL, (int64_t)(b->reserved - a->reserved));
	vc_emit_int(e, "allocated_change", NULL, (int64_t)(b->allocated - a->allocated));
	vc_emit_text(e, "words", NULL, words);
	vc_emit_line(e, "\nfrom %s to %s: %s -> %s reserved (%+.1f %%)", from, to,
		     vc_bytes_text(a->reserved, ta), vc_bytes_text(b->reserved, tb),
		     a->reserved ? 100 * ((double)b->reserved / (double)a->reserved - 1) : 0);
	if (words[0])
		vc_emit_line(e, "  %s", words);
}

/* More memory for a larger value, or with settings of the allocator, is nothing to mend. */
static int try_advice(struct vc_advised *t, const struct vc_grid *g, const struct pair *p,
		      const struct vc_two *two, struct vc_error *err)
{
	enum vc_grid_axis axis = g->axis[first_axis(g)];

	if (axis == VC_GRID_VARY || axis == VC_GRID_CONF)
		return VC_OK;
	return vc_advised_try(t, g, p->to, g->at[p->from].kept.reserved, &g->at[p->to].kept,
			     two, err);
}

/* The tables of a diff are for programs; people type one. */
static void emit_two(struct vc_emit *e, const struct vc_grid *g, const struct pair *p,
		     const struct vc_two *two, const struct vc_advised *tries, bool json)
{
	char from[240], to[240], words[VC_SIDES_WORDS];
	const char *const name[2] = { vc_grid_name(g, p->from, from, sizeof(from)),
				      vc_grid_name(g, p->to, to, sizeof(to)) };

	vc_sides_words(two->x, &two->d, &two->grew, name, words, sizeof(words));
	if (json)
		vc_emit_object(e, NULL, NULL);
	emit_change(e, g, p, words);
	vc_advised_emit(e, tries);
	vc_sides_say_first(e, two->x, &two->d);
	vc_emit_line(e, "all of it: vramcast diff %.8s %.8s", g->at[p->from].kept.id,
		     g->at[p->to].kept.id);
	if (!json)
		return;
	vc_sides_emit_first(e, two->x, &two->d);
	vc_grew_emit(e, &two->grew);
	vc_emit_end(e);
}

static int say_change(struct vc_emit *e, const struct vc_grid *g, const struct pair *p, bool json,
		      struct vc_error *err)
{
	struct vc_two two;
	struct vc_advised tries = { .n = 0 };
	int r = vc_two_open(&two, g->at[p->from].kept.path, g->at[p->to].kept.path, err);

	if (r == VC_OK)
		r = try_advice(&tries, g, p, &two, err);
	if (r == VC_OK)
		emit_two(e, g, p, &two, &tries, json);
	vc_two_close(&two);
	return r;
}

static int say_changes(struct vc_emit *e, const struct vc_grid *g, bool json,
		       struct vc_error *err)
{
	struct pair *p = calloc(g->vary.runs, sizeof(*p));
	size_t alike, n, told = 0;
	int r = VC_OK;

	VC_HAVE(p, "what grew", err);
	n = find_pairs(g, p, &alike);
	if (json)
		vc_emit_array(e, "changes", NULL);
	for (size_t i = 0; i < n && r == VC_OK; i++)
		if (is_shown(p, n, i)) {
			r = say_change(e, g, &p[i], json, err);
			told++;
		}
	if (json)
		vc_emit_end(e);
	vc_emit_uint(e, "alike", NULL, alike);
	if (alike || n > told)
		vc_emit_line(e, "\n%zu neighbours differ by less than %.0f %%%s", alike,
			     100 * ALIKE,
			     n > told ? "; of the others the largest changes are told" : "");
	free(p);
	return r;
}

static int say(const struct vc_grid *g, bool json, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(json, err);
	int r;

	if (!e)
		return (int)err->status;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.grid/1");
	vc_emit_text(e, "gpu", NULL, g->card);
	vc_emit_array(e, "runs", "");
	for (size_t i = 0; i < g->vary.runs; i++)
		emit_row(e, g, i);
	vc_emit_end(e);
	for (size_t i = 0; i < g->vary.runs; i++)
		if (!ran(g, i))
			vc_emit_line(e, "  %s", g->at[i].why);
	if (is_curve(g))
		emit_best(e, g);
	r = say_changes(e, g, json, err);
	vc_emit_end(e);
	if (r == VC_OK)
		return vc_emit_done(e, err);
	vc_emit_drop(e);
	return r;
}

static int code_of(const struct vc_grid *g, bool verdict)
{
	int code = 0;

	for (size_t i = 0; i < g->vary.runs; i++)
		if (!ran(g, i))
			return 1;
		else if (verdict && !fits(&g->at[i].kept))
			code = 3;
	return code;
}

int vc_dryrun_grid(const struct vc_dryrun_config *c, size_t argc, char **argv,
		   struct vc_console *con)
{
	struct vc_dryrun_config plain = *c; /* what each run of it is */
	struct vc_program *p = NULL;
	char capacity[24];
	struct vc_grid g = { .card = c->gpus.at[0], .again = c->again, .con = con,
			     .jobs = c->jobs ? (size_t)c->jobs : 2,
			     .capacity = c->capacity == VC_NOT_GIVEN ? NULL : capacity };
	int r;

	if (c->gpus.n > 1)
		return vc_fail(&con->err, VC_EUSAGE,
			       "several runs play one card: name one with -g");
	snprintf(capacity, sizeof(capacity), "%" PRIu64, c->capacity);
	plain.torch = NULL;
	r = add_axes(c, &g, &con->err);
	if (r == VC_OK)
		r = vc_dryrun_program(&plain, argc, argv, &p, &con->err);
	g.program = p;
	if (r == VC_OK)
		r = vc_grid_prepare(&g, p->interpreter, &con->err);
	vc_stop_guard(NULL);
	if (r == VC_OK)
		r = vc_grid_run(&g, &con->err);
	if (r == VC_OK)
		r = say(&g, c->json, &con->err);
	if (r == VC_OK)
		r = code_of(&g, !strcmp(c->exit_code, "verdict"));
	vc_grid_fini(&g);
	vc_program_free(p);
	return r;
}
