/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_calls.c - segments: cudaMalloc and cudaFree, interposed, and the driver's mapping calls.
 *
 * Works where cudart is a shared library, as in PyTorch's own builds, and needs no CUPTI. Each call
 * is handed on to the very cudart its caller was linked with: a process may hold several. */
#define _GNU_SOURCE
#include "tracer/cuda_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/marks.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"
#include "tracer/torch_wait.h"

typedef int cuda_error; /* cudaError_t, CUresult: 0 = success */

enum { CALLERS = 64, PINNED = 4096, NO_MEMORY = 2 /* cudaErrorMemoryAllocation */ };

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
	cuda_error (*create)(uint64_t *, size_t, const void *, unsigned long long);
	cuda_error (*unmap)(uint64_t, size_t);
	cuda_error (*access)(uint64_t, size_t, const void *, size_t);
	_Atomic int segments; /* said that we have them */
	_Atomic uint64_t sampled; /* when last */
	struct {
		uint64_t at, size;
	} pinned[PINNED]; /* host memory: a free does not say its size */
	uint64_t pinned_bytes;
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

static bool is_ours(const void *p)
{
	Dl_info theirs, ours;

	return dladdr(p, &theirs) && dladdr(VC_FUNCTION(is_ours), &ours) &&
	       theirs.dli_fbase == ours.dli_fbase;
}

/* The function of that name which the library around `site` would have called without us. */
static struct caller find_real(const void *site, const char *name)
{
	struct caller c = { 0 };
	struct link_map *map = NULL;
	Dl_info info;
	void *h;

	if (dladdr1(site, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
		h = dlopen(map->l_name && *map->l_name ? map->l_name : NULL,
			   RTLD_NOLOAD | RTLD_NOW);
		c.real = h ? dlsym(h, name) : NULL;
		if (strncmp(base_name(info.dli_fname), "libc10_cuda.so", 14) != 0)
			c.label = vc_marks_name(base_name(info.dli_fname),
						strlen(base_name(info.dli_fname)));
	}
	if (c.real && is_ours(c.real)) /* a handle of the main program finds us first */
		c.real = NULL;
	if (!c.real)
		c.real = dlsym(RTLD_NEXT, name);
	return c;
}

void *vc_cuda_real(const void *site, const char *name)
{
	return find_real(site, name).real;
}

static struct caller resolve(const void *site, const char *name)
{
	struct caller found;

