/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - a card that several processes share: what each holds, one on top of the other. */
#include "common/vec.h"
#include "visualize/scene.h"

enum { HIGH = 2200 };

struct stack {
	struct vc_page *page;
	struct vc_box box;
	size_t n, columns;
	uint64_t span, top;
	uint64_t *sum;             /* of each column the most ... */
	struct vc_hold *hold;      /* ... and what each process holds then: columns of n */
};

/* A moment lasts until the next: it fills all columns up to it. */
struct filling { struct stack *s; size_t column; uint64_t sum; struct vc_hold hold[VC_TOGETHER]; };

static void put(struct stack *s, size_t column, uint64_t sum, const struct vc_hold *hold)
{
	if (sum < s->sum[column])
		return;
	s->sum[column] = sum;
	memcpy(&s->hold[column * s->n], hold, s->n * sizeof(*hold));
}

static void fill(void *arg, uint64_t ns, uint64_t sum, const struct vc_hold *hold)
{
	struct filling *f = arg;
	struct stack *s = f->s;
	size_t column = (size_t)vc_muldiv_down(ns, s->columns, s->span);

	column = column < s->columns ? column : s->columns - 1;
	while (f->column < column)
		put(s, ++f->column, f->sum, f->hold);
	put(s, column, sum, hold);
	f->sum = sum;
	memcpy(f->hold, hold, s->n * sizeof(*hold));
}

enum part { CONTEXT, ALLOCATED, RESERVED, EDGE };

/* The upper edge of that part of a process and of all below it; but for EDGE down to the floor. */
static void area(struct stack *s, const char *klass, size_t upto, enum part part)
{
	struct vc_svg *v = &s->page->svg;
	struct vc_pen pen = { v, 0, 0, 0 };
	int floor = s->box.y + s->box.h;

	vc_svg_put(v, "<path class=\"%s\" d=\"", klass);
	for (size_t c = 0; c < s->columns; c++) {
		const struct vc_hold *h = &s->hold[c * s->n];
		uint64_t sum = 0;

		for (size_t i = 0; i < upto; i++)
			sum += h[i].context + h[i].reserved;
		sum += h[upto].context + (part >= RESERVED ? h[upto].reserved :
					  part == ALLOCATED ? h[upto].allocated : 0);
		int y = floor - (int)vc_muldiv(sum, (uint64_t)s->box.h, s->top);

		if (!c)
			vc_pen_move(&pen, s->box.x, part == EDGE ? y : floor);
		vc_pen_step(&pen, s->box.x + (int)(c * (size_t)s->box.w / s->columns), y);
	}
	vc_pen_step(&pen, s->box.x + s->box.w, part == EDGE ? pen.y : floor);
	vc_pen_flush(&pen);
	vc_svg_put(v, part == EDGE ? "\"/>\n" : "z\"/>\n");
	v->elements++;
}

static void scale(struct stack *s)
{
	struct vc_svg *v = &s->page->svg;
	struct vc_axis a = vc_axis_bytes(s->top, 5);
	char text[VC_FORMAT];
	int floor = s->box.y + s->box.h;
	uint64_t at = 0;

	for (bool more = true; more; more = vc_axis_next(&a, &at)) {
		int y = floor - (int)vc_muldiv(at, (uint64_t)s->box.h, s->top);

		vc_svg_hline(v, "gr", s->box.x, y / 10 * 10 + 5, s->box.w);
		vc_axis_text(&a, at, text);
		vc_svg_say(v, text, s->box.x - 90, y + 45, VC_T_BODY, VC_END, "mut", 0);
	}
	vc_svg_say(v, a.name, s->box.x - 90, s->box.y - 60, VC_T_SMALL, VC_END, "mut", 0);
}

static void capacity(struct stack *s, uint64_t room)
{
	int y = s->box.y + s->box.h - (int)vc_muldiv(room, (uint64_t)s->box.h, s->top);
	struct vc_svg *v = &s->page->svg;
	char text[2 * VC_FORMAT];

	if (!room || room > s->top)
		return;
	vc_svg_hline(v, "capl", s->box.x, y, s->box.w);
	snprintf(text, sizeof(text), "capacity ");
	vc_format_bytes(room, text + strlen(text));
	vc_svg_label(v, &(struct vc_label){ s->box.x + 60, y - 55, VC_T_STRONG, VC_START, "capt", 0,
					    false, true }, text);
}

