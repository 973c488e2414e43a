/* SPDX-License-Identifier: Apache-2.0 */
/* null.h - the null device: what the stand-in libraries share. Lives in the stand-in libcuda.
 *
 * Glossary: a *card* is what the user chose (total memory, compute capability); a *device* is
 * one instance of it; a *device address* is an ordinary host address inside a reservation, so
 * small data is really there and large data reads as zeros. Results are CUDA error numbers (the
 * driver and the runtime share them): 0, or one of enum vc_null_result. Sizes are bytes, times
 * nanoseconds of the device clock, which no real clock drives: it moves with the work that the
 * program submits, so every run sees the same times. */
#pragma once

#include "nullgpu/rates.h"
#include "common/std.h"
#include "common/kernel_work.h"

#define VC_SHARED __attribute__((visibility("default")))
/* An entry point: prototype and definition in one, since no vendor header is used. */
#define VC_API(type, name, ...) VC_SHARED type name(__VA_ARGS__); VC_SHARED type name(__VA_ARGS__)
/* One of a single line: what it returns, or what it does before it returns success. */
#define VC_API_RETURNS(name, parameters, ...) \
	VC_SHARED int name parameters; VC_SHARED int name parameters { return __VA_ARGS__; }
#define VC_API_DOES(name, parameters, ...) \
	VC_SHARED int name parameters; VC_SHARED int name parameters { __VA_ARGS__; return 0; }

#define VC_NULL_DEVICES 16
#define VC_MIB (1ull << 20)
/* What NVML and nvidia-smi say of themselves and of a device. */
#define VC_NULL_DRIVER "580.00"
#define VC_NULL_UUID "GPU-564c4e00-6e75-6c6c-6770-7500000000%02x"
/* Where nothing else lives on x86-64 and arm64 Linux: below the mmap area, above the heap. A
 * device has one span; what the program maps itself lies behind all of them. */
#define VC_NULL_DEVICE_PLACE 0x200000000000ull
#define VC_NULL_DEVICE_SPAN  0x010000000000ull
#define VC_NULL_MAPPED_PLACE 0x300000000000ull
#define VC_NULL_MAPPED_SPAN  0x100000000000ull

enum vc_null_result {
	VC_NULL_INVALID   = 1,
	VC_NULL_MEMORY    = 2,
	VC_NULL_NODEVICE  = 100,
	VC_NULL_BADDEVICE = 101,
	VC_NULL_HANDLE    = 400,
	VC_NULL_NOTFOUND  = 500,
	VC_NULL_NOTREADY  = 600,
	VC_NULL_NOSUP     = 801,
	VC_NULL_CAPTURE   = 900, /* this call may not happen while a stream is capturing */
};

/* ---- card.c: what the user chose, read once from VRAMCAST_NULL_* ---- */
struct vc_null_card {
	char name[96];
	uint64_t total;   /* what cudaMemGetInfo calls total */
	uint64_t board;   /* what NVML and nvidia-smi call total: with what the driver keeps */
	uint64_t context; /* taken by the CUDA context and everything loaded outside the allocator
			   */
	uint64_t l2;
	int cc, sms;      /* 89 means 8.9 */
	int shared_sm, shared_optin, threads_sm, blocks_sm;
	double bandwidth, flops[VC_NULL_RATES]; /* bytes and operations a second, for durations */
	int devices;
	bool ascending;   /* device addresses grow (Windows) instead of shrinking (Linux) */
	uint64_t copy_max; /* copies and fills up to this size move real bytes */
	int log;          /* 0 silent, 1 first call of a default stub, 2 allocations, 3 kernels */
};
VC_SHARED const struct vc_null_card *vc_null_card(void);
/* Device attribute by its CUDA number; unknown numbers are 0. */
VC_SHARED int vc_null_attribute(int attribute, int device);
/* Memory of other processes on `device`; `pid` of entry `i`, 0 = no such entry. */
VC_SHARED uint64_t vc_null_other(int device, int i, unsigned *pid);
VC_SHARED void vc_null_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* report.c. `seen` is the caller's own flag. Touch: a default stub was called, which
 * only the log tells. Bound: a question about memory was answered with a bound or a guess, which
 * the report at the end of the process names. */
VC_SHARED void vc_null_touch(const char *name, unsigned char *seen);
VC_SHARED void vc_null_bound(const char *name, unsigned char *seen);
/* Memory that is not counted but may be taken: up to `bytes` more of `name`; 0 = nobody knows. */
VC_SHARED void vc_null_at_most(const char *name, uint64_t bytes);
/* ... and not through the framework's allocator. */
VC_SHARED void vc_null_beside(const char *name, uint64_t bytes);
/* One request of `name` that was answered with `counted` bytes where the library would say
 * something from `least` to `most`; the report keeps the largest of each, as requests come one
 * after another. `measured`: what is known of measured runs covers the difference. */
