/* SPDX-License-Identifier: Apache-2.0 */
/* change_hook.h - python/change_hook.py in front of a user's program, which knows nothing of it. */
#pragma once

#include "common/error.h"

struct vc_hook {
	const char *folder;    /* it lies there, and says there what it did */
	const char *recompute; /* layers to be computed twice (recompute_words.h), or NULL */
	const char *change;    /* "NAME:K=V,..." lines of changes, or NULL */
	const char *budget;    /* what python/budget_hook.py does, or NULL */
};

/* What it says it did: of several processes the one that did most. */
struct vc_hooked {
	uint64_t applied;      /* layers that were computed twice, all passes together */
	uint64_t odd, calls;   /* passes with another number of layers than asked for; the most */
	uint64_t units, of;    /* modules of a budget that were called; all of it */
	char classes[200];     /* of those layers */
	char made[200];        /* " NAME" for each change that was made */
	char why[200];         /* a change could not be made, because; "": none says so */
};

/* Put it first on PYTHONPATH of this process, for its children. */
int vc_hook_set(const struct vc_hook *h, struct vc_error *err);
void vc_hook_read(const char *folder, struct vc_hooked *out);

/* Embedded when the program is built. */
extern const unsigned char vc_hook_text[];
extern const size_t vc_hook_size;
