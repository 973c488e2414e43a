/* SPDX-License-Identifier: Apache-2.0 */
/* cudart.c - a stand-in for libcudart: addresses without memory behind them, events that pass when
 * asked the second time. STANDIN_DEVICE: bytes of the device; STANDIN_BESIDE: of them
 * beside this program's; STANDIN_CURRENT: its number. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int cuda_error;
enum { BLOCKS = 65536, EVENTS = 65536, NO_MEMORY = 2, NOT_READY = 600 };

static struct {
	pthread_mutex_t lock;
	uint64_t next, used, at[BLOCKS], size[BLOCKS];
	int n;
	uint8_t asked[EVENTS];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER, .next = 0x200000000000 };

cuda_error cudaMalloc(void **p, size_t n);
cuda_error cudaFree(void *p);
cuda_error cudaMallocAsync(void **p, size_t n, void *stream);
cuda_error cudaFreeAsync(void *p, void *stream);
cuda_error cudaHostAlloc(void **p, size_t n, unsigned flags);
cuda_error cudaMallocHost(void **p, size_t n);
cuda_error cudaFreeHost(void *p);
cuda_error cudaMallocManaged(void **p, size_t n, unsigned flags);
cuda_error cudaHostRegister(void *p, size_t n, unsigned flags);
cuda_error cudaHostUnregister(void *p);
cuda_error cudaMemGetInfo(size_t *available, size_t *total);
cuda_error cudaGetDevice(int *device);
cuda_error cudaEventRecord(void *event, void *stream);
cuda_error cudaEventQuery(void *event);
cuda_error cudaEventSynchronize(void *event);
cuda_error cudaEventCreateWithFlags(void **event, unsigned flags);
cuda_error cudaEventDestroy(void *event);
cuda_error cudaStreamBeginCapture(void *stream, int mode);
cuda_error cudaStreamEndCapture(void *stream, void *graph);
cuda_error cuMemCreate(uint64_t *handle, size_t size, const void *how, unsigned long long flags);
cuda_error cuMemSetAccess(uint64_t at, size_t size, const void *desc, size_t count);
cuda_error cuMemUnmap(uint64_t at, size_t size);
cuda_error cuMemAddressFree(uint64_t at, size_t size);
cuda_error cudaGetDriverEntryPoint(const char *name, void **p, unsigned long long flags,
				   void *found);
cuda_error cudaGetDriverEntryPointByVersion(const char *name, void **p, unsigned version,
					    unsigned long long flags, void *found);

static uint64_t all(void)
{
	const char *s = getenv("STANDIN_DEVICE");

	return s ? strtoull(s, NULL, 10) : 8ull << 30;
}

cuda_error cudaMalloc(void **p, size_t n)
{
	cuda_error r = NO_MEMORY;

	*p = NULL;
	n = (n + 511) & ~(size_t)511;
	pthread_mutex_lock(&g.lock);
	if (g.n < BLOCKS && g.used + n <= all()) {
		g.at[g.n] = g.next;
		g.size[g.n++] = n;
		*p = (void *)(uintptr_t)g.next;
		g.next += n;
		g.used += n;
		r = 0;
	}
	pthread_mutex_unlock(&g.lock);
	return r;
}

cuda_error cudaFree(void *p)
{
	cuda_error r = 1;

	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < g.n && r; i++)
		if (g.at[i] == (uintptr_t)p) {
			g.used -= g.size[i];
			g.at[i] = g.at[--g.n];
			g.size[i] = g.size[g.n];
			r = 0;
		}
	pthread_mutex_unlock(&g.lock);
	return r;
}

/* The driver's, as a library that is linked with it calls them, and as one that asks for them. */
static cuda_error create(uint64_t *handle, size_t size, const void *how, unsigned long long flags)
{
	(void)how;
	*handle = size;
	return flags || size > all() ? NO_MEMORY : 0;
}

static cuda_error set_access(uint64_t at, size_t size, const void *desc, size_t count)
{
	return at && size && desc && count ? 0 : 1;
}

static cuda_error unmap(uint64_t at, size_t size)
{
	return at && size ? 0 : 1;
}

cuda_error cuMemCreate(uint64_t *handle, size_t size, const void *how, unsigned long long flags)
{
	return create(handle, size, how, flags);
}

cuda_error cuMemSetAccess(uint64_t at, size_t size, const void *desc, size_t count)
{
	return set_access(at, size, desc, count);
}

