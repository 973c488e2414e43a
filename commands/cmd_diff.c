/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - vramcast diff: two recordings side by side. */

#include "commands/kept_run.h"
#include "commands/sides.h"
#include "common/param.h"
#include "simulator/findings/findings.h"
#include "simulator/advise/report.h"

struct config {
	bool json, markdown, verify;
	uint64_t device, sites;
	const char *fail_above, *output, *theme, *width;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option diff_options[] = {
	{ 'o', "output", VC_O_FILE, AT(output), "FILE",
	  "draw it as well: .svg; .png and .pdf through rsvg-convert", NULL },
	{ 0, "theme", VC_O_TEXT, AT(theme), "NAME", "of the picture: auto, light, dark or print",
	  NULL },
	{ 0, "width", VC_O_TEXT, AT(width), "PIXELS", "of the picture", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document (vramcast.diff/1)", NULL },
	{ 0, "as", VC_O_AS, 0, "table|json|markdown", "markdown: tables for a pull request", NULL },
	{ 0, "markdown", VC_O_FLAG, AT(markdown), NULL, NULL, NULL },
	{ 0, "device", VC_O_UINT, AT(device), "N",
	  "which device of both (default: the one that ran out, or the fullest)", NULL },
	{ 0, "sites", VC_O_UINT, AT(sites), "N", "most call sites to list (0: all)", "12" },
	{ 0, "fail-above", VC_O_TEXT, AT(fail_above), "P%|SIZE",
	  "exit 4 when B reserves more than that above A at its peak", NULL },
	{ 0, "no-verify", VC_O_NOT, AT(verify), NULL,
	  "do not replay the recordings to find out which version made them", NULL },
	VC_OPTION_END
};

/* ---- JSON ---- */

static void json_side(struct vc_emit *e, const struct vc_side *x, int k)
{
	vc_emit_object(e, k ? "b" : "a", NULL);
	vc_report_trace(e, &x->s, x->plan, &x->run);
	vc_report_fidelity(e, &x->s);
	vc_emit_object(e, "run", NULL);
	vc_report_run(e, &x->s, x->plan, &x->run);
	vc_emit_end(e);
	vc_emit_end(e);
}

static bool is_same(const struct vc_diff *d)
{
	return d->first == VC_DIFF_NONE;
}

static const char *words_of(const struct vc_side x[2], const struct vc_diff *d,
			    const struct vc_grew *g, char words[VC_SIDES_WORDS])
{
	const char *const name[2] = { "A", "B" };

	return vc_sides_words(x, d, g, name, words, VC_SIDES_WORDS);
}

static void emit_json(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d,
		      const struct vc_grew *g, size_t sites)
{
	char words[VC_SIDES_WORDS];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.diff/1");
	json_side(e, &x[0], 0);
	json_side(e, &x[1], 1);
	vc_emit_text(e, "words", NULL, words_of(x, d, g, words));
	vc_emit_bool(e, "same_requests", NULL, is_same(d));
	vc_emit_object(e, "alignment", NULL);
	vc_emit_bool(e, "by_call_site", NULL, d->by_site);
	vc_sides_emit(e, "allocs", d->allocs);
	vc_sides_emit(e, "bytes", d->bytes);
	vc_emit_uint(e, "same", NULL, d->same);
	vc_emit_uint(e, "other_life", NULL, d->relived);
	vc_emit_uint(e, "other_size", NULL, d->resized);
	vc_emit_int(e, "other_size_bytes", NULL, d->resized_bytes);
	vc_emit_uint(e, "other_stream", NULL, d->restreamed);
	vc_sides_emit(e, "only", d->only);
	vc_sides_emit(e, "only_bytes", d->only_bytes);
	vc_emit_end(e);
	vc_sides_emit_first(e, x, d);
	vc_emit_array(e, "sites", NULL);
	for (size_t i = 0; i < sites; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "site", NULL, d->at[i].site);
		vc_sides_emit(e, "asked", d->at[i].asked);
		vc_sides_emit(e, "blocks", d->at[i].blocks);
		vc_sides_emit(e, "live_at_peak", d->at[i].live);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_grew_emit(e, g);
	vc_emit_end(e);
}

/* ---- the threshold ---- */

struct limit { const char *text; double share; uint64_t bytes; };

static int limit_of(const char *text, struct limit *l, struct vc_error *err)
{
	*l = (struct limit){ .text = text };
	if (text && vc_parse_share(text, &l->share, &l->bytes, err) < 0)
		return vc_wrap(err, "--fail-above");
	return VC_OK;
}

static uint64_t allowed(const struct limit *l, uint64_t a)
{
	return a + l->bytes + (uint64_t)((double)a * l->share / 100);
}

static bool is_above(const struct limit *l, uint64_t a, uint64_t b)
{
	return l->text && b > allowed(l, a);
}

/* ---- for people ---- */

static void row_text(struct vc_emit *e, const char *what, const char *a, const char *b)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, NULL, "what", what);
	vc_emit_text(e, NULL, "A", a);
	vc_emit_text(e, NULL, "B", b);
	vc_emit_text(e, NULL, "change", strcmp(a, b) ? "differs" : "");
	vc_emit_end(e);
}

