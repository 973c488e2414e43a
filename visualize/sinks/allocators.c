/* SPDX-License-Identifier: Apache-2.0 */
/* allocators.c - a heat map of recordings and allocators: how far what is reserved at the peak lies
 * above what was live. */

#include "visualize/scene.h"

enum { MOST = 64, NAMES = 128, ROW = 420, CELL = 620, NAME = 2600, NAME_NARROW = 1500 };

struct side { char name[MOST][NAMES]; size_t n; };

struct drawing {
	struct vc_page page;
	struct side trace, model;
	const struct vc_result *cell[MOST][MOST]; /* by trace and model */
	size_t runs, given;
	bool turned; /* allocators are the rows */
};

/* The place of a name, which may be new; MOST: no room. */
static size_t place(struct side *s, const char *name)
{
	size_t i = 0;

	while (i < s->n && strcmp(s->name[i], name))
		i++;
	if (i == s->n && i < MOST)
		snprintf(s->name[s->n++], sizeof(s->name[0]), "%s", name);
	return i;
}

static const char *text_of(const char *t)
{
	return t ? t : "";
}

/* What two runs of one recording may differ in besides the model. */
enum { VERSION, CONF, CARD, CHANGE, FIELDS };

static const char *field(const struct vc_result *r, int f)
{
	const char *const all[] = { r->info.torch, r->info.conf, r->info.gpu, r->info.change };

	return text_of(all[f]);
}

/* Is there another run of the same recording and model that differs in this alone? */
static bool differs(const struct vc_result *runs, size_t n, int f)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(field(&runs[i], f), field(&runs[k], f)) &&
			    !strcmp(text_of(runs[i].info.trace), text_of(runs[k].info.trace)) &&
			    !strcmp(text_of(runs[i].info.model), text_of(runs[k].info.model)) &&
			    !strcmp(text_of(runs[i].info.params), text_of(runs[k].info.params)))
				return true;
	return false;
}

static void model_name(const struct vc_result *r, bool version, char *buf, size_t cap)
{
	const struct vc_run_info *i = &r->info;
	const char *params = text_of(i->params), *torch = version ? text_of(i->torch) : "";

	snprintf(buf, cap, "%s%s%s%s%s", i->model ? i->model : "unknown", *torch ? " " : "",
		 torch, *params ? ":" : "", params);
}

/* The recording, and what else tells two of its runs apart. */
static void row_name(const struct vc_result *r, const bool *shown, char *buf, size_t cap)
{
	char *end;

	vc_trace_name(r, buf, cap);
	end = strrchr(buf, '.');
	if (end && !strcmp(end, ".vct"))
		*end = '\0';
	for (int f = CONF; f < FIELDS; f++)
		if (shown[f])
			snprintf(buf + strlen(buf), cap - strlen(buf), ", %s",
				 *field(r, f) ? field(r, f) :
				 f == CONF    ? "default" : "as recorded");
}

static void collect(struct drawing *d, const struct vc_result *runs, size_t n)
{
	char row[NAMES], column[NAMES];
	bool shown[FIELDS];

	for (int f = 0; f < FIELDS; f++)
		shown[f] = differs(runs, n, f);
	for (size_t i = 0; i < n; i++) {
		size_t t, m;

		if (!runs[i].stats.events)
			continue;
		d->given++;
		row_name(&runs[i], shown, row, sizeof(row));
		model_name(&runs[i], shown[VERSION], column, sizeof(column));
		t = place(&d->trace, row);
		m = place(&d->model, column);
		if (t == MOST || m == MOST || d->cell[t][m])
			continue;
		d->runs++;
		d->cell[t][m] = &runs[i];
	}
}

static void cell_words(const struct vc_result *r, char *buf, size_t cap, int w)
{
	uint64_t x = vc_over_live(r);
	struct vc_label l = { .style = VC_T_SMALL };

	if (vc_result_verdict(r) == VC_OOM) {
		snprintf(buf, cap, "out");
		return;
	}
	if (x >= 2000) { /* small recordings under a pool of fixed size */
		snprintf(buf, cap, "%llu \xC3\x97", (unsigned long long)(x + 1500) / 1000);
		return;
	}
	snprintf(buf, cap, "%s%llu.%llu %%", x ? "+" : "", (unsigned long long)x / 10,
		 (unsigned long long)x % 10);
	if (vc_svg_measure(&l, buf).w > w - 60)
		snprintf(buf, cap, "%llu", ((unsigned long long)x + 5) / 10);
}

static void draw_cell(struct drawing *d, size_t t, size_t m, struct vc_box b)
{
	struct vc_svg *s = &d->page.svg;
	const struct vc_result *r = d->cell[t][m];
	char text[40], a[VC_FORMAT], c[VC_FORMAT];
	int shade; /* in percent: up to 64, what stands on it must be readable */

	if (!r)
		return;
	shade = (int)(vc_over_live(r) > 600 ? 60 : vc_over_live(r) / 10);
	vc_svg_put(s, "<g><title>%e, %e: ", d->trace.name[t], d->model.name[m]);
	vc_svg_put(s, "reserved %s, live %s, %s</title>",
		   vc_format_bytes(r->stats.peak_reserved, a),
		   vc_format_bytes(r->stats.lower_bound, c), vc_verdict_word(r, NULL));
	s->titles++;
	if (vc_result_verdict(r) == VC_OOM)
		vc_svg_rect(s, "hx segbox", b, 0);
	else
		vc_svg_put(s, "<rect class=\"lane cell\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\" fill-opacity=\".%s%d\"/>", b.x, b.y, b.w, b.h,
			   shade < 6 ? "0" : "", 4 + shade);
	cell_words(r, text, sizeof(text), b.w);
	vc_svg_label(s, &(struct vc_label){ b.x + b.w / 2, b.y + b.h / 2 + 45,
					    VC_T_SMALL, VC_MIDDLE,
					    vc_result_verdict(r) == VC_OOM ? "bad" : "fg", 0,
					    false, vc_result_verdict(r) == VC_OOM }, text);
	vc_svg_put(s, "</g>\n");
}

