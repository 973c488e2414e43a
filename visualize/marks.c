/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - what stands on a plot: the refusal, cache flushes, the peak, steps, phases, lanes. */

#include "common/event.h"
#include "common/vec.h"
#include "visualize/scene.h"

enum { MOST_PHASES = 400 }; /* boxes of the phase strip: narrower ones become one */

/* The most reserved bytes between two x, so that a label can stand where the plot is empty;
 * *least, when wanted, gets the fewest. */
static uint64_t reserved_between(const struct vc_plot *p, int x0, int x1, uint64_t *least)
{
	uint64_t most = 0;

	if (least)
		*least = UINT64_MAX;

	for (size_t i = 0; i < p->k->n; i++) {
		const struct vc_column *c = &p->k->at[i];
		int a = p->box.x + (int)((uint64_t)c->from * (uint64_t)p->box.w / p->k->width);
		int b = p->box.x + (int)((uint64_t)c->to * (uint64_t)p->box.w / p->k->width);
		if (a >= x1 || b <= x0)
			continue;
		most = c->reserved_max > most ? c->reserved_max : most;
		if (least && c->reserved_max < *least)
			*least = c->reserved_max;
	}
	return most;
}

/* The label of the mark beside its triangle, on the side that has more room and no other label. */
static void oom_label(struct vc_plot *p, int x)
{
	bool left = x > p->box.x + p->box.w / 2;
	char text[VC_SAY];

	vc_failure_text(p->c->r, p->k->by_time, text, sizeof(text));
	for (int k = 0; k < 2; k++, left = !left) {
		struct vc_label l = { left ? x - 120 : x + 120, p->box.y - 60, VC_T_STRONG,
				      left ? VC_END : VC_START, "bad", p->box.w / 2, false, false };

		if (vc_svg_is_clear(&p->page->svg, vc_svg_measure(&l, text))) {
			vc_svg_label(&p->page->svg, &l, text);
			return;
		}
	}
}

void vc_plot_oom(struct vc_plot *p)
{
	const struct vc_oom_report *o = &p->c->r->oom;
	struct vc_svg *s = &p->page->svg;

	if (!o->happened)
		return;
	int x = vc_plot_event_x(p, o->event, o->time_ns);
	vc_svg_vline(s, "bads", x, p->box.y - 60, p->box.h + 60);
	vc_svg_put(s, "<path class=\"bad\" d=\"M%c %ch14l-7 11z\"/>\n", x - 70, p->box.y - 140);
	if (p->box.h > 2000 && p->box.w > 4000)
		oom_label(p, x);
}

/* One triangle per cache flush, at most one per column; the count in words at the last. */
void vc_plot_flushes(struct vc_plot *p)
{
	struct vc_svg *s = &p->page->svg;
	int y = p->has_capacity ? vc_plot_y(p, p->capacity) : p->box.y + 100, last = -1000;
	char text[64], buf[VC_FORMAT];
	size_t drawn = 0;

	for (size_t i = 0; i < p->k->n && drawn < 200; i++) {
		int x = p->box.x +
			(int)((uint64_t)p->k->at[i].from * (uint64_t)p->box.w / p->k->width);
		if (!p->k->at[i].flushes || x - last < 80)
			continue;
		vc_svg_put(s, "%sM%c %ch8l-4 6z", drawn ? "" : "<path class=\"capt\" d=\"", x - 40,
			   y - 80); /* one path: browsers dislike many siblings */
		last = x;
		drawn++;
	}
	if (!drawn)
		return;
	vc_svg_put(s, "\"/>\n");
	snprintf(text, sizeof(text), "%s cache flush%s and retr%s",
		 vc_format_count(p->c->r->stats.flushes, buf),
		 p->c->r->stats.flushes == 1 ? "" : "es",
		 p->c->r->stats.flushes == 1 ? "y" : "ies");
	struct vc_label l = { last - 90, y - 55, VC_T_SMALL, VC_END, "capt", 0, false, true };
	if (vc_svg_measure(&l, text).x < VC_MARGIN) { /* at the right of it there is room */
		l.x = last + 90;
		l.anchor = VC_START;
	}
	if (vc_svg_is_clear(s, vc_svg_measure(&l, text)))
		vc_svg_label(s, &l, text);
}

/* Where the label of the peak stands: clear of other labels and, if it can be, of the reserved
 * line. */