struct vc_null_range {
	uint64_t least, counted, most;
	bool measured;
};
VC_SHARED void vc_null_range(const char *name, const struct vc_null_range *range);
/* A plan of cuDNN ran with so much. On a card it may be another one. */
VC_SHARED void vc_null_workspace(uint64_t bytes);
/* cusparse.c: names `name` with what its scratch could be for the largest matrix made so far. */
void vc_cusparse_scratch(const char *name);
/* This process's own report; never NULL. Counters in it are changed without a lock. */
VC_SHARED struct vc_null_report *vc_null_report(void);
/* This process took more of that device: notes what all processes of the dry run hold of it now. */
void vc_null_meet(int device);
/* The device that the calling thread selected. */
/* The program asked for a device that the machine does not have. Returns the error. */
VC_SHARED int vc_null_no_device(int device);
VC_SHARED int vc_null_current(void);
VC_SHARED void vc_null_select(int device);

/* ---- end.c: from the python side and report.c. The program has ended with that status: its
 * process has some seconds to end as well. Waits: all but what is named has ended. */
VC_SHARED void vc_null_ends(int status);
VC_SHARED void vc_null_waits(const char *what);

/* ---- vram.c: capacity and addresses ---- */
VC_SHARED int vc_null_alloc(int device, size_t size, uint64_t *out);
VC_SHARED int vc_null_free(uint64_t address);
/* `caller`: the return address of the call, so that the tracer's own samples are told apart. Asks
 * total: somebody asks for the size of the card only; a run in which the program did so is no
 * other card's. */
VC_SHARED void vc_null_meminfo(int device, const void *caller, size_t *free_bytes, size_t *total);
VC_SHARED void vc_null_asks_total(const void *caller);
/* Bytes this process holds on `device`, context included. */
VC_SHARED uint64_t vc_null_used(int device);
/* Device that owns the address, or -1. */
VC_SHARED int vc_null_owner(uint64_t address);
/* Start and size of the allocation around `address`. */
VC_SHARED int vc_null_extent(uint64_t address, uint64_t *base, size_t *size);
/* Virtual memory management: handles are physical pieces, charged until released and unmapped. */
VC_SHARED int vc_null_reserve(size_t size, uint64_t *out);
VC_SHARED int vc_null_unreserve(uint64_t address, size_t size);
VC_SHARED int vc_null_create(int device, size_t size, uint64_t *handle);
VC_SHARED int vc_null_release(uint64_t handle);
VC_SHARED int vc_null_map(uint64_t address, size_t size, uint64_t handle);
VC_SHARED int vc_null_unmap(uint64_t address, size_t size);
/* Addresses for memory of another process: it costs this one nothing, and reads as zeros. */
VC_SHARED int vc_null_borrow(int device, size_t size, uint64_t *out);
VC_SHARED int vc_null_give_back(uint64_t at);
VC_SHARED int vc_null_borrow_handle(int device, size_t size, uint64_t *handle);
VC_SHARED int vc_null_handle_facts(uint64_t handle, uint64_t *size, int *device);
VC_SHARED int vc_null_handle_of(uint64_t address, uint64_t *handle);
/* From the tracer: PyTorch's allocator handed that memory out. */
VC_SHARED void vc_null_fresh(void *p, uint64_t size);

/* ---- fresh.c: memory that nobody has written since PyTorch's allocator handed it out ---- */
/* That memory was handed out; false: it does not lie where such memory is looked after. */
bool vc_null_mark_fresh(const void *p, uint64_t size);
/* To be called before that memory is read or written in part: what is fresh of it becomes zeros. */
VC_SHARED void vc_null_wash(const void *p, uint64_t size);
/* All of it is about to be overwritten, or is nobody's any more. */
VC_SHARED void vc_null_written(const void *p, uint64_t size);
VC_SHARED int vc_null_is_fresh(const void *p);
/* Whether anybody tells what is handed out. */
VC_SHARED int vc_null_is_told(void);

/* ---- blocks.c: the blocks of PyTorch's allocator ---- */
void vc_null_block(const void *p, uint64_t size); /* handed out */
/* Bytes from that address to the end of its block, 0: in none. */
uint64_t vc_null_block_left(uint64_t address, bool *begins_there);

