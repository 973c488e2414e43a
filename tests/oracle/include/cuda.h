/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - everything is in cuda_runtime_api.h here. */
#ifndef VC_CUDA_H
#define VC_CUDA_H
#include "cuda_runtime_api.h"
#endif
