/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - libnvidia-ml.so.1: what torch.cuda and the text of an out-of-memory error ask. */
#include "nullgpu/null.h"

#include <unistd.h>

/* nvmlReturn_t: 2 invalid argument, 3 not supported, 7 the array is too small */
#define NVML_INVALID 2
#define NVML_NOSUP 3
#define NVML_TOOSMALL 7
#define NO_INSTANCE 0xffffffffu

struct process { /* nvmlProcessInfo_t of version 2 and 3 */
	unsigned pid, pad;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

static char handles[VC_NULL_DEVICES];

static int index_of(const void *device)
{
	return (int)((const char *)device - handles);
}

VC_API_DOES(nvmlInit_v2, (void), vc_null_card())
VC_API_RETURNS(nvmlInit, (void), nvmlInit_v2())
VC_API_RETURNS(nvmlInitWithFlags, (unsigned flags), nvmlInit_v2())

VC_API(const char *, nvmlErrorString, int e)
{
	return e == 0 ? "Success" : e == NVML_NOSUP ? "Not Supported" : "Unknown Error";
}

VC_API_DOES(nvmlDeviceGetCount_v2, (unsigned *n), *n = (unsigned)vc_null_card()->devices)
VC_API_RETURNS(nvmlDeviceGetCount, (unsigned *n), nvmlDeviceGetCount_v2(n))

VC_API(int, nvmlDeviceGetHandleByIndex_v2, unsigned i, void **device)
{
	if (i >= (unsigned)vc_null_card()->devices)
		return NVML_INVALID;
	*device = &handles[i];
	return 0;
}

VC_API_RETURNS(nvmlDeviceGetHandleByIndex, (unsigned i, void **device),
	nvmlDeviceGetHandleByIndex_v2(i, device))

/* The bus number is the device plus one, see cudaDeviceGetPCIBusId. */
VC_API(int, nvmlDeviceGetHandleByPciBusId_v2, const char *bus, void **device)
{
	unsigned domain, number;
	if (sscanf(bus, "%x:%x", &domain, &number) != 2 || number < 1)
		return NVML_INVALID;
	return nvmlDeviceGetHandleByIndex_v2(number - 1, device);
}

VC_API_DOES(nvmlDeviceGetName, (void *device, char *s, unsigned n),
	snprintf(s, n, "%s", vc_null_card()->name))
VC_API_DOES(nvmlDeviceGetUUID, (void *device, char *s, unsigned n),
	snprintf(s, n, VC_NULL_UUID, index_of(device)))

VC_API(int, nvmlDeviceGetHandleByUUID, const char *uuid, void **device)
{
	unsigned i = 0;
	if (strlen(uuid) < 40 || sscanf(uuid + 38, "%2x", &i) != 1)
		return NVML_INVALID;
	return nvmlDeviceGetHandleByIndex_v2(i, device);
}

VC_API_DOES(nvmlDeviceGetIndex, (void *device, unsigned *i), *i = (unsigned)index_of(device))

VC_API(int, nvmlDeviceGetCudaComputeCapability, void *device, int *major, int *minor)
{
	*major = vc_null_card()->cc / 10;
	*minor = vc_null_card()->cc % 10;
	return 0;
}

VC_API_DOES(nvmlSystemGetCudaDriverVersion_v2, (int *v), *v = 13000)
VC_API_RETURNS(nvmlSystemGetCudaDriverVersion, (int *v), nvmlSystemGetCudaDriverVersion_v2(v))
VC_API_DOES(nvmlSystemGetDriverVersion, (char *s, unsigned n), snprintf(s, n, VC_NULL_DRIVER))

VC_API(int, nvmlDeviceGetMemoryInfo, void *device, unsigned long long *m)
{
	size_t free_bytes, total;
	vc_null_meminfo(index_of(device), __builtin_return_address(0), &free_bytes, &total);
	m[0] = vc_null_card()->board;
	m[1] = free_bytes;
	m[2] = m[0] - free_bytes;
	return 0;
}

/* nvmlMemory_v2_t: as above behind a version, with what the driver keeps for itself */
VC_API(int, nvmlDeviceGetMemoryInfo_v2, void *device, unsigned long long *m)
{
	size_t free_bytes, total;
	vc_null_meminfo(index_of(device), __builtin_return_address(0), &free_bytes, &total);
	m[1] = vc_null_card()->board;
	m[2] = m[1] - total;
	m[3] = free_bytes;
	m[4] = total - free_bytes;
	return 0;
}

/* The link that cards of that generation have, of 16 lanes: PCIe 3 up to Turing, 4 up to Ada, then
 * 5. */
VC_API_DOES(nvmlDeviceGetCurrPcieLinkGeneration, (void *device, unsigned *generation),
	*generation = vc_null_card()->cc < 80 ? 3 : vc_null_card()->cc < 90 ? 4 : 5)
VC_API_DOES(nvmlDeviceGetCurrPcieLinkWidth, (void *device, unsigned *lanes), *lanes = 16)

struct field { /* nvmlFieldValue_t */
	unsigned id, scope;
	long long time, latency;
	int type, result;
	uint64_t value;
};

/* Nobody can know them: each says so by itself. */
VC_API(int, nvmlDeviceGetFieldValues, void *device, int n, struct field *fields)
{
	for (int i = 0; i < n; i++)
		fields[i].result = NVML_NOSUP;
	return 0;
}

/* Writes this process and its neighbours; `width` is the caller's version of the structure, of
 * which the first has only the two fields that all versions begin with. */
static int list_processes(int device, unsigned *n, char *out, size_t width)
{
	struct process p = { .pid = (unsigned)getpid(), .used = vc_null_used(device),
		.gpu_instance = NO_INSTANCE, .compute_instance = NO_INSTANCE };
	unsigned count = 0, room = out ? *n : 0;
	do {
		if (count < room)
			memcpy(out + count * width, &p, width);
		p.used = vc_null_other(device, (int)count++, &p.pid);
	} while (p.pid);
	*n = count;
	return count > room ? NVML_TOOSMALL : 0;
}

VC_API_RETURNS(nvmlDeviceGetComputeRunningProcesses_v3, (void *device, unsigned *n, void *out),
	list_processes(index_of(device), n, out, sizeof(struct process)))
VC_API_RETURNS(nvmlDeviceGetComputeRunningProcesses_v2, (void *device, unsigned *n, void *out),
	list_processes(index_of(device), n, out, sizeof(struct process)))
VC_API_RETURNS(nvmlDeviceGetComputeRunningProcesses, (void *device, unsigned *n, void *out),
	list_processes(index_of(device), n, out, offsetof(struct process, gpu_instance)))
VC_API_DOES(nvmlDeviceGetP2PStatus, (void *a, void *b, int index, int *status), *status = 0)

/* nvmlGpuFabricInfoV_t; `version` holds the size of the caller's structure in its low 24 bits. */
struct fabric_info {
	unsigned version;
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state; /* 0: not supported */
};

/* Success with the state "not supported": PyTorch 2.13 stops at any other answer when it makes its
 * first expandable segment. */
VC_API(int, nvmlDeviceGetGpuFabricInfoV, void *device, struct fabric_info *info)
{
	size_t size = info->version & 0xffffff;
	if (size < sizeof *info)
		return NVML_INVALID;
	memset((char *)info + sizeof info->version, 0, size - sizeof info->version);
	return 0;
}
