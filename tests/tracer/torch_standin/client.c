/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - tensors of several threads through the stand-in allocator's vtable, with everything
 * else the tracer watches. Prints what it did, to be compared with the recording.
 *
 * client [THREADS [N]]; client steps MILLISECONDS: a hundred steps on a clock of its own; client
 * sleep BYTES: a segment mapped for the allocator, given back beneath it and mapped again; client
 * repeat STEPS: steps that are alike, and what the allocator's statistics say of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracer/torch_standin/standin.h"
#include "tracer/torch.h"

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaHostAlloc(void **p, size_t n, unsigned flags);
int cudaMallocHost(void **p, size_t n);
int cudaFreeHost(void *p);
int cudaMallocManaged(void **p, size_t n, unsigned flags);
int cudaHostRegister(void *p, size_t n, unsigned flags);
int cudaHostUnregister(void *p);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void *graph);
int cuMemSetAccess(uint64_t at, size_t size, const void *desc, size_t count);
int cuMemUnmap(uint64_t at, size_t size);
int cuMemAddressFree(uint64_t at, size_t size);
int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);

static _Atomic long allocs, frees, uses, bytes;
static long each;
static int minor;
static const struct vc_torch_slots *slots;

static void *allocate(size_t n)
{
	void *p = standin_allocate(n);

	if (p) {
		allocs++;
		bytes += (long)n;
	}
	return p;
}

static void *raw(size_t n, void *stream)
{
	void *self, **v = standin_vtable(&self), *(*f)(void *, size_t, void *);

	*(void **)&f = v[stream ? slots->raw_alloc_with_stream : slots->raw_alloc];
	allocs++;
	bytes += (long)n;
	return f(self, n, stream);
}

static void use(void *p, int64_t stream)
{
	void *self, **v = standin_vtable(&self);
	void (*f)(void *, void *const *, struct standin_stream);

	*(void **)&f = v[slots->use];
	f(self, &p, (struct standin_stream){ 1, stream });
	uses++;
}

static void give(void *p)
{
	if (!p)
		return;
	standin_free(p);
	frees++;
}

static void call(int slot, uint64_t a, uint64_t b, uint64_t c, const void *d)
{
	void *self, **v = standin_vtable(&self);
	uint64_t (*f)(void *, uint64_t, uint64_t, uint64_t, const void *);

	*(void **)&f = v[slot];
	f(self, a, b, c, d);
}

static void limit(double fraction)
{
	void *self, **v = standin_vtable(&self);
	void (*f)(void *, double, int8_t);

	*(void **)&f = v[slots->fraction];
	f(self, fraction, 0);
}

static void *work(void *arg)
{
	long me = (long)arg;
	void *p[16] = { 0 };

	standin_set_stream(me % 3);
	for (long i = 0; i < each; i++) {
		void **q = &p[(i * 7 + me) % 16];

		give(*q);
		*q = i % 50 == 49 ?
			     raw((size_t)(100 + i), i % 100 == 99 ? (void *)0xabc005 : NULL) :
			     allocate((size_t)(1 + (i * 977 + me * 31) % 30000));
		if (i % 10 == 9)
			use(*q, 4);
	}
	for (int i = 0; i < 16; i++)
		give(p[i]);
	return NULL;
}

/* A std::function that lets nothing through, as two words of functor, a manager, an invoker. */
static bool manage(uint64_t *to, const uint64_t *from, int operation)
{
	if (operation == 2)
		memcpy(to, from, 16);
	return false;
}

static bool refuse(const uint64_t *functor, uint64_t *stream)
{
	(void)functor;
	(void)stream;
	return false;
}

static void scopes(void)
{
	struct {
		uint64_t functor[2];
		void *manager, *invoker;
	} filter = { { 0 }, VC_FUNCTION(manage), VC_FUNCTION(refuse) };

	call(slots->pool_begin, 0, 1, 2, &filter);
	give(allocate(5000));
	call(slots->pool_end, 0, 1, 2, NULL);
	call(slots->pool_release, 0, 1, 2, NULL);
	call(slots->trim, 0, 0, 0, NULL);
	limit(0.75);
	standin_settings(minor, "max_split_size_mb:64");
	if (strcmp(standin_settings_seen, "max_split_size_mb:64") != 0)
		printf("the settings did not arrive\n");
	cudaStreamBeginCapture((void *)0xabc001, 0);
	cudaStreamEndCapture((void *)0xabc001, NULL);
}

/* Each through the same call, as a smart pointer does: one call site, several functions. */
static void give_back(void *host, void *device)
{
	static int (*const way[])(void *) = { cudaFreeHost, cudaFree };
	void *what[] = { host, device };

	for (volatile int i = 0; i < 2; i++)
		if (way[i](what[i]) != 0)
			printf("freed by another function than the one called\n");
}

static void host(void)
{
	static char own[4096];
	void *p, *q, *r, *pages;

	cudaMallocManaged(&pages, 5 << 20, 1);
	cudaFree(pages);
	cudaHostAlloc(&p, 3 << 20, 0);
	cudaMallocHost(&q, 1 << 20);
	cudaHostRegister(own, sizeof(own), 0);
	cudaFreeHost(p);
	cudaMalloc(&r, 7 << 20); /* a library's own memory */
	cudaHostUnregister(own);
	give_back(q, r);
}