static bool place_peak(const struct vc_plot *p, const char *text, int x, int y, struct vc_label *l)
{
	static const struct { int dx, dy; enum vc_anchor anchor; } places[] = {
		{ -180, -200, VC_END }, { 180, -200, VC_START }, { -180, 280, VC_END },
		{ 180, 280, VC_START }, { 0, -260, VC_MIDDLE }, { -400, -500, VC_END },
		{ 400, -500, VC_START }, { -180, 700, VC_END }, { 180, 700, VC_START },
	};
	const size_t n = sizeof(places) / sizeof(*places);

	for (size_t i = 0; i < 2 * n; i++) {
		int dx = places[i % n].dx, dy = places[i % n].dy;
		*l = (struct vc_label){x + dx, y + dy, VC_T_STRONG, places[i % n].anchor,
				       "fg",   0,      false,       true };
		struct vc_box b = vc_svg_measure(l, text);
		uint64_t least, most = reserved_between(p, b.x, b.x + b.w, &least);
		int high = vc_plot_y(p, p->base + most), low = vc_plot_y(p, p->base + least);
		if (i < n && high < b.y + b.h + 30 && low > b.y - 30)
			continue;
		if (b.x >= p->box.x + 20 && b.x + b.w <= p->box.x + p->box.w + 200 &&
		    b.y >= p->box.y && b.y + b.h <= p->box.y + p->box.h &&
		    vc_svg_is_clear(&p->page->svg, b))
			return true;
	}
	return false;
}

void vc_plot_peak(struct vc_plot *p)
{
	struct vc_svg *s = &p->page->svg;
	char text[64] = "peak allocated ", buf[VC_FORMAT];
	struct vc_label l;

	if (!p->k->n || !p->k->allocated)
		return;
	const struct vc_column *c = &p->k->at[p->k->top];
	int x = p->box.x + (int)((uint64_t)c->from * (uint64_t)p->box.w / p->k->width) + 3;
	int y = vc_plot_y(p, p->base + c->allocated_max);
	strncat(text, vc_format_bytes(c->allocated_max, buf), VC_FORMAT);
	if (place_peak(p, text, x, y, &l)) {
		vc_svg_put(s, "<path class=\"res\" style=\"stroke-width:1\" d=\"M%c %cL%c %c\"/>\n",
			   x, y, x + (l.x - x) * 8 / 10, l.y + (l.y > y ? -90 : 40));
		vc_svg_label(s, &l, text);
	}
	vc_svg_put(s, "<circle class=\"dot halo\" style=\"stroke-width:1.5px\" cx=\"%c\" "
		   "cy=\"%c\" r=\"4\"><title>%e</title></circle>\n", x, y, text);
	s->titles++;
}

/* The edges of a layer over [x, x + w): the lowest upper one and the highest lower one. */
static int thickness(const struct vc_plot *p, int slot, struct vc_box *b)
{
	int upper = p->box.y, lower = p->box.y + p->box.h;

	for (size_t i = 0; i < p->k->n; i++) {
		const struct vc_column *c = &p->k->at[i];
		int x0 = p->box.x + (int)((uint64_t)c->from * (uint64_t)p->box.w / p->k->width);
		int x1 = p->box.x + (int)((uint64_t)c->to * (uint64_t)p->box.w / p->k->width);
		uint64_t sum = p->base;

		if (x1 <= b->x || x0 >= b->x + b->w)
			continue;
		for (int s = 0; s < slot; s++)
			sum += c->layer[s];
		int y0 = vc_plot_y(p, sum), y1 = vc_plot_y(p, sum + c->layer[slot]);
		upper = y1 > upper ? y1 : upper;
		lower = y0 < lower ? y0 : lower;
	}
	b->y = upper;
	return lower - upper;
}

/* Layers that lie over the columns from 0 to the end of the run: beyond it there are none. */
static int end_of_run(const struct vc_plot *p)
{
	return p->box.x + (int)((uint64_t)p->k->at[p->k->n - 1].to * (uint64_t)p->box.w /
				p->k->width);
}

void vc_plot_names(struct vc_plot *p)
{
	enum { HIGH = 190, STEP = 100 };
	struct vc_svg *s = &p->page->svg;

	for (int slot = 0; p->k->n && slot < VC_SLOTS; slot++) {
		const char *name = vc_classes_name(p->c, (enum vc_slot)slot);
		struct vc_label l = { 0, 0, VC_T_STRONG, VC_START,
				      vc_theme_on((enum vc_slot)slot), 0, false, false };
		int w = vc_svg_measure(&l, name).w + 160, most = HIGH;

		for (int x = p->box.x; p->k->used[slot] && x + w <= end_of_run(p); x += STEP) {
			struct vc_box b = { x, 0, w, 0 };
			int thick = thickness(p, slot, &b);
			struct vc_label at = l;

			at.x = x + 80;
			at.y = b.y + thick / 2 + 45;
			if (thick <= most || !vc_svg_is_clear(s, vc_svg_measure(&at, name)))
				continue;
			most = thick;
			l.x = at.x;
			l.y = at.y;
		}
		if (most > HIGH)
			vc_svg_label(s, &l, name);
	}
}

