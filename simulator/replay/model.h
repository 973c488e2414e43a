/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - an allocator under study. One file + one row in models/models.def.
 *
 * A model sees requests and the device, never the trace, the engine, observers or other models. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/param.h"
#include "simulator/replay/device.h"

/* Answers of alloc, configure, pool and trim calls that are not failures of ours. */
enum vc_answer {
	VC_REFUSED = 0, /* alloc: out of (simulated) memory; the text is in m->note */
	VC_DONE    = 1,
	VC_RAISED  = 2, /* the framework raises another error; the text is in m->note */
	VC_WAITS   = 3, /* free: the block waits for other streams */
};

struct vc_request {
	uint64_t id, size, time_ns;
	uint64_t addr;   /* only with `exact` */
	uint32_t stream; /* index into m->streams */
	bool exact;
};

/* Where a request ended up. `size` is what it costs after rounding. */
struct vc_block {
	uint64_t addr, size;
	void *cookie; /* the model's own handle; opaque to everyone else */
};

/* Bytes, as torch.cuda.memory_stats() counts them; kept by the model. */
struct vc_totals {
	uint64_t requested; /* what clients asked for and still hold (or wait for) */
	uint64_t allocated; /* ... after rounding, handed out */
	uint64_t active;    /* allocated + freed but waiting for streams */
	uint64_t reserved;  /* what the model holds from the device */
	uint64_t away;      /* what `pages` below left without memory; not in the others */
	uint64_t split;     /* of it free beside a live block, where the type counts them */
	uint64_t segments;  /* pieces obtained from the device and not given back */
	uint64_t retries;   /* the cache was flushed to satisfy a request */
	uint64_t ooms;
	uint64_t limit;     /* of `reserved`, by a fraction of the device, where one was set */
	uint64_t by_address; /* at least so many choices hung on the order of fresh addresses; it is
			      * not counted on once it is not 0 */
	bool has_limit;
};

/* What the framework's own memory history would show besides alloc and free_requested. */
enum vc_trace_kind {
	VC_TR_SEGMENT_ALLOC, VC_TR_SEGMENT_FREE, VC_TR_SEGMENT_MAP, VC_TR_SEGMENT_UNMAP,
	VC_TR_FREE_DONE, /* of a deferred free only; size = requested bytes */
	VC_TR_OOM,       /* addr = free bytes of the device, size = rounded request */
	VC_TR_ALLOC, VC_TR_FREE /* only for requests at an exact address */
};
struct vc_trace_entry { enum vc_trace_kind kind; uint32_t stream; uint64_t addr, size, id; };

/* One piece of memory seen by walk(): a segment, then its blocks in address order. */
struct vc_extent {
	enum { VC_X_SEGMENT, VC_X_LIVE, VC_X_PENDING, VC_X_FREE } what;
	uint64_t addr, size;
	uint64_t requested;       /* blocks; segments: sum of live and pending blocks */
	uint64_t allocated, active; /* segments */
	uint64_t id;              /* blocks: the request's id, 0 when free; of a block that is
				   * stitched of several pieces the first one has it */
	uint64_t base;            /* segments: where their virtual range begins, 0: not known */
	uint64_t pool;            /* (a << 32) | b of PyTorch's pool id (a,b); 0 = default */
	uint32_t stream;
	bool small, expandable;
	bool away;                /* there is no memory behind it (`pages` below) */
};
typedef int vc_extent_fn(void *arg, const struct vc_extent *x); /* < 0 stops the walk */

/* One statistic, "reserved_bytes" of class "all", ... */
struct vc_stat { const char *name, *klass; int64_t current, peak, allocated, freed; };
typedef int vc_stat_fn(void *arg, const struct vc_stat *s);

/* In which order the driver gave out the segments of a heap, for models that ask for their age. */
enum vc_heap_order {
	VC_HEAP_UPWARDS, VC_HEAP_DOWNWARDS,
	VC_HEAP_WINDOWS, /* common/windows.h: windows downwards, upwards in each */
	VC_HEAP_ORDERS
};

/* The heap at the first event, for a warm start: extents in walk() order, FREE blocks included. */
struct vc_heap { const struct vc_extent *extent; size_t n; enum vc_heap_order order; };

/* A call about private pools, captures or stream classes. */
struct vc_pool_call {
	uint8_t what;         /* enum vc_event_kind */
	uint8_t flags;        /* VC_EVF_USE_ON_OOM, VC_EVF_NO_SPLIT, VC_EVF_SERVED */
	uint32_t stream;      /* or VC_STREAM_ALL */
	uint64_t pool;
	const char *klass;    /* STREAM_CLASS */
};

struct vc_streams { const uint64_t *handle; size_t n; }; /* handle[0] = 0, the default stream */

/* Why a request was refused, in bytes. */
struct vc_refusal {
	uint64_t rounded;     /* the request after rounding */
	uint64_t alloc_size;  /* what was asked from the device */
	uint64_t device_free; /* what the device had */
};

