/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - what changed between two recordings: both outlines aligned by step, the call sites that
 * ask for more or less, and the first moment at which the two part. */

#include "common/event.h"
#include "common/vec.h"
#include "visualize/scene.h"

enum { HEIGHT = 2800, ROWS = 12, ROW = 280, BAR = 180, NAME = 3000, NARROW_NAME = 1700,
	VALUE = 1100, NARROW_VALUE = 850, LEFT = 700 };

/* One run: where its steps begin, and what was reserved in each column. */
struct side {
	const struct vc_result *r;
	uint64_t *cut; size_t cuts; /* the first event, one per step, the end */
	uint64_t *most;             /* by column; UINT64_MAX: it has ended */
};

struct drawing {
	struct vc_page page;
	const struct vc_diff *diff;
	struct side side[2];
	double *edge; size_t parts; /* where each part between cuts begins, from 0 to 1 */
	struct vc_box box;
	struct vc_axis axis;
	uint64_t top;
	size_t width, rows;
	int by; /* steps: 1 marked, 2 found, 0 neither */
	uint64_t less, more; /* the longest bars to the left and to the right */
};

static int cut_at(struct side *s, uint64_t event, struct vc_error *err)
{
	if (s->cuts && event < s->cut[s->cuts - 1])
		return VC_OK;
	VC_HAVE(vc_vec_one(s->cut, s->cuts), "the picture", err);
	s->cut[s->cuts++] = event;
	return VC_OK;
}

static bool has_step_marks(const struct vc_result *r)
{
	for (size_t i = 0; i < r->steps.marks; i++)
		if (r->steps.mark[i].kind == VC_MARK_STEP)
			return true;
	return false;
}

/* `by`: 1 marks of steps, 2 iterations found in the pattern of allocations, 0 neither. */
static int cut_side(struct side *s, int by, struct vc_error *err)
{
	const struct vc_curve *v = &s->r->curve;
	const struct vc_steps *t = &s->r->steps;

	VC_TRY(cut_at(s, v->at[0].first_event, err));
	for (size_t i = 0; by == 1 && i < t->marks; i++)
		if (t->mark[i].kind == VC_MARK_STEP)
			VC_TRY(cut_at(s, t->mark[i].event, err));
	for (size_t i = 0; by == 2 && i < t->phases; i++)
		if (!i || t->phase[i].iteration != t->phase[i - 1].iteration)
			VC_TRY(cut_at(s, t->phase[i].event, err));
	return cut_at(s, v->at[v->n - 1].last_event + 1, err);
}

/* Parts that both have get the mean of their shares of both runs, so that no step of one is told
 * from that of the other by its place alone. */
static int align(struct drawing *d, struct vc_error *err)
{
	struct side *a = &d->side[0], *b = &d->side[1];
	double all = 0;

	d->by = has_step_marks(a->r) && has_step_marks(b->r) ? 1 :
		a->r->steps.phases && b->r->steps.phases     ? 2 : 0;
	VC_TRY(cut_side(a, d->by, err));
	VC_TRY(cut_side(b, d->by, err));
	d->parts = (a->cuts > b->cuts ? a->cuts : b->cuts) - 1;
	d->edge = calloc(d->parts + 1, sizeof(*d->edge));
	VC_HAVE(d->edge, "the picture", err);
	for (size_t i = 0; i < d->parts; i++) {
		double share = 0, n = 0;

		for (int k = 0; k < 2; k++) {
			const struct side *s = &d->side[k];

			if (i + 1 >= s->cuts)
				continue;
			share += (double)(s->cut[i + 1] - s->cut[i]);
			n++;
		}
		d->edge[i] = all;
		all += share / n;
	}
	d->edge[d->parts] = all;
	for (size_t i = 0; i <= d->parts; i++)
		d->edge[i] /= all;
	return VC_OK;
}

/* The column of an event; `width` at the end of all. */
static size_t column_of(const struct drawing *d, const struct side *s, uint64_t event)
{
	size_t lo = 0, hi = s->cuts - 1;
	double part;

	if (event <= s->cut[0])
		return 0;
	if (event >= s->cut[hi])
		return (size_t)(d->edge[hi] * (double)d->width + 0.5);
	while (lo + 1 < hi) { /* cut[lo] <= event < cut[hi] */
		size_t mid = lo + (hi - lo) / 2;

		*(s->cut[mid] <= event ? &lo : &hi) = mid;
	}
	part = (double)(event - s->cut[lo]) / (double)(s->cut[lo + 1] - s->cut[lo]);
	return (size_t)((d->edge[lo] + part * (d->edge[lo + 1] - d->edge[lo])) *
			(double)d->width);
}

