/* SPDX-License-Identifier: Apache-2.0 */
/* sim_verdict.h - what CI makes of an answer: budgets, trust and the exit code of sim. Budgets look
 * at the upper end of an interval. */
#pragma once

#include "simulator/session/session.h"

struct vc_budget {
	const char *above; /* --fail-above as given; NULL: not given */
	double share;      /* of the capacity, ... */
	uint64_t bytes;    /* ... or so many bytes */
	bool on_flush;     /* --fail-on-flush */
	bool strict;       /* --strict */
};
/* Read b->above into b->share or b->bytes. */
int vc_budget_parse(struct vc_budget *b, struct vc_error *err);

/* Why a run is over the budget, and by how much; "" when it is not. Returns buf. */
const char *vc_budget_missed(const struct vc_budget *b, const struct vc_plan *p,
			     const struct vc_result *r, char *buf, size_t n);
/* Why --strict does not trust it; "" when it does, or was not asked. Returns buf. */
const char *vc_budget_distrust(const struct vc_budget *b, const struct vc_plan *p,
			       const struct vc_result *r, char *buf, size_t n);

/* The worst of the runs: 5 not trustworthy, 3 out of memory, 4 over the budget, 6 undecided, 0. */
int vc_budget_code(const struct vc_budget *b, const struct vc_plan *p, const struct vc_result *r,
		   size_t n);
