/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.c - opens CUPTI, subscribes, feeds it small buffers and empties them.
 *
 * libcupti is never linked: the copy that PyTorch has loaded is shared, and where there is none, or
 * another tool holds it, one capability is off and the rest goes on. */
#define _GNU_SOURCE
#include "tracer/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tracer/cupti_abi.h"
#include "tracer/marks.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"

/* Small buffers bound what a crash loses: at 5000 kernels/s 256 KiB are a quarter of a second. */
enum { BUFFER = 256 << 10, BUFFERS = 64, FLUSH_MS = 1000, FINISH_MS = 3000 };

static struct {
	int (*version)(uint32_t *);
	int (*subscribe)(void **, vc_cupti_callback *, void *);
	int (*enable_callback)(uint32_t, void *, int, uint32_t);
	int (*register_callbacks)(vc_cupti_request *, vc_cupti_complete *);
	int (*enable)(int);
	int (*flush)(uint32_t);
	vc_cupti_next *next;
	int (*dropped)(void *, uint32_t, size_t *);
	int (*stream_id)(void *, void *, uint8_t, uint32_t *);
	int (*set)(int, size_t *, void *);
	int (*explain)(int, const char **);
	pthread_mutex_t lock;       /* the free buffers */
	void *spare[BUFFERS];
	int spares;
	_Atomic int started, active, finishing;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- buffers ---- */

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	void *p = NULL;

	pthread_mutex_lock(&g.lock);
	if (g.spares)
		p = g.spare[--g.spares];
	pthread_mutex_unlock(&g.lock);
	if (!p) /* mapped, not malloc'ed: this runs inside any CUDA call of the program */
		p = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*buffer = p == MAP_FAILED ? NULL : p; /* before 12.9 CUPTI does not survive NULL, nor would we */
	*size = p == MAP_FAILED ? 0 : BUFFER;
	*records = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t lost = 0;

	(void)size;
	if (!buffer)
		return;
	vc_cupti_read(g.next, buffer, valid);
	if (g.dropped && g.dropped(context, stream, &lost) == 0 && lost)
		vc_cupti_lost(lost);
	memset(buffer, 0, valid);
	pthread_mutex_lock(&g.lock);
	if (g.spares < BUFFERS) {
		g.spare[g.spares++] = buffer;
		buffer = NULL;
	}
	pthread_mutex_unlock(&g.lock);
	if (buffer)
		munmap(buffer, BUFFER);
}

/* ---- callbacks: rare calls only ---- */

static void put_outside(uint8_t kind, uint64_t at, uint64_t size)
{
	static const char who[] = "mapped memory of other libraries";
	struct vc_record *r = vc_record_begin();

	if (!r)
		return;
	*r = (struct vc_record){ .kind = kind, .addr = at, .size = size, .extra = size,
		.time_ns = vc_clock_ns(), .text = vc_marks_name(who, sizeof(who) - 1) };
	vc_record_commit(r);
}

static void on_driver_call(uint32_t id, const struct vc_cupti_call *call)
{
	const struct vc_cupti_map *range = call->params;
	char text[64];

	if (call->site != VC_CUPTI_API_EXIT || !call->params || !call->result)
		return;
	if (*call->result) {
		if (id == VC_CUPTI_MEM_ALLOC || id == VC_CUPTI_MEM_ALLOC_ASYNC) {
			int n = snprintf(text, sizeof(text), "device allocation of %zu bytes refused",
					 ((const struct vc_cupti_alloc *)call->params)->size);

			vc_marks_put(VC_MARK_INSTANT, vc_marks_name(text, (size_t)n));
		}
		return;
	}
	if (vc_torch_allocating())
		return; /* PyTorch's own: cuda_calls.c has it */
	if (id == VC_CUPTI_MEM_MAP)
		put_outside(VC_EV_OUTSIDE_ALLOC, range->at, range->size);
	else if (id == VC_CUPTI_MEM_UNMAP)
		put_outside(VC_EV_OUTSIDE_FREE, range->at, range->size);
}

static void callback(void *user, int domain, uint32_t id, const void *data)
{
	const struct vc_cupti_resource *resource = data;
	uint32_t stream;

	(void)user;
	if (!atomic_load_explicit(&g.active, memory_order_relaxed))
		return;
	if (domain == VC_CUPTI_DRIVER_API)
		on_driver_call(id, data);
	else if (domain == VC_CUPTI_RESOURCE && id == VC_CUPTI_STREAM_CREATED && g.stream_id &&
		 g.stream_id(resource->context, resource->handle, 0, &stream) == 0)
		vc_cupti_stream(stream, (uint64_t)(uintptr_t)resource->handle);
}

/* ---- start ---- */

static void *open_library(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
		"libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4",
		"libcupti.so.11.3", "libcupti.so.11.2", "libcupti.so" };
	const char *given = getenv("VC_CUPTI");
	void *h = given && *given ? dlopen(given, RTLD_NOW) : NULL;

	for (size_t i = 0; !h && i < sizeof(names) / sizeof(*names); i++)
		h = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; !h && i < sizeof(names) / sizeof(*names); i++)
		h = dlopen(names[i], RTLD_NOW);
	return h;
}

