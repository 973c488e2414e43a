/* SPDX-License-Identifier: Apache-2.0 */
/* overhead.c - what a request costs, asked through the allocator's own vtable as PyTorch does it.
 * Loaded by overhead.py. Steps of 1,000 requests from 512 bytes to 32 MiB; 100 live at a time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "common/torch_layout.h"

enum { STEPS = 300, WARM = 20, REQUESTS = 1000, LIVE = 100 };

__attribute__((visibility("default"))) double overhead(int minor);

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double overhead(int minor)
{
	void *h = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_NOW), **slot, *object;
	void *live[LIVE] = { 0 };
	void *(*alloc)(void *, size_t);
	void (*release)(void *, void *);
	const struct vc_torch_slots *slots = vc_torch_slots(minor);
	double from = 0;

	slot = h ? dlsym(h, "_ZN3c104cuda20CUDACachingAllocator9allocatorE") : NULL;
	if (!slot || !slots->raw_alloc)
		return -1;
	object = *slot;
	*(void **)&alloc = (*(void ***)object)[slots->raw_alloc];
	*(void **)&release = (*(void ***)object)[slots->raw_delete];
	for (int step = 0; step < STEPS; step++) {
		uint64_t seed = 1;

		if (step == WARM)
			from = seconds();
		for (int i = 0; i < REQUESTS; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			size_t n = (size_t)512 << (seed >> 60), k = (seed >> 33) % LIVE;

			if (live[k])
				release(object, live[k]);
			live[k] = alloc(object, n + (seed >> 40) % n);
		}
		for (int i = 0; i < LIVE; i++) {
			if (live[i])
				release(object, live[i]);
			live[i] = NULL;
		}
	}
	return (seconds() - from) * 1e9 / ((double)(STEPS - WARM) * REQUESTS);
}
