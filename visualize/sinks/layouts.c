/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c - ways to spread a job over cards: memory against the time of a step. Joined are those
 * that no other beats in both. */

#include "visualize/scene.h"

#include "common/vec.h"

enum { MOST = 4096, JOINED = 16, ROW = 10, ROWS = 3 };
enum { HIGH = 3600, LEFT = 800, ASIDE = 1700, DOT = 40 };

struct point { const struct vc_result *r; int x, y; bool best; };

struct drawing {
	struct vc_page page;
	struct point at[MOST];      /* of known time, the fastest first */
	const struct vc_result *out[MOST]; /* what runs out of memory, or whose time is not known */
	size_t n, outs, joined;
	uint64_t first, last;       /* ends of the axis, ns */
	struct vc_axis time;
	struct vc_plot plot;
};

static bool fits(const struct vc_result *r)
{
	return vc_result_verdict(r) == VC_FITS;
}

static const char *name_of(const struct vc_result *r)
{
	return r->info.by_value ? r->info.by_value : "one";
}

VC_COMPARE(by_time, struct point,
	   VC_THEN(VC_ORDER(x->r->timing.step_ns, y->r->timing.step_ns),
		   VC_ORDER(x->r->stats.peak_used, y->r->stats.peak_used)))

/* Faster ones first: it is joined if it takes less memory than all before it. */
static void collect(struct drawing *d, const struct vc_result *runs, size_t n)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < n && i < MOST; i++)
		if (vc_result_verdict(&runs[i]) == VC_OOM || !runs[i].timing.step_ns)
			d->out[d->outs++] = &runs[i];
		else
			d->at[d->n++].r = &runs[i];
	vc_sort(d->at, d->n, sizeof(*d->at), by_time);
	for (size_t i = 0; i < d->n; i++) {
		struct point *p = &d->at[i];

		p->best = fits(p->r) && p->r->stats.peak_used < least;
		least = p->best ? p->r->stats.peak_used : least;
		d->joined += p->best;
	}
}

/* ---- scales ---- */

static int x_of(const struct drawing *d, uint64_t ns)
{
	return d->plot.box.x + (int)vc_muldiv(ns - d->first, (uint64_t)d->plot.box.w,
					      d->last - d->first);
}

/* From the tick below all that is drawn to the one above. */
static void find_times(struct drawing *d)
{
	uint64_t low = UINT64_MAX, high = 0, span;

	for (size_t i = 0; i < d->n; i++) {
		const struct vc_timing *t = &d->at[i].r->timing;

		low = t->step_ns < low ? t->step_ns : low;
		high = t->step_ns > high ? t->step_ns : high;
		if (d->at[i].best && t->low_ns < t->high_ns) {
			low = t->low_ns < low ? t->low_ns : low;
			high = t->high_ns > high ? t->high_ns : high;
		}
	}
	span = high - low > high / 5 ? high - low : high / 5 + 1;
	d->time = vc_axis_ns(span, (unsigned)(d->plot.box.w / 1500) + 1);
	d->first = low / d->time.step * d->time.step;
	d->first -= d->first && low - d->first < d->time.step / 4 ? d->time.step : 0;
	d->last = (high / d->time.step + 1) * d->time.step;
}

static void time_axis(struct drawing *d)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_box b = d->plot.box;
	char buf[VC_FORMAT], text[2 * VC_FORMAT];

	for (uint64_t at = d->first; at <= d->last; at += d->time.step) {
		vc_svg_vline(s, "ax", x_of(d, at) / 10 * 10 + 5, b.y + b.h, 50);
		vc_svg_say(s, vc_axis_text(&d->time, at, buf), x_of(d, at), b.y + b.h + 220,
			   VC_T_BODY, VC_MIDDLE, "mut", 0);
	}
	snprintf(text, sizeof(text), "a step of equal work, %s", d->time.name);
	vc_svg_say(s, text, b.x + b.w, b.y + b.h + 420, VC_T_SMALL, VC_END, "mut", 0);
}

static void set_plot(struct drawing *d, int y)
{
	struct vc_plot *p = &d->plot;
	uint64_t most = 1;

	p->page = &d->page;
	p->box = (struct vc_box){ LEFT, y, d->page.w - LEFT - VC_MARGIN - (d->outs ? ASIDE : 0),
				  HIGH };
	for (size_t i = 0; i < d->n; i++) {
		const struct vc_result *r = d->at[i].r;

		most = r->stats.peak_used > most ? r->stats.peak_used : most;
		p->capacity = r->info.capacity;
	}
	for (size_t i = 0; i < d->outs; i++)
		p->capacity = d->out[i]->info.capacity;
	most = p->capacity > most ? p->capacity : most;
	most = most > VC_SIZE_MOST ? VC_SIZE_MOST : most; /* broken results must not wrap */
	p->top = most + most / 6;
	p->has_capacity = p->capacity && p->capacity <= most;
	p->axis = vc_axis_bytes(p->top, 8);
}

