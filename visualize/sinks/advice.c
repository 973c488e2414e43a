/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c - what would help, as small multiples: the run as it is and with each change, on the
 * same axes; below, the lines to paste. */

#include "visualize/multiples.h"

struct drawing { struct vc_page page; struct vc_multiples m; const struct vc_result *r; };

/* Over several lines, broken at spaces; the y below. */
static int put_lines(struct drawing *d, const char *text, enum vc_text_style style, int y)
{
	const struct vc_font font = vc_text_font(style);
	int x = VC_MARGIN + (style == VC_T_MONO ? 220 : 0), room = d->page.w - VC_MARGIN - x;
	char part[400];

	while (*text) {
		size_t n = 0, whole = 0;

		while (text[n] && n + 1 < sizeof(part)) {
			size_t to = n + strcspn(text + n + 1, " ") + 1;

			to = to < sizeof(part) ? to : sizeof(part) - 1;
			snprintf(part, sizeof(part), "%.*s", (int)to, text);
			if (whole && vc_text_width(&font, part) > room)
				break;
			n = whole = to;
		}
		snprintf(part, sizeof(part), "%.*s", (int)whole, text);
		vc_svg_say(&d->page.svg, part, x, y, style, VC_START,
			   style == VC_T_MONO ? "mut" : "fg", room);
		text += whole + strspn(text + whole, " ");
		y += 200;
	}
	return y;
}

/* Each change in words, and the lines that make it; the y below. */
static int commands(struct drawing *d, int y)
{
	char text[500];

	vc_svg_put(&d->page.svg, "<g>\n");
	for (size_t i = 0; i < d->r->tries.n; i++) {
		const struct vc_try *t = &d->r->tries.at[i];

		vc_tried_text(&(struct vc_tried){ t->text, vc_result_verdict(t->run),
			      t->run->has_interval, t->estimate, t->run->stats.peak_reserved,
			      t->run->low, t->run->high, t->run->leak.steps > 0, t->times }, i + 1,
			      VC_PAGE, text, sizeof(text));
		y = put_lines(d, text, VC_T_STRONG, y);
		y = put_lines(d, t->paste, VC_T_MONO, y + 20);
		y = put_lines(d, t->again, VC_T_MONO, y) + 120;
	}
	vc_svg_put(&d->page.svg, "</g>\n");
	return y;
}

static void choose(struct drawing *d)
{
	struct vc_multiple *p = &d->m.at[d->m.n++];

	*p = (struct vc_multiple){ .r = d->r, .name = "as it is" };
	for (size_t i = 0; i < d->r->tries.n && d->m.n < VC_MULTIPLES; i++) {
		const struct vc_try *t = &d->r->tries.at[i];

		if (!t->run->curve.n)
			continue;
		p = &d->m.at[d->m.n++];
		p->r = t->run;
		snprintf(p->name, sizeof(p->name), "%u. %.140s", (unsigned)i + 1, t->text);
	}
}

static const char reads_as[] = "cheapest first, each simulated; shared axes";

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], conf[400];

	vc_tries_text(d->r, title, sizeof(title));
	vc_page_begin(&d->page, cfg, title, reads_as);
	int y = vc_page_header(&d->page, title, reads_as, d->r);

	y = vc_multiples_legend(&d->m, vc_page_facts(&d->page, y, d->r));
	y = vc_page_tradeoff(&d->m.at[0].plot, vc_multiples_draw(&d->m, y + 50));
	y = commands(d, y + 150);
	vc_conf_text(d->r, conf, sizeof(conf));
	vc_page_footer(&d->page, y, conf, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 330 : 50), out, err);
}

static int advice_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	char help[VC_SAY] = "no run was given";
	struct drawing *d;
	int rc;

	if (n)
		vc_help_text(runs, help, sizeof(help));
	if (!n || !runs->tries.n || !runs->curve.n)
		return vc_page_notice(cfg, "What would help", help, out, err);
	d = calloc(1, sizeof(*d));
	VC_HAVE(d, "the picture", err);
	d->r = runs;
	choose(d);
	rc = vc_multiples_init(&d->m, &d->page, cfg, err);
	if (!rc)
		rc = draw(d, cfg, out, err);
	vc_multiples_fini(&d->m);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_advice = {
	.name = "advice", .extension = "svg",
	.summary = "what would help: the run as it is and with each change, on the same axes",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "oom", "moment", "steps"),
	.advised = true, .lives_limit = 2000000, .write = advice_write,
};
