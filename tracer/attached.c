/* SPDX-License-Identifier: Apache-2.0 */
/* attached.c - for python/attach.py, which `vramcast record --pid` has a running program execute:
 * put the hooks in place, take the heap as PyTorch describes it, begin; and leave.
 *
 * Between the hooks and the heap events are counted and not recorded. When the count is the same
 * before the heap was read and after it, the heap is what it was then: each event is made under
 * the allocator's lock, which PyTorch's snapshot takes too. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "tracer/bindings.h"
#include "tracer/cudnn_calls.h"
#include "tracer/cupti.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/samples.h"
#include "tracer/stacks.h"
#include "tracer/torch.h"
#include "tracer/torch_wait.h"

enum plane { PLANE_NONE, PLANE_CUDA, PLANE_CPU };

int vramcast_attach(const char *dir, const char *options, int cuda);
uint64_t vramcast_attach_events(void);
int vramcast_attach_segment(int device, uint64_t at, uint64_t size, uint64_t stream,
			    uint64_t pool, uint64_t pool2, int flags);
int vramcast_attach_block(int device, uint64_t at, uint64_t size, uint64_t block, uint64_t stream,
			  int flags);
int vramcast_attach_request(uint64_t at, uint64_t size);
void vramcast_attach_settings(const char *text);
void vramcast_attach_again(void);
int vramcast_attach_begin(uint64_t events);
void vramcast_detach(void);

/* Only the thread that runs Python uses it. From mmap, because malloc may be recorded. */
static struct {
	struct vc_record *rec;
	size_t n, room;
} heap;

static bool add(struct vc_record rec)
{
	size_t room = heap.room ? 2 * heap.room : 1024;
	void *p;

	if (heap.n == heap.room) {
		p = heap.rec ? mremap(heap.rec, heap.room * sizeof(rec), room * sizeof(rec),
				      MREMAP_MAYMOVE) :
			       mmap(NULL, room * sizeof(rec), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return false;
		heap.rec = p;
		heap.room = room;
	}
	heap.rec[heap.n++] = rec;
	return true;
}

static void forget_heap(void)
{
	if (heap.rec)
		munmap(heap.rec, heap.room * sizeof(*heap.rec));
	heap.rec = NULL;
	heap.n = heap.room = 0;
}

/* What an earlier recording of this process knew. */
static void forget(void)
{
	vc_names_before_fork();
	vc_names_after_fork(true);
	vc_stacks_forget();
	vc_cuda_sample_forget();
	vc_torch_cpu_forget();
	vc_torch_unhook(); /* it may have been decided that nothing is recorded */
}

static bool wants_kernels(void)
{
	char text[16];

	return strcmp(vc_recorder_option("kernels", text, sizeof(text)), "on") == 0;
}

/* Whose memory is recorded (enum plane); < 0: -1 it is recorded already or has no room for a
 * journal, -2 its calls cannot be redirected. */
VC_EXPORT int vramcast_attach(const char *dir, const char *options, int cuda)
{
	forget();
	if (!vc_recorder_attach(dir, options))
		return -1;
	if (!vc_bindings_take(wants_kernels())) {
		vc_recorder_detach();
		return -2;
	}
	if (cuda)
		vc_torch_hook();
	return vc_torch_watching() ? PLANE_CUDA : vc_torch_cpu_wanted() ? PLANE_CPU : PLANE_NONE;
}

VC_EXPORT uint64_t vramcast_attach_events(void)
{
	return vc_recorder_passed();
}

VC_EXPORT int vramcast_attach_segment(int device, uint64_t at, uint64_t size, uint64_t stream,
				      uint64_t pool, uint64_t pool2, int flags)
{
	return add((struct vc_record){ .kind = VC_EV_HEAP_SEGMENT, .device = (uint16_t)device,
		.addr = at, .size = size, .stream = stream, .extra = pool, .reserved = pool2,
		.flags = (uint8_t)(flags & (VC_EVF_SMALL | VC_EVF_EXPANDABLE)) });
}

VC_EXPORT int vramcast_attach_block(int device, uint64_t at, uint64_t size, uint64_t block,
				    uint64_t stream, int flags)
{
	return add((struct vc_record){ .kind = VC_EV_HEAP_BLOCK, .device = (uint16_t)device,
		.addr = at, .size = size, .extra = block, .stream = stream,
		.flags = (uint8_t)(flags & (VC_EVF_LIVE | VC_EVF_PENDING)) });
}

/* A block in no segment: the CPU's. */
VC_EXPORT int vramcast_attach_request(uint64_t at, uint64_t size)
{
	return add((struct vc_record){ .kind = VC_EV_ALLOC, .addr = at, .size = size,
		.extra = size });
}

/* Those in force, where the program has changed what its environment says. */
VC_EXPORT void vramcast_attach_settings(const char *text)
{
	add((struct vc_record){ .kind = VC_EV_CONFIGURE, .text = vc_names_put(text) });
}

VC_EXPORT void vramcast_attach_again(void)
{
	heap.n = 0;
}

/* Before the first event: it may be the free of one of them. */
static void tell_old(void)
{
	if (!vc_torch_watching() || !vc_wait_begin(heap.n))
		return;
	for (size_t i = 0; i < heap.n; i++)
		if (heap.rec[i].kind == VC_EV_HEAP_BLOCK && heap.rec[i].flags & VC_EVF_LIVE)
			vc_wait_old(heap.rec[i].addr, heap.rec[i].stream, heap.rec[i].device);
}

/* 1: it is being recorded; 0: something has happened since, take the heap again. */
VC_EXPORT int vramcast_attach_begin(uint64_t events)
{
	tell_old();
	if (!vc_recorder_live(heap.rec, heap.n, events))
		return 0;
	forget_heap();
	if (vc_torch_watching())
		vc_cuda_sample_first();
	if (vc_torch_watching() && wants_kernels())
		vc_cupti_join();
	return 1;
}

VC_EXPORT void vramcast_detach(void)
{
	vc_cupti_leave();
	vc_bindings_give_back();
	vc_torch_unhook();
	vc_recorder_detach();
	vc_cudnn_forget();
	forget_heap();
}