/* "+1.25 GiB", "" when nothing changed. */
static const char *change_text(uint64_t a, uint64_t b, bool bytes, char buf[40])
{
	uint64_t d = a < b ? b - a : a - b;
	char t[32];

	if (bytes)
		snprintf(buf, 40, "%s%s", a < b ? "+" : "-", vc_bytes_text(d, t));
	else
		snprintf(buf, 40, "%s%" PRIu64, a < b ? "+" : "-", d);
	if (!d)
		buf[0] = '\0';
	return buf;
}

static void row(struct vc_emit *e, const char *what, uint64_t a, uint64_t b, bool bytes)
{
	char text[40];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, NULL, "what", what);
	if (bytes) {
		vc_emit_bytes(e, NULL, "A", a);
		vc_emit_bytes(e, NULL, "B", b);
	} else {
		vc_emit_uint(e, NULL, "A", a);
		vc_emit_uint(e, NULL, "B", b);
	}
	vc_emit_text(e, NULL, "change", change_text(a, b, bytes, text));
	vc_emit_end(e);
}

static const char *conf_of(const struct vc_side *x)
{
	return x->s.rec->meta->conf && *x->s.rec->meta->conf ? x->s.rec->meta->conf : "default";
}

static const char *gpu_of(const struct vc_side *x)
{
	return x->s.rec->meta->devices && x->s.rec->meta->device[0].name ?
		       x->s.rec->meta->device[0].name :
		       "unknown";
}

static const char *params_of(const struct vc_side *x, char buf[128])
{
	size_t n = 0;

	snprintf(buf, 128, "none");
	for (size_t i = 0; i < x->s.rec->meta->params && n < 120; i++)
		n += (size_t)snprintf(buf + n, 128 - n, "%s%s=%.15g", n ? "," : "",
				      x->s.rec->meta->param[i].name,
				      x->s.rec->meta->param[i].value);
	return buf;
}

static const char *trust_of(const struct vc_side *x)
{
	return !x->s.rec->fidelity.checked ? "not checked" :
	       x->s.rec->fidelity.exact    ? "exact" :
					     "not exact";
}

static void say_sides(struct vc_emit *e, const struct vc_side x[2])
{
	const struct vc_stats *a = &x[0].run.stats, *b = &x[1].run.stats;
	char p[128], q[128];

	vc_emit_array(e, NULL, "");
	row_text(e, "torch", x[0].s.rec->torch, x[1].s.rec->torch);
	row_text(e, "settings", conf_of(&x[0]), conf_of(&x[1]));
	row_text(e, "card", gpu_of(&x[0]), gpu_of(&x[1]));
	row_text(e, "recorded with", params_of(&x[0], p), params_of(&x[1], q));
	row_text(e, "replays", trust_of(&x[0]), trust_of(&x[1]));
	row(e, "blocks before", x[0].s.rec->device->preexisting, x[1].s.rec->device->preexisting,
	    false);
	row(e, "allocations", x[0].s.rec->device->allocs, x[1].s.rec->device->allocs, false);
	row(e, "peak requested", a->peak_requested, b->peak_requested, true);
	row(e, "peak allocated", a->peak_allocated, b->peak_allocated, true);
	row(e, "peak reserved", a->peak_reserved, b->peak_reserved, true);
	row(e, "  not in use then", a->stranded_at_peak, b->stranded_at_peak, true);
	row(e, "segments fetched", a->segment_allocs, b->segment_allocs, false);
	row(e, "cache flushes", a->flushes, b->flushes, false);
	vc_emit_end(e);
}

