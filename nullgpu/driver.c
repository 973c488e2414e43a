/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - libcuda.so.1: devices, contexts, modules, launches, streams, events, entry points. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <dlfcn.h>

#define DRIVER_VERSION 13000

static char contexts[VC_NULL_DEVICES]; /* the address is the handle of the primary context */
static char module;

static void *context_of(int device)
{
	return &contexts[device];
}

/* ---- start, devices ---- */

/* The real driver loads the tool that CUDA_INJECTION64_PATH names when it starts. */
static void inject(void)
{
	static int done;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	if (!path || !*path || __atomic_exchange_n(&done, 1, __ATOMIC_SEQ_CST))
		return;
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	int (*start)(void) = NULL;
	if (lib)
		*(void **)&start = dlsym(lib, "InitializeInjection");
	if (!start || !start())
		vc_null_log("cannot start the injected tool %s", path);
}

VC_API(int, cuInit, unsigned flags)
{
	inject();
	return vc_null_card()->devices ? 0 : VC_NULL_NODEVICE;
}

VC_API_DOES(cuDriverGetVersion, (int *v), *v = DRIVER_VERSION)

VC_API(int, cuDeviceGet, int *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= vc_null_card()->devices)
		return vc_null_no_device(ordinal);
	*device = ordinal;
	return 0;
}

VC_API_DOES(cuDeviceGetCount, (int *n), *n = vc_null_card()->devices)
VC_API_DOES(cuDeviceGetName, (char *s, int n, int device),
	snprintf(s, (size_t)n, "%s", vc_null_card()->name))

VC_API(int, cuDeviceTotalMem_v2, size_t *bytes, int device)
{
	vc_null_asks_total(__builtin_return_address(0));
	*bytes = vc_null_card()->total;
	return 0;
}

VC_API_DOES(cuDeviceGetAttribute, (int *v, int attribute, int device),
	*v = vc_null_attribute(attribute, device))

VC_API(int, cuDeviceComputeCapability, int *major, int *minor, int device)
{
	*major = vc_null_card()->cc / 10;
	*minor = vc_null_card()->cc % 10;
	return 0;
}

VC_API(int, cuDeviceGetUuid_v2, char *uuid, int device)
{
	memcpy(uuid, "VLN\0nullgpu\0\0\0\0", 15); /* as nvmlDeviceGetUUID prints it */
	uuid[15] = (char)device;
	return 0;
}

VC_API_RETURNS(cuDeviceGetUuid, (char *uuid, int device), cuDeviceGetUuid_v2(uuid, device))
VC_API_DOES(cuDeviceGetPCIBusId, (char *s, int n, int device),
	snprintf(s, (size_t)n, "0000:%02X:00.0", device + 1))
VC_API_DOES(cuDeviceCanAccessPeer, (int *yes, int a, int b), *yes = a != b)

/* ---- contexts: only primary ones ---- */

VC_API_DOES(cuDevicePrimaryCtxRetain, (void **context, int device), *context = context_of(device))

VC_API(int, cuDevicePrimaryCtxGetState, int device, unsigned *flags, int *active)
{
	if (flags)
		*flags = 0;
	if (active)
		*active = 1;
	return 0;
}

VC_API_DOES(cuCtxGetCurrent, (void **context), *context = context_of(vc_null_current()))

VC_API(int, cuCtxSetCurrent, void *context)
{
	if (context)
		vc_null_select((int)((char *)context - contexts));
	return 0;
}

static __thread int pushed[16], depth;

VC_API(int, cuCtxPushCurrent_v2, void *context)
{
	if (depth == 16)
		return VC_NULL_INVALID;
	pushed[depth++] = vc_null_current();
	return cuCtxSetCurrent(context);
}

VC_API(int, cuCtxPopCurrent_v2, void **context)
{
	if (context)
		*context = context_of(vc_null_current());
	if (depth)
		vc_null_select(pushed[--depth]);
	return 0;
}

VC_API_DOES(cuCtxGetDevice, (int *device), *device = vc_null_current())

VC_API(int, cuCtxCreate_v2, void **context, unsigned flags, int device)
{
	*context = context_of(device);
	vc_null_select(device);
	return 0;
}

VC_API_DOES(cuCtxGetApiVersion, (void *context, unsigned *v), *v = 3020)
VC_API_RETURNS(cuCtxSynchronize, (void), vc_null_device_sync(vc_null_current()))

/* ---- modules and kernels: a function handle is the copy of its name ---- */

