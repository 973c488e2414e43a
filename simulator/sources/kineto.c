/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - traces of torch.profiler (Chrome JSON): the [memory] events of profile_memory=True,
 * kernels, copies, steps.
 *
 * What it has: every allocation and free of a GPU with its address, in whole 512 bytes (the rounded
 * size, not the request). What it lacks: segments, streams of blocks, the heap at the start. */

#include "common/io.h"
#include "common/json.h"
#include "common/map.h"
#include "common/vec.h"
#include "simulator/replay/source.h"

enum category { UNKNOWN, OTHER, MEMORY, KERNEL, COPY, ANNOTATION };

struct entry { /* one element of traceEvents */
	enum category category;
	char phase;
	uint64_t ts_ns, dur_ns;
	int64_t device_type, device, addr, bytes, allocated, reserved, stream, correlation;
	char name[1024]; /* up to its NUL; empty: not said yet */
};

struct record { struct vc_event ev; uint64_t order; };

struct device { int64_t baseline, reserved_min, reserved_max, allocated_max; bool seen; };

struct state {
	struct record *rec; size_t n, cap, at;
	struct vc_map where;     /* address and device -> id */
	struct device device[64];
	uint64_t base_ns, origin_ns, memory, no_addr, order;
	bool totals;
	size_t baseline_at;      /* next device whose earlier memory is to be announced */
};

static int probe(struct vc_input *in)
{
	static const char *const words[] = { "\"traceEvents\"", "\"schemaVersion\"",
					    "\"deviceProperties\"", "\"ph\"" };
	size_t n, i = 0, len;
	const uint8_t *p = vc_input_peek(in, 16384, &n, NULL);
	int bits = 0;

	while (p && i < n && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t'))
		i++;
	if (!p || i == n || (p[i] != '{' && p[i] != '['))
		return 0;
	for (size_t w = 0; w < 4; w++) {
		len = strlen(words[w]);
		for (size_t k = i; k + len <= n; k++) {
			if (p[k] == '"' && !memcmp(p + k, words[w], len)) {
				bits += 12;
				break;
			}
		}
	}
	return bits;
}

/* ---- one element of traceEvents ---- */

/* "1428625731896.179" microseconds in nanoseconds; a double would lose the last digits. */
static uint64_t nanoseconds(const struct vc_json *j)
{
	uint64_t ns = 0;
	const char *p = j->text;
	int digits = -1;

	if (!(j->real > 0) || j->real > 1e16 || strpbrk(p, "eE"))
		return j->real > 0 && j->real < 1e16 ? (uint64_t)(j->real * 1000) : 0;
	for (; *p && digits < 3; p++) {
		if (*p == '.') {
			digits = 0;
			continue;
		}
		ns = ns * 10 + (uint64_t)(*p - '0');
		digits += digits >= 0;
	}
	for (digits = digits < 0 ? 0 : digits; digits < 3; digits++)
		ns *= 10;
	return ns;
}

#define KEY(text, field) { text, sizeof(text) - 1, offsetof(struct entry, field) }

/* Where the number of this key goes; NULL: nowhere. */
static int64_t *place_of(struct entry *e, const struct vc_json *j)
{
	static const struct { const char *key; size_t len, offset; } keys[] = {
		KEY("Device Type", device_type), KEY("Device Id", device), KEY("device", device),
		KEY("Addr", addr), KEY("Bytes", bytes), KEY("bytes", bytes),
		KEY("Total Allocated", allocated), KEY("Total Reserved", reserved),
		KEY("stream", stream), KEY("correlation", correlation),
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].len == j->len && !memcmp(j->text, keys[i].key, j->len))
			return (int64_t *)(void *)((char *)e + keys[i].offset);
	return NULL;
}

static int read_args(struct vc_json *j, struct entry *e, struct vc_error *err)
{
	int64_t *to = NULL;
	int token;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY)
			to = place_of(e, j);
		else if (token == VC_J_NUMBER && to && j->is_integer)
			*to = j->integer;
		else
			VC_TRY(vc_json_skip(j, token, err));
	}
	return token < 0 ? token : 0;
}