/* ---- drawing ---- */

static void begin_point(struct drawing *d, const struct vc_result *r)
{
	char step[VC_FORMAT], used[VC_FORMAT];
	bool out = vc_result_verdict(r) == VC_OOM, timed = !out && r->timing.step_ns;

	vc_svg_put(&d->page.svg, "<g><title>%e: %s%s", name_of(r),
		   timed ? vc_format_ns(r->timing.step_ns, step) : out ? "" : "time not known",
		   out ? "" : ", ");
	vc_svg_put(&d->page.svg, "%s%s%s</title>", out ? "" :
		   vc_format_bytes(r->stats.peak_used, used), out ? "" : ", ",
		   vc_verdict_word(r, NULL));
	d->page.svg.titles++;
}

static void draw_point(struct drawing *d, struct point *p)
{
	struct vc_svg *s = &d->page.svg;
	const struct vc_timing *t = &p->r->timing;
	int aside;

	begin_point(d, p->r);
	if (p->best && t->low_ns < t->high_ns) {
		int x = x_of(d, t->low_ns), w = x_of(d, t->high_ns) - x;

		vc_svg_hline(s, "low", x, p->y, w);
		vc_svg_keep_clear(s, (struct vc_box){ x, p->y - 20, w, 40 });
	}
	if (fits(p->r))
		vc_svg_put(s, "<circle class=\"%s\" cx=\"%c\" cy=\"%c\" r=\"%c\"/>",
			   p->best ? "dot" : "bg segk", p->x, p->y, DOT);
	else
		vc_verdict_icon(s, p->r, p->x - 50, p->y - 50);
	vc_svg_put(s, "</g>\n");
	aside = p->best ? 2 * DOT : 5 * DOT; /* else the name of another seems to be its own */
	vc_svg_keep_clear(s, (struct vc_box){ p->x - aside, p->y - 2 * DOT, 2 * aside, 4 * DOT });
}

static void join(struct drawing *d)
{
	bool open = false;

	for (size_t i = 0; i < d->n; i++)
		if (d->at[i].best && d->joined > 1) {
			vc_svg_put(&d->page.svg, "%s%c %c", open ? "L" :
				   "<path class=\"res thin\" d=\"M", d->at[i].x, d->at[i].y);
			open = true;
		}
	vc_svg_put(&d->page.svg, open ? "\"/>\n" : "");
}

/* At the right, in rows up from the capacity. */
static void draw_out(struct drawing *d)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_box b = d->plot.box;
	int line = d->plot.has_capacity ? vc_plot_y(&d->plot, d->plot.capacity) : b.y + 500;

	if (d->outs)
		vc_svg_say(s, "time not known", b.x + b.w + ASIDE / 2, b.y + b.h + 220, VC_T_BODY,
			   VC_MIDDLE, "mut", 0);
	for (size_t i = 0; i < d->outs && i < ROW * ROWS; i++) {
		begin_point(d, d->out[i]);
		vc_verdict_icon(s, d->out[i], b.x + b.w + 150 + (int)(i % ROW) * 150,
				line - 200 - (int)(i / ROW) * 160);
		vc_svg_put(s, "</g>\n");
	}
}

static void points(struct drawing *d)
{
	char text[200];
	size_t k = 0;

	for (size_t i = 0; i < d->n; i++) {
		d->at[i].x = x_of(d, d->at[i].r->timing.step_ns);
		d->at[i].y = vc_plot_y(&d->plot, d->at[i].r->stats.peak_used);
	}
	join(d);
	for (int best = 0; best < 2; best++)
		for (size_t i = 0; i < d->n; i++)
			if (d->at[i].best == best)
				draw_point(d, &d->at[i]);
	draw_out(d);
	for (size_t i = 0; i < d->n && k < JOINED; i++)
		if (d->at[i].best) {
			snprintf(text, sizeof(text), "%zu. %s", ++k, name_of(d->at[i].r));
			vc_plot_point_name(&d->plot, text, d->at[i].x, d->at[i].y);
		}
}

