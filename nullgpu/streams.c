/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - streams, events, captures and graphs on a device clock that no real clock drives.
 *
 * Every stream knows when its work is finished; the program's own time moves by a fixed cost per
 * submission, so whether an event "is finished" depends on the work submitted and on nothing
 * else. One clock serves all threads; a thread that never submits work does not move it, so a
 * pin-memory thread beside the training cannot change what the training sees. Such a thread must
 * still see work end: when nothing was submitted for a while by a real clock, what it asks about is
 * finished for it, and for nobody else (the program may be waiting for that thread to end).
 *
 * PyTorch's NCCL watchdog is such a thread, and it decides about memory: buffers of collectives are
 * kept until it has seen them finish. Here it sees the clock of a collective, at most one a
 * millisecond of device time, and that collective waits for it to have looked. */
#define _GNU_SOURCE
#include "nullgpu/null.h"
#include "nullgpu/usage.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define POLL_NS 1000 /* what a poll of an event costs the CPU, about */
#define FREE_POLLS 16
#define STREAM_MAGIC 0x6e756c6c73747265ull
#define EVENT_MAGIC 0x6e756c6c65766e74ull
#define GRAPH_MAGIC 0x6e756c6c67726170ull
#define DISABLE_TIMING 2u
/* How long a thread that submits nothing sees unfinished work stand still, by a real clock: longer
 * than a busy machine keeps a training thread from running. */
#define STILL_NS 1000000000ull
#define WATCH_NS 1000000ull
/* How long the watchdog may take to look, by a real clock. */
#define PATIENCE_NS 5000000000ull
/* ... and then to let go of what it has seen, for which it may need a lock of the caller's. */
#define LET_GO_NS 50000000ull
#define NAP_NS 100000
/* Handles of streams appear in recordings: they lie at a fixed place, in the order of creation. */
#define STREAM_PLACE 0x2f0000000000ull
#define STREAMS 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vc_null_stream defaults[VC_NULL_DEVICES];
static struct vc_null_stream *streams; /* all that the program made */
static uint32_t next_id = 13;          /* the first id CUPTI gives to a stream of the program */
static uint64_t next_capture = 1, submissions;
static __thread bool submits;
static struct vc_null_event *watched; /* by NCCL's watchdog, those recorded first in front */
static struct vc_null_event **last_watched = &watched; /* where the next one goes */
static uint64_t first_due;            /* none of them ends before */
static uint64_t seen;                 /* the clock as the watchdog sees it */
static bool unwatched;                /* nobody looks */
static unsigned looking;              /* watchdogs that have seen something in this round */
static __thread bool watches, saw;

static void spend(uint64_t ns)
{
	if (submits)
		vc_null_clock_set(vc_null_clock() + ns);
}

static uint64_t real_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* A poll for work that ends at `end`, of a thread for which it is `clock` o'clock. */
static bool is_pending(uint64_t end, uint64_t clock)
{
	static __thread uint64_t stood_at, since, waits_at, polls;
	vc_null_report()->polled += submits;
	polls = waits_at == submissions ? polls + 1 : 0;
	waits_at = submissions;
	/* Looking costs time only for a program that waits by looking: how many finished copies an
	 * allocator of pinned memory finds on its way depends on what its other thread found. */
	if (end > vc_null_clock() && polls > FREE_POLLS)
		spend(POLL_NS);
	if (submits)
		return end > vc_null_clock();
	if (end <= clock)
		return false;
	if (stood_at != submissions || !since) {
		stood_at = submissions;
		since = real_time();
	}
	return real_time() - since < STILL_NS;
}

static void forget_watched(struct vc_null_event *e)
{
	struct vc_null_event **at = &watched;
	while (e->watched && *at && *at != e)
		at = &(*at)->later;
	if (e->watched && *at) {
		*at = e->later;
		last_watched = e->later ? last_watched : at;
	}
	e->watched = false;
}