void vc_plot_steps(struct vc_plot *p, int bottom, int label_y)
{
	const struct vc_steps *t = &p->c->r->steps;
	struct vc_svg *s = &p->page->svg;
	size_t steps = 0, every = 1, at = 0;
	char text[40];

	for (size_t i = 0; i < t->marks; i++)
		steps += t->mark[i].kind == VC_MARK_STEP;
	while (steps / every > (size_t)(p->box.w / 350))
		every += every == 1 ? 1 : every == 2 ? 3 : every;
	for (size_t i = 0; i < t->marks; i++) {
		if (t->mark[i].kind != VC_MARK_STEP || ++at % every)
			continue; /* behind so many marks goes on the step of that number */
		int x = vc_plot_event_x(p, t->mark[i].event, t->mark[i].time_ns);
		if (x < p->box.x || x > p->box.x + p->box.w)
			continue;
		vc_svg_vline(s, "it", x, p->box.y, bottom - p->box.y);
		snprintf(text, sizeof(text), at == every ? "step %zu" : "%zu", at);
		struct vc_label l = { x + 30, label_y, VC_T_SMALL, VC_START,
				     "mut",  0,       false,      false };
		struct vc_box b = vc_svg_measure(&l, text);
		if (b.x + b.w > p->page->w - 100) { /* at the very end */
			l.anchor = VC_END;
			l.x = x - 30;
		}
		if (vc_svg_is_clear(s, vc_svg_measure(&l, text)))
			vc_svg_label(s, &l, text);
	}
}

static enum vc_slot phase_slot(const char *name)
{
	static const struct { const char *part; enum vc_slot slot;
	} known[] = {
		{ "backward", VC_SLOT_GRADIENTS },  { "bwd", VC_SLOT_GRADIENTS },
		{ "forward", VC_SLOT_ACTIVATIONS }, { "fwd", VC_SLOT_ACTIVATIONS },
		{ "ptim", VC_SLOT_OPTIMIZER },      { "eval", VC_SLOT_TEMPORARIES },
		{ "valid", VC_SLOT_TEMPORARIES },   { "load", VC_SLOT_WEIGHTS },
		{ "init", VC_SLOT_WEIGHTS },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strstr(name, known[i].part))
			return known[i].slot;
	return VC_SLOT_OTHER;
}

/* Where the name does not fit. */
static const char *short_name(enum vc_slot slot)
{
	return slot == VC_SLOT_ACTIVATIONS ? "fwd" : slot == VC_SLOT_GRADIENTS ? "bwd" :
		slot == VC_SLOT_OPTIMIZER ? "opt" : slot == VC_SLOT_TEMPORARIES ? "eval" : "";
}

struct phase { uint64_t event, ns, end_event, end_ns; const char *name; };

/* What is drawn of the strip, and the narrow ones since the last box. */
struct strip { int y; size_t boxes; int from, to; size_t narrow; const char *name; };

static bool phase_box(struct vc_plot *p, int a, int b, const char *name, int y)
{
	struct vc_svg *s = &p->page->svg;
	enum vc_slot slot = phase_slot(name);
	struct vc_label l = { (a + b) / 2, y + 125,    VC_T_SMALL, VC_MIDDLE,
			     slot == VC_SLOT_OTHER ? "obase" : vc_theme_on(slot),
			     b - a - 40, false, false };

	if (b - a < 4)
		return false;
	vc_svg_put(s, "<rect class=\"%s\" x=\"%c\" y=\"%c\" width=\"%c\" "
		   "height=\"17\"><title>%e</title></rect>\n",
		   slot == VC_SLOT_OTHER ? "base" : vc_theme_slot(slot), a, y,
		   b - a - (b - a > 30 ? 8 : 0), name);
	s->titles++;
	if (vc_svg_measure(&(struct vc_label){ .style = VC_T_SMALL }, name).w > l.max)
		name = short_name(slot);
	if (*name && vc_svg_measure(&(struct vc_label){ .style = VC_T_SMALL }, name).w <= l.max)
		vc_svg_label(s, &l, name);
	return true;
}

