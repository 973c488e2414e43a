/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - the private folder in which a program finds the null GPU instead of the CUDA
 * libraries. */
#pragma once

#include "common/error.h"

/* In the folder: what kernels written in CuTe DSL load instead of their own runtime. */
#define VC_STAGE_CUTE_DSL "libcute_dsl_runtime.so"

struct vc_stage {
	char dir[512];       /* private folder, removed by vc_stage_close; python/ in it is for
			      * PYTHONPATH, bin/ for PATH */
	char *preload;       /* colon-separated paths for LD_PRELOAD */
	char missing[1024];  /* functions nobody provides, blank-separated; "" = none */
	int cuda_major;      /* of the runtime that PyTorch wants */
	int stubs_made;      /* functions generated with the compiler for a PyTorch newer than us */
};

/* Prepares the folder for the PyTorch in `package` (its folder) and the packages in the folders
 * `beside` (with ':' between them), or for JAX or TensorFlow where it is theirs, from the stand-ins
 * in `libraries`. The caller closes the stage, also after a failure. */
int vc_stage_open(struct vc_stage *s, const char *package, const char *beside,
		  const char *libraries, struct vc_error *err);
void vc_stage_close(struct vc_stage *s);
