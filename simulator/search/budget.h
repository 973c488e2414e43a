/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - which modules of a program to compute twice so that it stays below a peak at the least
 * cost, from two dry runs with marks (python/budget_hook.py): with all kept, with all computed
 * twice. */
#pragma once

#include "simulator/replay/source.h"

struct vc_budget_unit {
	char *name;
	int64_t freed;          /* bytes given back until its backward pass, computed twice */
	double cost;            /* of its forward pass once more: bytes it asks for, as each is
				 * written */
	uint64_t need[2];       /* most that is allocated while it runs: kept, computed twice; what
				 * units before it give back comes off */
	uint64_t hard[2];       /* the same, of which nothing comes off */
	uint64_t between;       /* most allocated behind it, in front of the next one */
};

struct vc_budget {
	struct vc_budget_unit *at; size_t n; /* in the order of the forward pass */
	uint64_t elsewhere;     /* most that is allocated while nothing is kept for any of them */
	bool unproven;          /* a choice among too many: the cheapest may be another one */
};

/* The units that a run with {"observe": true} told of; none: VC_ENOSUP. */
int vc_budget_units(struct vc_budget *b, const struct vc_trace *observed, struct vc_error *err);
/* What they keep and need. Errors: VC_ENOSUP: the two runs
 * do not call the same units. */
int vc_budget_read(struct vc_budget *b, const struct vc_trace *kept, const struct vc_trace *again,
		   uint16_t device, struct vc_error *err);
/* The cheapest choice with at most so many bytes allocated at every moment: take[i], its time.
 * *found: there is one. */
int vc_budget_choose(struct vc_budget *b, uint64_t bytes, bool *take, double *cost, bool *found,
		     struct vc_error *err);
/* Most that is allocated with that choice. */
uint64_t vc_budget_peak(const struct vc_budget *b, const bool *take);
void vc_budget_fini(struct vc_budget *b);
