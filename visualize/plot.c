/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c - bytes over time or events: layers, reserved line, capacity, axes. */

#include "visualize/scene.h"

/* Of a broken axis: what lies above the cut, where the capacity stands in it, how high the cut is.
 */
enum { ABOVE = 500, CAPACITY_AT = 230, CUT = 90 };

void vc_plot_scale(struct vc_plot *p)
{
	const struct vc_run_info *i = &p->c->r->info;
	uint64_t most;

	p->base = i->context + i->others;
	p->capacity = i->capacity;
	if (i->has_limit && (!i->capacity || i->limit + p->base < i->capacity))
		p->capacity = i->limit + p->base;
	most = p->base + (p->k->reserved > p->k->allocated ? p->k->reserved : p->k->allocated);
	/* A card that the run leaves mostly empty would leave the picture mostly empty. */
	p->broken = p->may_break && most && most < p->capacity / 10 * 6;
	/* A card four times too large would leave a flat line at the bottom. */
	p->has_capacity = p->capacity && (p->broken || !most || most >= p->capacity / 4);
	if (p->has_capacity && !p->broken && p->capacity > most)
		most = p->capacity;
	if (!most)
		most = VC_MIB;
	if (most >
	    1ull << 60) /* no memory is that large: a broken result; sums below must not wrap */
		most = 1ull << 60;
	p->top = most + most / 11; /* room for the labels of the capacity line */
	p->axis = vc_axis_bytes(p->top, p->box.h > 2000 ? 9 : 5);
}

int vc_plot_y(const struct vc_plot *p, uint64_t bytes)
{
	uint64_t room = (uint64_t)(p->box.h - (p->broken ? ABOVE : 0));
	uint64_t h = vc_muldiv(bytes, room, p->top);

	if (p->broken && bytes > p->top)
		return p->box.y + CAPACITY_AT;
	return p->box.y + p->box.h - (int)(h > room ? room : h);
}

static int column_x(const struct vc_plot *p, uint32_t column)
{
	return p->box.x + (int)((uint64_t)column * (uint64_t)p->box.w / p->k->width);
}

int vc_plot_x(const struct vc_plot *p, uint64_t at)
{
	uint64_t d = at > p->k->first ? at - p->k->first : 0;

	if (d > p->k->span)
		d = p->k->span;
	return p->box.x + (int)vc_muldiv(d, (uint64_t)p->box.w, p->k->span);
}

int vc_plot_event_x(const struct vc_plot *p, uint64_t event, uint64_t time_ns)
{
	if (!p->k->by_time)
		return vc_plot_x(p, event);
	return vc_plot_x(p, time_ns ? time_ns : vc_curve_time(p->c->r, event));
}

/* Two strokes across the axis where it is cut. */
static void cut_mark(struct vc_plot *p)
{
	int y = p->box.y + ABOVE - CUT;

	for (int i = 0; i < 2; i++, y -= CUT)
		vc_svg_put(&p->page->svg, "<path class=\"res\" d=\"M%c %cl14-6\"/>\n",
			   p->box.x - 70, y);
}

void vc_plot_grid(struct vc_plot *p, bool numbers)
{
	struct vc_svg *s = &p->page->svg;
	struct vc_label l = { p->box.x - 90, 0, VC_T_BODY, VC_END, "mut", 0, false, false };
	char buf[VC_FORMAT];

	uint64_t at = 0;
	int highest = p->box.y + p->box.h;
	for (bool more = true; more; more = vc_axis_next(&p->axis, &at)) {
		int y = vc_plot_y(p, at);
		highest = y;
		vc_svg_hline(s, "gr", p->box.x, y / 10 * 10 + 5, p->box.w);
		l.y = y + 45;
		if (numbers)
			vc_svg_label(s, &l, vc_axis_text(&p->axis, at, buf));
	}
	if (p->broken)
		cut_mark(p);
	l.y = highest - 110 < p->box.y - 60 ? highest - 110 : p->box.y - 60;
	l.style = VC_T_SMALL;
	if (numbers)
		vc_svg_label(s, &l, p->axis.name);
}

/* The upper edge of what `value` says of each column, closed to the baseline. */
static void area(struct vc_plot *p, const char *klass, int upto)
{
	struct vc_svg *s = &p->page->svg;
	struct vc_pen pen = { s, 0, 0, 0 };
	int floor = vc_plot_y(p, 0);

	vc_svg_put(s, "<path class=\"%s\" d=\"", klass);
	for (size_t i = 0; i < p->k->n; i++) {
		const struct vc_column *c = &p->k->at[i];
		uint64_t sum = p->base;
		for (int l = 0; l <= upto && l < VC_SLOTS; l++)
			sum += c->layer[l];
		if (upto == VC_SLOTS)
			sum = p->base + c->reserved_max;
		int x = column_x(p, c->from), y = vc_plot_y(p, sum);
		if (!i)
			vc_pen_move(&pen, x, floor);
		vc_pen_step(&pen, x, y);
	}
	vc_pen_step(&pen, column_x(p, p->k->at[p->k->n - 1].to), floor);
	vc_pen_flush(&pen);
	vc_svg_put(s, "z\"/>\n");
	s->elements++;
}