static enum category category_of(const struct vc_json *j)
{
	static const struct { const char *name; size_t len; enum category category; } told[] = {
		{ "kernel", 6, KERNEL }, { "Kernel", 6, KERNEL }, { "gpu_memcpy", 10, COPY },
		{ "gpu_memset", 10, COPY }, { "Memcpy", 6, COPY }, { "Memset", 6, COPY },
		{ "user_annotation", 15, ANNOTATION },
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (told[i].len == j->len && !memcmp(j->text, told[i].name, j->len))
			return told[i].category;
	return OTHER;
}

enum field { NO_FIELD, NAME, PHASE, CATEGORY, TIME, DURATION, ARGS };

static enum field field_of(const struct vc_json *j)
{
	static const struct { char key[4]; uint8_t len; enum field field; } keys[] = {
		{ "ph", 2, PHASE }, { "ts", 2, TIME }, { "cat", 3, CATEGORY },
		{ "dur", 3, DURATION }, { "name", 4, NAME }, { "args", 4, ARGS },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].len == j->len && !memcmp(j->text, keys[i].key, j->len))
			return keys[i].field;
	return NO_FIELD;
}

static int set_field(struct vc_json *j, struct entry *e, enum field f, int token,
		     struct vc_error *err)
{
	bool text = token == VC_J_TEXT, number = token == VC_J_NUMBER;

	if (text && f == NAME) {
		size_t n = j->len < sizeof(e->name) - 1 ? j->len : sizeof(e->name) - 1;

		memcpy(e->name, j->text, n);
		e->name[n] = '\0';
	} else if (text && f == PHASE) {
		e->phase = j->text[0];
	} else if (text && f == CATEGORY) {
		e->category = category_of(j);
	} else if (number && f == TIME) {
		e->ts_ns = nanoseconds(j);
	} else if (number && f == DURATION) {
		e->dur_ns = nanoseconds(j);
	} else if (token == VC_J_OBJECT && f == ARGS &&
		   (e->category != OTHER || !e->name[0] || !strcmp(e->name, "[memory]"))) {
		return read_args(j, e, err); /* else nobody asks what is in them */
	} else {
		return vc_json_skip(j, token, err);
	}
	return VC_OK;
}

static int read_entry(struct vc_json *j, struct entry *e, struct vc_error *err)
{
	enum field f = NO_FIELD;
	int token;

	memset(e, 0, offsetof(struct entry, name) + 1);
	e->device = e->device_type = e->allocated = e->reserved = e->stream = -1;
	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY)
			f = field_of(j);
		else
			VC_TRY(set_field(j, e, f, token, err));
	}
	if (!strcmp(e->name, "[memory]"))
		e->category = MEMORY;
	return token < 0 ? token : 0;
}

/* ---- keeping what matters ---- */

static int keep(struct state *st, struct vc_event ev, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(st->rec, st->cap, st->n + 1), "the events of the profile", err);
	st->rec[st->n++] = (struct record){ ev, st->order++ };
	return 0;
}

/* GPU 0 of the process, not CPU: Device Type 1 is CUDA, 6 is HIP (c10/core/DeviceType.h). */
static int keep_memory(struct state *st, const struct entry *e, struct vc_error *err)
{
	struct vc_event ev = { .time_ns = e->ts_ns,
			      .kind = e->bytes < 0 ? VC_EV_FREE : VC_EV_ALLOC };

	if ((e->device_type != 1 && e->device_type != 6) || !e->bytes)
		return 0;
	if (e->device < 0 || e->device >= 64 || e->bytes == INT64_MIN)
		return vc_fail(err, VC_EFORMAT, "a [memory] event of device %lld with %lld bytes",
			       (long long)e->device, (long long)e->bytes);
	ev.device = (uint16_t)e->device;
	ev.size = (uint64_t)(e->bytes < 0 ? -e->bytes : e->bytes);
	if (ev.size > (uint64_t)1 << 50)
		return vc_fail(err, VC_EFORMAT,
			       "a [memory] event of %llu bytes is more than any device has",
			       (unsigned long long)ev.size);
	ev.addr = (uint64_t)e->addr;
	st->no_addr += !ev.addr;
	st->memory++;
	if (e->allocated >= 0 && e->reserved >= 0) {
		st->totals = true;
		/* Both totals ride along until the events are in order of time. */
		ev.id = (uint64_t)e->allocated;
		if (!st->device[ev.device].seen || e->reserved < st->device[ev.device].reserved_min)
			st->device[ev.device].reserved_min = e->reserved;
		if (e->reserved > st->device[ev.device].reserved_max)
			st->device[ev.device].reserved_max = e->reserved;
		if (e->allocated > st->device[ev.device].allocated_max)
			st->device[ev.device].allocated_max = e->allocated;
	}
	st->device[ev.device].seen = true;
	return keep(st, ev, err);
}

