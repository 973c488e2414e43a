/* SPDX-License-Identifier: Apache-2.0 */
/* torch_snapshot.c - what torch.cuda.memory._dump_snapshot writes: the layouts of torch 2.0 on.
 *
 * Per device: the heap before the first event (the final one, played backwards), the events with
 * addresses turned into ids, the final heap. */

#include "common/io.h"
#include "common/map.h"
#include "common/vec.h"
#include "simulator/replay/source.h"
#include "simulator/sources/snapshot_rewind.h"
#include "simulator/sources/snapshot_tree.h"

enum phase { START_HEAP, EVENTS, FINAL_HEAP, DEVICE_DONE };

#define WAITING ((uint64_t)1 << 63) /* on an id in the map: freed, not completed yet */

struct state {
	struct snapshot s;
	struct snapshot_heap heap;   /* being emitted */
	struct vc_map at;            /* address -> id of the live block there, maybe | WAITING */
	uint64_t origin_us;          /* time 0 of the trace */
	uint32_t device, devices;
	enum phase phase;
	size_t segment,
		block; /* position in heap; block SIZE_MAX: the segment itself comes next */
	size_t at_event, at_note;
	bool opened;                 /* heap of this phase is ready */
	bool freed_segments;         /* a burst of segment_free is under way: an empty_cache? */
	uint64_t unknown;
	struct vc_event few[3]; int few_at, few_n; /* made, not handed out yet */
};

/* A pickle of protocol 2 on begins with PROTO, older ones with the mark or the empty container. */
static int probe(struct vc_input *in)
{
	static const char *const words[] = { "segments", "device_traces", "segment_type",
					    "total_size" };
	size_t n, len;
	const uint8_t *p = vc_input_peek(in, 4096, &n, NULL);
	int bits = 0;
	bool json;

	if (!p || n < 2)
		return 0;
	json = p[0] == '{' || p[0] == '['; /* which a pickle never begins with */
	if (p[0] == 0x80 && p[1] <= 9)
		bits = 16;
	else if (json || (p[0] == '(' && (p[1] == 'd' || p[1] == 'l')) || p[0] == '}' ||
		 p[0] == ']')
		bits = 8;
	for (size_t w = 0; bits && w < sizeof(words) / sizeof(words[0]); w++) {
		len = strlen(words[w]);
		for (size_t i = 0; i + len <= n; i++) {
			if (p[i] == (uint8_t)words[w][0] && !memcmp(p + i, words[w], len)) {
				bits += 16;
				break;
			}
		}
	}
	return json && bits == 8 ? 0 : bits;
}

/* ---- what is known about the recording ---- */

static const char *version_of(const struct snapshot *s)
{
	if (s->host_segments)
		return "2.15";
	if (s->pool_ids)
		return "2.13";
	if (s->forward_frames)
		return "2.12";
	if (s->user_metadata)
		return "2.11";
	if (s->settings.reuse)
		return "2.9";
	if (s->compile_context)
		return "2.8";
	if (s->annotations)
		return "2.6";
	if (s->settings.known)
		return "2.4";
	if (s->times)
		return "2.2";
	return s->history ? "2.0" : "2.1";
}

/* Settings may have been made without the settings string; then it is written from the values. */
static void conf_from_values(const struct snapshot_settings *s, struct vc_meta *m)
{
	char text[128] = "";

	if (s->expandable)
		snprintf(text, sizeof(text), "expandable_segments:True");
	if (s->max_split < UINT64_MAX)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%smax_split_size_mb:%llu", *text ? "," : "",
			 (unsigned long long)(s->max_split >> 20));
	vc_meta_set(&m->conf, text);
}

