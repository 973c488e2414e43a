/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - what to do with the modules of a program so that it stays below a peak at the least
 * cost, from dry runs with marks (python/budget_hook.py): one with all kept, and one with the same
 * done with all of them for each other thing that can be done. */
#pragma once

#include "simulator/replay/source.h"

enum vc_budget_do { VC_BUDGET_KEEP, VC_BUDGET_RECOMPUTE, VC_BUDGET_PRODUCTS, VC_BUDGET_LOWER,
		    VC_BUDGET_OFFLOAD, VC_BUDGET_RECOMPUTE_OFFLOAD, VC_BUDGET_WAYS };
extern const char *const vc_budget_word[VC_BUDGET_WAYS]; /* "keep", ...: methods of the hook */

struct vc_budget_unit {
	char *name;
	bool inplace; /* results of products are changed in place, so that they cannot be kept for a
		       * second time: all of it is computed twice then */
	/* Of each way: */
	int64_t freed[VC_BUDGET_WAYS]; /* bytes given back until its backward pass */
	double cost[VC_BUDGET_WAYS];   /* that it adds to a step */
	uint64_t need[VC_BUDGET_WAYS]; /* most that is allocated while it runs; what units before
					* it give back comes off */
	uint64_t hard[VC_BUDGET_WAYS]; /* the same, of which nothing comes off */
	uint64_t between;              /* most allocated behind it, in front of the next one */
};

struct vc_budget {
	struct vc_budget_unit *at; size_t n; /* in the order of the forward pass */
	uint64_t elsewhere;     /* most that is allocated while nothing is kept for any of them */
	bool can[VC_BUDGET_WAYS];
	uint64_t host;          /* bytes that may be sent there at a time */
	double price;           /* of each of these, while it is searched */
	bool timed;             /* costs are ns; else bytes that are written once more */
	bool compiled;          /* torch.compile decides what is kept: there are no units */
	bool unproven;          /* a choice among too many: the cheapest may be another one */
	bool relaxed;           /* of too many, neighbours become one better than both */
};

/* One of the runs. */
struct vc_budget_run {
	const struct vc_trace *t; /* NULL: it could not be made */
	uint16_t device;
	/* Of each kernel, by the number of its launch: ns; the k-th of those that say where the
	 * k-th mark lies has mark[k]. none: costs are not timed. */
	struct vc_budget_kernel { double ns; bool mark; } *kernel; size_t kernels;
	size_t steps;
};

/* The units that a run with {"observe": true} told of; none of a program that is not compiled:
 * VC_ENOSUP. */
int vc_budget_units(struct vc_budget *b, const struct vc_trace *observed, struct vc_error *err);
/* What is done with unit i by that choice. */
enum vc_budget_do vc_budget_done(const struct vc_budget *b, const uint8_t *how, size_t i);
/* With so many units is that done. */
size_t vc_budget_count(const struct vc_budget *b, const uint8_t *how, enum vc_budget_do way);
/* What they keep, need and cost, from run[VC_BUDGET_WAYS]. A way whose run does not call the same
 * units can not be gone; that is VC_ENOSUP of recomputing. */
int vc_budget_read(struct vc_budget *b, const struct vc_budget_run *run, struct vc_error *err);
/* The cheapest choice with at most so many bytes allocated at every moment: how[i], its cost.
 * *found: there is one. */
int vc_budget_choose(struct vc_budget *b, uint64_t bytes, uint8_t *how, double *cost, bool *found,
		     struct vc_error *err);
/* No choice with at most so many bytes costs less; where the host has too little, by the best price
 * of a byte there (Lagrange). *found: there may be one. */
int vc_budget_bound(struct vc_budget *b, uint64_t bytes, double *cost, bool *found,
		    struct vc_error *err);
/* What it sends to the host's memory; most that is allocated with it. */
uint64_t vc_budget_hosted(const struct vc_budget *b, const uint8_t *how);
uint64_t vc_budget_peak(const struct vc_budget *b, const uint8_t *how);
/* No choice has less allocated at its peak: what one unit needs while every other one keeps as
 * little as it can. *at: that unit, n: none; *behind: it is reached behind it, as by the loss. */
uint64_t vc_budget_floor(const struct vc_budget *b, size_t *at, bool *behind);
double vc_budget_cost(const struct vc_budget *b, const uint8_t *how);
void vc_budget_fini(struct vc_budget *b);

/* budget_splice.c: the recording that a choice would leave, put together from the runs in which
 * each of its units was done that way; `out` is the caller's, but for its meta, which is `meta`.
 * Errors: VC_ENOSUP: the runs have other marks. */
int vc_budget_splice(const struct vc_budget *b, const struct vc_budget_run *run, const uint8_t *how,
		     struct vc_trace *out, struct vc_meta *meta, struct vc_error *err);