	for (int i = 0; i < CALLERS; i++) {
		const void *at = atomic_load_explicit(&g.caller[i].site, memory_order_acquire);

		if (at == site && g.caller[i].name == name)
			return g.caller[i];
		if (!at)
			break;
	}
	found = find_real(site, name);
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
	return found;
}

static void put_raw(uint8_t kind, uint64_t addr, uint64_t size, uint16_t device, uint32_t label)
{
	struct vc_record *r = vc_record_begin();

	if (!r)
		return;
	*r = (struct vc_record){ .kind = kind, .addr = addr, .size = size, .extra = size,
				 .device = device, .text = label, .time_ns = vc_clock_ns() };
	vc_record_commit(r);
}

static void put(uint8_t kind, uint64_t addr, uint64_t size, uint16_t device, uint32_t label)
{
	put_raw(kind, addr, size, device, label);
	if (!atomic_load_explicit(&g.segments, memory_order_relaxed)) {
		atomic_store(&g.segments, 1);
		vc_recorder_capability(VC_CAP_SEGMENTS, VC_HOW_RECORDED);
	}
}

uint16_t vc_cuda_device(void)
{
	static _Atomic(void *) cached;
	cuda_error (*get)(int *);
	int device = 0;

	*(void **)&get = vc_torch_symbol_once(&cached, "libc10_cuda.so", "cudaGetDevice");
	return get && get(&device) == 0 ? (uint16_t)device : 0;
}

static bool memory_info(uint64_t *available, uint64_t *total)
{
	cuda_error (*info)(size_t *, size_t *);
	size_t a, t;

	*(void **)&info = vc_torch_symbol("libc10_cuda.so", "cudaMemGetInfo");
	if (!info || info(&a, &t) != 0)
		return false;
	*available = a;
	*total = t;
	return true;
}

uint64_t vc_cuda_free_bytes(void)
{
	uint64_t available, total;

	return memory_info(&available, &total) ? available : 0;
}

static uint64_t resident_bytes(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *second = n > 0 ? strchr(text, ' ') : NULL;

	if (fd >= 0)
		close(fd);
	return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void vc_cuda_sample(void)
{
	uint64_t available, total, pinned;

	if (!memory_info(&available, &total))
		return;
	pthread_mutex_lock(&g.lock);
	pinned = g.pinned_bytes;
	pthread_mutex_unlock(&g.lock);
	vc_device_fact(vc_cuda_device(), total);
	put_raw(VC_EV_DEVICE_SAMPLE, available, total, vc_cuda_device(), 0);
	if (!vc_clock_is_null()) /* would be another figure in every dry run */
		vc_marks_value(VC_MARK_INSTANT, vc_marks_name("resident memory", 15),
			       resident_bytes());
	if (pinned)
		vc_marks_value(VC_MARK_INSTANT, vc_marks_name("pinned memory", 13), pinned);
	vc_recorder_capability(VC_CAP_DEVICE_SAMPLES, VC_HOW_RECORDED);
}

void vc_cuda_sample_sometimes(void)
{
	uint64_t now, last = atomic_load(&g.sampled);

	if (!vc_torch_watching() || !last)
		return; /* asking the driver would create a context that the program did not */
	now = vc_clock_ns();
	if (now - last > 200000000u && atomic_compare_exchange_strong(&g.sampled, &last, now))
		vc_cuda_sample();
}

void vc_cuda_settle(void)
{
	if (self.size)
		put(VC_EV_SEGMENT_UNMAP, self.at, self.size, vc_cuda_device(), 0);
	self.size = 0;
}

/* When the context is new: what it and other processes hold before the first segment counts. */
static void sample_first(void)
{
	uint64_t never = 0;

	if (atomic_compare_exchange_strong(&g.sampled, &never, vc_clock_ns() + 1))
		vc_cuda_sample();
}

/* ---- the runtime ---- */

/* An entry point that takes the runtime's place: no header of CUDA declares it. */
#define ENTRY(name, ...) \
	cuda_error name(__VA_ARGS__); \
	VC_ENTRY cuda_error name(__VA_ARGS__)

/* The function that the caller of this entry point would have reached, as `real`. */
#define REAL(...) \
	struct caller c = resolve(__builtin_return_address(0), __func__); \
	cuda_error (*real)(__VA_ARGS__); \
	*(void **)&real = c.real

static void put_refusal(const char *what, size_t n)
{
	char text[80];
	int k = snprintf(text, sizeof(text), "%s allocation of %zu bytes refused", what, n);

	vc_marks_put(VC_MARK_INSTANT, vc_marks_name(text, (size_t)k));
}

bool vc_cuda_inside(void)
{
	return self.depth > 0 && vc_torch_watching();
}

ENTRY(cudaMalloc, void **p, size_t n)
{
	REAL(void **, size_t);
	self.depth++;
	cuda_error r = real(p, n);
	self.depth--;
	if (r == 0 && watching()) {
		vc_cuda_settle();
		sample_first();
		put(c.label ? VC_EV_OUTSIDE_ALLOC : VC_EV_SEGMENT_ALLOC, (uint64_t)(uintptr_t)*p, n,
		    vc_cuda_device(), c.label);
	} else if (r && watching()) {
		put_refusal("device", n);
	}
	return r;
}

/* Before the call: the next owner of the address must come later. */
ENTRY(cudaFree, void *p)
{
	REAL(void *);
	if (p && watching())
		put(c.label ? VC_EV_OUTSIDE_FREE : VC_EV_SEGMENT_FREE, (uint64_t)(uintptr_t)p, 0,
		    vc_cuda_device(), c.label);
	self.depth++;
	cuda_error r = real(p);
	self.depth--;
	return r;
}

/* Under backend:cudaMallocAsync these calls are the tensors themselves, of the exact size. */
static void put_tensor(uint8_t kind, void *p, size_t n, void *stream)
{
	struct vc_record *r = vc_record_begin();

	if (!r)
		return;
	*r = (struct vc_record){.kind = kind,
				.flags = VC_RECF_DRIVER,
				.addr = (uint64_t)(uintptr_t)p,
				.size = n,
				.extra = n,
				.stream = (uint64_t)(uintptr_t)stream,
				.device = vc_cuda_device(),
				.time_ns = vc_clock_ns() };
	vc_record_commit(r);
}

/* PyTorch reports no out of memory under this backend. From 2.14 on it gives back what the pool has
 * and asks once more: the second refusal counts. */
static void put_refused(size_t n, void *stream)
{
	struct vc_record *r;

	put_refusal("device", n);
	if (self.refused != n && vc_torch_minor() >= 14) {
		self.refused = n;
		return;
	}
	self.refused = 0;
	r = vc_record_begin();
	if (!r)
		return;
	*r = (struct vc_record){ .kind = VC_EV_OOM, .size = n, .addr = vc_cuda_free_bytes(),
		.stream = (uint64_t)(uintptr_t)stream, .device = vc_cuda_device(),
		.time_ns = vc_clock_ns() };
	vc_record_commit(r);
	vc_cuda_sample();
}

ENTRY(cudaMallocAsync, void **p, size_t n, void *stream)
{
	REAL(void **, size_t, void *);
	self.depth++;
	cuda_error r = real(p, n, stream);
	self.depth--;
	if (r == 0 && watching())
		sample_first();
	self.refused = r ? self.refused : 0;
	if (r == 0 && watching() && !c.label)
		put_tensor(VC_EV_ALLOC, *p, n, stream);
	else if (r == NO_MEMORY && watching() && !c.label)
		put_refused(n, stream);
	else if (r == 0 && watching())
		put(VC_EV_OUTSIDE_ALLOC, (uint64_t)(uintptr_t)*p, n, vc_cuda_device(), c.label);
	else if (watching())
		put_refusal("device", n);
	return r;
}

ENTRY(cudaFreeAsync, void *p, void *stream)
{
	REAL(void *, void *);
	if (p && watching() && !c.label)
		put_tensor(VC_EV_FREE, p, 0, stream);
	else if (p && watching())
		put(VC_EV_OUTSIDE_FREE, (uint64_t)(uintptr_t)p, 0, vc_cuda_device(), c.label);
	self.depth++;
	cuda_error r = real(p, stream);
	self.depth--;
	return r;
}

/* Pinned host memory: what was allocated, and the program's own that was registered. CUPTI's record
 * of the same call, where there is one, is cancelled by ours. */
static void pin(void *p, size_t n, const char *what)
{
	if (!watching() || !p)
		return;
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < PINNED; i++) /* more than that are recorded, and not in the sum */
		if (!g.pinned[i].at) {
			g.pinned[i].at = (uint64_t)(uintptr_t)p;
			g.pinned[i].size = n;
			g.pinned_bytes += n;
			break;
		}
	pthread_mutex_unlock(&g.lock);
	put_raw(VC_EV_OUTSIDE_ALLOC, (uint64_t)(uintptr_t)p, n, vc_cuda_device(),
		vc_marks_name(what, strlen(what)));
}

static void unpin(void *p, const char *what)
{
	uint64_t size = 0;

	if (!watching() || !p)
		return;
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < PINNED && !size; i++)
		if (g.pinned[i].at == (uint64_t)(uintptr_t)p) {
			size = g.pinned[i].size;
			g.pinned_bytes -= size;
			g.pinned[i].at = 0;
		}
	pthread_mutex_unlock(&g.lock);
	put_raw(VC_EV_OUTSIDE_FREE, (uint64_t)(uintptr_t)p, size, vc_cuda_device(),
		vc_marks_name(what, strlen(what)));
}

