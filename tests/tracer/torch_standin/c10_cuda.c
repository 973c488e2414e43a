/* SPDX-License-Identifier: Apache-2.0 */
/* c10_cuda.c - a stand-in for libc10_cuda.so: an object behind the real symbol whose vtable has the
 * shape of one version of PyTorch (STANDIN_TORCH: minor version), and an allocator that behaves as
 * the real one where the tracer looks: reports under its lock, segments from cudaMalloc, frees that
 * wait for the events of other streams, in a scope for its end, too. STANDIN_EXPANDABLE: segments
 * are mapped by functions of the driver, which it asks for by "name", by "version", or keeps in a
 * "table". STANDIN_SHIFT: what it returns is so many bytes behind what it reports. */
#include "tests/tracer/torch_standin/standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/torch.h"

enum {
	BLOCKS = 65536,
	SEGMENT = 20 << 20,
	SLOTS = 96,
	EVENTS_AT = 0x1000,
	DEVICE = 1 /* CUDA, 0 */
};
enum { FREE, LIVE, LATE, WAITS }; /* LATE: its events are recorded when no scope is left */
enum { USES = 4 };

struct block { uint64_t at, size, used_by[USES], event[USES]; int state, uses, waits; };

static struct {
	pthread_mutex_t lock;
	struct block block[BLOCKS];
	int n;
	uint64_t segment, left, allocated, reserved, events, mapped; /* mapped: bytes */
	int scopes, minor;
	int64_t made[2], freed[2], peak; /* blocks and bytes; bytes */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct object { void **vptr; };
static struct object object;
static void *table[2 + SLOTS];

static __thread int64_t current; /* id of the thread's current stream */

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaEventSynchronize(void *event);
int cudaGetDriverEntryPoint(const char *name, void **p, unsigned long long flags, void *found);
int cudaGetDriverEntryPointByVersion(const char *name, void **p, unsigned version,
				     unsigned long long flags, void *found);
int cudaMallocAsync(void **p, size_t n, void *stream);
int cudaFreeAsync(void *p, void *stream);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *p, int64_t n, size_t total,
							   size_t reserved, uint16_t device);
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t n, size_t total, size_t reserved,
							uint16_t device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *p, int64_t n, int64_t total,
							   int64_t reserved, uint16_t device);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t n, int64_t total,
							 int64_t reserved, uint16_t device);
int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);
struct standin_stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device);
void *_ZNK3c104cuda10CUDAStream6streamEv(const struct standin_stream *s);
extern _Atomic(void *) _ZN3c104cuda20CUDACachingAllocator9allocatorE;
_Atomic(void *) _ZN3c104cuda20CUDACachingAllocator9allocatorE;

struct standin_stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device)
{
	uint64_t index = device < 0 ? 0 : (uint64_t)device; /* -1: the current one */

	return (struct standin_stream){ index << 8 | DEVICE, current };
}

void *_ZNK3c104cuda10CUDAStream6streamEv(const struct standin_stream *s)
{
	return (void *)(uintptr_t)(s->id ? 0xabc000 + s->id : 0);
}

void standin_set_stream(int64_t id)
{
	current = id;
}

/* ---- the allocator; with the lock held ---- */

static void record_events(struct block *b)
{
	b->state = WAITS;
	b->waits = b->uses;
	for (int k = 0; k < b->uses; k++) {
		b->event[k] = EVENTS_AT + g.events++ % 60000;
		cudaEventRecord((void *)(uintptr_t)b->event[k],
				(void *)(uintptr_t)b->used_by[k]);
	}
}

static void process_events(void)
{
	for (int i = 0; i < g.n; i++)
		if (g.block[i].state == LATE && !g.scopes)
			record_events(&g.block[i]);
	for (int i = 0; i < g.n; i++) {
		struct block *b = &g.block[i];

		for (int k = 0; b->state == WAITS && k < b->uses; k++)
			if (b->event[k] && cudaEventQuery((void *)(uintptr_t)b->event[k]) == 0) {
				b->event[k] = 0;
				b->waits--;
			}
		if (b->state == WAITS && !b->waits)
			b->state = FREE;
	}
}

