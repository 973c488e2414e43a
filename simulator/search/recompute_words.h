/* SPDX-License-Identifier: Apache-2.0 */
/* recompute_words.h - what a search for layers to compute twice found, as a table, as JSON and as
 * code to paste. */
#pragma once

#include "common/emit.h"
#include "simulator/search/recompute.h"

/* A choice that was really made in a dry run. */
struct vc_recompute_proof {
	size_t at;          /* of the search */
	bool ran;           /* false: it ran out of memory */
	uint64_t reserved;  /* peak of the dry run */
	bool inside;        /* of the interval that was predicted */
};

/* Into an open object; proof may be NULL. */
void vc_recompute_say(struct vc_emit *e, const struct vc_recompute_search *q,
		      const struct vc_meta *m, const struct vc_recompute_proof *proof,
		      size_t proofs);
/* What to recommend: proven, else sure, else by the best estimate; SIZE_MAX: nothing fits. */
size_t vc_recompute_advised(const struct vc_recompute_search *q,
			    const struct vc_recompute_proof *proof, size_t proofs);

/* The code to paste for choice i, into buf; returns buf. */
char *vc_recompute_code(const struct vc_recompute_search *q, const struct vc_meta *m, size_t i,
			char *buf, size_t n);
/* The choice for the hook that checkpoints layers (python/change_hook.py), as JSON. False: the
 * layers have no call sites, some go together, or it is longer than n. */
bool vc_recompute_spec_of(const struct vc_layer_costs *c, const struct vc_meta *m, const bool *take,
			  char *buf, size_t n);
bool vc_recompute_spec(const struct vc_recompute_search *q, const struct vc_meta *m, size_t i,
		       char *buf, size_t n);
