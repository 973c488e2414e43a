/* SPDX-License-Identifier: Apache-2.0 */
/* retired.c - see retired.h. How long a thread may stand still between two instructions of ours is
 * not bounded by anything; a minute is more than a busy machine makes of it. */
#define _GNU_SOURCE
#include "tracer/retired.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096 /* of more than these the addresses stay taken */, SECONDS = 60 };

static struct {
	struct { void *at; size_t bytes; time_t when; } map[MOST];
	uint32_t n;
} g;

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

void vc_retired_put(void *at, size_t bytes)
{
	/* The kernel's own call: ThreadSanitizer takes that of libc for a write to all of it. */
	if (syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == -1 ||
	    g.n == MOST)
		return;
	g.map[g.n].at = at;
	g.map[g.n].bytes = bytes;
	g.map[g.n++].when = now();
}

void vc_retired_reclaim(void)
{
	time_t t = now();
	uint32_t kept = 0;

	for (uint32_t i = 0; i < g.n; i++) {
		if (t - g.map[i].when > SECONDS)
			munmap(g.map[i].at, g.map[i].bytes);
		else
			g.map[kept++] = g.map[i];
	}
	g.n = kept;
}
