/* SPDX-License-Identifier: Apache-2.0 */
/* torch_sizes.h - sizes that are PyTorch's own and nobody's tensor, from torch_sizes.def. */
#ifndef VC_TORCH_SIZES_H
#define VC_TORCH_SIZES_H

#include <stdbool.h>
#include <stdint.h>

/* Is it the size of a cuBLAS workspace, on whatever card and version? */
static inline bool vc_is_torch_workspace(uint64_t bytes)
{
	static const uint64_t sizes[] = {
#define VC_TORCH_WORKSPACE(bytes, capability, torch, source) bytes,
#include "common/torch_sizes.def"
#undef VC_TORCH_WORKSPACE
	};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (sizes[i] == bytes)
			return true;
	return false;
}

/* And one that is not a power of two: no tensor's size either. */
static inline bool vc_is_odd_torch_workspace(uint64_t bytes)
{
	return vc_is_torch_workspace(bytes) && bytes & (bytes - 1);
}

#endif
