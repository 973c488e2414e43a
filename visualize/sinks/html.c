/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - the report: one file with verdict, ledger, pictures and tables; no network. A script
 * adds an instrument to look closer with; the page says everything without it. */

#include "common/io.h"
#include "common/site.h"
#include "common/vec.h"
#include "visualize/addressmap.h"
#include "visualize/instrument.h"
#include "visualize/ledger.h"
#include "visualize/page.inc"
#include "visualize/scene.h"

enum { ROWS = 200, NARROW = 480, NARROW_BYTES = 256 << 10 };

struct config { struct vc_picture picture; uint64_t refresh; };
static const struct vc_param params[] = {
	VC_PICTURE_PARAMS,
	{ "refresh", VC_P_UINT, offsetof(struct config, refresh), "0",
	  "seconds after which the page reads its file anew; 0: never", NULL },
	VC_PARAM_END
};

struct report {
	struct vc_svg out; /* the document grows here */
	struct vc_classes classes;
	struct vc_owners owners;
	const struct vc_picture *cfg;
	const struct vc_result *runs;
	size_t n, narrow; /* narrow: bytes of narrow pictures so far */
	uint64_t refresh;
};

static void head(struct report *d, const char *title)
{
	static const char *const klass[] = { "", "r-light", "r-dark", "r-light" };

	vc_svg_put(&d->out, "<!DOCTYPE html>\n<html lang=\"en\" class=\"%s\">\n<head>\n<meta "
		   "charset=\"utf-8\">\n<meta name=\"viewport\" "
		   "content=\"width=device-width\">\n<meta name=\"generator\" "
		   "content=\"vramcast " VC_VERSION "\">\n<title>%e</title>\n",
		   klass[d->cfg->theme], title);
	if (d->refresh)
		vc_svg_put(&d->out, "<meta http-equiv=\"refresh\" content=\"%u\">\n", d->refresh);
	vc_svg_put(&d->out, "<style>\n");
	for (size_t i = 0; page_css[i]; i++)
		vc_svg_put(&d->out, "%s", page_css[i]);
	/* One style and one set of patterns for all pictures, which go without. */
	vc_svg_put(&d->out, "</style>\n</head>\n<body>\n<svg id=\"r-style\" width=\"0\" "
		   "height=\"0\" aria-hidden=\"true\">\n");
	vc_theme_write(&d->out, (enum vc_theme)d->cfg->theme);
	vc_svg_put(&d->out, "</svg>\n<main>\n");
}

/* The beginning of a table: columns between "|", those of numbers behind "#". */
static void table_head(struct report *d, const char *klass, const char *caption,
		       const char *columns)
{
	vc_svg_put(&d->out, "<div class=\"%s\"><table class=\"r-find\"><caption>%s</caption>"
		   "<thead><tr>", klass, caption);
	while (*columns) {
		bool number = *columns == '#';
		size_t n = strcspn(columns += number, "|");

		vc_svg_put(&d->out, "<th scope=\"col\"%s>", number ? " class=\"r-n\"" : "");
		vc_svg_escape(&d->out, columns, n);
		vc_svg_put(&d->out, "</th>");
		columns += n + (columns[n] == '|');
	}
	vc_svg_put(&d->out, "</tr></thead><tbody>\n");
}

/* The line to paste: of the run that does best, by verdict, then by peak. None where there is
 * nothing but defaults. */
static void settings(struct report *d)
{
	const struct vc_result *best = d->runs;
	char text[512];
	bool any = false;

	for (size_t i = 0; i < d->n; i++) {
		enum vc_verdict a = vc_result_verdict(&d->runs[i]), b = vc_result_verdict(best);
		any |= d->runs[i].info.conf && *d->runs[i].info.conf;
		if (a < b || (a == b && d->runs[i].stats.peak_reserved < best->stats.peak_reserved))
			best = &d->runs[i];
	}
	if (!any)
		return;
	vc_conf_text(best, text, sizeof(text));
	if (!best->info.conf || !*best->info.conf)
		snprintf(text, sizeof(text), "unset PYTORCH_CUDA_ALLOC_CONF");
	vc_svg_put(&d->out, "<p>Settings of %s, to paste:</p>\n<div "
		   "class=\"r-line\"><code>%e</code></div>\n", d->n > 1 ? "the run that does best" :
		   "this run", text);
}

/* What runs that share a card need of it together: where that is more than there is (`lacks`), and
 * else. true: something is said. */