static struct block *find_free(uint64_t size)
{
	for (int i = 0; i < g.n; i++)
		if (g.block[i].state == FREE && g.block[i].size == size)
			return &g.block[i];
	return NULL;
}

/* Of the program, where it has one, as a pool may have an allocator of its own. */
void *standin_segment(size_t n) __attribute__((weak));

/* ---- expandable segments ---- */

static struct { /* as long as the table of 2.6, and some */
	void *first[5];
	int (*create)(uint64_t *, size_t, const void *, unsigned long long);
	void *second[5];
	int (*unmap)(uint64_t, size_t);
	void *third[11];
	int (*access)(uint64_t, size_t, const void *, size_t);
} driver;
void *_ZN3c104cuda9DriverAPI3getEv(void);

static const char *expandable(void)
{
	return getenv("STANDIN_EXPANDABLE");
}

static void ask_for(const char *name, void *function)
{
	void *h, *p = NULL;

	if (!strcmp(expandable(), "name")) {
		cudaGetDriverEntryPoint(name, &p, 0, NULL);
	} else if (!strcmp(expandable(), "version")) {
		cudaGetDriverEntryPointByVersion(name, &p, 12000, 0, NULL);
	} else {
		h = dlopen("libcuda.so.1", RTLD_NOW);
		p = h ? dlsym(h, name) : NULL;
	}
	memcpy(function, &p, sizeof(p));
}

static void ask_driver(void)
{
	if (!expandable() || driver.create)
		return;
	ask_for("cuMemCreate", &driver.create);
	ask_for("cuMemUnmap", &driver.unmap);
	ask_for("cuMemSetAccess", &driver.access);
}

void *_ZN3c104cuda9DriverAPI3getEv(void)
{
	ask_driver();
	return &driver;
}

/* A piece behind the last one; a peer may use it, too. */
static void *map(uint64_t size)
{
	const int own[] = { 1, 0, 3 }, peer[] = { 1, 1, 3 }; /* CUmemAccessDesc */
	uint64_t at = 0x400000000000 + g.mapped, handle;

	ask_driver();
	if (driver.create(&handle, size, NULL, 0) || driver.access(at, size, own, 1) ||
	    driver.access(at, size, peer, 1))
		return NULL;
	g.mapped += size;
	return (void *)(uintptr_t)at;
}

static struct block *carve(uint64_t size)
{
	void *p;

	if (g.left < size) {
		uint64_t want = size > SEGMENT ? size : SEGMENT;

		p = standin_segment ? standin_segment(want) : NULL;
		p = !p && expandable() ? map(want) : p;
		if (!p && (expandable() || cudaMalloc(&p, want) != 0))
			return NULL;
		g.segment = (uint64_t)(uintptr_t)p;
		g.left = want;
		g.reserved += want;
	}
	if (g.n == BLOCKS)
		return NULL;
	g.block[g.n] = (struct block){ .at = g.segment, .size = size };
	g.segment += size;
	g.left -= size;
	return &g.block[g.n++];
}

static int minor(void)
{
	return g.minor;
}

static void report(void *p, int64_t bytes)
{
	if (minor() <= 1)
		_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
			p, bytes, (int64_t)g.allocated, (int64_t)g.reserved, DEVICE);
	else
		_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(p, bytes, g.allocated,
								     g.reserved, DEVICE);
}

static void *take(size_t n)
{
	uint64_t size = (n + 511) & ~(uint64_t)511;
	struct block *b;
	void *p = NULL;

	if (!n)
		return NULL;
	pthread_mutex_lock(&g.lock);
	process_events();
	b = find_free(size);
	if (!b)
		b = carve(size);
	if (b) {
		b->state = LIVE;
		b->uses = 0;
		p = (void *)(uintptr_t)b->at;
		g.allocated += size;
		g.made[0]++;
		g.made[1] += (int64_t)size;
		g.peak = (int64_t)g.allocated > g.peak ? (int64_t)g.allocated : g.peak;
		report(p, (int64_t)size);
	} else if (minor() <= 1) {
		_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(
			(int64_t)size, (int64_t)g.allocated, (int64_t)g.reserved, DEVICE);
	} else {
		_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE((int64_t)size, g.allocated,
								    g.reserved, DEVICE);
	}
	pthread_mutex_unlock(&g.lock);
	return p;
}

