/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - predicted peak by the value that was varied: the band to aim for, where it only fits by
 * flushing, where it fails, and what to take. */

#include "visualize/scene.h"

#include "common/vec.h"

enum { SERIES = 4, BARS = 400, SIDE = 2500, LEFT = 800, PLOT_HEIGHT = 3600 };

struct bar { const struct vc_result *r; double value; int series, column; };

struct drawing {
	struct vc_page page;
	struct bar bar[BARS];
	size_t n, given;
	char series[SERIES][96];
	int series_n, columns;
	double value[BARS];
	uint64_t capacity, top;
	bool capacities;       /* they differ: every column has its own */
	struct vc_box box;
	struct vc_axis axis;
	const struct bar *best;
	const char *vary;
};

static const char *const series_class[SERIES] = { "cg", "cw", "cs", "ca" };

static uint64_t peak_of(const struct vc_result *r)
{
	return r->stats.peak_used;
}

/* The upper end of the interval, which a recommendation has to go by. */
static uint64_t most_of(const struct vc_result *r)
{
	return r->trust.used_high > peak_of(r) ? r->trust.used_high : peak_of(r);
}

/* What tells a series from the others: settings, allocator, card. */
static void series_name(const struct vc_result *r, char *buf, size_t cap)
{
	const struct vc_run_info *i = &r->info;

	snprintf(buf, cap, "%s%s%s%s%s", i->conf && *i->conf ? i->conf : "default settings",
		 i->model && !i->torch ? ", " : "", i->model && !i->torch ? i->model : "",
		 i->gpu ? ", " : "", i->gpu ? i->gpu : "");
}

static int find_series(struct drawing *d, const struct vc_result *r)
{
	char name[96];

	series_name(r, name, sizeof(name));
	for (int i = 0; i < d->series_n; i++)
		if (!strcmp(d->series[i], name))
			return i;
	if (d->series_n == SERIES)
		return -1;
	memcpy(d->series[d->series_n], name, sizeof(name));
	return d->series_n++;
}

VC_COMPARE(by_value, struct bar,
	   VC_THEN(VC_ORDER(x->value, y->value), VC_ORDER(x->series, y->series)))

static void collect(struct drawing *d, const struct vc_result *runs, size_t n)
{
	d->given = n;
	for (size_t i = 0; i < n && d->n < BARS; i++) {
		int series = find_series(d, &runs[i]);
		if (series < 0)
			continue;
		d->vary = d->vary ? d->vary : runs[i].info.vary;
		d->bar[d->n++] = (struct bar){
			&runs[i], runs[i].info.vary ? runs[i].info.value : (double)i, series, 0 };
		d->capacities =
			d->capacities || (d->capacity && runs[i].info.capacity != d->capacity);
		if (runs[i].info.capacity > d->capacity)
			d->capacity = runs[i].info.capacity;
	}
	vc_sort(d->bar, d->n, sizeof(*d->bar), by_value);
	for (size_t i = 0; i < d->n; i++) {
		if (!i || d->bar[i].value > d->bar[i - 1].value)
			d->value[d->columns++] = d->bar[i].value;
		d->bar[i].column = d->columns - 1;
		uint64_t most = most_of(d->bar[i].r), cap = d->bar[i].r->info.capacity;
		if (cap && most > cap + cap / 4) /* beyond that an interval is cut */
			most = peak_of(d->bar[i].r) > cap + cap / 4 ? peak_of(d->bar[i].r) :
								      cap + cap / 4;
		if (most > d->top)
			d->top = most;
	}
	d->top = d->capacity > d->top && d->top >= d->capacity / 4 ? d->capacity : d->top;
	d->top = d->top > 1ull << 60 ? 1ull << 60 : d->top; /* broken results must not wrap */
	d->top = (d->top ? d->top : 1) + d->top / 8;
}

/* The largest value (of capacities: the smallest) that fits without flushing and leaves 5 % of the
 * device; the cheapest in bytes of those. NULL: none does. */
static const struct bar *recommend(const struct drawing *d)
{
	const struct bar *best = NULL;

	for (size_t i = 0; i < d->n; i++) {
		const struct bar *b = &d->bar[i];

		if (!vc_has_spare(b->r))
			continue;
		if (!best || (d->capacities ? b->value < best->value : b->value > best->value) ||
		    (b->column == best->column && peak_of(b->r) < peak_of(best->r)))
			best = b;
	}
	return best;
}

