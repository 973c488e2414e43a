/* SPDX-License-Identifier: Apache-2.0 */
/* torch_sizes.h - sizes that are PyTorch's own and nobody's tensor, from torch_sizes.def. */
#pragma once

#include "common/std.h"

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

/* Which of them PyTorch 2.`minor` takes on a card of that compute capability: the last row says
 * from which version on. */
static inline uint64_t vc_torch_workspace_on(int cc_major, int minor)
{
	bool large = cc_major == 9 || (minor >= 12 && (cc_major == 10 || cc_major == 12)) ||
		     (minor >= 14 && cc_major == 11);

	return large ? 8u * 4096 * 1024 : 2u * 4096 * 1024 + 8u * 16 * 1024;
}

/* And one that is not a power of two: no tensor's size either. */
static inline bool vc_is_odd_torch_workspace(uint64_t bytes)
{
	return vc_is_torch_workspace(bytes) && bytes & (bytes - 1);
}