VC_API_DOES(cuModuleLoadData, (void **m, const void *image), *m = &module)
VC_API_RETURNS(cuModuleLoadDataEx, (void **m, const void *image, unsigned n, void *options,
       void *v),
	cuModuleLoadData(m, image))
VC_API_RETURNS(cuModuleLoad, (void **m, const char *path), cuModuleLoadData(m, path))
VC_API_RETURNS(cuModuleLoadFatBinary, (void **m, const void *binary), cuModuleLoadData(m, binary))
VC_API_RETURNS(cuLibraryLoadData, (void **lib, const void *code, void *jit, void *jit_values,
       unsigned n_jit, void *options, void *values, unsigned n),
	cuModuleLoadData(lib, code))

/* Kept for the life of the process: modules are loaded a few hundred times at most. */
VC_API(int, cuModuleGetFunction, void **f, void *m, const char *name)
{
	char *handle = strdup(name);
	if (!handle)
		return VC_NULL_MEMORY;
	vc_null_register(handle, handle);
	*f = handle;
	return 0;
}

VC_API_RETURNS(cuLibraryGetKernel, (void **f, void *lib, const char *name),
	cuModuleGetFunction(f, lib, name))
/* Whose names are not known: they are asked for by name. */
VC_API_DOES(cuLibraryGetKernelCount, (unsigned *n, void *lib), *n = 0)
VC_API_DOES(cuLibraryLoadFromFile, (void **lib, const char *path), *lib = &module)
VC_API_DOES(cuLibraryGetModule, (void **m, void *lib), *m = lib)
VC_API_DOES(cuKernelGetName, (const char **name, void *kernel), *name = kernel)
VC_API_DOES(cuKernelGetFunction, (void **f, void *kernel), *f = kernel)

VC_API(int, cuModuleGetGlobal_v2, uint64_t *p, size_t *n, void *m, const char *name)
{
	if (n)
		*n = 4096;
	return p ? vc_null_alloc(vc_null_current(), 4096, p) : 0;
}

VC_API_RETURNS(cuLibraryGetGlobal, (uint64_t *p, size_t *n, void *lib, const char *name),
	cuModuleGetGlobal_v2(p, n, lib, name))

VC_API(int, cuFuncGetAttribute, int *v, int attribute, void *f)
{
	const struct vc_null_card *c = vc_null_card();
	/* CUfunction_attribute: 0 threads a block, 4 registers, 5/6 code version, 8 shared memory
	 */
	*v = attribute == 0 ? 1024 : attribute == 4 ? 40 : attribute == 5 || attribute == 6 ? c->cc
		: attribute == 8 ? c->shared_optin : 0;
	return 0;
}

VC_API_RETURNS(cuKernelGetAttribute, (int *v, int attribute, void *f, int device),
	cuFuncGetAttribute(v, attribute, f))
VC_API_DOES(cuFuncGetName, (const char **name, void *f), *name = f)

VC_API(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, int *n, void *f, int threads, size_t s)
{
	const struct vc_null_card *c = vc_null_card();
	*n = threads > 0 && c->threads_sm / threads > 0 ? c->threads_sm / threads : 1;
	if (*n > c->blocks_sm)
		*n = c->blocks_sm;
	return 0;
}

VC_API_DOES(cuOccupancyMaxActiveClusters, (int *n, void *f, const void *config),
	*n = vc_null_card()->sms / 8)

VC_API(int, cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
       unsigned by, unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	return vc_null_launch(&(struct vc_null_launch){ .function = f, .grid = { gx, gy, gz },
		.block = { bx, by, bz }, .shared = shared, .args = args, .stream = stream });
}

/* CUlaunchConfig: grid[3], block[3], shared memory, stream */
struct launch_config {
	unsigned grid[3], block[3], shared;
	void *stream;
};

VC_API(int, cuLaunchKernelEx, const struct launch_config *c, void *f, void **args, void **extra)
{
	return cuLaunchKernel(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
			      c->block[2], c->shared, c->stream, args, extra);
}

VC_API_RETURNS(cuLaunchCooperativeKernel, (void *f, unsigned gx, unsigned gy, unsigned gz,
       unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **args),
	cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, args, NULL))
VC_API_RETURNS(cuLaunchHostFunc, (void *stream, void (*fn)(void *), void *arg),
	vc_null_host_call(stream, fn, arg))
VC_API_DOES(cuTensorMapEncodeTiled, (void *map), memset(map, 0, 128))

/* ---- streams and events ---- */

VC_API(int, cuStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
	*stream = vc_null_stream_new(flags, priority);
	return *stream ? 0 : VC_NULL_MEMORY;
}

