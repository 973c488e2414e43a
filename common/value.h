/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - a JSON document of moderate size, read as a whole. */
#pragma once

#include "common/json.h"

struct vc_value {
	int kind; /* VC_J_OBJECT, VC_J_ARRAY, VC_J_TEXT, VC_J_NUMBER, VC_J_TRUE, VC_J_FALSE or
		   * VC_J_NULL */
	char *key;                     /* of a member, else NULL */
	char *text;                    /* of a text, and of a number as it was written; else "" */
	double real;
	int64_t integer;
	bool is_integer;
	struct vc_value *first, *next; /* what is in it; what comes behind it */
};

/* The document, and nothing may follow it. NULL: *err says why. */
struct vc_value *vc_value_read(struct vc_input *in, struct vc_error *err);
struct vc_value *vc_value_parse(const char *text, size_t n, struct vc_error *err);
struct vc_value *vc_value_load(const char *path, struct vc_error *err);
void vc_value_free(struct vc_value *v); /* NULL is fine */

/* The member of that name, or NULL; also where v is no object, or NULL. */
const struct vc_value *vc_value_get(const struct vc_value *v, const char *key);
/* Is it a number without a fraction, not below zero? */
bool vc_value_count(const struct vc_value *v, uint64_t *to);
/* A member that is a text, else NULL. */
const char *vc_value_text(const struct vc_value *v, const char *key);
