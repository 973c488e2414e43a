/* SPDX-License-Identifier: Apache-2.0 */
/* cute_dsl.c - what kernels that are written in CuTe DSL call; part of the stand-in libcudart.
 *
 * Their compiler loads the library that CUTE_DSL_LIBS names, libcute_dsl_runtime.so, into which
 * NVIDIA links a CUDA runtime. A dry run gives it this one. There each function of the runtime has
 * an underscore in front of its name: build.mk lists those that are the same but for it. The others
 * are here. Names and arguments are those that nvidia-cutlass-dsl 4.4.2 and 4.8.1 call (declared
 * in cutlass_dsl/tvm_ffi_provider.py; relocations of lib/libcuda_dialect_runtime_static.a). */
#include "nullgpu/runtime.h"

int cuDeviceGet(int *device, int ordinal);
int cuKernelGetAttribute(int *v, int attribute, void *kernel, int device);
int cuTensorMapEncodeTiled(void *map);
int cuLibraryGetGlobal(uint64_t *p, size_t *n, void *lib, const char *name);
int cuLibraryGetModule(void **m, void *lib);
int cudaGetDeviceCount(int *n);
int cudaLibraryUnload(void *lib);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
const char *cudaGetErrorName(int code);
const char *cudaGetErrorString(int code);

/* ---- the driver's ---- */

VC_API_RETURNS(_cuDeviceGet, (int *device, int ordinal), cuDeviceGet(device, ordinal))
VC_API_RETURNS(_cuKernelGetAttribute, (int *v, int attribute, void *kernel, int ordinal),
	cuKernelGetAttribute(v, attribute, kernel, ordinal))
VC_API_RETURNS(_cuTensorMapEncodeTiled, (void *map), cuTensorMapEncodeTiled(map))
VC_API_RETURNS(_cuLibraryGetGlobal, (uint64_t *p, size_t *n, void *lib, const char *name),
	cuLibraryGetGlobal(p, n, lib, name))
VC_API_RETURNS(_cuLibraryGetManaged, (uint64_t *p, size_t *n, void *lib, const char *name),
	cuLibraryGetGlobal(p, n, lib, name))
VC_API_RETURNS(_cuLibraryGetModule, (void **m, void *lib), cuLibraryGetModule(m, lib))

/* ---- where the arguments differ ---- */

VC_API(int, _cudaLaunchKernel, const void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
       unsigned by, unsigned bz, void **args, size_t shared, void *stream)
{
	return vc_null_launch(&(struct vc_null_launch){ .function = f, .grid = { gx, gy, gz },
		.block = { bx, by, bz }, .shared = shared, .args = args, .stream = stream });
}

VC_API_RETURNS(_cudaStreamWaitEvent, (void *stream, void *event),
	cudaStreamWaitEvent(stream, event, 0))

/* ---- a compiled kernel's library: loaded by its first call, whichever thread makes it ---- */

/* Tells the caller's language of the failure; -1, as the caller then expects. */
static int raise_error(void (*set_error)(const char *kind, const char *text), int code)
{
	char text[256];
	snprintf(text, sizeof text, "Got Cuda Runtime Error: %s %s", cudaGetErrorName(code),
		 cudaGetErrorString(code));
	set_error("RuntimeError", text);
	return -1;
}

/* `load` makes the library; `prepare` sees to one device, and it is enough that it can for one. */
VC_API(int, cuda_dialect_init_library_once, void **library, int (*load)(void **library),
       int (*prepare)(void **library, int device),
       void (*set_error)(const char *kind, const char *text))
{
	void *made = NULL, *none = NULL;
	int devices = 0, failed = 0;
	if (__atomic_load_n(library, __ATOMIC_ACQUIRE))
		return 0;
	int rc = load(&made);
	if (!rc && prepare)
		rc = cudaGetDeviceCount(&devices);
	for (int i = 0, one; !rc && i < devices; i++)
		if ((one = prepare(&made, i)) && ++failed == devices)
			rc = one;
	if (rc)
		return raise_error(set_error, rc);
	if (!__atomic_compare_exchange_n(library, &none, made, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		cudaLibraryUnload(made); /* another thread was first */
	return 0;
}

/* From 4.8 on the language is told by a function of its own, of the kind of error and the parts of
 * its text (tvm_ffi_provider.py, _parse_cuda_dialect_message). A launch beyond the limits of the
 * card tells the same way; the sizes and the limits in its other arguments are not repeated. */
typedef void (*vc_raise)(const char *kind, const char *const *parts, int n);

VC_API(void, CuteDSLRT_TVMFFISetRaisedCudaError, vc_raise raise, int code)
{
	char text[64];
	snprintf(text, sizeof text, "CUDA Error Code: %d", code);
	raise("CUDADialectError", (const char *const[]){ text }, 1);
}

VC_API(void, CuteDSLRT_TVMFFISetRaisedCudaLaunchError, vc_raise raise)
{
	CuteDSLRT_TVMFFISetRaisedCudaError(raise, 9); /* cudaErrorInvalidConfiguration */
}

VC_API(void, cuda_dialect_unload_library_once, void **library)
{
	void *made = __atomic_exchange_n(library, NULL, __ATOMIC_ACQ_REL);
	if (made)
		cudaLibraryUnload(made);
}

/* ---- errors ---- */

VC_API(const char *, cuda_dialect_get_error_name, int code)
{
	return cudaGetErrorName(code);
}

VC_API(void, cuda_dialect_print_on_error, int code)
{
	if (code)
		fprintf(stderr, "CUDA error: %s - %s\n", cudaGetErrorName(code),
			cudaGetErrorString(code));
}

VC_API(void, cuda_dialect_assert_success, int code)
{
	if (!code)
		return;
	cuda_dialect_print_on_error(code);
	abort();
}
