/* SPDX-License-Identifier: Apache-2.0 */
/* torch.h - what the files of the PyTorch caching allocator model share. Private to the model.
 *
 * Names follow PyTorch's CUDACachingAllocator.cpp where that helps: a block is a piece of a
 * segment, a pool holds free blocks, an expandable segment is a range of virtual addresses. */
#pragma once

#include "simulator/replay/model.h"
#include "simulator/models/torch_map.h"
#include "simulator/models/torch_rules.h"

#define TORCH_UNLIMITED UINT64_MAX
#define TORCH_DIVISIONS 16 /* kRoundUpPowerOfTwoIntervals: sizes from 1 MiB to 32 GiB */

/* TORCH_LOST: freed, but in no set, because merging it failed (torch_torn.c). */
enum torch_state {
	TORCH_UNUSED, TORCH_FREE, TORCH_UNMAPPED, TORCH_LIVE, TORCH_PENDING, TORCH_LOST
};

/* One block. Exactly one cache line; all links are indices into the arena, 0 = none. */
struct torch_block {
	uint64_t addr, size;
	uint64_t tie;       /* orders blocks of equal size, see torch_rules.h */
	uint64_t requested; /* stale when free: that of the last allocation held by this object */
	union {
		uint64_t id;      /* live and pending: the request */
		uint32_t kid[2];  /* free: smaller and larger in the index, or the next */
	};
	uint32_t prev, next; /* address neighbours in the same segment */
	uint32_t set;        /* torch.set: pool and stream */
	uint32_t range;      /* expandable: torch.range; 0 = from cudaMalloc */
	union {
		uint32_t age;    /* free: pool->calls at insertion */
		uint32_t wait;   /* live and pending: torch.wait, 0 = no other stream */
		uint32_t spare;  /* unused: the next unused one; not `next`, see torch_torn.c */
	};
	uint16_t klass;      /* free: class of sizes in the index */
	uint8_t state;       /* enum torch_state */
	uint8_t large;       /* of a large pool */
};
_Static_assert(sizeof(struct torch_block) == 64, "a block is one cache line");

/* Sizes fall into classes: exact ones below 1 MiB, where blocks may be a million, then 64 per power
 * of two. A bitmap finds the next class that is not empty; inside a class blocks are in exact
 * order (torch_index.h). */
#define TORCH_EXACT 2048 /* multiples of 512 */
#define TORCH_WORDS 56
#define TORCH_CLASSES (TORCH_WORDS * 64)

struct torch_pool;

struct torch_set { /* the free blocks of one pool and stream */
	struct torch_pool *pool;
	uint64_t handle;          /* of the stream */
	uint32_t stream, index;
	uint32_t unmapped;        /* treap of unmapped blocks, by address */
	uint64_t summary;
	uint64_t bits[TORCH_WORDS];
	uint32_t root[TORCH_CLASSES];   /* the first blocks of each class: a list */
	uint32_t behind[TORCH_CLASSES]; /* those after them: a treap */
};

struct torch_private { /* a private pool: two pools that share a use count */
	uint64_t id;
	int64_t use;  /* scopes and owners */
	int64_t held; /* driver allocations not given back, as PyTorch counts them */
	bool no_split, use_on_oom, freeable;
	bool served; /* by an allocator of its own: never expandable */
	struct torch_pool *pool[2]; /* small, large */
};

struct torch_pool {
	struct torch_private *owner; /* NULL: a default pool */
	struct torch_set **of;       /* by stream index; NULL: never used */
	struct torch_set **order;    /* by stream handle */
	uint32_t streams, sets;
	uint32_t calls;              /* for garbage-collection ages */
	bool small;
};

struct torch_range { /* an expandable segment */
	uint64_t base, size, page;
	bool used;
};

struct torch_scope { struct torch_private *pool; uint32_t stream; }; /* or VC_STREAM_ALL */

struct torch_stream { uint64_t issued, done; bool capturing; char *klass; };

/* Streams that use a live block besides its own, and the events they owe after its free. */
struct torch_wait {
	uint32_t block;           /* 0: already completed by a recorded completion */
	uint32_t events;
	uint32_t use;             /* torch.link list of streams, in order of recording */
	uint32_t note;            /* uses recorded during a capture */
	bool deferred;
};