static int y_of(const struct drawing *d, uint64_t bytes)
{
	uint64_t h = vc_muldiv(bytes, (uint64_t)d->box.h, d->top);

	return d->box.y + d->box.h - (int)(h > (uint64_t)d->box.h ? (uint64_t)d->box.h : h);
}

static void backdrop(struct drawing *d)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_label l = { d->box.x - 90, d->box.y - 160, VC_T_SMALL, VC_END, "mut", 0,
			     false,         false };
	char buf[VC_FORMAT], text[80];

	d->axis = vc_axis_bytes(d->top, 8);
	vc_svg_label(s, &l, d->axis.name);
	if (d->capacity && d->capacity <= d->top && !d->capacities) {
		int a = y_of(d, d->capacity / 100 * 95), b = y_of(d, d->capacity / 100 * 85);
		vc_svg_rect(s, "band", (struct vc_box){ d->box.x, a, d->box.w, b - a }, 0);
	}
	uint64_t at = 0;
	for (bool more = true; more; more = vc_axis_next(&d->axis, &at)) {
		int y = y_of(d, at);
		vc_svg_hline(s, "gr", d->box.x, y / 10 * 10 + 5, d->box.w);
		vc_svg_say(s, vc_axis_text(&d->axis, at, buf), d->box.x - 90, y + 45, VC_T_BODY,
			   VC_END, "mut", 0);
	}
	if (!d->capacity || d->capacity > d->top || d->capacities)
		return;
	vc_svg_hline(s, "capl", d->box.x, y_of(d, d->capacity), d->box.w);
	l = (struct vc_label){
		d->box.x + 60, y_of(d, d->capacity) - 55, VC_T_STRONG, VC_START, "capt", 0, false,
		true };
	snprintf(text, sizeof(text), "capacity %s", vc_format_bytes(d->capacity, buf));
	vc_svg_label(s, &l, text);
}

/* From the lower to the upper end of the interval; an end above the plot is cut. */
static void whisker(struct drawing *d, const struct vc_result *r, int x)
{
	int low = y_of(d, r->trust.used_low), high = y_of(d, r->trust.used_high);

	if (!r->has_interval || low - high < 30)
		return;
	vc_svg_vline(&d->page.svg, "res", x, high, low - high);
	vc_svg_hline(&d->page.svg, "res", x - 35, low, 70);
	if (r->trust.used_high <= d->top)
		vc_svg_hline(&d->page.svg, "res", x - 35, high, 70);
}

static void draw_bar(struct drawing *d, const struct bar *b, int x, int w)
{
	struct vc_svg *s = &d->page.svg;
	enum vc_verdict v = vc_result_verdict(b->r);
	uint64_t used = b->r->stats.peak_allocated + b->r->info.context + b->r->info.others;
	int y = y_of(d, peak_of(b->r)), floor = y_of(d, 0), ya = y_of(d, used);
	char a[VC_FORMAT], c[VC_FORMAT];

	vc_svg_put(s, "<g><title>%e: reserved %s, ", d->series[b->series],
		   vc_format_bytes(peak_of(b->r), a));
	vc_svg_put(s, "allocated %s, %s</title>", vc_format_bytes(used, c),
		   vc_verdict_word(b->r, NULL));
	s->titles++;
	if (v == VC_OOM || (v == VC_UNDECIDED && vc_result_replayed(b->r) == VC_OOM)) {
		uint64_t capacity = b->r->info.capacity;
		y = capacity && capacity <= d->top ?
			    y_of(d, capacity) - (d->capacities ? 0 : 150) :
			    y;
		vc_svg_put(s, "<rect class=\"nf %s thin\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\"/>", v == VC_OOM ? "bads" : "opens", x + 8, y, w - 16,
			   floor - y);
		vc_verdict_icon(s, b->r, x + w / 2 - 50, floor - 250);
		whisker(d, b->r, x + w / 2);
		vc_svg_put(s, "</g>\n");
		return;
	}
	vc_svg_rect(s, series_class[b->series], (struct vc_box){ x, y, w, floor - y },
		    w > 60 ? 20 : 0);
	if (ya - y > 25 && w > 30)
		vc_svg_put(s, "<rect class=\"bg\" x=\"%c\" y=\"%c\" width=\"%c\" height=\"2.5\"/>",
			   x, ya - 12, w);
	if (v == VC_FLUSHES) {
		vc_svg_put(s, "<rect class=\"bg\" x=\"%c\" y=\"%c\" width=\"%c\" height=\"%c\" "
			   "fill-opacity=\".55\"/><rect class=\"hx\" x=\"%c\" y=\"%c\" "
			   "width=\"%c\" height=\"%c\"/>", x, y, w, 300, x, y, w, 300);
		vc_verdict_icon(s, b->r, x + w / 2 - 50, y - 170);
	}
	if (v == VC_UNDECIDED) {
		vc_svg_put(s, "<rect class=\"bg\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\" fill-opacity=\".6\"/>", x, y, w, floor - y);
		vc_verdict_icon(s, b->r, x + w / 2 - 50, floor - 250);
	}
	whisker(d, b->r, x + w / 2);
	vc_svg_put(s, "</g>\n");
}

