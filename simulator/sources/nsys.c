/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.c - the SQLite export of a report of Nsight Systems (nsys export --type sqlite), recorded
 * with --cuda-memory-usage=true: what the driver gave out, and which calls it refused.
 *
 * Inside PyTorch these are segments of its allocator, never blocks; so they are evidence, and no
 * run can be replayed from them. Kinds of memory are those of CUPTI less one
 * (CUpti_ActivityMemoryKind, cupti_activity.h): nsys's table ENUM_CUDA_MEM_KIND names them. */

#include "common/io.h"
#include "common/map.h"
#include "common/vec.h"
#include "simulator/replay/source.h"
#include "simulator/sources/sqlite_table.h"

enum { PINNED = 1, DEVICE = 2, ARRAY = 3, MANAGED = 4, STATIC = 5 }; /* memKind */
enum { OUT_OF_MEMORY = 2, PROCESSES = 250 }; /* cudaErrorMemoryAllocation */

struct row {
	uint64_t time, addr, bytes, pool, pool_size, pool_used;
	uint32_t order;
	uint16_t device;
	uint8_t process, kind;
	bool freed, refused;
};

struct state {
	struct row *row; size_t n, cap, next;
	int64_t process[PROCESSES]; size_t processes;
	struct vc_map live, asks; /* address -> bytes; ids of names of calls that ask for memory */
};

static int probe(struct vc_input *in)
{
	size_t n;
	const uint8_t *p = vc_input_peek(in, sizeof(VC_SQLITE_MAGIC), &n, NULL);

	return p && n >= sizeof(VC_SQLITE_MAGIC) && !memcmp(p, VC_SQLITE_MAGIC, n < 16 ? n : 16) ?
	       120 : 0;
}

static uint64_t number(const struct vc_sqlite_value *v)
{
	return v->kind == VC_SQLITE_INT ? (uint64_t)v->v : 0;
}

static uint8_t process_of(struct state *st, int64_t id)
{
	size_t i = 0;

	while (i < st->processes && st->process[i] != id)
		i++;
	if (i == st->processes && i < PROCESSES)
		st->process[st->processes++] = id;
	return (uint8_t)i;
}

static int add(struct state *st, struct row row, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(st->row, st->cap, st->n + 1), "memory events", err);
	row.order = (uint32_t)st->n;
	st->row[st->n++] = row;
	return VC_OK;
}

static int on_memory(void *arg, int64_t id, const struct vc_sqlite_value *v, struct vc_error *err)
{
	struct state *st = ((struct vc_source *)arg)->state;

	if (number(&v[2]) > UINT16_MAX)
		return vc_fail(err, VC_EFORMAT, "a memory event of device %" PRIu64, number(&v[2]));
	return add(st, (struct row){
		.time = number(&v[0]), .addr = number(&v[1]), .device = (uint16_t)number(&v[2]),
		.bytes = number(&v[3]), .kind = (uint8_t)number(&v[4]), .freed = number(&v[5]) == 1,
		.process = process_of(st, v[6].v), .pool = number(&v[7]),
		.pool_size = number(&v[8]), .pool_used = number(&v[9]),
	}, err);
}

/* Names of the calls that ask for memory of the device; those of the host are none of ours. */
static int on_string(void *arg, int64_t id, const struct vc_sqlite_value *v, struct vc_error *err)
{
	static const char *const asks[] = { "cudaMalloc", "cuMemAlloc", "cuMemCreate" };
	struct state *st = ((struct vc_source *)arg)->state;

	if (v[0].kind != VC_SQLITE_TEXT)
		return VC_OK;
	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++) {
		size_t n = strlen(asks[i]);
		bool host = v[0].len >= n + 4 && !memcmp(v[0].text + n, "Host", 4);

		if (v[0].len >= n && !memcmp(v[0].text, asks[i], n) && !host)
			VC_HAVE(vc_map_put(&st->asks, (uint64_t)id, 1), "names of calls", err);
	}
	return VC_OK;
}

