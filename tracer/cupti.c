/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.c - starts CUPTI's planes inside cuInit and ends them. Where there is no CUPTI, or another
 * tool holds it, one capability is off and the rest goes on. */
#define _GNU_SOURCE
#include "tracer/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "tracer/cuda_calls.h"
#include "tracer/marks.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"

enum { FLUSH_MS = 1000, FINISH_MS = 3000, OURS = 4096, NEAR = 64 };

static struct {
	_Atomic int started, active, finishing, flushed;
	_Atomic uintptr_t starts; /* how often */
	_Atomic uint64_t ours[OURS]; /* what cuMemAlloc gave and on_alloc recorded */
} g;

/* ---- callbacks: rare calls only ---- */

static uint16_t device_now(void)
{
	static _Atomic(void *) cached; /* cuCtxGetDevice; CUdevice is an int (CUDA driver API) */
	void *found = atomic_load(&cached), *driver;
	int (*get)(int *), device = 0;

	if (!found) {
		driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
		found = driver ? dlsym(driver, "cuCtxGetDevice") : NULL;
		atomic_store(&cached, found);
	}
	*(void **)&get = found;
	return get && get(&device) == 0 ? (uint16_t)device : 0;
}

static void put_outside(uint8_t kind, uint64_t at, uint64_t size, enum vc_record_memory memory)
{
	vc_record_put((struct vc_record){ .kind = kind, .addr = at, .size = size, .extra = size,
		.reserved = memory, .device = device_now(),
		.text = vc_names_put(memory == VC_MEMORY_MAPPED ?
					     "mapped memory of other libraries" :
					     "device memory of other libraries") });
}

/* Where `from` stands near the place of an address becomes `to`; false: nowhere. */
static bool exchange(uint64_t at, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < NEAR; i++) {
		_Atomic uint64_t *p = &g.ours[((at >> 9) + i) % OURS];
		uint64_t is = from;

		if (atomic_compare_exchange_strong(p, &is, to))
			return true;
	}
	return false;
}

/* cuMemAlloc of others than the runtime that we hook. Its activity record, which comes later and is
 * cancelled by ours, was not seen for the first one of a program on an H100. A free is ours where
 * the allocation was: else the record of that might come behind it. */
static void on_alloc(const struct vc_cupti_alloc *call)
{
	if (call->at && !vc_cuda_inside() && exchange(*call->at, 0, *call->at))
		put_outside(VC_EV_OUTSIDE_ALLOC, *call->at, call->size, VC_MEMORY_DEVICE);
}

static void on_free(const struct vc_cupti_free *call)
{
	if (call->at && exchange(call->at, call->at, 0) && !vc_cuda_inside())
		put_outside(VC_EV_OUTSIDE_FREE, call->at, 0, VC_MEMORY_DEVICE);
}

/* The calls of virtual memory. An H100's CUPTI has a record of each piece that is created, at an
 * address that is not the one where it is mapped. The mapping is told here, or by cuda_calls.c. */
static bool is_mapping(uint32_t id)
{
	return id >= VC_CUPTI_MEM_RESERVE && id <= VC_CUPTI_MEM_SET_ACCESS;
}

static void on_driver_call(uint32_t id, const struct vc_cupti_call *call)
{
	const struct vc_cupti_map *range = call->params;

	if (is_mapping(id) && call->site == VC_CUPTI_API_ENTER)
		vc_cupti_told(call->correlation);
	if (id == VC_CUPTI_MEM_FREE && call->site == VC_CUPTI_API_ENTER && call->params)
		on_free(call->params); /* the next owner of the address must come later */
	if (call->site != VC_CUPTI_API_EXIT || !call->params || !call->result)
		return;
	if (*call->result) {
		if (vc_cuda_inside())
			return; /* the call of the runtime around it says so */
		if (id == VC_CUPTI_MEM_ALLOC || id == VC_CUPTI_MEM_ALLOC_ASYNC)
			vc_marks_refusal("device",
					 ((const struct vc_cupti_alloc *)call->params)->size);
		return;
	}
	if (vc_torch_allocating())
		return; /* PyTorch's own: cuda_calls.c has it */
	if (id == VC_CUPTI_MEM_ALLOC)
		on_alloc(call->params);
	else if (id == VC_CUPTI_MEM_MAP)
		put_outside(VC_EV_OUTSIDE_ALLOC, range->at, range->size, VC_MEMORY_MAPPED);
	else if (id == VC_CUPTI_MEM_UNMAP)
		put_outside(VC_EV_OUTSIDE_FREE, range->at, range->size, VC_MEMORY_MAPPED);
}