static bool shared(const struct report *d, bool lacks, char *buf, size_t cap)
{
	struct vc_named of[VC_TOGETHER], by_card[VC_TOGETHER];
	size_t on[VC_TOGETHER], n = d->n < VC_TOGETHER ? d->n : VC_TOGETHER, cards;

	for (size_t i = 0; i < n; i++)
		of[i] = (struct vc_named){ "", &d->runs[i] };
	cards = n > 1 ? vc_shared_cards(of, n, by_card, on) : 0;
	for (size_t c = 0, from = 0; c < cards; from += on[c++]) {
		struct vc_together t = vc_together_walk(by_card + from, on[c], NULL, NULL);

		if ((t.room && t.most > t.room) == lacks) {
			vc_together_text(by_card + from, on[c], buf, cap);
			return true;
		}
	}
	return false;
}

/* The answer: of runs that do not fit together, that. */
static void headline(const struct report *d, char *buf, size_t cap)
{
	if (!shared(d, true, buf, cap))
		vc_answer_text(d->runs, vc_curve_reads_by_time(d->runs), buf, cap);
}

/* Of several runs what tells them apart, the recording and device included where they differ. */
static void run_name(const struct report *d, size_t i, char *buf, size_t cap)
{
	bool one = true;

	for (size_t k = 1; k < d->n; k++)
		one = one && d->runs[k].info.device == d->runs->info.device &&
		      d->runs[k].meta == d->runs->meta;
	if (one)
		vc_run_text(&d->runs[i], buf, cap);
	else
		vc_place_text(&d->runs[i], buf, cap);
}

static void verdict(struct report *d)
{
	char text[VC_SAY], name[256];
	const char *color;
	const struct vc_result *r = d->runs;

	headline(d, name, sizeof(name));
	vc_svg_put(&d->out, "<h1>%e</h1>\n", name);
	vc_place_text(r, text, sizeof(text));
	vc_svg_put(&d->out, "<p class=\"r-mut\">%e</p>\n", text);
	vc_verdict_word(r, &color);
	vc_reason_text(r, text, sizeof(text));
	if (!shared(d, true, name, sizeof(name)))
		vc_svg_put(&d->out, "<p class=\"r-verdict r-%s\">%e</p>\n", color, text);
	if (shared(d, false, text, sizeof(text)))
		vc_svg_put(&d->out, "<p>%e.</p>\n", text);
	vc_trust_text(r, text, sizeof(text));
	if (*text)
		vc_svg_put(&d->out, "<p class=\"r-mut\">Level of trust: %e.</p>\n", text);
	vc_svg_put(&d->out, "<nav>%s", d->n > 1 ? "<a href=\"#runs\">Runs</a>" : "");
	if (r->words.n)
		vc_svg_put(&d->out, "<a href=\"#help\">What would help</a>");
	vc_svg_put(&d->out, "<a href=\"#ledger\">Ledger</a><a href=\"#timeline\">Timeline</a><a "
		   "href=\"#flame\">Who holds it</a><a href=\"#segments\">Segments</a><a "
		   "href=\"#unused\">Unused</a>%s<a "
		   "href=\"#sites\">Call sites</a><a "
		   "href=\"#largest\">Largest blocks</a></nav>\n",
		   r->curve.n && r->lives.n ? "<a href=\"#lives\">Lives</a>" : "");
	settings(d);
}

static void ledger_row(struct report *d, const char *klass, const char *name, uint64_t bytes)
{
	char a[VC_FORMAT], b[VC_FORMAT];

	vc_svg_put(&d->out, "<tr class=\"%s\"><td>%s</td><td class=\"r-n\">%s</td><td "
		   "class=\"r-n\">%s B</td></tr>\n",
		   klass, name, vc_format_bytes(bytes, a), vc_format_count(bytes, b));
}

