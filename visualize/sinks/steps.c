/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - one iteration: the allocated bytes above the phases and the lanes of kernels, and
 * what ran when the most was allocated. */
#include <stdio.h>
#include <string.h>

#include "common/event.h"
#include "common/site.h"
#include "visualize/scene.h"

enum { LANES = 6, LANE = 220, LEFT = 800, PLOT_HEIGHT = 3000, BOXES = 1600 };

/* Steady: a step between two marks. Else all up to the first mark, or all of the run. */
struct window { uint64_t first, span; size_t step; bool steady, marked; };

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_plot plot;
	const struct vc_result *r;
	struct window at;
	uint32_t stream[LANES]; size_t lanes;
	const struct vc_kernel_at *at_peak;
	uint64_t peak_ns;
};

/* The step in which the most was allocated. */
static struct window choose(const struct vc_result *r, bool by_time)
{
	const struct vc_curve *v = &r->curve;
	const struct vc_steps *t = &r->steps;
	const struct vc_bucket *top = &v->at[0], *z = &v->at[v->n - 1];
	uint64_t from = by_time ? v->at[0].first_ns : 0,
		 end = by_time ? z->last_ns : z->last_event + 1, at, before = from;
	size_t seen = 0;
	bool marked = false;

	for (size_t i = 1; i < v->n; i++)
		if (v->at[i].allocated_max > top->allocated_max)
			top = &v->at[i];
	at = by_time ? vc_curve_time(r, top->peak_event) : top->peak_event;
	for (size_t i = 0; i < t->marks; i++) {
		uint64_t m = by_time ? t->mark[i].time_ns : t->mark[i].event;
		if (t->mark[i].kind != VC_MARK_STEP)
			continue;
		marked = true;
		if (m > at) {
			end = m;
			break;
		}
		before = from;
		from = m;
		seen++;
	}
	if (end <= from && seen > 1) { /* the peak at the very end belongs to the step that ends */
		end = from;
		from = before;
		seen--;
	}
	return (struct window){ from, end > from ? end - from : 1, seen ? seen - 1 : 0, seen > 0,
				marked };
}

static bool inside(const struct drawing *d, const struct vc_kernel_at *k)
{
	return k->start_ns < d->at.first + d->at.span && k->start_ns + k->duration_ns > d->at.first;
}

static void find_lanes(struct drawing *d)
{
	const struct vc_steps *t = &d->r->steps;

	for (size_t i = 0; i < t->kernels; i++) {
		size_t k = 0;
		if (!inside(d, &t->kernel[i]))
			continue;
		if (t->kernel[i].start_ns <= d->peak_ns &&
		    (!d->at_peak || t->kernel[i].start_ns >= d->at_peak->start_ns))
			d->at_peak = &t->kernel[i];
		while (k < d->lanes && d->stream[k] != t->kernel[i].stream)
			k++;
		if (k == d->lanes && k < LANES)
			d->stream[d->lanes++] = t->kernel[i].stream;
	}
}

/* Wide ones stand apart from what follows. */
static void busy_box(struct vc_svg *s, int from, int to, int y)
{
	int w = to - from > 20 ? to - from - 3 : to - from;

	if (w > 0)
		vc_svg_put(s, "M%c %ch%cv%ch%cz", from, y, w, 170, -w);
}

