/* SPDX-License-Identifier: Apache-2.0 */
/* torch_names.h - what a frame of a call stack is, by its file and function: torch_names.def. */
#pragma once

#include "common/meta.h"

enum vc_torch_name {
	VC_NAME_OPTIMIZER   = 1 << 0,  /* a file in which optimizers step */
	VC_NAME_QUIET       = 1 << 1,  /* of those of OPTIMIZER and BACKWARD: neither */
	VC_NAME_OPTIM       = 1 << 2,  /* torch.optim itself */
	VC_NAME_ENGINE      = 1 << 3,  /* the backward pass is under way */
	VC_NAME_BACKWARD    = 1 << 4,  /* a function that starts it */
	VC_NAME_FORWARD     = 1 << 5,  /* of a module */
	VC_NAME_MODULE      = 1 << 6,  /* a module of PyTorch: a part of a layer, ... */
	VC_NAME_TRANSFORMER = 1 << 7,  /* ... unless it is itself one */
	VC_NAME_NN          = 1 << 8,  /* any code of torch.nn */
	VC_NAME_LINEAR      = 1 << 9,
	VC_NAME_CONV1D      = 1 << 10, /* a linear layer under another name */
	VC_NAME_CONV        = 1 << 11,
	VC_NAME_KEEPS       = 1 << 12, /* an activation that keeps its result for the way back */
	VC_NAME_EINSUM      = 1 << 13,
	VC_NAME_EMBEDDING   = 1 << 14,
	VC_NAME_LOSS        = 1 << 15,
	VC_NAME_LOSS_UTILS  = 1 << 16,
	VC_NAME_ENTROPY     = 1 << 17,
	VC_NAME_SOFTMAX     = 1 << 18,
	VC_NAME_NORM        = 1 << 19,
	VC_NAME_POOL        = 1 << 20,
	VC_NAME_PROJECTION  = 1 << 21, /* matrix products of attention */
	VC_NAME_ATTENTION   = 1 << 22,
	VC_NAME_REPEAT      = 1 << 23, /* keys and values for more heads */
	VC_NAME_ACTIVATIONS = 1 << 24,
	VC_NAME_MODELS      = 1 << 25, /* a model of the Transformers library */
	VC_NAME_DRY_RUN     = 1 << 26, /* ours */
	VC_NAME_HINT_OPTIMIZER = 1 << 27,
	VC_NAME_HINT_BACKWARD  = 1 << 28,
	VC_NAME_HINT_FORWARD   = 1 << 29,
	VC_NAME_HINT_SETUP     = 1 << 30,
};
#define VC_NAME_HINT_WORKSPACE (UINT32_C(1) << 31)
#define VC_NAME_PRODUCT (VC_NAME_LINEAR | VC_NAME_CONV)

/* A frame of an optimizer's step, for events that are made up. */
#define VC_TORCH_STEP_FILE     "torch/optim/optimizer.py"
#define VC_TORCH_STEP_FUNCTION "step"

/* Which of `asked` (enum vc_torch_name, or'ed) the names have. */
uint32_t vc_torch_roles(const char *file, const char *function, uint32_t asked);
/* The same for a frame of a recording; 0 and numbers beyond its frames have none. */
uint32_t vc_frame_roles(const struct vc_meta *m, uint32_t frame, uint32_t asked);
/* The innermost frame of a call site that is the program's or PyTorch's, not what a dry run puts
 * between them, which is there for some operations and not for others; 0: none. */
uint32_t vc_frame_caller(const struct vc_meta *m, uint32_t site);
