/* SPDX-License-Identifier: Apache-2.0 */
/* ownergraph.h - who holds the memory, as a graph: phase, caller, call site. */
#pragma once

#include "visualize/classify.h"

struct vc_own_node {
	char name[120];
	int level;             /* 0 all, 1 phase, 2 caller, 3 call site */
	uint64_t bytes, blocks;
	uint64_t of_slot[VC_SLOTS];
	uint64_t key;          /* private */
	uint32_t next;         /* private: of the same hash */
};
struct vc_own_edge { uint32_t from, to; uint64_t bytes; };

struct vc_own_graph {
	struct vc_own_node *node;
	size_t nodes, node_cap; /* node[0] is everything; by level, largest first */
	struct vc_own_edge *edge; size_t edges, edge_cap;
	uint64_t bytes, event, time_ns;
	bool at_oom;
};

/* Empty when nothing is known. */
int vc_own_graph_init(struct vc_own_graph *g, const struct vc_classes *c, struct vc_error *err);
void vc_own_graph_fini(struct vc_own_graph *g);
/* What a kind is called where it is a phase: "forward" for activations. */
const char *vc_own_phase(const struct vc_classes *c, enum vc_slot slot);
/* Of a name and of what else tells it from others. */
uint64_t vc_own_hash(uint64_t seed, const char *name);
/* "layers.12.attn" and "layers.3.attn" are one owner: numbers between dots become a star. */
void vc_own_collapse(const char *from, char *to, size_t cap);