struct torch_link { uint32_t value, next; };

struct torch_event { uint64_t seq; uint32_t wait, next; };

struct torch_queue { uint32_t stream, head, tail; };

struct torch_stat { int64_t cur, peak, up; };

/* `active` is allocation plus what waits for other streams, so it costs nothing while nothing
 * waits. */
enum torch_stat_kind {
	TORCH_ALLOCATION, TORCH_SEGMENT, TORCH_SPLIT, TORCH_ALLOCATED_BYTES, TORCH_RESERVED_BYTES,
	TORCH_SPLIT_BYTES, TORCH_REQUESTED_BYTES, TORCH_STATS
};

struct torch_pending {
	int64_t cur, peak;
}; /* peak: of allocated + pending, while anything waits */

/* Options of PYTORCH_CUDA_ALLOC_CONF. */
struct torch_conf {
	uint64_t max_split, non_split_rounding, large_segment;
	double gc, fraction;
	uint32_t division[TORCH_DIVISIONS];
	bool any_division, expandable, throw_oom, release_lock;
	bool has_reserve;
	uint64_t reserve_bytes;
	double reserve_part;              /* of the device; < 0: reserve_bytes counts */
	struct torch_class *klass;        /* reserve by class; owned */
	size_t classes;
};

/* Segments without memory behind them, by address, and what of them the totals leave out. */
struct torch_away {
	struct { uint64_t addr, size; } *at;
	size_t n;
	uint64_t requested, allocated, active, split, reserved;
};

struct torch_class { char name[64]; uint64_t bytes; double part; };

enum torch_fit { TORCH_BEST, TORCH_FIRST, TORCH_NEXT, TORCH_WORST, TORCH_RECENT };
enum torch_completion { TORCH_RECORDED, TORCH_AT_NEXT, TORCH_FORCED };

struct torch_config { /* parameters of the model: PyTorch's constants and rules */
	uint64_t device, fit, completion; /* device: 0 the card's, else enum torch_device + 1 */
	uint64_t small_limit, small_segment, segment, large_limit, round_large, split_rest;
	uint64_t min_block;
};

struct torch {
	/* What alloc and free touch most. */
	struct torch_block *b;
	uint32_t spare, used, cap;
	uint32_t waiting;            /* queued events + deferred blocks */
	bool torn;                   /* a part of a segment was given back, see torch_torn.c */
	bool failed;                 /* an error in the middle of a merge or release; once torn */
	struct torch_set **set;
	struct torch_pool pool[2];   /* default: small, large */
	const struct torch_rules *r;
	const struct torch_config *k;
	bool best, collects;         /* fit rule; a limit and a gc threshold are set */
	bool by_driver;              /* equal free blocks stand by the driver's addresses */
	enum torch_order order;
	uint32_t sets, set_cap, scopes;
	uint64_t limit;              /* TORCH_UNLIMITED: none */
	uint64_t total;              /* bytes from the driver */
	uint64_t number;             /* next object or segment number */
	struct torch_conf conf;
	struct torch_stat stat[2][TORCH_STATS]; /* small, large */
	struct { int64_t cur, peak; } all[TORCH_STATS];
	struct torch_pending blocks[3], bytes[3]; /* waiting: small, large, all */
	struct torch_away away;
	struct torch_stat oversize_allocs, oversize_segments;
	int64_t retries, ooms, sync_all, device_alloc, device_free, rejections, initial_max_split;
	struct vc_model *m;
	uint64_t cursor, stamp;      /* next fit, most recent fit */

	struct torch_scope *scope;
	uint32_t scope_cap;
	struct torch_private **priv;
	uint32_t privs, priv_cap;
	struct torch_map freeable, on_oom;

	struct torch_range *range;
	uint32_t ranges, range_cap;