/* What is joined, and what runs out of memory, in words; the y below. */
static int words(struct drawing *d, int y)
{
	char text[400], step[VC_FORMAT], used[VC_FORMAT];
	struct vc_fact out = { .color = "bad", .label = "out of memory, or time not known" };
	size_t k = 0, n = 0;

	for (size_t i = 0; i < d->n && k < JOINED; i++) {
		const struct vc_result *r = d->at[i].r;

		if (!d->at[i].best)
			continue;
		snprintf(text, sizeof(text), "%zu. %s: %s a step, %s", ++k, name_of(r),
			 vc_format_ns(r->timing.step_ns, step),
			 vc_format_bytes(r->stats.peak_used, used));
		vc_svg_say(&d->page.svg, text, VC_MARGIN, y, VC_T_BODY, VC_START, "fg",
			   d->page.w - 2 * VC_MARGIN);
		y += 210;
	}
	for (size_t i = 0; i < d->outs && n < VC_FACT - 60; i++)
		n += (size_t)snprintf(out.text + n, VC_FACT - n, "%s%s", i ? ", " : "",
				      name_of(d->out[i]));
	return d->outs ? vc_page_row(&d->page, y, &out, 1) : y;
}

static bool has(const struct drawing *d, enum vc_verdict v)
{
	for (size_t i = 0; i < d->n + d->outs; i++)
		if (vc_result_verdict(i < d->n ? d->at[i].r : d->out[i - d->n]) == v)
			return true;
	return false;
}

static int keys(struct drawing *d, int y)
{
	struct vc_key key[7] = {
		{ "dot", "fits, and none beats it in time and memory", VC_KEY_BOX },
		{ "bg segk", "fits", VC_KEY_BOX },
		{ "low", "interval of the time", VC_KEY_LINE },
		{ "capl", "capacity", VC_KEY_LINE } };
	size_t n = 4;

	if (has(d, VC_FLUSHES))
		key[n++] = (struct vc_key){ "nf warns thin", "fits only by flushing the cache (~)",
					    VC_KEY_BOX };
	if (has(d, VC_UNDECIDED))
		key[n++] = (struct vc_key){ "nf opens thin", "undecided (?)", VC_KEY_BOX };
	if (has(d, VC_OOM))
		key[n++] = (struct vc_key){ "nf bads thin", "runs out of memory (x)", VC_KEY_BOX };
	return vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN,
							 0 }, key, n);
}

static void title_text(const struct drawing *d, size_t n, char *buf, size_t cap)
{
	char step[VC_FORMAT], used[2 * VC_FORMAT];

	for (size_t i = 0; i < d->n; i++)
		if (d->at[i].best) {
			const struct vc_result *r = d->at[i].r;

			snprintf(buf, cap, "Of %zu layouts that ran %s is the fastest that fits: "
				 "%s a step, %s", n, name_of(r),
				 vc_format_ns(r->timing.step_ns, step),
				 vc_format_of(r->stats.peak_used, r->info.capacity, used));
			return;
		}
	snprintf(buf, cap, "None of %zu layouts that ran is known to fit, and its time", n);
}

static int draw(struct drawing *d, const struct vc_result *runs, size_t n,
		const struct vc_picture *cfg, struct vc_output *out, struct vc_error *err)
{
	char title[400], text[200];
	int y;

	title_text(d, n, title, sizeof(title));
	snprintf(text, sizeof(text), "%.0f cards of %s; memory against the time of a step, "
		 "computed from what kernels do: rough", runs->info.value,
		 runs->info.gpu ? runs->info.gpu : "one kind");
	vc_page_begin(&d->page, cfg, title, text);
	y = vc_page_header(&d->page, title, text, NULL);
	set_plot(d, y + 250);
	vc_plot_grid(&d->plot, true);
	if (d->plot.has_capacity)
		vc_svg_hline(&d->page.svg, "capl", d->plot.box.x, vc_plot_y(&d->plot,
			     d->plot.capacity), d->page.w - VC_MARGIN - d->plot.box.x);
	if (d->n) {
		find_times(d);
		time_axis(d);
	}
	points(d);
	y = keys(d, d->plot.box.y + HIGH + 600);
	y = words(d, y + 250);
	vc_page_footer(&d->page, y, "", "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 330 : 50), out, err);
}

static int layouts_write(const struct vc_result *runs, size_t n, const void *config,
			 struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d;
	int rc;

	if (!n || !runs->info.by || strcmp(runs->info.by, "layout") != 0)
		return vc_page_notice(cfg, "Layouts", "no layouts were given: vramcast fit --find "
				      "plan --json", out, err);
	d = calloc(1, sizeof(*d));
	VC_HAVE(d, "the picture", err);
	collect(d, runs, n);
	rc = draw(d, runs, n, cfg, out, err);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_layouts = {
	.name = "layouts", .extension = "svg",
	.summary = "ways to spread a job over cards: memory against the time of a step",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS(NULL), .write = layouts_write,
};