static void describe(struct state *st, struct vc_meta *m)
{
	const struct snapshot *s = &st->s;
	bool events = s->actions & (1u << SNAP_ALLOC | 1u << SNAP_FREE_REQUESTED |
				    1u << SNAP_FREE_COMPLETED);
	bool evidence = s->actions & (1u << SNAP_SEGMENT_ALLOC | 1u << SNAP_SEGMENT_FREE |
				      1u << SNAP_SEGMENT_MAP | 1u << SNAP_SEGMENT_UNMAP);
	bool addresses = s->segments > 0;

	if (!s->list_form) {
		vc_meta_set(&m->torch, version_of(s));
		m->torch_guessed = true;
	}
	if (s->settings.known) {
		m->how[VC_CAP_SETTINGS] = VC_HOW_RECORDED;
		if (s->settings.conf && *s->settings.conf)
			vc_meta_set(&m->conf, s->settings.conf);
		else
			conf_from_values(&s->settings, m);
	}
	m->complete = true;
	m->how[VC_CAP_FINAL_HEAP] = addresses ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	if (addresses)
		m->how[VC_CAP_START_HEAP] = events ? VC_HOW_DERIVED : VC_HOW_RECORDED;
	if (s->segment_pools)
		m->how[VC_CAP_POOLS] = VC_HOW_PARTIAL;
	if (events || evidence)
		m->how[VC_CAP_SEGMENTS] =
			VC_HOW_RECORDED; /* none seen in a history of requests: there were none */
	if (!events)
		return;
	m->how[VC_CAP_REQUESTS] = m->how[VC_CAP_ADDRESSES] = VC_HOW_RECORDED;
	m->how[VC_CAP_STREAMS] = m->how[VC_CAP_COMPLETION] = VC_HOW_RECORDED;
	m->how[VC_CAP_TIMES] = s->times ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	m->how[VC_CAP_STACKS] = s->stacks ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	m->how[VC_CAP_MARKS] = s->notes || s->user_metadata ? VC_HOW_RECORDED : VC_HOW_ABSENT;
}

VC_COMPARE(compare_notes, struct snapshot_note,
	   VC_THEN(VC_ORDER(x->time_us, y->time_us), VC_ORDER(x->order, y->order)))

static void find_origin(struct state *st, struct vc_meta *m)
{
	const struct snapshot *s = &st->s;
	uint64_t first = s->first_us ? s->first_us : UINT64_MAX;

	for (size_t i = 0; i < s->notes; i++)
		if (s->note[i].time_us && s->note[i].time_us < first)
			first = s->note[i].time_us;
	if (first == UINT64_MAX)
		return;
	st->origin_us = first - 1; /* 0 means unknown, so the first event is at 1 us */
	m->start_unix_ns = st->origin_us < UINT64_MAX / 1000 ? st->origin_us * 1000 : 0;
}

/* A snapshot does not say what it was taken on, but its stacks may: the allocators of other devices
 * than CUDA's have names of their own. Cards of that name are not in the table; whose they are is
 * what counts (vc_card_kind). */
static void name_devices(const struct state *st, struct vc_meta *m)
{
	static const struct { const char *word, *name; } told[] = {
		{ "HIPCachingAllocator", "AMD (ROCm)" }, { "c10::hip::", "AMD (ROCm)" },
		{ "XPUCachingAllocator", "Intel (XPU)" }, { "c10::xpu::", "Intel (XPU)" },
		{ "NPUCachingAllocator", "Ascend (NPU)" }, { "torch_npu/", "Ascend (NPU)" },
	};
	const char *name = NULL;
	unsigned minor;

	for (size_t i = 1; i < m->strings && !name; i++)
		for (size_t k = 0; k < sizeof(told) / sizeof(*told); k++)
			if (strstr(m->string[i], told[k].word))
				name = told[k].name;
	for (uint32_t i = 0; name && i < st->devices; i++) {
		struct vc_device_info *d = vc_meta_device(m, (uint16_t)i);

		if (d)
			vc_meta_set(&d->name, name);
	}
	/* XPU has a history since 2.11 (recordHistory in XPUCachingAllocator.h of the wheels). */
	if (name && strstr(name, "XPU") && m->torch_guessed && m->torch &&
	    sscanf(m->torch, "2.%u", &minor) == 1 && minor < 11)
		vc_meta_set(&m->torch, "2.11");
}

static int open_snapshot(struct vc_source *src, struct vc_error *err)
{
	struct state *st = src->state;
	struct snapshot *s = &st->s;
	int rc = snapshot_read(s, src->input, src->meta, err);

	if (rc)
		return vc_wrap(err, "%s", vc_input_name(src->input));
	st->devices = (uint32_t)s->lists;
	for (size_t i = 0; i < s->segments; i++)
		if (s->segment[i].device >= st->devices)
			st->devices = s->segment[i].device + 1u;
	src->expected = s->n + 2 * s->blocks + 2 * s->segments + s->notes;
	describe(st, src->meta);
	find_origin(st, src->meta);
	name_devices(st, src->meta);
	if (s->notes)
		vc_sort(s->note, s->notes, sizeof(*s->note), compare_notes);
	if (s->overflowed)
		vc_meta_note(src->meta,
			     "the history's ring buffer overflowed: events before the first one "
			     "are lost, the heap there is rebuilt backwards from the final one");
	return 0;
}

