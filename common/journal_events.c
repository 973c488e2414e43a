/* SPDX-License-Identifier: Apache-2.0 */
/* journal_events.c - journal records become events: addresses turn into dense ids, offsets into
 * dictionary numbers, clock readings into time since the start. */

#include "common/journal.h"
#include "common/map.h"
#include "common/vec.h"

enum { MAX_DEVICES = 64 };

struct pool { uint64_t first, second; };

struct mapped { uint64_t from, to; uint16_t device; };

struct vc_journal_decoder {
	struct vc_meta *meta;
	struct vc_map heap, bytes;   /* live tensors by address: id, size + 1 */
	struct vc_map waiting;       /* id of those freed, but used by other streams */
	struct vc_map segments, device_of; /* what cudaMalloc gave: size + 1, device + 1, which
					    * cudaFree does not say */
	struct vc_map early;  /* segment calls the hooks saw and the activity buffers did not yet */
	struct mapped *mapped; /* ranges that expandable segments ever mapped */
	size_t mappeds;
	struct pool *pool;
	size_t pools;
	struct vc_map frames; /* nodes of the trace's stacks, + 1, by offset in the journal */
	struct vc_journal_totals totals;
	uint64_t stream_handle;   /* the last one asked for ... */
	uint32_t stream;          /* ... and its index */
	uint32_t device;          /* the last one entered in meta, plus 1 */
};

struct vc_journal_decoder *vc_journal_decoder_new(struct vc_meta *meta, struct vc_error *err)
{
	struct vc_journal_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		vc_nomem(err, "a journal decoder");
	else
		d->meta = meta;
	return d;
}

void vc_journal_decoder_free(struct vc_journal_decoder *d)
{
	if (!d)
		return;
	vc_map_fini(&d->heap);
	vc_map_fini(&d->bytes);
	vc_map_fini(&d->waiting);
	vc_map_fini(&d->segments);
	vc_map_fini(&d->device_of);
	vc_map_fini(&d->early);
	vc_map_fini(&d->frames);
	VC_FREE(d->mapped, d->pool, d);
}

struct vc_journal_totals vc_journal_totals(const struct vc_journal_decoder *d)
{
	return d->totals;
}

/* Devices may use the same addresses (the CPU next to a GPU with unified addressing does not). */
static uint64_t key_of(uint16_t device, uint64_t addr)
{
	return addr ^ (uint64_t)device << 52;
}

static int put(struct vc_map *m, uint64_t key, uint64_t value, struct vc_error *err)
{
	return vc_map_put(m, key, value) ? 0 : vc_nomem(err, "the map of live blocks");
}

static int decode_alloc(struct vc_journal_decoder *d, const struct vc_record *rec,
			struct vc_event *ev, struct vc_error *err)
{
	uint64_t key = key_of(rec->device, rec->addr), *old = vc_map_get(&d->bytes, key);

	if (old) {
		d->meta->double_allocs++;
		d->totals.live -= *old - 1;
	}
	ev->id = ++d->meta->max_id;
	VC_TRY(put(&d->heap, key, ev->id, err));
	VC_TRY(put(&d->bytes, key, rec->extra + 1, err));
	d->totals.allocs++;
	d->totals.live += rec->extra;
	if (d->totals.live > d->totals.peak)
		d->totals.peak = d->totals.live;
	if (rec->reserved > d->totals.reserved_peak)
		d->totals.reserved_peak = rec->reserved;
	return 1;
}

static int decode_free(struct vc_journal_decoder *d, const struct vc_record *rec,
		       struct vc_event *ev, struct vc_error *err)
{
	uint64_t key = key_of(rec->device, rec->addr), id = vc_map_take(&d->heap, key);

	if (!id) {
		d->meta->unmatched_frees++;
		return 0;
	}
	ev->id = id;
	ev->size = 0;
	d->totals.frees++;
	d->totals.live -= vc_map_take(&d->bytes, key) - 1;
	if (rec->flags & VC_EVF_PENDING)
		VC_TRY(put(&d->waiting, key, id, err));
	return 1;
}