/* What nvidia-smi would show, and of what it is made: every line adds up. */
static void ledger(struct report *d)
{
	const struct vc_result *r = d->runs;
	struct vc_ledger l;

	vc_ledger_make(&l, &d->classes);
	vc_svg_put(&d->out, "<table class=\"r-ledger\"><caption>The same in numbers</caption>"
		   "<tbody>\n");
	ledger_row(d, "", "tensors (allocated)", l.live);
	if (l.waiting)
		ledger_row(d, "", "+ freed, waiting for a stream", l.waiting);
	ledger_row(d, "", "+ cached, returnable", l.returnable);
	ledger_row(d, "", "+ cached, stranded beside live blocks", l.stranded);
	ledger_row(d, "r-sum", "= reserved by the allocator", l.reserved);
	if (l.context)
		ledger_row(d, "", "+ CUDA context and libraries", l.context);
	else
		vc_svg_put(&d->out, "<tr><td>+ CUDA context and libraries</td><td "
			   "class=\"r-n\">unknown</td><td></td></tr>\n");
	if (l.others)
		ledger_row(d, "", "+ other processes", l.others);
	ledger_row(d, "r-sum", "= used on the device (what nvidia-smi shows)", l.used);
	if (l.capacity)
		ledger_row(d, "", "&#160; left of the capacity", l.free);
	if (r->stats.managed)
		ledger_row(d, "", "&#160; managed, on card or host, at most", r->stats.managed);
	if (r->stats.pinned)
		ledger_row(d, "", "&#160; pinned on the host, at most", r->stats.pinned);
	if (l.request)
		ledger_row(d, "r-bad", "&#160; asked for, and refused", l.request);
	vc_svg_put(&d->out, "</tbody></table>\n");
	if (!r->oom.happened || !r->oom.message)
		return;
	vc_svg_put(&d->out, "<p>%e would say:</p>\n<pre>%e</pre>\n", r->info.owner,
		   r->oom.message);
}

extern const struct vc_sink_type vc_sink_timeline, vc_sink_sweep, vc_sink_compare, vc_sink_flame,
	vc_sink_ledger, vc_sink_segments, vc_sink_unused, vc_sink_lives, vc_sink_advice,
	vc_sink_ranks;

/* The name and the description that the picture has as a file; style and patterns are above. */
static void put_figure(struct report *d, const char *name, const char *title, bool narrow,
		       const char *text, size_t n)
{
	const char *klass = narrow ? "r-narrow" : "r-wide";
	const char *at = strstr(text, "aria-labelledby=\"vct vcd\"");
	const char *desc = strstr(text, "<desc id=\"vcd\">"), *end = strstr(text, "</defs>\n");

	if (!at || !desc || !end)
		return;
	vc_svg_put(&d->out, "<figure class=\"%s\" data-name=\"%s\">\n", klass, name);
	vc_svg_raw(&d->out, text, (size_t)(at - text));
	vc_svg_put(&d->out, "aria-label=\"%s\" aria-describedby=\"%s-%s\">\n<desc id=\"%s-%s\">",
		   title, klass, name, klass, name);
	desc += strlen("<desc id=\"vcd\">");
	vc_svg_raw(&d->out, desc, (size_t)(strstr(desc, "</desc>") - desc));
	vc_svg_put(&d->out, "</desc>\n");
	end += strlen("</defs>\n");
	vc_svg_raw(&d->out, end, n - (size_t)(end - text));
	vc_svg_put(&d->out, "</figure>\n");
}

/* One picture at one width. A narrow one for which there is no room is left out. */
static int drawing(struct report *d, const struct vc_sink_type *t, const char *title, bool narrow,
		   struct vc_error *err)
{
	struct vc_picture cfg = *d->cfg;
	struct vc_output *out = vc_output_memory(err);
	char *text = NULL;
	size_t n = 0;

	if (!out)
		return (int)err->status;
	cfg.width = narrow ? NARROW : 1200;
	cfg.footer = false;
	cfg.classes = &d->classes;
	cfg.no_head = t != &vc_sink_advice && d->n == 1;
	cfg.no_facts = t != &vc_sink_ledger && d->n == 1;
	*cfg.title = '\0';
	int rc = t->write(d->runs, d->n, &cfg, out, err);
	text = rc ? NULL : vc_output_take(out, &n);
	vc_output_close(out);
	if (!text)
		return rc ? rc : vc_nomem(err, "the report");
	d->narrow += narrow ? n : 0;
	if (!narrow || d->narrow <= NARROW_BYTES)
		put_figure(d, t->name, title, narrow, text, n);
	free(text);
	return VC_OK;
}
/* Wide, and for a phone narrow: the style sheet shows one of them, the wide one where there is no
 * other. */
static int picture(struct report *d, const struct vc_sink_type *t, const char *title,
		   struct vc_error *err)
{
	vc_svg_put(&d->out, "<h2 id=\"%s\">%s</h2>\n", t->name, title);
	VC_TRY(drawing(d, t, title, false, err));
	return drawing(d, t, title, true, err);
}