/* A bucket is in every column that it touches: no peak vanishes. */
static int fill(struct drawing *d, struct side *s, struct vc_error *err)
{
	const struct vc_curve *v = &s->r->curve;

	s->most = calloc(d->width + 1, sizeof(*s->most));
	VC_HAVE(s->most, "the picture", err);
	for (size_t i = 0; i < v->n; i++) {
		size_t x = column_of(d, s, v->at[i].first_event);
		size_t to = column_of(d, s, v->at[i].last_event + 1);

		do
			s->most[x] = v->at[i].reserved_max > s->most[x] ? v->at[i].reserved_max :
									  s->most[x];
		while (++x < to && x < d->width);
	}
	for (size_t x = column_of(d, s, UINT64_MAX); x < d->width; x++)
		s->most[x] = UINT64_MAX;
	return VC_OK;
}

static int y_of(const struct drawing *d, uint64_t bytes)
{
	return d->box.y + d->box.h - (int)vc_muldiv(bytes, (uint64_t)d->box.h, d->top);
}

static void outline(struct drawing *d, const struct side *s, const char *klass)
{
	struct vc_pen pen = { &d->page.svg, 0, 0, 0 };
	size_t x;

	vc_svg_put(&d->page.svg, "<path class=\"%s\" d=\"", klass);
	vc_pen_move(&pen, d->box.x, y_of(d, s->most[0]));
	for (x = 1; x < d->width && s->most[x] != UINT64_MAX; x++)
		vc_pen_step(&pen, d->box.x + (int)(x * (size_t)d->box.w / d->width),
			    y_of(d, s->most[x]));
	vc_pen_step(&pen, d->box.x + (int)(x * (size_t)d->box.w / d->width),
		    y_of(d, s->most[x - 1]));
	vc_pen_flush(&pen);
	vc_svg_put(&d->page.svg, "\"/>\n");
}

static void grid(struct drawing *d)
{
	struct vc_svg *s = &d->page.svg;
	uint64_t at = 0;
	char buf[VC_FORMAT];
	int y = 0;

	for (bool more = true; more; more = vc_axis_next(&d->axis, &at)) {
		y = y_of(d, at);
		vc_svg_hline(s, "gr", d->box.x, y / 10 * 10 + 5, d->box.w);
		vc_svg_say(s, vc_axis_text(&d->axis, at, buf), d->box.x - 90, y + 45, VC_T_BODY,
			   VC_END, "mut", 0);
	}
	vc_svg_say(s, d->axis.name, d->box.x - 90, (y < d->box.y ? y : d->box.y) - 110, VC_T_SMALL,
		   VC_END, "mut", 0);
}

/* Borders of steps, and their numbers where there is room. */
static void steps(struct drawing *d, int y)
{
	struct vc_svg *s = &d->page.svg;
	char text[40];
	int free_from = d->box.x, line_from = d->box.x;

	if (d->parts < 2) {
		vc_svg_say(s, "events, from the first to the last of each run", d->box.x, y + 200,
			   VC_T_SMALL, VC_START, "mut", d->box.w);
		return;
	}
	vc_svg_put(s, "<g>\n");
	for (size_t i = 1; i < d->parts; i++) {
		int x = d->box.x + (int)(d->edge[i] * d->box.w);
		struct vc_label l = { x + 30, y + 200, VC_T_SMALL, VC_START, "mut", 0, false,
				      false };
		struct vc_box b;

		if (x >= line_from)
			vc_svg_vline(s, "it", x, d->box.y, d->box.h);
		line_from = x >= line_from ? x + 60 : line_from;
		snprintf(text, sizeof(text), "step %zu", i - (d->by == 2));
		b = vc_svg_measure(&l, text);
		if (x < free_from || b.x + b.w > d->box.x + d->box.w)
			continue;
		vc_svg_label(s, &l, text);
		free_from = b.x + b.w + 100;
	}
	vc_svg_put(s, "</g>\n");
}

