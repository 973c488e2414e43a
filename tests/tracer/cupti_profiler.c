/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_profiler.c - a program that profiles itself as torch.profiler does, with CUPTI's
 * subscriber, its buffers, its kinds and a clock of its own, in the middle of a recording. Prints
 * what it got: the same with and without the tracer. cupti_profiler [early]: it begins before the
 * driver starts; held: its first records stand in a buffer that was begun before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracer/cupti_abi.h"

int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user);
int cuptiUnsubscribe(void *handle);
int cuptiEnableDomain(uint32_t on, void *handle, int domain);
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id);
int cuptiActivityRegisterCallbacks(vc_cupti_request *r, vc_cupti_complete *c);
int cuptiActivityRegisterTimestampCallback(vc_cupti_clock *clock);
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t how);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
int cuptiFinalize(void);
void standin_kernel(const char *name, uint64_t start, uint64_t end, uint32_t stream);
void standin_copy(uint64_t bytes, uint64_t start, uint64_t end);
void standin_memory(uint32_t op, uint32_t where, uint64_t at, uint64_t bytes, uint32_t context);
void standin_call(uint32_t id, const void *params, int result);
void standin_stream(void *handle);
void standin_lose(size_t n);
void standin_busy(bool on);

enum { SIZE = 1 << 20 };
static struct {
	pthread_mutex_t lock;
	uint8_t *lent[64];
	int strange, kernels, copies, others, foreign, calls;
	size_t lost;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Atomic int other_clock;

static uint64_t now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t ticks(void) /* as a time stamp counter: neither this speed nor this origin */
{
	return now(CLOCK_MONOTONIC) * 27 / 10 + 12345;
}

static void ask(uint8_t **buffer, size_t *size, size_t *records)
{
	pthread_mutex_lock(&g.lock);
	*buffer = malloc(SIZE);
	memset(*buffer, 0xaa, SIZE);
	for (int i = 0; i < 64; i++)
		if (!g.lent[i]) {
			g.lent[i] = *buffer;
			break;
		}
	*size = SIZE;
	*records = 0;
	pthread_mutex_unlock(&g.lock);
}

static void count(uint8_t *buffer, size_t valid)
{
	void *r = NULL;

	while (valid && cuptiActivityGetNextRecord(buffer, valid, &r) == 0) {
		uint32_t kind = *(uint32_t *)r;
		const char *name =
			kind == VC_CUPTI_KERNEL ? ((struct vc_cupti_kernel *)r)->name : "";

		if (kind == VC_CUPTI_KERNEL && !strcmp(name, "profiled"))
			g.kernels++;
		else if (kind == VC_CUPTI_KERNEL && strcmp(name, "beside")) /* before or after */
			g.foreign++;
		else if (kind == VC_CUPTI_MEMCPY)
			g.copies++;
		else if (kind != VC_CUPTI_KERNEL)
			g.others++;
	}
}

static void give(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t lost = 0;
	int known = 0;

	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < 64; i++)
		if (g.lent[i] == buffer) {
			g.lent[i] = NULL;
			known = 1;
		}
	if (!known || size != SIZE)
		g.strange++;
	else
		count(buffer, valid);
	cuptiActivityGetNumDroppedRecords(context, stream, &lost);
	g.lost += lost;
	if (known)
		free(buffer);
	pthread_mutex_unlock(&g.lock);
}

static void callback(void *user, int domain, uint32_t id, const void *data)
{
	(void)user;
	(void)data;
	g.calls += domain == VC_CUPTI_DRIVER_API && id == VC_CUPTI_LAUNCH;
	g.calls += domain == VC_CUPTI_RESOURCE ? 100 : 0;
}

static uint64_t stamp(void)
{
	return atomic_load(&other_clock) ? ticks() : now(CLOCK_REALTIME);
}

static void kernels(const char *name, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t start = stamp();

		standin_kernel(name, start, start + 1000, 7);
	}
}

static void mark(const char *name)
{
	void (*f)(const char *);

	*(void **)&f = dlsym(RTLD_DEFAULT, "vramcast_mark");
	if (f)
		f(name);
}

static void *subscribe(void)
{
	void *handle = NULL;

	if (cuptiSubscribe(&handle, callback, NULL))
		printf("cannot subscribe\n");
	if (cuptiSubscribe(&handle, callback, NULL) != VC_CUPTI_BUSY)
		printf("a second one can\n");
	cuptiEnableDomain(1, handle, VC_CUPTI_RESOURCE);
	cuptiEnableCallback(1, handle, VC_CUPTI_DRIVER_API, VC_CUPTI_LAUNCH);
	/* no call has that number: it is taken for no other one */
	cuptiEnableCallback(0, handle, VC_CUPTI_RESOURCE - 1, 2048 + VC_CUPTI_STREAM_CREATED);
	return handle;
}

static _Atomic int stop;

static void *beside(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		kernels("beside", 10);
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	}
	return NULL;
}

static void profile(void)
{
	cuptiActivityRegisterCallbacks(ask, give);
	cuptiActivityRegisterTimestampCallback(ticks);
	atomic_store(&other_clock, 1);
	cuptiActivityEnable(VC_CUPTI_MEMCPY);
	cuptiActivityEnable(VC_CUPTI_KERNEL);
	standin_busy(false);
	mark("profile begins");
	kernels("profiled", 20000);
	standin_copy(1 << 20, stamp(), stamp() + 2000);
	standin_memory(1, VC_CUPTI_KIND_DEVICE, 0x500000000000, 2 << 20, 1); /* not asked for */
	standin_call(VC_CUPTI_LAUNCH, &(int){ 0 }, 0);
	standin_call(VC_CUPTI_MEM_MAP, &(struct vc_cupti_map){ 0x700000000000, 2 << 20 }, 0);
	standin_stream((void *)(uintptr_t)0xabc08);
	standin_lose(3);
	mark("profile ends");
	cuptiActivityDisable(VC_CUPTI_MEMCPY);
	cuptiActivityDisable(VC_CUPTI_KERNEL);
	cuptiActivityFlushAll(0);
}

int main(int argc, char **argv)
{
	int (*start)(void), early = argc > 1 && !strcmp(argv[1], "early");
	void *handle = early ? subscribe() : NULL;
	pthread_t t;

	*(void **)&start = dlsym(RTLD_DEFAULT, "InitializeInjection");
	if (start && start() != 1)
		return 1;
	kernels("before", 3000);
	standin_busy(argc > 1 && !strcmp(argv[1], "held"));
	pthread_create(&t, NULL, beside, NULL);
	if (!early)
		handle = subscribe();
	for (int i = 0; i < 2; i++)
		profile();
	atomic_store(&stop, 1);
	pthread_join(t, NULL);
	if (argc > 1 && !strcmp(argv[1], "finalize"))
		cuptiFinalize();
	else
		cuptiUnsubscribe(handle);
	standin_call(VC_CUPTI_LAUNCH, &(int){ 0 }, 0); /* nobody is told any more */
	kernels("after", 3000);
	printf("kernels %d copies %d others %d calls %d strange %d lost %zu\n", g.kernels, g.copies,
	       g.others, g.calls, g.strange, g.lost);
	return 0;
}
