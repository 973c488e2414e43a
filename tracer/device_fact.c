/* SPDX-License-Identifier: Apache-2.0 */
/* device_fact.c - which card a recorded device is, asked of the driver that is loaded already. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tracer/cuda_calls.h"
#include "tracer/recorder.h"

/* Ordinals of the driver, which are those of the runtime; CUdevice is an int (CUDA driver API). */
enum { SMS = 16, MAJOR = 75, MINOR = 76, DEVICES = 64 }; /* CU_DEVICE_ATTRIBUTE_* */

static _Atomic uint64_t said; /* a bit for each device */

static int attribute(void *driver, int which, int device)
{
	int (*get)(int *, int, int), value = 0;

	*(void **)&get = dlsym(driver, "cuDeviceGetAttribute");
	return get && get(&value, which, device) == 0 ? value : 0;
}

void vc_device_fact(uint16_t device, uint64_t total)
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