static const char pinned_text[] = "pinned host memory",
		  registered_text[] = "registered host memory";

ENTRY(cudaHostAlloc, void **p, size_t n, unsigned flags)
{
	REAL(void **, size_t, unsigned);
	self.depth++;
	cuda_error r = real(p, n, flags);
	self.depth--;
	if (r == 0)
		pin(*p, n, pinned_text);
	else if (watching())
		put_refusal("pinned host", n);
	return r;
}

ENTRY(cudaMallocHost, void **p, size_t n)
{
	REAL(void **, size_t);
	self.depth++;
	cuda_error r = real(p, n);
	self.depth--;
	if (r == 0)
		pin(*p, n, pinned_text);
	else if (watching())
		put_refusal("pinned host", n);
	return r;
}

ENTRY(cudaFreeHost, void *p)
{
	REAL(void *);
	unpin(p, pinned_text);
	self.depth++;
	cuda_error r = real(p);
	self.depth--;
	return r;
}

ENTRY(cudaHostRegister, void *p, size_t n, unsigned flags)
{
	REAL(void *, size_t, unsigned);
	self.depth++;
	cuda_error r = real(p, n, flags);
	self.depth--;
	if (r == 0)
		pin(p, n, registered_text);
	return r;
}

ENTRY(cudaHostUnregister, void *p)
{
	REAL(void *);
	unpin(p, registered_text);
	self.depth++;
	cuda_error r = real(p);
	self.depth--;
	return r;
}