static int decode_free_done(struct vc_journal_decoder *d, const struct vc_record *rec,
			    struct vc_event *ev)
{
	uint64_t id = vc_map_take(&d->waiting, key_of(rec->device, rec->addr));

	ev->id = id ? id : ev->id;
	return id != 0;
}

static int decode_use(struct vc_journal_decoder *d, const struct vc_record *rec,
		      struct vc_event *ev)
{
	const uint64_t *id = vc_map_get(&d->heap, key_of(rec->device, rec->addr));

	ev->id = id ? *id : ev->id;
	return id != NULL;
}

/* PyTorch names pools by a pair of numbers; events by one, dense from 1. */
static int decode_pool(struct vc_journal_decoder *d, const struct vc_record *rec,
		       struct vc_event *ev, struct vc_error *err)
{
	ev->addr = 0;
	ev->size = 0;
	ev->id = 0;
	if (!rec->addr && !rec->extra)
		return 1;
	for (size_t i = 0; i < d->pools && !ev->id; i++)
		if (d->pool[i].first == rec->addr && d->pool[i].second == rec->extra)
			ev->id = i + 1;
	if (ev->id)
		return 1;
	VC_HAVE(vc_vec_one(d->pool, d->pools), "the list of memory pools", err);
	d->pool[d->pools++] = (struct pool){ rec->addr, rec->extra };
	ev->id = d->pools;
	return 1;
}

enum { OUTSIDE = 1 << 20 }; /* in `device_of`: no segment of the allocator */

/* How many calls, and when the last one was made (in 2^20 ns), share the value of a key. */
enum { CALLS_BITS = 24, CALLS = (1 << CALLS_BITS) - 1, CALL_UNIT = 20 };
/* A record has the time of its call. CUPTI stamps it with the wall clock, which agrees with ours to
 * microseconds, but may be slewed, set, or read by a thread that was stopped in between: a bound in
 * milliseconds would count memory twice then. */
static const uint64_t STALE_NS = 10ull * 1000000000;

int vc_journal_known(struct vc_map *early, const struct vc_record *rec)
{
	bool outside = rec->kind == VC_EV_OUTSIDE_ALLOC || rec->kind == VC_EV_OUTSIDE_FREE;
	bool release = rec->kind == VC_EV_SEGMENT_FREE || rec->kind == VC_EV_OUTSIDE_FREE ||
		       rec->kind == VC_EV_FREE;
	/* cudaFree does not say whether what it frees is managed. */
	bool device = !outside || (release && rec->reserved == VC_MEMORY_MANAGED);
	uint64_t memory = device ? VC_MEMORY_DEVICE : rec->reserved;
	uint64_t key = key_of(0, rec->addr) ^ (uint64_t)release << 63 ^ memory << 61;
	uint64_t *calls, n, last;
	bool stale;

	if (memory == VC_MEMORY_MAPPED)
		return 0;
	calls = vc_map_get(early, key);
	n = calls ? *calls & CALLS : 0;
	last = calls ? *calls >> CALLS_BITS << CALL_UNIT : 0;
	stale = last && rec->time_ns > last + STALE_NS;
	if (!(rec->flags & VC_RECF_LATE)) {
		n = (n < CALLS ? n + 1 : n) | rec->time_ns >> CALL_UNIT << CALLS_BITS;
		return vc_map_put(early, key, n) ? 0 : -1;
	}
	if (!calls)
		return 0;
	if (n > 1 && !stale)
		--*calls;
	else
		vc_map_take(early, key);
	return !stale;
}

static int is_known(struct vc_journal_decoder *d, const struct vc_record *rec, struct vc_error *err)
{
	int known = vc_journal_known(&d->early, rec);

	return known < 0 ? vc_nomem(err, "the map of driver calls") : known;
}

