/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - several runs as small plots on the same axes, and their peaks side by side. */

#include "visualize/multiples.h"

enum { BAR = 300 };

struct drawing {
	struct vc_page page;
	struct vc_multiples m;
	size_t given;
	bool differs[6]; /* trace, model, torch, conf, gpu, change */
};

static const char *field(const struct vc_result *r, int i)
{
	const char *const all[] = { r->info.trace, r->info.model, r->info.torch,
				   r->info.conf,  r->info.gpu,   r->info.change };

	return all[i] ? all[i] : "";
}

static void find_differences(struct drawing *d)
{
	for (int f = 0; f < 6; f++)
		for (size_t i = 1; i < d->m.n; i++)
			if (strcmp(field(d->m.at[i].r, f), field(d->m.at[0].r, f)))
				d->differs[f] = true;
}

/* What tells this run from the others. */
static void name_panel(const struct drawing *d, struct vc_multiple *p, size_t index)
{
	size_t used = 0;

	for (int f = 0; f < 6; f++) {
		char text[96];
		const char *v = field(p->r, f);
		if (!d->differs[f])
			continue;
		if (f == 0)
			vc_trace_name(p->r, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "%s%s", f == 2 && *v ? "torch " : "",
				 *v ? v : f == 3 ? "default" : f == 5 ? "as recorded" : "none");
		used += (size_t)snprintf(p->name + used, sizeof(p->name) - used, "%s%s",
					 used ? ", " : "", text);
		if (used >= sizeof(p->name))
			return;
	}
	if (!used)
		snprintf(p->name, sizeof(p->name), "run %zu", index + 1);
}

/* From the lower to the upper end of the interval; an end beyond the scale is cut. */
static void whisker(struct drawing *d, const struct vc_multiple *p, int x, int y, int w)
{
	uint64_t low = p->r->low + p->plot.base, high = p->r->high + p->plot.base;
	int a = (int)vc_muldiv(low < d->m.top ? low : d->m.top, (uint64_t)w, d->m.top);
	int b = (int)vc_muldiv(high < d->m.top ? high : d->m.top, (uint64_t)w, d->m.top);

	vc_svg_hline(&d->page.svg, "res", x + a, y, b > a ? b - a : 1);
	vc_svg_vline(&d->page.svg, "res", x + a, y - 50, 100);
	if (high <= d->m.top)
		vc_svg_vline(&d->page.svg, "res", x + b, y - 50, 100);
}

/* One bar per run: allocated solid, reserved hatched, capacity as a line. */
static int bars(struct drawing *d, int y)
{
	struct vc_svg *s = &d->page.svg;
	int name = d->page.w / 4, w = d->page.w - 2 * VC_MARGIN - name - 1300, x = VC_MARGIN + name;
	struct vc_label l = { VC_MARGIN, y, VC_T_HEAD, VC_START, "fg", 0, false, false };
	char buf[VC_FORMAT];
	bool ends = false;

	for (size_t i = 0; i < d->m.n; i++)
		ends |= d->m.at[i].r->has_interval;
	vc_svg_label(s, &l, ends ? "Peaks: allocated, reserved (hatched), its band" :
				   "Peaks: allocated, and reserved (hatched)");
	y += 200;
	vc_svg_put(s, "<g>\n");
	for (size_t i = 0; i < d->m.n; i++, y += BAR) {
		const struct vc_multiple *p = &d->m.at[i];
		int a = (int)vc_muldiv(p->r->stats.peak_allocated + p->plot.base, (uint64_t)w,
				       d->m.top);
		int r = (int)vc_muldiv(p->r->stats.peak_reserved + p->plot.base, (uint64_t)w,
				       d->m.top);
		const char *color;
		vc_svg_say(s, p->name, x - 120, y + 150, VC_T_SMALL, VC_END, "fg", name - 200);
		vc_svg_rect(s, "hx segbox", (struct vc_box){ x, y + 20, r > w ? w : r, 180 }, 0);
		vc_svg_rect(s, "busy", (struct vc_box){ x, y + 20, a > w ? w : a, 180 }, 0);
		if (p->r->has_interval)
			whisker(d, p, x, y + 110, w);
		if (p->plot.has_capacity)
			vc_svg_vline(s, "capl", x + (int)vc_muldiv(p->plot.capacity, (uint64_t)w,
					d->m.top), y - 30, 280);
		vc_verdict_word(p->r, &color);
		int used = vc_svg_say(s, vc_format_bytes(p->r->stats.peak_reserved, buf),
				      d->page.w - VC_MARGIN, y + 150, VC_T_STRONG, VC_END, color,
				      0).w;
		vc_verdict_icon(s, p->r, d->page.w - VC_MARGIN - used - 190, y + 60);
	}
	vc_svg_put(s, "</g>\n");
	return y;
}

