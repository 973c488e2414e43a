/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - what time it is, for records. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

#include "tracer/recorder.h"

/* On the null GPU time is what the submitted work takes, the same in every run. */
static uint64_t (*null_clock)(void);
static bool (*null_span)(uint32_t, uint64_t *, uint64_t *);
static const char *(*null_work)(uint32_t);

void vc_clock_init(void)
{
	const char *clock = getenv("VRAMCAST_NULL_CLOCK");

	if (clock && strcmp(clock, "device") == 0)
		*(void **)&null_clock = dlsym(RTLD_DEFAULT, "vc_null_clock");
	if (null_clock) {
		*(void **)&null_span = dlsym(RTLD_DEFAULT, "vc_null_span");
		*(void **)&null_work = dlsym(RTLD_DEFAULT, "vc_null_work_of");
	}
}

bool vc_clock_is_null(void)
{
	return null_clock != NULL;
}

bool vc_clock_null_span(uint32_t correlation, uint64_t *at, uint64_t *ns)
{
	return null_span && null_span(correlation, at, ns);
}

const char *vc_clock_null_work(uint32_t correlation)
{
	return null_work ? null_work(correlation) : NULL;
}

uint64_t vc_clock_ns(void)
{
	struct timespec t;

	if (null_clock)
		return null_clock();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t vc_clock_wall_ns(void)
{
	struct timespec t;

	if (null_clock)
		return 0; /* unknown: a time of day would make every recording another one */
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
