/* SPDX-License-Identifier: Apache-2.0 */
/* foreach.h - what PyTorch's kernels over lists of tensors move, by their packed arguments. */
#pragma once

/* Bytes that one launch of multi_tensor_apply_kernel reads and writes. name: mangled; list: its
 * first argument, the packed list; blocks: of the grid. 0: not such a kernel, or a list that
 * makes no sense. */
double vc_null_foreach_bytes(const char *name, const void *list, unsigned blocks);
