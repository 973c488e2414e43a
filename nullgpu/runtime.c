/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - libcudart: registration, launches, devices, errors, entry points.
 *
 * An implementation of its own: NVIDIA's needs tables of the driver that are private. */
#define _GNU_SOURCE
#include "nullgpu/runtime.h"

#include <dlfcn.h>

struct dim3 {
	unsigned x, y, z;
};

static __thread int last_error;

int vc_runtime_result(int rc)
{
	if (rc)
		last_error = rc;
	return rc;
}

int cuInit(unsigned flags);

void vc_runtime_start(void)
{
	static int started;
	if (!__atomic_load_n(&started, __ATOMIC_ACQUIRE)) {
		cuInit(0);
		__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	}
}

/* ---- what nvcc's generated code calls ---- */

VC_API(void **, __cudaRegisterFatBinary, void *binary)
{
	static void *handle[4];
	return handle;
}

VC_API(void, __cudaRegisterFatBinaryEnd, void **handle)
{
}

VC_API(void, __cudaUnregisterFatBinary, void **handle)
{
}

VC_API(void, __cudaRegisterFunction, void **handle, const char *host, char *device,
       const char *name, int limit, void *tid, void *bid, void *bdim, void *gdim, int *warp)
{
	vc_null_register(host, name);
}

VC_API(void, __cudaRegisterVar, void **handle, char *host, char *device, const char *name, int ext,
       size_t size, int constant, int global)
{
}

VC_API(char, __cudaInitModule, void **handle)
{
	return 0;
}

static __thread int depth;
static __thread struct {
	struct dim3 grid, block;
	size_t shared;
	void *stream;
} configurations[16];

VC_API(unsigned, __cudaPushCallConfiguration, struct dim3 grid, struct dim3 block, size_t shared,
       void *stream)
{
	if (depth == 16)
		return VC_NULL_INVALID;
	configurations[depth].grid = grid;
	configurations[depth].block = block;
	configurations[depth].shared = shared;
	configurations[depth++].stream = stream;
	return 0;
}

VC_API(int, __cudaPopCallConfiguration, struct dim3 *grid, struct dim3 *block, size_t *shared,
       void **stream)
{
	if (!depth)
		return VC_NULL_INVALID;
	depth--;
	*grid = configurations[depth].grid;
	*block = configurations[depth].block;
	*shared = configurations[depth].shared;
	*stream = configurations[depth].stream;
	return 0;
}

VC_API(int, cudaLaunchKernel, const void *f, struct dim3 grid, struct dim3 block, void **args,
       size_t shared, void *stream)
{
	return vc_null_launch(&(struct vc_null_launch){ .function = f,
		.grid = { grid.x, grid.y, grid.z }, .block = { block.x, block.y, block.z },
		.shared = shared, .args = args, .stream = stream });
}

VC_API_RETURNS(__cudaLaunchKernel, (const void *f, struct dim3 grid, struct dim3 block, void **args,
       size_t shared, void *stream),
	cudaLaunchKernel(f, grid, block, args, shared, stream))
VC_API_RETURNS(cudaLaunchCooperativeKernel, (const void *f, struct dim3 grid, struct dim3 block,
       void **args, size_t shared, void *stream),
	cudaLaunchKernel(f, grid, block, args, shared, stream))

struct launch_config { /* cudaLaunchConfig_t begins so */
	struct dim3 grid, block;
	size_t shared;
	void *stream;
};

VC_API_RETURNS(cudaLaunchKernelExC, (const struct launch_config *c, const void *f, void **args),
	cudaLaunchKernel(f, c->grid, c->block, args, c->shared, c->stream))
VC_API_DOES(__cudaGetKernel, (const void **kernel, const void *f), *kernel = f)
VC_API_DOES(cudaGetFuncBySymbol, (const void **function, const void *f), *function = f)

/* ---- kernels asked about themselves ---- */

/* The machine code a wheel would load: binaries run on later minor versions of their major. */
static int code_version(int cc)
{
	return cc == 89 || cc == 87 ? 86 : cc == 103 ? 100 : cc == 121 ? 120 : cc;
}

/* CUB picks its tuning, and with it the size of its scratch memory, by the code version. */
VC_API(int, cudaFuncGetAttributes, char *out, const void *f)
{
	int version = code_version(vc_null_card()->cc);
	/* sizes: shared, constant, local (size_t each), then ints: threads, registers, ptx
	 * version, binary version, cache mode, dynamic shared memory */
	int fields[6] = { 1024, 40, version, version, 0, 49152 };
	memset(out, 0, 144);
	memcpy(out + 24, fields, sizeof fields);
	return 0;
}

VC_API(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *n, const void *f,
       int threads, size_t shared, unsigned flags)
{
	const struct vc_null_card *c = vc_null_card();
	int blocks = threads > 0 ? c->threads_sm / threads : 1;
	if (shared && (size_t)c->shared_sm / shared < (size_t)blocks)
		blocks = (int)((size_t)c->shared_sm / shared);
	if (blocks > c->blocks_sm)
		blocks = c->blocks_sm;
	*n = blocks < 1 ? 1 : blocks;
	return 0;
}

