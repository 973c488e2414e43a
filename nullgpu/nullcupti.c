/* SPDX-License-Identifier: Apache-2.0 */
/* nullcupti.c - libcupti: activity records and callbacks for what happens on the null device.
 *
 * Times are those of the device clock, so they are modelled and the same in every run; a client
 * that registers a clock of its own gets them shifted to it. Records have the layouts of
 * CUPTI 12.8 and 13.0 (sizes and offsets from their cupti_activity.h). As in the real library
 * full buffers are handed over by a thread of its own, flushes by the caller. */
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#ifndef VC_CUDA_MAJOR
#define VC_CUDA_MAJOR 12
#endif

enum { E_INVALID = 1, E_NO_MORE = 12, E_BUSY = 39 }; /* CUptiResult */
enum { K_COPY = 1, K_SET = 2, K_KERNEL = 10, K_KERNEL_SERIAL = 3, K_MEMORY = 49, K_POOL = 50,
       KINDS = 128 };
enum { D_DRIVER = 1, D_RUNTIME = 2, D_RESOURCE = 3, DOMAINS = 8, CALLBACKS = 1024 };
enum { QUEUE = 64, NAMES = 4096 };

typedef void request_fn(uint8_t **buffer, size_t *size, size_t *records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);
typedef void callback_fn(void *user, int domain, uint32_t id, const void *data);
typedef uint64_t clock_fn(void);