static void count_box(struct vc_plot *p, int a, int b, const char *name, struct strip *t)
{
	if (phase_box(p, a, b, name, t->y) && ++t->boxes % 100 == 0)
		vc_svg_put(&p->page->svg, "</g>\n<g>");
}

/* Many that are too narrow to be told apart are one box that says how many. */
static void end_narrow(struct vc_plot *p, struct strip *t)
{
	char text[64], n[VC_FORMAT];

	if (t->narrow) {
		snprintf(text, sizeof(text), "%s phases", vc_format_count(t->narrow, n));
		count_box(p, t->from, t->to, t->narrow == 1 ? t->name : text, t);
	}
	t->narrow = 0;
}

static void add_phase(struct vc_plot *p, const struct phase *f, struct strip *t)
{
	int edge = p->box.x + p->box.w;
	int a = vc_plot_event_x(p, f->event, f->ns);
	int b = f->end_event == UINT64_MAX ? edge : vc_plot_event_x(p, f->end_event, f->end_ns);

	a = a < p->box.x ? p->box.x : a;
	b = b > edge ? edge : b;
	if (b - a >= p->box.w / MOST_PHASES) {
		end_narrow(p, t);
		count_box(p, a, b, f->name, t);
		return;
	}
	t->from = t->narrow ? t->from : a;
	t->to = b;
	t->name = f->name;
	t->narrow++;
}

/* The outermost BEGIN..END ranges. */
static void marked_phases(struct vc_plot *p, struct strip *strip)
{
	const struct vc_steps *t = &p->c->r->steps;
	const struct vc_mark_at *open = NULL;
	size_t depth = 0;

	for (size_t i = 0; i < t->marks; i++) {
		const struct vc_mark_at *m = &t->mark[i];

		if (m->kind == VC_MARK_BEGIN && !depth++) {
			open = m;
		} else if (m->kind == VC_MARK_END && depth && !--depth) {
			struct phase f = { open->event, open->time_ns, m->event, m->time_ns,
					   vc_label_text(p->c->r->meta, open->label) };
			add_phase(p, &f, strip);
		}
	}
}

/* Those found in the pattern of allocations; what is neither training nor before it has no name. */
static void found_phases(struct vc_plot *p, struct strip *strip)
{
	const struct vc_steps *t = &p->c->r->steps;

	for (size_t i = 0; i < t->phases; i++) {
		const struct vc_phase_at *f = &t->phase[i];

		add_phase(p,
			  &(struct phase){ f->event, f->time_ns, f->end_event, f->end_ns, f->name },
			  strip);
	}
}

/* Does the program itself say when it goes forward and backward? */
static bool names_phases(const struct vc_result *r)
{
	bool forward = false, backward = false;

	for (size_t i = 0; i < r->steps.marks; i++)
		if (r->steps.mark[i].kind == VC_MARK_BEGIN) {
			enum vc_slot slot =
				phase_slot(vc_label_text(r->meta, r->steps.mark[i].label));

			forward |= slot == VC_SLOT_ACTIVATIONS;
			backward |= slot == VC_SLOT_GRADIENTS;
		}
	return forward && backward;
}

/* Who has the card, where programs take turns on it. */
static void turns(struct vc_plot *p, struct strip *strip)
{
	const struct vc_turns *t = &p->c->r->turns;

	for (size_t i = 0; i < t->n; i++) {
		const struct vc_turn_at *f = &t->at[i];
		struct phase one = { f->event, f->time_ns, f->end_event, f->end_ns,
				     f->label ? vc_label_text(p->c->r->meta, f->label) :
				     f->asleep ? "asleep" : "awake" };

		if (i + 1 < t->n) {
			one.end_event = t->at[i + 1].event;
			one.end_ns = t->at[i + 1].time_ns;
		}
		add_phase(p, &one, strip);
	}
}

int vc_plot_phases(struct vc_plot *p, int y)
{
	struct vc_label l = { p->box.x - 90, y + 125, VC_T_BODY, VC_END, "mut", 0, false, false };
	struct strip strip = { .y = y };

	vc_svg_put(&p->page->svg, "<g>");
	if (p->c->r->turns.n)
		turns(p, &strip);
	else if (p->c->r->steps.phases && !names_phases(p->c->r))
		found_phases(p, &strip);
	else
		marked_phases(p, &strip);
	end_narrow(p, &strip);
	vc_svg_put(&p->page->svg, "</g>\n");
	if (!strip.boxes)
		return y;
	vc_svg_label(&p->page->svg, &l, "phase");
	return y + 230;
}

struct lane { const char *klass, *name, *most_text; const uint64_t *value; uint64_t most; };

