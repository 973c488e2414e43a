/* SPDX-License-Identifier: Apache-2.0 */
/* multiples.c - see multiples.h */
#include "visualize/multiples.h"

enum { PLOT_HEIGHT = 2000, ROOM = 1360 /* for the texts around */, GUTTER = 350, LEFT = 700 };

int vc_multiples_init(struct vc_multiples *m, struct vc_page *page, const struct vc_picture *cfg,
		      struct vc_error *err)
{
	struct vc_range range = { 0, 0 };
	uint32_t width;
	bool kinds = true; /* of all: else a hue would mean two things */

	m->page = page;
	m->per_row = cfg->width < VC_NARROW / 10 ? 1 :
		     m->n == 1                   ? 1 :
		     m->n == 2 || m->n == 4      ? 2 :
						   3;
	m->by_time = true;
	for (size_t i = 0; i < m->n; i++)
		m->by_time = m->by_time && vc_wants_time(cfg, m->at[i].r);
	for (size_t i = 0; i < m->n; i++) {
		const struct vc_curve *v = &m->at[i].r->curve;
		uint64_t span = !v->n ? 0 :
				m->by_time ? v->at[v->n - 1].last_ns - v->at[0].first_ns :
					v->at[v->n - 1].last_event + 1 - v->at[0].first_event;
		m->span = span > m->span ? span : m->span;
	}
	width = (uint32_t)(cfg->width / m->per_row) * 2;
	for (size_t i = 0; i < m->n; i++) {
		VC_TRY(vc_classes_init(&m->at[i].classes, m->at[i].r, err));
		kinds = kinds && m->at[i].classes.categories;
	}
	for (size_t i = 0; i < m->n; i++) {
		struct vc_multiple *p = &m->at[i];
		const struct vc_curve *v = &p->r->curve;
		if (v->n)
			range = (struct vc_range){ m->by_time ? v->at[0].first_ns :
				v->at[0].first_event, m->span + m->by_time };
		if (!kinds)
			vc_classes_to_lifetimes(&p->classes);
		VC_TRY(vc_columns_init(&p->columns, &p->classes, m->by_time, width, &range, err));
		p->plot = (struct vc_plot){ .page = m->page, .c = &p->classes, .k = &p->columns };
		vc_plot_scale(&p->plot);
		m->top = p->plot.top > m->top ? p->plot.top : m->top;
	}
	return VC_OK;
}

static void panel_head(struct vc_multiples *m, const struct vc_multiple *p, struct vc_box b)
{
	struct vc_svg *s = &m->page->svg;
	const char *color;
	char text[100], more[200], a[VC_FORMAT], c[VC_FORMAT];
	const struct vc_stats *t = &p->r->stats;

	vc_verdict_word(p->r, &color);
	vc_brief_text(p->r, m->by_time, text, sizeof(text));
	vc_verdict_icon(s, p->r, b.x, b.y - 310);
	vc_svg_say(s, text, b.x + 190, b.y - 220, VC_T_STRONG, VC_START, color, b.w - 190);
	vc_svg_say(s, p->name, b.x, b.y - 430, VC_T_SMALL, VC_START, "fg", b.w);
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

int vc_multiples_draw(struct vc_multiples *m, int y)
{
	int per = (int)m->per_row;
	int w = (m->page->w - VC_MARGIN - LEFT - GUTTER * (per - 1)) / per;

	for (size_t i = 0; i < m->n; i++) {
		struct vc_multiple *p = &m->at[i];
		int col = (int)i % per, row = (int)i / per;
		p->plot.box =
			(struct vc_box){ LEFT + col * (w + GUTTER),
					y + 710 + row * (PLOT_HEIGHT + ROOM), w, PLOT_HEIGHT };
		p->plot.top = m->top;
		p->plot.has_capacity = p->plot.capacity && p->plot.capacity <= m->top;
		p->plot.axis = vc_axis_bytes(m->top, 5);
		vc_svg_put(&m->page->svg, "<g>\n"); /* browsers dislike many siblings */
		vc_plot_grid(&p->plot, !col);
		if (p->r->curve.n) {
			vc_plot_areas(&p->plot);
			vc_plot_capacity(&p->plot, false);
			vc_plot_oom(&p->plot);
			vc_plot_axis(&p->plot, p->plot.box.y + p->plot.box.h);
		}
		panel_head(m, p, p->plot.box);
		vc_svg_put(&m->page->svg, "</g>\n");
	}
	return y + (int)((m->n + m->per_row - 1) / m->per_row) * (PLOT_HEIGHT + ROOM);
}

int vc_multiples_legend(struct vc_multiples *m, int y)
{
	struct vc_columns all = m->at[0].columns;
	struct vc_key key[VC_KEYS_MORE + 5];

	for (size_t i = 1; i < m->n; i++)
		for (int s = 0; s < VC_SLOTS; s++)
			all.used[s] |= m->at[i].columns.used[s] &&
				       m->at[i].classes.categories == m->at[0].classes.categories;
	size_t n = vc_plot_keys(&m->at[0].classes, &all, key);
	for (size_t i = 1; i < m->n; i++)
		n = vc_plot_keys_more(&m->at[i].classes, &m->at[i].columns, key, n);
	key[n++] = (struct vc_key){ "capl", "Capacity", VC_KEY_LINE };
	return vc_page_legend(
		m->page, (struct vc_box){ VC_MARGIN, y, m->page->w - 2 * VC_MARGIN, 0 }, key, n);
}

void vc_multiples_fini(struct vc_multiples *m)
{
	for (size_t i = 0; i < m->n; i++) {
		vc_columns_fini(&m->at[i].columns);
		vc_classes_fini(&m->at[i].classes);
	}
}