static void bars(struct drawing *d)
{
	struct vc_svg *s = &d->page.svg;
	int slot = d->box.w / d->columns, w = (slot * 7 / 10) / d->series_n, every = 1;
	char text[40];

	w = w > 500 ? 500 : w < 10 ? 10 : w;
	while (slot * every < 380)
		every++;
	for (size_t i = 0; i < d->n; i++) {
		int x = d->box.x + d->bar[i].column * slot + (slot - w * d->series_n) / 2;
		if (i % 100 == 0)
			vc_svg_put(s, i ? "</g><g>\n" : "<g>\n");
		draw_bar(d, &d->bar[i], x + d->bar[i].series * w + (w > 60 ? 10 : 0),
			 w > 60 ? w - 20 : w);
	}
	vc_svg_put(s, "</g>\n");
	for (size_t i = 0; i < d->n && d->capacities; i++) /* a line of its own over each column */
		if (d->bar[i].series == 0 && d->bar[i].r->info.capacity <= d->top)
			vc_svg_hline(s, "capl", d->box.x + d->bar[i].column * slot + slot / 12,
				     y_of(d, d->bar[i].r->info.capacity), slot - slot / 6);
	for (int i = 0; i < d->columns; i++) {
		bool best = d->best && d->best->column == i;
		if (i % every && !best)
			continue;
		struct vc_label l = { d->box.x + i * slot + slot / 2,
				     d->box.y + d->box.h + 200,
				     best ? VC_T_STRONG : VC_T_BODY,
				     VC_MIDDLE,
				     best ? "fg" : "mut",
				     0,
				     false,
				     false };
		vc_varied_text(d->value[i], text, sizeof(text));
		if (vc_svg_is_clear(s, vc_svg_measure(&l, text)))
			vc_svg_label(s, &l, text);
	}
	struct vc_label l = { d->box.x + d->box.w, d->box.y + d->box.h + 400, VC_T_SMALL, VC_END,
		"mut", 0, false, false };
	vc_svg_label(s, &l, d->vary ? d->vary : "run");
}

/* The figures of the line, where they stand clear of everything else. */
static void rate_label(struct drawing *d, int x, int y, double rate)
{
	struct vc_label l = { x, y - 90, VC_T_SMALL, VC_MIDDLE, "mut", 0, false, true };
	unsigned long long tenth = (unsigned long long)(rate * 10 + 0.5);
	char text[40], buf[VC_FORMAT];

	if (rate >= 100)
		snprintf(text, sizeof(text), "%s/s", vc_format_count((uint64_t)(rate + 0.5), buf));
	else
		snprintf(text, sizeof(text), "%llu.%llu/s", tenth / 10, tenth % 10);
	if (vc_svg_is_clear(&d->page.svg, vc_svg_measure(&l, text)))
		vc_svg_label(&d->page.svg, &l, text);
}