static void sites(struct report *d)
{
	const struct vc_owners *o = &d->owners;
	char name[256], a[VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT];

	vc_svg_put(&d->out, "<h2 id=\"sites\">Who holds it, by call site</h2>\n<p "
		   "class=\"r-mut\">%s in use at event %s, %s owners</p>\n",
		   vc_format_bytes(o->bytes, a), vc_format_count(o->event, b),
		   vc_format_count(o->n, c));
	table_head(d, "r-scroll", "call sites and what they hold",
		   "Where|Kind|#Bytes|#Share|#Blocks");
	for (size_t i = 0; i < o->n && i < ROWS; i++) {
		vc_owner_text(d->runs->meta, &o->at[i], name, sizeof(name));
		vc_svg_put(&d->out, "<tr><td>%e</td><td>%s</td>", name, vc_classes_name(&d->classes,
				o->at[i].slot));
		vc_svg_put(&d->out, "<td class=\"r-n\">%s</td><td class=\"r-n\">%s</td><td "
			   "class=\"r-n\">%s</td></tr>\n", vc_format_bytes(o->at[i].bytes, a),
			   vc_format_percent(o->at[i].bytes, o->bytes, b),
			   vc_format_count(o->at[i].blocks, c));
	}
	vc_svg_put(&d->out, "</tbody></table></div>\n");
}

struct largest { uint64_t size; size_t at; };

VC_COMPARE(by_size, struct largest, VC_THEN(VC_ORDER(y->size, x->size), VC_ORDER(x->at, y->at)))

static void block_row(struct report *d, size_t at)
{
	const struct vc_life *l = &d->runs->lives.at[at];
	char name[256], a[VC_FORMAT];

	vc_site_text(d->runs->meta, l->site, name, sizeof(name));
	vc_svg_put(&d->out, "<tr><td>%u</td><td>%e</td><td>%s</td>", l->id, name,
		   vc_classes_name(&d->classes, (enum vc_slot)d->classes.of_life[at]));
	vc_svg_put(&d->out, "<td class=\"r-n\">%s</td>", vc_format_bytes(l->size, a));
	if (l->at_start)
		vc_svg_put(&d->out, "<td class=\"r-n\">before</td>");
	else
		vc_svg_put(&d->out, "<td class=\"r-n\">%s</td>", vc_format_count(l->born, a));
	vc_svg_put(&d->out, "<td class=\"r-n\">%s</td><td class=\"r-n\">%d</td></tr>\n",
		   l->died == UINT64_MAX ? "stays" : vc_format_count(l->died, a), (int)l->stream);
}

static int blocks_table(struct report *d, struct vc_error *err)
{
	size_t n = d->runs->lives.n;
	struct largest *v = malloc((n + 1) * sizeof(*v));

	VC_HAVE(v, "the report", err);
	for (size_t i = 0; i < n; i++)
		v[i] = (struct largest){ d->runs->lives.at[i].size, i };
	vc_sort(v, n, sizeof(*v), by_size);
	vc_svg_put(&d->out, "<h2 id=\"largest\">Largest blocks</h2>\n");
	table_head(d, "r-scroll", "the largest blocks of the run",
		   "Block|Where|Kind|#Size|#From event|#To event|#Stream");
	for (size_t i = 0; i < n && i < ROWS; i++)
		block_row(d, v[i].at);
	vc_svg_put(&d->out, "</tbody></table></div>\n");
	free(v);
	return VC_OK;
}

static void segments_table(struct report *d)
{
	const struct vc_heap_map *h = vc_result_heap(d->runs);
	char a[VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT];
	size_t rows = 0;

	vc_svg_put(&d->out, "<h2 id=\"segtable\">Segments %s</h2>\n",
		   d->runs->last.n ? "at the OOM" : "at the peak");
	table_head(d, "r-scroll", "segments in address order",
		   "Segment|#Size|#In use|#Largest free|Pool");
	for (size_t i = 0; i < h->n && rows < ROWS; i++) {
		uint64_t live = 0, free = 0;
		if (h->at[i].what)
			continue;
		for (size_t j = i + 1; j < h->n && h->at[j].what; j++) {
			live += h->at[j].what == 3 ? 0 : h->at[j].size;
			free = h->at[j].what == 3 && h->at[j].size > free ? h->at[j].size : free;
		}
		vc_svg_put(&d->out, "<tr><td>%u</td><td class=\"r-n\">%s</td>", (uint64_t)++rows,
			   vc_format_bytes(h->at[i].size, a));
		vc_svg_put(
			&d->out,
			"<td class=\"r-n\">%s</td><td class=\"r-n\">%s</td><td>%s%s</td></tr>\n",
			vc_format_bytes(live, b), vc_format_bytes(free, c),
			h->at[i].small ? "small" : "large",
			h->at[i].expandable ? ", expandable" : "");
	}
	vc_svg_put(&d->out, "</tbody></table></div>\n");
}

