/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.c - what the runtime and the driver that are loaded say of the card in use. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

#include "tracer/cuda_device.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"

/* Ordinals of the driver, which are those of the runtime; CUdevice is an int (CUDA driver API). */
enum { SMS = 16, MAJOR = 75, MINOR = 76, DEVICES = 64 }; /* CU_DEVICE_ATTRIBUTE_* */

static _Atomic uint64_t said; /* a bit for each device */

uint16_t vc_cuda_device(void)
{
	static _Atomic(void *) cached;
	int (*get)(int *);
	int device = 0;

	*(void **)&get = vc_torch_symbol_once(&cached, "libc10_cuda.so", "cudaGetDevice");
	return get && get(&device) == 0 ? (uint16_t)device : 0;
}

bool vc_cuda_memory(uint64_t *available, uint64_t *total)
{
	int (*info)(size_t *, size_t *);
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

	return vc_cuda_memory(&available, &total) ? available : 0;
}

static int attribute(void *driver, int which, int device)
{
	int (*get)(int *, int, int), value = 0;

	*(void **)&get = dlsym(driver, "cuDeviceGetAttribute");
	return get && get(&value, which, device) == 0 ? value : 0;
}

void vc_cuda_device_forget(void)
{
	atomic_store(&said, 0);
}

void vc_cuda_device_fact(uint16_t device, uint64_t total)
{
	int (*name)(char *, int, int);
	char key[16], title[128] = "", text[192];
	void *driver;

	if (device >= DEVICES || atomic_fetch_or(&said, 1ull << device) >> device & 1)
		return;
	driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	*(void **)&name = driver ? dlsym(driver, "cuDeviceGetName") : NULL;
	if (!name || name(title, sizeof(title) - 1, device) != 0 || !title[0])
		return;
	snprintf(key, sizeof(key), "gpu %u", device);
	snprintf(text, sizeof(text), "%" PRIu64 " %d.%d %d %s", total,
		 attribute(driver, MAJOR, device), attribute(driver, MINOR, device),
		 attribute(driver, SMS, device), title);
	vc_recorder_fact(key, text);
}
