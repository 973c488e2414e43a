/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_name.h - names of kernels as people read them. */
#pragma once

#include <stddef.h>

enum { VC_KERNEL_NAME = 256 };
/* "at::native::vectorized_elementwise_kernel<AUnaryFunctor, MulFunctor>" of a name as C++ compilers
 * mangle it: its own name, and the names that stand in its template and its arguments; without
 * types, numbers and namespaces that have no name. What is not mangled stays as it is. Returns buf,
 * of VC_KERNEL_NAME bytes. */
const char *vc_kernel_name(const char *name, char *buf);