	struct torch_stream *stream;
	struct torch_stream anywhere; /* stands for "some other stream" */
	uint32_t streams;
	uint32_t captures, current;  /* real captures, the thread's current stream */
	struct torch_map queues;     /* stream -> index into queue */
	struct torch_queue *queue;
	uint32_t nqueue;
	struct torch_event *event;
	uint32_t event_used, event_cap, event_spare;
	struct torch_wait *wait;
	uint32_t wait_used, wait_cap, wait_spare;
	struct torch_link *link;
	uint32_t link_used, link_cap, link_spare;
	uint32_t deferred, deferred_last; /* links: waits in order of the frees */

	uint32_t *scratch;
	uint32_t scratch_cap;
	uint64_t largest;            /* that the driver was asked for, granted or not; adopted */
	bool medium;                 /* so many that the size of a large segment counted */
	struct torch_map whole;      /* once torn: address of each cudaMalloc -> 512 bytes */
	bool nomem;                  /* our own memory ran out; sticky */
};

/* A request on its way through the steps of malloc. */
struct torch_want {
	const struct vc_request *rq;
	uint64_t size, asz;       /* rounded, and what the driver would be asked for */
	struct torch_set *set;
	bool ex;                  /* option expandable_segments at the start of the request */
	bool rejected;            /* throw_on_cudamalloc_oom */
	bool raised;              /* another error; its text is in m->note */
};

/* A request needs at most this many new block objects before the next torch_ensure. */
#define TORCH_HEADROOM 8

/* The files, from below: arena and stream, then text, torn, expand, pool, fit and conf, which call
 * only those. core, wait and slow call each other, as the methods of DeviceCachingAllocator do: a
 * free may wait for streams, and what has waited is freed; a request that finds nothing releases,
 * tries again and hands out. They are three files of one unit because one would be too long to
 * read. seed, view and the entry points (torch.c) stand on top. */

/* torch_arena.c: block objects. */
bool torch_ensure(struct torch *t, uint32_t n);         /* room for n new objects */
uint64_t torch_new_tie(struct torch *t, uint64_t addr); /* of a new segment */
void torch_emit(struct torch *t, enum vc_trace_kind kind, const struct torch_block *b,
		uint64_t size);
uint64_t torch_merge(struct torch *t, uint32_t dst, uint32_t src);

/* torch_stream.c: what is known about a stream. */
struct torch_stream *torch_stream_at(struct torch *t, uint32_t stream);
bool torch_capturing(const struct torch *t);
uint64_t torch_reserve_size(const struct torch *t, uint32_t stream); /* before page rounding */

/* torch_core.c: the two calls of nearly every event, and what they are made of. */
int torch_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		struct vc_error *err);
int torch_free(struct vc_model *m, struct vc_block *b);
int torch_finished(struct torch *t, int answer, struct vc_error *err);
void torch_complete_free(struct torch *t, uint32_t i); /* of a pending block */
bool torch_release_segment(struct torch *t, uint32_t i); /* false: cudaFree fails */

/* torch_core.c */
uint32_t torch_take(struct torch *t, struct torch_want *w);
uint32_t torch_hand_out(struct torch *t, uint32_t i, const struct torch_want *w);
/* Notes whether it hangs on the driver's addresses that block i is the first of its size. */
void torch_note_order(struct torch *t, uint32_t i);
/* What a request of n bytes costs under that table of roundup_power2_divisions; raw: 2.0's reading
 * of it, where 1 divides, too. */
uint64_t torch_rounded(const struct torch *t, const uint32_t *division, bool raw, uint64_t n);
/* Cut bytes off the front of a block that is not in the index; the new front is neither free nor
 * handed out yet, the rest keeps the object and goes to the index. */
uint32_t torch_cut_front(struct torch *t, uint32_t i, uint64_t size);
void torch_occupy(struct torch *t, uint32_t i, uint64_t n, uint64_t id);
int torch_free_block(struct torch *t, uint32_t i); /* VC_DONE, VC_WAITS or VC_RAISED */

/* torch_slow.c: the steps of malloc after the search, and what releases memory. */
int torch_slow(struct torch *t, struct torch_want *w, uint32_t *found);
int torch_release_cached(struct torch *t, uint64_t pool); /* VC_DONE or VC_RAISED */
bool torch_misplaced(struct torch *t, const struct vc_request *rq); /* before anything else */
int torch_exact(struct torch *t, struct torch_want *w, uint32_t *found);

