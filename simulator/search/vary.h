/* SPDX-License-Identifier: Apache-2.0 */
/* vary.h - "batch=1..64" and "conf=a|b": what a sweep varies, and the combinations; or one run a
 * line. */
#pragma once

#include "common/opt.h"

enum { VC_VARY_KEYS = 8, VC_VARY_NAME = 64, VC_VARY_MOST = 256 };

struct vc_vary_key {
	char name[VC_VARY_NAME];
	bool option;     /* conf, gpu, ... ; otherwise a recorded parameter, with numbers */
	char **value;    /* n of them, as texts */
	size_t n;
};

struct vc_vary_id { uint64_t id; size_t run; };

struct vc_vary {
	struct vc_vary_key key[VC_VARY_KEYS];
	size_t keys;
	size_t runs;
	bool listed;             /* run i has value i of each key; otherwise all combinations */
	uint64_t *id;            /* listed: by run */
	struct vc_vary_id *order; /* listed: by id */
	char **broken;           /* listed, by run: why its line cannot be read, or NULL */
};

/* Numbers: "8,16,32", "1..64", "8..64+8", "1..64*2". Settings strings, which have commas of their
 * own, are set apart by '|'; with no '|' a comma does it where the next word starts a setting that
 * occurred before. Errors: VC_EUSAGE, VC_ENOMEM. */
int vc_vary_add(struct vc_vary *v, const char *text, struct vc_error *err);
/* These values as they are, VC_VARY_MOST at most. */
int vc_vary_words(struct vc_vary *v, const char *name, const struct vc_list *values,
		  struct vc_error *err);
/* "NAME=A,B" of --option: the words between commas; and where `ranges`, "NAME=1..8" as above. */
int vc_vary_split(struct vc_vary *v, const char *text, const char *option, bool ranges,
		  struct vc_error *err);
/* A file, or "-", with one run a line, {"id":7,"batch":8,"gpu":"t4"}, and the same keys in each.
 * Without "id" a run is known by the number of its line, from 0. No lines are no runs. A line that
 * cannot be read is a run that is broken, unless there is no other. Errors: VC_EUSAGE, VC_EFORMAT,
 * VC_EIO, VC_ENOMEM. */
int vc_vary_scenarios(struct vc_vary *v, const char *path, struct vc_error *err);
void vc_vary_fini(struct vc_vary *v);

/* What run i is known by, and the run that is known by id; v->runs: there is none. */
uint64_t vc_vary_id(const struct vc_vary *v, size_t i);
size_t vc_vary_find(const struct vc_vary *v, uint64_t id);

/* Value of key k in run i; of combinations the last key changes fastest. */
const char *vc_vary_value(const struct vc_vary *v, size_t i, size_t k);

/* "batch=8 conf=..." of run i into buf. */
const char *vc_vary_text(const struct vc_vary *v, size_t i, char *buf, size_t n);
