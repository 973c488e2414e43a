/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - places for boxes and arrows, from Graphviz' dot, linked in. Texts are ours: boxes
 * come with their size, so no font of the machine changes a layout. */
#ifndef VC_GRAPH_H
#define VC_GRAPH_H

#include <stddef.h>

#include "visualize/svg.h"

struct vc_graph_node { int w, h; int x, y; /* centre, filled by the layout */ };
struct vc_graph_edge {
	size_t from, to;
	unsigned weight;       /* how much the layout wants it short and straight */
	int *point; size_t points; /* filled: x, y pairs; one start and triples of a
	                            * cubic curve; it ends ten pixels short of the node */
};
struct vc_graph {
	struct vc_graph_node *node; size_t nodes;
	struct vc_graph_edge *edge; size_t edges;
	int w, h;              /* filled; all lengths in tenths of a pixel, y downwards */
};

/* Left to right, in the order given. VC_ENOSUP when built without Graphviz. Not thread-safe: one
 * layout at a time in a process. */
int vc_graph_layout(struct vc_graph *g, struct vc_error *err);
void vc_graph_fini(struct vc_graph *g); /* node, edge and the points */

#endif