static int keep_work(struct state *st, struct vc_meta *m, const struct entry *e,
		     struct vc_error *err)
{
	bool copy = e->category == COPY;
	struct vc_event ev = {
		.time_ns = e->ts_ns, .size = e->dur_ns, .id = (uint64_t)e->correlation,
		.kind = copy ? VC_EV_COPY : VC_EV_KERNEL,
		.addr = copy && e->bytes > 0 ? (uint64_t)e->bytes : 0,
		.device = e->device >= 0 && e->device < 64 ? (uint16_t)e->device : 0,
		.label = vc_meta_string(m, e->name, strlen(e->name)),
	};

	/* CUPTI numbers the default stream 7. */
	ev.stream = e->stream < 0 || e->stream == 7 ? 0 : vc_meta_stream(m, (uint64_t)e->stream);
	m->how[copy ? VC_CAP_COPIES : VC_CAP_KERNELS] = VC_HOW_RECORDED;
	return keep(st, ev, err);
}

static int keep_annotation(struct state *st, struct vc_meta *m, const struct entry *e,
			   struct vc_error *err)
{
	struct vc_event ev = {
		.time_ns = e->ts_ns, .kind = VC_EV_MARK, .label = vc_meta_string(m, e->name,
				strlen(e->name)),
		.flags = strncmp(e->name, "ProfilerStep", 12) ? VC_MARK_BEGIN : VC_MARK_STEP,
		.device = UINT16_MAX,
	};
	ev.size = ev.flags == VC_MARK_STEP ? e->dur_ns : 0;
	int rc = keep(st, ev, err);

	m->how[VC_CAP_MARKS] = VC_HOW_RECORDED;
	if (rc || ev.flags == VC_MARK_STEP)
		return rc;
	ev.time_ns += e->dur_ns;
	ev.flags = VC_MARK_END;
	return keep(st, ev, err);
}

static int keep_entry(struct state *st, struct vc_meta *m, const struct entry *e,
		      struct vc_error *err)
{
	if (e->category == MEMORY)
		return keep_memory(st, e, err);
	if (e->phase != 'X')
		return 0;
	if (e->category == KERNEL || e->category == COPY)
		return keep_work(st, m, e, err);
	return e->category == ANNOTATION ? keep_annotation(st, m, e, err) : 0;
}

/* ---- the document ---- */

static int read_events(struct state *st, struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	struct entry e;
	int token;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_ARRAY_END) {
		if (token != VC_J_OBJECT) {
			VC_TRY(vc_json_skip(j, token, err));
			continue;
		}
		VC_TRY(read_entry(j, &e, err));
		VC_TRY(keep_entry(st, m, &e, err));
	}
	return token < 0 ? token : 0;
}

static void keep_key(const struct vc_json *j, char key[32])
{
	size_t n = j->len < 31 ? j->len : 31;

	memcpy(key, j->text, n);
	key[n] = '\0';
}