/* torch_expand.c */
uint32_t torch_expand(struct torch *t, struct torch_want *w);
void torch_unmap(struct torch *t, uint32_t i);
uint32_t torch_range_new(struct torch *t);

/* torch_wait.c: other streams. */
bool torch_process_events(struct torch *t); /* false: raised */
int torch_sync(struct torch *t, const struct torch_private *only); /* VC_DONE or VC_RAISED */
void torch_use(struct torch *t, uint32_t i, uint32_t stream);
bool torch_defer(struct torch *t, uint32_t i); /* at a free; false: no other stream uses it */
void torch_complete_recorded(struct torch *t, uint32_t i);
void torch_wait_fini(struct torch *t);

/* torch_torn.c: after a part of a segment was given back. */
uint64_t torch_torn_free(struct torch *t, uint32_t i); /* cudaFree: bytes; 0: it fails */
void torch_torn_segment(struct torch *t, uint64_t addr, uint64_t size);
void torch_torn_complete(struct torch *t, uint32_t i); /* a free, with t->failed */
bool torch_failed(struct torch *t);                    /* says and forgets it */

/* torch_away.c: memory that is given back beneath the allocator. */
int torch_pages(struct vc_model *m, const struct vc_block *b, bool in, struct vc_error *err);
bool torch_is_away(const struct torch *t, uint64_t addr);
void torch_away_count(struct torch *t); /* blocks of such a segment have changed */
bool torch_away_end(struct torch *t, uint64_t addr); /* its segment goes; was it one? */

/* torch_pool.c */
struct torch_set *torch_set_make(struct torch *t, struct torch_pool *p, uint32_t stream);
struct torch_pool *torch_choose_pool(struct torch *t, bool small, uint32_t stream);
int torch_pool_call(struct torch *t, const struct vc_pool_call *c);
struct torch_private *torch_private_new(struct torch *t, uint64_t id);
struct torch_private *torch_private_find(struct torch *t, uint64_t id);
struct torch_private *torch_pool_visit(struct torch *t, uint64_t id);
void torch_private_delete(struct torch *t, struct torch_private *p);
void torch_pool_fini(struct torch *t);

/* torch_conf.c: PyTorch's grammar. VC_DONE, or VC_RAISED with PyTorch's text in `note`. */
int torch_conf_parse(struct torch *t, const char *text, char *note, size_t cap);
bool torch_conf_knows(const char *option, const char *version); /* NULL: any version */
void torch_conf_init(struct torch *t);
void torch_refresh(struct torch *t); /* after options, scopes or the limit changed */

/* torch_text.c */
void torch_raise(struct torch *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void torch_text_oom(struct torch *t, const struct torch_want *w);
/* cudaFree of something that is not the start of an allocation. */
void torch_text_cuda_error(struct torch *t);
void torch_text_rejected(struct torch *t, const struct torch_want *w);

/* torch_view.c */
int torch_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg);
int torch_stats(const struct vc_model *m, vc_stat_fn *fn, void *arg);
int torch_check(const struct vc_model *m, struct vc_error *err);

/* torch_seed.c */
int torch_seed(struct vc_model *m, const struct vc_heap *heap, struct vc_block *blocks,
	       struct vc_error *err);

/* torch_witness.c: which other versions and settings would have done the same. */
struct torch_witness {
	struct torch_rules rules; /* those that count */
	uint64_t max_split, non_split_rounding, large_segment, prop_total;
	uint32_t division[TORCH_DIVISIONS];
	uint64_t largest;         /* no block and no request was larger */
	bool expandable, ranges, medium, raw_division;
	bool plain;   /* settings asked for nothing of the device but its answers */
	bool version; /* pools, captures or errors: what any rule says may have counted */
};
bool torch_witness(const struct vc_model *m, void *witness);
bool torch_repeats(const struct vc_model *m, const void *witness);
bool torch_rounds(const struct vc_model *m, const void *witness, uint64_t size);

/* torch_fit.c: other rules than best fit. */
uint32_t torch_fit_find(struct torch *t, struct torch_set *s, uint64_t size);
