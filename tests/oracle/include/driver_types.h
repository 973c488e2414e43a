/* SPDX-License-Identifier: Apache-2.0 */
/* driver_types.h - everything is in cuda_runtime_api.h here. */
#ifndef VC_DRIVER_TYPES_H
#define VC_DRIVER_TYPES_H
#include "cuda_runtime_api.h"
#endif
