/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_calls.c - segments: cudaMalloc and cudaFree, interposed, and the driver's mapping calls.
 *
 * Works where cudart is a shared library, as in PyTorch's own builds, and needs no CUPTI. Each call
 * is handed on to the very cudart its caller was linked with: a process may hold several. */
#define _GNU_SOURCE
#include "tracer/cuda_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tracer/cuda_device.h"
#include "tracer/marks.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/samples.h"
#include "tracer/torch.h"
#include "tracer/torch_wait.h"

typedef int cuda_error; /* cudaError_t, CUresult: 0 = success */

enum { CALLERS = 64, NO_MEMORY = 2 /* cudaErrorMemoryAllocation */ };

/* One call site of one function. A wrapper that ends in a jump leaves its own caller's address as
 * the site, so one site can stand for several functions: cudaFreeAsync that is cudaFree, for one.
 */
struct caller {
	_Atomic(const void *) site;
	const char *name; /* __func__ of the interposed function: compared as a pointer */
	void *real;
	uint32_t label; /* library that called, 0: PyTorch's allocator */
};

static struct {
	pthread_mutex_t lock;
	struct caller caller[CALLERS];
	_Atomic int watched;
	_Atomic int by_name; /* PyTorch asked for the driver's functions, and got ours */
	struct { void **at, *before; } slot[3]; /* of PyTorch's table that are replaced */
	cuda_error (*create)(uint64_t *, size_t, const void *, unsigned long long);
	cuda_error (*unmap)(uint64_t, size_t);
	cuda_error (*access)(uint64_t, size_t, const void *, size_t);
	_Atomic int segments; /* said that we have them */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread __attribute__((tls_model("initial-exec"))) struct {
	uint64_t at, size; /* being unmapped piece by piece */
	size_t refused;    /* by cudaMallocAsync, the call before */
	int depth; /* calls of the runtime we are in: what it calls itself is not the program's */
} self;

static bool watching(void)
{
	return !self.depth && vc_torch_watching();
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether two addresses lie in one library. */
static bool is_same(const void *a, const void *b)
{
	Dl_info of_a, of_b;

	return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

/* The function of that name which the library around `site` would have called without us. A library
 * that stands before the runtime as we do (torch_memory_saver) finds itself by its own handle. */
static struct caller find_real(const void *site, const char *name)
{
	struct caller c = { .real = NULL };
	struct link_map *map = NULL;
	Dl_info info;
	void *h;

	if (dladdr1(site, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
		h = dlopen(map->l_name && *map->l_name ? map->l_name : NULL,
			   RTLD_NOLOAD | RTLD_NOW);
		c.real = h ? dlsym(h, name) : NULL;
		if (strncmp(base_name(info.dli_fname), "libc10_cuda.so", 14) != 0)
			c.label = vc_names_put(base_name(info.dli_fname));
	}
	/* a handle of the main program finds us first */
	if (c.real && (is_same(c.real, VC_FUNCTION(is_same)) || is_same(c.real, site)))
		c.real = NULL;
	if (!c.real)
		c.real = dlsym(RTLD_NEXT, name);
	return c;
}

void *vc_cuda_real(const void *site, const char *name)
{
	return find_real(site, name).real;
}

/* *real becomes the function of that name for its caller, whose label is returned. */
static uint32_t resolve(void *real, const void *site, const char *name)
{
	struct caller found;

	for (int i = 0; i < CALLERS; i++) {
		const void *at = atomic_load_explicit(&g.caller[i].site, memory_order_acquire);

		if (at == site && g.caller[i].name == name) {
			memcpy(real, &g.caller[i].real, sizeof(void *));
			return g.caller[i].label;
		}
		if (!at)
			break;
	}
	found = find_real(site, name);
	memcpy(real, &found.real, sizeof(void *));
	pthread_mutex_lock(&g.lock);
	for (int i = 0; found.real && i < CALLERS; i++)
		if (!atomic_load(&g.caller[i].site)) {
			g.caller[i].name = name;
			g.caller[i].real = found.real;
			g.caller[i].label = found.label;
			atomic_store_explicit(&g.caller[i].site, site, memory_order_release);
			break;
		}
	pthread_mutex_unlock(&g.lock);
	return found.label;
}

#define CALLER(real) resolve(real, __builtin_return_address(0), __func__)
/* What the runtime calls itself meanwhile is not the program's. */
#define CALL(result, call) (self.depth++, (result) = (call), self.depth--)

static void put(uint8_t kind, uint64_t addr, uint64_t size, uint16_t device, uint32_t label)
{
	vc_record_put((struct vc_record){ .kind = kind, .addr = addr, .size = size, .extra = size,
					  .device = device, .text = label });
	if (!atomic_load_explicit(&g.segments, memory_order_relaxed)) {
		atomic_store(&g.segments, 1);
		vc_recorder_capability(VC_CAP_SEGMENTS, VC_HOW_RECORDED);
	}
}

void vc_cuda_settle(void)
{
	if (self.size)
		put(VC_EV_SEGMENT_UNMAP, self.at, self.size, vc_cuda_device(), 0);
	self.size = 0;
}

/* ---- the runtime ---- */

cuda_error cudaMalloc(void **p, size_t n);
cuda_error cudaFree(void *p);
cuda_error cudaMallocAsync(void **p, size_t n, void *stream);
cuda_error cudaFreeAsync(void *p, void *stream);
cuda_error cudaHostAlloc(void **p, size_t n, unsigned flags);
cuda_error cudaMallocHost(void **p, size_t n);
cuda_error cudaMallocManaged(void **p, size_t n, unsigned flags);
cuda_error cudaFreeHost(void *p);
cuda_error cudaHostRegister(void *p, size_t n, unsigned flags);
cuda_error cudaHostUnregister(void *p);
cuda_error cudaEventRecord(void *event, void *stream);
cuda_error cudaEventQuery(void *event);
cuda_error cudaEventSynchronize(void *event);
cuda_error cudaStreamBeginCapture(void *stream, int mode);
cuda_error cudaStreamEndCapture(void *stream, void *graph);
cuda_error cudaGetDriverEntryPoint(const char *name, void **p, unsigned long long flags,
				   void *found);
cuda_error cudaGetDriverEntryPointByVersion(const char *name, void **p, unsigned version,
					    unsigned long long flags, void *found);

bool vc_cuda_inside(void)
{
	return self.depth > 0 && vc_torch_watching();
}

/* What PyTorch's allocator has a library do for it (a memory saver before the runtime, the
 * allocator of a pool) makes its segments. */
static bool is_outside(uint32_t label)
{
	return label && !vc_torch_allocating();
}

VC_ENTRY cuda_error cudaMalloc(void **p, size_t n)
{
	cuda_error (*real)(void **, size_t), r;
	uint32_t label = CALLER(&real);

	CALL(r, real(p, n));
	if (r == 0 && watching()) {
		vc_cuda_settle();
		vc_cuda_sample_first();
		put(is_outside(label) ? VC_EV_OUTSIDE_ALLOC : VC_EV_SEGMENT_ALLOC,
		    (uint64_t)(uintptr_t)*p, n, vc_cuda_device(), label);
	} else if (r && watching()) {
		vc_marks_refusal("device", n);
	}
	return r;
}

/* Before the call: the next owner of the address must come later. */
VC_ENTRY cuda_error cudaFree(void *p)
{
	cuda_error (*real)(void *), r;
	uint32_t label = CALLER(&real);

	if (p && watching())
		put(is_outside(label) ? VC_EV_OUTSIDE_FREE : VC_EV_SEGMENT_FREE,
		    (uint64_t)(uintptr_t)p, 0, vc_cuda_device(), label);
	CALL(r, real(p));
	return r;
}

/* Under backend:cudaMallocAsync these calls are the tensors themselves, of the exact size. */
static void put_tensor(uint8_t kind, void *p, size_t n, void *stream)
{
	vc_record_put((struct vc_record){ .kind = kind, .flags = VC_RECF_DRIVER,
		.addr = (uint64_t)(uintptr_t)p, .size = n, .extra = n,
		.stream = (uint64_t)(uintptr_t)stream, .device = vc_cuda_device() });
}

/* PyTorch reports no out of memory under this backend. From 2.14 on it gives back what the pool has
 * and asks once more: the second refusal counts. */
static void put_refused(size_t n, void *stream)
{
	vc_marks_refusal("device", n);
	if (self.refused != n && vc_torch_minor() >= 14) {
		self.refused = n;
		return;
	}
	self.refused = 0;
	if (vc_record_put((struct vc_record){ .kind = VC_EV_OOM, .size = n,
			.addr = vc_cuda_free_bytes(), .stream = (uint64_t)(uintptr_t)stream,
			.device = vc_cuda_device() }))
		vc_cuda_sample();
}

VC_ENTRY cuda_error cudaMallocAsync(void **p, size_t n, void *stream)
{
	cuda_error (*real)(void **, size_t, void *), r;
	uint32_t label = CALLER(&real);

	CALL(r, real(p, n, stream));
	if (r == 0 && watching())
		vc_cuda_sample_first();
	self.refused = r ? self.refused : 0;
	if (r == 0 && watching() && !label)
		put_tensor(VC_EV_ALLOC, *p, n, stream);
	else if (r == NO_MEMORY && watching() && !label)
		put_refused(n, stream);
	else if (r == 0 && watching())
		put(VC_EV_OUTSIDE_ALLOC, (uint64_t)(uintptr_t)*p, n, vc_cuda_device(), label);
	else if (watching())
		vc_marks_refusal("device", n);
	return r;
}

VC_ENTRY cuda_error cudaFreeAsync(void *p, void *stream)
{
	cuda_error (*real)(void *, void *), r;
	uint32_t label = CALLER(&real);

	if (p && watching() && !label)
		put_tensor(VC_EV_FREE, p, 0, stream);
	else if (p && watching())
		put(VC_EV_OUTSIDE_FREE, (uint64_t)(uintptr_t)p, 0, vc_cuda_device(), label);
	CALL(r, real(p, stream));
	return r;
}

static const char pinned_text[] = VC_LABEL_PINNED,
		  registered_text[] = "registered host memory";

static void put_host(uint8_t kind, void *p, uint64_t size, const char *what)
{
	uint64_t at = (uint64_t)(uintptr_t)p;

	vc_record_put((struct vc_record){ .kind = kind, .addr = at, .size = size, .extra = size,
					  .reserved = VC_MEMORY_HOST, .device = vc_cuda_device(),
					  .text = vc_names_put(what) });
}

/* Pinned host memory: what was allocated, and the program's own that was registered. CUPTI's record
 * of the same call, where there is one, is cancelled by ours. */
static void pin(cuda_error r, void *p, size_t n, const char *what)
{
	if (r && watching() && what == pinned_text)
		vc_marks_refusal("pinned host", n);
	if (r || !watching() || !p)
		return;
	vc_cuda_pin((uint64_t)(uintptr_t)p, n);
	put_host(VC_EV_OUTSIDE_ALLOC, p, n, what);
}

static void unpin(void *p, const char *what)
{
	if (!watching() || !p)
		return;
	put_host(VC_EV_OUTSIDE_FREE, p, vc_cuda_unpin((uint64_t)(uintptr_t)p), what);
}

VC_ENTRY cuda_error cudaHostAlloc(void **p, size_t n, unsigned flags)
{
	cuda_error (*real)(void **, size_t, unsigned), r;

	CALLER(&real);
	CALL(r, real(p, n, flags));
	pin(r, r ? NULL : *p, n, pinned_text);
	return r;
}

VC_ENTRY cuda_error cudaMallocHost(void **p, size_t n)
{
	cuda_error (*real)(void **, size_t), r;

	CALLER(&real);
	CALL(r, real(p, n));
	pin(r, r ? NULL : *p, n, pinned_text);
	return r;
}

/* cudaFree gives it back. CUPTI's record is cancelled by ours. */
VC_ENTRY cuda_error cudaMallocManaged(void **p, size_t n, unsigned flags)
{
	cuda_error (*real)(void **, size_t, unsigned), r;

	CALLER(&real);
	CALL(r, real(p, n, flags));
	if (!r && watching())
		vc_record_put((struct vc_record){ .kind = VC_EV_OUTSIDE_ALLOC, .size = n,
			.addr = (uint64_t)(uintptr_t)*p, .extra = n, .reserved = VC_MEMORY_MANAGED,
			.device = vc_cuda_device(), .text = vc_names_put(VC_LABEL_MANAGED) });
	else if (r && watching())
		vc_marks_refusal("managed", n);
	return r;
}

VC_ENTRY cuda_error cudaFreeHost(void *p)
{
	cuda_error (*real)(void *), r;

	CALLER(&real);
	unpin(p, pinned_text);
	CALL(r, real(p));
	return r;
}

VC_ENTRY cuda_error cudaHostRegister(void *p, size_t n, unsigned flags)
{
	cuda_error (*real)(void *, size_t, unsigned), r;

	CALLER(&real);
	CALL(r, real(p, n, flags));
	pin(r, p, n, registered_text);
	return r;
}

VC_ENTRY cuda_error cudaHostUnregister(void *p)
{
	cuda_error (*real)(void *), r;

	CALLER(&real);
	unpin(p, registered_text);
	CALL(r, real(p));
	return r;
}

/* The allocator's events tell when a deferred free is through: torch_wait.c. */
VC_ENTRY cuda_error cudaEventRecord(void *event, void *stream)
{
	cuda_error (*real)(void *, void *), r;
	uint32_t label = CALLER(&real);

	r = real(event, stream);
	if (r == 0 && !label)
		vc_wait_recorded((uint64_t)(uintptr_t)event, (uint64_t)(uintptr_t)stream);
	return r;
}

static void passed(void *event)
{
	uint64_t block = vc_wait_passed((uint64_t)(uintptr_t)event);

	if (block)
		vc_record_put((struct vc_record){ .kind = VC_EV_FREE_DONE, .addr = block,
						  .device = vc_cuda_device() });
}

#define PASSED(name) \
	VC_ENTRY cuda_error name(void *event) \
	{ \
		cuda_error (*real)(void *), r; \
		uint32_t label = CALLER(&real); \
\
		r = real(event); \
		if (r == 0 && !label) \
			passed(event); \
		return r; \
	}
PASSED(cudaEventQuery)
PASSED(cudaEventSynchronize)

static void put_capture(uint8_t kind, void *stream)
{
	if (vc_torch_watching())
		vc_record_put((struct vc_record){ .kind = kind, .device = vc_cuda_device(),
						  .stream = (uint64_t)(uintptr_t)stream });
}

VC_ENTRY cuda_error cudaStreamBeginCapture(void *stream, int mode)
{
	cuda_error (*real)(void *, int), r;

	CALLER(&real);
	r = real(stream, mode);
	if (r == 0)
		put_capture(VC_EV_CAPTURE_BEGIN, stream);
	return r;
}

VC_ENTRY cuda_error cudaStreamEndCapture(void *stream, void *graph)
{
	cuda_error (*real)(void *, void *);

	CALLER(&real);
	put_capture(VC_EV_CAPTURE_END, stream);
	return real(stream, graph);
}

/* ---- the driver, as PyTorch's expandable segments call it ---- */

/* CUmemAccessDesc begins with a CUmemLocation { type, id }. A mapped range gets access once, as a
 * whole, for its own device; further calls are for peers. */
static cuda_error watch_access(uint64_t at, size_t size, const void *desc, size_t count)
{
	cuda_error r = g.access(at, size, desc, count);
	const int *location = desc;
	uint16_t device = vc_cuda_device();

	if (r == 0 && count && location[1] == device && vc_torch_allocating()) {
		vc_cuda_settle();
		vc_cuda_sample_first();
		put(VC_EV_SEGMENT_MAP, at, size, device, 0);
	}
	return r;
}

static cuda_error watch_unmap(uint64_t at, size_t size)
{
	if (self.size && at == self.at + self.size) {
		self.size += size;
	} else {
		vc_cuda_settle();
		self.at = at;
		self.size = size;
	}
	return g.unmap(at, size);
}

static cuda_error watch_create(uint64_t *handle, size_t size, const void *how,
			       unsigned long long flags)
{
	cuda_error r = g.create(handle, size, how, flags);

	if (r && watching())
		vc_marks_refusal("device", size);
	return r;
}

/* ---- the driver, as libraries that are linked with it call it ----
 *
 * The allocator of a pool (vLLM's sleep mode) and memory savers map the segments that PyTorch asks
 * them for. What they give back and map again at other times stays PyTorch's segment. Of ranges
 * that are none the reader of the journal knows nothing, and leaves them out. */

cuda_error cuMemCreate(uint64_t *handle, size_t size, const void *how, unsigned long long flags);
cuda_error cuMemSetAccess(uint64_t at, size_t size, const void *desc, size_t count);
cuda_error cuMemUnmap(uint64_t at, size_t size);
cuda_error cuMemAddressFree(uint64_t at, size_t size);

VC_ENTRY cuda_error cuMemCreate(uint64_t *handle, size_t size, const void *how,
				unsigned long long flags)
{
	cuda_error (*real)(uint64_t *, size_t, const void *, unsigned long long), r;

	CALLER(&real);
	r = real(handle, size, how, flags);
	if (r && watching())
		vc_marks_refusal("device", size);
	return r;
}

VC_ENTRY cuda_error cuMemSetAccess(uint64_t at, size_t size, const void *desc, size_t count)
{
	cuda_error (*real)(uint64_t, size_t, const void *, size_t), r;
	uint32_t label = CALLER(&real);
	const int *location = desc;

	r = real(at, size, desc, count);
	if (r == 0 && count && watching()) {
		vc_cuda_settle();
		vc_cuda_sample_first();
		put(vc_torch_allocating() ? VC_EV_SEGMENT_ALLOC : VC_EV_PAGES_IN, at, size,
		    (uint16_t)location[1], label);
	}
	return r;
}

VC_ENTRY cuda_error cuMemUnmap(uint64_t at, size_t size)
{
	cuda_error (*real)(uint64_t, size_t);
	uint32_t label = CALLER(&real);

	if (watching() && !vc_torch_allocating())
		put(VC_EV_PAGES_OUT, at, size, vc_cuda_device(), label);
	return real(at, size);
}

/* Before the call, and here: what was given back already is not unmapped once more. */
VC_ENTRY cuda_error cuMemAddressFree(uint64_t at, size_t size)
{
	cuda_error (*real)(uint64_t, size_t);
	uint32_t label = CALLER(&real);

	if (watching() && vc_torch_allocating())
		put(VC_EV_SEGMENT_FREE, at, size, vc_cuda_device(), label);
	return real(at, size);
}

/* Where PyTorch gets the functions one by one: from 2.7 on. */
static void replace(const char *name, void **p)
{
	if (strcmp(name, "cuMemCreate") == 0) {
		*(void **)&g.create = *p;
		*p = VC_FUNCTION(watch_create);
	} else if (strcmp(name, "cuMemUnmap") == 0) {
		*(void **)&g.unmap = *p;
		*p = VC_FUNCTION(watch_unmap);
	} else if (strcmp(name, "cuMemSetAccess") == 0) {
		*(void **)&g.access = *p;
		*p = VC_FUNCTION(watch_access);
	}
}

VC_ENTRY cuda_error cudaGetDriverEntryPoint(const char *name, void **p, unsigned long long flags,
					    void *found)
{
	cuda_error (*real)(const char *, void **, unsigned long long, void *), r;
	uint32_t label = CALLER(&real);

	r = real(name, p, flags, found);
	if (r == 0 && *p && !label) {
		replace(name, p);
		atomic_store(&g.by_name, 1);
	}
	return r;
}

VC_ENTRY cuda_error cudaGetDriverEntryPointByVersion(const char *name, void **p, unsigned version,
						     unsigned long long flags, void *found)
{
	cuda_error (*real)(const char *, void **, unsigned, unsigned long long, void *), r;
	uint32_t label = CALLER(&real);

	r = real(name, p, version, flags, found);
	if (r == 0 && *p && !label) {
		replace(name, p);
		atomic_store(&g.by_name, 1);
	}
	return r;
}

/* Up to 2.6 PyTorch asks dlsym and keeps a struct of pointers: those are found by value. */
void vc_cuda_watch_driver(void)
{
	static const char *const names[] = { "cuMemUnmap", "cuMemSetAccess", "cuMemCreate" };
	void *h, **table, *(*get)(void);

	if (atomic_exchange(&g.watched, 1) || atomic_load(&g.by_name))
		return;
	*(void **)&get = vc_torch_symbol("libc10_cuda.so", "_ZN3c104cuda9DriverAPI3getEv");
	h = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	if (!h || !get)
		return;
	table = get();
	for (int k = 0; k < 3; k++)
		for (int i = 0; table && i < 24; i++) /* 2.1 to 2.6 hold 10 to 20 pointers */
			if (table[i] && table[i] == dlsym(h, names[k])) {
				g.slot[k].at = &table[i];
				g.slot[k].before = table[i];
				replace(names[k], &table[i]);
				break;
			}
}

void vc_cuda_unwatch_driver(void)
{
	for (int k = 0; k < 3; k++)
		if (g.slot[k].at)
			*g.slot[k].at = g.slot[k].before;
	memset(g.slot, 0, sizeof(g.slot));
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < CALLERS; i++) /* their names were of another journal */
		atomic_store(&g.caller[i].site, NULL);
	pthread_mutex_unlock(&g.lock);
	atomic_store(&g.watched, 0);
	atomic_store(&g.segments, 0);
}
