/* SPDX-License-Identifier: Apache-2.0 */
/* tradeoff.c - memory against time of each change that would help: low and far left is cheap. */
#include "visualize/scene.h"

enum { MOST = 13, HIGH = 2400, LEFT = 700, ASIDE = 1700, CLOSE = 60 };

struct point {
	const struct vc_result *r;
	char name[200];
	double times;              /* 0: not known */
	uint64_t low, used, high;  /* on the device */
};

struct tradeoff {
	struct vc_plot plot;
	struct point at[MOST];
	size_t n;
	double first, last;        /* ends of the axis */
};

static void add(struct tradeoff *t, const struct vc_result *r, double times, const char *name)
{
	struct vc_findings f = vc_findings_of(r);
	struct point *p = &t->at[t->n++];

	*p = (struct point){ r, "", times, f.low, f.used, f.high };
	p->used = f.used < f.low ? f.low : f.used > f.high ? f.high : f.used;
	if (vc_result_verdict(r) == VC_OOM && f.floor > p->high) /* its end is not seen */
		p->low = p->used = p->high = f.floor;
	snprintf(p->name, sizeof(p->name), "%s", name);
}

/* false: of none is the time known. */
static bool collect(struct tradeoff *t, const struct vc_result *r)
{
	char name[200];

	add(t, r, 1, "as it is");
	t->first = t->last = 1;
	for (size_t i = 0; i < r->tries.n && t->n < MOST; i++) {
		const struct vc_try *y = &r->tries.at[i];

		snprintf(name, sizeof(name), "%zu. %s", i + 1, y->text);
		add(t, y->run, y->times, name);
		if (y->times > 0) {
			t->first = fmin(t->first, y->times);
			t->last = fmax(t->last, y->times);
		}
	}
	return t->last > t->first || r->tries.at[0].times > 0;
}

static int x_of(const struct tradeoff *t, double times)
{
	return t->plot.box.x + (int)((times - t->first) / (t->last - t->first) * t->plot.box.w);
}

/* From the first tick below all to the one above: in steps of 0.1, 0.2, 0.5, 1 ... times. */
static void time_axis(struct tradeoff *t)
{
	struct vc_svg *s = &t->plot.page->svg;
	struct vc_box b = t->plot.box;
	double step = 0.1;
	char text[48];

	for (int k = 0; (t->last - t->first) / step > 7; k++)
		step *= k % 3 == 1 ? 2.5 : 2;
	t->first = (floor(t->first / step + 0.01) - 1) * step;
	t->last = (ceil(t->last / step - 0.01) + 1) * step;
	for (double v = t->first; v < t->last + step / 2; v += step) {
		vc_svg_vline(s, "ax", x_of(t, v) / 10 * 10 + 5, b.y + b.h, 50);
		snprintf(text, sizeof(text), "%.1f", v);
		if (v > -step / 2)
			vc_svg_say(s, text, x_of(t, v), b.y + b.h + 220, VC_T_BODY, VC_MIDDLE,
				   "mut", 0);
	}
}

void vc_plot_point_name(const struct vc_plot *p, const char *name, int x, int y)
{
	static const struct { int dx, dy; enum vc_anchor anchor; } place[] = {
		{ 130, 45, VC_START }, { -130, 45, VC_END }, { 130, 190, VC_START },
		{ 130, -110, VC_START }, { -130, 190, VC_END }, { -130, -110, VC_END } };
	struct vc_svg *s = &p->page->svg;
	char number[8];

	snprintf(number, sizeof(number), "%.*s", (int)strcspn(name, "."), name);
	for (size_t k = 0; k < 2 * sizeof(place) / sizeof(*place); k++) {
		size_t i = k % (sizeof(place) / sizeof(*place));
		const char *text = k == i ? name : number;
		struct vc_label l = { x + place[i].dx, y + place[i].dy, VC_T_SMALL,
				      place[i].anchor, "fg", 3600, false, true };
		struct vc_box b = vc_svg_measure(&l, text);

		if (b.x < p->box.x || b.x + b.w > p->page->w - VC_MARGIN ||
		    !vc_svg_is_clear(s, b))
			continue;
		vc_svg_label(s, &l, text);
		return;
	}
}

