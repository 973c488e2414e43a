/* SPDX-License-Identifier: Apache-2.0 */
/* plans_cudnn.h - the real cuDNN, asked for a card that is not there. */
#pragma once

#include "common/error.h"
#include "nullgpu/plans.h"

typedef void *vc_descriptor;

/* The functions of the graph interface, and the card. */
struct vc_library {
	void *handle;
	size_t version;
	int (*create)(int type, vc_descriptor *out);
	int (*destroy)(vc_descriptor d);
	int (*set)(vc_descriptor d, int name, int type, int64_t n, const void *value);
	int (*get)(vc_descriptor d, int name, int type, int64_t wanted, int64_t *n, void *out);
	int (*finalize)(vc_descriptor d);
	const char *(*name_of)(int status);
	vc_descriptor card;
};

/* Loads the library; its version is known then. */
int vc_library_open(struct vc_library *l, const char *path, struct vc_error *err);
/* From now on answers are for the card with these properties (JSON). */
int vc_library_card(struct vc_library *l, const char *json, struct vc_error *err);

/* The plans for the graph that is written in `w`, in the order of the heuristics. Those that the
 * library itself takes back are left out. */
int vc_library_plans(const struct vc_library *l, struct vc_wire *w, enum vc_plans_mode mode,
		     struct vc_cudnn_plans *out, struct vc_error *err);