struct vc_model {
	const struct vc_model_type *type;
	struct vc_device *device;         /* borrowed */
	const struct vc_streams *streams; /* borrowed; may grow between calls */
	struct vc_totals now;
	const void *config;               /* parsed parameters, laid out by type->params */
	void *state;                      /* type->state_size zeroed bytes */
	const char *version;              /* framework version asked for ("2.9"), or NULL: newest */
	const char *conf;                 /* its settings string, or NULL */
	/* The framework's history; NULL when nobody listens. */
	void (*trace)(void *arg, const struct vc_trace_entry *t);
	void *trace_arg;
	char note[2048];                  /* text of the last refusal or raised error */
	bool first_text;                  /* no text but that of the first refusal is read */
	struct vc_refusal refusal;        /* filled with VC_REFUSED */
};

/* Slots marked (opt) may be NULL; vc_model_* wrappers below fill in the sensible default. */
struct vc_model_type {
	const char *name;
	const char *summary;
	const char *owner; /* (opt) whose allocator it is, in answers: "PyTorch"; NULL: `name` */
	const struct vc_param *params;
	size_t config_size, state_size;
	/* It may keep memory when everything was freed and trimmed: regions are never given back
	 * to the device. */
	bool keeps_regions;
	/* Where a block lies is the answer of what is below (reserve), not the model's: a replay
	 * that follows a recording gives each request its recorded address; it may be refused. */
	bool placed_below;
	bool counts_split; /* now.split is kept: free bytes that cannot be given back */
	const char *const
		*versions; /* (opt) framework versions it knows, oldest first, NULL-terminated */

	int (*init)(struct vc_model *m, struct vc_error *err);                       /* (opt) */
	/* enum vc_answer, or < 0: our failure. On VC_DONE *out is filled. */
	int (*alloc)(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		     struct vc_error *err);
	/* VC_DONE or VC_WAITS. The cookie is dead afterwards unless it waits. */
	int (*free)(struct vc_model *m, struct vc_block *b);
	void (*use)(struct vc_model *m, struct vc_block *b,
		    uint32_t stream);                             /* (opt) record_stream */
	void (*complete)(struct vc_model *m, struct vc_block *b); /* (opt) FREE_DONE */
	void (*sync)(struct vc_model *m, uint32_t stream);                           /* (opt) */
	int (*trim)(struct vc_model *m, uint64_t pool,
		    struct vc_error *err); /* (opt) empty_cache */
	int (*configure)(struct vc_model *m, const char *conf,
			 struct vc_error *err); /* (opt) at run time */
	/* (opt) Has that version (NULL: any) an option of this name in its settings string? */
	bool (*knows_option)(const char *name, const char *version);
	int (*fraction)(struct vc_model *m, double f, struct vc_error *err);         /* (opt) */
	/* (opt) POOL_CREATE/BEGIN/END/RELEASE, CAPTURE_BEGIN/END, STREAM_CLASS. */
	int (*pool)(struct vc_model *m, const struct vc_pool_call *call, struct vc_error *err);
	/* (opt) Beneath the model what is behind the segment of a block was given back (vLLM's
	 * sleep mode, a memory saver), or is taken again: VC_DONE or VC_REFUSED. In a private pool
	 * that goes for all of its segments, as in the programs that do it. A block without cookie:
	 * for the free segment at its address, or where there is none (given back) for all free
	 * ones of such pools. Meanwhile `now` counts only what is there. */
	int (*pages)(struct vc_model *m, const struct vc_block *b, bool in, struct vc_error *err);
	/* (opt) Take over a heap before the first request: adopts the segments on the device
	 * (vc_device_adopt) and fills blocks[i] for each extent[i] that is LIVE or PENDING. */
	int (*seed)(struct vc_model *m, const struct vc_heap *heap, struct vc_block *blocks,
		    struct vc_error *err);
	/* Segments from low to high addresses, behind each its blocks in the same order. */
	int (*walk)(const struct vc_model *m, vc_extent_fn *fn, void *arg);
	int (*stats)(const struct vc_model *m, vc_stat_fn *fn, void *arg);           /* (opt) */
	int (*check)(const struct vc_model *m, struct vc_error *err); /* invariants */
	void (*fini)(struct vc_model *m);                                            /* (opt) */
	/* (opt) What a run has depended on, which is over, into `witness_size` zeroed bytes without
	 * pointers; false: on so much that hardly any other is the same. And: would m, which has
	 * served nothing yet, serve the same requests in the same way, as long as the device
	 * answers each call alike? Only where its decisions hang on no other thing of the device
	 * than these answers. */
	size_t witness_size;
	bool (*witness)(const struct vc_model *m, void *witness);
	bool (*repeats)(const struct vc_model *m, const void *witness);
	/* (opt) Where the rules of rounding are not part of `repeats`: would a request of that size
	 * cost the same? */
	bool (*rounds)(const struct vc_model *m, const void *witness, uint64_t size);
};

extern const struct vc_model_type *const vc_models[]; /* NULL-terminated */
const struct vc_model_type *vc_model_by_name(const char *name);
