/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - a stand-in CUDA runtime: what libc10_cuda.so calls, answered by the scripted device.
 *
 * Written without CUDA headers: error codes and handles are plain integers here. Functions that the
 * allocator refers to but never calls are generated as stubs by build.sh. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_MEMORY = 2, INVALID_DEVICE = 101, NOT_READY = 600 };

static __thread int last_error;

static int answer(int e)
{
	if (e)
		last_error = e;
	return e;
}

API int cudaGetDeviceCount(int *n) { *n = (int)gpu_count(); return SUCCESS; }
API int cudaGetDevice(int *d) { *d = (int)gpu_current(); return SUCCESS; }
API int cudaSetDevice(int d)
{
	if (d < 0 || (unsigned)d >= gpu_count())
		return answer(INVALID_DEVICE);
	gpu_select((unsigned)d);
	return SUCCESS;
}
API int cudaDriverGetVersion(int *v) { *v = VERSION; return SUCCESS; }
API int cudaRuntimeGetVersion(int *v) { *v = VERSION; return SUCCESS; }
API int cudaDeviceCanAccessPeer(int *can, int a, int b)
{
	(void)a;
	(void)b;
	*can = 0;
	return SUCCESS;
}
API int cudaDeviceSynchronize(void) { gpu_complete_all(); return SUCCESS; }
API int cudaDeviceGetStreamPriorityRange(int *low, int *high)
{
	*low = 0;
	*high = -3;
	return SUCCESS;
}

/* struct cudaDeviceProp: name[256], uuid, luid, mask, then totalGlobalMem at 288; compute
 * capability at 360 and 364, in CUDA 11 to 13 alike. */
static int properties(char *p)
{
	uint64_t total = gpu_prop_total();
	int major = 9;

	memset(p, 0, 700);
	memcpy(p, "scripted", 9);
	memcpy(p + 288, &total, sizeof(total));
	memcpy(p + 360, &major, sizeof(major));
	return SUCCESS;
}
API int cudaGetDeviceProperties(char *p, int d) { (void)d; return properties(p); }
API int cudaGetDeviceProperties_v2(char *p, int d) { (void)d; return properties(p); }

API int cudaGetLastError(void)
{
	int e = last_error;

	last_error = SUCCESS;
	return e;
}
API int cudaPeekAtLastError(void) { return last_error; }
API const char *cudaGetErrorString(int e)
{
	return e == NO_MEMORY ? "out of memory" : e == INVALID_VALUE ? "invalid argument"
								     : "scripted error";
}
API const char *cudaGetErrorName(int e)
{
	return e == NO_MEMORY	  ? "cudaErrorMemoryAllocation"
	       : e == INVALID_VALUE ? "cudaErrorInvalidValue" : "cudaError";
}

API int cudaMalloc(uint64_t *p, size_t n) { return answer(gpu_malloc(p, n) ? NO_MEMORY : SUCCESS); }
API int cudaFree(uint64_t p) { return answer(p && gpu_free(p) ? INVALID_VALUE : SUCCESS); }
API int cudaMemGetInfo(size_t *f, size_t *t)
{
	*f = gpu_available();
	*t = gpu_total();
	return SUCCESS;
}
API int cudaMemcpy(void) { return SUCCESS; }
API int cudaMemcpyAsync(void) { return SUCCESS; }

API int cudaEventCreateWithFlags(struct gpu_event **e, unsigned flags)
{
	(void)flags;
	*e = calloc(1, sizeof(**e));
	return *e ? SUCCESS : NO_MEMORY;
}
API int cudaEventDestroy(struct gpu_event *e) { free(e); return SUCCESS; }
API int cudaEventRecord(struct gpu_event *e, uint64_t s) { gpu_record(e, s); return SUCCESS; }
API int cudaEventQuery(struct gpu_event *e) { return answer(gpu_done(e) ? SUCCESS : NOT_READY); }
API int cudaEventSynchronize(struct gpu_event *e) { gpu_wait(e); return SUCCESS; }

API int cudaStreamQuery(uint64_t s) { (void)s; return SUCCESS; }
API int cudaStreamSynchronize(uint64_t s) { (void)s; return SUCCESS; }
API int cudaStreamWaitEvent(uint64_t s, void *e, unsigned f)
{
	(void)s;
	(void)e;
	(void)f;
	return SUCCESS;
}
API int cudaStreamIsCapturing(uint64_t s, int *status)
{
	*status = gpu_capturing(s);
	return SUCCESS;
}
API int cudaThreadExchangeStreamCaptureMode(int *mode) { (void)mode; return SUCCESS; }

static int capture_info(uint64_t s, int *status, unsigned long long *id)
{
	*status = gpu_capturing(s);
	if (id)
		*id = 1;
	return SUCCESS;
}
API int cudaStreamGetCaptureInfo_v2(uint64_t s, int *status, unsigned long long *id, void **graph,
				    const void **deps, size_t *n)
{
	if (graph)
		*graph = NULL;
	if (deps)
		*deps = NULL;
	if (n)
		*n = 0;
	return capture_info(s, status, id);
}
#if VERSION >= 13000
API int cudaStreamGetCaptureInfo(uint64_t s, int *status, unsigned long long *id, void **graph,
				 const void **deps, const void **edges, size_t *n)
{
	if (edges)
		*edges = NULL;
	return cudaStreamGetCaptureInfo_v2(s, status, id, graph, deps, n);
}
#else
API int cudaStreamGetCaptureInfo(uint64_t s, int *status, unsigned long long *id)
{
	return capture_info(s, status, id);
}
#endif

/* The table of driver functions: whatever the stand-in driver has, the rest says "not supported".
 */
static int not_supported(void) { return 801; }

static int entry(const char *name, void **fn)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	*fn = lib ? dlsym(lib, name) : NULL;
	if (!*fn)
		*(int (**)(void))fn = not_supported;
	return SUCCESS;
}
API int cudaGetDriverEntryPoint(const char *name, void **fn, unsigned long long f, int *found)
{
	(void)f;
	if (found)
		*found = 0;
	return entry(name, fn);
}
API int cudaGetDriverEntryPointByVersion(const char *name, void **fn, unsigned v,
					 unsigned long long f, int *found)
{
	(void)v;
	return cudaGetDriverEntryPoint(name, fn, f, found);
}