static void time_axis(struct stack *s)
{
	struct vc_axis a = vc_axis_ns(s->span, (unsigned)(s->box.w / 900) + 2);
	int y = s->box.y + s->box.h;
	char text[2 * VC_FORMAT];
	uint64_t at = 0;

	for (bool more = true; more; more = vc_axis_next(&a, &at)) {
		int x = s->box.x + (int)vc_muldiv(at, (uint64_t)s->box.w, s->span);

		vc_svg_vline(&s->page->svg, "ax", x / 10 * 10 + 5, y, 50);
		vc_axis_text(&a, at, text);
		snprintf(text + strlen(text), VC_FORMAT, " %s", a.name);
		vc_svg_say(&s->page->svg, text, x, y + 180, VC_T_BODY,
			   x > s->box.x + s->box.w - 250 ? VC_END : at ? VC_MIDDLE : VC_START,
			   "mut", 0);
	}
}

/* In the middle of its band, where that is highest. */
static void name(struct stack *s, size_t i, const char *text)
{
	const struct vc_hold *at;
	uint64_t below = 0;
	size_t best = 0;

	for (size_t c = 0; c < s->columns; c++)
		if (s->hold[c * s->n + i].reserved > s->hold[best * s->n + i].reserved)
			best = c;
	for (at = &s->hold[best * s->n]; at < &s->hold[best * s->n + i]; at++)
		below += at->context + at->reserved;
	below += at->context + at->allocated / 2;
	struct vc_label l = { s->box.x + (int)(best * (size_t)s->box.w / s->columns) + 60,
			      s->box.y + s->box.h - (int)vc_muldiv(below, (uint64_t)s->box.h,
								   s->top) + 45,
			      VC_T_STRONG, VC_START, "fg", s->box.w / 3, true, true };
	if (l.x > s->box.x + s->box.w * 2 / 3) {
		l.anchor = VC_END;
		l.x -= 120;
	}
	if (vc_svg_is_clear(&s->page->svg, vc_svg_measure(&l, text)))
		vc_svg_label(&s->page->svg, &l, text);
}

int vc_page_shared(struct vc_page *p, int y, int left, int right, const struct vc_named *of,
		   size_t n, struct vc_error *err)
{
	struct vc_together t = vc_together_walk(of, n, NULL, NULL);
	struct stack s = { .page = p, .n = n, .columns = (size_t)(right - left) / 10 * 2 };
	struct filling f = { .s = &s };
	char text[VC_SAY];

	s.span = t.last_ns - t.first_ns + 1;
	s.top = t.room > t.most && t.room / 4 < t.most ? t.room : t.most;
	s.top += s.top / 11 + 1;
	s.sum = calloc(s.columns, sizeof(*s.sum));
	s.hold = calloc(s.columns * n, sizeof(*s.hold));
	if (!s.sum || !s.hold) {
		VC_FREE(s.sum, s.hold);
		return vc_nomem(err, "the picture");
	}
	vc_together_walk(of, n, fill, &f);
	vc_together_text(of, n, text, sizeof(text));
	y = vc_page_lines(p, &(struct vc_label){ VC_MARGIN, y + 450, VC_T_HEAD, VC_START,
			  t.room && t.most > t.room ? "bad" : "fg", p->w - 2 * VC_MARGIN, false,
			  false }, text, 0, 200, 3);
	s.box = (struct vc_box){ left, y + 300, right - left, HIGH };
	vc_svg_put(&p->svg, "<g>\n");
	scale(&s);
	time_axis(&s);
	for (size_t i = n; i-- > 0;) { /* the highest edge first, each opaque down to the floor */
		area(&s, "bg", i, RESERVED);
		area(&s, "hx", i, RESERVED);
		area(&s, "busy", i, ALLOCATED);
		area(&s, "base", i, CONTEXT);
		area(&s, "res nf", i, EDGE);
	}
	capacity(&s, t.room);
	for (size_t i = 0; i < n; i++)
		name(&s, i, of[i].name);
	vc_svg_put(&p->svg, "</g>\n");
	VC_FREE(s.sum, s.hold);
	return s.box.y + s.box.h + 350;
}
