/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.h - reads Python pickles as data: protocols 2 to 5, never executing anything.
 *
 * A builder receives containers and items as they come; the reader itself keeps only the pickle
 * machine's stack and memo, so a builder that folds items into something small makes huge files
 * cheap. Whatever would need Python to run (GLOBAL, REDUCE, BUILD, persistent ids, ...) is refused
 * with a sentence that names it. */
#pragma once

#include "common/error.h"
#include "common/io.h"

enum vc_pickle_type {
	VC_PV_NONE, VC_PV_BOOL, VC_PV_INT,
	VC_PV_BIG,   /* an integer beyond 64 bits with sign; .i is its sign */
	VC_PV_REAL,
	VC_PV_TEXT,  /* str and bytes; .ref is what the builder's text() answered */
	VC_PV_DICT,  /* .ref from dict() */
	VC_PV_LIST,  /* lists, tuples, sets; .ref from list() */
};

struct vc_pickle_value {
	uint32_t type;
	uint32_t ref;
	union { int64_t i; double real; };
};

/* Every slot but the last is needed. Those that answer int: 0, or negative with *err filled. */
struct vc_pickle_builder {
	void *arg;
	int (*text)(void *arg, const char *s, size_t n, uint32_t *ref, struct vc_error *err);
	const char *(*name)(void *arg, uint32_t ref); /* the text behind a ref, for messages */
	int (*dict)(void *arg, uint32_t *ref, struct vc_error *err);
	int (*list)(void *arg, uint32_t *ref, struct vc_error *err);
	int (*set)(void *arg, uint32_t dict, const struct vc_pickle_value *kv, size_t n,
		   struct vc_error *err); /* n pairs of key and value */
	int (*append)(void *arg, uint32_t list, const struct vc_pickle_value *v, size_t n,
		      struct vc_error *err); /* n > 0 items at once */
	/* A new list, to hold what `model` was given by append once. 1: done; 0: the list is to be
	 * made and filled as always. */
	int (*again)(void *arg, uint32_t model, uint32_t *list, struct vc_error *err);
};

/* Read one pickle up to its STOP; *root is what it left. The input may go on behind it. */
int vc_pickle_read(struct vc_input *in, const struct vc_pickle_builder *b,
		   struct vc_pickle_value *root, struct vc_error *err);

/* The same from JSON, for what json.dump() wrote in the place of pickle.dump(). */
int vc_pickle_from_json(struct vc_input *in, const struct vc_pickle_builder *b,
			struct vc_pickle_value *root, struct vc_error *err);
