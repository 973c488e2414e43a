/* SPDX-License-Identifier: Apache-2.0 */
/* pickler.h - writes Python pickles of plain data: protocol 4, opcodes that every reader knows. */
#pragma once

#include "common/io.h"
#include "common/map.h"

struct vc_pickler {
	struct vc_output *out;
	uint32_t memos;          /* objects that can be named again */
	struct vc_word *word; size_t words, word_cap; /* texts written so far, each once */
	struct vc_map known;     /* hash of a text -> its word + 1 */
	bool nomem;
};

void vc_pickle_open(struct vc_pickler *p, struct vc_output *out);
bool vc_pickle_close(struct vc_pickler *p); /* ends the document; false: memory was short */

void vc_pickle_uint(struct vc_pickler *p, uint64_t v);
void vc_pickle_int(struct vc_pickler *p, int64_t v);
void vc_pickle_real(struct vc_pickler *p, double v);
void vc_pickle_bool(struct vc_pickler *p, bool v);
/* A text; the second time it is named, not written. */
void vc_pickle_word(struct vc_pickler *p, const char *text);
void vc_pickle_two(struct vc_pickler *p, uint64_t a, uint64_t b); /* a tuple */
void vc_pickle_list(struct vc_pickler *p);                        /* an empty list */

/* A dictionary: dict, mark, pairs (key, then value), setitems. At most 500 pairs. */
void vc_pickle_dict(struct vc_pickler *p);
void vc_pickle_mark(struct vc_pickler *p);
void vc_pickle_setitems(struct vc_pickler *p);
void vc_pickle_pair_uint(struct vc_pickler *p, const char *key, uint64_t v);
void vc_pickle_pair_text(struct vc_pickler *p, const char *key, const char *text);

/* Objects written once: memo() numbers the one just begun (never 0), again() writes a reference and
 * is true when *memo is one. */
uint32_t vc_pickle_memo(struct vc_pickler *p);
bool vc_pickle_again(struct vc_pickler *p, const uint32_t *memo);

/* A list of any length, in batches that every reader can take. */
struct vc_batch { struct vc_pickler *p; uint32_t memo, n; };
void vc_batch_begin(struct vc_batch *b, struct vc_pickler *p);
void vc_batch_item(struct vc_batch *b); /* after each item was written */
void vc_batch_end(struct vc_batch *b);
