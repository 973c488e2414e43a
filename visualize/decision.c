/* SPDX-License-Identifier: Apache-2.0 */
/* decision.c - where it is decided whether the run fits: a twentieth of it, as wide as all. */
#include "visualize/scene.h"

enum { PART = 20, HIGH = 2000, LEAST = 12 };

/* Of the axis: up to the failure, or around the peak. false: there is nothing to decide. */
static bool find_range(const struct vc_plot *p, struct vc_range *range)
{
	const struct vc_result *r = p->c->r;
	bool by_time = p->k->by_time, fails = r->oom.happened;
	uint64_t event = fails ? r->oom.event : r->stats.peak_event, part = p->k->span / PART;
	uint64_t at = by_time ? vc_curve_time(r, event) : event, end = p->k->first + p->k->span;
	uint64_t to = fails ? at + part / 40 : at + part / 2;

	if (!part || (!fails && (!p->capacity || r->stats.peak_used < p->capacity / 20 * 19)))
		return false;
	to = to > end ? end : to < p->k->first + part ? p->k->first + part : to;
	*range = (struct vc_range){ to - part, part };
	return true;
}

int vc_page_decision(const struct vc_plot *of, int y, struct vc_error *err)
{
	struct vc_columns columns = { 0 };
	struct vc_plot p = *of;
	struct vc_page *page = p.page;
	struct vc_range range;
	char text[VC_SAY], a[VC_FORMAT];
	const struct vc_result *r = p.c->r;

	/* A phone has the page's own magnifier, and paper is dear. */
	if (!find_range(&p, &range) || (page->w < VC_NARROW && page->cfg->no_head))
		return y;
	if (vc_columns_init(&columns, p.c, p.k->by_time, (uint32_t)p.box.w / 5, &range, err) < 0)
		return err->status;
	if (columns.n >= LEAST) {
		snprintf(text, sizeof(text), "5 %% of the run %s %s", r->oom.happened ?
			 "up to the failure at" : "around its peak at",
			 vc_moment_text(r, columns.by_time, r->oom.happened ? r->oom.event :
					r->stats.peak_event, a));
		vc_svg_say(&page->svg, text, VC_MARGIN, y + 250, VC_T_HEAD, VC_START, "fg",
			   page->w - 2 * VC_MARGIN);
		p.k = &columns;
		p.skipped = range.first - of->k->first;
		p.box = (struct vc_box){ of->box.x, y + 600, of->box.w, HIGH };
		p.may_break = false;
		vc_plot_scale(&p);
		vc_svg_put(&page->svg, "<g class=\"part\">\n");
		vc_plot_grid(&p, true);
		vc_plot_areas(&p);
		vc_plot_capacity(&p, false);
		vc_plot_oom(&p);
		vc_plot_names(&p);
		vc_plot_axis(&p, p.box.y + HIGH);
		vc_svg_put(&page->svg, "</g>\n");
		y += 600 + HIGH + 350;
	}
	vc_columns_fini(&columns);
	return y;
}
