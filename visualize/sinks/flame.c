/* SPDX-License-Identifier: Apache-2.0 */
/* flame.c - who holds the memory, as an icicle: what it is for, module, call sites; a box is as
 * wide as its bytes. */

#include "visualize/flame.h"
#include "visualize/scene.h"

enum { ROW = 250, LEAST = 20, TITLED = 60, LEAVES = 8 };

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_flame f;
	const struct vc_result *r;
	struct vc_box box;
	size_t boxes;
};

/* Browsers need time by the square of siblings: a group holds a hundred boxes. */
static void open_box(struct drawing *d)
{
	if (d->boxes++ % 100 == 0)
		vc_svg_put(&d->page.svg, d->boxes > 1 ? "</g>\n<g>\n" : "<g>\n");
}

/* What is too narrow to be drawn one by one, as one box. */
static void draw_rest(struct drawing *d, int x, int y, int w)
{
	if (w < LEAST)
		return;
	open_box(d);
	vc_svg_rect(&d->page.svg, "hx segbox",
		    (struct vc_box){ x, y, w - 5, ROW - 10 }, 0);
}

static void draw_box(struct drawing *d, const struct vc_flame_node *n, int x, int w)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_box b = { x, d->box.y + (int)n->depth * ROW, w > 10 ? w - 5 : w, ROW - 10 };
	char a[VC_FORMAT], text[200], many[VC_FORMAT];

	vc_format_in(n->bytes, d->f.node[0].bytes, a);
	if (n->blocks > 1 && !n->child)
		snprintf(text, sizeof(text), "%s  %s, \xC3\x97%s", n->name, a,
			 vc_format_count(n->blocks, many));
	else
		snprintf(text, sizeof(text), "%s  %s", n->name, a);
	open_box(d);
	vc_svg_put(s, "<g>");
	if (w >= TITLED) {
		vc_svg_put(s, "<title>%e</title>", text);
		s->titles++;
	}
	vc_svg_rect(s, n->depth ? vc_theme_pale(vc_slot_most(n->of_slot)) : "card rim", b, 0);
	if (w >= 500)
		vc_svg_say(s, text, x + 60, b.y + 165, n->depth < 2 ? VC_T_STRONG : VC_T_SMALL,
			   VC_START, "fg", b.w - 110);
	vc_svg_put(s, "</g>\n");
}

/* A node and its children: they stand on the bytes that they are of, from the left. */
static void draw_node(struct drawing *d, uint32_t at, uint64_t from)
{
	const struct vc_flame_node *n = &d->f.node[at];
	uint64_t all = d->f.node[0].bytes, to = from;
	int x = (int)vc_muldiv(from, (uint64_t)d->box.w, all);
	int end = (int)vc_muldiv(from + n->bytes, (uint64_t)d->box.w, all);

	draw_box(d, n, d->box.x + x, end - x);
	for (uint32_t i = n->child; i; i = d->f.node[i].next) {
		int a = (int)vc_muldiv(to, (uint64_t)d->box.w, all);

		if ((int)vc_muldiv(to + d->f.node[i].bytes, (uint64_t)d->box.w, all) - a < LEAST) {
			draw_rest(d, d->box.x + a, d->box.y + (int)(n->depth + 1) * ROW, end - a);
			return; /* the largest come first: what follows is smaller still */
		}
		draw_node(d, i, to);
		to += d->f.node[i].bytes;
	}
}

/* The largest call sites as words, for where the boxes are too narrow; the y below. */
static int leaves(struct drawing *d, int y)
{
	uint32_t leaf[LEAVES + 1];
	size_t n = vc_flame_leaves(&d->f, leaf, LEAVES);
	int right = d->page.w - VC_MARGIN;
	char a[VC_FORMAT], text[200], many[VC_FORMAT];

	vc_svg_say(&d->page.svg, "Largest call sites", VC_MARGIN, y, VC_T_HEAD, VC_START, "fg", 0);
	vc_svg_put(&d->page.svg, "<g>\n");
	for (size_t i = 0; i < n; i++) {
		const struct vc_flame_node *v = &d->f.node[leaf[i]];

		y += 240;
		vc_svg_rect(&d->page.svg, vc_theme_slot(vc_slot_most(v->of_slot)),
			    (struct vc_box){ VC_MARGIN, y - 110, 130, 130 }, 25);
		snprintf(text, sizeof(text), "%s%s%s", v->name, v->blocks > 1 ? " \xC3\x97" : "",
			 v->blocks > 1 ? vc_format_count(v->blocks, many) : "");
		vc_svg_say(&d->page.svg, text, VC_MARGIN + 220, y, VC_T_BODY, VC_START, "fg",
			   right - VC_MARGIN - 1500);
		vc_svg_say(&d->page.svg, vc_format_in(v->bytes, d->f.node[0].bytes, a), right, y,
			   VC_T_STRONG, VC_END, "fg", 0);
	}
	vc_svg_put(&d->page.svg, "</g>\n");
	return y + 150;
}

static int legend(struct drawing *d, int y)
{
	struct vc_key key[VC_SLOTS + 1];
	size_t n = 0;

	for (int s = 0; s < VC_SLOTS; s++)
		if (d->f.node[0].of_slot[s])
			key[n++] = (struct vc_key){ vc_theme_pale((enum vc_slot)s),
				vc_classes_name(&d->classes, (enum vc_slot)s), VC_KEY_BOX };
	key[n++] = (struct vc_key){ "hx segbox", "smaller ones", VC_KEY_BOX };
	return vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y,
							 d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[400], text[160], a[VC_FORMAT];
	bool by_time = d->r->curve.n && vc_wants_time(cfg, d->r);

	vc_answer_text(d->r, by_time, title, sizeof(title));
	snprintf(text, sizeof(text), "Who holds it at %s, width is bytes",
		 vc_moment_text(d->r, by_time, d->f.event, a));
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_header(&d->page, title, text, d->r);

	y = legend(d, vc_page_facts(&d->page, y, d->r)) + 60;
	d->box = (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 };
	draw_node(d, 0, 0);
	vc_svg_put(&d->page.svg, "</g>\n");
	y = leaves(d, y + (int)(d->f.depth + 1) * ROW + 330);
	vc_conf_text(d->r, text, sizeof(text));
	vc_page_footer(&d->page, y + 100, text, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 430 : 100), out, err);
}

static int flame_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing d = { .r = runs };
	int rc;

	if (!n)
		return vc_page_notice(cfg, "Who holds the memory", "no run was given", out, err);
	rc = vc_classes_lend(&d.classes, cfg->classes, runs, err);
	if (!rc)
		rc = vc_flame_init(&d.f, &d.classes, err);
	if (!rc)
		rc = d.f.n && d.f.node[0].bytes ?
			     draw(&d, cfg, out, err) :
			     vc_page_notice(cfg, "Who holds the memory",
					    "no block with a size was ever allocated", out, err);
	vc_flame_fini(&d.f);
	vc_classes_fini(&d.classes);
	return rc;
}

const struct vc_sink_type vc_sink_flame = {
	.name = "flame", .extension = "svg",
	.summary = "who holds the memory at the peak or the failure: kind, module, call sites",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "peak", "oom", "moment", "steps"),
	.lives_limit = 2000000, .write = flame_write,
};