static int on_call(void *arg, int64_t id, const struct vc_sqlite_value *v, struct vc_error *err)
{
	struct state *st = ((struct vc_source *)arg)->state;

	if (number(&v[0]) != OUT_OF_MEMORY || !vc_map_get(&st->asks, number(&v[1])))
		return VC_OK;
	return add(st, (struct row){ .time = number(&v[2]), .refused = true }, err);
}

static int on_gpu(void *arg, int64_t id, const struct vc_sqlite_value *v, struct vc_error *err)
{
	struct vc_meta *m = ((struct vc_source *)arg)->meta;
	uint64_t index = v[2].kind == VC_SQLITE_INT ? number(&v[2]) : number(&v[3]);

	if (index > UINT16_MAX || v[0].kind != VC_SQLITE_TEXT)
		return VC_OK;
	struct vc_device_info *d = vc_meta_device(m, (uint16_t)index);
	VC_HAVE(d, "a GPU", err);
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)(v[0].len < 127 ? v[0].len : 127), v[0].text);
	vc_meta_set(&d->name, name);
	d->total = number(&v[1]);
	d->sms = number(&v[4]) < 4096 ? (int)number(&v[4]) : 0;
	return VC_OK;
}

VC_COMPARE(by_time, struct row, VC_THEN(VC_ORDER(x->time, y->time), VC_ORDER(x->order, y->order)))

static int read_tables(struct vc_source *s, const struct vc_sqlite *db, struct vc_error *err)
{
	static const char *const memory[] = {
		"start", "address", "deviceId", "bytes", "memKind", "memoryOperationType",
		"globalPid", "localMemoryPoolAddress", "localMemoryPoolSize",
		"localMemoryPoolUtilizedSize" };
	static const char *const strings[] = { "value" };
	static const char *const calls[] = { "returnValue", "nameId", "start" };
	static const char *const gpus[] = { "name", "totalMemory", "cuDevice", "id", "smCount" };
	int r = vc_sqlite_each(db, "CUDA_GPU_MEMORY_USAGE_EVENTS", memory, 10, 6, on_memory, s,
			       err);

	if (!r)
		return vc_fail(err, VC_EFORMAT, "an SQLite database without the table "
			       "CUDA_GPU_MEMORY_USAGE_EVENTS; record with nsys profile "
			       "--cuda-memory-usage=true, and export with nsys export --type "
			       "sqlite");
	if (r > 0)
		r = vc_sqlite_each(db, "StringIds", strings, 1, 1, on_string, s, err);
	if (r >= 0)
		r = vc_sqlite_each(db, "CUPTI_ACTIVITY_KIND_RUNTIME", calls, 3, 3, on_call, s, err);
	if (r >= 0)
		r = vc_sqlite_each(db, "TARGET_INFO_GPU", gpus, 5, 2, on_gpu, s, err);
	return r < 0 ? r : VC_OK;
}

static int open_report(struct vc_source *s, struct vc_error *err)
{
	struct state *st = s->state;
	struct vc_sqlite db;
	size_t want = 1 << 20, got;
	const uint8_t *p;

	while ((p = vc_input_peek(s->input, want, &got, err)) && got >= want)
		want *= 2;
	if (!p)
		return err->status ? (int)err->status : VC_EIO;
	if (vc_input_truncated(s->input))
		return vc_fail(err, VC_EFORMAT, "the file is cut off");
	VC_TRY(vc_sqlite_open(&db, p, got, err));
	VC_TRY(read_tables(s, &db, err));
	vc_input_skip(s->input, got);
	if (st->n)
		vc_sort(st->row, st->n, sizeof(*st->row), by_time);
	s->meta->how[VC_CAP_SEGMENTS] = VC_HOW_RECORDED;
	vc_meta_set(&s->meta->producer, "Nsight Systems");
	vc_meta_note(s->meta, "a report of Nsight Systems holds what the driver gave out. Inside "
		     "PyTorch these are segments of its allocator, not blocks, so there is no run "
		     "to replay");
	if (st->processes > 1)
		vc_meta_note(s->meta, "%zu processes are in it; on one device they are added up",
			     st->processes);
	return VC_OK;
}