/* Kernels of one stream: wide ones as boxes with their name, the rest as one path. */
static void lane(struct drawing *d, size_t index, int y)
{
	const struct vc_steps *t = &d->r->steps;
	struct vc_svg *s = &d->page.svg;
	char name[64];
	int from = 0, to = -1;
	size_t boxes = 0;
	struct vc_label l = {
		d->plot.box.x - 90, y + 130, VC_T_SMALL, VC_END, "mut", 0, false, false };

	snprintf(name, sizeof(name), "stream %u", d->stream[index]);
	vc_svg_label(s, &l, name);
	vc_svg_put(s, "<path class=\"busy cell\" d=\"");
	for (size_t i = 0; i < t->kernels; i++) {
		const struct vc_kernel_at *k = &t->kernel[i];
		if (!inside(d, k) || k->stream != d->stream[index])
			continue;
		int a = vc_plot_x(&d->plot, k->start_ns),
		    b = vc_plot_x(&d->plot, k->start_ns + k->duration_ns);
		b = b > a + 3 ? b : a + 3;
		if (to >= a - 2 && (b - a <= 20 || to - from <= 20)) { /* no gap that can be seen */
			to = b > to ? b : to;
			continue;
		}
		busy_box(s, from, to, y);
		from = a > to ? a : to;
		to = b > from ? b : from;
	}
	busy_box(s, from, to, y);
	vc_svg_put(s, "\"/>\n<g>");
	for (size_t i = 0; i < t->kernels && boxes < BOXES / LANES; i++) {
		const struct vc_kernel_at *k = &t->kernel[i];
		if (!inside(d, k) || k->stream != d->stream[index])
			continue;
		int a = vc_plot_x(&d->plot, k->start_ns),
		    b = vc_plot_x(&d->plot, k->start_ns + k->duration_ns);
		if (b - a < 60)
			continue;
		char time[VC_FORMAT];
		const char *what = vc_label_text(d->r->meta, k->label);
		vc_svg_put(s, "%s<rect class=\"hit\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"17\"><title>%e, %s</title></rect>",
			   boxes && boxes % 100 == 0 ? "</g>\n<g>" : "", a, y, b - a, what,
			   vc_format_ns(k->duration_ns, time));
		s->titles++;
		boxes++;
		l = (struct vc_label){ (a + b) / 2, y + 125,    VC_T_TINY, VC_MIDDLE,
				      "onc",       b - a - 30, false,     false };
		if (b - a > 500 && *what)
			vc_svg_label(s, &l, what);
	}
	vc_svg_put(s, "</g>\n");
}

/* The least that is allocated in it. */
static uint64_t lowest(const struct drawing *d)
{
	uint64_t low = d->columns.at[0].allocated_min;

	for (size_t i = 1; i < d->columns.n; i++)
		if (d->columns.at[i].allocated_min < low)
			low = d->columns.at[i].allocated_min;
	return low;
}

static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	uint64_t low = lowest(d), most = d->columns.allocated;
	char a[VC_FORMAT], b[VC_FORMAT];

	if (d->at.steady)
		snprintf(buf, cap, "Step %zu needs %s on top of the %s that stay", d->at.step,
			 vc_format_in(most - low, most, a), vc_format_in(low, most, b));
	else
		snprintf(buf, cap, "%s %s are allocated at the highest",
			 d->at.marked ? "Before the first step is marked" : "In the whole run",
			 vc_format_bytes(most, a));
}

