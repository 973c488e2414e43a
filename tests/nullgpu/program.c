/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - a CUDA program without PyTorch: what the null device promises, checked from
 * outside.
 *
 * Run by device.sh with a device of 1 GiB, a context of 100 MiB and a neighbour of 50 MiB. Prints
 * TAP and, after "trace:", the addresses and times it saw, which must be the same in every run.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nullgpu/null.h"

#define MIB (1ull << 20)

typedef void *handle;

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaMemGetInfo(size_t *free_bytes, size_t *total);
int cudaMemcpy(void *to, const void *from, size_t n, int kind);
int cudaMemset(void *to, int v, size_t n);
int cudaMemsetAsync(void *to, int v, size_t n, handle stream);
int cudaHostAlloc(void **p, size_t n, unsigned flags);
int cudaMallocManaged(void **p, size_t n, unsigned flags);
int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *out);
int cudaFreeHost(void *p);
int cudaPointerGetAttributes(void *out, const void *p);
int cudaGetLastError(void);
int cuGetExportTable(const void **table, const void *id);
int cudaPeekAtLastError(void);
const char *cudaGetErrorString(int e);
int cudaSetDevice(int device);
int cudaGetDeviceCount(int *n);
int cudaDeviceGetAttribute(int *value, int what, int device);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int threads,
						  size_t shared);
int cudaGetDeviceProperties(void *out, int device);
int cudaGetDeviceProperties_v2(void *out, int device);
int cudaStreamCreateWithFlags(handle *stream, unsigned flags);
int cudaStreamSynchronize(handle stream);
int cudaStreamBeginCapture(handle stream, int mode);
int cudaStreamEndCapture(handle stream, handle *graph);
int cudaStreamIsCapturing(handle stream, int *status);
int cudaStreamWaitEvent(handle stream, handle event, unsigned flags);
int cudaGraphGetNodes(handle graph, handle *nodes, size_t *n);
int cudaGraphInstantiate(handle *exec, handle graph, unsigned long long flags);
int cudaGraphLaunch(handle exec, handle stream);
struct dim3 { unsigned x, y, z; };
int cudaLaunchKernel(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared,
		     handle stream);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *bdim, void *gdim, int *warp);
int cudaEventCreateWithFlags(handle *event, unsigned flags);
int cudaEventRecord(handle event, handle stream);
int cudaEventQuery(handle event);
int cudaEventSynchronize(handle event);
int cudaEventElapsedTime(float *ms, handle a, handle b);
int cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long flags, int *status);
struct ipc {
	char bytes[64];
};
int cudaIpcGetMemHandle(void *out, void *p);
int cudaIpcOpenMemHandle(void **p, struct ipc handle, unsigned flags);
int cudaIpcCloseMemHandle(void *p);
int cuMemGetAllocationGranularity(size_t *g, const void *prop, int option);
int cuMemAddressReserve(uint64_t *p, size_t n, size_t align, uint64_t at, unsigned long long flags);
int cuMemAddressFree(uint64_t p, size_t n);
int cuMemCreate(uint64_t *h, size_t n, const void *prop, unsigned long long flags);
int cuMemRelease(uint64_t h);
int cuMemMap(uint64_t p, size_t n, size_t offset, uint64_t h, unsigned long long flags);
int cuMemUnmap(uint64_t p, size_t n);
int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t p);
int cuMemExportToShareableHandle(void *out, uint64_t h, int type, uint64_t flags);
int cuMemImportFromShareableHandle(uint64_t *h, void *from, int type);
int cuPointerGetAttribute(void *out, int attribute, uint64_t p);
int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status);
int cuMemAlloc_v2(uint64_t *p, size_t n);
int cuDeviceGet(int *device, int ordinal);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, handle *device);
int nvmlDeviceGetGpuFabricInfoV(handle device, void *info);
int nvmlDeviceGetComputeRunningProcesses(handle device, unsigned *n, void *out);

static int n_tests, failed;

static void ok(bool good, const char *name)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++n_tests, name);
	failed |= !good;
}

static size_t free_now(void)
{
	size_t f = 0, total = 0;
	cudaMemGetInfo(&f, &total);
	return f;
}