/* ---- heaps as events ---- */

static int open_heap(struct state *st, struct vc_meta *m, struct vc_error *err)
{
	int rc;

	snapshot_heap_fini(&st->heap);
	st->segment = 0;
	st->block = SIZE_MAX;
	st->opened = true;
	if (st->phase == FINAL_HEAP)
		return snapshot_final_heap(&st->s, (uint16_t)st->device, &st->heap, err);
	rc = snapshot_start_heap(&st->s, (uint16_t)st->device, &st->heap, err);
	if (rc || !st->heap.contradictions)
		return rc;
	m->how[VC_CAP_START_HEAP] = VC_HOW_PARTIAL;
	vc_meta_note(m, "device %u: %llu events contradict the final heap, so the heap at the "
		     "first event is not exact", st->device,
		     (unsigned long long)st->heap.contradictions);
	return 0;
}

static int block_id(struct state *st, struct vc_meta *m, const struct snapshot_block *b,
		    uint64_t *id, struct vc_error *err)
{
	uint64_t *known = vc_map_get(&st->at, b->addr);

	if (known) {
		*id = *known & ~WAITING;
		return 0;
	}
	*id = ++m->max_id;
	if (!vc_map_put(&st->at, b->addr, *id | (b->state == SNAP_PENDING ? WAITING : 0)))
		return vc_nomem(err, "the table of addresses");
	return 0;
}

/* One event of the heap; 0: the heap is at its end. */
static int heap_event(struct state *st, struct vc_meta *m, struct vc_event *ev,
		      struct vc_error *err)
{
	const struct snapshot_segment *seg = &st->heap.segment[st->segment];
	const struct snapshot_block *b;
	uint8_t final = st->phase == FINAL_HEAP ? VC_EVF_FINAL : 0;
	uint64_t id = 0;

	if (st->segment == st->heap.segments)
		return 0;
	if (st->block == SIZE_MAX) {
		*ev = (struct vc_event){
			.kind = VC_EV_HEAP_SEGMENT, .addr = seg->addr, .size = seg->size,
			.id = seg->pool, .stream = seg->stream, .site = seg->site,
			.device = (uint16_t)st->device,
			.flags = (uint8_t)(final | (seg->small ? VC_EVF_SMALL : 0) |
					   (seg->expandable ? VC_EVF_EXPANDABLE : 0)),
		};
		st->block = 0;
	} else {
		b = &st->heap.block[seg->block + st->block++];
		VC_TRY(b->state == SNAP_INACTIVE ? 0 : block_id(st, m, b, &id, err));
		*ev = (struct vc_event){
			.kind = VC_EV_HEAP_BLOCK, .addr = b->addr, .id = id, .stream = seg->stream,
			.size = b->requested == UINT64_MAX ?
					b->state == SNAP_INACTIVE ? 0 : b->size :
					b->requested,
			.site = b->site, .device = (uint16_t)st->device,
			.flags = (uint8_t)(final | (b->state == SNAP_LIVE ? VC_EVF_LIVE : 0) |
					   (b->state == SNAP_PENDING ? VC_EVF_PENDING : 0)),
		};
	}
	if (st->block >= seg->blocks) {
		st->segment++;
		st->block = SIZE_MAX;
	}
	return 1;
}

/* ---- events ---- */

static uint64_t time_of(const struct state *st, uint64_t us)
{
	return us > st->origin_us && us - st->origin_us < UINT64_MAX / 1000 ?
		       (us - st->origin_us) * 1000 : 0;
}

/* The annotation due before `us` on this device, if any. Those without a device belong to the
 * first. */
static bool note_event(struct state *st, uint64_t us, struct vc_event *ev)
{
	const struct snapshot *s = &st->s;

	for (; st->at_note < s->notes && s->note[st->at_note].time_us <= us; st->at_note++) {
		const struct snapshot_note *n = &s->note[st->at_note];

		if ((n->device == UINT16_MAX ? 0 : n->device) != st->device)
			continue;
		st->at_note++;
		*ev = (struct vc_event){
			.kind = VC_EV_MARK, .flags = n->end ? VC_MARK_END : VC_MARK_BEGIN,
			.label = n->name, .time_ns = time_of(st, n->time_us),
			.device = (uint16_t)st->device,
		};
		return true;
	}
	return false;
}