static bool load(void *h)
{
	*(void **)&g.version = dlsym(h, "cuptiGetVersion");
	*(void **)&g.subscribe = dlsym(h, "cuptiSubscribe");
	*(void **)&g.enable_callback = dlsym(h, "cuptiEnableCallback");
	*(void **)&g.register_callbacks = dlsym(h, "cuptiActivityRegisterCallbacks");
	*(void **)&g.enable = dlsym(h, "cuptiActivityEnable");
	*(void **)&g.flush = dlsym(h, "cuptiActivityFlushAll");
	*(void **)&g.next = dlsym(h, "cuptiActivityGetNextRecord");
	*(void **)&g.dropped = dlsym(h, "cuptiActivityGetNumDroppedRecords");
	*(void **)&g.stream_id = dlsym(h, "cuptiGetStreamIdEx");
	*(void **)&g.set = dlsym(h, "cuptiActivitySetAttribute");
	*(void **)&g.explain = dlsym(h, "cuptiGetResultString");
	return g.subscribe && g.register_callbacks && g.enable && g.flush && g.next;
}

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

	if (g.explain)
		g.explain(code, &name);
	snprintf(text, sizeof(text), "no kernel times: %s answered %d (%s)%s", what, code,
		 name ? name : "unknown",
		 code == VC_CUPTI_BUSY ? "; another profiler holds CUPTI" : "");
	refuse(text);
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

/* Full buffers come by themselves; this fetches those whose records are complete but few. */
static void *flusher(void *unused)
{
	(void)unused;
	while (!atomic_load(&g.finishing)) {
		sleep_ms(FLUSH_MS);
		if (!atomic_load(&g.finishing))
			g.flush(0);
	}
	return NULL;
}

static void start_flusher(void)
{
	sigset_t all, old;
	pthread_t t;

	sigfillset(&all); /* signals are the program's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t, NULL, flusher, NULL) == 0)
		pthread_detach(t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* That records come is said when the first one does: cupti_records.c. */
static void enable_kind(int kind, enum vc_capability c)
{
	if (g.enable(kind))
		vc_recorder_capability(c, VC_HOW_FAILED);
}

static void enable_kinds(void *subscriber)
{
	static const uint32_t calls[] = { VC_CUPTI_MEM_ALLOC, VC_CUPTI_MEM_ALLOC_ASYNC,
					  VC_CUPTI_MEM_MAP, VC_CUPTI_MEM_UNMAP };
	char graphs[16], kernels[16];
	uint8_t yes = 1;
	size_t one = sizeof(yes);

	for (size_t i = 0; g.enable_callback && i < sizeof(calls) / sizeof(*calls); i++)
		g.enable_callback(1, subscriber, VC_CUPTI_DRIVER_API, calls[i]);
	if (g.enable_callback)
		g.enable_callback(1, subscriber, VC_CUPTI_RESOURCE, VC_CUPTI_STREAM_CREATED);
	if (g.set) {
		g.set(VC_CUPTI_ATTR_ZEROED, &one, &yes);
		one = sizeof(yes);
		g.set(VC_CUPTI_ATTR_HOST_PINNED, &one, &yes); /* its buffers not on the device we measure */
	}
	g.enable(VC_CUPTI_MEMORY2);
	if (strcmp(vc_recorder_option("kernels", kernels, sizeof(kernels)), "off") == 0)
		return;
	if (strcmp(vc_recorder_option("graphs", graphs, sizeof(graphs)), "launch") == 0)
		enable_kind(VC_CUPTI_GRAPH_TRACE, VC_CAP_KERNELS);
	enable_kind(VC_CUPTI_KERNEL, VC_CAP_KERNELS);
	enable_kind(VC_CUPTI_MEMCPY, VC_CAP_COPIES);
	enable_kind(VC_CUPTI_MEMSET, VC_CAP_COPIES);
}

static void start(void)
{
	void *h = open_library(), *subscriber = NULL;
	char text[32];
	uint32_t v = 0;
	int r;

	if (!h) {
		refuse("no kernel times: libcupti was not found; VC_CUPTI can name one");
		return;
	}
	if (!load(h)) {
		refuse("no kernel times: this libcupti lacks a function the tracer needs");
		return;
	}
	if (g.version && g.version(&v) == 0) {
		snprintf(text, sizeof(text), "%u", v);
		vc_recorder_fact("cupti", text);
	}
	r = g.subscribe(&subscriber, callback, NULL);
	if (r) {
		refuse_code("cuptiSubscribe", r);
		return;
	}
	r = g.register_callbacks(request, complete);
	if (r) {
		refuse_code("cuptiActivityRegisterCallbacks", r);
		return;
	}
	atomic_store(&g.active, 1);
	enable_kinds(subscriber);
	start_flusher();
	atexit(vc_cupti_finish); /* late, so it runs early: while the driver still lives */
}

VC_EXPORT int InitializeInjection(void)
{
	char device[16];

	if (atomic_exchange(&g.started, 1))
		return 1;
	vc_recorder_option("device", device, sizeof(device));
	if (strcmp(device, "cpu") != 0 && vc_recorder_open())
		start();
	return 1;
}

/* ---- end ---- */

static void *last_flush(void *done)
{
	g.flush(VC_CUPTI_FLUSH_FORCED);
	atomic_store((_Atomic int *)done, 1);
	return NULL;
}

/* Flushing can hang when the GPU is wedged: it gets a thread of its own and a limited time. */
void vc_cupti_finish(void)
{
	static _Atomic int done;
	pthread_t t;

	if (!atomic_load(&g.active) || atomic_exchange(&g.finishing, 1))
		return;
	if (pthread_create(&t, NULL, last_flush, &done) != 0)
		return;
	pthread_detach(t);
	for (int ms = 0; ms < FINISH_MS && !atomic_load(&done); ms++)
		sleep_ms(1);
}

void vc_cupti_forget(void)
{
	atomic_store(&g.active, 0);
	atomic_store(&g.finishing, 1);
	atomic_store(&g.started, 0); /* a child whose parent had no CUDA may start it */
	pthread_mutex_init(&g.lock, NULL);
	g.spares = 0;
}