/* The allocator's events tell when a deferred free is through: torch_wait.c. */
ENTRY(cudaEventRecord, void *event, void *stream)
{
	REAL(void *, void *);
	cuda_error r = real(event, stream);
	if (r == 0 && !c.label)
		vc_wait_recorded((uint64_t)(uintptr_t)event, (uint64_t)(uintptr_t)stream);
	return r;
}

static void passed(void *event)
{
	uint64_t block = vc_wait_passed((uint64_t)(uintptr_t)event);
	struct vc_record *r = block ? vc_record_begin() : NULL;

	if (!r)
		return;
	*r = (struct vc_record){ .kind = VC_EV_FREE_DONE, .addr = block, .device = vc_cuda_device(),
				 .time_ns = vc_clock_ns() };
	vc_record_commit(r);
}

ENTRY(cudaEventQuery, void *event)
{
	REAL(void *);
	cuda_error r = real(event);
	if (r == 0 && !c.label)
		passed(event);
	return r;
}

ENTRY(cudaEventSynchronize, void *event)
{
	REAL(void *);
	cuda_error r = real(event);
	if (r == 0 && !c.label)
		passed(event);
	return r;
}

static void put_capture(uint8_t kind, void *stream)
{
	struct vc_record *r = vc_torch_watching() ? vc_record_begin() : NULL;

	if (!r)
		return;
	*r = (struct vc_record){ .kind = kind, .stream = (uint64_t)(uintptr_t)stream,
				 .device = vc_cuda_device(), .time_ns = vc_clock_ns() };
	vc_record_commit(r);
}

ENTRY(cudaStreamBeginCapture, void *stream, int mode)
{
	REAL(void *, int);
	cuda_error r = real(stream, mode);
	if (r == 0)
		put_capture(VC_EV_CAPTURE_BEGIN, stream);
	return r;
}

ENTRY(cudaStreamEndCapture, void *stream, void *graph)
{
	REAL(void *, void *);
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
		sample_first();
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
		put_refusal("device", size);
	return r;
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

ENTRY(cudaGetDriverEntryPoint, const char *name, void **p, unsigned long long flags, void *found)
{
	REAL(const char *, void **, unsigned long long, void *);
	cuda_error r = real(name, p, flags, found);
	if (r == 0 && *p && !c.label)
		replace(name, p);
	return r;
}

ENTRY(cudaGetDriverEntryPointByVersion, const char *name, void **p, unsigned version,
      unsigned long long flags, void *found)
{
	REAL(const char *, void **, unsigned, unsigned long long, void *);
	cuda_error r = real(name, p, version, flags, found);
	if (r == 0 && *p && !c.label)
		replace(name, p);
	return r;
}

/* Up to 2.6 PyTorch asks dlsym and keeps a struct of pointers: those are found by value. */
void vc_cuda_watch_driver(void)
{
	static const char *const names[] = { "cuMemUnmap", "cuMemSetAccess", "cuMemCreate" };
	void *h, **table, *(*get)(void);

	if (atomic_exchange(&g.watched, 1) || g.access)
		return;
	*(void **)&get = vc_torch_symbol("libc10_cuda.so", "_ZN3c104cuda9DriverAPI3getEv");
	h = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	if (!h || !get)
		return;
	table = get();
	for (int k = 0; k < 3; k++)
		for (int i = 0; table && i < 24; i++) /* 2.1 to 2.6 hold 10 to 20 pointers */
			if (table[i] && table[i] == dlsym(h, names[k])) {
				replace(names[k], &table[i]);
				break;
			}
}