VC_API_RETURNS(cuStreamCreate, (void **stream, unsigned flags),
	cuStreamCreateWithPriority(stream, flags, 0))
VC_API_RETURNS(cuStreamDestroy_v2, (void *stream), vc_null_stream_free(stream))
VC_API_RETURNS(cuStreamQuery, (void *stream), vc_null_stream_query(stream))
VC_API_RETURNS(cuStreamSynchronize, (void *stream), vc_null_stream_sync(stream))
VC_API_RETURNS(cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
	vc_null_stream_wait(stream, event))
VC_API_DOES(cuStreamIsCapturing, (void *stream, int *status),
	*status = vc_null_stream(stream)->capture != 0)
VC_API_DOES(cuStreamGetCtx, (void *stream, void **context),
	*context = context_of(vc_null_stream(stream)->device))

VC_API(int, cuStreamWriteValue32_v2, void *stream, uint64_t at, uint32_t v, unsigned flags)
{
	if (vc_null_owner(at) < 0)
		return VC_NULL_INVALID;
	vc_null_fill((void *)at, &v, sizeof v, 1);
	return 0;
}

VC_API_RETURNS(cuStreamWriteValue32, (void *stream, uint64_t at, uint32_t v, unsigned flags),
	cuStreamWriteValue32_v2(stream, at, v, flags))

VC_API(int, cuEventCreate, void **event, unsigned flags)
{
	*event = vc_null_event_new(flags);
	return *event ? 0 : VC_NULL_MEMORY;
}

VC_API_RETURNS(cuEventRecord, (void *event, void *stream), vc_null_event_record(event, stream))
VC_API_RETURNS(cuEventQuery, (void *event), vc_null_event_query(event))
VC_API_RETURNS(cuEventSynchronize, (void *event), vc_null_event_sync(event))
VC_API_RETURNS(cuEventElapsedTime, (float *ms, void *a, void *b), vc_null_event_elapsed(a, b, ms))
VC_API_RETURNS(cuEventDestroy_v2, (void *event), vc_null_event_free(event))

/* ---- errors and entry points ---- */

VC_API(int, cuGetErrorString, int e, const char **s)
{
	*s = e == 0 ? "no error" : e == VC_NULL_MEMORY ? "out of memory"
		: e == VC_NULL_INVALID ? "invalid argument"
		: e == VC_NULL_NOSUP ? "operation not supported" : "unknown error";
	return 0;
}

VC_API(int, cuGetErrorName, int e, const char **s)
{
	*s = e == 0 ? "CUDA_SUCCESS" : e == VC_NULL_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
		: e == VC_NULL_INVALID ? "CUDA_ERROR_INVALID_VALUE"
		: e == VC_NULL_NOSUP ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR_UNKNOWN";
	return 0;
}

/* The tables behind it are private to NVIDIA's own libraries. Ours do not ask: who does is a CUDA
 * runtime that was not replaced, and it gives up. */
VC_API(int, cuGetExportTable, const void **table, const void *id)
{
	static bool said;
	Dl_info asks = { 0 };
	if (!__atomic_exchange_n(&said, true, __ATOMIC_SEQ_CST)) {
		dladdr(__builtin_return_address(0), &asks);
		vc_null_log(
			"%s has a CUDA runtime of its own (linked into it, or loaded by its path), "
			"which asks the driver for private tables: the null GPU has none; link "
			"libcudart.so instead (nvcc -cudart shared)",
			asks.dli_fname ? asks.dli_fname : "this program");
	}
	*table = NULL;
	return VC_NULL_NOTFOUND;
}

VC_API_DOES(cuCtxGetStreamPriorityRange, (int *least, int *greatest),
	if (least) *least = 0;
	if (greatest) *greatest = -5)

/* Callers ask without the suffix and mean the newest form. */
VC_API(int, cuGetProcAddress_v2, const char *name, void **f, int version, uint64_t flags,
       int *status)
{
	char versioned[128];
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	snprintf(versioned, sizeof versioned, "%s_v2", name);
	*f = lib ? dlsym(lib, versioned) : NULL;
	if (lib && !*f)
		*f = dlsym(lib, name);
	if (status)
		*status = *f ? 0 : 1;
	if (!*f && vc_null_card()->log > 0)
		vc_null_log("no driver function %s", name);
	return *f ? 0 : VC_NULL_NOTFOUND;
}

VC_API_RETURNS(cuGetProcAddress, (const char *name, void **f, int version, uint64_t flags),
	cuGetProcAddress_v2(name, f, version, flags, NULL))