static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	struct vc_named of[VC_MULTIPLES];

	for (size_t i = 0; i < d->m.n; i++)
		of[i] = (struct vc_named){ d->m.at[i].name, d->m.at[i].r };
	vc_best_text(of, d->m.n, d->m.by_time, buf, cap);
}

/* What all of them have in common. */
static void common_text(const struct drawing *d, char *buf, size_t cap)
{
	static const char *const before[] = { "", "", "version ", "", "on ", "" };
	size_t used = 0;
	char name[160];

	*buf = '\0';
	for (int f = 0; f < 6 && used < cap; f++) {
		const char *v = field(d->m.at[0].r, f);

		if (f == 0)
			vc_trace_name(d->m.at[0].r, name, sizeof(name));
		if (!d->differs[f] && *v)
			used += (size_t)snprintf(buf + used, cap - used, "%s%s%s", used ? ", " : "",
						 before[f], f ? v : name);
	}
}

static int moments(struct drawing *d, int y)
{
	struct vc_subject of[VC_MULTIPLES];

	for (size_t i = 0; i < d->m.n; i++)
		of[i] = (struct vc_subject){ d->m.at[i].name, NULL, d->m.at[i].r };
	return vc_page_facts_of(&d->page, y, of, d->m.n, VC_ASK_ALL);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[700], common[512];

	title_text(d, title, sizeof(title));
	common_text(d, common, sizeof(common));
	snprintf(text, sizeof(text), "%s; shared axes%s", common,
		 d->given > d->m.n ? "; the first twelve runs are shown" : "");
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_header(&d->page, title, text, NULL);
	y = vc_multiples_legend(&d->m, y);
	y = vc_multiples_draw(&d->m, y + 50);
	y = moments(d, bars(d, y + 250));
	if (!d->differs[3])
		vc_conf_text(d->m.at[0].r, common, sizeof(common));
	vc_page_footer(&d->page, y + 150, d->differs[3] ? "" : common,
		       "each column with its maximum \xC2\xB7 vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 480 : 200), out, err);
}

static int compare_write(const struct vc_result *runs, size_t n, const void *config,
			 struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d = calloc(1, sizeof(*d));
	int rc;

	VC_HAVE(d, "the picture", err);
	d->given = n;
	for (size_t i = 0; i < n && d->m.n < VC_MULTIPLES; i++)
		if (runs[i].curve.n)
			d->m.at[d->m.n++].r = &runs[i];
	if (!d->m.n) {
		free(d);
		return vc_page_notice(cfg, "Comparison", !n ? "no run was given" :
				      "no run made a request for memory: nothing was simulated",
				      out, err);
	}
	find_differences(d);
	for (size_t i = 0; i < d->m.n; i++)
		name_panel(d, &d->m.at[i], i);
	rc = vc_multiples_init(&d->m, &d->page, cfg, err);
	if (!rc)
		rc = draw(d, cfg, out, err);
	vc_multiples_fini(&d->m);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_compare = {
	.name = "compare", .extension = "svg",
	.summary = "several runs side by side on the same axes",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "oom", "moment", "steps"),
	.lives_limit = 2000000, .side_by_side = true, .write = compare_write,
};