void standin_free(void *p)
{
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < g.n; i++) {
		struct block *b = &g.block[i];

		if (b->at != (uintptr_t)p || b->state != LIVE)
			continue;
		b->state = !b->uses ? FREE : g.scopes ? LATE : WAITS;
		if (b->state == WAITS)
			record_events(b);
		g.allocated -= b->size;
		g.freed[0]++;
		g.freed[1] += (int64_t)b->size;
		report(p, -(int64_t)b->size);
		break;
	}
	pthread_mutex_unlock(&g.lock);
}

/* ---- what stands in the vtable ---- */

static struct standin_pointer allocate(void *self, size_t n)
{
	const char *shift = getenv("STANDIN_SHIFT");
	char *p = take(n);

	(void)self;
	p += p && shift ? atoi(shift) : 0;
	return (struct standin_pointer){ p, VC_FUNCTION(standin_free), p, DEVICE };
}

static void *raw_alloc(void *self, size_t n)
{
	(void)self;
	return take(n);
}

static void *raw_alloc_with_stream(void *self, size_t n, void *stream)
{
	(void)self;
	(void)stream;
	return take(n);
}

static void use(void *self, void *const *data, struct standin_stream s)
{
	(void)self;
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < g.n; i++) {
		struct block *b = &g.block[i];
		uint64_t handle = (uint64_t)(uintptr_t)_ZNK3c104cuda10CUDAStream6streamEv(&s);
		int k = 0;

		if (b->at != (uintptr_t)*data || b->state != LIVE)
			continue;
		while (k < b->uses && b->used_by[k] != handle)
			k++;
		if (k == b->uses && k < USES)
			b->used_by[b->uses++] = handle;
	}
	pthread_mutex_unlock(&g.lock);
}

static void raw_delete(void *self, void *p)
{
	(void)self;
	standin_free(p);
}

/* Scopes of all pools and devices are one here. */
static uint64_t pool_begin(void)
{
	pthread_mutex_lock(&g.lock);
	g.scopes++;
	pthread_mutex_unlock(&g.lock);
	return 0;
}

static uint64_t pool_end(void)
{
	pthread_mutex_lock(&g.lock);
	g.scopes -= g.scopes > 0;
	pthread_mutex_unlock(&g.lock);
	return 0;
}

/* Waits for all events, as to empty the cache does; what is mapped goes piece by piece. */
static uint64_t trim(void)
{
	int live = 0;

	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < g.n; i++) {
		struct block *b = &g.block[i];

		for (int k = 0; b->state == WAITS && k < b->uses; k++)
			if (b->event[k])
				cudaEventSynchronize((void *)(uintptr_t)b->event[k]);
		b->state = b->state == WAITS ? FREE : b->state;
		live += b->state != FREE;
	}
	for (uint64_t i = 1; !live && i <= (g.mapped + SEGMENT - 1) / SEGMENT; i++) {
		uint64_t at = i * SEGMENT < g.mapped ? i * SEGMENT : 0; /* the first one last */

		driver.unmap(0x400000000000 + at,
			     g.mapped - at < SEGMENT ? g.mapped - at : SEGMENT);
	}
	if (!live && g.mapped)
		g.n = 0, g.left = g.mapped = g.reserved = 0;
	pthread_mutex_unlock(&g.lock);
	return 0;
}

static void *deleter(void *self)
{
	(void)self;
	return VC_FUNCTION(standin_free);
}

