/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_memory.c - libcudart: allocation of every kind, copies, fills, pointers, pools. */
#include "nullgpu/runtime.h"

#include <stdatomic.h>

/* Numbers of CUPTI's runtime callbacks for the calls a memory tracer subscribes to. */
enum { CB_MALLOC = 20, CB_FREE = 22 };
enum { RUNTIME = 2 };
enum { POOL_CREATED = 1, POOL_TRIMMED = 3 }; /* CUpti_ActivityMemoryPoolOperationType */

static int device_alloc(void **p, size_t n)
{
	uint64_t at;
	vc_runtime_start();
	int rc = vc_runtime_result(vc_null_alloc(vc_null_current(), n, &at));
	if (!rc)
		*p = (void *)at;
	return rc;
}

static int free_any(void *p)
{
	return vc_runtime_result(vc_null_is_host(p) ? vc_null_host_free(p) :
						      vc_null_free((uint64_t)p));
}

VC_API(int, cudaMalloc, void **p, size_t n)
{
	struct { void **p; size_t n; } params = { p, n };
	if (!vc_null_heard_api())
		return device_alloc(p, n);
	vc_null_tell_api(RUNTIME, CB_MALLOC, 0, __func__, &params, NULL);
	int rc = device_alloc(p, n);
	vc_null_tell_api(RUNTIME, CB_MALLOC, 1, __func__, &params, &rc);
	return rc;
}

VC_API(int, cudaFree, void *p)
{
	struct { void *p; } params = { p };
	vc_runtime_start();
	if (!vc_null_heard_api())
		return free_any(p);
	vc_null_tell_api(RUNTIME, CB_FREE, 0, __func__, &params, NULL);
	int rc = free_any(p);
	vc_null_tell_api(RUNTIME, CB_FREE, 1, __func__, &params, &rc);
	return rc;
}

/* Pools: one for each device. What it holds is what is in use: it gives back at once. */
static char pools[VC_NULL_DEVICES];

static void tell_pool(int device, int what, size_t keep)
{
	static atomic_uint known; /* a bit per device: made at the first allocation */
	bool is_new =
		what == POOL_CREATED && !(atomic_fetch_or(&known, 1u << device) >> device & 1);

	if ((is_new || what != POOL_CREATED) && vc_null_heard())
		vc_null_tell(&(struct vc_null_activity){ .kind = VC_NULL_POOL, .memory = what,
			.device = (uint32_t)device, .address = (uint64_t)&pools[device],
			.keep = keep, .size = vc_null_used(device) - vc_null_card()->context });
}

VC_API(int, cudaMallocAsync, void **p, size_t n, void *stream)
{
	vc_runtime_start();
	tell_pool(vc_null_current(), POOL_CREATED, 0);
	vc_null_via((uint64_t)&pools[vc_null_current()]);
	int rc = device_alloc(p, n);
	vc_null_via(0);
	return rc;
}

VC_API_RETURNS(cudaMallocFromPoolAsync, (void **p, size_t n, void *pool, void *stream),
	cudaMallocAsync(p, n, stream))

VC_API(int, cudaFreeAsync, void *p, void *stream)
{
	int device = vc_null_owner((uint64_t)p);
	vc_null_via(device >= 0 ? (uint64_t)&pools[device] : 0);
	int rc = vc_runtime_result(vc_null_free((uint64_t)p));
	vc_null_via(0);
	return rc;
}

VC_API(int, cudaMemPoolTrimTo, void *pool, size_t keep)
{
	long device = (char *)pool - pools;
	if (device >= 0 && device < VC_NULL_DEVICES)
		tell_pool((int)device, POOL_TRIMMED, keep);
	return 0;
}

VC_API_RETURNS(cudaMallocManaged, (void **p, size_t n, unsigned flags),
	vc_runtime_result(vc_null_managed_alloc(n, p)))

VC_API(int, cudaMallocPitch, void **p, size_t *pitch, size_t width, size_t height)
{
	*pitch = (width + 511) / 512 * 512; /* the texture alignment every card reports */
	return device_alloc(p, *pitch * height);
}