static int read_properties(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	struct vc_device_info d = { 0 }, *to;
	char key[32] = "";
	bool known = true; /* a device that [memory] events can be of */
	int token, rc = 0;

	while (!rc && (token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY) {
			keep_key(j, key);
		} else if (token == VC_J_TEXT && !strcmp(key, "name")) {
			vc_meta_set(&d.name, j->text);
		} else if (token == VC_J_NUMBER && j->is_integer && j->integer >= 0) {
			if (!strcmp(key, "id"))
				known = (d.index = (uint16_t)j->integer) == j->integer &&
					j->integer < 64;
			else if (!strcmp(key, "totalGlobalMem"))
				d.total = (uint64_t)j->integer;
			else if (!strcmp(key, "computeMajor"))
				d.cc_major = (int)(j->integer & 0xff);
			else if (!strcmp(key, "computeMinor"))
				d.cc_minor = (int)(j->integer & 0xff);
		} else {
			rc = vc_json_skip(j, token, err);
		}
	}
	to = !rc && token > 0 && known ? vc_meta_device(m, d.index) : NULL;
	if (to) {
		free(to->name);
		*to = d;
	} else {
		free(d.name);
	}
	return rc ? rc : token < 0 ? token : 0;
}

static int read_distributed(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	bool rank = false;
	int token;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY)
			rank = !strcmp(j->text, "rank");
		else if (token == VC_J_NUMBER && rank && j->is_integer)
			m->rank = j->integer;
		else
			VC_TRY(vc_json_skip(j, token, err));
	}
	return token < 0 ? token : 0;
}

static int read_top(struct state *st, struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	char key[32] = "";
	int token;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY) {
			keep_key(j, key);
		} else if (token == VC_J_ARRAY && !strcmp(key, "traceEvents")) {
			VC_TRY(read_events(st, m, j, err));
		} else if (token == VC_J_ARRAY && !strcmp(key, "deviceProperties")) {
			while ((token = vc_json_next(j, err)) > 0 && token != VC_J_ARRAY_END)
				VC_TRY(token == VC_J_OBJECT ? read_properties(m, j, err) :
				       vc_json_skip(j, token, err));
			VC_TRY(token);
		} else if (token == VC_J_OBJECT && !strcmp(key, "distributedInfo")) {
			VC_TRY(read_distributed(m, j, err));
		} else if (token == VC_J_NUMBER && !strcmp(key, "baseTimeNanoseconds") &&
			   j->is_integer && j->integer > 0) {
			st->base_ns = (uint64_t)j->integer;
		} else {
			VC_TRY(vc_json_skip(j, token, err));
		}
	}
	return token < 0 ? token : 0;
}

VC_COMPARE(compare, struct record,
	   VC_THEN(VC_ORDER(x->ev.time_ns, y->ev.time_ns), VC_ORDER(x->order, y->order)))

/* What was allocated before the first event of a device: the first total, undone by that event. */
static void find_baselines(struct state *st)
{
	bool done[64] = { false };

	for (size_t i = 0; i < st->n; i++) {
		const struct vc_event *e = &st->rec[i].ev;
		int64_t before;

		if ((e->kind != VC_EV_ALLOC && e->kind != VC_EV_FREE) || done[e->device])
			continue;
		done[e->device] = true;
		before = (int64_t)e->id +
			 (e->kind == VC_EV_FREE ? (int64_t)e->size : -(int64_t)e->size);
		st->device[e->device].baseline = st->totals && before > 0 ? before : 0;
	}
}

static void describe(struct state *st, struct vc_meta *m)
{
	m->complete = true;
	if (!st->memory) {
		vc_meta_note(m, "the profile has no GPU [memory] events; record it with "
			     "profile_memory=True");
		return;
	}
	m->how[VC_CAP_REQUESTS] = VC_HOW_PARTIAL;
	m->how[VC_CAP_TIMES] = VC_HOW_RECORDED;
	vc_meta_note(m, "sizes are those of blocks (whole 512 bytes), not of requests; streams and "
		     "segments are not in a profile, so placement cannot be checked");
	if (st->no_addr)
		vc_meta_note(m, "%llu events have no address (an old profile): frees were "
			     "matched by size", (unsigned long long)st->no_addr);
	for (size_t d = 0; d < 64; d++) {
		struct vc_device_info *to = st->device[d].seen && st->totals ?
						    vc_meta_device(m, (uint16_t)d) : NULL;

		if (to) {
			to->reserved = (uint64_t)st->device[d].reserved_max;
			to->allocated = (uint64_t)st->device[d].allocated_max;
		}
		if (st->device[d].baseline)
			vc_meta_note(m, "device %zu: %lld bytes were allocated before the profile "
				     "began; they stand as one block",
				     d, (long long)st->device[d].baseline);
	}
}

