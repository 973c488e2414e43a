/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the simulated GPU: physical bytes, virtual addresses, other tenants, driver costs.
 *
 * The only ground a model may stand on. Running out is an answer, not an error. */
#pragma once

#include "common/error.h"
#include "common/windows.h"

#define VC_DEVICE_GRANULE (2ull << 20) /* physical memory comes in 2 MiB pieces */
#define VC_DEVICE_UNLIMITED (4ull << 40) /* no capacity given: more than any card has */

enum vc_va_policy {      /* how new addresses are chosen (cudaMalloc and reserved ranges alike) */
	VC_VA_INC,       /* upwards from 0x600000000000, never reused */
	VC_VA_DEC,       /* downwards from 0x7f8000000000, never reused */
	VC_VA_FIT,       /* lowest gap at or above 0x600000000000, reused */
	VC_VA_MIX,       /* 64 slots of 256 GiB, request k to slot (29k + 37) mod 64, or to any */
	VC_VA_LIST,      /* the addresses queued with vc_device_hint, in order; then INC */
	VC_VA_WINDOW,    /* as on Linux: common/windows.h, nothing left over before */
	VC_VA_UP,        /* as on Windows: upwards, freed ranges first, the smallest that suits */
	VC_VA_CONTEXT,   /* the same, with what is left over before the first segment */
};

/* The order that a recording shows whose first segment lies there: a fresh window begins at a
 * multiple of its size, a range that was left over elsewhere. */
enum vc_va_policy vc_va_of_first(uint64_t addr);

/* Orders besides upwards and downwards. A driver's windows lie where the host's own memory leaves
 * room, so they are not always in either of these two: of 351 recordings of an H100 the peak lay
 * between those of the two in 334, between those of all of these in 350
 * (docs/measurements/gpu.md). */
enum { VC_VA_ORDERS = 10 };
extern const struct vc_va_order { enum vc_va_policy va; unsigned order; } vc_va_order[VC_VA_ORDERS];

/* For the out-of-memory text; `self` with 0 bytes: what this process holds at that moment. */
struct vc_process { bool self; uint32_t pid; uint64_t bytes; };

enum vc_driver_call {
	VC_DRV_MALLOC, VC_DRV_FREE, VC_DRV_RESERVE, VC_DRV_UNRESERVE, VC_DRV_CREATE, VC_DRV_RELEASE,
	VC_DRV_MAP, VC_DRV_UNMAP, VC_DRV_CALLS
};

struct vc_device_change {
	enum vc_driver_call what;
	bool failed;
	uint64_t addr, size, ns; /* ns: its cost */
};

/* Whose card it is, in the names of PyTorch's devices: which of its allocators serves it. */
enum vc_device_kind { VC_KIND_CUDA, VC_KIND_HIP, VC_KIND_XPU, VC_KIND_NPU };

/* A driver call that the recorded run made, and what it gave: cudaMalloc or cudaFree. */
struct vc_device_call { uint64_t addr, size; bool is_free; };

struct vc_device_config {
	enum vc_device_kind kind;
	uint64_t total;        /* what cudaMemGetInfo reports as total */
	uint64_t prop_total;   /* totalGlobalMem; 0 = total */
	uint64_t context;      /* bytes of this process outside the allocator */
	uint64_t others;       /* bytes of other processes at the start */
	int64_t more;          /* bytes needed beyond what the events ask for, at an end of an
				* interval: off what is free, and off every limit */
	unsigned index;        /* as the framework numbers it, for messages */
	enum vc_va_policy va;
	unsigned order;        /* VC_VA_MIX: which order of slots, drawn; 0: the one above */
	/* (opt, lent) Addresses as recorded for as long as the calls are those that were recorded,
	 * one after the other; from the first other one on `va` decides. */
	const struct vc_device_call *call;
	size_t calls;
	const struct vc_process *process; /* borrowed; NULL: no process lines (no NVML) */
	size_t processes;
};

struct vc_device;
struct vc_device *vc_device_new(const struct vc_device_config *cfg, struct vc_error *err);
void vc_device_free_all(struct vc_device *d); /* NULL is fine */

/* cudaMalloc: false = the device is full. cudaFree takes the size that was asked for. */
bool vc_device_alloc(struct vc_device *d, uint64_t size, uint64_t *addr);
void vc_device_free(struct vc_device *d, uint64_t addr, uint64_t size);

/* cuMemAddressReserve / Free: addresses only, never fails for lack of memory. */
bool vc_device_reserve(struct vc_device *d, uint64_t size, uint64_t *addr);
void vc_device_unreserve(struct vc_device *d, uint64_t addr, uint64_t size);

/* cuMemCreate / Release of one physical piece: false = the device is full. */
bool vc_device_create(struct vc_device *d, uint64_t size);
void vc_device_release(struct vc_device *d, uint64_t size);
void vc_device_map(struct vc_device *d, uint64_t addr, uint64_t size);
void vc_device_unmap(struct vc_device *d, uint64_t addr, uint64_t size);

/* A segment that exists before the first event (warm start): memory is taken, no call is counted.
 */
void vc_device_adopt(struct vc_device *d, uint64_t addr, uint64_t size);

/* Addresses that new ranges must not touch (the unmapped part of an adopted virtual range). */
void vc_device_avoid(struct vc_device *d, uint64_t addr, uint64_t size);

/* VC_VA_LIST: the next address to hand out for a request of `size` (0 = any size). */
int  vc_device_hint(struct vc_device *d, uint64_t addr, uint64_t size, struct vc_error *err);

/* Who decides in the device's place (replaying a recording): answers replace the capacity check
 * and the address policy; accounting goes on. The struct is copied. */
struct vc_device_script {
	void *arg;
	bool (*alloc)(void *arg, uint64_t size, uint64_t *addr);
	void (*free)(void *arg, uint64_t addr, uint64_t size);
	bool (*reserve)(void *arg, uint64_t size, uint64_t *addr);
	void (*unreserve)(void *arg, uint64_t addr);
	bool (*create)(void *arg, uint64_t size);
	void (*map)(void *arg, uint64_t addr, uint64_t size);
	void (*unmap)(void *arg, uint64_t addr, uint64_t size);
};
void vc_device_script(struct vc_device *d, const struct vc_device_script *script);

/* With how many free bytes at the start each answer so far would have been the same: with `least`
 * or more, and fewer than `below`. */
struct vc_device_span { uint64_t least, below; };
struct vc_device_span vc_device_span(const struct vc_device *d);

void vc_device_set_others(struct vc_device *d, uint64_t bytes);
uint64_t vc_device_available(const struct vc_device *d); /* free bytes of cudaMemGetInfo */
uint64_t vc_device_taken(const struct vc_device *d);     /* physical bytes of this allocator */
uint64_t vc_device_clock_ns(const struct vc_device *d);  /* time spent in the driver so far */
bool vc_device_ok(const struct vc_device *d); /* false: this process ran out of memory on the way */
const struct vc_device_config *vc_device_config(const struct vc_device *d);
/* What is left of a limit that a model keeps to by itself. */
uint64_t vc_device_limit(const struct vc_device *d, uint64_t bytes);

/* Called after every driver call; one listener. */
void vc_device_listen(struct vc_device *d, void (*fn)(void *arg, const struct vc_device_change *),
		      void *arg);