static void interval_cells(struct report *d, const struct vc_result *r)
{
	char peak[VC_FORMAT], low[VC_FORMAT] = "", high[VC_FORMAT] = "";

	if (r->has_interval) {
		vc_format_bytes(r->low, low);
		vc_format_bytes(r->high, high);
	}
	vc_svg_put(&d->out, "<td class=\"r-n\">%s</td><td class=\"r-n\">%s</td><td "
		   "class=\"r-n\">%s</td>", vc_format_bytes(r->stats.peak_reserved, peak), low,
		   high);
}

static void runs_table(struct report *d)
{
	char text[400], b[VC_FORMAT];

	vc_svg_put(&d->out, "<h2 id=\"runs\">Runs</h2>\n");
	table_head(d, "r-scroll", "all runs, with the ends of their intervals",
		   "Run|Verdict|#Reserved|#at least|#at most|#Allocated|#Flushes|Trust");
	for (size_t i = 0; i < d->n; i++) {
		const char *color, *word = vc_verdict_word(&d->runs[i], &color);
		run_name(d, i, text, sizeof(text));
		vc_svg_put(&d->out, "<tr><td>%e</td><td class=\"r-%s\">%s</td>", text, color, word);
		interval_cells(d, &d->runs[i]);
		vc_svg_put(&d->out, "<td class=\"r-n\">%s</td><td class=\"r-n\">%u</td>"
			   "<td>%s</td></tr>\n",
			   vc_format_bytes(d->runs[i].stats.peak_allocated, b),
			   d->runs[i].stats.flushes,
			   d->runs[i].trust.level ? vc_level_name(d->runs[i].trust.level) : "");
	}
	vc_svg_put(&d->out, "</tbody></table></div>\n");
}

/* The changes that were tried, in the units of the page, with what makes them. */
static void tried(struct report *d, const struct vc_result *r)
{
	char text[VC_SAY];

	vc_grows_text(r, VC_PAGE, text, sizeof(text));
	vc_svg_put(&d->out, "<pre>%s%e%s", *text ? "leak: " : "", text, *text ? "\n" : "");
	vc_tries_text(r, text, sizeof(text));
	vc_svg_put(&d->out, "%e; cheapest first, each simulated:", text);
	for (size_t i = 0; i < r->tries.n; i++) {
		const struct vc_try *t = &r->tries.at[i];

		vc_tried_text(&(struct vc_tried){ t->text, vc_result_verdict(t->run),
			      t->run->has_interval, t->estimate, t->run->stats.peak_reserved,
			      t->run->low, t->run->high, r->leak.steps > 0, t->times }, i + 1,
			      VC_PAGE, text, sizeof(text));
		vc_svg_put(&d->out, "\n  %e", text);
		if (*t->paste)
			vc_svg_put(&d->out, "\n       %e", t->paste);
		if (*t->again)
			vc_svg_put(&d->out, "\n       %e", t->again);
	}
	vc_svg_put(&d->out, "</pre>\n");
}

/* What leaks and what would help, run by run. */
static void advice(struct report *d)
{
	char text[400];
	bool any = false;

	for (size_t i = 0; i < d->n; i++) {
		const struct vc_words *w = &d->runs[i].words;

		if (w->n && !any)
			vc_svg_put(&d->out, "<h2 id=\"help\">What would help</h2>\n");
		any |= w->n > 0;
		run_name(d, i, text, sizeof(text));
		if (w->n && d->n > 1)
			vc_svg_put(&d->out, "<p class=\"r-mut\">%e</p>\n", text);
		if (d->runs[i].tries.n) {
			tried(d, &d->runs[i]);
			continue;
		}
		for (size_t k = 0; k < w->n; k++)
			vc_svg_put(&d->out, "%s%e%s", k ? "\n" : "<pre>", w->line[k],
				   k + 1 == w->n ? "</pre>\n" : "");
	}
}

