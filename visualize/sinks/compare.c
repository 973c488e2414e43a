/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - several runs as small plots on the same axes, and their peaks side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "visualize/scene.h"

enum { PANELS = 12, PLOT_HEIGHT = 2000, GUTTER = 350, LEFT = 700, BAR = 300 };

struct panel {
	const struct vc_result *r;
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_plot plot;
	char name[160];
};

struct drawing {
	struct vc_page page;
	struct panel panel[PANELS];
	size_t n, given, per_row;
	bool differs[6]; /* trace, model, torch, conf, gpu, change */
	bool by_time, used[VC_SLOTS];
	uint64_t top, span;
};

static const char *field(const struct vc_result *r, int i)
{
	const char *const all[] = { r->info.trace, r->info.model, r->info.torch,
				   r->info.conf,  r->info.gpu,   r->info.change };

	return all[i] ? all[i] : "";
}

static void find_differences(struct drawing *d)
{
	for (int f = 0; f < 6; f++)
		for (size_t i = 1; i < d->n; i++)
			if (strcmp(field(d->panel[i].r, f), field(d->panel[0].r, f)))
				d->differs[f] = true;
}

/* What tells this run from the others. */
static void name_panel(const struct drawing *d, struct panel *p, size_t index)
{
	size_t used = 0;

	for (int f = 0; f < 6; f++) {
		char text[96];
		const char *v = field(p->r, f);
		if (!d->differs[f])
			continue;
		if (f == 0)
			vc_trace_name(p->r, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "%s%s", f == 2 && *v ? "torch " : "",
				 *v ? v : f == 3 ? "default" : f == 5 ? "as recorded" : "none");
		used += (size_t)snprintf(p->name + used, sizeof(p->name) - used, "%s%s",
					 used ? ", " : "", text);
		if (used >= sizeof(p->name))
			return;
	}
	if (!used)
		snprintf(p->name, sizeof(p->name), "run %zu", index + 1);
}

static int prepare(struct drawing *d, const struct vc_picture *cfg, struct vc_error *err)
{
	struct vc_range range = { 0, 0 };
	uint32_t width;

	d->by_time = true;
	for (size_t i = 0; i < d->n; i++)
		d->by_time = d->by_time && vc_wants_time(cfg, d->panel[i].r);
	for (size_t i = 0; i < d->n; i++) {
		const struct vc_curve *v = &d->panel[i].r->curve;
		uint64_t span = !v->n ? 0 :
				d->by_time ? v->at[v->n - 1].last_ns - v->at[0].first_ns :
					v->at[v->n - 1].last_event + 1 - v->at[0].first_event;
		d->span = span > d->span ? span : d->span;
	}
	width = (uint32_t)(cfg->width / d->per_row) * 2;
	for (size_t i = 0; i < d->n; i++) {
		struct panel *p = &d->panel[i];
		const struct vc_curve *v = &p->r->curve;
		if (v->n)
			range = (struct vc_range){ d->by_time ? v->at[0].first_ns :
				v->at[0].first_event, d->span + d->by_time };
		VC_TRY(vc_classes_init(&p->classes, p->r, err));
		VC_TRY(vc_columns_init(&p->columns, &p->classes, d->by_time, width, &range, err));
		for (int s = 0; s < VC_SLOTS; s++)
			d->used[s] = d->used[s] || p->columns.used[s];
		p->plot = (struct vc_plot){ .page = &d->page, .c = &p->classes, .k = &p->columns };
		vc_plot_scale(&p->plot);
		d->top = p->plot.top > d->top ? p->plot.top : d->top;
	}
	return VC_OK;
}

/* The last column of a shorter run must not be stretched over the rest of the shared axis. */
static void cut(struct panel *p, bool by_time)
{
	const struct vc_bucket *z = &p->r->curve.at[p->r->curve.n - 1];
	uint32_t end = vc_columns_x(&p->columns, by_time ? z->last_ns : z->last_event + 1);
	struct vc_column *last = p->columns.n ? &p->columns.at[p->columns.n - 1] : NULL;

	if (last)
		last->to = end > last->from ? end : last->from + 1;
}