struct buffer {
	uint8_t *at;
	size_t size, used;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	request_fn *request;
	complete_fn *complete;
	pid_t pid; /* of the process that these are in */
	clock_fn *clock;
	int64_t shift;            /* the client's clock less ours, in its own ticks */
	double rate;              /* ticks of the client's clock in a nanosecond; 0: one */
	callback_fn *callback;
	void *user;
	bool kind[KINDS];
	bool wanted[DOMAINS][CALLBACKS];
	struct buffer now, full[QUEUE];
	unsigned n_full, handing; /* waiting; in the hands of the client */
	bool has_worker;
	size_t dropped;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- record layouts ---- */

struct kernel { /* CUpti_ActivityKernel9 (208 bytes), Kernel10 (216) */
	uint32_t kind;
	uint8_t cache[4];
	uint32_t carveout;
	uint16_t registers;
	uint16_t unused0;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_thread, local_total, correlation;
	int64_t grid_id;
	const char *name;
	uint64_t unused1[VC_CUDA_MAJOR >= 13 ? 13 : 12];
};
_Static_assert(offsetof(struct kernel, start) == 16, "CUpti_ActivityKernel9.start");
_Static_assert(offsetof(struct kernel, correlation) == 92, "CUpti_ActivityKernel9.correlationId");
_Static_assert(offsetof(struct kernel, name) == 104, "CUpti_ActivityKernel9.name");
_Static_assert(sizeof(struct kernel) == (VC_CUDA_MAJOR >= 13 ? 216 : 208), "CUpti_ActivityKernel9");

struct copy { /* CUpti_ActivityMemcpy6, 96 bytes */
	uint32_t kind;
	uint8_t direction, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint64_t unused[6];
};
_Static_assert(offsetof(struct copy, correlation) == 44 && sizeof(struct copy) == 96,
	       "CUpti_ActivityMemcpy6");

struct set { /* CUpti_ActivityMemset4, 88 bytes */
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint64_t unused[5];
};
_Static_assert(sizeof(struct set) == 88, "CUpti_ActivityMemset4");

struct memory { /* CUpti_ActivityMemory4, 128 bytes */
	uint32_t kind, operation, memory, correlation;
	uint64_t address, bytes, timestamp, pc;
	uint32_t process, device, context, stream;
	const char *name;
	uint32_t is_async, unused0;
	uint32_t pool_type, unused1;
	uint64_t pool, threshold, size, used;
	const char *source;
};
_Static_assert(offsetof(struct memory, name) == 64 && offsetof(struct memory, used) == 112 &&
	       sizeof(struct memory) == 128, "CUpti_ActivityMemory4");

struct pool { /* CUpti_ActivityMemoryPool2 (72 bytes), Pool3 (80) */
	uint32_t kind, operation, type, correlation, process, device;
	uint64_t keep, address, size, threshold, timestamp, used;
#if VC_CUDA_MAJOR >= 13
	uint64_t managed;
#endif
};
_Static_assert(offsetof(struct pool, used) == 64 &&
	       sizeof(struct pool) == (VC_CUDA_MAJOR >= 13 ? 80 : 72), "CUpti_ActivityMemoryPool2");

struct call { /* CUpti_CallbackData */
	int site, unused;
	const char *function;
	const void *params;
	const int *result;
	const char *symbol;
	void *context;
	uint32_t context_uid;
	uint64_t *data;
	uint32_t correlation;
};

static size_t size_of(const void *record)
{
	uint32_t kind;
	memcpy(&kind, record, sizeof kind);
	return kind == K_KERNEL || kind == K_KERNEL_SERIAL ? sizeof(struct kernel)
		: kind == K_COPY ? sizeof(struct copy)
		: kind == K_SET ? sizeof(struct set)
		: kind == K_POOL ? sizeof(struct pool) : sizeof(struct memory);
}

/* ---- buffers ---- */

static void hand_over(struct buffer b)
{
	if (b.at)
		g.complete(NULL, 0, b.at, b.size, b.used);
}

/* Whether runs are to be alike to the byte: then records wait for a forced flush as long as there
 * is room, because when a thread or a timer comes by is another moment in every run. */
static bool is_repeatable(void)
{
	const char *s = getenv("VRAMCAST_NULL_CLOCK");
	return s && strcmp(s, "device") == 0;
}

/* Called with the lock held, which it gives up while the client reads. */
static void hand_over_first(void)
{
	struct buffer b = g.full[0];
	memmove(g.full, g.full + 1, --g.n_full * sizeof *g.full);
	g.handing++;
	pthread_mutex_unlock(&g.lock);
	hand_over(b);
	pthread_mutex_lock(&g.lock);
	g.handing--;
	pthread_cond_broadcast(&g.changed);
}

static void *work(void *unused)
{
	unsigned enough = is_repeatable() ? QUEUE / 2 : 1;
	pthread_mutex_lock(&g.lock);
	for (;;) {
		while (g.n_full < enough)
			pthread_cond_wait(&g.changed, &g.lock);
		hand_over_first();
	}
	return unused;
}

static void start_worker(void)
{
	pthread_t t;
	if (!g.has_worker && pthread_create(&t, NULL, work, NULL) == 0) {
		pthread_detach(t);
		g.has_worker = true;
	}
}

/* Called with the lock held; room for one record or NULL (counted as dropped). */
static void *take_room(size_t size)
{
	if (g.now.at && g.now.used + size > g.now.size) {
		if (g.n_full == QUEUE) {
			g.dropped++;
			return NULL;
		}
		g.full[g.n_full++] = g.now;
		g.now = (struct buffer){ 0 };
		pthread_cond_broadcast(&g.changed);
	}
	if (!g.now.at) {
		size_t records = 0;
		g.request(&g.now.at, &g.now.size, &records);
		g.now.used = 0;
	}
	if (!g.now.at || g.now.used + size > g.now.size) {
		g.dropped++;
		return NULL;
	}
	void *p = g.now.at + g.now.used;
	g.now.used += size;
	return p;
}

static void put(const void *record)
{
	size_t size = size_of(record);
	pthread_mutex_lock(&g.lock);
	void *p = g.request ? take_room(size) : NULL;
	if (p)
		memcpy(p, record, size);
	pthread_mutex_unlock(&g.lock);
}

/* ---- what the device tells ---- */

/* C++ names as people read them; the demangler comes with the program's C++ library. */
static const char *readable(const char *mangled)
{
	static struct { const char *mangled, *name; } cache[NAMES];
	static char *(*demangle)(const char *, char *, size_t *, int *);
	size_t i = ((uintptr_t)mangled >> 4) % NAMES;
	if (cache[i].mangled == mangled)
		return cache[i].name;
	if (!demangle)
		*(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	int status = -1;
	char *name = demangle && mangled[0] == '_' ? demangle(mangled, NULL, NULL, &status) : NULL;
	if (!cache[i].mangled) { /* a name once given out stays valid: the slot is never reused */
		cache[i].mangled = mangled;
		cache[i].name = name ? name : mangled;
		return cache[i].name;
	}
	free(name);
	return mangled;
}

static uint64_t client_clock(void)
{
	struct timespec now;
	if (g.clock)
		return g.clock();
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* CUPTI stamps with the wall clock, or one that the client gives it: our times are shifted there,
 * and again whenever one would lie before the moment it is told, which no card can do. A client
 * that takes its own times from the device clock asks vc_null_span for those of a record. */
static uint64_t stamp(uint64_t t)
{
	return (g.rate ? (uint64_t)((double)t * g.rate) : t) + (uint64_t)g.shift;
}

static void set_clock(uint64_t t)
{
	int64_t behind = (int64_t)(client_clock() - stamp(t));
	if (behind > 0 || !g.shift)
		g.shift += behind;
}

/* A processor's time stamp counter does not count nanoseconds. */
static void measure_rate(void)
{
	struct timespec a, b;
	g.rate = 0;
	if (!g.clock)
		return;
	clock_gettime(CLOCK_MONOTONIC, &a);
	uint64_t from = g.clock();
	nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	uint64_t to = g.clock();
	double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	double rate = (double)(to - from) / ns;
	if (rate > 0 && (rate < 0.99 || rate > 1.01))
		g.rate = rate;
}

static void put_kernel(const struct vc_null_activity *a)
{
	struct kernel k = { .kind = g.kind[K_KERNEL] ? K_KERNEL : K_KERNEL_SERIAL,
		.start = stamp(a->start), .end = stamp(a->end), .completed = stamp(a->end),
		.device = a->device, .context = 1, .stream = a->stream,
		.correlation = a->correlation, .grid_id = a->correlation,
		.dynamic_shared = (int32_t)a->shared };
	pthread_mutex_lock(&g.lock);
	k.name = readable(a->name);
	pthread_mutex_unlock(&g.lock);
	memcpy(k.grid, a->grid, sizeof k.grid);
	memcpy(k.block, a->block, sizeof k.block);
	put(&k);
}

static void on_activity(const struct vc_null_activity *a)
{
	uint64_t held = a->pool ? vc_null_used((int)a->device) - vc_null_card()->context : 0;
	set_clock(a->start);
	if (a->kind == VC_NULL_KERNEL && (g.kind[K_KERNEL] || g.kind[K_KERNEL_SERIAL])) {
		put_kernel(a);
	} else if (a->kind == VC_NULL_COPY && g.kind[K_COPY]) {
		put(&(struct copy){ .kind = K_COPY, .direction = (uint8_t)a->memory,
			.bytes = a->size, .start = stamp(a->start), .end = stamp(a->end),
			.device = a->device, .context = 1, .stream = a->stream,
			.correlation = a->correlation });
	} else if (a->kind == VC_NULL_SET && g.kind[K_SET]) {
		put(&(struct set){ .kind = K_SET, .bytes = a->size, .start = stamp(a->start),
			.end = stamp(a->end), .device = a->device, .context = 1,
			.stream = a->stream, .correlation = a->correlation });
	} else if ((a->kind == VC_NULL_ALLOC || a->kind == VC_NULL_FREE) && g.kind[K_MEMORY]) {
		put(&(struct memory){ .kind = K_MEMORY,
				     .operation = a->kind == VC_NULL_ALLOC ? 1 : 2,
				     .memory = a->memory == 1 ? 2 : /* pinned, */
					       a->memory == 3 ? 5 : 3, /* managed, device */
				     .correlation = a->correlation, .address = a->address,
				     .bytes = a->size, .timestamp = stamp(a->start),
				     .process = (uint32_t)getpid(), .device = a->device,
				     .context = 1, .stream = UINT32_MAX, .is_async = a->pool != 0,
				     .pool_type = a->pool != 0, .pool = a->pool,
				     .size = a->pool ? held : 0,
				     .used = a->pool ? held : 0 });
	} else if (a->kind == VC_NULL_POOL && g.kind[K_POOL]) {
		put(&(struct pool){ .kind = K_POOL, .operation = (uint32_t)a->memory, .type = 1,
			.correlation = a->correlation, .process = (uint32_t)getpid(),
			.device = a->device, .keep = a->keep, .address = a->pool ? a->pool :
			a->address, .size = a->size, .used = a->size,
			.timestamp = stamp(a->start) });
	}
}

static void on_call(int domain, int id, int site, const char *name, const void *params,
		    const int *result, uint32_t correlation)
{
	if (!g.callback || domain >= DOMAINS || id >= CALLBACKS || !g.wanted[domain][id])
		return;
	if (domain == D_RESOURCE) {
		g.callback(g.user, domain, (uint32_t)id, params);
		return;
	}
	uint64_t data = 0;
	g.callback(g.user, domain, (uint32_t)id, &(struct call){ .site = site, .function = name,
		.params = params, .result = result, .context_uid = 1, .data = &data,
		.correlation = correlation });
}

/* ---- versions, errors, clocks ---- */

VC_API(int, cuptiGetVersion, unsigned *v)
{
	*v = VC_CUDA_MAJOR >= 13 ? 130000 : 26; /* CUPTI_API_VERSION of 13.0 and 12.8 */
	return 0;
}

VC_API(int, cuptiGetResultString, int e, const char **s)
{
	*s = e == 0         ? "CUPTI_SUCCESS" :
	     e == E_INVALID ? "CUPTI_ERROR_INVALID_PARAMETER" :
	     e == E_NO_MORE ? "CUPTI_ERROR_MAX_LIMIT_REACHED" :
	     e == E_BUSY    ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" :
			      "CUPTI_ERROR_UNKNOWN";
	return 0;
}

VC_API_DOES(cuptiGetTimestamp, (uint64_t *t), *t = stamp(vc_null_clock()))

VC_API(int, cuptiActivityRegisterTimestampCallback, clock_fn *clock)
{
	g.clock = clock;
	g.shift = 0;
	measure_rate();
	set_clock(vc_null_clock());
	return 0;
}

/* ---- activity ---- */

VC_API(int, cuptiActivityRegisterCallbacks, request_fn *request, complete_fn *complete)
{
	if (!request || !complete)
		return E_INVALID;
	pthread_mutex_lock(&g.lock);
	g.request = request;
	g.complete = complete;
	g.pid = getpid();
	start_worker();
	pthread_mutex_unlock(&g.lock);
	return 0;
}

static int set_kind(int kind, bool on)
{
	if (kind < 0 || kind >= KINDS)
		return E_INVALID;
	g.kind[kind] = on;
	bool any = g.kind[K_KERNEL] || g.kind[K_KERNEL_SERIAL] || g.kind[K_COPY] || g.kind[K_SET] ||
		g.kind[K_MEMORY] || g.kind[K_POOL];
	vc_null_listen(any ? on_activity : NULL);
	return 0;
}

VC_API_RETURNS(cuptiActivityEnable, (int kind), set_kind(kind, true))
VC_API_RETURNS(cuptiActivityDisable, (int kind), set_kind(kind, false))
VC_API_RETURNS(cuptiActivityEnableContext, (void *context, int kind), set_kind(kind, true))

VC_API(int, cuptiActivityFlushAll, uint32_t flag)
{
	pthread_mutex_lock(&g.lock);
	while (g.n_full)
		hand_over_first();
	while (g.handing)
		pthread_cond_wait(&g.changed, &g.lock);
	struct buffer b = g.now;
	g.now = (struct buffer){ 0 };
	pthread_mutex_unlock(&g.lock);
	hand_over(b);
	return 0;
}

VC_API(int, cuptiActivityGetNextRecord, uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + size_of(*record) : buffer;
	if (next >= buffer + valid)
		return E_NO_MORE;
	*record = next;
	return 0;
}

VC_API(int, cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *n)
{
	pthread_mutex_lock(&g.lock);
	*n = g.dropped;
	g.dropped = 0;
	pthread_mutex_unlock(&g.lock);
	return 0;
}

/* ---- callbacks ---- */

VC_API(int, cuptiSubscribe, void **subscriber, callback_fn *callback, void *user)
{
	if (g.callback)
		return E_BUSY;
	g.callback = callback;
	g.user = user;
	*subscriber = &g;
	vc_null_listen_api(on_call);
	return 0;
}

VC_API(int, cuptiUnsubscribe, void *subscriber)
{
	vc_null_listen_api(NULL);
	g.callback = NULL;
	memset(g.wanted, 0, sizeof g.wanted);
	return 0;
}

VC_API(int, cuptiEnableCallback, uint32_t on, void *subscriber, int domain, uint32_t id)
{
	if (domain < 0 || domain >= DOMAINS)
		return E_INVALID;
	if (id < CALLBACKS)
		g.wanted[domain][id] = on != 0;
	return 0;
}

VC_API(int, cuptiEnableDomain, uint32_t on, void *subscriber, int domain)
{
	if (domain < 0 || domain >= DOMAINS)
		return E_INVALID;
	memset(g.wanted[domain], on != 0, sizeof g.wanted[domain]);
	return 0;
}

/* Streams carry the id that records show. */
VC_API_DOES(cuptiGetStreamIdEx, (void *context, void *stream, uint8_t per_thread, uint32_t *id),
	*id = vc_null_stream(stream)->id)
VC_API_DOES(cuptiGetDeviceId, (void *context, uint32_t *device),
	*device = (uint32_t)vc_null_current())

/* A process that ends without exit, as workers and forked children do, calls nobody who would
 * flush. Never in another one that shares this memory (between vfork and exec). */
VC_SHARED void _exit(int status) __attribute__((noreturn));

void _exit(int status)
{
	void (*next)(int);
	if (g.request && g.pid == getpid() && pthread_mutex_trylock(&g.lock) == 0) {
		pthread_mutex_unlock(&g.lock);
		cuptiActivityFlushAll(0);
	}
	*(void **)&next = dlsym(RTLD_NEXT, "_exit");
	if (next)
		next(status);
	__builtin_trap();
}

/* A forked child has no worker, and the buffers belong to the parent. */
static void forget(void)
{
	pthread_mutex_init(&g.lock, NULL);
	pthread_cond_init(&g.changed, NULL);
	g.now = (struct buffer){ 0 };
	g.n_full = g.handing = 0;
	g.has_worker = false;
	g.request = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}
