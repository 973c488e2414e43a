/* SPDX-License-Identifier: Apache-2.0 */
/* param.h - a typed table of parameters: the same rows parse, print and document. */
#pragma once

#include "common/error.h"

enum vc_param_type {
	VC_P_BOOL, /* bool;      true false 1 0 yes no on off; a bare name means true */
	VC_P_UINT, /* uint64_t */
	VC_P_SIZE, /* uint64_t, bytes; see vc_parse_size */
	VC_P_REAL, /* double */
	VC_P_TEXT, /* char[VC_PARAM_TEXT], copied */
	VC_P_ENUM, /* uint64_t, index into `choices` */
	VC_P_ALIAS, /* no field: another name of the parameter in `choices` */
};

#define VC_PARAM_TEXT 256

struct vc_param {
	const char *name;
	enum vc_param_type type;
	size_t offset;          /* of the field in the owner's config struct */
	const char *fallback;   /* default, as the user would have typed it */
	const char *help;       /* one line, no full stop */
	const char *choices;    /* VC_P_ENUM: "first,best,worst"; VC_P_ALIAS: what it stands for */
};

/* A name from before, which stays accepted: a row of its own behind the one it stands for. */
#define VC_PARAM_ALIAS(old, name) \
	{ old, VC_P_ALIAS, 0, NULL, "another name of " name, name }
#define VC_PARAM_END { NULL, VC_P_BOOL, 0, NULL, NULL, NULL }

/* The row called `name`, or the row that this is an alias of; NULL: there is none. */
const struct vc_param *vc_param_find(const struct vc_param *table, const char *name);

/* Fill `cfg` with the defaults, then with "name=value,name=value" (NULL: defaults only). */
int vc_params_parse(const struct vc_param *table, void *cfg, const char *text,
		    struct vc_error *err);
/* The same; bit i of *given says that `text` names row i. */
int vc_params_read(const struct vc_param *table, void *cfg, const char *text, uint64_t *given,
		   struct vc_error *err);

/* More bytes than any machine has. A few sizes below it can be added without a check. */
#define VC_SIZE_MOST (UINT64_C(1) << 60)
/* Up to here a double tells whole numbers apart. */
#define VC_AMOUNT_MOST (UINT64_C(1) << 53)

/* These read what a user typed; each refuses with a sentence that names the text.
 * "8G 8GiB 96MiB 512K 1073741824 1.5GB": K M G T and KiB.. are powers of 1024, KB MB GB TB of 1000.
 * No sign, no fraction of a byte, at most VC_SIZE_MOST. */
int vc_parse_size(const char *text, uint64_t *bytes, struct vc_error *err);
int vc_parse_uint(const char *text, uint64_t *value, struct vc_error *err); /* to INT64_MAX */
int vc_parse_real(const char *text, double *value, struct vc_error *err); /* decimal, finite */
/* The same, and 7B, 350M, 1.8T: powers of 1,000. */
int vc_parse_count(const char *text, double *value, struct vc_error *err);
/* "90%", or a size; the other of the two is 0. */
int vc_parse_share(const char *text, double *percent, uint64_t *bytes, struct vc_error *err);
/* A number of samples, tokens, layers, ...: above zero, at most VC_AMOUNT_MOST. */
int vc_parse_amount(const char *text, double *value, struct vc_error *err);

/* Bytes that were computed: 0 and VC_SIZE_MOST where they lie beyond. */
uint64_t vc_size_of(double bytes);

/* The name nearest to `word` among `n` names, or NULL when none is near ("did you mean"). */
const char *vc_nearest(const char *word, const char *const *names, size_t n);
