/* SPDX-License-Identifier: Apache-2.0 */
/* driver_memory.c - libcuda.so.1: allocation, copies, pointers, virtual memory management. */
#include "nullgpu/null.h"

/* Numbers of CUPTI's driver callbacks for the calls a memory tracer subscribes to. */
enum { CB_MEM_ALLOC = 243, CB_MEM_FREE = 245, CB_RESERVE = 547, CB_UNRESERVE = 548, CB_CREATE = 549,
	CB_RELEASE = 550, CB_MAP = 551, CB_UNMAP = 552, CB_SET_ACCESS = 553 };
enum { DRIVER = 1 };

#define TOLD(cbid, params, call) do { \
	if (!vc_null_heard_api()) \
		return (call); \
	vc_null_tell_api(DRIVER, (cbid), 0, __func__, (params), NULL); \
	int told_ = (call); \
	vc_null_tell_api(DRIVER, (cbid), 1, __func__, (params), &told_); \
	return told_; \
} while (0)

VC_API(int, cuMemAlloc_v2, uint64_t *p, size_t n)
{
	struct { uint64_t *p; size_t n; } params = { p, n };
	TOLD(CB_MEM_ALLOC, &params, vc_null_alloc(vc_null_current(), n, p));
}

VC_API(int, cuMemFree_v2, uint64_t p)
{
	struct { uint64_t p; } params = { p };
	TOLD(CB_MEM_FREE, &params, vc_null_is_host((void *)p) ? vc_null_host_free((void *)p) :
							       vc_null_free(p));
}

VC_API_RETURNS(cuMemAllocAsync, (uint64_t *p, size_t n, void *stream),
	vc_null_alloc(vc_null_current(), n, p))
VC_API_RETURNS(cuMemFreeAsync, (uint64_t p, void *stream), vc_null_free(p))
VC_API_RETURNS(cuMemAllocManaged, (uint64_t *p, size_t n, unsigned flags),
	vc_null_managed_alloc(n, (void **)p))

VC_API(int, cuMemAllocPitch_v2, uint64_t *p, size_t *pitch, size_t width, size_t height,
       unsigned element)
{
	*pitch = (width + 511) / 512 * 512; /* the texture alignment every card reports */
	return vc_null_alloc(vc_null_current(), *pitch * height, p);
}

VC_API_RETURNS(cuMemAllocHost_v2, (void **p, size_t n), vc_null_host_alloc(n, p))
VC_API_RETURNS(cuMemHostAlloc, (void **p, size_t n, unsigned flags), vc_null_host_alloc(n, p))
VC_API_RETURNS(cuMemFreeHost, (void *p), vc_null_host_free(p))
VC_API_RETURNS(cuMemHostRegister_v2, (void *p, size_t n, unsigned flags),
	vc_null_host_register(p, n))
VC_API_RETURNS(cuMemHostUnregister, (void *p), vc_null_host_unregister(p))
VC_API_DOES(cuMemHostGetDevicePointer_v2, (uint64_t *d, void *p, unsigned flags), *d = (uint64_t)p)
VC_API_DOES(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total),
	vc_null_meminfo(vc_null_current(), __builtin_return_address(0), free_bytes, total))

VC_API(int, cuMemGetAddressRange_v2, uint64_t *base, size_t *size, uint64_t p)
{
	uint64_t b;
	size_t n;
	int rc = vc_null_extent(p, &b, &n);
	if (rc)
		return rc;
	if (base)
		*base = b;
	if (size)
		*size = n;
	return 0;
}

/* ---- copies and fills ---- */

static int copy(uint64_t to, uint64_t from, size_t n, void *stream)
{
	vc_null_copy((void *)to, (const void *)from, n);
	vc_null_work(stream, (uint64_t)((double)n / vc_null_card()->bandwidth * 1e9), NULL);
	return 0;
}

VC_API_RETURNS(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t n),
	copy(to, (uint64_t)from, n, NULL))
VC_API_RETURNS(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t n),
	copy((uint64_t)to, from, n, NULL))
VC_API_RETURNS(cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t n), copy(to, from, n, NULL))
VC_API_RETURNS(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t n, void *stream),
	copy(to, (uint64_t)from, n, stream))
VC_API_RETURNS(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t n, void *stream),
	copy((uint64_t)to, from, n, stream))
VC_API_RETURNS(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t n, void *stream),
	copy(to, from, n, stream))
VC_API_RETURNS(cuMemcpyAsync, (uint64_t to, uint64_t from, size_t n, void *stream),
	copy(to, from, n, stream))
VC_API_RETURNS(cuMemcpy, (uint64_t to, uint64_t from, size_t n), copy(to, from, n, NULL))

static int fill(uint64_t to, const void *value, size_t width, size_t n, void *stream)
{
	vc_null_fill((void *)to, value, width, n);
	vc_null_work(stream, (uint64_t)((double)(n * width) / vc_null_card()->bandwidth * 1e9),
		     NULL);
	return 0;
}

VC_API_RETURNS(cuMemsetD8_v2, (uint64_t to, unsigned char v, size_t n),
	fill(to, &v, sizeof v, n, NULL))
VC_API_RETURNS(cuMemsetD8Async, (uint64_t to, unsigned char v, size_t n, void *stream),
	fill(to, &v, sizeof v, n, stream))
