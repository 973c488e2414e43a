/* SPDX-License-Identifier: Apache-2.0 */
/* system.h - what lies below the program. As a page in a browser (page/) it has no processes, no
 * threads and no pages to move; its C library says so when it is asked for a process or a thread.
 * Who includes this and calls vc_remap() defines _GNU_SOURCE. */
#pragma once

#include <string.h>
#include <sys/mman.h>

#ifdef __EMSCRIPTEN__
#define VC_PROCESSES 0
#else
#define VC_PROCESSES 1
#endif

/* A larger mapping with the same contents, zeroed behind them; MAP_FAILED: there is no room. */
#ifdef __EMSCRIPTEN__
static inline void *vc_remap(void *at, size_t n, size_t more)
{
	void *to = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (to == MAP_FAILED)
		return to;
	memcpy(to, at, n);
	munmap(at, n);
	return to;
}
#elif defined(MREMAP_MAYMOVE)
static inline void *vc_remap(void *at, size_t n, size_t more)
{
	return mremap(at, n, more, MREMAP_MAYMOVE);
}
#endif