static void say_alignment(struct vc_emit *e, const struct vc_diff *d)
{
	char t[32];

	if (is_same(d)) {
		vc_emit_line(e, "\nThe requests are the same: %" PRIu64
			     " allocations, each of the same size, stream and life.",
			     d->same);
		return;
	}
	vc_emit_line(e, "\n%" PRIu64 " allocations are the same in both%s", d->same,
		     d->by_site ? "" :
			     " (matched by size alone: the call sites have nothing in common)");
	if (d->relived)
		vc_emit_line(e, "  of them live longer or shorter: %" PRIu64, d->relived);
	if (d->resized)
		vc_emit_line(e, "  of another size: %" PRIu64 " (B has %s%s)", d->resized,
			     d->resized_bytes < 0 ? "-" : "+",
			     vc_bytes_text((uint64_t)llabs(d->resized_bytes), t));
	if (d->restreamed)
		vc_emit_line(e, "  on another stream: %" PRIu64, d->restreamed);
	for (int k = 0; k < 2; k++)
		if (d->only[k])
			vc_emit_line(e, "  only in %s: %" PRIu64 " (%s)", k ? "B" : "A", d->only[k],
				     vc_bytes_text(d->only_bytes[k], t));
}

static bool has_changed(const struct vc_diff_site *s)
{
	return s->asked[0] != s->asked[1] || s->live[0] != s->live[1] ||
	       s->blocks[0] != s->blocks[1];
}

/* One line that says it all, and why it is too much. */
static void conclude(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d,
		     const struct limit *l)
{
	uint64_t a = x[0].run.stats.peak_reserved, b = x[1].run.stats.peak_reserved;
	char to[32], text[VC_SAY];

	vc_change_text(&x[0].run, &x[1].run, d, VC_TERMINAL, text, sizeof(text));
	vc_emit_line(e, "%s", text);
	if (is_above(l, a, b))
		vc_emit_line(e, "  over the threshold: --fail-above %s allows %s", l->text,
			     vc_bytes_text(allowed(l, a), to));
}

