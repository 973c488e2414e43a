/* SPDX-License-Identifier: Apache-2.0 */
/* budget_search.h - choices for fit --find budget, looked for by replays: what a dry run of one
 * would need is said by the runs in which all modules were done alike. */
#pragma once

#include "commands/budget_say.h"

/* Of the least that a choice may cost: above, more is tried. */
#define VC_BUDGET_WORTH 1.02
/* A share of the target: steps in which a limit is gone away from. */
enum { VC_BUDGET_REFUSED = 32 };

/* What the allocator may reserve, so that no more than that is used. */
uint64_t vc_budget_limit(const struct vc_budget_find *f, uint64_t used);
/* What f->how adds to a step, as it is counted; with what emptying the cache costs. */
double vc_budget_costs(const struct vc_budget_find *f);
/* What a recording needs; more than the target is enough to know. Errors: of replays. */
int vc_budget_replay(struct vc_budget_find *f, struct vc_recording *made, uint64_t target,
		     uint64_t *used, struct vc_error *err);
/* Into f->how the cheapest choice found that should stay below the target and costs less than the
 * best one that was played; what it should need. *some: there is one. */
int vc_budget_next(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *some,
		   struct vc_error *err);
/* Into f->how the fewest modules computed twice, evenly spread over all, that should stay below. */
int vc_budget_even(struct vc_budget_find *f, uint64_t target, uint64_t *says, bool *found,
		   struct vc_error *err);
