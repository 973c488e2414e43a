/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - reads JSON of any size token by token, and writes JSON strings. */
#pragma once

#include "common/error.h"
#include "common/io.h"

enum vc_json_token {
	VC_J_END = 0,                       /* the document is complete, nothing follows */
	VC_J_OBJECT, VC_J_OBJECT_END, VC_J_ARRAY, VC_J_ARRAY_END,
	VC_J_KEY, VC_J_TEXT,                /* .text, .len */
	VC_J_NUMBER,                        /* .real, and .integer when .is_integer */
	VC_J_TRUE, VC_J_FALSE, VC_J_NULL,
};

/* Memory does not grow with the document: one token and a stack of 512 levels. */
struct vc_json {
	const char *text;
	size_t len; /* of the last key or text, NUL-terminated, UTF-8; of a number
		     * as it was written; until next */
	double real;
	int64_t integer;
	bool is_integer;                    /* written without point or exponent, and fits */
	struct vc_json_state *state;
};

/* Reads from `in` (lent). NaN and Infinity are taken for numbers, as Python's json writes them. */
int vc_json_open(struct vc_json *j, struct vc_input *in, struct vc_error *err);
void vc_json_close(struct vc_json *j);
/* enum vc_json_token, or negative with *err filled. */
int vc_json_next(struct vc_json *j, struct vc_error *err);
/* Go past the value whose first token `token` was just read (nothing to do for scalars). */
int vc_json_skip(struct vc_json *j, int token, struct vc_error *err);

/* "text" with quotes and escapes; what is not UTF-8 becomes U+FFFD. */
void vc_json_quote(struct vc_output *o, const char *text, size_t len);
