/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_graph.h - descriptors of the graph interface, as the program made them. */
#pragma once

#include "nullgpu/cudnn_workspace.h"

struct vc_cudnn_value {
	int name, type;
	int64_t count;
	size_t bytes;
	struct vc_cudnn_value *next;
	char value[];
};

/* The list that a configuration came from, and what its plans need. */
struct vc_cudnn_among {
	uint64_t list;
	int64_t least, first, most;
};

struct vc_cudnn_node {
	int type;
	int users;          /* its owner and the attributes that point at it */
	struct vc_cudnn_plan plan; /* of an engine configuration, an engine or a plan */
	int64_t engine;     /* 0 = the preferred one */
	struct vc_cudnn_among among;
	struct vc_null_product work; /* what its modelled duration stands for */
	struct vc_cudnn_value *attributes; /* the newest first */
};

/* The i-th descriptor that an attribute points at. */
static inline struct vc_cudnn_node *vc_cudnn_linked(const struct vc_cudnn_value *a,
							  int64_t i)
{
	struct vc_cudnn_node *to;
	memcpy(&to, a->value + (size_t)i * sizeof to, sizeof to);
	return to;
}

/* Writes the graph, and everything it refers to, in the form of plans.h. */
void vc_cudnn_graph_put(const struct vc_cudnn_node *graph, struct vc_wire *w);