VC_API_RETURNS(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *n, const void *f, int threads,
       size_t shared),
	cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, threads, shared, 0))

/* ---- devices ---- */

static bool is_device(int device)
{
	return device >= 0 && device < vc_null_card()->devices;
}

VC_API(int, cudaGetDeviceCount, int *n)
{
	vc_runtime_start();
	*n = vc_null_card()->devices;
	return *n ? 0 : vc_runtime_result(VC_NULL_NODEVICE);
}

VC_API_DOES(cudaGetDevice, (int *device), *device = vc_null_current())

VC_API(int, cudaSetDevice, int device)
{
	if (!is_device(device))
		return vc_runtime_result(vc_null_no_device(device));
	vc_runtime_start();
	vc_null_select(device);
	return 0;
}

VC_API_RETURNS(cudaDeviceSynchronize, (void),
	vc_runtime_result(vc_null_device_sync(vc_null_current())))
VC_API_DOES(cudaRuntimeGetVersion, (int *v), *v = VC_CUDA_MAJOR >= 13 ? 13000 : 12080)
VC_API_DOES(cudaDriverGetVersion, (int *v), *v = 13000)

VC_API(int, cudaDeviceGetAttribute, int *v, int attribute, int device)
{
	if (!is_device(device))
		return vc_runtime_result(vc_null_no_device(device));
	*v = vc_null_attribute(attribute, device);
	return 0;
}

VC_API(int, cudaDeviceGetStreamPriorityRange, int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return 0;
}

VC_API_DOES(cudaDeviceGetPCIBusId, (char *s, int n, int device),
	snprintf(s, (size_t)n, "0000:%02X:00.0", device + 1))
VC_API_DOES(cudaDeviceCanAccessPeer, (int *yes, int a, int b), *yes = a != b)

VC_API(int, cudaDeviceGetLimit, size_t *v, int limit)
{
	/* cudaLimit: 0 stack size, 1 printf buffer, 2 malloc heap; the documented defaults */
	*v = limit == 0 ? 1024 : limit == 1 ? VC_MIB : limit == 2 ? 8 * VC_MIB : 0;
	return 0;
}

/* Offsets in cudaDeviceProp that moved between CUDA 12 and 13, in the order of the table in
 * fill_properties; taken from the two driver_types.h. */
enum { N_MOVED = 13 };
#if VC_CUDA_MAJOR >= 13
#define PROPERTIES_SIZE 1008
static const int moved[N_MOVED] = { 384, 392, 560, 568, 584, 588, 592,
				   596, 604, 624, 632, 672, 688 };
#else
#define PROPERTIES_SIZE 1032
static const int moved[N_MOVED] = { 388, 400, 576, 584, 600, 604, 612,
				   616, 624, 640, 648, 696, 712 };
#endif

static void put(char *p, int offset, uint64_t v, size_t width)
{
	memcpy(p + offset, &v, width); /* little endian, as every machine CUDA runs on */
}

static int fill_properties(char *p, size_t size, int device)
{
	const struct vc_null_card *c = vc_null_card();
	if (!is_device(device))
		return vc_runtime_result(vc_null_no_device(device));
	memset(p, 0, size);
	snprintf(p, 256, "%s", c->name);
	memcpy(p + 256, "VLN\0nullgpu\0\0\0\0", 15); /* uuid, see nvmlDeviceGetUUID */
	p[271] = (char)device;
	/* offset, value, width: sizes first, then the limits of a block and the grid */
	const struct { int offset; uint64_t value; size_t width; } fields[] = {
		{ 288, c->total, 8 }, { 296, 49152, 8 }, { 304, 65536, 4 }, { 308, 32, 4 },
		{ 312, 2147483647, 8 }, { 320, 1024, 4 }, { 324, 1024, 4 }, { 328, 1024, 4 },
		{ 332, 64, 4 }, { 336, 2147483647, 4 }, { 340, 65535, 4 }, { 344, 65535, 4 },
		{ 352, 65536, 8 }, { 360, (uint64_t)c->cc / 10, 4 }, { 364, (uint64_t)c->cc % 10,
		  4 },
		{ 368, 512, 8 },
		{ moved[0], (uint64_t)c->sms, 4 },     /* multiProcessorCount */
		{ moved[1], 1, 4 },                    /* canMapHostMemory */
		{ moved[2], 1, 4 },                    /* concurrentKernels */
		{ moved[3], (uint64_t)device + 1, 4 }, /* pciBusID */
		{ moved[4], 2, 4 },                    /* asyncEngineCount */
		{ moved[5], 1, 4 },                    /* unifiedAddressing */
		{ moved[6], 384, 4 },                  /* memoryBusWidth */
		{ moved[7], c->l2, 4 },                /* l2CacheSize */
		{ moved[8], (uint64_t)c->threads_sm, 4 },
		{ moved[9], (uint64_t)c->shared_sm, 8 },
		{ moved[10], 65536, 4 }, /* regsPerMultiprocessor */
		{ moved[11], (uint64_t)c->shared_optin, 8 },
		{ moved[12], (uint64_t)c->blocks_sm, 4 },
	};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		put(p, fields[i].offset, fields[i].value, fields[i].width);
	return 0;
}

