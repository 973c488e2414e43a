/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what a process leaves for `vramcast dryrun`: peaks, refusals, and the questions
 * about memory that the null GPU answered with a bound instead of what the library would say. */
#define _GNU_SOURCE
#include "common/vec.h"
#include "nullgpu/null.h"
#include "nullgpu/usage.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vc_null_report *report;
static struct vc_null_report nowhere; /* when there is no folder for it */

/* A forked child reports for itself, and only if it uses a device. */
static void forget(void)
{
	report = NULL;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(&nowhere, 0, sizeof nowhere);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

/* ---- how the process ends ---- */

/* CUDA_VISIBLE_DEVICES may hide and reorder; it may also name devices in other ways. */
static void number_devices(struct vc_null_report *r)
{
	const char *seen = getenv("CUDA_VISIBLE_DEVICES");
	for (int i = 0; i < VC_REPORT_DEVICES; i++) {
		char *end = NULL;
		long n = seen ? strtol(seen, &end, 10) : i;
		r->number[i] = (int16_t)(seen && end == seen ? -1 : n);
		seen = seen ? strchr(seen, ',') : NULL;
		if (seen)
			seen++;
		else if (end)
			seen = "";
	}
}

static uint64_t machine_time(void)
{
	struct timespec t = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Not of another one that shares this memory: between vfork and exec. */
static void note_end(int status)
{
	struct vc_null_report *r = __atomic_load_n(&report, __ATOMIC_ACQUIRE);
	if (!r || r->pid != getpid())
		return;
	r->status = status & 0xff;
	r->ended_ns = machine_time();
	r->ended = 1;
}

static void note_exit(int status, void *unused)
{
	struct vc_null_report *r = __atomic_load_n(&report, __ATOMIC_ACQUIRE);
	note_end(status);
	if (r && r->pid == getpid())
		vc_null_ends(status);
}

/* Workers of multiprocessing, and children of os.fork, end here and not by exit. */
VC_SHARED void _exit(int status) __attribute__((noreturn));

void _exit(int status)
{
	void (*next)(int);
	note_end(status);
	*(void **)&next = dlsym(RTLD_NEXT, "_exit");
	if (next)
		next(status);
	__builtin_trap();
}

static int max_of(int a, int b)
{
	return a > b ? a : b;
}

static struct vc_null_report *make(void)
{
	const char *dir = getenv("VRAMCAST_NULL_REPORT");
	char path[1024];
	if (!dir || !*dir)
		return &nowhere;
	snprintf(path, sizeof path, "%s/report.%d", dir, (int)getpid());
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, sizeof *report) == 0)
		p = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? &nowhere : p;
}