/* empty_cache unmaps the pages of all devices with one of them current. */
static int decode_mapping(struct vc_journal_decoder *d, const struct vc_record *rec,
			  struct vc_event *ev, struct vc_error *err)
{
	for (size_t i = 0; i < d->mappeds; i++) {
		struct mapped *p = &d->mapped[i];

		if (rec->addr < p->from || rec->addr > p->to)
			continue;
		if (rec->kind == VC_EV_SEGMENT_UNMAP && rec->addr < p->to) {
			ev->device = p->device;
			return 1;
		}
		if (rec->kind == VC_EV_SEGMENT_MAP && rec->device == p->device) {
			if (p->to < rec->addr + rec->size)
				p->to = rec->addr + rec->size;
			return 1;
		}
	}
	if (rec->kind == VC_EV_SEGMENT_UNMAP)
		return 1;
	VC_HAVE(vc_vec_one(d->mapped, d->mappeds), "the mapped ranges", err);
	d->mapped[d->mappeds++] = (struct mapped){ rec->addr, rec->addr + rec->size, rec->device };
	return 1;
}

/* The heap where a recording begins that is not the beginning (tracer/fold.c). */
static int decode_heap(struct vc_journal_decoder *d, const struct vc_record *rec,
		       struct vc_event *ev, struct vc_error *err)
{
	uint64_t key = key_of(rec->device, rec->addr);
	struct vc_record pool = { .addr = rec->extra, .extra = rec->reserved };
	struct vc_event numbered;

	if (rec->kind == VC_EV_HEAP_SEGMENT) {
		VC_TRY(decode_pool(d, &pool, &numbered, err));
		ev->id = numbered.id;
		VC_TRY(put(&d->segments, key_of(0, rec->addr), rec->size + 1, err));
		VC_TRY(put(&d->device_of, key_of(0, rec->addr), rec->device + 1u, err));
		if (!(rec->flags & VC_EVF_EXPANDABLE))
			return 1;
		VC_HAVE(vc_vec_one(d->mapped, d->mappeds), "the mapped ranges", err);
		d->mapped[d->mappeds++] = (struct mapped){ rec->addr, rec->addr + rec->size,
							   rec->device };
		return 1;
	}
	if (!(rec->flags & (VC_EVF_LIVE | VC_EVF_PENDING)))
		return 1;
	ev->id = ++d->meta->max_id;
	if (rec->flags & VC_EVF_PENDING)
		return put(&d->waiting, key, ev->id, err) < 0 ? VC_ENOMEM : 1;
	VC_TRY(put(&d->heap, key, ev->id, err));
	VC_TRY(put(&d->bytes, key, rec->extra + 1, err));
	d->totals.live += rec->extra;
	if (d->totals.live > d->totals.peak)
		d->totals.peak = d->totals.live;
	return 1;
}

/* The device + 1 of the segment that begins there, 0: none does. */
static uint64_t segment_at(const struct vc_journal_decoder *d, uint64_t addr)
{
	const uint64_t *device = vc_map_get(&d->device_of, key_of(0, addr));

	return device && !(*device & OUTSIDE) ? *device : 0;
}

static int decode_segment(struct vc_journal_decoder *d, const struct vc_record *rec,
			  struct vc_event *ev, struct vc_error *err)
{
	uint64_t key = key_of(0, rec->addr), bytes; /* one device's; the call is made on any */
	bool outside = rec->kind == VC_EV_OUTSIDE_ALLOC || rec->kind == VC_EV_OUTSIDE_FREE;
	int known = is_known(d, rec, err);

	if (known)
		return known < 0 ? known : 0;
	if (outside && rec->reserved == VC_MEMORY_MAPPED && segment_at(d, rec->addr))
		return 0; /* PAGES_OUT and PAGES_IN say it */
	if (rec->kind == VC_EV_SEGMENT_ALLOC || rec->kind == VC_EV_OUTSIDE_ALLOC) {
		VC_TRY(put(&d->segments, key, rec->size + 1, err));
		VC_TRY(put(&d->device_of, key, (rec->device + 1u) | (outside ? OUTSIDE : 0), err));
	} else if (rec->kind == VC_EV_SEGMENT_FREE || rec->kind == VC_EV_OUTSIDE_FREE) {
		bytes = vc_map_take(&d->segments, key);
		if (bytes) {
			ev->size = ev->size ? ev->size : bytes - 1;
			ev->device = (uint16_t)(vc_map_take(&d->device_of, key) - 1);
		}
	}
	return 1;
}