static int script(struct report *d, struct vc_error *err)
{
	if (d->runs->curve.n)
		VC_TRY(vc_instrument_write(&d->out, d->runs, d->n, vc_wants_time(d->cfg, d->runs),
					   err));
	vc_svg_put(&d->out, "</main>\n<script>\n");
	for (size_t i = 0; page_js[i]; i++)
		vc_svg_put(&d->out, "%s", page_js[i]);
	for (size_t i = 0; instrument_js[i]; i++)
		vc_svg_put(&d->out, "%s", instrument_js[i]);
	vc_svg_put(&d->out, "report.show(document);\nreport.look();\n</script>\n"
		   "</body>\n</html>\n");
	return VC_OK;
}

static int body(struct report *d, struct vc_error *err)
{
	bool family = d->n > 1 && d->runs->info.vary, met = false;

	for (size_t i = 1; i < d->n; i++)
		met = met || vc_met(d->runs, &d->runs[i]);
	int rc;

	verdict(d);
	if (d->n > 1)
		runs_table(d);
	rc = picture(d, &vc_sink_ledger, "Where the bytes are", err);
	if (rc)
		return rc;
	ledger(d);
	advice(d);
	rc = d->runs->tries.n ?
		     picture(d, &vc_sink_advice, "The same run with each of these", err) : VC_OK;
	if (rc)
		return rc;
	rc = d->runs->curve.n ? picture(d, &vc_sink_timeline, "Memory over time", err) : VC_OK;
	if (!rc && d->n > 1)
		rc = picture(d, family ? &vc_sink_sweep : met ? &vc_sink_ranks : &vc_sink_compare,
			     family ? "By the value that was varied" :
			     met ? "At the same time, on one clock" : "Runs side by side", err);
	if (!rc)
		rc = picture(d, &vc_sink_flame, "Who holds the memory", err);
	if (!rc)
		rc = picture(d, &vc_sink_segments, "Segments in address order", err);
	if (!rc && d->runs->curve.n)
		rc = picture(d, &vc_sink_unused, "Reserved and not in use, over the run", err);
	if (!rc && d->runs->curve.n && d->runs->lives.n)
		rc = picture(d, &vc_sink_lives, "What lives when, by call site", err);
	if (rc)
		return rc;
	sites(d);
	rc = blocks_table(d, err);
	segments_table(d);
	vc_svg_put(&d->out, "<p class=\"r-mut\">vramcast " VC_VERSION "; at most %d rows per "
		   "table</p>\n", ROWS);
	return rc ? rc : script(d, err);
}

static int html_write(const struct vc_result *runs, size_t n, const void *config,
		      struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	struct report d = { .cfg = vc_picture_config(config, &fallback), .runs = runs, .n = n,
			    .refresh = config ? ((const struct config *)config)->refresh : 0 };
	char title[256];
	int rc;

	if (!n || (!runs->curve.n && !vc_result_heap(runs)->n)) {
		head(&d, "vramcast report");
		vc_svg_put(&d.out,
			   "<h1>There is nothing to report</h1>\n<p>%s</p>\n</main>\n"
			   "</body>\n</html>\n",
			   n ? "The trace has no request for memory: nothing was simulated." :
			       "No run was given.");
		vc_output_write(out, d.out.text, d.out.n);
		vc_svg_fini(&d.out);
		return VC_OK;
	}
	headline(&d, title, sizeof(title));
	head(&d, *d.cfg->title ? d.cfg->title : title);
	rc = vc_classes_init(&d.classes, runs, err);
	if (!rc)
		rc = vc_owners_init(&d.owners, &d.classes, err);
	if (!rc)
		rc = body(&d, err);
	if (!rc && d.out.failed)
		rc = vc_nomem(err, "the report");
	if (!rc)
		vc_output_write(out, d.out.text, d.out.n);
	vc_owners_fini(&d.owners);
	vc_classes_fini(&d.classes);
	vc_svg_fini(&d.out);
	return rc;
}

const struct vc_sink_type vc_sink_html = {
	.name = "html", .extension = "html",
	.summary = "the report: verdict, ledger, pictures and tables in one file",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("timeline", "lives", "segments", "peak", "oom", "moment",
			      "steps", "unused", "turns"),
	.advised = true, .side_by_side = true, .write = html_write,
};