/* Names above the columns, on as many lines as keep them apart. */
static int heads(struct drawing *d, const struct side *side, int x, int y, int w)
{
	int lines = 1;

	for (size_t i = 0; i < side->n; i++) {
		struct vc_label l = { .style = VC_T_SMALL };
		int need = vc_svg_measure(&l, side->name[i]).w + 60;

		while (lines < 3 && need > w * lines)
			lines++;
	}
	for (size_t i = 0; i < side->n; i++) {
		int line = (int)i % lines;

		struct vc_label l = { x + (int)i * w + w / 2, y + 150 + line * 180, VC_T_SMALL,
				      VC_MIDDLE, "fg", w * lines - 40, false, false };

		if (l.x + vc_svg_measure(&l, side->name[i]).w / 2 > d->page.w - VC_MARGIN) {
			l.x += w / 2;
			l.anchor = VC_END;
		}
		vc_svg_label(&d->page.svg, &l, side->name[i]);
	}
	return y + lines * 180 + 60;
}

/* The recording and what tells its runs apart: on two lines where one is too short. */
static void row_head(struct drawing *d, const char *name, int x, int y)
{
	const char *more = strstr(name, ", ");
	struct vc_label l = { x, y + 45, VC_T_SMALL, VC_END, "fg", x - VC_MARGIN, false, false };
	char first[NAMES];

	if (!more || vc_svg_measure(&l, name).w < x - VC_MARGIN) {
		vc_svg_label(&d->page.svg, &l, name);
		return;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(more - name), name);
	l.y = y - 30;
	vc_svg_label(&d->page.svg, &l, first);
	vc_svg_say(&d->page.svg, more + 2, x, y + 120, VC_T_SMALL, VC_END, "mut", x - VC_MARGIN);
}

static int grid(struct drawing *d, int y)
{
	const struct side *rows = d->turned ? &d->model : &d->trace;
	const struct side *columns = d->turned ? &d->trace : &d->model;
	int left = VC_MARGIN + (d->page.w < VC_NARROW ? NAME_NARROW : NAME);
	int w = (d->page.w - VC_MARGIN - left) / (int)columns->n;

	w = w > 1500 ? 1500 : w;
	y = heads(d, columns, left, y, w);
	for (size_t i = 0; i < rows->n; i++, y += ROW) {
		row_head(d, rows->name[i], left - 120, y + ROW / 2);
		for (size_t k = 0; k < columns->n; k++)
			draw_cell(d, d->turned ? k : i, d->turned ? i : k,
				  (struct vc_box){ left + (int)k * w + 10, y + 10, w - 20,
						   ROW - 20 });
	}
	return y;
}

/* The answer about one allocator, PyTorch's where it is among them: how far it is above what was
 * live, over the recordings that it got through. */
static void title_of(const struct drawing *d, char *buf, size_t cap)
{
	const struct vc_result *of[MOST];
	size_t m = 0, n = 0;

	while (m < d->model.n && strncmp(d->model.name[m], "torch", 5))
		m++;
	m = m < d->model.n ? m : 0;
	for (size_t t = 0; t < d->trace.n; t++)
		if (d->cell[t][m])
			of[n++] = d->cell[t][m];
	vc_over_text(d->model.name[m], of, n, buf, cap);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	static const struct vc_key key[] = {
		{ "lane", "the darker, the more above what was live", VC_KEY_BOX },
		{ "hx segbox", "runs out of memory", VC_KEY_BOX } };
	char title[NAMES + 128], text[256];
	bool narrow = cfg->width < VC_NARROW / 10;

	title_of(d, title, sizeof(title));
	snprintf(text, sizeof(text), "reserved at the peak, above what was live, of %zu "
		 "recording%s under %zu allocator%s; \xC3\x97: so many times that%s",
		 d->trace.n, d->trace.n == 1 ? "" : "s", d->model.n,
		 d->model.n == 1 ? "" : "s",
		 d->given > d->runs ? "; runs that do not fit here are left out" : "");
	vc_page_begin(&d->page, cfg, title, text);
	d->turned = (d->page.w - 2 * VC_MARGIN - (narrow ? NAME_NARROW : NAME)) /
			    (int)d->model.n < CELL && d->trace.n < d->model.n;
	int y = vc_page_header(&d->page, title, text, NULL);
	y = vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y,
						      d->page.w - 2 * VC_MARGIN, 0 }, key, 2);
	y = grid(d, y + 80);
	vc_page_footer(&d->page, y + 150, "live: what tensors asked for, in units of 512 bytes",
		       "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 480 : 200), out, err);
}

static int allocators_write(const struct vc_result *runs, size_t n, const void *config,
			    struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	const struct vc_picture *cfg = vc_picture_config(config, &fallback);
	struct drawing *d = calloc(1, sizeof(*d));
	int rc;

	VC_HAVE(d, "the picture", err);
	collect(d, runs, n);
	rc = d->runs ? draw(d, cfg, out, err) :
		       vc_page_notice(cfg, "Allocators", n ? "no run made a request for memory" :
				      "no run was given", out, err);
	free(d);
	return rc;
}

static const char *const reads[] = { "oom", NULL };

const struct vc_sink_type vc_sink_allocators = {
	.name = "allocators", .extension = "svg",
	.summary = "recordings and allocators: how much each reserves above what was live",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture), .observers = reads,
	.side_by_side = true, .write = allocators_write,
};