/* ---- events ---- */

/* Addresses are those of a process: two of them may have the same. */
static uint64_t key_of(const struct row *r)
{
	return (r->addr & ((UINT64_C(1) << 56) - 1)) | (uint64_t)r->process << 56;
}

static void outside(struct vc_source *s, const struct row *r, struct vc_event *ev)
{
	const char *whose = r->kind == PINNED  ? VC_LABEL_PINNED :
			    r->kind == STATIC  ? "variables of modules" :
			    r->kind == ARRAY   ? "CUDA arrays" :
			    r->kind == MANAGED ? VC_LABEL_MANAGED : "memory of another kind";

	ev->kind = r->freed ? VC_EV_OUTSIDE_FREE : VC_EV_OUTSIDE_ALLOC;
	ev->label = vc_meta_string(s->meta, whose, strlen(whose));
}

/* 1: an event, 0: a free of what was there before. */
static int event_of(struct vc_source *s, const struct row *r, struct vc_event *ev,
		    struct vc_error *err)
{
	struct state *st = s->state;
	uint64_t known;

	*ev = (struct vc_event){ .time_ns = r->time - st->row[0].time, .device = r->device,
				 .addr = r->addr, .size = r->bytes };
	if (r->refused) {
		ev->kind = VC_EV_OOM;
		return 1;
	}
	if (r->pool) { /* cudaMallocAsync: the pool holds more than it has given out */
		ev->kind = VC_EV_DRIVER_POOL;
		ev->addr = r->pool;
		ev->size = r->pool_size;
		ev->id = r->pool_used;
		s->meta->how[VC_CAP_DRIVER_POOLS] = VC_HOW_RECORDED;
		return 1;
	}
	if (r->freed) {
		known = vc_map_take(&st->live, key_of(r));
		if (!known) {
			s->meta->unmatched_frees++;
			return 0;
		}
		ev->size = known;
	} else {
		s->meta->double_allocs += vc_map_get(&st->live, key_of(r)) != NULL;
		if (!vc_map_put(&st->live, key_of(r), r->bytes ? r->bytes : 1))
			return vc_nomem(err, "addresses");
	}
	if (r->kind != DEVICE)
		outside(s, r, ev);
	else
		ev->kind = r->freed ? VC_EV_SEGMENT_FREE : VC_EV_SEGMENT_ALLOC;
	return 1;
}

static long next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct state *st = s->state;
	size_t n = 0;

	for (; n < cap && st->next < st->n; st->next++) {
		int r = event_of(s, &st->row[st->next], &ev[n], err);

		VC_TRY(r);
		if (r)
			VC_HAVE(vc_meta_device(s->meta, ev[n].device), "a device", err);
		n += (size_t)r;
	}
	if (!n && !s->meta->complete && s->meta->unmatched_frees)
		vc_meta_note(s->meta, "%" PRIu64 " frees are of memory from before the report "
			     "began", s->meta->unmatched_frees);
	s->meta->complete |= !n;
	return vc_meta_ok(s->meta) ? (long)n : vc_nomem(err, "the report's names");
}

static void close_report(struct vc_source *s)
{
	struct state *st = s->state;

	free(st->row);
	vc_map_fini(&st->live);
	vc_map_fini(&st->asks);
}

const struct vc_source_type vc_source_nsys = {
	.name = "nsys", .summary = "reports of Nsight Systems, exported as SQLite",
	.state_size = sizeof(struct state), .probe = probe, .open = open_report, .next = next,
	.close = close_report,
};
