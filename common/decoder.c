/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.c - the reading half of codec.h. Nothing in a block is believed before its checksum is
 * right, and nothing that is read is used as an index before it was compared with its bound. */
#include "common/codec.h"

#include <zstd.h>

#include "common/codec_parts.h"
#include "common/vec.h"

struct reader { const uint8_t *p, *end; bool bad; };

struct shape {
	struct vc_event blank;  /* kind, flags, device, stream; the rest 0 */
	uint8_t fields;
	uint64_t id, addr;      /* last ones seen with this shape */
};

struct birth { uint64_t addr, size; uint32_t size_index; bool known; };
struct hole { uint64_t addr; uint32_t below; };

struct vc_decoder {
	struct vc_input *in;
	struct vc_meta *meta;
	ZSTD_DCtx *zs;
	uint8_t *raw; size_t raw_cap;
	struct vc_event *ev; size_t at, n, cap; /* the decoded block, cap also of hole and birth */
	struct hole *hole; size_t holes;
	struct birth *birth;
	uint32_t *strings, *frames, *streams, *top; /* local number -> global index; newest hole */
	size_t string_cap, frame_cap, stream_cap, top_cap;
	uint64_t *size; size_t size_cap;
	struct shape *shape; size_t shape_cap;
	uint32_t nstrings, nframes, nstreams, nshapes, nsizes;
	struct reader column[VCT_COLUMNS];
	uint64_t time_unit, time, id_base, next_id, last_addr;
	unsigned addr_shift;
	uint32_t sequence;       /* expected next */
	bool any_header, end_seen, started;
};

