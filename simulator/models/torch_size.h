/* SPDX-License-Identifier: Apache-2.0 */
/* torch_size.h - bytes as PyTorch prints them in its messages. */
#pragma once

#include "common/std.h"

struct torch_size_text { char s[40]; };

/* format_size of CUDACachingAllocator.cpp. */
static inline struct torch_size_text torch_size_text(uint64_t n)
{
	struct torch_size_text o;

	if (n <= 1024)
		snprintf(o.s, sizeof(o.s), "%llu bytes", (unsigned long long)n);
	else if (n <= 1048576)
		snprintf(o.s, sizeof(o.s), "%.2f KiB", (double)n / 1024.0);
	else if (n <= 1073741824ull)
		snprintf(o.s, sizeof(o.s), "%.2f MiB", (double)n / 1048576.0);
	else
		snprintf(o.s, sizeof(o.s), "%.2f GiB", (double)n / 1073741824.0);
	return o;
}