static int decode_pages(struct vc_journal_decoder *d, const struct vc_record *rec,
			struct vc_event *ev)
{
	uint64_t device = segment_at(d, rec->addr), *id;

	if (!device)
		return 0;
	ev->device = (uint16_t)(device - 1);
	id = vc_map_get(&d->heap, key_of(ev->device, rec->addr));
	ev->id = id ? *id : 0;
	return 1;
}

static uint32_t string_at(struct vc_journal_decoder *d, struct vc_journal_reader *r,
			  uint64_t offset)
{
	const char *s = vc_journal_text(r, (uint32_t)offset);

	return vc_meta_string(d->meta, s, strlen(s));
}

/* The node of a frame in the trace. Callers first, in a loop: stacks may be a thousand deep. */
static int site_of(struct vc_journal_decoder *d, struct vc_journal_reader *r, uint32_t offset,
		   uint32_t *site, struct vc_error *err)
{
	struct vc_journal_frame f;
	const uint64_t *node = NULL;

	*site = 0;
	while (offset && !(node = vc_map_get(&d->frames, offset))) {
		uint32_t at = offset;

		while (vc_journal_frame(r, at, &f) && f.caller && !vc_map_get(&d->frames, f.caller))
			at = f.caller;
		if (!vc_journal_frame(r, at, &f))
			return 0;
		node = f.caller ? vc_map_get(&d->frames, f.caller) : NULL;
		struct vc_frame new = { .parent = node ? (uint32_t)*node - 1 : 0, .line = f.line };

		new.function = string_at(d, r, f.function);
		new.file = string_at(d, r, f.file);
		VC_TRY(put(&d->frames, at, vc_meta_frame(d->meta, new) + 1ull, err));
	}
	*site = node ? (uint32_t)*node - 1 : 0;
	return 0;
}

static uint32_t stream_of(struct vc_journal_decoder *d, uint64_t handle)
{
	if (handle && handle != d->stream_handle) {
		d->stream = vc_meta_stream(d->meta, handle);
		d->stream_handle = handle;
	}
	return handle ? d->stream : 0;
}

/* The node of a text that says what a kernel computes. */
static int work_of(struct vc_journal_decoder *d, struct vc_journal_reader *r, uint32_t text,
		   uint32_t *site, struct vc_error *err)
{
	const uint64_t *node = vc_map_get(&d->frames, text);
	const char *s = node ? NULL : vc_journal_text(r, text);

	if (s) {
		struct vc_frame f = { .function = vc_meta_string(d->meta, s, strlen(s)) };

		VC_TRY(put(&d->frames, text, vc_meta_frame(d->meta, f) + 1ull, err));
		node = vc_map_get(&d->frames, text);
	}
	*site = node ? (uint32_t)*node - 1 : 0;
	return VC_OK;
}

static bool has_site(uint8_t kind)
{
	return kind == VC_EV_ALLOC || kind == VC_EV_OOM || kind == VC_EV_HEAP_BLOCK;
}

static void base_event(struct vc_journal_decoder *d, struct vc_journal_reader *r,
		       const struct vc_record *rec, struct vc_event *ev)
{
	uint64_t start = vc_journal_header(r)->start_mono_ns;

	*ev = (struct vc_event){ .kind = rec->kind, .flags = rec->flags, .device = rec->device,
				 .size = rec->size, .addr = rec->addr };
	ev->time_ns = rec->time_ns > start ? rec->time_ns - start : 1;
	ev->stream = rec->stream == UINT64_MAX ? VC_STREAM_ALL : stream_of(d, rec->stream);
	if (rec->text && !has_site(rec->kind)) {
		const char *s = vc_journal_text(r, rec->text);

		ev->label = vc_meta_string(d->meta, s, strlen(s));
	}
}

