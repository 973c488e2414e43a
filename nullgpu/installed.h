/* SPDX-License-Identifier: Apache-2.0 */
/* installed.h - the cuDNN that is installed beside a PyTorch. */
#pragma once

#include "common/std.h"

/* The library that the PyTorch in the folder `torch` would load on a machine with a GPU. */
bool vc_installed_cudnn(const char *torch, char *out, size_t n);

/* The version of that library (91900 for 9.19.0), asked by the program `asker`; 0: it does not
 * load. */
int vc_installed_version(const char *asker, const char *library);