static void test_capacity(void)
{
	size_t f, total;
	void *p, *q, *none = NULL;
	cudaMemGetInfo(&f, &total);
	ok(total == 1024 * MIB && f == (1024 - 100 - 50) * MIB,
	   "free memory is the total less the context and other processes");
	ok(cudaMalloc(&p, 3 * MIB + 1) == 0 && free_now() == f - 4 * MIB,
	   "memory comes in pages of 2 MiB");
	ok(cudaMalloc(&q, 1) == 0 && free_now() == f - 6 * MIB,
	   "the first small request takes a page");
	cudaFree(q);
	ok(free_now() == f - 4 * MIB, "an empty shared page goes back");
	ok(cudaMalloc(&none, 871 * MIB) == 2 && cudaPeekAtLastError() == 2 &&
		   cudaGetLastError() == 2 && cudaGetLastError() == 0,
	   "more than is left is refused with error 2, once");
	ok(strcmp(cudaGetErrorString(2), "out of memory") == 0, "the error has its name");
	ok(cudaMalloc(&q, 870 * MIB) == 0 && free_now() == 0, "the last byte can be had");
	ok(cudaFree(q) == 0 && cudaFree(p) == 0 && free_now() == f, "everything comes back");
	ok(cudaFree(p) != 0 && cudaFree((void *)&total) != 0, "freeing twice or elsewhere fails");
	ok(cudaFree(NULL) == 0, "freeing nothing is fine");
	cudaGetLastError();
}

static void test_small(void)
{
	size_t f = free_now();
	char *p[8];
	bool apart = true;
	for (int i = 0; i < 8; i++)
		cudaMalloc((void **)&p[i], 1000);
	for (int i = 1; i < 8; i++)
		apart &= p[i] == p[i - 1] + 1024;
	ok(apart && free_now() == f - 2 * MIB, "small requests share a page in steps of 512 bytes");
	for (int i = 0; i < 8; i++)
		cudaFree(p[i]);
	ok(free_now() == f, "and leave nothing behind");
}

static void test_data(void)
{
	char *p, *host, in[64] = "sixteen tons", out[64];
	struct { int type, device; void *device_pointer, *host_pointer; } a;
	cudaMalloc((void **)&p, 8 * MIB);
	cudaMemcpy(p, in, sizeof in, 1);
	cudaMemcpy(out, p, sizeof out, 2);
	ok(memcmp(in, out, sizeof in) == 0, "small copies are real");
	cudaMemset(p, 7, 100);
	ok(p[99] == 7 && p[100] == 0, "small fills are real, the rest reads as zeros");
	cudaHostAlloc((void **)&host, 4 * MIB, 0);
	memset(host, 1, 4 * MIB);
	cudaMemcpy(p, host, 4 * MIB, 1);
	cudaMemcpy(host, p, 4 * MIB, 2);
	ok(host[0] == 0 && host[4 * MIB - 1] == 0, "large copies to the host read as zeros");
	cudaPointerGetAttributes(&a, p + 5);
	ok(a.type == 2 && a.device == 0 && a.device_pointer == p + 5, "device pointers are known");
	cudaPointerGetAttributes(&a, host);
	ok(a.type == 1 && a.host_pointer == host, "pinned pointers are known");
	cudaPointerGetAttributes(&a, in);
	ok(a.type == 0, "others are not");
	cudaFreeHost(host);
	cudaFree(p);
}

static void test_managed(void)
{
	char *p, *more;
	size_t f = free_now(), whole = f + MIB;
	struct { int type, device; void *device_pointer, *host_pointer; } a;
	ok(cudaMallocManaged((void **)&p, 4 * MIB, 1) == 0 && free_now() == f,
	   "managed memory makes room for what else is asked for");
	ok(cudaPointerGetAttributes(&a, p) == 0 && a.type == 3 && a.host_pointer == p,
	   "its pointers are known");
	ok(cudaMallocManaged((void **)&more, whole, 1) == 0 && free_now() == f,
	   "it may be more than the card has");
	more[0] = more[whole - 1] = 7;
	ok(more[0] == 7 && more[1] == 0, "both are written and read by the host");
	ok(cudaFree(more) == 0 && cudaFree(p) == 0 && free_now() == f, "and given back");
}