struct vc_null_report *vc_null_report(void)
{
	struct vc_null_report *r = __atomic_load_n(&report, __ATOMIC_ACQUIRE);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (!report) {
		r = make();
		r->magic = VC_REPORT_MAGIC;
		r->pid = (int32_t)getpid();
		r->parent = (int32_t)getppid();
		r->began_ns = machine_time();
		number_devices(r);
		on_exit(note_exit, NULL);
		__atomic_store_n(&report, r, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return report;
}

/* A launcher says how many processes it started on this machine, one a card. */
int vc_null_no_device(int device)
{
	struct vc_null_report *r = vc_null_report();
	const char *ranks = getenv("LOCAL_WORLD_SIZE");
	int wanted = max_of(device + 1, ranks ? (int)strtol(ranks, NULL, 10) : 0);
	if (device >= 0)
		r->devices = max_of(r->devices, wanted);
	return VC_NULL_BADDEVICE;
}

void vc_null_touch(const char *name, unsigned char *seen)
{
	if (*seen)
		return;
	*seen = 1;
	if (vc_null_card()->log > 0)
		vc_null_log("no behaviour of its own, answers success: %s", name);
}

/* The entry of that name, or NULL when the table is full; the caller holds the lock. */
static struct vc_null_unknown *entry(struct vc_null_report *r, const char *name)
{
	uint32_t i = 0;
	while (i < r->names && strncmp(r->name[i].name, name, VC_REPORT_NAME - 1))
		i++;
	if (i == VC_REPORT_NAMES)
		return NULL;
	if (i == r->names)
		snprintf(r->name[r->names++].name, VC_REPORT_NAME, "%s", name);
	return &r->name[i];
}

static void add(const char *name, const struct vc_null_unknown *more)
{
	struct vc_null_report *r = vc_null_report();
	pthread_mutex_lock(&lock);
	struct vc_null_unknown *u = entry(r, name);
	if (u) {
		u->at_most += more->at_most;
		u->beside += more->beside;
		u->fewer += more->fewer;
		u->ranks |= more->ranks;
		u->bounded |= more->bounded;
	}
	pthread_mutex_unlock(&lock);
}

void vc_null_at_most(const char *name, uint64_t bytes)
{
	add(name, &(struct vc_null_unknown){ .at_most = bytes, .bounded = bytes != 0 });
}

void vc_null_beside(const char *name, uint64_t bytes)
{
	add(name, &(struct vc_null_unknown){
		.at_most = bytes, .beside = bytes, .bounded = 1 });
}

/* From the python side: what of the device's memory that was asked for may not be. */
VC_SHARED void vc_null_fewer(const char *name, uint64_t bytes);

void vc_null_fewer(const char *name, uint64_t bytes)
{
	add(name, &(struct vc_null_unknown){ .fewer = bytes, .bounded = 1 });
}

void vc_null_ranks_decide(const char *name)
{
	add(name, &(struct vc_null_unknown){ .ranks = 1 });
}

/* From the python side: an optimizer has made a step. */
VC_SHARED void vc_null_step(void);

void vc_null_step(void)
{
	__atomic_add_fetch(&vc_null_report()->steps, 1, __ATOMIC_RELAXED);
}

void vc_null_range(const char *name, const struct vc_null_range *range)
{
	struct vc_null_report *r = vc_null_report();
	pthread_mutex_lock(&lock);
	struct vc_null_unknown *u = entry(r, name);
	if (u) {
		u->bounded = 1;
		vc_raise(&u->least, range->least);
		vc_raise(&u->counted, range->counted);
		vc_raise(&u->most, range->most);
		if (!range->measured)
			vc_raise(&u->at_most, range->most - range->counted);
	}
	pthread_mutex_unlock(&lock);
}

void vc_null_workspace(uint64_t bytes)
{
	struct vc_null_report *r = vc_null_report();
	uint32_t i = 0;
	if (bytes < VC_MIB)
		return;
	pthread_mutex_lock(&lock);
	while (i < r->workspaces && r->workspace[i] != bytes)
		i++;
	if (i == r->workspaces && i < VC_REPORT_WORKSPACES)
		r->workspace[r->workspaces++] = bytes;
	pthread_mutex_unlock(&lock);
}

void vc_null_bound(const char *name, unsigned char *seen)
{
	if (*seen)
		return;
	*seen = 1;
	vc_null_at_most(name, 0);
	if (vc_null_card()->log > 0)
		vc_null_log("answers with a bound: %s", name);
}

/* From the python side: a size that depends on values nobody computed. */
VC_SHARED void vc_null_values_unknown(const char *name);

void vc_null_values_unknown(const char *name)
{
	vc_null_at_most(name, 0);
}

/* From the python side: what the allocator of JAX or TensorFlow held at most, or that it refused
 * something (of `size` bytes; 0: not said). */
VC_SHARED void vc_null_pool(int device, uint64_t peak, int refused, uint64_t size);

void vc_null_pool(int device, uint64_t peak, int refused, uint64_t size)
{
	struct vc_null_report *r = vc_null_report();
	if (device < 0 || device >= VC_REPORT_DEVICES)
		return;
	pthread_mutex_lock(&lock);
	vc_raise(&r->device[device].pool, peak);
	vc_raise(&r->device[device].largest_refused, size);
	r->device[device].refused += refused != 0;
	pthread_mutex_unlock(&lock);
}
