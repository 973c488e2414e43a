/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_records.c - activity records become journal records. Runs in CUPTI's own thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "tracer/cupti.h"
#include "tracer/names.h"
#include "tracer/recorder.h"

enum {
	NAMES = 4096,
	STREAMS = 4096,
	RECENT = 64,
	TOLD = 1 << 16,
	POOLS = 16,
	DEFAULT_STREAM = 7 /* CUPTI's id of handle 0 */
};

struct name { const char *p; uint32_t at; };
struct seen { uint64_t address; uint32_t correlation, operation; };

static struct {
	pthread_mutex_t lock;           /* buffers may complete in several threads */
	struct name name[NAMES];
	_Atomic uint64_t stream[STREAMS];
	_Atomic uint32_t told[TOLD];    /* calls whose records of memory say nothing new */
	struct seen recent[RECENT];     /* one cudaMalloc comes once per context of its device */
	unsigned at;
	struct vc_cupti_times times;    /* of the buffer being read */
	bool launches;                  /* wanted */
	struct { uint64_t at, size; } pool[POOLS]; /* what was last said of it */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

void vc_cupti_stream(uint32_t id, uint64_t handle)
{
	if (id < STREAMS)
		atomic_store(&g.stream[id], handle);
}

void vc_cupti_told(uint32_t correlation)
{
	atomic_store(&g.told[correlation % TOLD], correlation);
}

static uint64_t handle_of(uint32_t id)
{
	uint64_t h = id < STREAMS ? atomic_load(&g.stream[id]) : 0;

	if (h || id == DEFAULT_STREAM || id == UINT32_MAX)
		return h;
	return 1ull << 63 | id; /* created before we looked: distinct, and no pointer */
}

/* Names are shared and stable in most versions: recognised by address, checked by content. */
static uint32_t name_of(const char *s)
{
	struct name *n = &g.name[((uintptr_t)s >> 4) % NAMES];

	if (!s)
		return 0;
	if (n->p == s && strcmp(vc_recorder_stored(n->at), s) == 0)
		return n->at;
	n->p = s;
	n->at = vc_names_put(s);
	return n->at;
}

static void said(enum vc_capability c)
{
	if (vc_recorder_how(c) != VC_HOW_RECORDED)
		vc_recorder_capability(c, VC_HOW_RECORDED);
}

static void put(struct vc_record what)
{
	if (vc_record_put(what) && (what.kind == VC_EV_KERNEL || what.kind == VC_EV_COPY))
		said(what.kind == VC_EV_KERNEL ? VC_CAP_KERNELS : VC_CAP_COPIES);
}

/* 0 = 0: the device buffer was full and no time could be taken. */
static bool is_timed(uint64_t start, uint64_t end)
{
	if (start || end)
		return true;
	vc_recorder_lost(1);
	return false;
}

/* When and how long. On the null GPU that is the device's own time, the same in every run; the
 * stamps are for profilers, who want them beside the wall clock. */
struct span { uint64_t at, ns; };

static struct span span_of(uint64_t start, uint64_t end, uint32_t correlation)
{
	struct span s;

