/* SPDX-License-Identifier: Apache-2.0 */
/* properties.c - see properties.h.
 *
 * cuDNN 9.8 and newer take exactly these members. Of twelve that were varied only the compute
 * capability decides everywhere, the clocks on 9.0 and the multiprocessors on 10.0
 * (docs/measurements/null-gpu.md); the rest is what every card since 7.0 reports. */
#define _GNU_SOURCE
#include "nullgpu/properties.h"
#include "nullgpu/architecture.h"

#include <dlfcn.h>

/* Members, the number of their CUdevice_attribute (cuda.h) and what a card of the table has. The
 * first two have three numbers each. */
static const struct member {
	const char *name;
	int attribute, usual;
} members[] = {
	{ "maxGridSize", 5, 2147483647 }, { NULL, 6, 65535 }, { NULL, 7, 65535 },
	{ "maxBlockSize", 2, 1024 }, { NULL, 3, 1024 }, { NULL, 4, 64 },
	{ "regsPerBlock", 12, 65536 }, { "warpSize", 10, 32 },
	{ "maxSharedMemoryPerBlock", 8, 49152 }, { "reservedSharedMemoryPerBlock", 111, 1024 },
	{ "maxRegistersPerSM", 82, 65536 }, { "maxThreadsPerBlock", 1, 1024 },
	{ "pciDeviceId", 34, 0 }, { "isTccDriver", 35, 0 }, { "supportCoopLaunch", 95, 1 },
	{ "multiProcessorCount", 16, 0 }, { "maxSharedMemoryPerBlockOptin", 97, 0 },
	{ "maxCtasPerSM", 106, 0 }, { "maxThreadsPerSM", 39, 0 },
	{ "smClockRateKHz", 13, 1500000 }, { "memClockRateKHz", 36, 1500000 },
	{ "l2CacheSize", 38, 41943040 },
};
enum { MEMBERS = sizeof members / sizeof *members };

struct facts {
	const char *name;
	uint64_t total;
	int cc, driver, device, value[MEMBERS];
};

static int write_text(const struct facts *f, char *out, size_t n, struct vc_error *err)
{
	int at = snprintf(out, n, "{\"deviceName\": \"%s\", \"cudaDeviceId\": %d, "
			  "\"driverVer\": %d, \"deviceVer\": %d, \"totalGlobalMem\": %llu", f->name,
			  f->device, f->driver, f->cc * 10, (unsigned long long)f->total);
	for (int i = 0; i < MEMBERS && at > 0 && (size_t)at < n; i++) {
		if (members[i].name)
			at += snprintf(out + at, n - (size_t)at, ", \"%s\": %s%d", members[i].name,
				       i < 6 ? "[" : "", f->value[i]);
		else
			at += snprintf(out + at, n - (size_t)at, ", %d%s", f->value[i],
				       i % 3 == 2 ? "]" : "");
	}
	if (at > 0 && (size_t)at < n)
		at += snprintf(out + at, n - (size_t)at, "}\n");
	if (at < 0 || (size_t)at >= n)
		return vc_fail(err, VC_EINTERNAL, "a card with a very long name");
	return 0;
}

static void set(struct facts *f, int attribute, int value)
{
	for (int i = 0; i < MEMBERS; i++)
		if (members[i].attribute == attribute && value)
			f->value[i] = value;
}

int vc_properties_text(const struct vc_properties *p, char *out, size_t n, struct vc_error *err)
{
	const struct vc_architecture *a = vc_architecture(p->cc);
	struct facts f = { .name = p->name, .total = p->total, .cc = p->cc, .driver = 13000 };
	for (int i = 0; i < MEMBERS; i++)
		f.value[i] = members[i].usual;
	set(&f, 16, p->sms);
	set(&f, 97, a->shared_optin);
	set(&f, 106, a->blocks_sm);
	set(&f, 39, a->threads_sm);
	set(&f, 13, p->clock_mhz * 1000);
	set(&f, 36, p->memory_mhz * 1000);
	return write_text(&f, out, n, err);
}

/* ---- a card that is there ---- */

struct driver {
	int (*init)(unsigned flags);
	int (*version)(int *v);
	int (*device)(int *out, int ordinal);
	int (*name)(char *out, int n, int device);
	int (*total)(size_t *out, int device);
	int (*attribute)(int *out, int which, int device);
};

static int open_driver(struct driver *d, struct vc_error *err)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	const struct { const char *name; void *to; } functions[] = {
		{ "cuInit", &d->init },
		{ "cuDriverGetVersion", &d->version },
		{ "cuDeviceGet", &d->device },
		{ "cuDeviceGetName", &d->name },
		{ "cuDeviceTotalMem_v2", &d->total },
		{ "cuDeviceGetAttribute", &d->attribute },
	};
	if (!lib)
		return vc_fail(err, VC_ENOSUP, "this machine has no NVIDIA driver to ask (%s)",
			       dlerror());
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *f = dlsym(lib, functions[i].name);
		if (!f)
			return vc_fail(err, VC_ENOSUP, "the driver has no %s", functions[i].name);
		memcpy(functions[i].to, &f, sizeof f);
	}
	return 0;
}

int vc_properties_of_device(int device, char *out, size_t n, struct vc_error *err)
{
	struct driver d;
	struct facts f = { .device = device };
	char name[96] = "";
	size_t total = 0;
	int handle, major = 0, minor = 0, failed = open_driver(&d, err);
	if (failed)
		return failed;
	failed = d.init(0);
	if (!failed)
		failed = d.version(&f.driver);
	if (!failed)
		failed = d.device(&handle, device);
	if (!failed)
		failed = d.name(name, sizeof name, handle);
	if (!failed)
		failed = d.total(&total, handle);
	if (!failed)
		failed = d.attribute(&major, 75, handle);
	if (!failed)
		failed = d.attribute(&minor, 76, handle);
	for (int i = 0; !failed && i < MEMBERS; i++)
		failed = d.attribute(&f.value[i], members[i].attribute, handle);
	if (failed)
		return vc_fail(err, VC_EIO, "the driver says nothing of device %d (error %d)",
			       device, failed);
	f.name = name;
	f.total = total;
	f.cc = major * 10 + minor;
	return write_text(&f, out, n, err);
}