/* ---- made_up.c: numbers that ranks which do not run would have decided ---- */
/* That memory holds such a number, of the call `what` (a literal); NULL: it does no longer. */
VC_SHARED void vc_null_made_up(const void *p, uint64_t size, const char *what);
/* What some of that memory holds; NULL: no such number. */
VC_SHARED const char *vc_null_is_made_up(const void *p, uint64_t size);
/* One was read on the host. `tell`, where there is one, finds out who reads it, and reports it. */
VC_SHARED void vc_null_read_made_up(const char *what);
VC_SHARED void vc_null_on_made_up(void (*tell)(const char *what));
/* report.c: other ranks decide something that the program goes by. */
VC_SHARED void vc_null_ranks_decide(const char *name);

/* ---- copies.c: real for small data, dropped for large; pinned host memory ---- */
VC_SHARED void vc_null_copy(void *to, const void *from, size_t size);
/* `fetch` is called before anybody reads device memory: some of it may be on its way from another
 * process. Settle: read about to happen. */
VC_SHARED void vc_null_on_read(void (*fetch)(const void *from, size_t size));
VC_SHARED void vc_null_settle(const void *from, size_t size);
VC_SHARED void vc_null_fill(void *to, const void *value, size_t width, size_t count);
VC_SHARED int vc_null_host_alloc(size_t size, void **out);
VC_SHARED int vc_null_managed_alloc(size_t size, void **out); /* given back like the other */
VC_SHARED int vc_null_host_free(void *p);
VC_SHARED int vc_null_host_register(void *p, size_t size);
VC_SHARED int vc_null_host_unregister(void *p);
VC_SHARED bool vc_null_is_host(const void *p);
VC_SHARED bool vc_null_is_managed(const void *p); /* it is the host's, too */

/* ---- clock.c ---- */
VC_SHARED uint64_t vc_null_clock(void);
/* Not backwards. Only streams.c moves it, with its lock held. */
void vc_null_clock_set(uint64_t to);

/* ---- streams.c: streams, events, captures and graphs on the device clock ---- */
struct vc_null_graph {
	uint64_t magic;
	size_t nodes;
	uint64_t duration; /* of all its nodes, one after another */
	struct vc_kernel_work work;
	int references;    /* graph and its executables */
};
/* A launch waits while this many are queued on its stream (seen on Linux drivers: about 1,024). */
#define VC_NULL_QUEUE 1024u

struct vc_null_stream {
	uint64_t magic;
	uint32_t id;       /* as a profiler numbers streams: 7 is the default stream */
	int device, priority;
	unsigned flags;
	uint64_t ready;    /* when everything submitted so far is finished */
	uint64_t capture;  /* id of the capture it takes part in; 0 = none */
	bool origin;       /* the capture began here */
	struct vc_null_graph *graph;
	struct vc_null_stream *next;
	uint64_t submitted, done[VC_NULL_QUEUE]; /* when the last pieces of work are finished */
	bool collective;   /* the last work was one: the next event is for NCCL's watchdog */
};
struct vc_null_event {
	uint64_t magic;
	unsigned flags;
	bool recorded;
	uint64_t time, capture;
	struct vc_null_graph *graph;
	bool watched;                /* NCCL's watchdog has to see it finished */
	struct vc_null_event *later; /* of those that are watched */
};
VC_SHARED struct vc_null_stream *vc_null_stream_new(unsigned flags, int priority);
VC_SHARED int vc_null_stream_free(void *stream);
/* NULL, 1 and 2 name the calling thread's default stream. */
VC_SHARED struct vc_null_stream *vc_null_stream(void *stream);
VC_SHARED int vc_null_stream_query(void *stream);
VC_SHARED int vc_null_stream_sync(void *stream);
VC_SHARED int vc_null_stream_wait(void *stream, struct vc_null_event *event);
VC_SHARED int vc_null_device_sync(int device);
VC_SHARED int vc_null_capture_begin(void *stream);
VC_SHARED int vc_null_capture_end(void *stream, struct vc_null_graph **out);
VC_SHARED struct vc_null_event *vc_null_event_new(unsigned flags);
VC_SHARED int vc_null_event_free(struct vc_null_event *event);
VC_SHARED int vc_null_event_record(struct vc_null_event *event, void *stream);
VC_SHARED int vc_null_event_query(struct vc_null_event *event);
VC_SHARED int vc_null_event_sync(struct vc_null_event *event);
VC_SHARED int vc_null_event_elapsed(struct vc_null_event *a, struct vc_null_event *b, float *ms);
VC_SHARED struct vc_null_graph *vc_null_graph_new(void);
VC_SHARED void vc_null_graph_hold(struct vc_null_graph *graph);
VC_SHARED void vc_null_graph_drop(struct vc_null_graph *graph);
VC_SHARED int vc_null_graph_launch(struct vc_null_graph *graph, void *stream);
/* A collective is about to be queued: lets PyTorch's watchdog see what has finished, see
 * streams.c. */
