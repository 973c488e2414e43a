/* SPDX-License-Identifier: Apache-2.0 */
/* plans_path.c - see plans.h */
#include "nullgpu/plans.h"

void vc_plans_path(char *out, size_t n)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool own = cache && *cache;
	snprintf(out, n, "%s%s/vramcast/workspaces.txt", own ? cache : home ? home : "",
		 own ? "" : "/.cache");
}
