/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - what happened to GPU memory, one fixed-size record per happening.
 *
 * The only type that tracer, simulator and renderer share. Blocks are named by `id`, never by
 * address: a what-if run puts them somewhere else. Decoders turn addresses into ids once. */
#pragma once

#include <stdint.h>

enum vc_event_kind {
	VC_EV_NONE = 0,

	/* Requests: what drives a simulation. */
	VC_EV_ALLOC,     /* block `id` wants `size` bytes on `stream` (VC_EVF_EXACT: at `addr`) */
	VC_EV_FREE,      /* block `id` is given back */
	VC_EV_FREE_DONE, /* the deferred free of block `id` was seen to complete here */
	VC_EV_USE,       /* record_stream: block `id` is used on `stream` too */
	VC_EV_SYNC,      /* all work queued so far on `stream` (or VC_STREAM_ALL) has completed */
	VC_EV_TRIM,      /* empty_cache; id = pool, 0 = every pool */
	VC_EV_MARK, /* a named instant, `label`; `flags` = enum vc_mark; size of a STEP: ns it
		     * took, 0 = unknown */
	VC_EV_POOL_CREATE,   /* id = pool; one use more; VC_EVF_USE_ON_OOM, _NO_SPLIT, _SERVED */
	VC_EV_POOL_BEGIN,    /* route requests of `stream` (or all) to pool `id` */
	VC_EV_POOL_END,      /* stop routing to pool `id` */
	VC_EV_POOL_RELEASE,  /* one use less of pool `id` */
	VC_EV_CAPTURE_BEGIN, /* a graph capture starts on `stream`, the thread's current stream */
	VC_EV_CAPTURE_END,
	VC_EV_OTHERS,    /* from here on other processes hold `size` bytes of the device */
	VC_EV_FRACTION,  /* set_per_process_memory_fraction; `size` holds the bits of a double */
	VC_EV_CONFIGURE, /* allocator settings changed at run time; `label` is the string */
	VC_EV_STREAM_CLASS, /* `stream` gets the reserve class `label` (2.15) */

	/* Evidence: what the real run did below or beside its allocator. */
	VC_EV_SEGMENT_ALLOC = 32, /* cudaMalloc gave `size` bytes at `addr` */
	VC_EV_SEGMENT_FREE,
	VC_EV_SEGMENT_MAP, /* expandable segments: `size` bytes mapped at `addr` */
	VC_EV_SEGMENT_UNMAP,
	VC_EV_OOM, /* the real run failed to get `size` (rounded) bytes; addr = device free */
	VC_EV_DEVICE_SAMPLE, /* cudaMemGetInfo: addr = free bytes, size = total bytes */
	VC_EV_KERNEL, /* `label` ran on `stream` at time_ns for `size` ns; id = correlation; site: a
		       * frame whose function is a text of kernel_work.h, no call stack */
	VC_EV_COPY,   /* memcpy/memset: like KERNEL, addr = bytes moved */
	VC_EV_OUTSIDE_ALLOC, /* memory that is not the allocator's: `size` bytes at `addr`;
			      * `label` = whose (a library, pinned host memory, ...) */
	VC_EV_OUTSIDE_FREE,
	VC_EV_DRIVER_POOL, /* a memory pool of the driver's: addr = which, size = bytes it
			    * reserves, id = bytes in use, flags = enum vc_driver_pool, `label` =
			    * what else */
	VC_EV_OVERHEAD,    /* CUPTI or the driver, `label` = doing what, took `size` ns of the
			    * program's time */
	VC_EV_LAUNCH, /* the call that queued the work with correlation `id`; took `size` ns */
	VC_EV_PLAN,   /* a library computed `label` (VC_LABEL_CUDNN ...) with `size` bytes of
		       * workspace at `addr` (0: none) */
	VC_EV_PAGES_OUT, /* what is behind `size` bytes at `addr`, a segment, was given back beneath
			  * the allocator by `label` (a sleeping server); id = the block that
			  * begins there, 0: none */
	VC_EV_PAGES_IN,  /* there is memory behind them again */