#if VC_CUDA_MAJOR < 13
/* What CUDA 12 knows under the old name ends earlier; cudnn_frontend asks by it. */
VC_API_RETURNS(cudaGetDeviceProperties, (char *p, int device), fill_properties(p, 728, device))
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#endif
VC_API(int, cudaGetDeviceProperties, char *p, int device)
{
	vc_null_asks_total(__builtin_return_address(0));
	return fill_properties(p, PROPERTIES_SIZE, device);
}

/* ---- errors ---- */

struct error_row {
	int code;
	const char *name, *text;
};

/* cudaError_t with the texts of cudaGetErrorString. */
static const struct error_row errors[] = {
	{ 0, "cudaSuccess", "no error" },
	{ VC_NULL_INVALID, "cudaErrorInvalidValue", "invalid argument" },
	{ VC_NULL_MEMORY, "cudaErrorMemoryAllocation", "out of memory" },
	{ VC_NULL_NODEVICE, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
	{ VC_NULL_BADDEVICE, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ VC_NULL_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
	{ VC_NULL_NOTFOUND, "cudaErrorSymbolNotFound", "named symbol not found" },
	{ VC_NULL_NOTREADY, "cudaErrorNotReady", "device not ready" },
	{ VC_NULL_NOSUP, "cudaErrorNotSupported", "operation not supported" },
	{ VC_NULL_CAPTURE, "cudaErrorStreamCaptureUnsupported",
	  "operation not permitted when stream is capturing" },
};

static const struct error_row *error_of(int code)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

VC_API(int, cudaGetLastError, void)
{
	int e = last_error;
	last_error = 0;
	return e;
}

VC_API_RETURNS(cudaPeekAtLastError, (void), last_error)

VC_API(const char *, cudaGetErrorString, int code)
{
	const struct error_row *e = error_of(code);
	return e ? e->text : "unrecognized error code";
}

VC_API(const char *, cudaGetErrorName, int code)
{
	const struct error_row *e = error_of(code);
	return e ? e->name : "cudaErrorUnknown";
}

/* ---- the driver behind ---- */

int cuLibraryLoadData(void **lib, const void *code, void *jit, void *jit_values, unsigned n_jit,
		      void *options, void *values, unsigned n);
int cuLibraryLoadFromFile(void **lib, const char *path);
int cuLibraryUnload(void *lib);
int cuLibraryGetKernel(void **f, void *lib, const char *name);
int cuLibraryGetKernelCount(unsigned *n, void *lib);
int cuLibraryGetGlobal(uint64_t *p, size_t *n, void *lib, const char *name);

/* Compilers at run time (CuTe DSL, NVRTC) load what they made by these. */
VC_API_RETURNS(cudaLibraryLoadData, (void **lib, const void *code, void *jit, void *jit_values,
       unsigned n_jit, void *options, void *values, unsigned n),
	(vc_runtime_start(), cuLibraryLoadData(lib, code, jit, jit_values, n_jit, options, values,
					       n)))
VC_API_RETURNS(cudaLibraryLoadFromFile, (void **lib, const char *path),
	(vc_runtime_start(), cuLibraryLoadFromFile(lib, path)))
VC_API_RETURNS(cudaLibraryUnload, (void *lib), cuLibraryUnload(lib))
VC_API_RETURNS(cudaLibraryGetKernel, (void **kernel, void *lib, const char *name),
	cuLibraryGetKernel(kernel, lib, name))
VC_API_RETURNS(cudaLibraryGetKernelCount, (unsigned *n, void *lib), cuLibraryGetKernelCount(n, lib))
VC_API_DOES(cudaLibraryEnumerateKernels, (void **kernels, unsigned n, void *lib),
	memset(kernels, 0, n * sizeof *kernels))
VC_API_RETURNS(cudaLibraryGetGlobal, (uint64_t *p, size_t *n, void *lib, const char *name),
	vc_runtime_result(cuLibraryGetGlobal(p, n, lib, name)))
VC_API_RETURNS(cudaLibraryGetManaged, (uint64_t *p, size_t *n, void *lib, const char *name),
	vc_runtime_result(cuLibraryGetGlobal(p, n, lib, name)))
VC_API_RETURNS(cudaLibraryGetUnifiedFunction, (void **f, void *lib, const char *name),
	cuLibraryGetKernel(f, lib, name))
VC_API_DOES(cudaGetKernel, (const void **kernel, const void *f), *kernel = f)

int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status);

VC_API_DOES(cudaGetDriverEntryPointByVersion, (const char *name, void **f, unsigned version,
       unsigned long long flags, int *status),
	cuGetProcAddress_v2(name, f, (int)version, flags, status))
VC_API_RETURNS(cudaGetDriverEntryPoint, (const char *name, void **f, unsigned long long flags,
       int *status),
	cudaGetDriverEntryPointByVersion(name, f, 12000, flags, status))