static void panel_head(struct drawing *d, const struct panel *p, struct vc_box b)
{
	struct vc_svg *s = &d->page.svg;
	const char *color;
	char text[100], more[200], a[VC_FORMAT], c[VC_FORMAT];
	const struct vc_stats *t = &p->r->stats;

	vc_verdict_word(p->r, &color);
	if (vc_result_verdict(p->r) == VC_UNDECIDED && p->r->has_interval &&
	    p->r->info.capacity)
		snprintf(text, sizeof(text), "undecided, %s to %s",
			 vc_format_percent(p->r->trust.used_low, p->r->info.capacity, a),
			 vc_format_percent(p->r->trust.used_high, p->r->info.capacity, c));
	else if (p->r->oom.happened && d->by_time)
		snprintf(text, sizeof(text), "out of memory at %s",
			 vc_moment_text(p->r, true, p->r->oom.event, a));
	else if (vc_result_verdict(p->r) == VC_OOM || vc_result_replayed(p->r) == VC_OOM)
		snprintf(text, sizeof(text), "out of memory");
	else if (p->r->info.capacity)
		snprintf(text, sizeof(text), "%s, peak %s",
			 vc_verdict_name(vc_result_verdict(p->r)),
			 vc_format_percent(t->peak_reserved + p->plot.base, p->r->info.capacity,
					   c));
	else
		snprintf(text, sizeof(text), "peak %s", vc_format_bytes(t->peak_reserved, a));
	int w = vc_svg_say(s, text, b.x + b.w, b.y - 220, VC_T_STRONG, VC_END, color, 0).w;
	vc_verdict_icon(s, p->r, b.x + b.w - w - 190, b.y - 310);
	vc_svg_say(s, p->name, b.x, b.y - 220, VC_T_MONO, VC_START, "fg", b.w - w - 350);
	snprintf(text, sizeof(text), "reserved %s, allocated %s",
		 vc_format_bytes(t->peak_reserved, a), vc_format_bytes(t->peak_allocated, c));
	if (t->segments_peak)
		snprintf(more, sizeof(more), "%s, at most %s segments", text,
			 vc_format_count(t->segments_peak, a));
	if (t->segments_peak &&
	    vc_svg_measure(&(struct vc_label){ .style = VC_T_SMALL }, more).w <= b.w)
		vc_svg_say(s, more, b.x, b.y + b.h + 400, VC_T_SMALL, VC_START, "mut", b.w);
	else
		vc_svg_say(s, text, b.x, b.y + b.h + 400, VC_T_SMALL, VC_START, "mut", b.w);
}

static int panels(struct drawing *d, int y)
{
	int per = (int)d->per_row;
	int w = (d->page.w - VC_MARGIN - LEFT - GUTTER * (per - 1)) / per;

	for (size_t i = 0; i < d->n; i++) {
		struct panel *p = &d->panel[i];
		int col = (int)i % per, row = (int)i / per;
		p->plot.box =
			(struct vc_box){ LEFT + col * (w + GUTTER),
					y + 500 + row * (PLOT_HEIGHT + 1150), w, PLOT_HEIGHT };
		p->plot.top = d->top;
		p->plot.has_capacity = p->plot.capacity && p->plot.capacity <= d->top;
		p->plot.axis = vc_axis_bytes(d->top, 5);
		vc_svg_put(&d->page.svg, "<g>\n"); /* browsers dislike many siblings */
		vc_plot_grid(&p->plot, !col);
		if (p->r->curve.n) {
			cut(p, d->by_time);
			vc_plot_areas(&p->plot);
			vc_plot_capacity(&p->plot, false);
			vc_plot_oom(&p->plot);
			vc_plot_axis(&p->plot, p->plot.box.y + p->plot.box.h);
		}
		panel_head(d, p, p->plot.box);
		vc_svg_put(&d->page.svg, "</g>\n");
	}
	return y + (int)((d->n + d->per_row - 1) / d->per_row) * (PLOT_HEIGHT + 1150);
}