/* Samples per second, on a scale of its own, where the time of the run was predicted. */
static bool throughput(struct drawing *d)
{
	struct vc_svg *s = &d->page.svg;
	int slot = d->box.w / d->columns;
	double rate[BARS], most = 0;
	bool open = false;

	for (size_t i = 0; i < d->n; i++) {
		const struct vc_timing *t = &d->bar[i].r->timing;

		bool ran = vc_result_replayed(d->bar[i].r) != VC_OOM;

		rate[i] = t->step_ns && ran ? t->samples * 1e9 / (double)t->step_ns : 0;
		most = rate[i] > most ? rate[i] : most;
	}
	if (!(most > 0) || !d->vary)
		return false;
	for (int k = 0; k < d->series_n; k++, open = false) {
		for (size_t i = 0; i < d->n; i++) {
			if (d->bar[i].series != k || !(rate[i] > 0))
				continue;
			int y = d->box.y + d->box.h -
				(int)(rate[i] / most * (double)d->box.h * 0.9);
			vc_svg_put(s, "%s%s%c %c", open ? "" : "<path class=\"res thin\" d=\"",
				   open ? "L" : "M",
				   d->box.x + d->bar[i].column * slot + slot / 2, y);
			open = true;
		}
		vc_svg_put(s, open ? "\"/>\n" : "");
	}
	for (size_t i = 0; i < d->n; i++)
		if (rate[i] > 0)
			rate_label(d, d->box.x + d->bar[i].column * slot + slot / 2,
				   d->box.y + d->box.h -
					   (int)(rate[i] / most * (double)d->box.h * 0.9),
				   rate[i]);
	return true;
}

static int side_line(struct drawing *d, int x, int y, enum vc_text_style style, const char *color,
		     const char *text)
{
	vc_svg_say(&d->page.svg, text, x, y, style, VC_START, color, d->page.w - VC_MARGIN - x);
	return y + (style == VC_T_KPI ? 230 : 200);
}

/* What to take, and why; the y below. */
static int advice(struct drawing *d, int x, int y)
{
	const struct bar *b = d->best;
	char text[200], value[40], a[VC_FORMAT], c[VC_FORMAT];

	if (!b) {
		y = side_line(d, x, y, VC_T_SMALL, "mut", "Recommended");
		return side_line(d, x, y + 60, VC_T_STRONG, "bad",
				 "none fits with room to spare");
	}
	y = side_line(d, x, y, VC_T_SMALL, "mut", "Recommended");
	vc_varied_text(b->value, value, sizeof(value));
	snprintf(text, sizeof(text), "%s %s", d->vary ? d->vary : "run", value);
	y = side_line(d, x, y + 80, VC_T_KPI, "fg", text);
	y = side_line(d, x, y, VC_T_BODY, "fg", d->series[b->series]);
	snprintf(text, sizeof(text), "%s", vc_format_bytes(peak_of(b->r), a));
	if (b->r->info.capacity)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %s of capacity",
			 vc_format_percent(peak_of(b->r), b->r->info.capacity, c));
	y = side_line(d, x, y, VC_T_STRONG, "ok", text);
	y = side_line(d, x, y, VC_T_SMALL, "mut",
		      d->capacities ? "the smallest it fits on without flushing," :
				      "the largest that fits without flushing,");
	return side_line(d, x, y - 30, VC_T_SMALL, "mut", b->r->has_interval ?
			 "with 5 % left at the upper end" : "with 5 % of the device left");
}

static int keys(struct drawing *d, int x, int y, int w, bool line)
{
	struct vc_key key[SERIES + 7];
	bool undecided = false, ends = false;
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++) {
		undecided |= vc_result_verdict(d->bar[i].r) == VC_UNDECIDED;
		ends |= d->bar[i].r->has_interval;
	}

	for (int i = 0; i < d->series_n; i++)
		key[n++] = (struct vc_key){ series_class[i], d->series[i], VC_KEY_BOX };
	key[n++] = (struct vc_key){ "hx", "fits only by flushing the cache (~)", VC_KEY_BOX };
	if (undecided)
		key[n++] = (struct vc_key){ "nf opens thin", "undecided: may fit (?)", VC_KEY_BOX };
	if (ends)
		key[n++] = (struct vc_key){ "res", "between the ends of the interval",
					   VC_KEY_LINE };
	key[n++] = (struct vc_key){ "nf bads thin", "runs out of memory (x)", VC_KEY_BOX };
	key[n++] = d->capacities ? (struct vc_key){ "capl", "capacity", VC_KEY_LINE } :
		(struct vc_key){ "band", "85 to 95 % of capacity", VC_KEY_BOX };
	key[n++] = (struct vc_key){ "segk", "gap in a bar: peak allocated", VC_KEY_LINE };
	if (line)
		key[n++] = (struct vc_key){ "res thin", "samples per second", VC_KEY_LINE };
	for (size_t i = 0; i < n && w < 4000; i++)
		y = vc_page_legend(&d->page, (struct vc_box){ x, y, w, 0 }, &key[i], 1) + 40;
	return w < 4000 ? y : vc_page_legend(&d->page, (struct vc_box){ x, y, w, 0 }, key, n);
}

