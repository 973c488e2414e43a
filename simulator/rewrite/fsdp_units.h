/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp_units.h - a training run as fully sharded data parallel sees it: wrapped units, their
 * parameters, and when each of them is needed. */
#pragma once

#include "simulator/rewrite/copies.h"

enum vc_unit_moment {
	VC_UNIT_WRAP, /* the model is there, nothing was computed: once, unit is meaningless */
	VC_UNIT_FORWARD,
	VC_UNIT_FORWARD_END,
	VC_UNIT_BACKWARD,
	VC_UNIT_BACKWARD_END,
	VC_UNIT_REST, /* behind the last event of an iteration */
};

struct vc_unit_action {
	size_t event;
	uint8_t moment;
	uint32_t unit, micro;
}; /* before that event */

struct vc_unit_param {
	uint64_t size;
	uint32_t unit;
	uint32_t block; /* of the parameter; UINT32_MAX: it was there when the recording began */
};

struct vc_units {
	size_t n;                     /* wrapped layers; unit n is the root, which has the rest */
	uint64_t *bytes;              /* of the parameters of each, n + 1 of them */
	struct vc_unit_param *param; size_t params; /* in order of birth */
	struct vc_unit_action *action; size_t actions;
	uint32_t *of_gradient;        /* by block: unit + 1 of a gradient; 0: it is none */
	bool named;                   /* layers are known from call sites */
};

/* Units are the layers that the forward pass repeats (simulator/anatomy/layers.h); whole: the
 * model is one unit, the root. Errors: VC_ENOMEM; VC_EUSAGE: no iteration has gradients. */
int vc_units_find(struct vc_units *u, const struct vc_clone *c, const struct vc_meta *m, bool whole,
		  struct vc_error *err);
void vc_units_fini(struct vc_units *u);
