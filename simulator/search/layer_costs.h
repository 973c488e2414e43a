/* SPDX-License-Identifier: Apache-2.0 */
/* layer_costs.h - what it would save and cost to compute each layer of a training run twice. */
#pragma once

#include "simulator/session/session.h"

enum { VC_LAYERS_MOST = 512 };

struct vc_layer_cost {
	uint64_t kept;     /* bytes that are given back until its backward pass */
	uint64_t need;     /* most that is allocated while it runs, forward or backward */
	uint64_t again;    /* the same while it is computed again */
	double ns;         /* its forward pass once more; in shares of all layers' where unknown */
	uint32_t frame;    /* of meta, where it asks first; 0: no call sites */
	uint32_t low, high; /* lines of its function that ask for something; 0: no call sites */
};

struct vc_layer_costs {
	struct vc_layer_cost *at; size_t n; /* in the order of the forward pass */
	uint64_t loss;      /* most that is allocated behind the last one, before its backward */
	uint64_t elsewhere; /* most outside of these: the optimizer, evaluation, ... */
	uint64_t total;     /* kept by all of them */
	double step_ns;     /* of a recorded step; 0: unknown, and `ns` are shares */
	char why[200];      /* why it is unknown */
	bool named;         /* layers were found by call sites */
};

/* The layers that the transform `checkpoint` chooses from. Their times are asked for under `plan`.
 * Errors: VC_ENOSUP: none were found, the message says what is missing. */
int vc_layer_costs_read(struct vc_layer_costs *c, const struct vc_session *s,
			const struct vc_plan *plan, struct vc_error *err);
void vc_layer_costs_fini(struct vc_layer_costs *c);
