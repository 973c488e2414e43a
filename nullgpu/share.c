/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - memory and events of another process (CUDA IPC). Who opens a handle sees a block of the
 * right size on the right device, which the other process pays for. What is in it does not travel:
 * it reads as zeros, and the verdict says so. */
#include "nullgpu/null.h"

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

VC_API(int, cuIpcOpenMemHandle_v2, uint64_t *p, struct by_value handle, unsigned flags)
{
	static unsigned char seen;
	struct handle h;
	memcpy(&h, handle.bytes, sizeof h);
	if (h.magic != MAGIC)
		return VC_NULL_INVALID;
	vc_null_bound("what is in memory of another process (CUDA IPC)", &seen);
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