static void draw_point(struct tradeoff *t, const struct point *p, int x)
{
	struct vc_svg *s = &t->plot.page->svg;
	int y = vc_plot_y(&t->plot, p->used), low = vc_plot_y(&t->plot, p->low),
	    high = vc_plot_y(&t->plot, p->high);

	if (low - high > CLOSE) {
		vc_svg_vline(s, "res", x, high, low - high);
		vc_svg_hline(s, "res", x - 40, high, 80);
		vc_svg_hline(s, "res", x - 40, low, 80);
		vc_svg_keep_clear(s, (struct vc_box){ x - 40, high, 80, low - high });
	}
	vc_svg_rect(s, "card", (struct vc_box){ x - 80, y - 80, 160, 160 }, 3);
	vc_verdict_icon(s, p->r, x - 50, y - 50);
	vc_svg_keep_clear(s, (struct vc_box){ x - 80, y - 80, 160, 160 });
}

/* On its line where no mark stands, best at its left end. */
static void name_capacity(struct tradeoff *t)
{
	struct vc_box b = t->plot.box;
	char text[2 * VC_FORMAT], a[VC_FORMAT];

	snprintf(text, sizeof(text), "capacity %s", vc_format_bytes(t->plot.capacity, a));
	for (int k = 0; t->plot.has_capacity && k < 8; k++) {
		struct vc_label l = { b.x + 60 + k * b.w / 10, vc_plot_y(&t->plot, t->plot.capacity)
				      - 55, VC_T_STRONG, VC_START, "capt", 0, false, true };

		if (vc_svg_is_clear(&t->plot.page->svg, vc_svg_measure(&l, text))) {
			vc_svg_label(&t->plot.page->svg, &l, text);
			return;
		}
	}
}

/* Those of unknown time stand one beside the other at the right. */
static void points(struct tradeoff *t, int aside, int wide)
{
	int x[MOST], unknown = 0, k = 0;

	for (size_t i = 0; i < t->n; i++)
		unknown += !(t->at[i].times > 0);
	for (size_t i = 0; i < t->n; i++) {
		x[i] = t->at[i].times > 0 ? x_of(t, t->at[i].times) :
			aside + wide * ++k / (unknown + 1);
		draw_point(t, &t->at[i], x[i]);
	}
	name_capacity(t);
	for (size_t i = 0; i < t->n; i++)
		vc_plot_point_name(&t->plot, t->at[i].name, x[i],
				   vc_plot_y(&t->plot, t->at[i].used));
	if (unknown)
		vc_svg_say(&t->plot.page->svg, "time not known", aside + wide / 2,
			   t->plot.box.y + t->plot.box.h + 220, VC_T_BODY, VC_MIDDLE, "mut", 0);
}

int vc_page_tradeoff(const struct vc_plot *of, int y)
{
	struct tradeoff t = { .plot = *of };
	const struct vc_result *r = of->c->r;
	struct vc_page *p = of->page;
	uint64_t most = 0;
	bool unknown = false;

	if (!r->tries.n || !collect(&t, r))
		return y;
	for (size_t i = 0; i < t.n; i++) {
		most = t.at[i].high > most ? t.at[i].high : most;
		unknown |= !(t.at[i].times > 0);
	}
	most = t.plot.capacity > most && t.plot.capacity / 4 < most ? t.plot.capacity : most;
	vc_svg_say(&p->svg, "Memory against the time of a step", VC_MARGIN, y + 250, VC_T_HEAD,
		   VC_START, "fg", 0);
	t.plot.box = (struct vc_box){ LEFT, y + 600, p->w - LEFT - VC_MARGIN -
				      (unknown ? ASIDE : 0), HIGH };
	t.plot.top = most + most / 11;
	t.plot.broken = false;
	t.plot.has_capacity = t.plot.capacity && t.plot.capacity <= most;
	t.plot.axis = vc_axis_bytes(t.plot.top, 6);
	vc_plot_grid(&t.plot, true);
	vc_plot_capacity(&t.plot, false);
	time_axis(&t);
	points(&t, t.plot.box.x + t.plot.box.w, ASIDE);
	vc_svg_say(&p->svg, "times as long as now", t.plot.box.x + t.plot.box.w,
		   t.plot.box.y + HIGH + 400, VC_T_SMALL, VC_END, "mut", 0);
	return y + 600 + HIGH + 550;
}
