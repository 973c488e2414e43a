/* SPDX-License-Identifier: Apache-2.0 */
/* pluggable.c - the same for torch.cuda.memory.CUDAPluggableAllocator, which wants two functions:
 *
 *	CUDAPluggableAllocator("libvramcast_plan.so", "vramcast_malloc", "vramcast_free")
 *
 * What the plan has no place for is kept by size and stream when it is freed, as PyTorch's own
 * allocator does it, and given back when the device runs out. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/types.h>

#include "allocator/served.h"
#include "common/map.h"
#include "common/vec.h"

#define VC_EXPORT __attribute__((visibility("default")))

enum { SMALL = 1 << 20, SMALL_STEP = 512, LARGE_STEP = 2 << 20 };

struct kept { void *p; uint64_t size, stream; int device; };

static struct {
	pthread_mutex_t lock;
	struct kept *kept; size_t n, cap;
	struct vc_map size; /* of what was handed out, by address */
	int (*alloc)(void **, size_t), (*release)(void *);
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

VC_EXPORT void *vramcast_malloc(ssize_t size, int device, void *stream);
VC_EXPORT void vramcast_free(void *p, ssize_t size, int device, void *stream);

static void *keep_or_get(uint64_t size, int device, uint64_t stream)
{
	void *p = NULL;

	for (size_t i = g.n; i-- > 0;)
		if (g.kept[i].size == size && g.kept[i].stream == stream &&
		    g.kept[i].device == device) {
			p = g.kept[i].p;
			g.kept[i] = g.kept[--g.n];
			return p;
		}
	if (g.alloc && g.alloc(&p, size) == 0)
		return p;
	while (g.n && g.release) /* out of memory: everything goes back (cudaFree waits) */
		g.release(g.kept[--g.n].p);
	return g.alloc && g.alloc(&p, size) == 0 ? p : NULL;
}

void *vramcast_malloc(ssize_t size, int device, void *stream)
{
	uint64_t on = (uint64_t)(uintptr_t)stream, step = size <= SMALL ? SMALL_STEP : LARGE_STEP;
	uint64_t bytes = ((uint64_t)size + step - 1) / step * step;
	void *p;

	if (size <= 0)
		return NULL;
	vc_served_open(NULL);
	p = vc_served_take((size_t)size, device, on);
	if (p)
		return p;
	pthread_mutex_lock(&g.lock);
	if (!g.alloc) {
		*(void **)&g.alloc = vc_served_function("cudaMalloc");
		*(void **)&g.release = vc_served_function("cudaFree");
	}
	p = keep_or_get(bytes, device, on);
	if (p)
		vc_map_put(&g.size, (uint64_t)(uintptr_t)p, bytes);
	pthread_mutex_unlock(&g.lock);
	if (p)
		vc_served_saw(p, (size_t)size, on);
	return p;
}

void vramcast_free(void *p, ssize_t size, int device, void *stream)
{
	uint64_t bytes, requested;

	if (!p || vc_served_give(p, &bytes, &requested, &device))
		return;
	vc_served_lost(p);
	pthread_mutex_lock(&g.lock);
	bytes = vc_map_take(&g.size, (uint64_t)(uintptr_t)p);
	if (bytes && vc_vec_room(g.kept, g.cap, g.n + 1))
		g.kept[g.n++] = (struct kept){ p, bytes, (uint64_t)(uintptr_t)stream, device };
	else if (g.release)
		g.release(p);
	pthread_mutex_unlock(&g.lock);
}