VC_API_RETURNS(cuMemsetD16_v2, (uint64_t to, unsigned short v, size_t n),
	fill(to, &v, sizeof v, n, NULL))
VC_API_RETURNS(cuMemsetD16Async, (uint64_t to, unsigned short v, size_t n, void *stream),
	fill(to, &v, sizeof v, n, stream))
VC_API_RETURNS(cuMemsetD32_v2, (uint64_t to, unsigned v, size_t n), fill(to, &v, sizeof v, n, NULL))
VC_API_RETURNS(cuMemsetD32Async, (uint64_t to, unsigned v, size_t n, void *stream),
	fill(to, &v, sizeof v, n, stream))

/* ---- pointers: numbers of CUpointer_attribute ---- */

static int extent_attribute(void *out, int attribute, uint64_t p)
{
	uint64_t base;
	size_t size;
	int rc = vc_null_extent(p, &base, &size);
	if (rc)
		return rc;
	if (attribute == 11) /* start of the range, 12: its size */
		memcpy(out, &base, sizeof base);
	else
		memcpy(out, &size, sizeof size);
	return 0;
}

VC_SHARED int cuCtxGetCurrent(void **context);

VC_API(int, cuPointerGetAttribute, void *out, int attribute, uint64_t p)
{
	int device = vc_null_owner(p);
	bool host = device < 0 && vc_null_is_host((const void *)p);
	unsigned type = host ? 1 : 2;
	if (device < 0 && !host)
		return VC_NULL_INVALID;
	switch (attribute) {
	case 1: return cuCtxGetCurrent(out);
	case 2: memcpy(out, &type, sizeof type); return 0;
	case 3: memcpy(out, &p, sizeof p); return 0;
	case 4:
		if (!host)
			return VC_NULL_INVALID;
		memcpy(out, &p, sizeof p);
		return 0;
	case 7: memcpy(out, &p, sizeof p); return 0; /* buffer id */
	case 9:
		device = device < 0 ? 0 : device;
		memcpy(out, &device, sizeof device);
		return 0;
	case 11: case 12: return extent_attribute(out, attribute, p);
	}
	memset(out, 0, sizeof(int)); /* legacy IPC, managed, access flags ...: no */
	return 0;
}

/* ---- virtual memory management ---- */

/* CUmemAllocationProp begins: type, requested handle types, location type, location id */
struct allocation_prop {
	int type, handle_types, location_type, location;
};

VC_API_DOES(cuMemGetAllocationGranularity, (size_t *g, const void *prop, int option),
	*g = 2 * VC_MIB)

VC_API(int, cuMemAddressReserve, uint64_t *p, size_t n, size_t align, uint64_t at, uint64_t flags)
{
	struct {
		uint64_t *p;
		size_t n, align;
		uint64_t at, flags;
	} params = { p, n, align, at, flags };
	TOLD(CB_RESERVE, &params, vc_null_reserve(n, p));
}

VC_API(int, cuMemAddressFree, uint64_t p, size_t n)
{
	struct { uint64_t p; size_t n; } params = { p, n };
	TOLD(CB_UNRESERVE, &params, vc_null_unreserve(p, n));
}

static int create(uint64_t *handle, size_t n, const struct allocation_prop *prop)
{
	int device = prop->location;
	if (device < 0 || device >= vc_null_card()->devices)
		return VC_NULL_INVALID;
	return vc_null_create(device, n, handle);
}

VC_API(int, cuMemCreate, uint64_t *handle, size_t n, const struct allocation_prop *prop,
       uint64_t flags)
{
	struct { uint64_t *handle; size_t n; const void *prop; uint64_t flags; } params = {
		handle, n, prop, flags };
	TOLD(CB_CREATE, &params, create(handle, n, prop));
}

VC_API(int, cuMemRelease, uint64_t handle)
{
	struct { uint64_t handle; } params = { handle };
	TOLD(CB_RELEASE, &params, vc_null_release(handle));
}

VC_API(int, cuMemMap, uint64_t p, size_t n, size_t offset, uint64_t handle, uint64_t flags)
{
	struct { uint64_t p; size_t n, offset; uint64_t handle, flags; } params = {
		p, n, offset, handle, flags };
	TOLD(CB_MAP, &params, vc_null_map(p, n, handle));
}

VC_API(int, cuMemUnmap, uint64_t p, size_t n)
{
	struct { uint64_t p; size_t n; } params = { p, n };
	TOLD(CB_UNMAP, &params, vc_null_unmap(p, n));
}

VC_API(int, cuMemSetAccess, uint64_t p, size_t n, const void *access, size_t count)
{
	struct { uint64_t p; size_t n; const void *access; size_t count; } params = {
		p, n, access, count };
	TOLD(CB_SET_ACCESS, &params, vc_null_owner(p) < 0 ? VC_NULL_INVALID : 0);
}

VC_API_RETURNS(cuMemRetainAllocationHandle, (uint64_t *handle, void *p),
	vc_null_handle_of((uint64_t)p, handle))

VC_API(int, cuMemGetAllocationPropertiesFromHandle, struct allocation_prop *prop, uint64_t handle)
{
	memset(prop, 0, 32);
	prop->type = 1;          /* pinned, the only type there is */
	prop->location_type = 1; /* a device */
	return 0;
}