/* Is the band between minimum and maximum visible over most of the plot? */
static bool has_band(const struct vc_plot *p)
{
	uint64_t pixel = p->top / (uint64_t)(p->box.h / 10 + 1) + 1, wide = 0;

	for (size_t i = 0; i < p->k->n; i++)
		if (p->k->at[i].allocated_max - p->k->at[i].allocated_min > 2 * pixel)
			wide += p->k->at[i].to - p->k->at[i].from;
	return wide > p->k->width / 3;
}

static void line(struct vc_plot *p, const char *klass, bool reserved)
{
	struct vc_svg *s = &p->page->svg;
	struct vc_pen pen = { s, 0, 0, 0 };

	vc_svg_put(s, "<path class=\"%s\" d=\"", klass);
	for (size_t i = 0; i < p->k->n; i++) {
		const struct vc_column *c = &p->k->at[i];
		int x = column_x(p, c->from);
		int y = vc_plot_y(p, p->base + (reserved ? c->reserved_max : c->allocated_min));
		if (!i)
			vc_pen_move(&pen, x, y);
		else
			vc_pen_step(&pen, x, y);
	}
	vc_pen_step(&pen, column_x(p, p->k->at[p->k->n - 1].to), pen.y);
	vc_pen_flush(&pen);
	vc_svg_put(s, "\"/>\n");
	s->elements++;
}

void vc_plot_areas(struct vc_plot *p)
{
	struct vc_svg *s = &p->page->svg;
	bool shown = false;

	if (!p->k->n)
		return;
	area(p, "hx", VC_SLOTS);
	/* Painter's order: the highest edge first, each area opaque down to the baseline. */
	for (int slot = VC_SLOTS - 1; slot >= 0; slot--) {
		if (!p->k->used[slot])
			continue;
		area(p, vc_theme_area((enum vc_slot)slot), slot);
		shown = true;
	}
	if (p->base) {
		struct vc_box b = { p->box.x, vc_plot_y(p, p->base), p->box.w, 0 };
		b.h = vc_plot_y(p, 0) - b.y;
		vc_svg_rect(s, "base", b, 0);
	}
	if (shown && has_band(p))
		line(p, "low", false);
	line(p, "res", true);
}

void vc_plot_capacity(struct vc_plot *p, bool label)
{
	struct vc_svg *s = &p->page->svg;
	char text[96] = "capacity ", buf[VC_FORMAT];
	int y = p->has_capacity ? vc_plot_y(p, p->capacity) : p->box.y;
	struct vc_label l = { p->box.x + 60, y - 55, VC_T_STRONG, VC_START,
			     "capt",        0,      false,       true };

	if (!p->capacity)
		return;
	if (p->capacity != p->c->r->info.capacity)
		memcpy(text, "limit ", 7);
	strncat(text, vc_format_bytes(p->capacity, buf), VC_FORMAT);
	if (!p->has_capacity) {
		strncat(text, " is above this scale", 24);
		l.y = p->box.y + 60;
	} else
		vc_svg_hline(s, "capl", p->box.x, y, p->box.w);
	if (p->broken)
		strncat(text, " (the axis is cut below it)", 30);
	if (label)
		vc_svg_label(s, &l, text);
}

void vc_plot_axis(struct vc_plot *p, int y)
{
	struct vc_svg *s = &p->page->svg;
	unsigned ticks = (unsigned)(p->box.w / 900) + 2;
	struct vc_axis a = p->k->by_time ? vc_axis_ns(p->k->span, ticks) :
		vc_axis_count(p->k->span, ticks);
	struct vc_label l = { 0, y + 180, VC_T_BODY, VC_MIDDLE, "mut", 0, false, false };
	char buf[VC_FORMAT];

	uint64_t at = (p->skipped + a.step - 1) / a.step * a.step;
	a.top += p->skipped;
	for (bool more = at <= a.top; more; more = a.top - at >= a.step, at += a.step) {
		int x = p->box.x + (int)vc_muldiv(at - p->skipped, (uint64_t)p->box.w, p->k->span);
		vc_svg_vline(s, "ax", x / 10 * 10 + 5, y, 50);
		l.x = x;
		vc_axis_text(&a, at, buf);
		if (p->k->by_time || at + a.step > a.top) {
			strncat(buf, " ", 2);
			strncat(buf, a.name, 12);
		} else if (at && a.unit > 1) { /* "2 k", "4 k", and "6 k events" at the end */
			strncat(buf, " ", 2);
			strncat(buf, a.name, 1);
		}
		l.anchor = x > p->box.x + p->box.w - 250 ? VC_END : at ? VC_MIDDLE : VC_START;
		struct vc_box b = vc_svg_measure(&l, buf);
		if (vc_svg_is_clear(s, b))
			vc_svg_label(s, &l, buf);
	}
}
