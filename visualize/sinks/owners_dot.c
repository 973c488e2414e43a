/* SPDX-License-Identifier: Apache-2.0 */
/* owners_dot.c - who holds the memory, the whole graph, for Graphviz and its friends. */

#include "common/io.h"
#include "common/utf8.h"
#include "common/format.h"
#include "visualize/metric.h"
#include "visualize/ownergraph.h"
#include "visualize/sink.h"

/* Inside a quoted label: backslashes are escapes to Graphviz, and &amp; an entity. */
static void put_quoted(struct vc_output *out, const char *text)
{
	const char *end = text + strlen(text);

	while (text < end) {
		char utf8[4];
		uint32_t c = vc_utf8_next(&text, end);
		if (c == '"' || c == '\\')
			vc_output_text(out, "\\");
		if (c == '&')
			vc_output_text(out, "&amp;");
		else
			vc_output_write(out, utf8, vc_utf8_put(c == '\n' ? ' ' : c, utf8));
	}
}

static void put_graph(const struct vc_own_graph *g, struct vc_output *out)
{
	static const char *const fill[VC_SLOTS] = { "#EBE6F1", "#D9E8F5", "#D5F0E7",
						   "#FCEFD2", "#F6E3EE", "#E0F1FB",
						   "#E6E0EA", "#FBE3DA", "#ECEEF1" };
	char a[VC_FORMAT], b[VC_FORMAT];

	vc_output_text(out, "digraph owners {\n\trankdir=LR;\n\tnode [shape=box, "
		       "style=\"rounded,filled\", fontname=\"Helvetica\", margin=\"0.2,0.06\"];\n");
	for (size_t i = 0; i < g->nodes; i++) {
		const struct vc_own_node *n = &g->node[i];
		vc_output_printf(out, "\tn%zu [label=\"", i);
		put_quoted(out, n->name);
		vc_output_printf(out, "\\n%s  %s\", fillcolor=\"%s\"];\n",
				 vc_format_bytes(n->bytes, a),
				 vc_format_percent(n->bytes, g->bytes, b),
				 fill[vc_slot_most(n->of_slot)]);
	}
	for (size_t i = 0; i < g->edges; i++)
		vc_output_printf(out, "\tn%u -> n%u [label=\"%s\", bytes=%llu];\n", g->edge[i].from,
				 g->edge[i].to, vc_format_bytes(g->edge[i].bytes, a),
				 (unsigned long long)g->edge[i].bytes);
	vc_output_text(out, "}\n");
}

static int owners_dot_write(const struct vc_result *runs, size_t n, const void *config,
			    struct vc_output *out, struct vc_error *err)
{
	struct vc_own_graph g = { 0 };
	struct vc_classes c;
	int rc;

	if (!n) {
		put_graph(&g, out);
		return VC_OK;
	}
	VC_TRY(vc_classes_init(&c, runs, err));
	rc = vc_own_graph_init(&g, &c, err);
	if (!rc)
		put_graph(&g, out);
	vc_own_graph_fini(&g);
	vc_classes_fini(&c);
	return rc;
}

const struct vc_sink_type vc_sink_owners_dot = {
	.name = "owners_dot", .extension = "dot",
	.summary = "the whole graph of owners, for Graphviz",
	.observers = VC_READS("timeline", "lives", "peak", "oom"), .write = owners_dot_write,
};
