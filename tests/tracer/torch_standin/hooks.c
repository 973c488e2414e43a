/* SPDX-License-Identifier: Apache-2.0 */
/* hooks.c - hooks WHAT: a few requests of one kind through the stand-in allocator, so that a test
 * can say each event that they make. What there is stands at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/event.h"
#include "tests/tracer/torch_standin/standin.h"
#include "tracer/torch.h"

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaMallocAsync(void **p, size_t n, void *stream);
int cudaFreeAsync(void *p, void *stream);
int cudaHostAlloc(void **p, size_t n, unsigned flags);
int cudaMallocManaged(void **p, size_t n, unsigned flags);
int cuMemCreate(uint64_t *handle, size_t size, const void *how, unsigned long long flags);
int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *p, int64_t n, size_t total,
							   size_t reserved, uint16_t device);

/* What the null GPU is told: nobody has written to this memory yet. */
static uint64_t fresh_bytes;
__attribute__((visibility("default"))) void vc_null_fresh(void *p, uint64_t n);

void vc_null_fresh(void *p, uint64_t n)
{
	fresh_bytes += p ? n : 0;
}

static const struct vc_torch_slots *slots;

static void *allocate(size_t n)
{
	return standin_allocate(n);
}

static void use(void *p, int64_t stream)
{
	void *self, **v = standin_vtable(&self);
	void (*f)(void *, void *const *, struct standin_stream);

	*(void **)&f = v[slots->use];
	f(self, &p, (struct standin_stream){ 1, stream });
}

static uint64_t call(int slot, uint64_t a, uint64_t b, uint64_t c, const void *d)
{
	void *self, **v = standin_vtable(&self);
	uint64_t (*f)(void *, uint64_t, uint64_t, uint64_t, const void *);

	*(void **)&f = v[slot];
	return f(self, a, b, c, d);
}

static void tell(const char *function)
{
	void (*f)(void);

	*(void **)&f = dlsym(RTLD_DEFAULT, function);
	if (f)
		f();
}

/* Of a size that was asked for, of a block whose size is all that is known. */
static void fresh(void)
{
	standin_free(allocate(1000));
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(&fresh_bytes, 2048, 0, 0, 1);
	if (fresh_bytes != 1000 + 2048)
		printf("%llu bytes are fresh\n", (unsigned long long)fresh_bytes);
}

/* Flags of pools; a scope that was open before. */
static void pools(void)
{
	const uint64_t theirs = 1, none = 0;

	call(slots->pool_create, 0, 0, 5, &theirs);
	call(slots->pool_create, 0, 0, 6, &none);
	call(slots->pool_create, 1, 7, 0, NULL);
	call(slots->use_on_oom, 0, 0, 5, NULL);
	if (slots->no_split)
		call(slots->no_split, 1, 7, 0, NULL);
	call(slots->pool_end, 0, 0, 6, NULL);
	standin_free(allocate(1000));
}

/* Freed in a scope: events are recorded by the first request behind it, of each block in turn. */
static void deferred(void)
{
	void *p = allocate(1000), *q = allocate(2000), *r = allocate(3000);

	use(p, 4);
	use(p, 5);
	use(q, 4);
	call(slots->pool_begin, 0, 1, 2, NULL);
	standin_free(p);
	standin_free(q);
	standin_free(r);
	standin_event((void *)0xf000, (void *)0xabc004); /* the program's, and no block's */
	allocate(4000);
	call(slots->pool_end, 0, 1, 2, NULL);
	call(slots->pool_release, 0, 1, 2, NULL);
	for (int i = 0; i < 3; i++)
		allocate((size_t)5000 + 1000 * (size_t)i);
}