/* How many of the bytes are `value`. */
static size_t count(const char *p, size_t n, char value)
{
	static char host[MIB];
	size_t found = 0;
	for (size_t done = 0, part; done < n; done += part) {
		part = n - done < MIB ? n - done : MIB;
		cudaMemcpy(host, p + done, part, 2);
		for (size_t i = 0; i < part; i++)
			found += host[i] == value;
	}
	return found;
}

static void test_fresh(void)
{
	char *p;
	cudaMalloc((void **)&p, 6 * MIB);
	for (int i = 0; i < 6; i++)
		cudaMemset(p + (size_t)i * MIB, 7, MIB);
	vc_null_fresh(p + 1024, 3000); /* a block of 3072 */
	ok(count(p, 1024, 7) == 1024 && count(p + 1024, 3072, 0) == 3072 &&
	   count(p + 4096, MIB - 4096, 7) == MIB - 4096, "what is handed out anew reads as zeros");
	cudaMemset(p + 1024, 7, 3072);
	vc_null_fresh(p + MIB + 512, 4 * MIB);
	cudaMemset(p + 3 * MIB + 100, 9, 8);
	ok(count(p, 6 * MIB, 7) == 2 * MIB && count(p, 6 * MIB, 9) == 8 &&
		   count(p, 6 * MIB, 0) == 4 * MIB - 8,
	   "also across pages and around what was written since");
	vc_null_fresh(p, 6 * MIB);
	cudaFree(p);
	cudaMalloc((void **)&p, 6 * MIB);
	p[5] = 3; /* as a program does with managed memory */
	ok(count(p, 512, 3) == 1, "memory that went back is nobody's");
	cudaFree(p);
}

/* A piece of 20 MiB goes through a file, as ranks send each other their symmetric memory. */
static void test_sharing(uint64_t h, uint64_t at)
{
	size_t f = free_now();
	uint64_t other;
	int file = -1;
	ok(cuMemExportToShareableHandle(&file, h, 1, 0) == 0 && file >= 0 &&
	   cuMemImportFromShareableHandle(&other, (void *)(intptr_t)file, 1) == 0 &&
	   cuMemMap(at, 20 * MIB, 0, other, 0) == 0 && free_now() == f,
	   "a piece of another process costs nothing here");
	ok(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)-1, 1) != 0 &&
	   cuMemExportToShareableHandle(&file, 0, 1, 0) != 0 &&
	   cuMemExportToShareableHandle(&file, h, 2, 0) == 801, "what is no handle is refused");
	ok(cuMemUnmap(at, 20 * MIB) == 0 && cuMemRelease(other) == 0 && free_now() == f,
	   "nor does it give anything back");
	close(file);
}

static void test_mapping(void)
{
	struct { int type, handles, location, id; } prop = { 1, 0, 1, 0 };
	size_t f = free_now(), granularity = 0, size;
	uint64_t at, h, base;
	cuMemGetAllocationGranularity(&granularity, &prop, 0);
	ok(granularity == 2 * MIB, "physical pieces come in 2 MiB");
	ok(cuMemAddressReserve(&at, 4096 * MIB, 0, 0, 0) == 0 && free_now() == f,
	   "addresses cost nothing");
	ok(cuMemCreate(&h, 3 * MIB, &prop, 0) != 0, "odd sizes are refused");
	ok(cuMemCreate(&h, 20 * MIB, &prop, 0) == 0 && free_now() == f - 20 * MIB,
	   "pieces cost memory");
	ok(cuMemMap(at, 20 * MIB, 0, h, 0) == 0 && cuMemMap(at, 20 * MIB, 0, h, 0) != 0,
	   "a place is mapped once");
	ok(cuMemGetAddressRange_v2(&base, &size, at + 5) == 0 && base == at && size == 20 * MIB,
	   "the range of a mapping is known");
	test_sharing(h, at + 20 * MIB);
	cuMemRelease(h);
	ok(cuMemRelease(h) != 0 && free_now() == f - 20 * MIB,
	   "a released piece lives while it is mapped, and is released once");
	ok(cuMemUnmap(at, 20 * MIB) == 0 && free_now() == f, "and goes with its last mapping");
	ok(cuMemCreate(&h, 876 * MIB, &prop, 0) == 2, "pieces obey the capacity");
	ok(cuMemAddressFree(at, 4096 * MIB) == 0, "addresses go back");
	printf("trace: mapping %#llx\n", (unsigned long long)at);
}