/* Where the first allocation differs, on the clock of the run that has it. */
static void parting(struct drawing *d)
{
	int k = d->diff->event[1] != UINT64_MAX ? 1 : 0, x;
	size_t column;
	bool right;

	if (d->diff->event[k] == UINT64_MAX)
		return;
	column = column_of(d, &d->side[k], d->diff->event[k]);
	x = d->box.x + (int)(column * (size_t)d->box.w / d->width);
	right = x < d->box.x + d->box.w / 2;
	vc_svg_vline(&d->page.svg, "bads thin", x, d->box.y - 200, d->box.h + 200);
	vc_svg_label(&d->page.svg, &(struct vc_label){ x + (right ? 60 : -60), d->box.y - 110,
			VC_T_SMALL, right ? VC_START : VC_END, "bad", 0, false, true },
		     "they part here");
}

static int plot(struct drawing *d, int y)
{
	uint64_t a = d->side[0].r->stats.peak_reserved, b = d->side[1].r->stats.peak_reserved;
	struct vc_key key[] = { { "opens", "A reserved", VC_KEY_LINE },
				{ "res", "B reserved", VC_KEY_LINE } };
	uint64_t most = a > b ? a : b;

	y = vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 },
			   key, 2);
	d->top = most ? most + most / 11 : VC_MIB;
	d->box.y = y + 400;
	d->axis = vc_axis_bytes(d->top, 6);
	grid(d);
	y = d->box.y + d->box.h;
	steps(d, y);
	outline(d, &d->side[0], "opens");
	outline(d, &d->side[1], "res");
	parting(d);
	return y + 450;
}

static char *change_text(uint64_t a, uint64_t b, char *buf)
{
	char t[VC_FORMAT];

	snprintf(buf, VC_FORMAT, "%s%.36s", a == b ? "" : a < b ? "+" : "\xE2\x88\x92",
		 vc_format_bytes(a < b ? b - a : a - b, t));
	return buf;
}

static uint64_t apart(const uint64_t v[2])
{
	return v[0] < v[1] ? v[1] - v[0] : v[0] - v[1];
}

static int value_width(const struct drawing *d)
{
	return d->page.w < VC_NARROW ? NARROW_VALUE : VALUE;
}

/* A bar to the right: B holds more at the peak; to the left: less. */
static void draw_site(struct drawing *d, const struct vc_diff_site *w, struct vc_box b, int zero)
{
	struct vc_svg *s = &d->page.svg;
	int right = d->page.w - VC_MARGIN;
	int wide = (int)vc_muldiv(apart(w->live), (uint64_t)b.w, d->less + d->more);
	bool more = w->live[1] > w->live[0];
	char a[VC_FORMAT], live[VC_FORMAT];

	vc_svg_put(s, "<g><title>%e: %s asked for, %s at the peak</title>", w->site,
		   change_text(w->asked[0], w->asked[1], a),
		   change_text(w->live[0], w->live[1], live));
	s->titles++;
	vc_svg_label(s, &(struct vc_label){ b.x - 150, b.y + 145, VC_T_SMALL, VC_END, "fg",
					    b.x - VC_MARGIN - 150, false, false }, w->site);
	if (wide)
		vc_svg_rect(s, more ? "lane" : "busy",
			    (struct vc_box){ zero - (more ? 0 : wide), b.y, wide, BAR }, 0);
	vc_svg_say(s, live, right - value_width(d), b.y + 145, VC_T_STRONG, VC_END, "fg", 0);
	vc_svg_say(s, a, right, b.y + 145, VC_T_BODY, VC_END, "fg", 0);
	vc_svg_put(s, "</g>\n");
}

static void widen(uint64_t *most, uint64_t bytes)
{
	*most = bytes > *most ? bytes : *most;
}

static int sites(struct drawing *d, int y)
{
	int name = d->page.w < VC_NARROW ? NARROW_NAME : NAME, right = d->page.w - VC_MARGIN;
	int value = value_width(d), zero;
	struct vc_box b = { VC_MARGIN + name, 0, right - VC_MARGIN - name - 2 * value - 100, 0 };

	for (size_t i = 0; i < d->diff->n && i < ROWS; i++) {
		const struct vc_diff_site *w = &d->diff->at[i];

		if (!apart(w->asked) && !apart(w->live))
			break; /* the largest changes come first */
		widen(w->live[0] < w->live[1] ? &d->more : &d->less, apart(w->live));
		d->rows = i + 1;
	}
	if (!d->rows)
		return y;
	d->more += !d->less && !d->more;
	zero = b.x + (int)vc_muldiv(d->less, (uint64_t)b.w, d->less + d->more);
	vc_svg_say(&d->page.svg, "Less and more by call site", VC_MARGIN, y + 200, VC_T_HEAD,
		   VC_START, "fg", d->page.w - 2 * VC_MARGIN - 2 * value);
	vc_svg_say(&d->page.svg, "at the peak", right - value, y + 200, VC_T_SMALL, VC_END, "mut",
		   0);
	vc_svg_say(&d->page.svg, "asked for", right, y + 200, VC_T_SMALL, VC_END, "mut", 0);
	b.y = y + 350;
	vc_svg_put(&d->page.svg, "<g>\n");
	for (size_t i = 0; i < d->rows; i++, b.y += ROW)
		draw_site(d, &d->diff->at[i], b, zero);
	vc_svg_put(&d->page.svg, "</g>\n");
	vc_svg_vline(&d->page.svg, "ax", zero, y + 310, b.y - y - 370);
	return b.y + 100;
}

