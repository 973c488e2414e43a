/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_parts.h - shared by snapshot_tree.c (folds while reading) and snapshot_whole.c (the
 * rest). */
#pragma once

#include "common/pickle.h"
#include "simulator/sources/snapshot_tree.h"
#include "simulator/sources/snapshot_words.h"

#define PLAUSIBLE ((uint64_t)1 << 50) /* a PiB: more than any device has */

/* TAKEN: a list of blocks or events that one segment or device has; nothing may have it again. */
enum kind { DICT_NEW, DICT, FRAME, EVENT, LIST_NEW, LIST, SITE, EVENTS, NOTE, TAKEN };

enum { DEEPEST = 32 }; /* containers in each other; snapshots have seven */

struct object { uint32_t at; uint8_t kind, depth; bool whole; /* a list: filled by one append */ };
struct frame { uint32_t name, file, line; };
struct seen { uint32_t parent, ref, node; };
#define SEEN_BITS 14
struct vec { struct vc_pickle_value *at; uint32_t n, cap; };

struct tree {
	struct snapshot *s;
	struct vc_meta *meta;
	struct vc_error *err;
	struct object *object; size_t objects, object_cap;
	struct frame *frame; size_t frames, frame_cap;
	struct vec *vec; size_t vecs, vec_cap;
	uint32_t *spare; size_t spares, spare_cap;  /* vectors to use again */
	struct snapshot_list *list; size_t lists, list_cap;
	size_t note_cap;
	uint32_t *last, *node; /* frames and nodes of the stack seen last, outermost first */
	size_t depth, last_cap, node_cap;
	uint32_t *made_of; size_t made; /* by node: its frame object + 1 */
	struct seen *seen;      /* which node a frame object became below another, by their hash */
	uint32_t tag;                               /* user metadata of the event before */
};

/* The children of a dictionary (key, value, key, ...) or list, or NULL when v is none or empty. */
const struct vec *snapshot_items(const struct tree *t, const struct vc_pickle_value *v,
				 uint32_t type);
const struct vc_pickle_value *snapshot_lookup(const struct vec *dict,
					      uint32_t key); /* dict may be NULL */
/* A size, address or time; `what` names it in the refusal of anything negative or too large. */
int snapshot_number(struct tree *t, const struct vc_pickle_value *v, const char *what,
		    uint64_t *to);
int snapshot_site(struct tree *t, const struct vc_pickle_value *v,
		  uint32_t *site); /* a list of frames */
uint64_t snapshot_pool(const struct tree *t,
		       const struct vc_pickle_value *v); /* (a, b), else 0 */
/* How a pickle becomes this tree. */
void snapshot_builder(struct tree *t, struct vc_pickle_builder *b);
