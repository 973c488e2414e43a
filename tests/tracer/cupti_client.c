/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_client.c - plays the driver: starts the tracer's CUPTI side as cuInit does, then makes
 * one of everything. Ends in the way its argument says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tracer/cupti_standin.h"
#include "tracer/cupti_abi.h"

static uint64_t wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *kernels(void *name)
{
	uint64_t now = wall();

	for (uint64_t i = 0; i < 10000; i++) /* not in the order of time */
		standin_kernel(name, now + (i ^ 3) * 1000, now + (i ^ 3) * 1000 + 500, 7 + (i & 1));
	return NULL;
}

static void memory(void)
{
	struct vc_cupti_map range = { 0x700000000000, 2 << 20 };
	struct vc_cupti_alloc alloc = { NULL, 12345678 };

	for (uint64_t i = 0; i < 100; i++) { /* two contexts: everything twice */
		standin_memory(1, VC_CUPTI_KIND_DEVICE, 0x500000000000 + (i << 21), 2 << 20, 1);
		standin_memory(1, VC_CUPTI_KIND_DEVICE, 0x500000000000 + (i << 21), 2 << 20, 2);
	}
	for (uint64_t i = 0; i < 50; i++)
		standin_memory(2, VC_CUPTI_KIND_DEVICE, 0x500000000000 + (i << 21), 2 << 20, 1);
	standin_memory(1, VC_CUPTI_KIND_PINNED, 0x600000000000, 1 << 20, 1);
	standin_call(VC_CUPTI_MEM_MAP, &range, 0);
	standin_call(VC_CUPTI_MEM_MAP, &range, 2); /* a call that failed maps nothing */
	standin_call(VC_CUPTI_MEM_UNMAP, &range, 0);
	standin_call(VC_CUPTI_MEM_ALLOC, &alloc, 2);
}

/* cuMemAlloc and cuMemFree: the record of the first one never comes, as on an H100; those of the
 * second come later. */
static void driver_memory(void)
{
	for (int i = 0; i < 2; i++) {
		uint64_t at = 0x510000000000 + ((uint64_t)i << 24);
		struct vc_cupti_alloc alloc = { &at, 3 << 20 };
		struct vc_cupti_free end = { at };

		standin_call(VC_CUPTI_MEM_ALLOC, &alloc, 0);
		if (i)
			standin_memory(1, VC_CUPTI_KIND_DEVICE, at, alloc.size, 1);
		standin_call(VC_CUPTI_MEM_FREE, &end, 0);
		if (i)
			standin_memory(2, VC_CUPTI_KIND_DEVICE, at, alloc.size, 1);
	}
}

/* The address of that first cuMemAlloc once more, as an H100 gave it: as pinned host memory by a
 * runtime that nobody hooks, and as a piece that is mapped at another place. */
static void same_address(void)
{
	const uint64_t at = 0x510000000000, bytes = 3 << 20;
	struct vc_cupti_map range = { 0x700000800000, bytes };

	for (uint32_t op = 1; op <= 2; op++)
		standin_memory(op, VC_CUPTI_KIND_PINNED, at, bytes, 1);
	standin_call(VC_CUPTI_MEM_RESERVE, &range, 0);
	standin_piece(VC_CUPTI_MEM_CREATE, &range, 1, at, bytes);
	standin_call(VC_CUPTI_MEM_MAP, &range, 0);
	standin_call(VC_CUPTI_MEM_SET_ACCESS, &range, 0);
	standin_call(VC_CUPTI_MEM_UNMAP, &range, 0);
	standin_piece(VC_CUPTI_MEM_RELEASE, &range, 2, at, bytes);
	standin_call(VC_CUPTI_MEM_UNRESERVE, &range, 0);
	standin_piece(VC_CUPTI_MEM_CREATE, &range, 1, 0x520000000000, bytes); /* nobody maps it */
}

/* A pool of the driver's: twice, as with two contexts, grown by the second allocation, trimmed. */
static void pools(void)
{
	uint64_t now = wall();

	for (int context = 0; context < 2; context++)
		standin_pool(1, 0x900000000000, 0, 0, 0);
	standin_async(0xa00000000000, 1 << 20, 0x900000000000, 32 << 20, 1 << 20);
	standin_async(0xa00000100000, 40 << 20, 0x900000000000, 64 << 20, 41 << 20);
	standin_async(0xa00004000000, 1 << 20, 0x900000000000, 64 << 20, 42 << 20);
	standin_pool(3, 0x900000000000, 48 << 20, 42 << 20, 1234);
	standin_pool(2, 0x900000000000, 48 << 20, 0, 0);
	standin_overhead(1, now, now + 5000);
	standin_overhead(2u << 16, now, now + 3000);
	standin_overhead(7u << 16, now, now + 2000);
	standin_overhead(3u << 16, 0, 0); /* no time could be taken */
	standin_launch(5, wall(), wall() + 700);
}

/* More kernels than there are buffers for, before CUPTI gives the first one back. */
static int starve(void)
{
	uint64_t now = wall();

	standin_hoard(true);
	for (uint64_t i = 0; i < 300000; i++)
		standin_kernel("many", now + i * 1000, now + i * 1000 + 500, 7);
	standin_hoard(false);
	for (uint64_t i = 0; i < 1000; i++)
		standin_kernel("after", now + i * 1000, now + i * 1000 + 500, 7);
	return 0;
}

/* Launches of graphs; one of a time that could not be taken. */
static int graphs(void)
{
	uint64_t now = wall();

	standin_stream((void *)(uintptr_t)0xabc08);
	standin_graph(now, now + 4000, 8);
	standin_graph(now + 5000, now + 6500, 8);
	standin_graph(0, 0, 8);
	return 0;
}

/* CUPTI gives back none of the buffers that it got. */
static int robbed(void)
{
	standin_hoard(true);
	standin_kernel("unseen", wall(), wall() + 500, 7);
	return 0;
}

int main(int argc, char **argv)
{
	int (*start)(void);
	pthread_t t[2];
	pid_t child;

	*(void **)&start = dlsym(RTLD_DEFAULT, "InitializeInjection");
	if (start && start() != 1)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "starve"))
		return starve();
	if (argc > 1 && !strcmp(argv[1], "graphs"))
		return graphs();
	if (argc > 1 && !strcmp(argv[1], "robbed"))
		return robbed();
	child = vfork(); /* ends in our memory: that must not end our recording */
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	standin_stream((void *)(uintptr_t)0xabc08);
	pthread_create(&t[0], NULL, kernels, (void *)(uintptr_t)"void one<float>(int)");
	pthread_create(&t[1], NULL, kernels, (void *)(uintptr_t)"void two<half>(int)");
	child = fork(); /* while buffers are filled and completed */
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	standin_copy(1 << 20, wall(), wall() + 2000);
	standin_fill(1 << 16, wall(), wall() + 1000);
	for (int i = 0; i < 3; i++)
		standin_kernel("no time could be taken", 0, 0, 7);
	standin_lose(11);
	memory();
	driver_memory();
	same_address();
	pools();
	if (argc > 1 && !strcmp(argv[1], "_exit"))
		_exit(0);
	if (argc > 1 && !strcmp(argv[1], "abort"))
		abort();
	return 0;
}