VC_API(int, cudaMemGetInfo, size_t *free_bytes, size_t *total)
{
	vc_runtime_start();
	vc_null_meminfo(vc_null_current(), __builtin_return_address(0), free_bytes, total);
	return 0;
}

VC_API(int, cudaHostAlloc, void **p, size_t n, unsigned flags)
{
	vc_runtime_start();
	return vc_runtime_result(vc_null_host_alloc(n, p));
}

VC_API_RETURNS(cudaMallocHost, (void **p, size_t n), cudaHostAlloc(p, n, 0))
VC_API_RETURNS(cudaFreeHost, (void *p), vc_runtime_result(vc_null_host_free(p)))
VC_API_RETURNS(cudaHostRegister, (void *p, size_t n, unsigned flags),
	vc_runtime_result(vc_null_host_register(p, n)))
VC_API_RETURNS(cudaHostUnregister, (void *p), vc_runtime_result(vc_null_host_unregister(p)))
VC_API_DOES(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags), *device = host)

/* cudaPointerAttributes: type, device, device pointer, host pointer */
VC_API(int, cudaPointerGetAttributes, char *out, const void *p)
{
	int device = vc_null_owner((uint64_t)p);
	bool host = device < 0 && vc_null_is_host(p);
	/* cudaMemoryType: 0 unregistered, 1 host, 2 device, 3 managed; device -2 = invalid */
	int type = host && vc_null_is_managed(p) ? 3 : host;
	int head[2] = { device >= 0 ? 2 : type, device >= 0 ? device :
					       host        ? vc_null_current() :
							     -2 };
	memset(out, 0, VC_CUDA_MAJOR >= 13 ? 88 : 24);
	memcpy(out, head, sizeof head);
	if (device >= 0 || host)
		memcpy(out + 8, &p, sizeof p);
	if (host)
		memcpy(out + 16, &p, sizeof p);
	return 0;
}

/* ---- copies and fills ---- */

/* CUpti_ActivityMemcpyKind: 1 to the device, 2 to the host, 8 on the device, 9 on the host */
static int direction(bool to_device, bool from_device)
{
	return to_device ? (from_device ? 8 : 1) : (from_device ? 2 : 9);
}

/* PCIe 4.0 x16 moves about 25 GB/s (32 GB/s nominal); memory that is not pinned is copied by the
 * host first (7.0 to 8.5 GB/s beside an H100, 2026-11-26); on the device the card's bandwidth. */
#define BUS_BYTES_PER_SECOND 25e9
#define PAGEABLE_BYTES_PER_SECOND 7.8e9

static double copy_rate(const void *to, bool to_device, const void *from, bool from_device)
{
	if (to_device && from_device)
		return vc_null_card()->bandwidth / 2;
	return vc_null_is_host(to_device ? from : to) ? BUS_BYTES_PER_SECOND :
							PAGEABLE_BYTES_PER_SECOND;
}

static int copy(void *to, const void *from, size_t n, void *stream, bool blocks)
{
	bool to_device = vc_null_owner((uint64_t)to) >= 0;
	bool from_device = vc_null_owner((uint64_t)from) >= 0;
	double rate = copy_rate(to, to_device, from, from_device);
	uint64_t duration = 2000 + (uint64_t)((double)n / rate * 1e9);
	bool captured;
	uint64_t start = vc_null_work(stream, duration, &captured);
	vc_null_copy(to, from, n);
	if (!captured && vc_null_heard()) {
		const struct vc_null_stream *s = vc_null_stream(stream);
		vc_null_tell(&(struct vc_null_activity){ .kind = VC_NULL_COPY, .start = start,
			.end = start + duration, .size = n, .device = (uint32_t)s->device,
			.stream = s->id, .memory = direction(to_device, from_device) });
	}
	/* a copy to pageable host memory returns when the data is there */
	if (!captured && (blocks || (!to_device && !vc_null_is_host(to))))
		return vc_runtime_result(vc_null_stream_sync(stream));
	return 0;
}