int vc_journal_decode(struct vc_journal_decoder *d, struct vc_journal_reader *r,
		      const struct vc_record *rec, struct vc_event *ev, struct vc_error *err)
{
	if (rec->kind == VC_REC_KNOWN)
		return put(&d->early, rec->addr, rec->size, err);
	if (rec->kind == VC_EV_NONE || rec->kind >= VC_REC_CLOCK)
		return 0; /* never written, or no event */
	base_event(d, r, rec, ev);
	if (has_site(rec->kind) && rec->text &&
	    site_of(d, r, rec->text, &ev->site, err) < 0)
		return VC_ENOMEM;
	if (rec->flags & VC_RECF_DRIVER && (rec->kind == VC_EV_ALLOC || rec->kind == VC_EV_FREE) &&
	    is_known(d, rec, err) < 0)
		return VC_ENOMEM;
	if (d->device != rec->device + 1u) {
		vc_meta_device(d->meta, rec->device);
		d->device = rec->device + 1u;
	}
	switch (rec->kind) {
	case VC_EV_ALLOC:
		ev->flags = 0;
		return decode_alloc(d, rec, ev, err);
	case VC_EV_FREE:
		ev->flags = rec->flags & VC_EVF_PENDING;
		return decode_free(d, rec, ev, err);
	case VC_EV_HEAP_SEGMENT: case VC_EV_HEAP_BLOCK: return decode_heap(d, rec, ev, err);
	case VC_EV_FREE_DONE: return decode_free_done(d, rec, ev);
	case VC_EV_USE: return decode_use(d, rec, ev);
	case VC_EV_TRIM:
	case VC_EV_POOL_CREATE: case VC_EV_POOL_BEGIN: case VC_EV_POOL_END: case VC_EV_POOL_RELEASE:
		return decode_pool(d, rec, ev, err);
	case VC_EV_SEGMENT_MAP: case VC_EV_SEGMENT_UNMAP:
		ev->flags = 0;
		return decode_mapping(d, rec, ev, err);
	case VC_EV_SEGMENT_ALLOC: case VC_EV_SEGMENT_FREE:
	case VC_EV_OUTSIDE_ALLOC: case VC_EV_OUTSIDE_FREE:
		ev->flags = 0;
		return decode_segment(d, rec, ev, err);
	case VC_EV_PAGES_OUT: case VC_EV_PAGES_IN: return decode_pages(d, rec, ev);
	case VC_EV_MARK:
		d->totals.steps += rec->flags == VC_MARK_STEP;
		return 1;
	case VC_EV_KERNEL:
		ev->addr = 0;
		if (rec->addr && work_of(d, r, (uint32_t)rec->addr, &ev->site, err) < 0)
			return VC_ENOMEM;
		/* fall through */
	case VC_EV_COPY: case VC_EV_LAUNCH:
		ev->flags = 0;
		/* fall through */
	case VC_EV_DRIVER_POOL:
		ev->id = rec->extra;
		return 1;
	default: return 1;
	}
}

int vc_journal_resume(struct vc_journal_decoder *d, const struct vc_event *ev, struct vc_error *err)
{
	if (ev->kind == VC_EV_ALLOC) {
		VC_TRY(put(&d->heap, key_of(ev->device, ev->addr), ev->id, err));
		VC_TRY(put(&d->bytes, key_of(ev->device, ev->addr), ev->size + 1, err));
		if (ev->id > d->meta->max_id)
			d->meta->max_id = ev->id;
		d->totals.allocs++;
		d->totals.live += ev->size;
		if (d->totals.live > d->totals.peak)
			d->totals.peak = d->totals.live;
	} else if (ev->kind == VC_EV_FREE) {
		d->totals.frees++;
		for (size_t i = 0; d->heap.slot && i <= d->heap.mask; i++)
			if (d->heap.slot[i].value == ev->id) {
				uint64_t key = d->heap.slot[i].key;

				d->totals.live -= vc_map_take(&d->bytes, key) - 1;
				vc_map_take(&d->heap, key);
				break;
			}
	}
	return 0;
}