/* Used by two streams, on one of which the program records many events of its own. */
static void waits(void)
{
	void *p = allocate(1000), *q;

	use(p, 4);
	use(p, 5);
	use(p, 4);
	for (uintptr_t i = 0; i < 40; i++)
		standin_event((void *)(0xf000 + i), (void *)(uintptr_t)(0xabc000 + i % 2 + 4));
	standin_free(p);
	for (int i = 0; i < 3; i++)
		q = allocate((size_t)5000 + 1000 * (size_t)i);
	use(q, 6);
	standin_free(q);
	call(slots->trim, 0, 0, 0, NULL); /* waits for it */
}

static void expandable(void)
{
	void *p = allocate(30 << 20), *q = allocate(1000);

	allocate(1ull << 40);
	standin_free(p);
	standin_free(q);
	call(slots->trim, 0, 0, 0, NULL);
	allocate(2000);
}

/* What libraries do beside PyTorch, and what they are refused. */
static void beside(void)
{
	const size_t much = (size_t)1 << 41;
	uint64_t handle;
	void *p;

	allocate(1000);
	cudaMallocAsync(&p, 4096, NULL);
	cudaFreeAsync(p, NULL);
	cudaMallocAsync(&p, much + 1, NULL);
	cudaMalloc(&p, much + 2);
	cudaHostAlloc(&p, (size_t)-4096, 0);
	cudaMallocManaged(&p, much + 4, 0);
	cuMemCreate(&handle, much + 5, NULL, 0);
	cudaFree(NULL);
	cudaFreeAsync(NULL, NULL);
}

/* Steps of optimizers count until the program tells its own. */
static void told(void)
{
	allocate(1000);
	tell("vramcast_optimizer_step");
	tell("vramcast_optimizer_step");
	allocate(2000);
	tell("vramcast_dump");
	allocate(3000);
	tell("vramcast_step");
	tell("vramcast_optimizer_step");
}

/* Each step keeps 64 MiB more. With STANDIN_LINGERS a signal is waited for. */
static void grows(void)
{
	for (int i = 0; i < 100; i++) {
		allocate(64 << 20);
		tell("vramcast_step");
		usleep(1000);
	}
	if (getenv("STANDIN_LINGERS"))
		sleep(5);
}

/* Host memory that is reported to a profiler, by who is not the CPU's allocator. */
static void shared(void)
{
	static char own[4096];

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(own, 4096, 0, 0, 0);
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(own, -4096, 0, 0, 0);
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(own, 0, 0, 0, 0);
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(NULL, 4096, 0, 0, 0);
	standin_profiled(1000);
}

/* More wrong pointers than can be an accident. */
static void shifted(void)
{
	for (int i = 0; i < 5; i++)
		allocate((size_t)(1000 + i));
}

/* Another allocator than PyTorch's own stands behind the symbol, and reports. */
extern _Atomic(void *) _ZN3c104cuda20CUDACachingAllocator9allocatorE;
static void *others_table[96], *others[1] = { others_table };

static void replace(void)
{
	for (int i = 0; i < 96; i++)
		others_table[i] = VC_FUNCTION(replace);
	_ZN3c104cuda20CUDACachingAllocator9allocatorE = others;
}

static void foreign(void)
{
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(others, 1000, 0, 0, 1);
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(others, -1000, 0, 0, 1);
	if (others[0] != others_table)
		printf("its table was replaced\n");
}

/* As a smart pointer frees it, whoever it is from. */
static void drop(void *p)
{
	void *self, **v = standin_vtable(&self), *(*f)(void *), (*deleter)(void *);

	*(void **)&f = v[slots->deleter];
	*(void **)&deleter = f(self);
	deleter(p);
}

/* ---- what an allocator that serves from a plan does beneath ---- */

/* Of the segments: bytes now, at most, of all times, given back. */
static void say_of(const char *when, int device)
{
	int64_t stats[STANDIN_STATS][3][4];
	void *self, **v = standin_vtable(&self), *(*read)(void *, void *, int);

	*(void **)&read = v[slots->stats];
	read(stats, self, device);
	printf("%s: %lld %lld %lld %lld of %lld blocks\n", when, (long long)stats[5][0][0],
	       (long long)stats[5][0][1], (long long)stats[5][0][2], (long long)stats[5][0][3],
	       (long long)stats[0][0][0]);
}