/* From the lower to the upper end of the interval; an end beyond the scale is cut. */
static void whisker(struct drawing *d, const struct panel *p, int x, int y, int w)
{
	uint64_t low = p->r->low + p->plot.base, high = p->r->high + p->plot.base;
	int a = (int)vc_muldiv(low < d->top ? low : d->top, (uint64_t)w, d->top);
	int b = (int)vc_muldiv(high < d->top ? high : d->top, (uint64_t)w, d->top);

	vc_svg_hline(&d->page.svg, "res", x + a, y, b > a ? b - a : 1);
	vc_svg_vline(&d->page.svg, "res", x + a, y - 50, 100);
	if (high <= d->top)
		vc_svg_vline(&d->page.svg, "res", x + b, y - 50, 100);
}

/* One bar per run: allocated solid, reserved hatched, capacity as a line. */
static int bars(struct drawing *d, int y)
{
	struct vc_svg *s = &d->page.svg;
	int name = d->page.w / 4, w = d->page.w - 2 * VC_MARGIN - name - 1300, x = VC_MARGIN + name;
	struct vc_label l = { VC_MARGIN, y, VC_T_HEAD, VC_START, "fg", 0, false, false };
	char buf[VC_FORMAT];
	bool ends = false;

	for (size_t i = 0; i < d->n; i++)
		ends |= d->panel[i].r->has_interval;
	vc_svg_label(s, &l, ends ? "Peaks: allocated, reserved (hatched), its band" :
				   "Peaks: allocated, and reserved (hatched)");
	y += 200;
	vc_svg_put(s, "<g>\n");
	for (size_t i = 0; i < d->n; i++, y += BAR) {
		const struct panel *p = &d->panel[i];
		int a = (int)vc_muldiv(p->r->stats.peak_allocated + p->plot.base, (uint64_t)w,
				       d->top);
		int r = (int)vc_muldiv(p->r->stats.peak_reserved + p->plot.base, (uint64_t)w,
				       d->top);
		const char *color;
		vc_svg_say(s, p->name, x - 120, y + 150, VC_T_SMALL, VC_END, "fg", name - 200);
		vc_svg_rect(s, "hx segbox", (struct vc_box){ x, y + 20, r > w ? w : r, 180 }, 0);
		vc_svg_rect(s, "busy", (struct vc_box){ x, y + 20, a > w ? w : a, 180 }, 0);
		if (p->r->has_interval)
			whisker(d, p, x, y + 110, w);
		if (p->plot.has_capacity)
			vc_svg_vline(s, "capl", x + (int)vc_muldiv(p->plot.capacity, (uint64_t)w,
					d->top), y - 30, 280);
		vc_verdict_word(p->r, &color);
		int used = vc_svg_say(s, vc_format_bytes(p->r->stats.peak_reserved, buf),
				      d->page.w - VC_MARGIN, y + 150, VC_T_STRONG, VC_END, color,
				      0).w;
		vc_verdict_icon(s, p->r, d->page.w - VC_MARGIN - used - 190, y + 60);
	}
	vc_svg_put(s, "</g>\n");
	return y;
}

