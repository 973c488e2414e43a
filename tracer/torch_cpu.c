/* SPDX-License-Identifier: Apache-2.0 */
/* torch_cpu.c - PyTorch's CPU allocator: c10::alloc_cpu and c10::free_cpu, interposed.
 *
 * Recorded as device 0 in processes that have no GPU, so that a recording can be made, and the
 * tracer tested, anywhere. Where a GPU is at hand the CPU heap is not recorded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/stacks.h"
#include "tracer/torch.h"

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

static struct {
	_Atomic(void *) alloc, free; /* PyTorch's own */
	_Atomic int wanted; /* 0: not decided, 1: record, -1: leave alone */
} g;

/* A GPU build on a machine with a GPU: its memory is the subject, the CPU heap only noise. */
static bool gpu_expected(void)
{
	const char *hidden = NULL;
	void *h = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_NOW);

	if (!h)
		return false;
	dlclose(h);
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "CUDA_VISIBLE_DEVICES=", 21) == 0)
			hidden = *e + 21;
	if (hidden && (!*hidden || strcmp(hidden, "-1") == 0))
		return false;
	h = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	if (h)
		dlclose(h);
	return h || access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static bool decide(void)
{
	char device[32];

	vc_recorder_option("device", device, sizeof(device));
	bool yes = strcmp(device, "cpu") == 0 || ((!*device || strcmp(device, "auto") == 0) &&
						  !gpu_expected());
	if (yes && vc_recorder_open()) {
		vc_torch_describe();
		vc_recorder_fact("plane", "cpu");
		vc_recorder_capability(VC_CAP_REQUESTS, VC_HOW_RECORDED);
		vc_recorder_capability(VC_CAP_ADDRESSES, VC_HOW_RECORDED);
		vc_recorder_capability(VC_CAP_TIMES, VC_HOW_RECORDED);
		vc_recorder_capability(VC_CAP_START_HEAP, VC_HOW_RECORDED);
	}
	atomic_store(&g.wanted, yes ? 1 : -1);
	return yes;
}

static inline bool wanted(void)
{
	int w = atomic_load_explicit(&g.wanted, memory_order_relaxed);

	return w > 0 || (w == 0 && decide());
}

bool vc_torch_cpu_wanted(void)
{
	return wanted();
}

void vc_torch_cpu_stop(void)
{
	char device[32];

	if (strcmp(vc_recorder_option("device", device, sizeof(device)), "cpu") != 0)
		atomic_store(&g.wanted, -1);
}

/* A forked child decides anew: its journal does not exist yet. */
void vc_torch_cpu_forget(void)
{
	atomic_store(&g.wanted, 0);
}

static void note(uint8_t kind, void *p, size_t n, uint32_t site)
{
	struct vc_record *r = vc_record_begin();

	if (!r)
		return;
	r->kind = kind;
	r->device = 0;
	r->time_ns = vc_clock_ns();
	r->addr = (uint64_t)(uintptr_t)p;
	r->size = r->extra = n;
	r->stream = r->reserved = 0;
	r->text = site;
	vc_record_commit(r);
}

VC_EXPORT void *_ZN3c109alloc_cpuEm(size_t n)
{
	void *(*real)(size_t), *p;

	*(void **)&real = vc_torch_symbol_once(&g.alloc, "libc10.so", "_ZN3c109alloc_cpuEm");
	p = real(n);
	if (p && wanted())
		note(VC_EV_ALLOC, p, n, vc_stacks_here());
	return p;
}

/* Recorded before the memory goes back: the next owner of the address gets a larger number. */
VC_EXPORT void _ZN3c108free_cpuEPv(void *p)
{
	void (*real)(void *);

	*(void **)&real = vc_torch_symbol_once(&g.free, "libc10.so", "_ZN3c108free_cpuEPv");
	if (p && wanted())
		note(VC_EV_FREE, p, 0, 0);
	real(p);
}

/* ---- tensors in memory that processes share: what DataLoader workers hand over ---- */

/* While a profiler collects, the allocator itself reports too: that was recorded above. */
static bool is_allocators(const void *caller)
{
	static _Atomic(const void *) known[2]; /* call sites in libc10: an allocation's, a free's */
	const char *slash;
	Dl_info info;

	for (int i = 0; i < 2; i++)
		if (atomic_load_explicit(&known[i], memory_order_relaxed) == caller)
			return true;
	if (!dladdr(caller, &info))
		return true;
	slash = strrchr(info.dli_fname, '/');
	if (strncmp(slash ? slash + 1 : info.dli_fname, "libc10.so", 9) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		const void *none = NULL;

		if (atomic_compare_exchange_strong(&known[i], &none, caller))
			break;
	}
	return true;
}

void vc_torch_cpu_report(void *p, int64_t bytes, const void *caller)
{
	if (!p || !bytes || !wanted() || is_allocators(caller))
		return;
	note(bytes > 0 ? VC_EV_OUTSIDE_ALLOC : VC_EV_OUTSIDE_FREE, p,
	     (size_t)(bytes > 0 ? bytes : -bytes), vc_names_put("shared host memory"));
}