/* DeviceStats: the numbers of blocks and the bytes of them, and no others. */
static void *stats(int64_t (*result)[3][4], void *self, int device)
{
	(void)self;
	(void)device;
	memset(result, 0, STANDIN_STATS * sizeof(*result));
	for (int k = 0; k < 2; k++) {
		int64_t *to = result[k ? 4 : 0][0];

		to[0] = g.made[k] - g.freed[k];
		to[1] = k ? g.peak : 0;
		to[2] = g.made[k];
		to[3] = g.freed[k];
	}
	return result;
}

static void reset_peaks(void *self, int device)
{
	(void)self;
	(void)device;
	g.peak = (int64_t)g.allocated;
}

/* Everything else: takes what it is given and answers 0. */
static uint64_t nothing(void)
{
	return 0;
}

int _ZN3c104cuda28device_count_ensure_non_zeroEv(void)
{
	return 1;
}

__attribute__((constructor)) static void load(void)
{
	const char *v = getenv("STANDIN_TORCH");
	const struct vc_torch_slots *s = vc_torch_slots(v ? atoi(v) : 9);

	g.minor = v ? atoi(v) : 9;
	for (int i = 0; i < SLOTS; i++)
		table[2 + i] = VC_FUNCTION(nothing);
	table[2 + 2] = VC_FUNCTION(allocate);
	table[2 + s->raw_alloc] = VC_FUNCTION(raw_alloc);
	table[2 + s->raw_alloc_with_stream] = VC_FUNCTION(raw_alloc_with_stream);
	table[2 + s->use] = VC_FUNCTION(use);
	table[2 + s->deleter] = VC_FUNCTION(deleter);
	table[2 + s->raw_delete] = VC_FUNCTION(raw_delete);
	table[2 + s->pool_begin] = VC_FUNCTION(pool_begin);
	table[2 + s->pool_end] = VC_FUNCTION(pool_end);
	table[2 + s->trim] = VC_FUNCTION(trim);
	table[2 + s->stats] = VC_FUNCTION(stats);
	table[2 + s->reset_peaks] = VC_FUNCTION(reset_peaks);
	object.vptr = table + 2;
	atomic_store(&_ZN3c104cuda20CUDACachingAllocator9allocatorE, &object);
}

/* ---- what a program would do through PyTorch ---- */

void **standin_vtable(void **self)
{
	*self = atomic_load(&_ZN3c104cuda20CUDACachingAllocator9allocatorE);
	return ((struct object *)*self)->vptr;
}

void *standin_allocate(size_t n)
{
	struct standin_pointer (*f)(void *, size_t);
	void *self, **v = standin_vtable(&self);

	*(void **)&f = v[2];
	return f(self, n).data;
}

/* An event of the program's own, by a library of PyTorch's. */
void standin_event(void *event, void *stream)
{
	if (cudaEventRecord(event, stream) != 0) /* no jump: that would make it its caller's */
		abort();
}

/* As the backend of that name: each tensor a call of the runtime's, from 2.14 on a second one
 * when the first was refused. */
void *standin_async(size_t n, void *stream)
{
	void *p = NULL;

	for (int i = 0; i < (minor() >= 14 ? 2 : 1); i++)
		if (cudaMallocAsync(&p, n, stream) == 0)
			return p;
	return NULL;
}

void standin_async_free(void *p, void *stream)
{
	if (cudaFreeAsync(p, stream) !=
	    0) /* PyTorch checks too: a jump would make it its caller's call */
		abort();
}

void set_old(const char *const *s) __asm__(STANDIN_SET "Ss");           /* up to 2.6 */
void set_new(const char *const *s) __asm__(STANDIN_SET STANDIN_STRING); /* 2.7 to 2.9 */
void parse(void *self, const char *const *s) __asm__(STANDIN_PARSE);    /* from 2.10 on, in c10.c */

void set_old(const char *const *s)
{
	standin_settings_seen = *s;
}

void set_new(const char *const *s)
{
	standin_settings_seen = *s;
}

void standin_settings(int minor, const char *text)
{
	const char *string[4] = {
		text }; /* a std::string begins with a pointer to its characters */

	if (minor < 7)
		set_old(string);
	else if (minor < 10)
		set_new(string);
	else
		parse(&object, string);
}