VC_SHARED void vc_null_collective(void *stream);
/* Whether the calling thread is that watchdog, see watchdog.c. */
VC_SHARED bool vc_null_is_watchdog(void);
/* It waits for its next round; and whether somebody waits for it to look. */
VC_SHARED void vc_null_watched(void);
VC_SHARED bool vc_null_is_wanted(void);
/* Queue `duration` of work; returns when it starts. In a capture it becomes a node instead and
 * `*captured` is true (may be NULL). */
VC_SHARED uint64_t vc_null_work(void *stream, uint64_t duration, bool *captured);
/* The capture that the stream takes part in got a kernel of that work. */
VC_SHARED void vc_null_captured(void *stream, const struct vc_kernel_work *work);
/* A host function in stream order: run at once, or left out while capturing. */
VC_SHARED int vc_null_host_call(void *stream, void (*fn)(void *), void *arg);

/* ---- launches.c: kernels ---- */
struct vc_null_launch {
	const void *function; /* host stub (runtime) or function handle (driver) */
	const char *name;     /* mangled; NULL = look the function up */
	unsigned grid[3], block[3];
	size_t shared;
	void **args;
	void *stream;
};
/* launch_work.c: what the launch of a kernel computes and moves, by its mangled name and its
 * arguments. */
struct vc_kernel_work vc_null_kernel_work(const char *name, const struct vc_null_launch *launch);
VC_SHARED void vc_null_register(const void *function, const char *name);
VC_SHARED int vc_null_launch(const struct vc_null_launch *launch);
/* Work of a library call that only moves bytes. */
VC_SHARED int vc_null_known_work(const char *name, void *stream, const struct vc_kernel_work *work);
/* Products and convolutions. `names`: VC_NULL_NAMES. */
struct vc_null_product {
	double bytes, operations, written; /* written: of the bytes */
	enum vc_null_rate rate;
	enum vc_work_kind kind;      /* OTHER: a product */
	uint64_t dim[VC_WORK_DIMS];  /* kernel_work.h */
};
VC_SHARED int vc_null_product(const char *const names[VC_NULL_RATES], void *stream,
			      const struct vc_null_product *product);

/* ---- activity.c: what a profiler may want to hear ---- */
enum vc_null_activity_kind { VC_NULL_KERNEL, VC_NULL_COPY, VC_NULL_SET, VC_NULL_ALLOC, VC_NULL_FREE,
	VC_NULL_SYNC, VC_NULL_POOL };
struct vc_null_activity {
	enum vc_null_activity_kind kind;
	const char *name;
	uint64_t start, end, address, size;
	uint32_t device, stream, correlation;
	int memory; /* 0 device, 1 pinned, 2 pageable, 3 managed; of a copy: the direction, of a
		     * pool: created 1, destroyed 2, trimmed 3, as CUPTI numbers them */
	uint64_t pool, keep; /* the pool memory came from; what a trim leaves */
	unsigned grid[3], block[3];
	size_t shared;
	const struct vc_kernel_work *work; /* of a kernel; NULL: not known */
};
typedef void vc_null_listener(const struct vc_null_activity *activity);
VC_SHARED void vc_null_listen(vc_null_listener *listener);
VC_SHARED void vc_null_tell(const struct vc_null_activity *activity);
VC_SHARED bool vc_null_heard(void);
/* What the calling thread allocates and frees next belongs to that pool; 0 = none. */
VC_SHARED void vc_null_via(uint64_t pool);
/* From the python side: the calling thread begins (1), or ends (-1), to try kernels out. Until then
 * nobody is told of what it launches, which is no part of a step. */
VC_SHARED void vc_null_tries(int calls);
/* When the activity of that correlation began by the device clock, and for how long; false once
 * about a million others came after it. Records may carry other stamps: see nullcupti.c. */
VC_SHARED bool vc_null_span(uint32_t correlation, uint64_t *at, uint64_t *ns);
/* What the kernel of that correlation computes and moves, a text of kernel_work.h that stays; NULL:
 * not known. */
VC_SHARED const char *vc_null_work_of(uint32_t correlation);
/* API callbacks: `domain` 1 driver, 2 runtime; site 0 enter, 1 exit; numbers as CUPTI's. */
typedef void vc_null_api_listener(int domain, int cbid, int site, const char *name,
				  const void *params, const int *result, uint32_t correlation);
VC_SHARED void vc_null_listen_api(vc_null_api_listener *listener);
VC_SHARED void vc_null_tell_api(int domain, int cbid, int site, const char *name,
				const void *params, const int *result);
VC_SHARED bool vc_null_heard_api(void);
