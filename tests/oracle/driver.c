/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - a stand-in libcuda.so.1 and libnvidia-ml.so.1 (one source, two names): the virtual
 * memory calls of expandable segments and the process list of the out-of-memory report. */
#include "gpu.h"

#include <stddef.h>

#define API __attribute__((visibility("default")))

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_SUPPORTED = 801, FABRIC = 8 };

#ifndef NVML
API int cuInit(unsigned flags) { (void)flags; return OK; }
API int cuDeviceGet(int *d, int i) { *d = i; return OK; }
API int cuDeviceGetAttribute(int *v, int what, int d) { (void)what; (void)d; *v = 0; return OK; }

API int cuGetErrorString(int e, const char **s)
{
	*s = e == OUT_OF_MEMORY ? "out of memory" :
	     e == INVALID_VALUE ? "invalid argument" :
				  "scripted error";
	return OK;
}

API int cuMemGetAllocationGranularity(size_t *g, const void *prop, int option)
{
	(void)prop;
	(void)option;
	*g = VC_DEVICE_GRANULE;
	return OK;
}

API int cuMemAddressReserve(uint64_t *p, size_t n, size_t align, uint64_t hint, uint64_t flags)
{
	(void)align;
	(void)hint;
	(void)flags;
	*p = gpu_reserve(n);
	return OK;
}

API int cuMemAddressFree(uint64_t p, size_t n) { gpu_unreserve(p, n); return OK; }

/* The property's first fields: type, kinds of handles, kind and number of the place. No fabric
 * here, so the program falls back. */
API int cuMemCreate(uint64_t *handle, size_t n, const int *prop, uint64_t flags)
{
	(void)flags;
	if (n % VC_DEVICE_GRANULE)
		return INVALID_VALUE;
	if (prop[1] == FABRIC)
		return NOT_SUPPORTED;
	*handle = gpu_create((unsigned)prop[3], n);
	return *handle ? OK : OUT_OF_MEMORY;
}

API int cuMemRelease(uint64_t handle) { gpu_release(handle); return OK; }
API int cuMemMap(void) { return OK; }
API int cuMemUnmap(void) { return OK; }
API int cuMemSetAccess(void) { return OK; }

#else
struct process { unsigned pid; unsigned long long used; };

API int nvmlInit_v2(void) { return OK; }
API int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **d)
{
	*d = (void *)(uintptr_t)id;
	return OK;
}
API int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return OK; }
API int nvmlDeviceGetNvLinkRemoteDeviceType(void) { return 3; }
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return 3; }
API int nvmlDeviceGetGpuFabricInfoV(void) { return OK; } /* the record stays zero: no fabric */

API int nvmlDeviceGetComputeRunningProcesses(void *d, unsigned *n, struct process *out)
{
	unsigned have = gpu_processes();

	(void)d;
	if (have > *n)
		have = *n;
	for (unsigned i = 0; i < have; i++) {
		uint64_t bytes;

		gpu_process(i, &out[i].pid, &bytes);
		out[i].used = bytes;
	}
	*n = have;
	return OK;
}
#endif