static void say_reserved(const char *when)
{
	say_of(when, 0);
}

static void emptied(void)
{
	void *self, **v = standin_vtable(&self), *(*raw)(void *, size_t), *p[3], *much;
	void (*give)(void *, void *), *kept = allocate(300000);

	*(void **)&raw = v[slots->raw_alloc];
	*(void **)&give = v[slots->raw_delete];
	for (int step = 0; step < 6; step++) {
		for (int i = 0; i < 3; i++)
			p[i] = raw(self, (size_t)(i + 1) * 1000000);
		use(p[1], 4);
		for (int i = 0; i < 3; i++)
			give(self, p[i]);
	}
	say_reserved("steps");
	say_of("another card", 1);
	call(slots->trim, 0, 0, 0, NULL);
	call(slots->trim, 0, 0, 0, NULL); /* events pass when they are asked for twice */
	say_reserved("emptied too early");
	drop(kept);
	call(slots->pool_begin, 0, 1, 2, NULL);
	call(slots->trim, 0, 0, 0, NULL);
	say_reserved("emptied in a scope");
	call(slots->pool_end, 0, 1, 2, NULL);
	call(slots->trim, 0, 0, 0, NULL);
	say_reserved("emptied");
	give(self, raw(self, 1000000));
	say_reserved("asked again");
	call(slots->trim, 0, 0, 0, NULL);
	for (size_t n = 1ull << 30; n >= 1 << 20; n /= 2)
		while (cudaMalloc(&much, n) == 0)
			;
	give(self, raw(self, 1000000));
	say_reserved("no room");
}

/* ---- what `record --pid` has a program do; nobody reads the journal meanwhile ---- */

static struct {
	int (*attach)(const char *, const char *, int), (*begin)(uint64_t);
	int (*segment)(int, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, int);
	int (*block)(int, uint64_t, uint64_t, uint64_t, uint64_t, int);
	void (*settings)(const char *), (*again)(void), (*detach)(void);
	uint64_t (*events)(void);
	void (*kernel)(const char *, uint64_t, uint64_t, uint32_t);
	int (*subscribe)(void **, void *, void *), (*unsubscribe)(void *);
	int (*buffers)(void *, void *);
} t;

static int collected;

static void ask(uint8_t **buffer, size_t *size, size_t *records)
{
	collected++;
	*buffer = malloc(4096);
	*size = 4096;
	*records = 0;
}

static void *symbol(const char *library, const char *name)
{
	void *h = dlopen(getenv(library), RTLD_NOW), *p = h ? dlsym(h, name) : NULL;

	if (!p)
		exit(3);
	return p;
}

static void find(void)
{
	*(void **)&t.attach = symbol("STANDIN_TRACER", "vramcast_attach");
	*(void **)&t.begin = symbol("STANDIN_TRACER", "vramcast_attach_begin");
	*(void **)&t.segment = symbol("STANDIN_TRACER", "vramcast_attach_segment");
	*(void **)&t.block = symbol("STANDIN_TRACER", "vramcast_attach_block");
	*(void **)&t.settings = symbol("STANDIN_TRACER", "vramcast_attach_settings");
	*(void **)&t.again = symbol("STANDIN_TRACER", "vramcast_attach_again");
	*(void **)&t.detach = symbol("STANDIN_TRACER", "vramcast_detach");
	*(void **)&t.events = symbol("STANDIN_TRACER", "vramcast_attach_events");
	*(void **)&t.kernel = symbol("VC_CUPTI", "standin_kernel");
	*(void **)&t.subscribe = symbol("VC_CUPTI", "cuptiSubscribe");
	*(void **)&t.unsubscribe = symbol("VC_CUPTI", "cuptiUnsubscribe");
	*(void **)&t.buffers = symbol("VC_CUPTI", "cuptiActivityRegisterCallbacks");
}