cuda_error cuMemUnmap(uint64_t at, size_t size)
{
	return unmap(at, size);
}

static cuda_error look_up(const char *name, void **p)
{
	cuda_error (*c)(uint64_t *, size_t, const void *, unsigned long long) = create;
	cuda_error (*a)(uint64_t, size_t, const void *, size_t) = set_access;
	cuda_error (*u)(uint64_t, size_t) = unmap;

	*p = NULL;
	if (!strcmp(name, "cuMemCreate"))
		memcpy(p, &c, sizeof(c));
	else if (!strcmp(name, "cuMemSetAccess"))
		memcpy(p, &a, sizeof(a));
	else if (!strcmp(name, "cuMemUnmap"))
		memcpy(p, &u, sizeof(u));
	return *p ? 0 : 500; /* cudaErrorSymbolNotFound */
}

cuda_error cudaGetDriverEntryPoint(const char *name, void **p, unsigned long long flags,
				   void *found)
{
	(void)found;
	return flags ? 1 : look_up(name, p);
}

cuda_error cudaGetDriverEntryPointByVersion(const char *name, void **p, unsigned version,
					    unsigned long long flags, void *found)
{
	(void)found;
	return flags || version < 12000 ? 1 : look_up(name, p);
}

cuda_error cuMemAddressFree(uint64_t at, size_t size)
{
	return at && size ? 0 : 1;
}

cuda_error cudaMallocAsync(void **p, size_t n, void *stream)
{
	(void)stream;
	return cudaMalloc(p, n);
}

cuda_error cudaFreeAsync(void *p, void *stream)
{
	(void)stream;
	return cudaFree(p);
}

cuda_error cudaHostAlloc(void **p, size_t n, unsigned flags)
{
	(void)flags;
	*p = malloc(n);
	return *p ? 0 : NO_MEMORY;
}

cuda_error cudaMallocHost(void **p, size_t n)
{
	return cudaHostAlloc(p, n, 0);
}

cuda_error cudaMallocManaged(void **p, size_t n, unsigned flags)
{
	(void)flags;
	return cudaMalloc(p, n);
}

cuda_error cudaFreeHost(void *p)
{
	free(p);
	return 0;
}

cuda_error cudaHostRegister(void *p, size_t n, unsigned flags)
{
	(void)flags;
	return p && n ? 0 : 1;
}

cuda_error cudaHostUnregister(void *p)
{
	return p ? 0 : 1;
}

cuda_error cudaMemGetInfo(size_t *available, size_t *total)
{
	const char *s = getenv("STANDIN_BESIDE");

	pthread_mutex_lock(&g.lock);
	*total = all();
	*available = *total - g.used - (s ? strtoull(s, NULL, 10) : 0);
	pthread_mutex_unlock(&g.lock);
	return 0;
}

cuda_error cudaGetDevice(int *device)
{
	const char *s = getenv("STANDIN_CURRENT");

	*device = s ? atoi(s) : 0;
	return 0;
}

cuda_error cudaEventRecord(void *event, void *stream)
{
	(void)stream;
	pthread_mutex_lock(&g.lock);
	g.asked[(uintptr_t)event % EVENTS] = 0;
	pthread_mutex_unlock(&g.lock);
	return 0;
}

cuda_error cudaEventQuery(void *event)
{
	const char *s = getenv("STANDIN_WAITS"); /* so often the stream is not there yet */

	pthread_mutex_lock(&g.lock);
	int before = g.asked[(uintptr_t)event % EVENTS]++;
	pthread_mutex_unlock(&g.lock);
	return before >= (s ? atoi(s) : 1) ? 0 : NOT_READY;
}

cuda_error cudaEventSynchronize(void *event)
{
	return !event;
}

cuda_error cudaEventCreateWithFlags(void **event, unsigned flags)
{
	static _Atomic uintptr_t next = 64200; /* behind those of the allocator */

	(void)flags;
	*event = (void *)next++;
	return 0;
}

cuda_error cudaEventDestroy(void *event)
{
	return !event;
}

cuda_error cudaStreamBeginCapture(void *stream, int mode)
{
	(void)stream;
	return mode < 0;
}

cuda_error cudaStreamEndCapture(void *stream, void *graph)
{
	(void)stream;
	(void)graph;
	return 0;
}