/* record_stream itself is not in a snapshot: that a free waits is all that shows. The replayer
 * learns it from a use on some other stream. */
static int deferred(struct vc_meta *m, struct vc_event *ev)
{
	ev[1] = ev[0];
	ev[0].kind = VC_EV_USE;
	ev[0].size = ev[0].addr = 0;
	ev[0].site = ev[0].label = 0;
	ev[0].stream = m->streams > 1 ? ev[1].stream == 0 : vc_meta_stream(m, 1);
	ev[1].flags |= VC_EVF_PENDING;
	m->how[VC_CAP_USES] = VC_HOW_DERIVED;
	return 2;
}

static int free_event(struct state *st, struct vc_meta *m, const struct vc_event *raw,
		      struct vc_event *ev, bool last)
{
	uint64_t *known = vc_map_get(&st->at, raw->addr);
	bool done = raw->kind == SNAP_FREE_COMPLETED;
	bool pair =
		!done && !last && raw[1].kind == SNAP_FREE_COMPLETED && raw[1].addr == raw->addr;

	ev->kind = done ? VC_EV_FREE_DONE : VC_EV_FREE;
	if (!known || !(*known & WAITING) != !done) {
		m->unmatched_frees++;
		ev->id = known ? *known & ~WAITING : 0;
		if (known && done)
			vc_map_take(&st->at, raw->addr);
		return pair ? -1 : 1;
	}
	ev->id = *known & ~WAITING;
	if (pair || done)
		vc_map_take(&st->at, raw->addr);
	else
		*known |= WAITING;
	return pair ? -1 : done ? 1 : deferred(m, ev);
}

/* A burst of segment_free is an empty_cache when no request follows that it could have served: one
 * that grew the heap, or one that failed all the same. */
static bool is_trim(const struct state *st, const struct vc_event *raw, bool last)
{
	if (!st->freed_segments || last)
		return st->freed_segments;
	if (raw->kind == SNAP_SEGMENT_FREE || raw->kind == SNAP_SEGMENT_UNMAP ||
	    raw->kind == SNAP_FREE_COMPLETED)
		return false;
	if (raw->kind != SNAP_SEGMENT_ALLOC && raw->kind != SNAP_SEGMENT_MAP &&
	    raw->kind != SNAP_OOM)
		return true;
	return raw->site && raw[-1].site && raw->site != raw[-1].site;
}

/* What one raw event becomes: up to 3 events in ev. Returns their number; *eaten raw events are
 * used. */
static int translate(struct state *st, struct vc_meta *m, const struct vc_event *raw,
		     struct vc_event *ev, bool last, size_t *eaten)
{
	static const uint8_t kind[] = {
		[SNAP_ALLOC] = VC_EV_ALLOC, [SNAP_SEGMENT_ALLOC] = VC_EV_SEGMENT_ALLOC,
		[SNAP_SEGMENT_FREE] = VC_EV_SEGMENT_FREE, [SNAP_SEGMENT_MAP] = VC_EV_SEGMENT_MAP,
		[SNAP_SEGMENT_UNMAP] = VC_EV_SEGMENT_UNMAP, [SNAP_OOM] = VC_EV_OOM,
		[SNAP_OTHER] = VC_EV_NONE,
	};
	int n;

	*eaten = 1;
	*ev = *raw;
	ev->time_ns = time_of(st, raw->time_ns);
	ev->flags = 0;
	if (raw->kind == SNAP_FREE_REQUESTED || raw->kind == SNAP_FREE_COMPLETED) {
		n = free_event(st, m, raw, ev, last);
		*eaten = n < 0 ? 2 : 1;
		return n < 0 ? 1 : n;
	}
	st->unknown += raw->kind == SNAP_OTHER || raw->kind == SNAP_NONE;
	ev->kind = raw->kind < sizeof(kind) ? kind[raw->kind] : VC_EV_NONE;
	if (ev->kind != VC_EV_ALLOC)
		return ev->kind != VC_EV_NONE;
	ev->id = ++m->max_id;
	m->double_allocs += vc_map_get(&st->at, raw->addr) != NULL;
	if (!vc_map_put(&st->at, raw->addr, ev->id))
		return VC_ENOMEM;
	if (!(raw->flags & SNAP_NEW_TAG))
		return 1;
	ev[1] = ev[0];
	ev[0] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_INSTANT,
				   .label = ev[1].label, .time_ns = ev[1].time_ns,
				   .device = ev[1].device };
	return 2;
}

