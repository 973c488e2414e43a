/* SPDX-License-Identifier: Apache-2.0 */
/* growth.c - what each step leaves behind, against the card: the peak of every step, and the line
 * on which it goes on until nothing is left. */
#include "common/vec.h"
#include "visualize/scene.h"

enum { HIGH = 1500, LEFT = 800, RIGHT = 300, FAR = 40 };

struct growth {
	struct vc_page *page;
	const struct vc_result *r;
	uint64_t *peak;      /* of each step, with what lies beside the allocator */
	size_t steps, shown; /* shown: up to the end of the axis */
	struct vc_box box;
	struct vc_axis axis;
	uint64_t top;
};

/* The peak of the step that each bucket begins in, from 0. */
static bool find_peaks(struct growth *g)
{
	const struct vc_curve *v = &g->r->curve;
	uint64_t beside = g->r->stats.peak_used - g->r->stats.peak_reserved, step;

	for (size_t i = 0; i < v->n; i++) {
		if (!vc_step_at(g->r, v->at[i].first_event, &step))
			return false;
		while (g->steps <= step)
			if (!vc_vec_one(g->peak, g->steps))
				return false;
			else
				g->peak[g->steps++] = 0;
		if (v->at[i].reserved_max + beside > g->peak[step])
			g->peak[step] = v->at[i].reserved_max + beside;
	}
	return g->steps > 2;
}

static int x_of(const struct growth *g, double step)
{
	return g->box.x + (int)(step / (double)g->shown * g->box.w);
}

static int y_of(const struct growth *g, uint64_t bytes)
{
	return g->box.y + g->box.h - (int)vc_muldiv(bytes, (uint64_t)g->box.h, g->top);
}

static void axes(struct growth *g, uint64_t room)
{
	struct vc_svg *s = &g->page->svg;
	char text[2 * VC_FORMAT] = "capacity ";
	struct vc_axis x = vc_axis_count(g->shown, 8);
	uint64_t at = 0;

	g->axis = vc_axis_bytes(g->top, 4);
	for (bool more = true; more; more = vc_axis_next(&g->axis, &at)) {
		vc_svg_hline(s, "gr", g->box.x, y_of(g, at) / 10 * 10 + 5, g->box.w);
		vc_svg_say(s, vc_axis_text(&g->axis, at, text), g->box.x - 90, y_of(g, at) + 45,
			   VC_T_BODY, VC_END, "mut", 0);
	}
	vc_svg_say(s, g->axis.name, g->box.x - 90, g->box.y - 110, VC_T_SMALL, VC_END, "mut", 0);
	at = 0;
	for (bool more = true; more; more = vc_axis_next(&x, &at)) {
		vc_axis_text(&x, at, text);
		vc_svg_say(s, text, x_of(g, (double)at), g->box.y + g->box.h + 180, VC_T_BODY,
			   VC_MIDDLE, "mut", 0);
	}
	vc_svg_say(s, x.unit > 1 ? "steps, in thousands" : "steps", g->box.x + g->box.w,
		   g->box.y + g->box.h + 370, VC_T_SMALL, VC_END, "mut", 0);
	if (room) {
		vc_svg_hline(s, "capl", g->box.x, y_of(g, room), g->box.w);
		snprintf(text, sizeof(text), "capacity ");
		vc_format_bytes(room, text + strlen(text));
		vc_svg_say(s, text, g->box.x + 60, y_of(g, room) - 55, VC_T_STRONG, VC_START,
			   "capt", 0);
	}
}

/* What was recorded, and from its last step on the line of so much a step. */
static void lines(struct growth *g, const struct vc_findings *f)
{
	struct vc_svg *s = &g->page->svg;
	struct vc_pen pen = { s, 0, 0, 0 };
	uint64_t last = g->peak[g->steps - 1] > f->high ? g->peak[g->steps - 1] : f->high;
	double left = f->left < g->shown - g->steps ? (double)f->left + 1 :
		(double)(g->shown - g->steps);
	uint64_t end = last + (uint64_t)(left * (double)f->leak);

	vc_svg_put(s, "<path class=\"nf res\" d=\"");
	vc_pen_move(&pen, g->box.x, y_of(g, g->peak[0]));
	for (size_t i = 1; i < g->steps; i++)
		vc_pen_step(&pen, x_of(g, (double)i), y_of(g, g->peak[i]));
	vc_pen_step(&pen, x_of(g, (double)g->steps), y_of(g, last));
	vc_pen_flush(&pen);
	vc_svg_put(s, "\"/>\n<path class=\"bads thin\" d=\"M%c %cL%c %c\"/>\n",
		   x_of(g, (double)g->steps), y_of(g, last), x_of(g, (double)g->steps + left),
		   y_of(g, end < g->top ? end : g->top));
}

int vc_page_growth(struct vc_page *p, int y, const struct vc_result *r)
{
	struct growth g = { .page = p, .r = r };
	struct vc_findings f = vc_findings_of(r);
	char text[VC_SAY];

	if (f.leak && r->curve.n && find_peaks(&g)) {
		g.shown = f.left < FAR * g.steps ? g.steps + f.left + 1 : g.steps * 2;
		g.top = g.peak[g.steps - 1] + (g.shown - g.steps) * f.leak;
		g.top = f.room && (f.left < FAR * g.steps || g.top > f.room) ? f.room : g.top;
		g.top = (g.top > f.high ? g.top : f.high) / 10 * 11;
		vc_grows_text(r, VC_PAGE, text, sizeof(text));
		vc_svg_say(&p->svg, "If it goes on like this", VC_MARGIN, y + 250, VC_T_HEAD,
			   VC_START, "fg", 0);
		y = vc_page_lines(p, &(struct vc_label){ VC_MARGIN, y + 460, VC_T_BODY, VC_START,
				  "fg", p->w - 2 * VC_MARGIN, false, false }, text, 0, 200, 4);
		g.box = (struct vc_box){ LEFT, y + 320, p->w - LEFT - RIGHT, HIGH };
		axes(&g, f.room && f.room <= g.top ? f.room : 0);
		lines(&g, &f);
		y += 320 + HIGH + 450;
	}
	free(g.peak);
	return y;
}