static int open_kineto(struct vc_source *src, struct vc_error *err)
{
	struct state *st = src->state;
	struct vc_json j;
	int rc = vc_json_open(&j, src->input, err), token;

	if (rc)
		return rc;
	token = vc_json_next(&j, err);
	if (token == VC_J_OBJECT)
		rc = read_top(st, src->meta, &j, err);
	else if (token == VC_J_ARRAY)
		rc = read_events(st, src->meta, &j, err);
	else
		rc = token < 0 ? token : vc_fail(err, VC_EFORMAT, "%s is no profile",
						 vc_input_name(src->input));
	vc_json_close(&j);
	if (rc)
		return rc;
	if (st->n)
		vc_sort(st->rec, st->n, sizeof(*st->rec), compare);
	find_baselines(st);
	st->origin_ns = st->n && st->rec[0].ev.time_ns ? st->rec[0].ev.time_ns - 1 : 0;
	src->meta->start_unix_ns = st->base_ns + st->origin_ns;
	describe(st, src->meta);
	return 0;
}

/* ---- events ---- */

static uint64_t key_of(const struct vc_event *e)
{
	/* Without an address a free takes the newest block of its size. */
	return (e->addr ? e->addr : e->size | (uint64_t)1 << 62) ^ (uint64_t)e->device << 56;
}

static int translate(struct state *st, struct vc_meta *m, struct vc_event *ev, struct vc_error *err)
{
	uint64_t key = key_of(ev), *live = vc_map_get(&st->where, key);

	if (ev->kind == VC_EV_ALLOC) {
		ev->id = ++m->max_id;
		m->double_allocs += live != NULL && ev->addr;
		ev->addr = 0; /* evidence of nothing without the segments around it */
		return vc_map_put(&st->where, key, ev->id) ?
			       0 : vc_nomem(err, "the table of addresses");
	}
	ev->id = live ? vc_map_take(&st->where, key) : 0;
	ev->addr = 0;
	m->unmatched_frees += !live;
	return 0;
}

/* The device marks belong to: the first one with memory events. */
static uint16_t main_device(const struct state *st)
{
	for (uint16_t d = 0; d < 64; d++)
		if (st->device[d].seen)
			return d;
	return 0;
}

static bool baseline(struct state *st, struct vc_meta *m, struct vc_event *ev)
{
	static const char label[] = "allocated before the profile";

	for (; st->baseline_at < 64; st->baseline_at++) {
		const struct device *d = &st->device[st->baseline_at];

		if (!d->baseline)
			continue;
		*ev = (struct vc_event){.kind = VC_EV_ALLOC,
					.id = ++m->max_id, .size = (uint64_t)d->baseline,
					.label = vc_meta_string(m, label, sizeof(label) - 1),
					.device = (uint16_t)st->baseline_at++ };
		return true;
	}
	return false;
}

static long next(struct vc_source *src, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct state *st = src->state;
	size_t n = 0;
	int rc;

	while (n < cap && baseline(st, src->meta, &ev[n]))
		n++;
	for (; n < cap && st->at < st->n; n++) {
		ev[n] = st->rec[st->at++].ev;
		ev[n].time_ns = ev[n].time_ns > st->origin_ns ? ev[n].time_ns - st->origin_ns : 0;
		if (ev[n].kind == VC_EV_MARK)
			ev[n].device = main_device(st);
		if (ev[n].kind != VC_EV_ALLOC && ev[n].kind != VC_EV_FREE)
			continue;
		rc = translate(st, src->meta, &ev[n], err);
		if (rc)
			return rc;
	}
	return (long)n;
}

static void close_kineto(struct vc_source *src)
{
	struct state *st = src->state;

	free(st->rec);
	vc_map_fini(&st->where);
}

const struct vc_source_type vc_source_kineto = {
	.name = "kineto", .summary = "torch.profiler traces (Chrome JSON) with profile_memory=True",
	.state_size = sizeof(struct state), .probe = probe, .open = open_kineto, .next = next,
	.whole = true, .close = close_kineto,
};