/* The next events of this device, at most 3; 0: none left. */
static int next_event(struct state *st, struct vc_meta *m, struct vc_event *ev,
		      struct vc_error *err)
{
	const struct snapshot_list none = { 0, 0 };
	const struct snapshot_list *l = st->device < st->s.lists ? &st->s.list[st->device] : &none;
	size_t eaten;
	int n = 0;

	while (!n && st->at_event < l->n) {
		const struct vc_event *raw = &st->s.ev[l->first + st->at_event];

		if (is_trim(st, raw, false)) {
			*ev = (struct vc_event){.kind = VC_EV_TRIM,
						.device = (uint16_t)st->device,
						.time_ns = time_of(st, raw[-1].time_ns),
						.site = raw[-1].site };
			st->freed_segments = false;
			m->how[VC_CAP_TRIMS] = VC_HOW_DERIVED;
			return 1;
		}
		if (note_event(st, raw->time_ns, ev))
			return 1;
		st->freed_segments = raw->kind == SNAP_SEGMENT_FREE ||
				     raw->kind == SNAP_SEGMENT_UNMAP ||
				     (st->freed_segments && raw->kind == SNAP_FREE_COMPLETED);
		n = translate(st, m, raw, ev, st->at_event + 1 == l->n, &eaten);
		if (n < 0)
			return vc_nomem(err, "the table of addresses");
		st->at_event += eaten;
	}
	if (!n && note_event(st, UINT64_MAX, ev))
		return 1;
	if (!n && is_trim(st, NULL, true)) {
		st->freed_segments = false;
		*ev = (struct vc_event){ .kind = VC_EV_TRIM, .device = (uint16_t)st->device };
		m->how[VC_CAP_TRIMS] = VC_HOW_DERIVED;
		return 1;
	}
	return n;
}

static void next_phase(struct state *st)
{
	st->opened = false;
	if (++st->phase != DEVICE_DONE)
		return;
	st->phase = START_HEAP;
	st->device++;
	st->at_event = st->at_note = 0;
	vc_map_fini(&st->at);
}

static void finish(struct state *st, struct vc_meta *m)
{
	if (st->unknown)
		vc_meta_note(m,
			     "%llu events of kinds that this version does not know were left out",
			     (unsigned long long)st->unknown);
	if (m->unmatched_frees)
		vc_meta_note(m, "%llu frees of blocks that are not known to live",
			     (unsigned long long)m->unmatched_frees);
	if (m->double_allocs)
		vc_meta_note(m, "%llu allocations at the address of a live block",
			     (unsigned long long)m->double_allocs);
}

/* Makes the next events in st->few; 1: there are some, 0: end. */
static int refill(struct state *st, struct vc_meta *m, struct vc_error *err)
{
	int n = 0;

	st->few_at = st->few_n = 0;
	while (st->device < st->devices && !n) {
		if (st->phase != EVENTS && !st->opened) {
			n = open_heap(st, m, err);
			if (n)
				return n;
		}
		n = st->phase == EVENTS ? next_event(st, m, st->few, err) :
					  heap_event(st, m, st->few, err);
		if (!n)
			next_phase(st);
	}
	if (n < 0)
		return n;
	st->few_n = n;
	if (!n)
		finish(st, m);
	return n > 0;
}

static long next(struct vc_source *src, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct state *st = src->state;
	size_t n = 0;
	int rc;

	while (n < cap) {
		if (st->few_at == st->few_n) {
			VC_TRY(rc = refill(st, src->meta, err));
			if (!rc)
				break;
		}
		ev[n++] = st->few[st->few_at++];
	}
	return (long)n;
}

static void close_snapshot(struct vc_source *src)
{
	struct state *st = src->state;

	snapshot_heap_fini(&st->heap);
	snapshot_fini(&st->s);
	vc_map_fini(&st->at);
}

const struct vc_source_type vc_source_torch_snapshot = {
	.name = "torch_snapshot",
	.summary = "PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), torch 2.0 on",
	.state_size = sizeof(struct state), .probe = probe, .open = open_snapshot, .next = next,
	.whole = true, .close = close_snapshot,
};