bool vc_null_is_wanted(void)
{
	pthread_mutex_lock(&lock);
	bool any = false;
	uint64_t least = UINT64_MAX;
	for (const struct vc_null_event *e = seen < first_due ? NULL : watched; e && !any;
	     e = e->later) {
		any = e->time <= seen;
		least = e->time < least ? e->time : least;
	}
	if (!any && seen >= first_due)
		first_due = least;
	pthread_mutex_unlock(&lock);
	return any;
}

bool vc_null_is_watchdog(void)
{
	return watches;
}

/* The watchdog is through with what it has seen: it waits for its next round. */
void vc_null_watched(void)
{
	pthread_mutex_lock(&lock);
	looking -= saw;
	saw = false;
	pthread_mutex_unlock(&lock);
}

/* A watchdog has seen something finished, and has not let go of its memory yet. */
static bool is_anyone_looking(void)
{
	pthread_mutex_lock(&lock);
	bool any = looking > 0;
	pthread_mutex_unlock(&lock);
	return any;
}

void vc_null_collective(void *stream)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	pthread_mutex_lock(&lock);
	s->collective = !s->capture;
	uint64_t now = vc_null_clock();
	bool look = now - seen >= WATCH_NS && !unwatched && !s->capture;
	if (look)
		seen = now;
	pthread_mutex_unlock(&lock);
	uint64_t start = real_time(), took = 0;
	while (look && !unwatched && vc_null_is_wanted()) {
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		took = real_time() - start;
		unwatched = took > PATIENCE_NS;
	}
	while (look && !unwatched && is_anyone_looking() && real_time() - start < took + LET_GO_NS)
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

struct vc_null_stream *vc_null_stream(void *stream)
{
	if ((uintptr_t)stream > 2)
		return stream;
	struct vc_null_stream *s = &defaults[vc_null_current()];
	if (!s->magic)
		*s = (struct vc_null_stream){ .magic = STREAM_MAGIC, .id = 7,
			.device = vc_null_current() };
	return s;
}

/* Memory for the next stream; handles are never used again, as addresses of a heap might be. */
static struct vc_null_stream *stream_memory(void)
{
	static struct vc_null_stream *pool;
	static size_t used;
	if (!pool) {
		void *p = mmap(
			(void *)STREAM_PLACE, STREAMS * sizeof *pool, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		pool = p == MAP_FAILED ? NULL : p;
	}
	return pool && used < STREAMS ? &pool[used++] : calloc(1, sizeof *pool);
}

struct vc_null_stream *vc_null_stream_new(unsigned flags, int priority)
{
	pthread_mutex_lock(&lock);
	struct vc_null_stream *s = stream_memory();
	if (!s) {
		pthread_mutex_unlock(&lock);
		return NULL;
	}
	*s = (struct vc_null_stream){ .magic = STREAM_MAGIC, .id = next_id++, .flags = flags,
		.device = vc_null_current(), .priority = priority, .next = streams };
	streams = s;
	pthread_mutex_unlock(&lock);
	/* CUPTI's resource domain (3), stream created (3): context and handle */
	vc_null_tell_api(3, 3, 1, "stream", &(struct { void *context, *stream; }){ NULL, s }, NULL);
	return s;
}

int vc_null_stream_free(void *stream)
{
	pthread_mutex_lock(&lock);
	struct vc_null_stream **at = &streams;
	while (*at && *at != stream)
		at = &(*at)->next;
	struct vc_null_stream *s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&lock);
	return s ? 0 : VC_NULL_INVALID; /* its few bytes stay: a stale handle must not crash */
}

int vc_null_stream_query(void *stream)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	pthread_mutex_lock(&lock);
	bool pending = !s->capture && is_pending(s->ready, vc_null_clock());
	int rc = s->capture ? VC_NULL_CAPTURE : pending ? VC_NULL_NOTREADY : 0;
	pthread_mutex_unlock(&lock);
	return rc;
}

