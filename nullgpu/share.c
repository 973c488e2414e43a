/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - memory and events of another process: CUDA IPC, shareable handles, multicast. Who opens
 * a handle sees a block of the right size on the right device, which the other process pays for.
 * What is in it does not travel: it reads as zeros, and the verdict says so. */
#define _GNU_SOURCE /* memfd_create */
#include "nullgpu/null.h"

#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x63706972616d7672ull

struct handle { /* CUipcMemHandle and CUipcEventHandle have 64 bytes */
	uint64_t magic, base, size;
	int device;
};

VC_API(int, cuIpcGetMemHandle, void *out, uint64_t p)
{
	struct handle h = { .magic = MAGIC, .device = vc_null_owner(p) };
	size_t size;
	if (vc_null_extent(p, &h.base, &size))
		return VC_NULL_INVALID;
	h.size = size;
	memset(out, 0, 64);
	memcpy(out, &h, sizeof h);
	return 0;
}

/* The handle itself is passed by value, which puts its 64 bytes on the stack: in C a structure. */
struct by_value {
	unsigned char bytes[64];
};

static void say_unknown(void)
{
	static unsigned char seen;
	vc_null_bound("what is in memory of another process (CUDA IPC)", &seen);
}

VC_API(int, cuIpcOpenMemHandle_v2, uint64_t *p, struct by_value handle, unsigned flags)
{
	struct handle h;
	memcpy(&h, handle.bytes, sizeof h);
	if (h.magic != MAGIC)
		return VC_NULL_INVALID;
	say_unknown();
	return vc_null_borrow(h.device, h.size, p);
}

VC_API_RETURNS(cuIpcOpenMemHandle, (uint64_t *p, struct by_value handle, unsigned flags),
	cuIpcOpenMemHandle_v2(p, handle, flags))
VC_API_RETURNS(cuIpcCloseMemHandle, (uint64_t p), vc_null_give_back(p))
VC_API_DOES(cuIpcGetEventHandle, (void *out, void *event), memset(out, 0, 64))

/* Its work is over by the time that anybody asks. */
VC_API(int, cuIpcOpenEventHandle, void **event, struct by_value handle)
{
	*event = vc_null_event_new(0);
	return *event ? 0 : VC_NULL_MEMORY;
}

/* ---- handles of cuMemCreate, as symmetric memory and NVLS hand them from rank to rank ---- */

enum { AS_FILE = 1, AS_FABRIC = 8 }; /* CUmemAllocationHandleType; the second has 64 bytes */

VC_API(int, cuMemExportToShareableHandle, void *out, uint64_t handle, int type, uint64_t flags)
{
	struct handle h = { .magic = MAGIC };
	if (vc_null_handle_facts(handle, &h.size, &h.device))
		return VC_NULL_INVALID;
	if (type == AS_FABRIC) {
		memset(out, 0, 64);
		memcpy(out, &h, sizeof h);
		return 0;
	}
	int fd = type == AS_FILE ? memfd_create("vramcast", MFD_CLOEXEC) : -1;
	if (fd >= 0 && write(fd, &h, sizeof h) != (ssize_t)sizeof h) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		return type == AS_FILE ? VC_NULL_MEMORY : VC_NULL_NOSUP;
	memcpy(out, &fd, sizeof fd);
	return 0;
}

VC_API(int, cuMemImportFromShareableHandle, uint64_t *handle, void *from, int type)
{
	struct handle h = { .magic = 0 };
	if (type == AS_FABRIC)
		memcpy(&h, from, sizeof h);
	else if (type != AS_FILE ||
		 pread((int)(intptr_t)from, &h, sizeof h, 0) != (ssize_t)sizeof h)
		return VC_NULL_INVALID;
	if (h.magic != MAGIC)
		return VC_NULL_INVALID;
	say_unknown();
	return vc_null_borrow_handle(h.device, h.size, handle);
}

/* A multicast object holds no memory of its own: what is bound to it does. */
struct multicast_prop { unsigned devices; size_t size; uint64_t handle_types, flags; };

VC_API_RETURNS(cuMulticastCreate, (uint64_t *handle, const struct multicast_prop *prop),
	vc_null_borrow_handle(vc_null_current(), prop->size, handle))
VC_API_DOES(cuMulticastGetGranularity, (size_t *g, const void *prop, int option), *g = 2 * VC_MIB)
VC_API_DOES(cuMulticastAddDevice, (uint64_t handle, int device), (void)0)
VC_API_DOES(cuMulticastBindMem, (uint64_t handle, size_t at, uint64_t memory, size_t from, size_t n,
	uint64_t flags), (void)0)
VC_API_DOES(cuMulticastBindAddr, (uint64_t handle, size_t at, uint64_t memory, size_t n,
	uint64_t flags), (void)0)
VC_API_DOES(cuMulticastUnbind, (uint64_t handle, int device, size_t at, size_t n), (void)0)
