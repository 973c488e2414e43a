/* SPDX-License-Identifier: Apache-2.0 */
/* sgl_radix.h - SGLang's radix cache: beginnings of requests as a tree of runs of pages, of which
 * the leaf that was used longest ago goes first.
 *
 * Source: sglang/srt/mem_cache/unified_cache/unified_tree_core.py and components/full.py of 0.5.23,
 * for models whose layers all keep the whole context. */
#pragma once

#include "common/error.h"
#include "common/map.h"

struct vc_sgl_node {
	uint64_t first;    /* its pages, in vc_sgl_radix.page */
	uint64_t pages;
	uint32_t parent;
	uint32_t children; /* of a spare one: the next spare */
	uint32_t locks;
	double used;       /* when */
};

struct vc_sgl_radix {
	struct vc_sgl_node *node;  /* 0 is the root */
	size_t nodes, cap;
	uint32_t spare;            /* 0: none */
	uint64_t *page;            /* what the pages of the nodes hold */
	size_t pages, page_cap;
	struct vc_map child;       /* of a node and a first page */
	uint64_t held, locked;     /* pages in the tree; of them in use */
	double clock;
};

int  vc_sgl_radix_init(struct vc_sgl_radix *t, struct vc_error *err);
void vc_sgl_radix_fini(struct vc_sgl_radix *t);
/* How many of n pages the tree knows from the beginning, and the node where that ends. A look is a
 * use. VC_ENOMEM as UINT64_MAX, also of an insertion. */
uint64_t vc_sgl_match(struct vc_sgl_radix *t, const uint64_t *page, uint64_t n, uint32_t *node);
/* All n are known from now on; how many were before. */
uint64_t vc_sgl_insert(struct vc_sgl_radix *t, const uint64_t *page, uint64_t n, uint32_t *node);
/* A request uses the path to the node. */
void vc_sgl_lock(struct vc_sgl_radix *t, uint32_t node);
void vc_sgl_unlock(struct vc_sgl_radix *t, uint32_t node);
/* Forget a leaf; its pages, 0: all are in use. */
uint64_t vc_sgl_evict(struct vc_sgl_radix *t);
