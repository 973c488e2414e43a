/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_records.c - activity records become journal records. Runs in CUPTI's own thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "tracer/cupti.h"
#include "tracer/cupti_abi.h"
#include "tracer/marks.h"
#include "tracer/recorder.h"

enum { NAMES = 4096, STREAMS = 4096, RECENT = 64, DEFAULT_STREAM = 7 /* CUPTI's id of handle 0 */ };

struct name { const char *p; uint32_t at; };
struct seen { uint64_t address; uint32_t correlation, operation; };

static struct {
	pthread_mutex_t lock;           /* buffers may complete in several threads */
	struct name name[NAMES];
	_Atomic uint64_t stream[STREAMS];
	struct seen recent[RECENT];     /* one cudaMalloc comes once per context of its device */
	unsigned at;
	uint64_t untimed;
	bool kernels, copies;           /* said that there are some */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

void vc_cupti_stream(uint32_t id, uint64_t handle)
{
	if (id < STREAMS)
		atomic_store(&g.stream[id], handle);
}

void vc_cupti_lost(uint64_t records)
{
	vc_recorder_lost(records);
}

static uint64_t handle_of(uint32_t id)
{
	uint64_t h = id < STREAMS ? atomic_load(&g.stream[id]) : 0;

	if (h || id == DEFAULT_STREAM || id == UINT32_MAX)
		return h;
	return 1ull << 63 | id; /* created before we looked: distinct, and no pointer */
}

/* CUPTI stamps with the wall clock. Registering another clock breaks kernel times in 12.6 to 13.0. */
static int64_t wall_minus_monotonic(void)
{
	struct timespec w;

	if (vc_clock_is_null())
		return 0;
	clock_gettime(CLOCK_REALTIME, &w);
	return (int64_t)w.tv_sec * 1000000000 + w.tv_nsec - (int64_t)vc_clock_ns();
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
	n->at = vc_marks_name(s, strlen(s));
	return n->at;
}

static void put(struct vc_record what)
{
	struct vc_record *r = vc_record_begin();
	bool *said = what.kind == VC_EV_KERNEL ? &g.kernels : what.kind == VC_EV_COPY ? &g.copies : NULL;

	if (!r)
		return;
	*r = what;
	vc_record_commit(r);
	if (said && !*said) {
		*said = true;
		vc_recorder_capability(said == &g.kernels ? VC_CAP_KERNELS : VC_CAP_COPIES,
				       VC_HOW_RECORDED);
	}
}

/* 0 = 0: the device buffer was full and no time could be taken. */
static bool is_timed(uint64_t start, uint64_t end)
{
	if (start || end)
		return true;
	g.untimed++;
	vc_recorder_lost(1);
	return false;
}

static void read_kernel(const struct vc_cupti_kernel *k, int64_t shift)
{
	if (is_timed(k->start, k->end))
		put((struct vc_record){ .kind = VC_EV_KERNEL, .time_ns = k->start - (uint64_t)shift,
			.size = k->end - k->start, .extra = k->correlation,
			.stream = handle_of(k->stream), .device = (uint16_t)k->device,
			.text = name_of(k->name) });
}

static void read_graph(const struct vc_cupti_graph *k, int64_t shift)
{
	if (is_timed(k->start, k->end))
		put((struct vc_record){ .kind = VC_EV_KERNEL, .time_ns = k->start - (uint64_t)shift,
			.size = k->end - k->start, .extra = k->correlation,
			.stream = handle_of(k->stream), .device = (uint16_t)k->device,
			.text = name_of("CUDA graph") });
}

static void read_copy(const struct vc_cupti_copy *k, int64_t shift)
{
	static const char *const names[] = { "memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
		"memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA", "memcpy DtoD",
		"memcpy HtoH", "memcpy PtoP" }; /* CUpti_ActivityMemcpyKind */

	if (is_timed(k->start, k->end))
		put((struct vc_record){ .kind = VC_EV_COPY, .time_ns = k->start - (uint64_t)shift,
			.size = k->end - k->start, .addr = k->bytes, .extra = k->correlation,
			.stream = handle_of(k->stream), .device = (uint16_t)k->device,
			.text = name_of(names[k->copy < sizeof(names) / sizeof(*names) ? k->copy : 0]) });
}

static void read_fill(const struct vc_cupti_fill *k, int64_t shift)
{
	if (is_timed(k->start, k->end))
		put((struct vc_record){ .kind = VC_EV_COPY, .time_ns = k->start - (uint64_t)shift,
			.size = k->end - k->start, .addr = k->bytes, .extra = k->correlation,
			.stream = handle_of(k->stream), .device = (uint16_t)k->device,
			.text = name_of("memset") });
}

static bool is_duplicate(const struct vc_cupti_memory *m)
{
	for (unsigned i = 0; i < RECENT; i++)
		if (g.recent[i].address == m->address && g.recent[i].correlation == m->correlation &&
		    g.recent[i].operation == m->operation && m->correlation)
			return true;
	g.recent[g.at++ % RECENT] = (struct seen){ m->address, m->correlation, m->operation };
	return false;
}

static void read_memory(const struct vc_cupti_memory *m, int64_t shift)
{
	const char *what = m->memory == VC_CUPTI_KIND_PINNED ? "pinned host memory" :
		m->memory == VC_CUPTI_KIND_MANAGED ? "managed memory" :
		m->memory == VC_CUPTI_KIND_DEVICE ? "device memory of other libraries" : NULL;

	if (!what || is_duplicate(m))
		return;
	put((struct vc_record){ .kind = m->operation == 1 ? VC_EV_OUTSIDE_ALLOC : VC_EV_OUTSIDE_FREE,
		.flags = VC_RECF_LATE, .time_ns = m->timestamp - (uint64_t)shift, .addr = m->address,
		.size = m->bytes, .extra = m->bytes, .device = (uint16_t)m->device,
		.text = name_of(what) });
}

void vc_cupti_read(vc_cupti_next *next, uint8_t *buffer, size_t valid)
{
	int64_t shift = wall_minus_monotonic();
	void *record = NULL;

	pthread_mutex_lock(&g.lock);
	while (valid && next(buffer, valid, &record) == 0)
		switch (*(const uint32_t *)record) {
		case VC_CUPTI_KERNEL:
			read_kernel(record, shift);
			break;
		case VC_CUPTI_GRAPH_TRACE:
			read_graph(record, shift);
			break;
		case VC_CUPTI_MEMCPY:
			read_copy(record, shift);
			break;
		case VC_CUPTI_MEMSET:
			read_fill(record, shift);
			break;
		case VC_CUPTI_MEMORY2:
			read_memory(record, shift);
			break;
		default:
			break;
		}
	pthread_mutex_unlock(&g.lock);
}
