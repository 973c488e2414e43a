/* SPDX-License-Identifier: Apache-2.0 */
/* owners.c - who holds the memory: phase, caller, call site, as a graph with the bytes as width. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "visualize/graph.h"
#include "visualize/ownergraph.h"
#include "visualize/scene.h"

enum { PAD = 130, THICK = 240 }; /* of an arrow that carries everything */

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_own_graph own;
	struct vc_graph graph;
	const struct vc_result *r;
};

static void node_text(const struct drawing *d, const struct vc_own_node *n, char *name, char *size,
		      size_t cap)
{
	char a[VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT];

	if (n->level)
		snprintf(name, cap, "%s", n->name);
	else
		snprintf(name, cap, "%s", d->own.at_oom ? "at the OOM" : "at the peak");
	snprintf(size, cap, "%s \xC2\xB7 %s", vc_format_bytes(n->bytes, a),
		 vc_format_percent(n->bytes, d->own.bytes, b));
	if (n->level == 3 && n->blocks > 1)
		snprintf(size + strlen(size), cap - strlen(size), " \xC2\xB7 \xC3\x97%s",
			 vc_format_count(n->blocks, c));
}

/* Boxes as wide as their text: the table of widths decides, not a font of this machine. */
static int measure(struct drawing *d, struct vc_error *err)
{
	struct vc_graph *g = &d->graph;

	g->node = calloc(d->own.nodes, sizeof(*g->node));
	g->edge = calloc(d->own.edges + 1, sizeof(*g->edge));
	VC_HAVE(g->node && g->edge, "the graph of owners", err);
	g->nodes = d->own.nodes;
	g->edges = d->own.edges;
	for (size_t i = 0; i < g->nodes; i++) {
		char name[160], size[160];
		const struct vc_own_node *n = &d->own.node[i];
		struct vc_label a = { .style = VC_T_STRONG, .max = 2400 },
				b = { .style = VC_T_SMALL };
		node_text(d, n, name, size, sizeof(name));
		int w = vc_svg_measure(&a, name).w, v = vc_svg_measure(&b, size).w;
		g->node[i].w = (w > v ? w : v) + 2 * PAD;
		g->node[i].h = 460;
	}
	for (size_t i = 0; i < g->edges; i++)
		g->edge[i] = (struct vc_graph_edge){ .from = d->own.edge[i].from,
			.to = d->own.edge[i].to,
			.weight = 1 + (unsigned)vc_muldiv(d->own.edge[i].bytes, 20,
							  d->own.bytes ? d->own.bytes : 1) };
	return vc_graph_layout(g, err);
}

static void arrow(struct drawing *d, const struct vc_graph_edge *e, uint64_t bytes, int x, int y)
{
	struct vc_svg *s = &d->page.svg;
	int width = (int)vc_muldiv(bytes, THICK, d->own.bytes ? d->own.bytes : 1);
	char a[VC_FORMAT];

	if (e->points < 4)
		return;
	vc_svg_put(s,
		   "<path class=\"edge\" marker-end=\"url(#tp)\" stroke-width=\"%c\" d=\"M%c %cC",
		   width > 3 ? width : 3, x + e->point[0], y + e->point[1]);
	for (size_t i = 1; i < e->points; i++)
		vc_svg_put(s, "%c %c ", x + e->point[2 * i], y + e->point[2 * i + 1]);
	vc_svg_put(s, "\"><title>%s</title></path>\n", vc_format_bytes(bytes, a));
	s->titles++;
	s->elements++;
}

static void box(struct drawing *d, size_t i, int x, int y)
{
	struct vc_svg *s = &d->page.svg;
	const struct vc_own_node *n = &d->own.node[i];
	const struct vc_graph_node *g = &d->graph.node[i];
	char name[160], size[160];
	struct vc_box b = { x + g->x - g->w / 2, y + g->y - g->h / 2, g->w, g->h };

	node_text(d, n, name, size, sizeof(name));
	vc_svg_put(s, "<g><title>%e: %e</title>", name, size);
	s->titles++;
	vc_svg_rect(s, n->level ? vc_theme_pale(vc_own_slot(n)) : "card rim", b, 70);
	vc_svg_say(s, name, b.x + b.w / 2, b.y + 195, VC_T_STRONG, VC_MIDDLE, "fg", b.w - PAD);
	vc_svg_say(s, size, b.x + b.w / 2, b.y + 365, VC_T_SMALL, VC_MIDDLE, "fg", b.w - PAD);
	vc_svg_put(s, "</g>\n");
}