int vc_null_stream_sync(void *stream)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	pthread_mutex_lock(&lock);
	int rc = s->capture ? VC_NULL_CAPTURE : 0;
	if (!rc)
		vc_null_clock_set(s->ready);
	pthread_mutex_unlock(&lock);
	return rc;
}

int vc_null_device_sync(int device)
{
	pthread_mutex_lock(&lock);
	int rc = 0;
	for (struct vc_null_stream *s = streams; s; s = s->next) {
		if (s->device != device)
			continue;
		if (s->capture)
			rc = VC_NULL_CAPTURE;
		vc_null_clock_set(s->ready);
	}
	vc_null_clock_set(defaults[device].ready);
	pthread_mutex_unlock(&lock);
	return rc;
}

int vc_null_stream_wait(void *stream, struct vc_null_event *e)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	if (!e)
		return VC_NULL_INVALID;
	pthread_mutex_lock(&lock);
	if (e->capture && !s->capture) { /* the fork that makes this stream part of the capture */
		s->capture = e->capture;
		s->graph = e->graph;
	} else if (e->recorded && e->time > s->ready) {
		s->ready = e->time;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* When the stream is through with what it has. */
static uint64_t end_of(const struct vc_null_stream *s)
{
	uint64_t now = vc_null_clock();
	return s->ready > now ? s->ready : now;
}

uint64_t vc_null_work(void *stream, uint64_t duration, bool *captured)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	pthread_mutex_lock(&lock);
	submits = true;
	submissions++;
	spend(VC_NULL_SUBMIT_NS);
	if (!s->capture)
		vc_null_clock_set(s->done[s->submitted % VC_NULL_QUEUE]);
	uint64_t start = end_of(s);
	if (captured)
		*captured = s->capture != 0;
	if (s->capture) {
		s->graph->nodes++;
		s->graph->duration += duration;
	} else {
		s->ready = start + duration;
		s->done[s->submitted++ % VC_NULL_QUEUE] = s->ready;
	}
	pthread_mutex_unlock(&lock);
	return start;
}

int vc_null_host_call(void *stream, void (*fn)(void *), void *arg)
{
	bool captured;
	vc_null_work(stream, 0, &captured);
	if (!captured)
		fn(arg);
	return 0;
}

/* ---- events ---- */

struct vc_null_event *vc_null_event_new(unsigned flags)
{
	struct vc_null_event *e = calloc(1, sizeof *e);
	if (e)
		*e = (struct vc_null_event){ .magic = EVENT_MAGIC, .flags = flags };
	return e;
}

int vc_null_event_free(struct vc_null_event *e)
{
	if (!e || e->magic != EVENT_MAGIC)
		return VC_NULL_INVALID;
	pthread_mutex_lock(&lock);
	forget_watched(e);
	pthread_mutex_unlock(&lock);
	e->magic = 0;
	free(e);
	return 0;
}

int vc_null_event_record(struct vc_null_event *e, void *stream)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	if (!e)
		return VC_NULL_INVALID;
	pthread_mutex_lock(&lock);
	e->recorded = true;
	e->time = end_of(s);
	e->capture = s->capture;
	e->graph = s->graph;
	forget_watched(e);
	if (s->collective && !unwatched) {
		e->watched = true;
		e->later = NULL;
		*last_watched = e;
		last_watched = &e->later;
		first_due = e->time < first_due ? e->time : first_due;
	}
	s->collective = false;
	pthread_mutex_unlock(&lock);
	return 0;
}

