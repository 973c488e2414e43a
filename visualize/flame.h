/* SPDX-License-Identifier: Apache-2.0 */
/* flame.h - live bytes as a tree: what they are for, the module, and the frames of the program down
 * to the call site. Frames of libraries are folded, and what the same line made is one. */
#pragma once

#include "visualize/classify.h"

struct vc_flame_node {
	char name[120];
	uint64_t bytes, blocks;
	uint64_t of_slot[VC_SLOTS];
	uint32_t child, next; /* first child and next sibling, largest first; 0: none */
	uint32_t depth, parent;
};
struct vc_flame {
	struct vc_flame_node *node; size_t n, cap; /* node[0] is everything */
	uint64_t event;
	bool at_oom;
	uint32_t depth;      /* of the deepest */
};

/* n = 0: nothing is live. */
int vc_flame_init(struct vc_flame *f, const struct vc_classes *c, struct vc_error *err);
void vc_flame_fini(struct vc_flame *f);
/* The largest nodes without children, at most `most`; returns how many. */
size_t vc_flame_leaves(const struct vc_flame *f, uint32_t *leaf, size_t most);