static struct vc_kernel_work told; /* of the last kernel */

static void listen(const struct vc_null_activity *a)
{
	if (a->work)
		told = *a->work;
}

/* What an addition of half numbers moves, by its arguments and the blocks of PyTorch's allocator:
 * one operand is a row that is added to each, in place. */
static void see_work(char *p)
{
	static const char add[] = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15"
				  "CUDAFunctor_addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_";
	static const char kernel, softmax;
	int elements = 1 << 20, rows = 3;
	uint64_t from = (uint64_t)p, data[3] = { from, from, from + (8 << 20) };
	uint64_t first = from + (16 << 20), second = from + (32 << 20);
	void *args[] = { &elements, &rows, data }, *others[] = { &first, &second, &rows };
	vc_null_fresh(p, 2 << 20);
	vc_null_fresh(p + (8 << 20), 2048);
	vc_null_fresh(p + (16 << 20), 4 << 20);
	vc_null_fresh(p + (32 << 20), 1 << 20);
	__cudaRegisterFunction(NULL, &kernel, NULL, add, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(NULL, &softmax, NULL, "cunn_SoftMaxForward", -1, NULL, NULL, NULL,
			       NULL, NULL);
	vc_null_listen(listen);
	cudaLaunchKernel(&kernel, (struct dim3){ 1024, 1, 1 }, (struct dim3){ 128, 1, 1 }, args, 0,
			 NULL);
	ok(told.kind == VC_WORK_ELEMENTWISE && !strcmp(told.type, "bf16") &&
	   told.written == 2 << 20 && told.read == (2 << 20) + 2048,
	   "an addition reads both operands and writes one");
	cudaLaunchKernel(&softmax, (struct dim3){ 64, 1, 1 }, (struct dim3){ 128, 1, 1 }, others, 0,
			 NULL);
	ok(told.kind == VC_WORK_REDUCTION && told.read + told.written == 5 << 20,
	   "another kernel moves the blocks that its arguments point into");
	told.kind = VC_WORK_OTHER;
	vc_null_tries(1);
	cudaLaunchKernel(&softmax, (struct dim3){ 64, 1, 1 }, (struct dim3){ 128, 1, 1 }, others, 0,
			 NULL);
	vc_null_tries(-1);
	ok(told.kind == VC_WORK_OTHER, "nobody is told of one that is only timed");
	vc_null_listen(NULL);
}

static void test_streams(void)
{
	handle s, t, e, e2;
	char *p;
	float ms = 0;
	int polls = 0;
	cudaMalloc((void **)&p, 512 * MIB);
	cudaStreamCreateWithFlags(&s, 1);
	cudaStreamCreateWithFlags(&t, 1);
	ok(cudaEventCreateWithFlags(&e, 0) == 0 && cudaEventCreateWithFlags(&e2, 0) == 0,
	   "events are made");
	ok(cudaEventQuery(e) == 0, "an event never recorded is finished");
	cudaEventRecord(e2, s);
	cudaMemsetAsync(p, 0, 512 * MIB, s);
	cudaEventRecord(e, s);
	ok(cudaEventQuery(e) == 600, "an event behind work is not finished at once");
	while (cudaEventQuery(e) == 600 && polls < 1000000)
		polls++;
	ok(polls > 0 && polls < 1000000, "but it gets finished");
	cudaEventElapsedTime(&ms, e2, e);
	ok(ms > 0.4 && ms < 0.7, "filling 512 MiB takes what the bandwidth says");
	handle never, untimed;
	cudaEventCreateWithFlags(&never, 0);
	cudaEventCreateWithFlags(&untimed, 2);
	cudaEventRecord(untimed, s);
	ok(cudaEventElapsedTime(&ms, e, never) == 400 &&
	   cudaEventElapsedTime(&ms, never, e) == 400 &&
	   cudaEventElapsedTime(&ms, e, untimed) == 400 && !cudaEventElapsedTime(&ms, e2, e),
	   "no time from or to an event that was never recorded, or has none");
	static const char kernel;
	int elements = 64 << 20;
	void *args[] = { &elements };
	__cudaRegisterFunction(NULL, &kernel, NULL, "vectorized_elementwise_kernel", -1, NULL, NULL,
			       NULL, NULL, NULL);
	cudaEventRecord(e2, s);
	cudaLaunchKernel(&kernel, (struct dim3){ 1024, 1, 1 }, (struct dim3){ 128, 1, 1 }, args, 0,
			 s);
	cudaEventRecord(e, s);
	cudaEventSynchronize(e);
	cudaEventElapsedTime(&ms, e2, e);
	ok(ms > 0.4 && ms < 0.7, "so does a kernel that reads and writes 256 MiB");
	see_work(p);
	cudaMemsetAsync(p, 0, 512 * MIB, s);
	cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	cudaEventRecord(e2, t);
	ok(cudaEventQuery(e2) == 600 && cudaEventSynchronize(e2) == 0 && cudaEventQuery(e) == 0,
	   "a stream waits for another's event");
	printf("trace: polls %d, %.6f ms\n", polls, ms);
	cudaGetLastError();
	cudaFree(p);
}

static void *wait_for(void *event)
{
	while (cudaEventQuery(event) == 600)
		;
	return NULL;
}

/* As NCCL's watchdog does while the program waits for it to end. */
static void test_idle(void)
{
	handle s, e;
	char *p;
	pthread_t watcher;
	cudaMalloc((void **)&p, 512 * MIB);
	cudaStreamCreateWithFlags(&s, 1);
	cudaEventCreateWithFlags(&e, 0);
	cudaMemsetAsync(p, 0, 512 * MIB, s);
	cudaEventRecord(e, s);
	ok(pthread_create(&watcher, NULL, wait_for, e) == 0 && pthread_join(watcher, NULL) == 0,
	   "a thread that submits nothing sees work end while the program stands still");
	ok(cudaEventQuery(e) == 600, "which changes nothing for the program");
	cudaEventSynchronize(e);
	cudaGetLastError();
	cudaFree(p);
}

static void test_capture(void)
{
	handle s, t, e, graph, exec;
	size_t nodes = 0;
	int status = 0;
	void *p;
	cudaMalloc(&p, 2 * MIB);
	cudaStreamCreateWithFlags(&s, 1);
	cudaStreamCreateWithFlags(&t, 1);
	cudaEventCreateWithFlags(&e, 2);
	ok(cudaStreamBeginCapture(s, 1) == 0 && cudaStreamIsCapturing(s, &status) == 0 &&
		   status == 1,
	   "a stream captures");
	cudaMemsetAsync(p, 1, 8, s);
	ok(*(char *)p == 0, "captured work does not run");
	cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	cudaStreamIsCapturing(t, &status);
	ok(status == 1, "waiting for a captured event joins the capture");
	cudaMemsetAsync(p, 1, 8, t);
	ok(cudaStreamSynchronize(s) == 900 && cudaEventQuery(e) == 900,
	   "waiting inside a capture is refused");
	ok(cudaStreamEndCapture(s, &graph) == 0 && cudaGraphGetNodes(graph, NULL, &nodes) == 0 &&
		   nodes == 2,
	   "the graph has the nodes of both streams");
	cudaStreamIsCapturing(t, &status);
	ok(status == 0 && cudaGraphInstantiate(&exec, graph, 0) == 0 &&
		   cudaGraphLaunch(exec, s) == 0,
	   "it can be launched, and both streams are free again");
	cudaGetLastError();
	cudaFree(p);
}

/* As many blocks as threads, shared memory and the card allow: one more is too many. */
static void test_occupancy(void)
{
	static const int threads[] = { 0, 32, 256, 1024 };
	static const size_t shared[] = { 0, 1, 4096, 48 << 10 };
	int in_all, room, most, n;
	bool good = true;
	cudaDeviceGetAttribute(&in_all, 39, 0);
	cudaDeviceGetAttribute(&room, 81, 0);
	cudaDeviceGetAttribute(&most, 106, 0);
	for (int i = 0; i < 16; i++) {
		int t = threads[i % 4];
		size_t s = shared[i / 4];
		n = 0;
		cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, t, s);
		good = good && n >= 1 && n <= most && n * t <= in_all &&
		       (n == 1 || (size_t)n * s <= (size_t)room) &&
		       (!t || n == most || (n + 1) * t > in_all ||
			((size_t)n + 1) * s > (size_t)room);
	}
	ok(good, "a multiprocessor takes as many blocks as threads and shared memory allow");
}