static uint64_t take_slowly(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && r->p < r->end; shift += 7) {
		uint8_t c = *r->p++;

		v |= shift < 64 ? (uint64_t)(c & 0x7f) << shift : 0;
		if (!(c & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

static inline uint64_t take(struct reader *r)
{
	if (r->p < r->end && *r->p < 0x80)
		return *r->p++;
	return take_slowly(r);
}

/* A count that a hostile block cannot make larger than the bytes that follow. */
static uint32_t take_count(struct reader *r, size_t bytes_each)
{
	uint64_t n = take(r);

	if (n > (size_t)(r->end - r->p) / bytes_each || n >= UINT32_MAX) {
		r->bad = true;
		return 0;
	}
	return (uint32_t)n;
}

/* ---- dictionaries of a block ---- */

static bool read_strings(struct vc_decoder *d, struct reader *r)
{
	d->nstrings = take_count(r, 1) + 1;
	if (!vc_vec_room(d->strings, d->string_cap, d->nstrings))
		return false;
	d->strings[0] = 0;
	for (uint32_t i = 1; i < d->nstrings && !r->bad; i++) {
		uint32_t len = take_count(r, 1);

		d->strings[i] = vc_meta_string(d->meta, (const char *)r->p, len);
		r->p += len;
	}
	return true;
}

static bool read_frames(struct vc_decoder *d, struct reader *r)
{
	d->nframes = take_count(r, 4) + 1;
	if (!vc_vec_room(d->frames, d->frame_cap, d->nframes))
		return false;
	d->frames[0] = 0;
	for (uint32_t i = 1; i < d->nframes && !r->bad; i++) {
		uint64_t parent = take(r), function = take(r), file = take(r), line = take(r);

		if (parent >= i || function >= d->nstrings || file >= d->nstrings ||
		    line > UINT32_MAX) {
			r->bad = true;
			break;
		}
		d->frames[i] = vc_meta_frame(d->meta, (struct vc_frame){
			.parent = d->frames[parent], .function = d->strings[function],
			.file = d->strings[file], .line = (uint32_t)line });
	}
	return true;
}

static bool read_streams(struct vc_decoder *d, struct reader *r)
{
	d->nstreams = take_count(r, 1);
	if (!vc_vec_room(d->streams, d->stream_cap, d->nstreams))
		return false;
	for (uint32_t i = 0; i < d->nstreams && !r->bad; i++)
		d->streams[i] = vc_meta_stream(d->meta, take(r));
	return true;
}

static bool read_shapes(struct vc_decoder *d, struct reader *r)
{
	d->nshapes = take_count(r, 5);
	if (!vc_vec_room(d->shape, d->shape_cap, d->nshapes))
		return false;
	for (uint32_t i = 0; i < d->nshapes && !r->bad; i++) {
		struct shape *s = &d->shape[i];
		uint64_t device, stream;

		if (r->end - r->p < 5) {
			r->bad = true;
			break;
		}
		*s = (struct shape){.blank = {.kind = r->p[0], .flags = r->p[1]},
				    .fields = r->p[2] };
		r->p += 3;
		device = take(r);
		stream = take(r);
		if (device > UINT16_MAX || stream > d->nstreams || !s->blank.kind)
			r->bad = true;
		else
			s->blank.stream = stream ? d->streams[stream - 1] : VC_STREAM_ALL;
		s->blank.device = (uint16_t)device;
	}
	return true;
}

static bool read_sizes(struct vc_decoder *d, struct reader *r)
{
	d->nsizes = take_count(r, 1);
	if (!vc_vec_room(d->size, d->size_cap, d->nsizes) ||
	    !vc_vec_room(d->top, d->top_cap, d->nsizes))
		return false;
	for (uint32_t i = 0; i < d->nsizes && !r->bad; i++) {
		d->size[i] = take(r);
		d->top[i] = 0;
	}
	return true;
}

static bool reserve_events(struct vc_decoder *d, size_t n)
{
	size_t cap = d->cap, hole_cap = d->cap, birth_cap = d->cap;

	if (!vc_vec_room(d->ev, cap, n) || !vc_vec_room(d->hole, hole_cap, n) ||
	    !vc_vec_room(d->birth, birth_cap, n))
		return false;
	d->cap = cap < hole_cap ? cap : hole_cap;
	d->cap = birth_cap < d->cap ? birth_cap : d->cap;
	return true;
}

/* ---- events ---- */

static inline uint32_t size_index(struct vc_decoder *d)
{
	uint64_t i = take(&d->column[VCT_SIZE]);

	if (i < d->nsizes)
		return (uint32_t)i;
	d->column[VCT_SIZE].bad = true;
	return 0;
}

static inline uint64_t far_addr(struct vc_decoder *d, uint64_t from)
{
	return (from + vct_unzigzag(take(&d->column[VCT_ADDR]))) << d->addr_shift;
}

static inline void get_alloc(struct vc_decoder *d, const struct shape *s, struct vc_event *ev)
{
	uint32_t size;
	uint64_t k;

	ev->id = d->next_id;
	if (s->fields & VCT_F_ID)
		ev->id += vct_unzigzag(take(&d->column[VCT_ID]));
	d->next_id = ev->id + 1;
	if (!d->nsizes || !(s->fields & VCT_F_SIZE)) {
		d->column[VCT_SIZE].bad = true;
		return;
	}
	size = size_index(d);
	ev->size = d->size[size];
	if (s->fields & VCT_F_SAME_ADDR) {
		if (!d->top[size]) {
			d->column[VCT_ADDR].bad = true;
			return;
		}
		ev->addr = d->hole[d->top[size] - 1].addr;
		d->top[size] = d->hole[d->top[size] - 1].below;
	} else if (s->fields & VCT_F_ADDR) {
		ev->addr = far_addr(d, d->last_addr);
	}
	if (s->fields & (VCT_F_ADDR | VCT_F_SAME_ADDR))
		d->last_addr = ev->addr >> d->addr_shift;
	k = ev->id - d->id_base;
	if (k < d->n)
		d->birth[k] = (struct birth){ ev->addr, ev->size, size, true };
}

static inline void get_reference(struct vc_decoder *d, const struct shape *s, struct vc_event *ev)
{
	const struct birth *b = NULL;
	uint32_t size = 0;
	uint64_t k;

	if (s->fields & VCT_F_ID)
		ev->id = d->next_id - vct_unzigzag(take(&d->column[VCT_ID]));
	if (s->fields & (VCT_F_SAME_SIZE | VCT_F_SAME_ADDR)) {
		k = ev->id - d->id_base;
		if (k >= d->n || !d->birth[k].known) {
			d->column[VCT_ID].bad = true;
			return;
		}
		b = &d->birth[k];
	}
	if (s->fields & VCT_F_SIZE) {
		size = size_index(d);
		ev->size = d->nsizes ? d->size[size] : 0;
	} else if (s->fields & VCT_F_SAME_SIZE) {
		size = b->size_index;
		ev->size = b->size;
	}
	if (s->fields & VCT_F_ADDR)
		ev->addr = far_addr(d, d->last_addr);
	else if (s->fields & VCT_F_SAME_ADDR)
		ev->addr = b->addr;
	if (ev->kind == VC_EV_FREE && s->fields & (VCT_F_SIZE | VCT_F_SAME_SIZE) && ev->addr &&
	    d->nsizes) {
		d->hole[d->holes] = (struct hole){ ev->addr, d->top[size] };
		d->top[size] = (uint32_t)++d->holes;
	}
}

static inline void get_other(struct vc_decoder *d, struct shape *s, struct vc_event *ev)
{
	uint32_t size;

	if (s->fields & VCT_F_ID) {
		s->id += vct_unzigzag(take(&d->column[VCT_ID]));
		ev->id = s->id;
	}
	if (s->fields & VCT_F_SIZE && vct_loose_size(ev->kind)) {
		ev->size = take(&d->column[VCT_SIZE]);
	} else if (s->fields & VCT_F_SIZE) {
		size = size_index(d);
		ev->size = d->nsizes ? d->size[size] : 0;
	}
	if (s->fields & VCT_F_ADDR) {
		ev->addr = far_addr(d, s->addr);
		s->addr = ev->addr >> d->addr_shift;
	}
}

static bool get_event(struct vc_decoder *d, struct vc_event *ev)
{
	uint64_t i = take(&d->column[VCT_SHAPE]), site, label;
	struct shape *s;

	if (i >= d->nshapes)
		return false;
	s = &d->shape[i];
	*ev = s->blank;
	if (s->fields & VCT_F_TIME) {
		d->time += vct_unzigzag(take(&d->column[VCT_TIME]));
		ev->time_ns = d->time * d->time_unit;
	}
	if (ev->kind == VC_EV_ALLOC)
		get_alloc(d, s, ev);
	else if (vct_refers(ev->kind))
		get_reference(d, s, ev);
	else
		get_other(d, s, ev);
	if (s->fields & VCT_F_SITE) {
		site = take(&d->column[VCT_SITE]);
		if (site >= d->nframes)
			return false;
		ev->site = d->frames[site];
	}
	if (s->fields & VCT_F_LABEL) {
		label = take(&d->column[VCT_LABEL]);
		if (label >= d->nstrings)
			return false;
		ev->label = d->strings[label];
	}
	return true;
}

static bool get_columns(struct vc_decoder *d, struct reader *r)
{
	for (size_t i = 0; i < VCT_COLUMNS; i++) {
		uint32_t len = take_count(r, 1);

		d->column[i] = (struct reader){ r->p, r->p + len, false };
		r->p += len;
	}
	return !r->bad;
}

/* Fills d->ev from the unpacked block; false: it is damaged, or there was no memory (meta tells).
 */
static bool decode_events(struct vc_decoder *d, const struct vct_head *h, struct reader r)
{
	uint64_t layout = take(&r), n = take(&r), shift;

	d->time_unit = take(&r);
	d->time = take(&r);
	shift = take(&r);
	d->id_base = d->next_id = take(&r);
	d->holes = 0;
	d->last_addr = 0;
	if (r.bad || layout != 1 || n != h->events || shift > 63 || n > (size_t)(r.end - r.p))
		return false;
	d->addr_shift = (unsigned)shift;
	if (!read_strings(d, &r) || r.bad || !read_frames(d, &r) || r.bad ||
	    !read_streams(d, &r) || r.bad || !read_shapes(d, &r) || r.bad || !read_sizes(d, &r) ||
	    r.bad || !get_columns(d, &r) || !reserve_events(d, (size_t)n))
		return false;
	d->n = (size_t)n;
	for (size_t i = 0; i < d->n; i++)
		d->birth[i].known = false;
	for (size_t i = 0; i < d->n; i++)
		if (!get_event(d, &d->ev[i]))
			return false;
	for (size_t i = 0; i < VCT_COLUMNS; i++)
		if (d->column[i].bad || d->column[i].p != d->column[i].end)
			return false;
	return true;
}

/* ---- blocks ---- */

/* Moves to the next intact head. 1: there is one (not consumed), 0: end of the input. */
static int find_head(struct vc_decoder *d, struct vct_head *h, bool *skipped, struct vc_error *err)
{
	size_t got, i;

	for (;;) {
		const uint8_t *p = vc_input_peek(d->in, 1 << 16, &got, err);

		if (!p)
			return err ? (int)err->status : VC_EIO;
		for (i = 0; i + VCT_FRAME <= got; i++)
			if (p[i] == 0x51 && p[i + 1] == 0x2a && !vct_head_get(h, p + i))
				break;
		if (i + VCT_FRAME <= got) {
			*skipped |= i > 0;
			vc_input_skip(d->in, i);
			return 1;
		}
		/* The tail may be the start of a head, unless nothing comes after it. */
		if (got < 1 << 16) {
			vc_input_skip(d->in, got);
			return 0;
		}
		*skipped = true;
		vc_input_skip(d->in, got - VCT_FRAME + 1);
	}
}

/* A seek table at the end is the mark of a clean close; it may stand in for the final header's. */
static int skip_seek_table(struct vc_decoder *d, struct vc_error *err)
{
	size_t got, len;
	const uint8_t *p = vc_input_peek(d->in, 8, &got, err);

	if (!p)
		return err ? (int)err->status : VC_EIO;
	if (got < 8 || p[0] != 0x5e || p[1] != 0x2a || p[2] != 0x4d || p[3] != 0x18)
		return 0;
	len = p[4] | (size_t)p[5] << 8 | (size_t)p[6] << 16 | (size_t)p[7] << 24;
	vc_input_skip(d->in, 8);
	while (len) {
		p = vc_input_peek(d->in, len < 65536 ? len : 65536, &got, err);
		if (!p)
			return err ? (int)err->status : VC_EIO;
		if (!got)
			break;
		got = got < len ? got : len;
		vc_input_skip(d->in, got);
		len -= got;
	}
	d->end_seen = true;
	return 0;
}

/* The block behind an intact head, unpacked into d->raw. 1: done, 0: damaged or cut off. */
static int unpack(struct vc_decoder *d, const struct vct_head *h, struct vc_error *err)
{
	size_t got, n;
	const uint8_t *p;

	if (h->raw > VCT_RAW_MAX || h->packed > ZSTD_compressBound(h->raw) ||
	    h->version != VCT_VERSION)
		return 0;
	p = vc_input_peek(d->in, (size_t)VCT_FRAME + h->packed, &got, err);
	if (!p)
		return err ? (int)err->status : VC_EIO;
	if (got < (size_t)VCT_FRAME + h->packed ||
	    ZSTD_getFrameContentSize(p + VCT_FRAME, h->packed) != h->raw)
		return 0;
	VC_HAVE(vc_vec_room(d->raw, d->raw_cap, (size_t)h->raw + 1), "a block of the trace", err);
	n = ZSTD_decompressDCtx(d->zs, d->raw, d->raw_cap, p + VCT_FRAME, h->packed);
	if (ZSTD_isError(n) || n != h->raw)
		return 0;
	return 1;
}

/* Blocks are numbered, so missing numbers are lost blocks. */
static void count_lost(struct vc_decoder *d, uint32_t upto)
{
	if (upto == d->sequence)
		return;
	d->meta->damaged_blocks += upto - d->sequence;
	d->meta->gaps++;
}

static bool use(struct vc_decoder *d, const struct vct_head *h)
{
	uint64_t damaged = d->meta->damaged_blocks, gaps = d->meta->gaps,
		 dropped = d->meta->dropped;
	struct reader r = { d->raw, d->raw + h->raw, false };

	if (h->type == VCT_EVENTS)
		return decode_events(d, h, r);
	if (h->type != VCT_HEADER)
		return true; /* of a later version; its numbers still count */
	if (vct_meta_parse(d->meta, (const char *)d->raw, h->raw, NULL))
		return false;
	d->any_header = true;
	d->meta->damaged_blocks = damaged; /* what we count goes on top of what the writer knew */
	d->meta->gaps = gaps > d->meta->gaps ? gaps : d->meta->gaps;
	d->meta->dropped = dropped > d->meta->dropped ? dropped : d->meta->dropped;
	return true;
}

/* The next block of events into d->ev. 1: there is one, 0: end. */
static int next_block(struct vc_decoder *d, struct vc_error *err)
{
	struct vct_head h;
	bool skipped = false;
	int rc;

	for (;;) {
		rc = skip_seek_table(d, err);
		if (!rc)
			rc = find_head(d, &h, &skipped, err);
		if (rc <= 0)
			return rc;
		if (h.sequence < d->sequence && d->started)
			return vc_fail(err, VC_EFORMAT,
				       "%s: a second trace follows the first; split the file",
				       vc_input_name(d->in));
		d->started = true;
		d->n = d->at = 0;
		VC_TRY(rc = unpack(d, &h, err));
		if (!rc || !use(d, &h)) {
			VC_HAVE(vc_meta_ok(d->meta), "the trace's dictionaries", err);
			d->n = 0;
			d->meta->dropped += h.events;
			vc_input_skip(d->in,
				      4); /* look for the next head inside what this one claims */
			continue;
		}
		count_lost(d, h.sequence);
		d->sequence = h.sequence + 1;
		vc_input_skip(d->in, (size_t)VCT_FRAME + h.packed);
		if (d->n)
			return 1;
	}
}

static void finish(struct vc_decoder *d)
{
	struct vc_meta *m = d->meta;

	if (!d->any_header)
		vc_meta_note(m, "no header of the trace is readable: versions and settings are "
			     "unknown");
	if (!m->complete && !d->end_seen)
		vc_meta_note(m, "the recording was cut off; what is there was read");
	m->complete = m->complete && !m->damaged_blocks && d->end_seen;
	if (m->damaged_blocks == 1)
		vc_meta_note(m, "one damaged block was skipped");
	else if (m->damaged_blocks)
		vc_meta_note(m, "%llu damaged blocks were skipped",
			     (unsigned long long)m->damaged_blocks);
}

int vc_decoder_probe(struct vc_input *in)
{
	struct vct_head h;
	size_t got;
	const uint8_t *p = vc_input_peek(in, 1 << 16, &got, NULL);

	for (size_t i = 0; p && i + VCT_FRAME <= got; i++)
		if (p[i] == 0x51 && p[i + 1] == 0x2a && !vct_head_get(&h, p + i))
			return i ? 64 : 128;
	return 0;
}

struct vc_decoder *vc_decoder_new(struct vc_input *in, struct vc_meta *meta, struct vc_error *err)
{
	struct vc_decoder *d = calloc(1, sizeof(*d));
	int rc;

	if (!d) {
		vc_nomem(err, "reading the trace");
		return NULL;
	}
	d->in = in;
	d->meta = meta;
	d->zs = ZSTD_createDCtx();
	rc = d->zs ? next_block(d, err) : vc_nomem(err, "reading the trace");
	if (rc >= 0 && (d->any_header || d->n))
		return d;
	if (rc >= 0)
		vc_fail(err, VC_EFORMAT, "%s: no block of the trace is readable",
			vc_input_name(in));
	vc_decoder_free(d);
	return NULL;
}

long vc_decoder_next(struct vc_decoder *d, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	size_t n;

	if (d->at == d->n) {
		int rc = next_block(d, err);

		VC_TRY(rc);
		if (!rc) {
			finish(d);
			return 0;
		}
	}
	n = d->n - d->at < cap ? d->n - d->at : cap;
	memcpy(ev, d->ev + d->at, n * sizeof(*ev));
	d->at += n;
	return (long)n;
}

void vc_decoder_free(struct vc_decoder *d)
{
	if (!d)
		return;
	ZSTD_freeDCtx(d->zs);
	VC_FREE(d->raw, d->ev, d->hole, d->birth, d->strings, d->frames, d->streams, d->top,
		d->size, d->shape, d);
}
