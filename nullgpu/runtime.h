/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - shared by the files of the stand-in libcudart; built once per CUDA major version. */
#pragma once

#include "nullgpu/null.h"

#ifndef VC_CUDA_MAJOR
#define VC_CUDA_MAJOR 12
#endif

/* Remembers a failure for cudaGetLastError; returns `rc`. */
int vc_runtime_result(int rc);
/* The first runtime call starts the driver, which may load an injected tool. */
void vc_runtime_start(void);