static int tiles(struct drawing *d, int y)
{
	struct vc_tile t[4] = { 0 };
	char a[VC_FORMAT];
	uint64_t low = lowest(d), most = d->columns.allocated;

	snprintf(t[0].label, sizeof(t[0].label), "Peak allocated");
	snprintf(t[0].value, sizeof(t[0].value), "%s", vc_format_in(most, most, a));
	if (d->columns.by_time)
		snprintf(t[0].note, sizeof(t[0].note), "%s after it began",
			 vc_format_ns(d->peak_ns > d->at.first ? d->peak_ns - d->at.first : 0, a));
	snprintf(t[1].label, sizeof(t[1].label), "Lowest in it");
	snprintf(t[1].value, sizeof(t[1].value), "%s", vc_format_in(low, most, a));
	if (d->at.steady)
		snprintf(t[1].note, sizeof(t[1].note), "what stays from step to step");
	snprintf(t[2].label, sizeof(t[2].label), d->at.steady ? "The step needs" : "Grows by");
	snprintf(t[2].value, sizeof(t[2].value), "%s",
		 vc_format_in(most - low, most, a));
	snprintf(t[2].note, sizeof(t[2].note), "%s", d->at.steady ? "on top of that" :
		 "from there to the peak");
	snprintf(t[3].label, sizeof(t[3].label), "%s", d->columns.by_time ? "It takes" :
		 "Events in it");
	snprintf(t[3].value, sizeof(t[3].value), "%s", d->columns.by_time ? vc_format_ns(d->at.span,
		 a) : vc_format_count(d->at.span, a));
	if (d->at_peak)
		snprintf(t[3].note, sizeof(t[3].note), "at the peak ran %s",
			 vc_label_text(d->r->meta, d->at_peak->label));
	else
		snprintf(t[3].note, sizeof(t[3].note), "no kernels were recorded");
	t[0].color = t[1].color = t[2].color = t[3].color = "fg";
	return vc_page_tiles(&d->page, y, t, 4);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[700];
	struct vc_key key[VC_SLOTS + 4];
	struct vc_plot *p = &d->plot;

	title_text(d, title, sizeof(title));
	snprintf(text, sizeof(text), "%s",
		 d->at.marked ? "" : "no steps are marked in this trace: all of it \xC2\xB7 ");
	vc_place_text(d->r, text + strlen(text), sizeof(text) - strlen(text));
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_header(&d->page, title, text, d->r);

	y = tiles(d, vc_page_facts(&d->page, y, d->r));
	y = vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 },
			   key, vc_plot_keys(&d->classes, &d->columns, key));
	p->box = (struct vc_box){ LEFT, y + 230, d->page.w - VC_MARGIN - LEFT, PLOT_HEIGHT };
	vc_plot_scale(p);
	vc_plot_grid(p, true);
	vc_plot_areas(p);
	vc_plot_capacity(p, true);
	if (d->r->oom.happened && (d->columns.by_time ? d->r->oom.time_ns : d->r->oom.event) <=
					  d->at.first + d->at.span)
		vc_plot_oom(p);
	vc_plot_peak(p);
	y = vc_plot_phases(p, p->box.y + p->box.h + 90);
	for (size_t i = 0; i < d->lanes && d->columns.by_time; i++, y += LANE)
		lane(d, i, y);
	vc_plot_axis(p, y);
	vc_conf_text(d->r, text, sizeof(text));
	vc_page_footer(&d->page, y + 400, text, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 730 : 350), out, err);
}

static int steps_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	const struct vc_picture *cfg = vc_picture_config(config, &fallback);
	struct drawing d = { .r = runs };

	if (!n || !runs->curve.n)
		return vc_page_notice(cfg, "One step", !n ? "no run was given" :
				      runs->stats.peak_reserved ?
				      "the heap of one moment: ledger, flame and segments draw it" :
				      "the trace has no request for memory: nothing was simulated",
				      out, err);
	bool by_time = vc_wants_time(cfg, runs);
	d.at = choose(runs, by_time);
	struct vc_range range = { d.at.first, d.at.span };
	int rc = vc_classes_init(&d.classes, runs, err);
	if (!rc)
		rc = vc_columns_init(&d.columns, &d.classes, by_time,
				     (uint32_t)(cfg->width > 4000 ? 4000 : cfg->width) * 2,
				     &range, err);
	if (!rc && !d.columns.n)
		rc = vc_fail(err, VC_EINTERNAL, "the step of the peak has no column");
	if (!rc) {
		d.peak_ns = vc_curve_time(
			runs, runs->curve.at[d.columns.at[d.columns.top].bucket].peak_event);
		d.plot = (struct vc_plot){ .page = &d.page, .c = &d.classes, .k = &d.columns };
		find_lanes(&d);
		rc = draw(&d, cfg, out, err);
	}
	vc_columns_fini(&d.columns);
	vc_classes_fini(&d.classes);
	return rc;
}

static const char *const reads[] = { "timeline", "lives", "oom", "moment", "steps", NULL };

const struct vc_sink_type vc_sink_steps = {
	.name = "steps", .extension = "svg",
	.summary = "the step with the highest peak: bytes above phases and kernels",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture), .observers = reads,
	.lives_limit = 2000000, .write = steps_write,
};