static void emit_text(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d,
		      const struct vc_grew *g, size_t sites, const struct limit *l)
{
	char t[40], words[VC_SIDES_WORDS];

	conclude(e, x, d, l);
	if (g->convs) /* who computes them is in no table */
		vc_emit_line(e, "  %s", words_of(x, d, g, words));
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, NULL, "A", x[0].s.rec->path);
	vc_emit_text(e, NULL, "B", x[1].s.rec->path);
	say_sides(e, x);
	vc_emit_end(e);
	say_alignment(e, d);
	vc_sides_say_first(e, x, d);
	vc_grew_emit(e, g);
	vc_emit_array(e, NULL, "Bytes at the peak by call site, the largest changes first:");
	for (size_t i = 0; i < sites && has_changed(&d->at[i]); i++) {
		const struct vc_diff_site *s = &d->at[i];

		vc_emit_object(e, NULL, NULL);
		vc_emit_bytes(e, NULL, "A", s->live[0]);
		vc_emit_bytes(e, NULL, "B", s->live[1]);
		vc_emit_text(e, NULL, "change", change_text(s->live[0], s->live[1], true, t));
		vc_emit_text(e, NULL, "asked for", change_text(s->asked[0], s->asked[1], true, t));
		vc_emit_text(e, NULL, "where", s->site);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static int say(const struct vc_side x[2], const struct vc_diff *d, const struct vc_grew *g,
	       const struct config *c, const struct limit *l, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(c->json, err);
	size_t sites = c->sites && c->sites < d->n ? (size_t)c->sites : d->n;

	if (!e)
		return err->status;
	if (c->markdown)
		vc_emit_markdown(e);
	if (c->json)
		emit_json(e, x, d, g, sites);
	else
		emit_text(e, x, d, g, sites, l);
	return vc_emit_done(e, err);
}

/* Both runs and what is other in the second, as a picture. */
static int draw(const struct vc_side x[2], const struct vc_diff *d, const struct vc_sink_type *sink,
		const struct config *c, struct vc_error *err)
{
	struct vc_result both[2] = { x[0].run, x[1].run }; /* lent */
	char params[120];

	both[1].diff = d;
	snprintf(params, sizeof(params), "theme=%.40s,width=%.40s", c->theme ? c->theme : "auto",
		 c->width ? c->width : "0");
	return vc_write_results(&(struct vc_results){ both, 2 }, sink, params, c->output, err);
}

/* With -o - the picture stands where the words would. */
static int tell(const struct vc_side x[2], const struct vc_diff *d, const struct vc_grew *g,
		const struct config *c, const struct limit *l, const struct vc_sink_type *sink,
		struct vc_error *err)
{
	int r = VC_OK;

	if (sink)
		r = draw(x, d, sink, c, err);
	if (r == VC_OK && (!sink || strcmp(c->output, "-")))
		r = say(x, d, g, c, l, err);
	return r;
}

static int check(const struct config *c, size_t argc, struct limit *l,
		 const struct vc_sink_type **sink, struct vc_error *err)
{
	*sink = NULL;
	if (argc != 2)
		return vc_fail(err, VC_EUSAGE, "diff wants two traces, not %zu", argc);
	if (c->markdown && c->json)
		return vc_fail(err, VC_EUSAGE, "--markdown or --json, not both");
	VC_TRY(limit_of(c->fail_above, l, err));
	if (c->output && !(*sink = vc_choose_sink(c->output, "diff", 2, err)))
		return err->status;
	return VC_OK;
}

static int diff_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_run_options opt = vc_run_options_none();
	const struct vc_sink_type *sink;
	struct vc_side x[2] = { 0 };
	struct vc_diff d = { 0 };
	struct vc_grew g = { 0 };
	char path[2][VC_RERUN_PATH];
	struct limit l;
	int r = check(c, argc, &l, &sink, &con->err);

	if (r == VC_OK)
		r = vc_check_width(c->width, &con->err);

	opt.verify = c->verify;
	opt.device = c->device;
	for (int k = 0; k < 2 && r == VC_OK; k++) {
		r = vc_kept_find(argv[k], path[k], &con->err);
		if (r == VC_OK)
			r = vc_side_open(&x[k], &opt, path[k], sink, false, &con->err);
	}
	if (r == VC_OK)
		r = vc_sides_diff(x, &d, &g, &con->err);
	if (r == VC_OK)
		r = tell(x, &d, &g, c, &l, sink, &con->err);
	if (r == VC_OK &&
	    is_above(&l, x[0].run.stats.peak_reserved, x[1].run.stats.peak_reserved))
		r = 4;
	vc_grew_fini(&g);
	vc_diff_fini(&d);
	vc_side_close(&x[0]);
	vc_side_close(&x[1]);
	return r;
}

const struct vc_command vc_command_diff = {
	.name = "diff", .operands = "A B",
	.summary = "two traces side by side: settings, peaks, what changed first and where",
	.details =
		"The allocations of both are matched in order, by call site and size. Event "
		"numbers are those of\n"
		"'vramcast dump'. A and B are files, or runs that 'vramcast history' lists. "
		"Exit codes: 0,\nand 4 when B needs more than --fail-above allows.\n\n"
		"  vramcast diff before.vct after.vct --fail-above 5%\n"
		"  vramcast diff before.vct after.vct -o diff.svg\n"
		"  vramcast diff before.vct after.vct --json | jq .first_difference",
	.options = VC_OPTIONS(diff_options), .config_size = sizeof(struct config), .run = diff_run,
};
