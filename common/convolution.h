/* SPDX-License-Identifier: Apache-2.0 */
/* convolution.h - a convolution as cuDNN is asked for it, and the plans it answers with, as text:
 * the rows of a table of workspaces (docs/reference/null-gpu.md) and the labels of a recording. */
#pragma once

#include "common/std.h"

#define VC_PLANS_MOST 64          /* of one list; 40 is the longest seen */
#define VC_PLANS_KEY 512

enum { VC_CONVOLUTION_SPATIAL = 3, VC_CONVOLUTION_SIZES = VC_CONVOLUTION_SPATIAL + 2 };

enum vc_convolution_direction {
	VC_CONVOLUTION_FORWARD,
	VC_CONVOLUTION_DATA,   /* the gradient of the input */
	VC_CONVOLUTION_FILTER, /* of the weights */
};

/* Sizes: batch, channels, then one to three spatial ones; of the weights: output channels, input
 * channels of one group, spatial ones. `x` and `y` are input and output of the forward direction,
 * or their gradients. */
struct vc_convolution {
	enum vc_convolution_direction direction;
	int type;             /* cudnnDataType_t of the tensors */
	bool channels_last;
	int n;                /* dimensions of the tensors, 3 to 5 */
	int64_t x[VC_CONVOLUTION_SIZES], w[VC_CONVOLUTION_SIZES], y[VC_CONVOLUTION_SIZES];
	int64_t stride[VC_CONVOLUTION_SPATIAL], pad[VC_CONVOLUTION_SPATIAL],
		dilation[VC_CONVOLUTION_SPATIAL];
};

/* The key of a convolution: direction to dilation, one blank between fields. `list`: which list of
 * the heuristics, as vc_plans_list says it ("" for the one that PyTorch asks for first). */
void vc_convolution_text(const struct vc_convolution *c, const char *list, char key[VC_PLANS_KEY]);

/* The other way round, for the first list. False: that is no such key. */
bool vc_convolution_read(const char *key, struct vc_convolution *c);

/* Does y follow from x, as for a convolution whose border is the same on both sides? Then it is
 * set. False: y is left as it is. */
bool vc_convolution_output(const struct vc_convolution *c, int64_t y[VC_CONVOLUTION_SIZES]);

/* One plan that the library could make. Notes: a bit for each cudnnBackendNumericalNote_t, or
 * cudnnBackendBehaviorNote_t, of its engine. */
struct vc_cudnn_plan {
	int64_t bytes;
	uint32_t notes, behavior;
	bool recorded; /* on a card: sure */
};

struct vc_cudnn_plans {
	int n;
	struct vc_cudnn_plan at[VC_PLANS_MOST];
};

/* "4096tr,0" */
int vc_cudnn_plans_text(const struct vc_cudnn_plans *p, char *out, size_t n);
bool vc_cudnn_plans_read(const char *text, struct vc_cudnn_plans *p);