/* What fails next to the one that is taken, in its series; where none is taken, what fails last on
 * the way to less. NULL: nothing. */
static const struct bar *first_to_fail(const struct drawing *d)
{
	const struct bar *found = NULL;

	for (size_t i = 0; i < d->n; i++) {
		const struct bar *b = &d->bar[d->capacities ? i : d->n - 1 - i];

		if (vc_result_replayed(b->r) != VC_OOM || (d->best && b->series != d->best->series))
			continue;
		if (!d->best || (d->capacities ? b->value < d->best->value :
						 b->value > d->best->value))
			found = b;
	}
	return found;
}

/* When and by whom, of what is taken and of what fails next to it. */
static int moments(struct drawing *d, int y)
{
	const struct bar *of[2] = { d->best, first_to_fail(d) };
	struct vc_subject subject[2];
	char name[2][100], value[40];
	size_t n = 0;

	if (!of[0] && !of[1])
		of[0] = &d->bar[0];
	for (size_t i = 0; i < 2; i++) {
		if (!of[i])
			continue;
		vc_varied_text(of[i]->value, value, sizeof(value));
		snprintf(name[n], sizeof(name[n]), "%.40s %s", d->vary ? d->vary : "run", value);
		subject[n] = (struct vc_subject){ name[n], NULL, of[i]->r };
		n++;
	}
	return vc_page_facts_of(&d->page, y, subject, n, VC_ASK_ALL);
}

static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	const char *gpu = d->capacities ? NULL : d->bar[0].r->info.gpu;

	vc_choice_text(d->vary ? d->vary : "run", !d->capacities,
		       &(struct vc_named){ gpu, d->best ? d->best->r : NULL }, 1, buf, cap);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[512], name[160], words[200] = "";
	bool narrow = cfg->width < VC_NARROW / 10;

	d->best = recommend(d);
	title_text(d, title, sizeof(title));
	vc_trace_name(d->bar[0].r, name, sizeof(name));
	snprintf(text, sizeof(text),
		 "%s: %zu runs predicted, reserved memory and what is beside it%s", name, d->n,
		 d->given > d->n ? "; at most four series are shown" : "");
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_header(&d->page, title, text, NULL);
	int side = narrow ? 0 : SIDE + 400;
	d->box = (struct vc_box){ LEFT, y + 250, d->page.w - VC_MARGIN - side - LEFT, PLOT_HEIGHT };
	backdrop(d);
	bars(d);
	bool line = throughput(d);
	int x = narrow ? VC_MARGIN : d->box.x + d->box.w + 400, below = d->box.y + d->box.h + 500;
	int end = keys(d, x, narrow ? below : y + 200, narrow ? d->page.w - 2 * VC_MARGIN : SIDE,
		       line);
	end = advice(d, x, end + 300);
	below = moments(d, end > below ? end : below);
	if (d->best)
		vc_conf_text(d->best->r, words, sizeof(words));
	vc_page_footer(&d->page, below + 100, words, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, below + (cfg->footer ? 430 : 150), out, err);
}

extern const struct vc_sink_type vc_sink_heatmap;

static int sweep_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d;
	bool any = false;

	if (n && runs->info.by) /* bars of two keys would stand on each other */
		return vc_sink_heatmap.write(runs, n, config, out, err);
	d = calloc(1, sizeof(*d));
	VC_HAVE(d, "the picture", err);
	for (size_t i = 0; i < n; i++)
		any = any || runs[i].stats.events;
	collect(d, runs, n);
	int rc =
		!any ? vc_page_notice(cfg, "Sweep",
				      n ? "no run made a request for memory" : "no run was given",
				      out, err) :
		       draw(d, cfg, out, err);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_sweep = {
	.name = "sweep", .extension = "svg",
	.summary = "predicted peak by the value that was varied, and what to take",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("steps", "oom", "moment"),
	.write = sweep_write,
};
