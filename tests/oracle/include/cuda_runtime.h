/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime.h - everything is in cuda_runtime_api.h here. */
#ifndef VC_CUDA_RUNTIME_H
#define VC_CUDA_RUNTIME_H
#include "cuda_runtime_api.h"
#endif