static int legend(struct drawing *d, int y)
{
	struct vc_columns all = d->panel[0].columns;
	struct vc_key key[VC_SLOTS + 5];

	memcpy(all.used, d->used, sizeof(d->used));
	size_t n = vc_plot_keys(&d->panel[0].classes, &all, key);
	key[n++] = (struct vc_key){ "capl", "Capacity", VC_KEY_LINE };
	return vc_page_legend(
		&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

/* Who needs least, those that fit first. */
static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	const struct panel *best = &d->panel[0];
	size_t fit = 0, cards = 0;
	char a[VC_FORMAT];

	for (size_t i = 0; i < d->n; i++) {
		const struct panel *p = &d->panel[i];
		enum vc_verdict v = vc_result_verdict(p->r), w = vc_result_verdict(best->r);

		fit += v == VC_FITS;
		cards += p->r->info.capacity > 0;
		if (v < w || (v == w && p->r->stats.peak_used < best->r->stats.peak_used))
			best = p;
	}
	if (d->n == 1) {
		vc_answer_text(best->r, d->by_time, buf, cap);
		return;
	}
	vc_format_bytes(best->r->stats.peak_used, a);
	if (cards == d->n && fit == 1)
		snprintf(buf, cap, "Of %zu only %.120s fits: %s used", d->n, best->name, a);
	else if (cards == d->n)
		snprintf(buf, cap, "%zu of %zu fit. Least is needed by %.120s: %s", fit, d->n,
			 best->name, a);
	else
		snprintf(buf, cap, "Least is needed by %.120s: %s", best->name, a);
}

/* What all of them have in common. */
static void common_text(const struct drawing *d, char *buf, size_t cap)
{
	static const char *const before[] = { "", "", "version ", "", "on ", "" };
	size_t used = 0;
	char name[160];

	*buf = '\0';
	for (int f = 0; f < 6 && used < cap; f++) {
		const char *v = field(d->panel[0].r, f);

		if (f == 0)
			vc_trace_name(d->panel[0].r, name, sizeof(name));
		if (!d->differs[f] && *v)
			used += (size_t)snprintf(buf + used, cap - used, "%s%s%s", used ? ", " : "",
						 before[f], f ? v : name);
	}
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[700], common[512];

	title_text(d, title, sizeof(title));
	common_text(d, common, sizeof(common));
	snprintf(text, sizeof(text), "%s; shared axes%s", common,
		 d->given > d->n ? "; the first twelve runs are shown" : "");
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_header(&d->page, title, text, NULL);
	y = legend(d, y);
	y = panels(d, y + 50);
	y = bars(d, y + 250);
	if (!d->differs[3])
		vc_conf_text(d->panel[0].r, common, sizeof(common));
	vc_page_footer(&d->page, y + 150, d->differs[3] ? "" : common,
		       "each column with its maximum \xC2\xB7 vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 480 : 200), out, err);
}

static int compare_write(const struct vc_result *runs, size_t n, const void *config,
			 struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	const struct vc_picture *cfg = vc_picture_config(config, &fallback);
	struct drawing *d = calloc(1, sizeof(*d));
	int rc;

	VC_HAVE(d, "the picture", err);
	d->given = n;
	for (size_t i = 0; i < n && d->n < PANELS; i++)
		if (runs[i].curve.n)
			d->panel[d->n++].r = &runs[i];
	if (!d->n) {
		free(d);
		return vc_page_notice(cfg, "Comparison", !n ? "no run was given" :
				      "no run made a request for memory: nothing was simulated",
				      out, err);
	}
	d->per_row = cfg->width < VC_NARROW / 10 ? 1 :
		     d->n == 1                   ? 1 :
		     d->n == 2 || d->n == 4      ? 2 :
						   3;
	find_differences(d);
	for (size_t i = 0; i < d->n; i++)
		name_panel(d, &d->panel[i], i);
	rc = prepare(d, cfg, err);
	if (!rc)
		rc = draw(d, cfg, out, err);
	for (size_t i = 0; i < d->n; i++) {
		vc_columns_fini(&d->panel[i].columns);
		vc_classes_fini(&d->panel[i].classes);
	}
	free(d);
	return rc;
}

static const char *const reads[] = { "timeline", "lives", "oom", NULL };

const struct vc_sink_type vc_sink_compare = {
	.name = "compare", .extension = "svg",
	.summary = "several runs side by side on the same axes",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture), .observers = reads,
	.lives_limit = 2000000, .side_by_side = true, .write = compare_write,
};
