/* SPDX-License-Identifier: Apache-2.0 */
/* recompute.h - which layers of a training run to compute twice so that it fits, at the least time:
 * chosen by dynamic programming over what layers keep and cost, and each choice replayed. */
#pragma once

#include "simulator/search/layer_costs.h"

enum vc_recompute_kind { VC_RECOMPUTE_NONE, VC_RECOMPUTE_SOLVED, VC_RECOMPUTE_UNIFORM };

/* One choice, replayed. */
struct vc_recompute {
	char change[VC_PARAM_TEXT + 32]; /* the transform, "checkpoint:layers=0..3"; "": nothing */
	bool *take;              /* by layer; owned */
	size_t layers;           /* how many are computed twice, ... */
	bool alone;              /* ... each for itself */
	double ns;               /* what that adds to a step, as struct vc_layer_cost says it */
	enum vc_recompute_kind kind;
	uint64_t reserved;       /* most where nothing limits it, and ... */
	uint64_t used;           /* ... of the whole card */
	enum vc_verdict verdict; /* on the card of the plan, by the best estimate */
	bool open;               /* its interval was asked for: */
	uint64_t low, high;      /* of `used` */
	enum vc_verdict sure;    /* what both ends say */
	bool front;              /* nothing else needs less memory and no more time */
	bool refused;            /* it has nothing to compute again */
};

struct vc_recompute_search {
	struct vc_plan plan;
	const char *seen;        /* lent: a recording with all layers computed twice, or NULL */
	struct vc_layer_costs costs;
	struct vc_recompute *at; size_t n, cap; /* by time, then by memory */
	/* Indices, SIZE_MAX for none: the least time that fits by the best estimate, that which
	 * fits with the upper end of its interval, the best of the uniform ones, the least
	 * memory. */
	size_t best, sure, uniform, least;
	size_t replays;
};

/* Search for the plan's card. `seen`, a path that has to last as long as q: a recording of the same
 * run with all layers computed twice, or NULL. Errors: those of vc_layer_costs_read and of replays.
 */
int vc_recompute_search(struct vc_recompute_search *q, const struct vc_session *s,
			const struct vc_plan *plan, const char *seen, struct vc_error *err);
/* The same of a run without layers: as it is, and nothing else. */
int vc_recompute_none(struct vc_recompute_search *q, const struct vc_session *s,
		      const struct vc_plan *plan, struct vc_error *err);
/* Ask for the interval of choice i, where that was not done. */
int vc_recompute_open(struct vc_recompute_search *q, const struct vc_session *s, size_t i,
		      struct vc_error *err);
void vc_recompute_fini(struct vc_recompute_search *q);

/* recompute_choice.c: the layers to compute twice so that no moment needs more than `budget`
 * allocated bytes, at the least time; *peak is what that needs at most. False: none do. */
bool vc_recompute_choose(const struct vc_layer_costs *c, uint64_t budget, bool *take,
			 uint64_t *peak);