/* What its snapshot says: flags that are none of theirs are left out. */
static void describe(char *const *p, int n)
{
	const uint64_t stream[] = { 0, 0, 0, 0xabc006, 0 };

	t.again();
	t.segment(0, (uintptr_t)p[0], 20 << 20, 0, 3, 4, VC_EVF_SMALL | VC_EVF_LIVE);
	for (int i = 0; i < n; i++)
		t.block(0, (uintptr_t)p[i], (uint64_t)(i + 1) * 1000,
			((uint64_t)(i + 1) * 1000 + 511) / 512 * 512, stream[i],
			VC_EVF_LIVE | VC_EVF_SMALL);
	t.block(0, (uintptr_t)p[n - 1] + ((uint64_t)n * 1000 + 511) / 512 * 512, 0, 0, 0, 0);
	t.settings("max_split_size_mb:32");
}

static void window(const char *folder)
{
	char *p[8];
	void *handle;
	uint64_t before;

	for (int i = 0; i < 4; i++)
		p[i] = allocate((size_t)(i + 1) * 1000);
	use(p[0], 4); /* which nobody knows of them later */
	use(p[2], 4);
	use(p[3], 6);
	if (t.attach(folder, "device=cuda,stacks=off,kernels=on", 1) != 1)
		printf("not the card's memory\n");
	before = t.events();
	describe(p, 4);
	p[4] = allocate(5000);
	if (t.begin(before))
		printf("what happened meanwhile is not known\n");
	before = t.events();
	describe(p, 5);
	if (t.begin(before) != 1)
		printf("nothing happened meanwhile\n");
	use(p[2], 5);
	for (int i = 0; i < 4; i++)
		standin_free(p[i]);
	for (int i = 5; i < 8; i++)
		p[i] = allocate((size_t)(i + 1) * 1000);
	for (int i = 5; i < 8; i++)
		standin_free(p[i]);
	p[0] = allocate(1000); /* another block at the place of one of those */
	standin_event((void *)0xf001, (void *)0xabc004);
	standin_free(p[0]);
	standin_free(p[4]);
	t.kernel("a kernel", 1000, 2000, 7);
	if (t.subscribe(&handle, NULL, NULL) == 0)
		printf("CUPTI is not the recorder's\n");
	t.detach();
	standin_free(allocate(100));
	if (t.subscribe(&handle, VC_FUNCTION(find), NULL) || t.unsubscribe(handle))
		printf("CUPTI is not free\n");
	t.buffers(VC_FUNCTION(ask), NULL);
	t.kernel("another", 1000, 2000, 7);
	if (fresh_bytes)
		printf("it computes with what it has\n");
	if (collected)
		printf("kernels are still collected\n");
}

static void attached(void)
{
	find();
	window(getenv("STANDIN_FIRST"));
	window(getenv("STANDIN_SECOND"));
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } what[] = {
		{ "pools", pools }, { "fresh", fresh }, { "deferred", deferred },
		{ "waits", waits },
		{ "expandable", expandable }, { "beside", beside }, { "told", told },
		{ "grows", grows }, { "shared", shared }, { "shifted", shifted },
		{ "foreign", foreign },
		{ "attached", attached }, { "emptied", emptied } };
	const char *v = getenv("STANDIN_TORCH"), *word = argc > 1 ? argv[1] : "";

	slots = vc_torch_slots(v ? atoi(v) : 9);
	if (!strcmp(word, "foreign"))
		replace();
	if (strcmp(word, "shared") && _ZN3c104cuda28device_count_ensure_non_zeroEv() != 1)
		return 1;
	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++)
		if (!strcmp(word, what[i].name))
			what[i].run();
	return 0;
}