/* The first allocation that differs, in words; the y below. */
static int first(struct drawing *d, int y)
{
	char text[700], place[512], a[VC_FORMAT], n[VC_FORMAT];

	if (d->diff->first == VC_DIFF_NONE)
		return y;
	snprintf(text, sizeof(text), "Where they part: %s", vc_parting_text(d->diff->first));
	vc_svg_say(&d->page.svg, text, VC_MARGIN, y + 200, VC_T_HEAD, VC_START, "bad",
		   d->page.w - 2 * VC_MARGIN);
	y += 200;
	for (int k = 0; k < 2; k++) {
		if (d->diff->event[k] == UINT64_MAX)
			continue;
		vc_site_text(d->side[k].r->meta, d->diff->site[k], place, sizeof(place));
		snprintf(text, sizeof(text), "%s, event %s: %s%s%s", k ? "B" : "A",
			 vc_format_count(d->diff->event[k], n),
			 vc_format_bytes(d->diff->size[k], a), *place ? " at " : "", place);
		y += 250;
		vc_svg_say(&d->page.svg, text, VC_MARGIN, y, VC_T_BODY, VC_START, "fg",
			   d->page.w - 2 * VC_MARGIN);
	}
	return y + 150;
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[500], a[160], b[160];

	vc_change_text(d->side[0].r, d->side[1].r, d->diff, VC_PAGE, title, sizeof(title));
	vc_trace_name(d->side[0].r, a, sizeof(a));
	vc_trace_name(d->side[1].r, b, sizeof(b));
	snprintf(text, sizeof(text), "A: %s \xC2\xB7 B: %s \xC2\xB7 reserved, at its own settings, "
		 "aligned %s", a, b, d->parts > 1 ? "by step" : "from begin to end");
	vc_page_begin(&d->page, cfg, title, text);
	d->box = (struct vc_box){ LEFT, 0, d->page.w - LEFT - VC_MARGIN, HEIGHT };
	int y = plot(d, vc_page_header(&d->page, title, text, NULL));
	y = sites(d, y);
	y = first(d, y + 50);
	y = vc_page_facts_of(&d->page, y, (struct vc_subject[]){ { "A", NULL, d->side[0].r },
			     { "B", NULL, d->side[1].r } }, 2, VC_ASK_ALL);
	vc_page_footer(&d->page, y + 150, "", "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 480 : 150), out, err);
}

static int diff_write(const struct vc_result *runs, size_t n, const void *config,
		      struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing d = { .width = cfg->width };
	int rc;

	if (n != 2 || !runs[1].diff)
		return vc_page_notice(cfg, "What changed", "two recordings are compared by "
				      "vramcast diff A B -o diff.svg", out, err);
	if (!runs[0].curve.n || !runs[1].curve.n)
		return vc_page_notice(cfg, "What changed", "one of the two makes no request for "
				      "memory", out, err);
	d.diff = runs[1].diff;
	d.side[0].r = &runs[0];
	d.side[1].r = &runs[1];
	rc = align(&d, err);
	for (int k = 0; k < 2 && !rc; k++)
		rc = fill(&d, &d.side[k], err);
	if (!rc)
		rc = draw(&d, cfg, out, err);
	for (int k = 0; k < 2; k++)
		VC_FREE(d.side[k].cut, d.side[k].most);
	free(d.edge);
	return rc;
}

const struct vc_sink_type vc_sink_diff = {
	.name = "diff", .extension = "svg",
	.summary = "two recordings: curves by step, call sites, where they part (of diff -o)",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "peak", "steps", "moment"),
	.lives_limit = 2000000, .side_by_side = true, .write = diff_write,
};
