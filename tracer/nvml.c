/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - see nvml.h. PyTorch asks the same library for the text of an out-of-memory error, from
 * the same place: inside its allocator. */
#define _GNU_SOURCE
#include "tracer/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

enum { DEVICES = 64, MOST = 128 /* processes on one card */ };

struct process { /* nvmlProcessInfo_t of versions 2 and 3 (nvml.h of CUDA 11.1 on) */
	unsigned pid;
	unsigned long long used; /* all ones: not to be had */
	unsigned gpu_instance, compute_instance;
};

static struct {
	pthread_mutex_t lock;
	pid_t of;        /* the process that it was loaded in; a fork loads it anew */
	void *library, *driver;
	int (*list)(void *, unsigned *, struct process *);
	void *handle[DEVICES];
	bool tried[DEVICES];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void load(void)
{
	int (*init)(void);

	g.of = getpid();
	g.list = NULL;
	for (int i = 0; i < DEVICES; i++) {
		g.handle[i] = NULL;
		g.tried[i] = false;
	}
	g.driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	g.library = g.driver ? dlopen("libnvidia-ml.so.1", RTLD_LAZY) : NULL;
	if (!g.library)
		return;
	*(void **)&init = dlsym(g.library, "nvmlInit_v2");
	if (!init || init() != 0)
		return;
	*(void **)&g.list = dlsym(g.library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!g.list)
		*(void **)&g.list = dlsym(g.library, "nvmlDeviceGetComputeRunningProcesses_v2");
}

/* The library counts all cards, CUDA those that the program may see: the bus tells them apart. */
static void *handle_of(uint16_t device)
{
	int (*bus)(char *, int, int), (*find)(const char *, void **);
	int (*mig)(void *, unsigned *, unsigned *);
	unsigned now = 0, later;
	char at[32] = "";
	void *h = NULL;

	if (g.tried[device])
		return g.handle[device];
	g.tried[device] = true;
	*(void **)&bus = dlsym(g.driver, "cuDeviceGetPCIBusId");
	*(void **)&find = dlsym(g.library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&mig = dlsym(g.library, "nvmlDeviceGetMigMode");
	if (!bus || !find || bus(at, sizeof(at), device) != 0 || find(at, &h) != 0 ||
	    (mig && mig(h, &now, &later) == 0 && now))
		return NULL;
	return g.handle[device] = h;
}

static bool sum(void *handle, uint64_t *bytes)
{
	struct process p[MOST];
	unsigned n = MOST;
	bool ours = false;

	*bytes = 0;
	if (g.list(handle, &n, p) != 0 || n > MOST)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (p[i].used == ~0ull)
			return false;
		if ((pid_t)p[i].pid == g.of)
			ours = true;
		else
			*bytes += p[i].used;
	}
	return ours;
}

bool vc_nvml_others(uint16_t device, uint64_t *bytes)
{
	void *handle;
	bool known;

	if (device >= DEVICES || pthread_mutex_trylock(&g.lock) != 0)
		return false;
	if (g.of != getpid())
		load();
	handle = g.list ? handle_of(device) : NULL;
	known = handle && sum(handle, bytes);
	pthread_mutex_unlock(&g.lock);
	return known;
}