/* The call site with the most bytes. */
static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	const struct vc_own_node *most = NULL;
	char a[2 * VC_FORMAT];

	for (size_t i = 0; i < d->own.nodes; i++)
		if (d->own.node[i].level == 3 && (!most || d->own.node[i].bytes > most->bytes))
			most = &d->own.node[i];
	snprintf(buf, cap, "%.100s holds most at the %s: %s", most ? most->name : "nobody",
		 d->own.at_oom ? "OOM" : "peak",
		 vc_format_of(most ? most->bytes : 0, d->own.bytes, a));
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], words[800], text[640], a[VC_FORMAT], b[VC_FORMAT];

	title_text(d, title, sizeof(title));
	vc_place_text(d->r, text, sizeof(text));
	snprintf(words, sizeof(words), "in use at event %s, an arrow as wide as the bytes behind "
		 "it \xC2\xB7 %s", vc_format_count(d->own.event, b), text);
	vc_page_begin(&d->page, cfg, title, words);
	/* A graph wider than the page is shown smaller, not cut. */
	int need = d->graph.w + 2 * VC_MARGIN;
	d->page.shown = d->page.w;
	if (need > d->page.w)
		d->page.w = need;
	int y = vc_page_header(&d->page, title, words, d->r);

	y = vc_page_facts(&d->page, y, d->r) + 150;
	int x = (d->page.w - d->graph.w) / 2;
	for (size_t i = 0; i < d->graph.edges; i++)
		arrow(d, &d->graph.edge[i], d->own.edge[i].bytes, x, y);
	vc_svg_put(&d->page.svg, "<g>\n");
	for (size_t i = 0; i < d->graph.nodes; i++)
		box(d, i, x, y);
	vc_svg_put(&d->page.svg, "</g>\n");
	y += d->graph.h + 300;
	vc_run_text(d->r, words, sizeof(words));
	if (d->own.dropped)
		snprintf(text, sizeof(text), "%s smaller call sites, %s, not drawn \xC2\xB7 "
			 "vramcast " VC_VERSION, vc_format_count(d->own.dropped, a),
			 vc_format_bytes(d->own.dropped_bytes, b));
	else
		snprintf(text, sizeof(text), "vramcast " VC_VERSION);
	vc_page_footer(&d->page, y, words, text);
	return vc_page_end(&d->page, y + (cfg->footer ? 350 : 0), out, err);
}

static int owners_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	const struct vc_picture *cfg = vc_picture_config(config, &fallback);
	struct drawing d = { .r = runs };

	if (!n || (!runs->lives.n && !runs->peak.n && !runs->last.n))
		return vc_page_notice(cfg, "Who holds the memory", !n ? "no run was given" :
				      "the trace has no block that was ever allocated", out, err);
	int rc = vc_classes_init(&d.classes, runs, err);
	if (!rc)
		rc = vc_own_graph_init(&d.own, &d.classes, VC_OWN_NODES, err);
	if (!rc && !d.own.nodes) {
		vc_classes_fini(&d.classes);
		return vc_page_notice(cfg, "Who holds the memory",
				      "nothing is in use at the peak", out, err);
	}
	if (!rc)
		rc = measure(&d, err);
	if (!rc)
		rc = draw(&d, cfg, out, err);
	vc_graph_fini(&d.graph);
	vc_own_graph_fini(&d.own);
	vc_classes_fini(&d.classes);
	return rc;
}

static const char *const reads[] = { "timeline", "lives", "peak", "oom", "moment", NULL };

const struct vc_sink_type vc_sink_owners = {
	.name = "owners", .extension = "svg",
	.summary = "who holds the memory at the peak: phase, caller, call site",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture), .observers = reads,
	.write = owners_write,
};
