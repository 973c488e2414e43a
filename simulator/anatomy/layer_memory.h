/* SPDX-License-Identifier: Apache-2.0 */
/* layer_memory.h - the layers of a model and the memory that each stands for. */
#pragma once

#include "simulator/replay/source.h"
#include "simulator/anatomy/anatomy.h"

struct vc_layering_at {
	uint32_t frame; /* of the recording's call sites: where the layer asks first; 0: none */
	uint64_t activations;  /* requested bytes kept for the backward pass */
	uint64_t parameters; /* bytes, by the order of sizes in which the model was made; else of
				what got gradients */
};

struct vc_layering {
	struct vc_layering_at *at; /* in the order of the forward pass */
	size_t n;              /* 0: none found */
	double confidence;     /* 0..1, that of the iterations included */
	const char *from;      /* "names of call sites", "pattern", NULL */
	bool all_parameters;   /* false: only those that got gradients */
};

/* Of a steady iteration of `a`, which was read from `t`. Errors: VC_ENOMEM. The caller releases
 * *l. */
int vc_layering_read(struct vc_layering *l, const struct vc_anatomy *a, const struct vc_trace *t,
		     struct vc_error *err);
void vc_layering_fini(struct vc_layering *l);