	if (vc_clock_is_null() && vc_clock_null_span(correlation, &s.at, &s.ns))
		return s;
	s.at = vc_cupti_time(&g.times, start);
	s.ns = end > start ? vc_cupti_time(&g.times, end) - s.at : 0;
	return s;
}

static void put_work(uint8_t kind, struct span s, uint64_t bytes, uint32_t correlation,
		     uint32_t stream, uint32_t device, uint32_t name)
{
	put((struct vc_record){ .kind = kind, .time_ns = s.at, .size = s.ns, .addr = bytes,
		.extra = correlation, .stream = handle_of(stream), .device = (uint16_t)device,
		.text = name });
}

static void read_kernel(const struct vc_cupti_kernel *k)
{
	const char *work = vc_clock_null_work(k->correlation);

	if (!is_timed(k->start, k->end))
		return;
	put_work(VC_EV_KERNEL, span_of(k->start, k->end, k->correlation), name_of(work),
		 k->correlation, k->stream, k->device, name_of(k->name));
	if (work)
		said(VC_CAP_WORK);
}

static void read_graph(const struct vc_cupti_graph *k)
{
	if (is_timed(k->start, k->end))
		put_work(VC_EV_KERNEL, span_of(k->start, k->end, k->correlation), 0, k->correlation,
			 k->stream, k->device, name_of("CUDA graph"));
}

static void read_copy(const struct vc_cupti_copy *k)
{
	static const char *const names[] = { "memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
		"memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA", "memcpy DtoD",
		"memcpy HtoH", "memcpy PtoP" }; /* CUpti_ActivityMemcpyKind */

	if (is_timed(k->start, k->end))
		put_work(VC_EV_COPY, span_of(k->start, k->end, k->correlation), k->bytes,
			 k->correlation, k->stream, k->device,
			 name_of(names[k->copy < sizeof(names) / sizeof(*names) ? k->copy : 0]));
}

static void read_fill(const struct vc_cupti_fill *k)
{
	if (is_timed(k->start, k->end))
		put_work(VC_EV_COPY, span_of(k->start, k->end, k->correlation), k->bytes,
			 k->correlation, k->stream, k->device, name_of("memset"));
}

static void read_launch(const struct vc_cupti_api *k)
{
	struct span s = span_of(k->start, k->end, 0);

	if (!k->start || !k->correlation)
		return;
	put((struct vc_record){ .kind = VC_EV_LAUNCH, .time_ns = s.at, .size = s.ns,
		.extra = k->correlation });
	said(VC_CAP_LAUNCHES);
}

static void read_overhead(const struct vc_cupti_overhead *k)
{
	static const char *const names[] = { "unknown", "CUPTI: buffer flush",
		"CUPTI: instrumentation", "CUPTI: resources", "driver: module loading",
		"driver: lazy function loading", "driver: command buffer full",
		"CUPTI: buffer request",
		"CUPTI: unified memory" }; /* CUpti_ActivityOverheadKind, from 1 << 16 on */
	uint32_t n = k->overhead >> 16;
	struct span s = span_of(k->start, k->end, 0);

	if (!k->start && !k->end)
		return;
	put((struct vc_record){ .kind = VC_EV_OVERHEAD, .time_ns = s.at, .size = s.ns,
		.text = name_of(k->overhead == 1 ? "driver: compiler" :
				names[n < sizeof(names) / sizeof(*names) ? n : 0]) });
	said(VC_CAP_OVERHEAD);
}

static bool is_duplicate(uint64_t address, uint32_t correlation, uint32_t operation)
{
	for (unsigned i = 0; i < RECENT; i++)
		if (g.recent[i].address == address && g.recent[i].correlation == correlation &&
		    g.recent[i].operation == operation && correlation)
			return true;
	g.recent[g.at++ % RECENT] = (struct seen){ address, correlation, operation };
	return false;
}

static void put_pool(uint8_t what, uint64_t at, uint64_t size, uint64_t used, struct vc_record r)
{
	r.kind = VC_EV_DRIVER_POOL;
	r.flags = what;
	r.addr = at;
	r.size = size;
	r.extra = used;
	put(r);
	said(VC_CAP_DRIVER_POOLS);
}

/* An allocation from a pool shows how large the pool has become; said when that has changed. */
static void see_pool(const struct vc_cupti_memory *m, size_t bytes, struct vc_record r)
{
	const struct vc_cupti_memory_pool *p = &m->pool;
	int i = 0;

	if (bytes < VC_CUPTI_MEMORY3 || !m->is_async || p->type != VC_CUPTI_POOL_LOCAL || !p->at)
		return; /* before 11.6 these fields held rubbish */
	while (i < POOLS - 1 && g.pool[i].at && g.pool[i].at != p->at)
		i++;
	if (g.pool[i].at == p->at && g.pool[i].size == p->size)
		return;
	g.pool[i].at = p->at;
	g.pool[i].size = p->size;
	put_pool(0, p->at, p->size, p->used, r);
}

static void read_pool(const struct vc_cupti_pool *p, size_t bytes)
{
	struct vc_record r = { .device = (uint16_t)p->device,
		.time_ns = span_of(p->timestamp, p->timestamp, p->correlation).at };
	char text[64];

	if (is_duplicate(p->address, p->correlation, p->operation << 8))
		return;
	if (p->operation == VC_DRIVER_POOL_TRIMMED) {
		snprintf(text, sizeof(text), "trim, keep %llu", (unsigned long long)p->keep);
		r.text = vc_names_put(text);
	}
	put_pool((uint8_t)p->operation, p->address, p->type == VC_CUPTI_POOL_LOCAL ? p->size : 0,
		 p->type == VC_CUPTI_POOL_LOCAL && bytes > VC_CUPTI_POOL_OLDEST ? p->used : 0, r);
}

static void read_memory(const struct vc_cupti_memory *m, size_t bytes)
{
	const char *what = m->memory == VC_CUPTI_KIND_PINNED ? VC_LABEL_PINNED :
		m->memory == VC_CUPTI_KIND_MANAGED ? VC_LABEL_MANAGED :
		m->memory == VC_CUPTI_KIND_DEVICE ? "device memory of other libraries" : NULL;
	struct vc_record r = { .device = (uint16_t)m->device };

	if (m->correlation && atomic_load(&g.told[m->correlation % TOLD]) == m->correlation)
		return;
	if (!what || is_duplicate(m->address, m->correlation, m->operation))
		return;
	r.time_ns = span_of(m->timestamp, m->timestamp, m->correlation).at;
	if (r.time_ns > g.times.mono) /* no stamp, or a clock that was set */
		r.time_ns = g.times.mono;
	see_pool(m, bytes, r);
	r.kind = m->operation == 1 ? VC_EV_OUTSIDE_ALLOC : VC_EV_OUTSIDE_FREE;
	r.flags = VC_RECF_LATE;
	r.addr = m->address;
	r.size = r.extra = m->bytes;
	r.reserved = m->memory == VC_CUPTI_KIND_PINNED ? VC_MEMORY_HOST :
		     m->memory == VC_CUPTI_KIND_MANAGED ? VC_MEMORY_MANAGED : VC_MEMORY_DEVICE;
	r.text = name_of(what);
	put(r);
}

static void read_one(const void *record, size_t bytes)
{
	switch (*(const uint32_t *)record) {
	case VC_CUPTI_KERNEL:
		read_kernel(record);
		break;
	case VC_CUPTI_GRAPH_TRACE:
		read_graph(record);
		break;
	case VC_CUPTI_MEMCPY:
		read_copy(record);
		break;
	case VC_CUPTI_MEMSET:
		read_fill(record);
		break;
	case VC_CUPTI_MEMORY2:
		read_memory(record, bytes);
		break;
	case VC_CUPTI_MEMORY_POOL:
		read_pool(record, bytes);
		break;
	case VC_CUPTI_OVERHEAD:
		read_overhead(record);
		break;
	case VC_CUPTI_RUNTIME: case VC_CUPTI_DRIVER:
		if (g.launches)
			read_launch(record);
		break;
	default:
		break;
	}
}

void vc_cupti_read(vc_cupti_next *next, uint8_t *buffer, size_t valid)
{
	void *record = NULL, *after;
	bool more;
	char text[8];

	pthread_mutex_lock(&g.lock);
	g.times = vc_cupti_clocks();
	g.launches = strcmp(vc_recorder_option("launches", text, sizeof(text)), "on") == 0;
	more = valid && next(buffer, valid, &record) == 0;
	while (more) {
		after = record; /* a record is as long as the way to the next one */
		more = next(buffer, valid, &after) == 0;
		read_one(record, (size_t)((more ? (uint8_t *)after : buffer + valid) -
					  (uint8_t *)record));
		record = after;
	}
	pthread_mutex_unlock(&g.lock);
}