const struct vc_journal_launcher vc_journal_launcher[VC_JOURNAL_LAUNCHERS] = {
	{ "RANK", "WORLD_SIZE" }, /* torchrun, accelerate, deepspeed */
	{ "SLURM_PROCID", "SLURM_NTASKS" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
};

static void describe_rank(struct vc_journal_reader *r, struct vc_meta *meta)
{
	char buf[64];

	meta->rank = -1;
	for (int i = 0; i < VC_JOURNAL_LAUNCHERS && meta->rank < 0; i++)
		if (vc_journal_fact(r, vc_journal_launcher[i].rank, buf, sizeof(buf)))
			meta->rank = strtol(buf, NULL, 10);
}

/* The fact "gpu N": total bytes, compute capability, multiprocessors and name, as
 * tracer/cuda_device.c writes them. */
static void describe_devices(struct vc_journal_reader *r, struct vc_meta *meta)
{
	char key[16], buf[256], name[128];

	for (uint16_t i = 0; i < MAX_DEVICES; i++) {
		struct vc_device_info *d;
		uint64_t total;
		int major, minor, sms;

		snprintf(key, sizeof(key), "gpu %u", i);
		if (!vc_journal_fact(r, key, buf, sizeof(buf)) ||
		    sscanf(buf, "%" SCNu64 " %d.%d %d %127[^\n]", &total, &major, &minor, &sms,
			   name) != 5 ||
		    !(d = vc_meta_device(meta, i)))
			continue;
		d->total = total;
		d->cc_major = major;
		d->cc_minor = minor;
		d->sms = sms;
		vc_meta_set(&d->name, name);
	}
}

/* Each once, however often the journal is described. */
static void note_once(struct vc_meta *meta, const char *text)
{
	size_t k = 0;

	while (k < meta->notes && strcmp(meta->note[k], text) != 0)
		k++;
	if (k == meta->notes)
		vc_meta_note(meta, "%s", text);
}

static void describe_notes(struct vc_journal_reader *r, struct vc_meta *meta)
{
	char text[512];

	for (size_t i = 0; vc_journal_note(r, i, text, sizeof(text)); i++)
		note_once(meta, text);
}

/* Its CUDA allocator reads PYTORCH_ALLOC_CONF from 2.10 on (libc10_cuda.so of 2.9.1 does not name
 * it). A version that is not known is a new one. */
static bool reads_new_name(const char *torch)
{
	return !torch || strncmp(torch, "2.", 2) != 0 || strtol(torch + 2, NULL, 10) >= 10;
}

static void describe_settings(struct vc_journal_reader *r, struct vc_meta *meta)
{
	char buf[4096];
	bool old = vc_journal_fact(r, "PYTORCH_CUDA_ALLOC_CONF", buf, sizeof(buf)),
	     new = !old && vc_journal_fact(r, "PYTORCH_ALLOC_CONF", buf, sizeof(buf)),
	     read = old || (new && reads_new_name(meta->torch));

	vc_meta_set(&meta->conf, read ? buf : "");
	snprintf(buf, sizeof(buf), "PYTORCH_ALLOC_CONF is set, which the CUDA allocator of PyTorch "
		 "%.16s does not read: take PYTORCH_CUDA_ALLOC_CONF",
		 meta->torch ? meta->torch : "");
	if (new && !read)
		note_once(meta, buf);
}

void vc_journal_describe(struct vc_journal_reader *r, struct vc_meta *meta)
{
	struct vc_journal *j = vc_journal_header(r);
	char buf[4096];

	/* no time of day: a dry run, which is to give the same bytes every time */
	meta->pid = j->start_unix_ns ? j->pid : 0;
	meta->start_unix_ns = j->start_unix_ns;
	if (vc_journal_fact(r, "host", buf, sizeof(buf)))
		vc_meta_set(&meta->host, buf);
	if (vc_journal_fact(r, "torch", buf, sizeof(buf)))
		vc_meta_set(&meta->torch, buf);
	describe_settings(r, meta);
	describe_rank(r, meta);
	describe_devices(r, meta);
	describe_notes(r, meta);
	for (int c = 0; c < VC_CAPS; c++)
		meta->how[c] = atomic_load(&j->how[c]);
	meta->dropped = vc_journal_dropped(r);
}