/* What the tracer has no name for answers as before, to the end of the table. */
static void others(void)
{
	for (int i = 36; i < 96; i++) {
		uint64_t (*f)(void *);
		void *self, **v = standin_vtable(&self);

		*(void **)&f = v[i];
		if (!f || f(self))
			printf("entry %d of the allocator's table is another\n", i);
	}
}

static void child(void)
{
	pid_t p = fork();

	if (!p) {
		give(allocate(100));
		_exit(0);
	}
	waitpid(p, NULL, 0);
}

/* The clock that the tracer takes when VRAMCAST_NULL_CLOCK says so: as fast as we like. */
static _Atomic uint64_t clock_ns = 1;
__attribute__((visibility("default"))) uint64_t vc_null_clock(void);

uint64_t vc_null_clock(void)
{
	return clock_ns;
}

/* A hundred steps of so many milliseconds each. */
static int steps(void (*step)(void), long ms)
{
	const char *next = getenv("STANDIN_NEXT"); /* a second card, after the first */
	void *p = allocate(1000);

	if (next) {
		setenv("STANDIN_CURRENT", next, 1);
		give(allocate(64u << 20));
	}
	for (int i = 0; i < 100; i++) {
		clock_ns += (uint64_t)ms * 1000000u;
		step();
	}
	give(p);
	return 0;
}

/* CUmemAccessDesc: a device's memory, device 0; read and write. */
static const int access_of[] = { 1, 0, 3 };
static bool sleeps;
__attribute__((visibility("default"))) void *standin_segment(size_t n);

void *standin_segment(size_t n)
{
	const uint64_t at = 0x300000000000;

	return sleeps && cuMemSetAccess(at, n, access_of, 1) == 0 ? (void *)(uintptr_t)at : NULL;
}

static int sleeper(size_t n)
{
	const uint64_t other = 0x310000000000; /* of a library, and no segment */
	void *p;

	sleeps = true;
	p = allocate(n);
	cuMemSetAccess(other, n, access_of, 1);
	cuMemUnmap((uintptr_t)p, n);
	cuMemSetAccess((uintptr_t)p, n, access_of, 1);
	cuMemUnmap(other, n);
	cuMemAddressFree(other, n);
	give(p);
	return 0;
}

/* As a smart pointer frees it, whoever it is from. */
static void drop(void *p)
{
	void *self, **v = standin_vtable(&self), *(*f)(void *), (*deleter)(void *);

	*(void **)&f = v[slots->deleter];
	*(void **)&deleter = f(self);
	deleter(p);
}

static int repeat(long steps)
{
	int64_t stats[STANDIN_STATS][3][4];
	void *self, **v, *(*read)(void *, void *, int), *kept = allocate(300000);
	void (*reset)(void *, int);

	for (long s = 0; s < steps; s++) {
		void *p[40];

		for (int k = 0; k < 40; k++) {
			standin_set_stream(k % 7 == 3 ? 2 : 0);
			if (k % 9 == 5)
				p[k] = raw((size_t)(1000 * k), k % 2 ? (void *)0xabc002 : NULL);
			else
				p[k] = allocate((size_t)(1 + k * 977 % 30000));
			if (k % 10 == 9)
				use(p[k], 4);
			if (k % 3 == 2) {
				drop(p[k - 1]);
				p[k - 1] = NULL;
			}
		}
		for (int k = 0; k < 40; k++)
			if (p[k])
				drop(p[k]);
		if (s == 1) { /* what a graph keeps comes from its own pool */
			call(slots->pool_begin, 0, 1, 2, NULL);
			drop(allocate(7000));
			call(slots->pool_end, 0, 1, 2, NULL);
		}
	}
	v = standin_vtable(&self);
	*(void **)&read = v[slots->stats];
	*(void **)&reset = v[slots->reset_peaks];
	for (int k = 0; k < 2; k++) {
		read(stats, self, 0);
		for (int i = 0; i < 4; i++)
			printf("%lld %lld ", (long long)(i == 1 ? 0 : stats[0][0][i]),
			       (long long)stats[4][0][i]);
		reset(self, 0);
	}
	drop(kept);
	printf("reports %ld of %ld bytes\n", standin_reports, standin_totals);
	return 0;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	const char *v = getenv("STANDIN_TORCH");
	void (*step)(void), *a;
	pthread_t t[64];

	each = argc > 2 ? atol(argv[2]) : 1000;
	minor = v ? atoi(v) : 9;
	slots = vc_torch_slots(minor);
	*(void **)&step = dlsym(RTLD_DEFAULT, "vramcast_step");
	if (_ZN3c104cuda28device_count_ensure_non_zeroEv() != 1)
		return 1;
	if (argc > 2 && step && !strcmp(argv[1], "steps"))
		return steps(step, each);
	if (argc > 2 && !strcmp(argv[1], "sleep"))
		return sleeper((size_t)each);
	if (argc > 2 && !strcmp(argv[1], "repeat"))
		return repeat(each);
	for (long i = 0; i < threads && i < 64; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(t[i], NULL);
	host();
	scopes();
	others();
	a = standin_async(123456, (void *)0xabc002);
	standin_async_free(a, (void *)0xabc002);
	allocs++;
	frees++;
	bytes += 123456;
	allocate(1ull << 40); /* out of memory */
	standin_async(1ull << 40, (void *)0xabc002);
	child();
	if (step)
		step();
	printf("allocs %ld frees %ld uses %ld bytes %ld\n", allocs, frees, uses, bytes);
	return 0;
}