int vc_null_event_query(struct vc_null_event *e)
{
	if (!e)
		return VC_NULL_INVALID;
	pthread_mutex_lock(&lock);
	if (e->watched && !submits)
		watches = true;
	bool pending = is_pending(e->recorded ? e->time : 0,
				  e->watched ? seen : vc_null_clock());
	int rc = e->capture ? VC_NULL_CAPTURE : pending ? VC_NULL_NOTREADY : 0;
	if (!pending && !submits && e->watched) {
		forget_watched(e);
		looking += !saw;
		saw = true;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int vc_null_event_sync(struct vc_null_event *e)
{
	if (!e)
		return VC_NULL_INVALID;
	pthread_mutex_lock(&lock);
	int rc = e->capture ? VC_NULL_CAPTURE : 0;
	if (!rc && e->recorded)
		vc_null_clock_set(e->time);
	pthread_mutex_unlock(&lock);
	return rc;
}

int vc_null_event_elapsed(struct vc_null_event *a, struct vc_null_event *b, float *ms)
{
	if (!a || !b || !a->recorded || !b->recorded || ((a->flags | b->flags) & DISABLE_TIMING))
		return VC_NULL_HANDLE;
	*ms = (float)((double)((int64_t)(b->time - a->time)) * 1e-6);
	return 0;
}

/* ---- captures and graphs ---- */

struct vc_null_graph *vc_null_graph_new(void)
{
	struct vc_null_graph *g = calloc(1, sizeof *g);
	if (g)
		*g = (struct vc_null_graph){ .magic = GRAPH_MAGIC, .references = 1 };
	return g;
}

void vc_null_graph_hold(struct vc_null_graph *g)
{
	pthread_mutex_lock(&lock);
	g->references++;
	pthread_mutex_unlock(&lock);
}

void vc_null_graph_drop(struct vc_null_graph *g)
{
	pthread_mutex_lock(&lock);
	bool last = g && --g->references == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		free(g);
}

int vc_null_capture_begin(void *stream)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	if ((uintptr_t)stream <= 1) /* the legacy stream cannot be captured */
		return VC_NULL_CAPTURE;
	struct vc_null_graph *g = vc_null_graph_new();
	if (!g)
		return VC_NULL_MEMORY;
	pthread_mutex_lock(&lock);
	bool idle = !s->capture;
	if (idle) {
		s->capture = next_capture++;
		s->origin = true;
		s->graph = g;
	}
	pthread_mutex_unlock(&lock);
	if (!idle)
		free(g);
	return idle ? 0 : VC_NULL_INVALID;
}

int vc_null_capture_end(void *stream, struct vc_null_graph **out)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	pthread_mutex_lock(&lock);
	uint64_t id = s->origin ? s->capture : 0;
	*out = id ? s->graph : NULL;
	for (struct vc_null_stream *t = streams; t && id; t = t->next)
		if (t->capture == id) {
			t->capture = 0;
			t->origin = false;
			t->graph = NULL;
		}
	pthread_mutex_unlock(&lock);
	return id ? 0 : VC_NULL_INVALID;
}

void vc_null_captured(void *stream, const struct vc_kernel_work *work)
{
	struct vc_null_stream *s = vc_null_stream(stream);
	pthread_mutex_lock(&lock);
	struct vc_kernel_work *w = s->capture ? &s->graph->work : NULL;
	if (w && work->flops > 0) {
		if (work->flops > w->flops / 2) /* most of it is computed in that type */
			memcpy(w->type, work->type, sizeof w->type);
		w->flops += work->flops;
	} else if (w) {
		w->read += work->read;
		w->written += work->written;
	}
	if (w)
		w->dim[0]++;
	pthread_mutex_unlock(&lock);
}

int vc_null_graph_launch(struct vc_null_graph *g, void *stream)
{
	if (!g || g->magic != GRAPH_MAGIC)
		return VC_NULL_INVALID;
	const struct vc_null_stream *s = vc_null_stream(stream);
	bool captured;
	uint64_t start = vc_null_work(stream, g->duration, &captured);
	struct vc_kernel_work work = g->work;
	work.kind = VC_WORK_GRAPH;
	if (captured)
		vc_null_captured(stream, &work);
	else if (vc_null_heard())
		vc_null_tell(&(struct vc_null_activity){ .kind = VC_NULL_KERNEL,
			.name = "CUDA graph", .start = start, .end = start + g->duration,
			.device = (uint32_t)s->device, .stream = s->id, .work = &work });
	return 0;
}
