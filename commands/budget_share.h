/* SPDX-License-Identifier: Apache-2.0 */
/* budget_share.h - fit --find budget where torch.compile decides what is kept: how large a share of
 * it (torch._functorch.config.activation_memory_budget), or how many layers are computed twice
 * inside of what is compiled, tried in dry runs. What they need does not always grow with the
 * share. Where holes between blocks are what is too much, segments that expand are tried, too. */
#pragma once

#include "commands/rehearsal.h"
#include "simulator/search/budget_added.h"

struct vc_budget_shares {
	uint64_t peak;                  /* that is asked for */
	const struct vc_kept *whole;    /* the run with all of it */
	const struct vc_profile *plain; /* its kernels, or NULL */
	uint64_t most;                  /* dry runs */
	const char *grown;              /* settings with segments that expand; "": not tried */
	/* The least time of those that stay below: percent kept; of layers computed twice. */
	bool found, expandable; uint64_t percent, twice;
	struct vc_budget_try { uint64_t predicted, used; double cost; } best, tried[32];
	struct vc_budget_added added;   /* by that one */
	struct { uint64_t percent, twice, filled; } way[32]; /* filled: used but for holes */
	bool grows;                     /* so it is tried now */
	size_t runs;
	uint64_t least;                 /* that any of them needs */
};

int vc_budget_shares(struct vc_budget_shares *s, struct vc_rehearsal *h, struct vc_error *err);