VC_API_RETURNS(cudaMemcpy, (void *to, const void *from, size_t n, int kind),
	copy(to, from, n, NULL, true))
VC_API_RETURNS(cudaMemcpyAsync, (void *to, const void *from, size_t n, int kind, void *stream),
	copy(to, from, n, stream, false))
VC_API_RETURNS(cudaMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device,
       size_t n, void *stream),
	copy(to, from, n, stream, false))
VC_API_RETURNS(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device,
       size_t n),
	copy(to, from, n, NULL, true))

VC_API(int, cudaMemcpy2DAsync, void *to, size_t to_pitch, const void *from, size_t from_pitch,
       size_t width, size_t height, int kind, void *stream)
{
	for (size_t i = 0; i < height; i++)
		vc_null_copy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
	return copy(to, from, width, stream, false);
}

VC_API_RETURNS(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch,
       size_t width, size_t height, int kind),
	cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL))

VC_API(int, cudaMemsetAsync, void *to, int v, size_t n, void *stream)
{
	unsigned char byte = (unsigned char)v;
	uint64_t duration = 2000 + (uint64_t)((double)n / vc_null_card()->bandwidth * 1e9);
	bool captured;
	uint64_t start = vc_null_work(stream, duration, &captured);
	if (captured)
		return 0;
	if (n <= vc_null_card()->copy_max || vc_null_owner((uint64_t)to) < 0) {
		vc_null_wash(to, n);
		memset(to, byte, n);
	}
	if (vc_null_heard()) {
		const struct vc_null_stream *s = vc_null_stream(stream);
		vc_null_tell(&(struct vc_null_activity){ .kind = VC_NULL_SET, .start = start,
			.end = start + duration, .size = n, .address = (uint64_t)to,
			.device = (uint32_t)s->device, .stream = s->id });
	}
	return 0;
}

VC_API_RETURNS(cudaMemset, (void *to, int v, size_t n), cudaMemsetAsync(to, v, n, NULL))

/* ---- pools and sharing ---- */

VC_API_DOES(cudaDeviceGetDefaultMemPool, (void **pool, int device), *pool = &pools[device])

/* cudaMemPoolAttr: three flags, the bytes that are kept, then the reserved and used bytes, now and
 * at their peak */
VC_API(int, cudaMemPoolGetAttribute, void *pool, int attribute, void *out)
{
	uint64_t held = vc_null_used(vc_null_current()) - vc_null_card()->context;
	uint64_t v = attribute > 4 ? held : 0;
	memcpy(out, &v, attribute < 4 ? sizeof(int) : sizeof v);
	return 0;
}

/* ---- memory of other processes ---- */

struct ipc { /* handles are passed by value */
	unsigned char bytes[64];
};
int cuIpcGetMemHandle(void *out, uint64_t p);
int cuIpcOpenMemHandle_v2(uint64_t *p, struct ipc handle, unsigned flags);
int cuIpcCloseMemHandle(uint64_t p);
int cuIpcGetEventHandle(void *out, void *event);
int cuIpcOpenEventHandle(void **event, struct ipc handle);

VC_API_RETURNS(cudaIpcGetMemHandle, (void *out, void *p),
	vc_runtime_result(cuIpcGetMemHandle(out, (uint64_t)p)))
VC_API_RETURNS(cudaIpcOpenMemHandle, (void **p, struct ipc handle, unsigned flags),
	(vc_runtime_start(),
	 vc_runtime_result(cuIpcOpenMemHandle_v2((uint64_t *)p, handle, flags))))
VC_API_RETURNS(cudaIpcCloseMemHandle, (void *p),
	vc_runtime_result(cuIpcCloseMemHandle((uint64_t)p)))
VC_API_RETURNS(cudaIpcGetEventHandle, (void *out, void *event), cuIpcGetEventHandle(out, event))
VC_API_RETURNS(cudaIpcOpenEventHandle, (void **event, struct ipc handle),
	vc_runtime_result(cuIpcOpenEventHandle(event, handle)))
