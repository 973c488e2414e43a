/* SPDX-License-Identifier: Apache-2.0 */
/* alias.h - another name for a stand-in: some packages bring CUDA's runtime under a name with a
 * hash in it (libcudart.faf08d9a.so.13), and look for it by that. */
#pragma once

#include "common/error.h"

/* The name without the hash: "libcudart.so.13". False when there is none in it. */
bool vc_alias_base(const char *soname, char *out, size_t size);

/* Write `path`: a shared object called `soname` that holds nothing and needs `base`, whose versions
 * it claims to define. Made from `model` (nullgpu/build.mk), whose names are filled in. */
int vc_alias_write(const char *model, const char *path, const char *soname, const char *base,
		   struct vc_error *err);
