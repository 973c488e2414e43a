/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_workspace.h - how much scratch memory cuDNN's plans for a convolution ask for. */
#ifndef VC_CUDNN_WORKSPACE_H
#define VC_CUDNN_WORKSPACE_H

#include "nullgpu/cudnn.h"

#define VC_CUDNN_PLANS 8
#define VC_CUDNN_SPATIAL 3

enum vc_cudnn_direction { VC_CUDNN_FORWARD, VC_CUDNN_DATA, VC_CUDNN_FILTER };

/* A convolution as cuDNN is asked for it. Sizes: batch, channels, then one to three spatial
 * ones; of the weights: output channels, input channels of one group, spatial ones. `x` and `y`
 * are input and output of the forward direction, or their gradients. */
struct vc_cudnn_convolution {
	enum vc_cudnn_direction direction;
	int type;             /* cudnnDataType_t of the tensors */
	bool channels_last;
	int n;                /* dimensions of the tensors, 3 to 5 */
	int64_t x[VC_CUDNN_SPATIAL + 2], w[VC_CUDNN_SPATIAL + 2], y[VC_CUDNN_SPATIAL + 2];
	int64_t stride[VC_CUDNN_SPATIAL], pad[VC_CUDNN_SPATIAL], dilation[VC_CUDNN_SPATIAL];
};

/* Scratch bytes of the plans in the order in which the heuristics name them, at least one; the
 * last is the least. */
struct vc_cudnn_plans {
	int n;
	int64_t bytes[VC_CUDNN_PLANS];
};

/* From the first row of a table that fits, else by rule. */
void vc_cudnn_plans(const struct vc_cudnn_convolution *c, struct vc_cudnn_plans *out);

#endif