static void lane(struct vc_plot *p, int y, const struct lane *n)
{
	struct vc_svg *s = &p->page->svg;
	struct vc_pen pen = { s, 0, 0, 0 };
	struct vc_label l = { p->box.x - 90, y + 160, VC_T_BODY, VC_END, "mut", 0, false, false };
	const int h = 340;

	vc_svg_label(s, &l, n->name);
	l.y = y + 300;
	l.style = VC_T_SMALL;
	vc_svg_label(s, &l, n->most_text);
	vc_svg_hline(s, "gr", p->box.x, y + h + 5, p->box.w);
	vc_svg_put(s, "<path class=\"%s\" d=\"", n->klass);
	for (size_t i = 0; i < p->k->n; i++) {
		int x = p->box.x +
			(int)((uint64_t)p->k->at[i].from * (uint64_t)p->box.w / p->k->width);
		if (!i)
			vc_pen_move(&pen, x, y + h);
		vc_pen_step(&pen, x, y + h - (int)vc_muldiv(n->value[i], (uint64_t)h, n->most));
	}
	vc_pen_step(&pen, p->box.x + p->box.w, y + h);
	vc_pen_flush(&pen);
	vc_svg_put(s, "z\"><title>%e</title></path>\n", n->name);
	s->titles++;
}

/* When a column ends. */
static uint64_t column_end(const struct vc_plot *p, size_t column)
{
	return p->k->first + vc_muldiv(p->k->at[column].to, p->k->span, p->k->width);
}

/* Nanoseconds of kernels in each column; NULL: no kernels, or the axis is not time. */
static uint64_t *busy(const struct vc_plot *p)
{
	const struct vc_steps *t = &p->c->r->steps;
	uint64_t *sum;

	if (!t->kernels || !p->k->by_time || !p->k->n)
		return NULL;
	sum = calloc(p->k->n, sizeof(*sum));
	size_t i = 0;
	uint64_t until = 0;
	for (size_t k = 0; sum && k < t->kernels; k++) {
		uint64_t at = t->kernel[k].start_ns, end = at + t->kernel[k].duration_ns;
		bool later = k && at >= t->kernel[k - 1].start_ns;

		at = later && at < until ? until : at; /* two at once are busy once */
		until = !later || end > until ? end : until;
		if (at >= end)
			continue;
		uint32_t x = vc_columns_x(p->k, at);
		while (i > 0 && p->k->at[i].from > x)
			i--;
		while (i + 1 < p->k->n && p->k->at[i + 1].from <= x)
			i++;
		/* A kernel is busy in every column that it runs in. */
		for (size_t c = i; c < p->k->n && at < end; c++) {
			uint64_t stop = column_end(p, c);

			stop = stop < end && c + 1 < p->k->n ? stop : end;
			sum[c] += stop > at ? stop - at : 0;
			at = stop > at ? stop : at;
		}
	}
	for (size_t k = 0; sum && k < p->k->n; k++) {
		uint64_t from = k ? column_end(p, k - 1) : p->k->first;
		uint64_t width = column_end(p, k) - from;

		sum[k] = width ? vc_muldiv(sum[k], 1000, width) : 0;
		sum[k] = sum[k] > 1000 ? 1000 : sum[k];
	}
	return sum;
}

/* A lane of what member `at` says of each column, at most `most`; the y below. */
static int byte_lane(struct vc_plot *p, int y, const char *klass, const char *name, size_t at,
		     uint64_t most)
{
	uint64_t *value = most ? calloc(p->k->n + 1, sizeof(*value)) : NULL;
	char buf[VC_FORMAT];

	if (!value)
		return y;
	for (size_t i = 0; i < p->k->n; i++)
		memcpy(&value[i], (const char *)&p->k->at[i] + at, sizeof(*value));
	lane(p, y, &(struct lane){ klass, name, vc_format_bytes(most, buf), value, most });
	free(value);
	return y + 460;
}

int vc_plot_lanes(struct vc_plot *p, int y)
{
	const struct vc_columns *k = p->k;
	uint64_t *used = busy(p);

	y = byte_lane(p, y, "lane", p->c->r->curve.split ? "stranded" : "cached",
		      offsetof(struct vc_column, stranded), k->stranded);
	y = byte_lane(p, y, "pin", "pinned", offsetof(struct vc_column, pinned), k->pinned);
	y = byte_lane(p, y, "mng", "managed", offsetof(struct vc_column, managed), k->managed);
	if (used) {
		lane(p, y, &(struct lane){ "busy", "kernels", "100 %", used, 1000 });
		y += 460;
	}
	free(used);
	return y;
}
