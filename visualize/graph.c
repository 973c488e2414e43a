/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - places for boxes and arrows, from Graphviz' dot, linked in. */
#include "visualize/graph.h"
#include "common/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vc_graph_fini(struct vc_graph *g)
{
	for (size_t i = 0; i < g->edges; i++)
		free(g->edge[i].point);
	VC_FREE(g->node, g->edge);
	*g = (struct vc_graph){ 0 };
}

#ifndef HAVE_GRAPHVIZ

int vc_graph_layout(struct vc_graph *g, struct vc_error *err)
{
	(void)g;
	return vc_fail(err, VC_ENOSUP, "this vramcast was built without Graphviz: write the "
		       "graph as .dot, or install libgraphviz-dev and build again");
}

#else

#include <gvc.h>

extern gvplugin_library_t gvplugin_dot_layout_LTX_library;

/* A library must not write to standard error; what dot complains about shows in its return value.
 */
static int be_quiet(char *message)
{
	(void)message;
	return 0;
}

/* One point is one pixel here; dot thinks in inches of 72 points. */
static void set_inches(Agnode_t *n, const char *name, int tenths)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%d.%04d", tenths / 720, tenths % 720 * 10000 / 720);
	agsafeset(n, (char *)name, buf, "");
}

static Agraph_t *build(const struct vc_graph *g)
{
	Agraph_t *a = agopen("owners", Agdirected, NULL);
	char name[32];

	if (!a)
		return NULL;
	agattr(a, AGRAPH, "rankdir", "LR");
	agattr(a, AGRAPH, "nodesep", "0.16");
	agattr(a, AGRAPH, "ranksep", "0.75");
	agattr(a, AGNODE, "shape", "box");
	agattr(a, AGNODE, "fixedsize", "true");
	agattr(a, AGNODE, "label", "");
	agattr(a, AGEDGE, "weight", "1");
	for (size_t i = 0; i < g->nodes; i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		Agnode_t *n = agnode(a, name, 1);
		set_inches(n, "width", g->node[i].w);
		set_inches(n, "height", g->node[i].h);
	}
	for (size_t i = 0; i < g->edges; i++) {
		snprintf(name, sizeof(name), "n%zu", g->edge[i].from);
		Agnode_t *from = agnode(a, name, 0);
		snprintf(name, sizeof(name), "n%zu", g->edge[i].to);
		Agnode_t *to = agnode(a, name, 0);
		snprintf(name, sizeof(name), "e%zu", i);
		Agedge_t *e = from && to ? agedge(a, from, to, name, 1) : NULL;
		snprintf(name, sizeof(name), "%u", g->edge[i].weight);
		if (e)
			agsafeset(e, "weight", name, "1");
	}
	return a;
}

/* "12.34" as tenths, nearest; *p moves behind it. */
static int tenths(const char **p)
{
	char *end;
	double v = strtod(*p, &end) * 10;

	*p = end;
	return (int)(v < 0 ? v - 0.5 : v + 0.5);
}

/* "e,x,y x,y x,y ..." of an edge; y runs upwards there. */
static int read_spline(struct vc_graph_edge *e, const char *pos, int height)
{
	size_t n = 1;

	for (const char *p = pos; *p; p++)
		n += *p == ' ';
	e->point = malloc(n * 2 * sizeof(*e->point));
	if (!e->point)
		return -1;
	for (const char *p = pos; *p;) {
		bool tip = !strncmp(p, "e,", 2);
		if (tip || !strncmp(p, "s,", 2))
			p += 2;
		const char *start = p;
		int x = tenths(&p);
		p += *p == ',';
		int y = height - tenths(&p);
		if (p == start)
			break;
		if (!tip) { /* the tip of the arrow lies on the straight line from the last point */
			e->point[2 * e->points] = x;
			e->point[2 * e->points++ + 1] = y;
		}
		while (*p == ' ')
			p++;
	}
	return 0;
}

static int read_layout(struct vc_graph *g, Agraph_t *a)
{
	char name[32], *pos;
	const char *p = agget(a, "bb");

	p = p && strchr(p, ',') ? strchr(strchr(p, ',') + 1, ',') : NULL;
	if (!p)
		return -1;
	p++;
	g->w = tenths(&p);
	p += *p == ',';
	g->h = tenths(&p);
	for (size_t i = 0; i < g->nodes; i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		Agnode_t *n = agnode(a, name, 0);
		p = n ? agget(n, "pos") : NULL;
		if (!p)
			return -1;
		g->node[i].x = tenths(&p);
		p += *p == ',';
		g->node[i].y = g->h - tenths(&p);
	}
	for (size_t i = 0; i < g->edges; i++) {
		char from[32], to[32];
		snprintf(from, sizeof(from), "n%zu", g->edge[i].from);
		snprintf(to, sizeof(to), "n%zu", g->edge[i].to);
		snprintf(name, sizeof(name), "e%zu", i);
		Agedge_t *e = agedge(a, agnode(a, from, 0), agnode(a, to, 0), name, 0);
		pos = e ? agget(e, "pos") : NULL;
		if (pos && read_spline(&g->edge[i], pos, g->h))
			return -1;
	}
	return 0;
}

int vc_graph_layout(struct vc_graph *g, struct vc_error *err)
{
	const lt_symlist_t builtin[] = {
		{ "gvplugin_dot_layout_LTX_library", &gvplugin_dot_layout_LTX_library }, { 0, 0 }
	};
	agusererrf before = agseterrf(be_quiet);
	GVC_t *gvc = gvContextPlugins(builtin, 0);
	Agraph_t *a = gvc ? build(g) : NULL;
	int rc = -1;

	if (a && !gvLayout(gvc, a, "dot")) {
		attach_attrs(a);
		rc = read_layout(g, a);
		gvFreeLayout(gvc, a);
	}
	if (a)
		agclose(a);
	if (gvc)
		gvFreeContext(gvc);
	agseterrf(before);
	return rc ? vc_fail(err, VC_EINTERNAL, "Graphviz could not lay out the graph of owners") :
		    VC_OK;
}

#endif