static void callback(void *user, int domain, uint32_t id, const void *data)
{
	const struct vc_cupti_resource *resource = data;
	uint32_t stream;

	if (!atomic_load_explicit(&g.active, memory_order_relaxed))
		return;
	if (domain == VC_CUPTI_DRIVER_API)
		on_driver_call(id, data);
	else if (domain == VC_CUPTI_RESOURCE && id == VC_CUPTI_STREAM_CREATED &&
		 vc_cupti()->stream_id &&
		 vc_cupti()->stream_id(resource->context, resource->handle, 0, &stream) == 0)
		vc_cupti_stream(stream, (uint64_t)(uintptr_t)resource->handle);
}

/* ---- start ---- */

static void refuse(const char *why)
{
	vc_recorder_fact("note", why);
	vc_recorder_capability(VC_CAP_KERNELS, VC_HOW_FAILED);
	vc_recorder_capability(VC_CAP_COPIES, VC_HOW_FAILED);
}

static void refuse_code(const char *what, int code)
{
	char text[256];
	const char *name = NULL;

	if (vc_cupti()->explain)
		vc_cupti()->explain(code, &name);
	snprintf(text, sizeof(text), "no kernel times: %s answered %d (%s)%s", what, code,
		 name ? name : "unknown",
		 code == VC_CUPTI_BUSY ? "; another profiler holds CUPTI" : "");
	refuse(text);
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

/* Full buffers come by themselves; this fetches those whose records are complete but few. Not
 * while a profiler of the program's collects, whose number of buffers is limited. */
static bool is_over(uintptr_t start)
{
	return atomic_load(&g.finishing) || atomic_load(&g.starts) != start;
}

static void *flusher(void *start)
{
	while (!is_over((uintptr_t)start)) {
		sleep_ms(FLUSH_MS);
		if (!is_over((uintptr_t)start) && !vc_share_is_busy())
			vc_cupti()->flush(0);
	}
	return NULL;
}

static void start_flusher(void)
{
	sigset_t all, old;
	pthread_t t;

	sigfillset(&all); /* signals are the program's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t, NULL, flusher, (void *)atomic_load(&g.starts)) == 0)
		pthread_detach(t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* That records come is said when the first one does: cupti_records.c. */
static void enable_kind(int kind, enum vc_capability c)
{
	if (vc_share_enable(kind))
		vc_recorder_capability(c, VC_HOW_FAILED);
}

/* Whole kinds of API records would touch every call of CUDA: only launches, from 12.5 on. */
static void enable_launches(void)
{
	static const uint32_t runtime[] = { VC_CUPTI_RT_LAUNCH, VC_CUPTI_RT_LAUNCH_EX,
					    VC_CUPTI_RT_LAUNCH_GRAPH, VC_CUPTI_RT_COPY_ASYNC };
	static const uint32_t driver[] = { VC_CUPTI_LAUNCH, VC_CUPTI_LAUNCH_EX,
					   VC_CUPTI_LAUNCH_GRAPH };
	const struct vc_cupti_functions *f = vc_cupti();
	int r = f->runtime_api && f->driver_api ? 0 : VC_CUPTI_INVALID;

	for (size_t i = 0; r == 0 && i < sizeof(runtime) / sizeof(*runtime); i++)
		r = f->runtime_api(runtime[i], 1);
	for (size_t i = 0; r == 0 && i < sizeof(driver) / sizeof(*driver); i++)
		r = f->driver_api(driver[i], 1);
	if (!r)
		return;
	vc_recorder_capability(VC_CAP_LAUNCHES, VC_HOW_FAILED);
	vc_recorder_fact("note", "no launches: this CUPTI cannot record single calls (12.5 can)");
}

static void enable_kinds(void)
{
	static const uint32_t calls[] = { VC_CUPTI_MEM_ALLOC, VC_CUPTI_MEM_FREE,
		VC_CUPTI_MEM_ALLOC_ASYNC, VC_CUPTI_MEM_RESERVE, VC_CUPTI_MEM_UNRESERVE,
		VC_CUPTI_MEM_CREATE, VC_CUPTI_MEM_RELEASE, VC_CUPTI_MEM_MAP, VC_CUPTI_MEM_UNMAP,
		VC_CUPTI_MEM_SET_ACCESS };
	char text[16];
	uint8_t yes = 1;
	size_t one = sizeof(yes);

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		vc_share_callback(VC_CUPTI_DRIVER_API, calls[i]);
	vc_share_callback(VC_CUPTI_RESOURCE, VC_CUPTI_STREAM_CREATED);
	if (vc_cupti()->set) /* its buffers not on the device we measure */
		vc_cupti()->set(VC_CUPTI_ATTR_HOST_PINNED, &one, &yes);
	vc_share_enable(VC_CUPTI_MEMORY2);
	enable_kind(VC_CUPTI_MEMORY_POOL, VC_CAP_DRIVER_POOLS);
	enable_kind(VC_CUPTI_OVERHEAD, VC_CAP_OVERHEAD);
	if (strcmp(vc_recorder_option("kernels", text, sizeof(text)), "off") == 0)
		return;
	if (strcmp(vc_recorder_option("graphs", text, sizeof(text)), "launch") == 0)
		enable_kind(VC_CUPTI_GRAPH_TRACE, VC_CAP_KERNELS);
	enable_kind(VC_CUPTI_KERNEL, VC_CAP_KERNELS);
	enable_kind(VC_CUPTI_MEMCPY, VC_CAP_COPIES);
	enable_kind(VC_CUPTI_MEMSET, VC_CAP_COPIES);
	if (strcmp(vc_recorder_option("launches", text, sizeof(text)), "on") == 0)
		enable_launches();
}

static void start(void)
{
	static _Atomic bool at_exit;
	char text[32];
	uint32_t v = 0;
	int r;

	switch (vc_cupti_open(NULL)) {
	case VC_CUPTI_NONE:
		refuse("no kernel times: libcupti was not found; VC_CUPTI can name one");
		return;
	case VC_CUPTI_INCOMPLETE:
		refuse("no kernel times: this libcupti lacks a function the tracer needs");
		return;
	default:
		break;
	}
	if (vc_cupti()->version && vc_cupti()->version(&v) == 0) {
		snprintf(text, sizeof(text), "%u", v);
		vc_recorder_fact("cupti", text);
	}
	r = vc_share_subscribe(callback);
	if (r) {
		refuse_code("cuptiSubscribe", r);
		return;
	}
	r = vc_share_register();
	if (r) {
		refuse_code("cuptiActivityRegisterCallbacks", r);
		return;
	}
	atomic_store(&g.active, 1);
	atomic_store(&g.finishing, 0); /* a forked child was left with 1 */
	enable_kinds();
	atomic_fetch_add(&g.starts, 1);
	if (!vc_clock_is_null()) /* what a timer fetches comes at another moment in every run */
		start_flusher();
	if (!atomic_exchange(&at_exit, true))
		atexit(vc_cupti_finish); /* late, so it runs early: while the driver still lives */
}

VC_EXPORT int InitializeInjection(void)
{
	char device[16];

	if (atomic_exchange(&g.started, 1))
		return 1;
	vc_recorder_option("device", device, sizeof(device));
	if (strcmp(device, "cpu") != 0 && vc_recorder_open() && !vc_share_postpone(start))
		start();
	return 1;
}

/* ---- end ---- */

static void *last_flush(void *unused)
{
	vc_cupti()->flush(VC_CUPTI_FLUSH_FORCED);
	atomic_store(&g.flushed, 1);
	return NULL;
}

/* What CUPTI was given and did not return: somebody else took its buffers over, past us. */
static void say_missing(bool flushed)
{
	if (!flushed)
		vc_recorder_fact("note", "the last kernel times are missing: CUPTI did not answer "
				 "in time");
	else if (vc_share_is_robbed())
		vc_recorder_fact("note", "kernel times are missing: another client of CUPTI took "
				 "its buffers over");
	else
		return;
	if (vc_recorder_how(VC_CAP_KERNELS) == VC_HOW_RECORDED)
		vc_recorder_capability(VC_CAP_KERNELS, VC_HOW_PARTIAL);
}

/* Flushing can hang when the GPU is wedged: it gets a thread of its own and a limited time. */
void vc_cupti_finish(void)
{
	pthread_t t;

	if (!atomic_load(&g.active) || atomic_exchange(&g.finishing, 1))
		return;
	atomic_store(&g.flushed, 0);
	if (pthread_create(&t, NULL, last_flush, NULL) != 0)
		return;
	pthread_detach(t);
	for (int ms = 0; ms < FINISH_MS && !atomic_load(&g.flushed); ms++)
		sleep_ms(1);
	say_missing(atomic_load(&g.flushed));
}

void vc_cupti_join(void)
{
	if (!atomic_exchange(&g.started, 1))
		start();
}

void vc_cupti_leave(void)
{
	if (!atomic_exchange(&g.started, 0) || !atomic_load(&g.active))
		return;
	vc_cupti_finish();
	atomic_store(&g.active, 0);
	vc_share_leave();
}

void vc_cupti_forget(void)
{
	atomic_store(&g.active, 0);
	atomic_store(&g.finishing, 1);
	atomic_store(&g.started, 0); /* a child whose parent had no CUDA may start it */
	vc_share_forget();
}