/* Flags are ints, what is a number of bytes has 64 bits. */
static void test_pool(void)
{
	void *pool, *p;
	bool good = true;
	cudaMalloc(&p, 4 * MIB);
	cudaDeviceGetDefaultMemPool(&pool, 0);
	for (int a = 1; a <= 8; a++) {
		uint64_t v[2] = { UINT64_MAX, UINT64_MAX };
		cudaMemPoolGetAttribute(pool, a, v);
		good = good && v[1] == UINT64_MAX && (a < 4 ? v[0] == UINT64_MAX << 32 :
			a == 4 ? v[0] == 0 : v[0] >= 4 * MIB && v[0] < 1024 * MIB);
	}
	ok(good, "a pool has flags, a threshold, and what it holds");
	cudaFree(p);
}

/* What the driver and NVML say when they are asked for more than there is. */
static void test_driver(void)
{
	struct { unsigned pid, pad; unsigned long long used; } list[2] = { { 0, 0, 0 },
									  { 7, 7, 7 } };
	int device = -1, status = -1, type[2] = { 0 };
	int (*const alloc)(uint64_t *, size_t) = cuMemAlloc_v2;
	uint64_t at[2] = { 0 };
	unsigned n = 1, none = 0;
	void *p, *host, *f = NULL;
	handle nvml;

	nvmlDeviceGetHandleByIndex_v2(0, &nvml);
	/* a caller's structure of 32 bytes, as PyTorch's, and a larger one; smaller is none */
	struct { unsigned version; unsigned char rest[32]; } fabric = { 32, { [27] = 1, 1 } };
	ok(nvmlDeviceGetGpuFabricInfoV(nvml, &fabric) == 0 && !fabric.rest[27] && fabric.rest[28],
	   "no fabric, in a structure of the caller's size");
	fabric.version = 31;
	ok(nvmlDeviceGetGpuFabricInfoV(nvml, &fabric) == 2, "... which has to be large enough");
	ok(nvmlDeviceGetComputeRunningProcesses(nvml, &n, list) == 7 && n == 2 &&
	   list[0].pid == (unsigned)getpid() && list[1].pid == 7 &&
	   nvmlDeviceGetComputeRunningProcesses(nvml, &none, NULL) == 7 && none == 2,
	   "NVML says how much room a list needs, and writes no more than there is");
	ok(cuDeviceGet(&device, 1) == 0 && device == 1 && cuDeviceGet(&device, 2) == 101 &&
	   cuDeviceGet(&device, -1) == 101 && device == 1, "the driver has as many devices");
	cudaMalloc(&p, MIB);
	cudaHostAlloc(&host, MIB, 0);
	ok(cuPointerGetAttribute(&type[0], 2, (uint64_t)p) == 0 && type[0] == 2 &&
	   cuPointerGetAttribute(&type[1], 2, (uint64_t)host) == 0 && type[1] == 1 &&
	   cuPointerGetAttribute(&at[0], 3, (uint64_t)p) == 0 && at[0] == (uint64_t)p &&
	   cuPointerGetAttribute(&at[0], 4, (uint64_t)p) == 1 &&
	   cuPointerGetAttribute(&at[1], 4, (uint64_t)host) == 0 && at[1] == (uint64_t)host &&
	   cuPointerGetAttribute(&type[0], 2, (uint64_t)list) == 1,
	   "a pointer is of the device, of the host, or of neither");
	cudaFree(p);
	cudaFreeHost(host);
	ok(cuGetProcAddress_v2("cuMemAlloc", &f, 12000, 0, &status) == 0 && status == 0 &&
	   memcmp(&f, &alloc, sizeof(f)) == 0 &&
	   cuGetProcAddress_v2("cuMemCreate", &f, 12000, 0, &status) == 0 && f && status == 0 &&
	   cuGetProcAddress_v2("cuNoSuchThing", &f, 12000, 0, &status) == 500 && !f && status == 1,
	   "a name without its number is the newest form of it");
}