	/* The heap at one moment, in address order: a segment, then the blocks that tile it. At
	 * the start of a device's events it is the warm start; with VC_EVF_FINAL it is the
	 * recorded end. */
	VC_EV_HEAP_SEGMENT =
		64,       /* addr, size, stream, id = pool, VC_EVF_SMALL, VC_EVF_EXPANDABLE */
	VC_EV_HEAP_BLOCK, /* addr; size = REQUESTED bytes (stale when free); real size = distance
			   * to the next block or the segment's end; id = block, 0 when free */
};

enum vc_event_flags {
	VC_EVF_SMALL = 1,      /* HEAP_SEGMENT: of the small pool */
	VC_EVF_EXPANDABLE = 2, /* HEAP_SEGMENT: a mapped run of an expandable segment */
	VC_EVF_LIVE = 4,       /* HEAP_BLOCK: allocated */
	VC_EVF_PENDING =
		8, /* HEAP_BLOCK: freed, waits for other streams; FREE: FREE_DONE follows */
	VC_EVF_FINAL = 16,      /* HEAP_*: the heap after the last event */
	VC_EVF_EXACT = 32,      /* ALLOC: exactly at `addr` (2.13 on) */
	VC_EVF_SERVED = 32,     /* POOL_CREATE: its segments come from an allocator of its own */
	VC_EVF_USE_ON_OOM = 64, /* POOL_CREATE */
	VC_EVF_NO_SPLIT = 128,  /* POOL_CREATE */
};

#define VC_LABEL_PINNED "pinned host memory" /* of OUTSIDE_ALLOC and OUTSIDE_FREE */
#define VC_LABEL_MANAGED "managed memory" /* the same: pages move to where they are used */
#define VC_LABEL_PAGEABLE "pageable host memory"     /* the same */
#define VC_LABEL_REGISTERED "registered host memory" /* the same: part of the resident memory */
#define VC_LABEL_SHARED "shared host memory" /* the same; DataLoader workers hand it over */
#define VC_LABEL_RESIDENT "resident memory"         /* MARK: `size` bytes of the process */
#define VC_LABEL_OTHERS "other processes"           /* MARK: `size` bytes of the device */
#define VC_LABEL_PROCESSES "processes on this host" /* MARK: `size` of them, all alike */

/* Begins the label of PLAN: "cudnn/9.19.0 ", then the key of a convolution (convolution.h), or the
 * name of a graph that has none. */
#define VC_LABEL_CUDNN "cudnn/"
#define VC_LABEL_GRAPH "graph"

enum vc_mark { /* flags of VC_EV_MARK */
	VC_MARK_INSTANT = 0, VC_MARK_STEP, VC_MARK_BEGIN, VC_MARK_END
};

enum vc_driver_pool { /* flags of VC_EV_DRIVER_POOL, as CUPTI numbers them */
	VC_DRIVER_POOL_CREATED = 1, VC_DRIVER_POOL_DESTROYED, VC_DRIVER_POOL_TRIMMED
};

#define VC_STREAM_ALL UINT32_MAX

struct vc_event {
	uint64_t time_ns; /* since the start of the trace; 0 = unknown */
	uint64_t id;      /* block identity, dense from 1, unique within the trace */
	uint64_t size;    /* bytes, as the client asked for them */
	uint64_t addr;    /* where the real run put it; 0 = unknown; evidence only */
	uint32_t stream;  /* index into the trace's streams; 0 = the default stream */
	uint32_t site;    /* call stack, index into the trace's stacks; 0 = unknown */
	uint32_t label;   /* index into the trace's strings; 0 = none */
	uint16_t device;
	uint8_t  kind;    /* enum vc_event_kind */
	uint8_t  flags;   /* enum vc_event_flags */
};

_Static_assert(sizeof(struct vc_event) == 48, "events are 48 bytes in memory");

/* Is it of one block, which a model gave out? */
static inline int vc_event_of_block(const struct vc_event *e)
{
	return e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE || e->kind == VC_EV_FREE_DONE ||
	       e->kind == VC_EV_USE;
}

static inline int vc_event_is_evidence(const struct vc_event *e)
{
	return e->kind >= VC_EV_SEGMENT_ALLOC && e->kind < VC_EV_PAGES_OUT;
}