static void test_machine(void)
{
	struct { unsigned pid, pad; unsigned long long used; } list[8];
	unsigned n = 8;
	char properties[1032];
	int devices = 0, status = 1;
	uint64_t total;
	handle nvml;
	void *f, *p, *q = NULL;
	const void *table = &n;
	ok(cudaGetDeviceCount(&devices) == 0 && devices == 2,
	   "there are as many devices as asked for");
	cudaGetDeviceProperties_v2(properties, 0);
	memcpy(&total, properties + 288, sizeof total);
	ok(strcmp(properties, "Test Card") == 0 && total == 1024 * MIB,
	   "they are the card asked for");
	memset(properties, 1, sizeof properties);
	cudaGetDeviceProperties(properties, 0);
	ok(strcmp(properties, "Test Card") == 0 && properties[1031] == 1,
	   "also under the name of CUDA 11, whose structure ends earlier");
	test_occupancy();
	cudaSetDevice(1);
	cudaMalloc(&p, 100 * MIB);
	cudaSetDevice(0);
	ok(free_now() == 872 * MIB /* 2 of a graph */, "devices count their memory apart");
	ok(cudaSetDevice(2) == 101, "there is no further one");
	cudaGetLastError();
	nvmlDeviceGetHandleByIndex_v2(1, &nvml);
	ok(nvmlDeviceGetComputeRunningProcesses(nvml, &n, list) == 0 && n == 2 &&
	   list[0].pid == (unsigned)getpid() && list[0].used == 200 * MIB && list[1].pid == 4242 &&
	   list[1].used == 50 * MIB, "NVML names this process and its neighbour");
	ok(cudaGetDriverEntryPoint("cuMemCreate", &f, 0, &status) == 0 && f && status == 0 &&
	   cudaGetDriverEntryPoint("cuNoSuchThing", &f, 0, &status) == 0 && !f && status == 1,
	   "driver functions are found by name, others are not");
	struct ipc shared;
	uint64_t before = free_now();
	ok(cudaIpcGetMemHandle(&shared, p) == 0 && cudaIpcOpenMemHandle(&q, shared, 1) == 0 &&
	   q && q != p && free_now() == before && cudaIpcCloseMemHandle(q) == 0 &&
	   cuMemGetAddressRange_v2(NULL, NULL, (uint64_t)q) != 0 &&
	   cudaIpcCloseMemHandle(q) != 0 && cudaIpcGetMemHandle(&shared, &shared) != 0,
	   "memory that is shared with another process costs its owner only");
	ok(cuGetExportTable(&table, "") == 500 && !table && cuGetExportTable(&table, "") == 500,
	   "private tables of the driver are refused");
}

static void test_addresses(void)
{
	char *p[4];
	cudaMalloc((void **)&p[0], 20 * MIB);
	cudaMalloc((void **)&p[1], 20 * MIB);
	cudaMalloc((void **)&p[2], 12 * MIB);
	cudaMalloc((void **)&p[3], 400 * MIB);
	printf("trace: addresses %p %p %p %p\n", (void *)p[0], (void *)p[1], (void *)p[2],
	       (void *)p[3]);
	for (int i = 0; i < 4; i++)
		cudaFree(p[i]);
}

int main(void)
{
	test_addresses();
	test_capacity();
	test_small();
	test_data();
	test_managed();
	test_fresh();
	test_mapping();
	test_streams();
	test_idle();
	test_capture();
	test_driver();
	test_pool();
	test_machine();
	return failed;
}
