/* SPDX-License-Identifier: Apache-2.0 */
/* encoder.c - the writing half of codec.h.
 *
 * Events of a block are split into columns (shape, time, id, size, address, site, label), because
 * zstd finds the repetition of a training step much better in each column than in rows. */
#include "common/codec.h"

#include <zstd.h>

#include "common/codec_parts.h"
#include "common/map.h"
#include "common/site.h"
#include "common/vec.h"

#define BLOCK_EVENTS 16384u
#define REPEAT_HEADER ((uint64_t)64 << 20) /* so that a tail is self-describing */

struct bytes { uint8_t *at; size_t n, cap; };

/* A dictionary of the block: global index -> local number, by the block that last used it. */
struct local { uint32_t *number, *block; size_t cap; uint32_t n; struct bytes list; };

struct shape { uint64_t key; uint64_t id, addr; }; /* last id and addr seen with it */

struct birth { uint64_t addr, size; uint32_t size_index; bool known; };
struct hole { uint64_t addr; uint32_t below; };

struct vc_encoder {
	struct vc_output *out;
	const struct vc_meta *meta;
	struct vc_encoder_options opt;
	struct vc_event *ev; size_t n;
	uint32_t sequence, block;
	uint64_t next_id;            /* one more than the newest allocation */
	uint64_t since_header;
	ZSTD_CCtx *zs;
	struct bytes raw, packed, seek;
	struct bytes column[VCT_COLUMNS];
	struct local strings, files, frames, streams;
	struct shape *shape; size_t shapes, shape_cap;
	struct bytes shape_list;
	struct vc_map shape_index, size_index;
	struct bytes size_list; uint32_t sizes;
	uint32_t *top; size_t top_cap;   /* by size: newest hole + 1 */
	struct hole *hole; size_t holes;
	struct birth *birth;             /* by id - id_base */
	uint64_t id_base, last_addr, time, time_unit;
	unsigned addr_shift;
	uint32_t *path; size_t path_cap; /* callers of a frame */
	bool failed;                     /* lack of memory, told at the end of the block */
};

static bool room(struct vc_encoder *e, struct bytes *b, size_t n)
{
	if (vc_vec_room(b->at, b->cap, b->n + n))
		return true;
	e->failed = true;
	return false;
}

static void put_bytes(struct vc_encoder *e, struct bytes *b, const void *data, size_t n)
{
	if (n && room(e, b, n)) {
		memcpy(b->at + b->n, data, n);
		b->n += n;
	}
}

/* LEB128. */
static void put(struct vc_encoder *e, struct bytes *b, uint64_t v)
{
	uint8_t *to;

	if (!room(e, b, 10))
		return;
	to = b->at + b->n;
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	b->n = (size_t)(to - b->at);
}

/* ---- dictionaries of the block ---- */

/* The place of a global index in a dictionary; NULL: no memory. */
static uint32_t *place(struct vc_encoder *e, struct local *d, uint32_t index, bool *new)
{
	size_t numbers = d->cap;

	if (!vc_vec_room(d->number, numbers, (size_t)index + 1) ||
	    !vc_vec_zeroed(d->block, d->cap, (size_t)index + 1)) {
		e->failed = true;
		return NULL;
	}
	*new = d->block[index] != e->block;
	d->block[index] = e->block;
	return &d->number[index];
}

static uint32_t local_string(struct vc_encoder *e, uint32_t index)
{
	uint32_t *at;
	size_t len;
	bool new;

	if (!index || index >= e->meta->strings)
		return 0;
	at = place(e, &e->strings, index, &new);
	if (at && new) {
		len = strlen(e->meta->string[index]);
		put(e, &e->strings.list, len);
		put_bytes(e, &e->strings.list, e->meta->string[index], len);
		*at = ++e->strings.n;
	}
	return at ? *at : 0;
}

/* A file name may be told without its folders; it then has an entry of its own. */
static uint32_t local_file(struct vc_encoder *e, uint32_t index)
{
	const char *base;
	uint32_t *at;
	bool new;

	if (!e->opt.redact || !index || index >= e->meta->strings)
		return local_string(e, index);
	at = place(e, &e->files, index, &new);
	if (at && new) {
		base = vc_site_public(e->meta->string[index]);
		put(e, &e->strings.list, strlen(base));
		put_bytes(e, &e->strings.list, base, strlen(base));
		*at = ++e->strings.n;
	}
	return at ? *at : 0;
}

static uint32_t local_stream(struct vc_encoder *e, uint32_t index)
{
	uint32_t *at;
	bool new;

	if (index >= e->meta->streams)
		index = 0;
	at = place(e, &e->streams, index, &new);
	if (at && new) {
		put(e, &e->streams.list, e->meta->stream[index]);
		*at = e->streams.n++;
	}
	return at ? *at : 0;
}

static bool path_room(struct vc_encoder *e, size_t n)
{
	if (vc_vec_room(e->path, e->path_cap, n + 1))
		return true;
	e->failed = true;
	return false;
}

static void new_frame(struct vc_encoder *e, const struct vc_frame *f, uint32_t *at)
{
	uint32_t function = local_string(e, f->function), file = local_file(e, f->file);

	put(e, &e->frames.list, f->parent ? e->frames.number[f->parent] : 0);
	put(e, &e->frames.list, function);
	put(e, &e->frames.list, file);
	put(e, &e->frames.list, f->line);
	*at = ++e->frames.n;
}

/* Callers first, so that a frame's parent has a smaller number than the frame. */
static uint32_t local_frame(struct vc_encoder *e, uint32_t index)
{
	uint32_t *at = NULL;
	size_t n = 0;
	bool new = true;

	if (!index || index >= e->meta->frames)
		return 0;
	for (uint32_t i = index; i; i = e->meta->frame[i].parent) {
		at = place(e, &e->frames, i, &new);
		if (!at || !path_room(e, n))
			return 0;
		if (!new)
			break;
		e->path[n++] = i;
	}
	while (n-- > 0)
		new_frame(e, &e->meta->frame[e->path[n]], &e->frames.number[e->path[n]]);
	return e->frames.number[index];
}

static uint32_t local_size(struct vc_encoder *e, uint64_t size)
{
	uint64_t *known = vc_map_get(&e->size_index, size);

	if (known)
		return (uint32_t)*known - 1;
	if (!vc_vec_room(e->top, e->top_cap, e->sizes + 1)) {
		e->failed = true;
		return 0;
	}
	put(e, &e->size_list, size);
	e->top[e->sizes] = 0;
	e->failed |= !vc_map_put(&e->size_index, size, e->sizes + 1);
	return e->sizes++;
}

static struct shape *local_shape(struct vc_encoder *e, const struct vc_event *ev, uint8_t fields)
{
	uint32_t stream = ev->stream == VC_STREAM_ALL ? 0 : local_stream(e, ev->stream) + 1;
	uint64_t key = (uint64_t)ev->kind | (uint64_t)ev->flags << 8 | (uint64_t)fields << 16 |
		(uint64_t)ev->device << 24 | (uint64_t)stream << 40, *known;

	known = vc_map_get(&e->shape_index, key);
	if (known) {
		put(e, &e->column[VCT_SHAPE], *known - 1);
		return &e->shape[*known - 1];
	}
	if (!vc_vec_room(e->shape, e->shape_cap, e->shapes + 1)) {
		e->failed = true;
		return NULL;
	}
	put_bytes(e, &e->shape_list, (const uint8_t[]){ ev->kind, ev->flags, fields }, 3);
	put(e, &e->shape_list, ev->device);
	put(e, &e->shape_list, stream);
	put(e, &e->column[VCT_SHAPE], e->shapes);
	e->failed |= !vc_map_put(&e->shape_index, key, e->shapes + 1);
	e->shape[e->shapes] = (struct shape){ .key = key };
	return &e->shape[e->shapes++];
}

/* ---- one event ---- */

static struct birth *birth_of(struct vc_encoder *e, uint64_t id)
{
	uint64_t k = id - e->id_base;

	return k < e->n && e->birth[k].known ? &e->birth[k] : NULL;
}

/* The newest hole of this size, which an allocation of the same size will most likely fill. */
static uint64_t predicted(struct vc_encoder *e, uint32_t size)
{
	uint32_t top = e->top[size];

	return top ? e->hole[top - 1].addr : 0;
}

static void leave_hole(struct vc_encoder *e, uint64_t addr, uint32_t size)
{
	e->hole[e->holes] = (struct hole){ addr, e->top[size] };
	e->top[size] = (uint32_t)++e->holes;
}

static void put_alloc(struct vc_encoder *e, const struct vc_event *ev, uint8_t fields)
{
	uint32_t size = local_size(e, ev->size);
	uint64_t k = ev->id - e->id_base;

	if (e->failed)
		return;
	fields |= VCT_F_SIZE | (ev->id == e->next_id ? 0 : VCT_F_ID);
	if (fields & VCT_F_ADDR && ev->addr == predicted(e, size)) {
		fields ^= VCT_F_ADDR | VCT_F_SAME_ADDR;
		e->top[size] = e->hole[e->top[size] - 1].below;
	}
	local_shape(e, ev, fields);
	if (fields & VCT_F_ID)
		put(e, &e->column[VCT_ID], vct_zigzag(ev->id - e->next_id));
	put(e, &e->column[VCT_SIZE], size);
	if (fields & VCT_F_ADDR)
		put(e, &e->column[VCT_ADDR],
		    vct_zigzag((ev->addr >> e->addr_shift) - e->last_addr));
	if (fields & (VCT_F_ADDR | VCT_F_SAME_ADDR))
		e->last_addr = ev->addr >> e->addr_shift;
	e->next_id = ev->id + 1;
	if (k < e->n)
		e->birth[k] = (struct birth){ ev->addr, ev->size, size, true };
}

static void put_reference(struct vc_encoder *e, const struct vc_event *ev, uint8_t fields)
{
	const struct birth *b = birth_of(e, ev->id);
	uint32_t size = 0;

	if (b && b->size == ev->size)
		fields = (uint8_t)((fields & ~VCT_F_SIZE) | VCT_F_SAME_SIZE);
	if (b && b->addr == ev->addr)
		fields = (uint8_t)((fields & ~VCT_F_ADDR) | VCT_F_SAME_ADDR);
	if (fields & VCT_F_SIZE)
		size = local_size(e, ev->size);
	else if (b)
		size = b->size_index;
	if (e->failed)
		return;
	local_shape(e, ev, fields);
	if (fields & VCT_F_ID)
		put(e, &e->column[VCT_ID], vct_zigzag(e->next_id - ev->id));
	if (fields & VCT_F_SIZE)
		put(e, &e->column[VCT_SIZE], size);
	if (fields & VCT_F_ADDR)
		put(e, &e->column[VCT_ADDR],
		    vct_zigzag((ev->addr >> e->addr_shift) - e->last_addr));
	if (ev->kind == VC_EV_FREE && fields & (VCT_F_SIZE | VCT_F_SAME_SIZE) && ev->addr)
		leave_hole(e, ev->addr, size);
}

static void put_other(struct vc_encoder *e, const struct vc_event *ev, uint8_t fields)
{
	uint32_t size =
		fields & VCT_F_SIZE && !vct_loose_size(ev->kind) ? local_size(e, ev->size) : 0;
	struct shape *s = local_shape(e, ev, fields);

	if (e->failed)
		return;
	if (fields & VCT_F_ID) {
		put(e, &e->column[VCT_ID], vct_zigzag(ev->id - s->id));
		s->id = ev->id;
	}
	if (fields & VCT_F_SIZE)
		put(e, &e->column[VCT_SIZE], vct_loose_size(ev->kind) ? ev->size : size);
	if (fields & VCT_F_ADDR) {
		put(e, &e->column[VCT_ADDR], vct_zigzag((ev->addr >> e->addr_shift) - s->addr));
		s->addr = ev->addr >> e->addr_shift;
	}
}

static void put_event(struct vc_encoder *e, const struct vc_event *ev)
{
	uint32_t site = local_frame(e, ev->site), label = local_string(e, ev->label);
	uint8_t fields = (uint8_t)((ev->time_ns ? VCT_F_TIME : 0) | (site ? VCT_F_SITE : 0) |
				   (label ? VCT_F_LABEL : 0) | (ev->size ? VCT_F_SIZE : 0) |
				   (ev->addr ? VCT_F_ADDR : 0));

	if (ev->kind == VC_EV_ALLOC)
		put_alloc(e, ev, fields);
	else if (vct_refers(ev->kind))
		put_reference(e, ev, ev->id ? fields | VCT_F_ID : fields);
	else
		put_other(e, ev, ev->id ? fields | VCT_F_ID : fields);
	if (ev->time_ns) {
		put(e, &e->column[VCT_TIME], vct_zigzag(ev->time_ns / e->time_unit - e->time));
		e->time = ev->time_ns / e->time_unit;
	}
	if (site)
		put(e, &e->column[VCT_SITE], site);
	if (label)
		put(e, &e->column[VCT_LABEL], label);
}

/* ---- one block ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

/* Times in whole microseconds and addresses in whole 512 bytes need no low digits. */
static void find_units(struct vc_encoder *e, struct vct_head *h)
{
	uint64_t unit = 0, addresses = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct vc_event *ev = &e->ev[i];

		addresses |= ev->addr;
		if (!ev->time_ns)
			continue;
		if (unit != 1)
			unit = gcd(ev->time_ns, unit);
		if (!h->first_ns)
			h->first_ns = ev->time_ns;
		h->last_ns = ev->time_ns;
	}
	e->time_unit = unit ? unit : 1;
	e->time = h->first_ns / e->time_unit;
	for (e->addr_shift = 0; addresses && !(addresses >> e->addr_shift & 1); )
		e->addr_shift++;
}

static void begin_block(struct vc_encoder *e)
{
	struct local *all[] = { &e->strings, &e->files, &e->frames, &e->streams };

	e->block++;
	for (size_t i = 0; i < 4; i++) {
		all[i]->n = 0;
		all[i]->list.n = 0;
	}
	for (size_t i = 0; i < VCT_COLUMNS; i++)
		e->column[i].n = 0;
	if (e->shape_index.slot)
		memset(e->shape_index.slot, 0,
		       (e->shape_index.mask + 1) * sizeof(*e->shape_index.slot));
	if (e->size_index.slot)
		memset(e->size_index.slot, 0,
		       (e->size_index.mask + 1) * sizeof(*e->size_index.slot));
	e->shape_index.n = e->size_index.n = 0;
	e->shape_list.n = e->size_list.n = e->raw.n = 0;
	e->shapes = e->sizes = 0;
	e->holes = 0;
	e->id_base = e->next_id;
	e->last_addr = 0;
	for (size_t i = 0; i < e->n; i++)
		e->birth[i].known = false;
}

static void put_list(struct vc_encoder *e, uint64_t n, const struct bytes *list)
{
	put(e, &e->raw, n);
	put_bytes(e, &e->raw, list->at, list->n);
}

static void assemble(struct vc_encoder *e, const struct vct_head *h)
{
	put(e, &e->raw, 1); /* layout */
	put(e, &e->raw, e->n);
	put(e, &e->raw, e->time_unit);
	put(e, &e->raw, h->first_ns / e->time_unit);
	put(e, &e->raw, e->addr_shift);
	put(e, &e->raw, e->id_base);
	put_list(e, e->strings.n, &e->strings.list);
	put_list(e, e->frames.n, &e->frames.list);
	put_list(e, e->streams.n, &e->streams.list);
	put_list(e, e->shapes, &e->shape_list);
	put_list(e, e->sizes, &e->size_list);
	for (size_t i = 0; i < VCT_COLUMNS; i++) {
		put(e, &e->raw, e->column[i].n);
		put_bytes(e, &e->raw, e->column[i].at, e->column[i].n);
	}
}

static void put_u32(struct vc_encoder *e, struct bytes *b, uint32_t v)
{
	uint8_t le[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };

	put_bytes(e, b, le, 4);
}

static int write_block(struct vc_encoder *e, struct vct_head *h, const void *raw, size_t n,
		       struct vc_error *err)
{
	uint8_t head[VCT_FRAME];
	size_t got;

	e->packed.n = 0;
	if (n > VCT_RAW_MAX)
		return vc_fail(err, VC_ENOSUP,
			       "a block of more than 256 MiB; use fewer events per block");
	VC_HAVE(room(e, &e->packed, ZSTD_compressBound(n)), "writing the trace", err);
	got = ZSTD_compress2(e->zs, e->packed.at, e->packed.cap, raw, n);
	if (ZSTD_isError(got))
		return vc_fail(err, VC_EINTERNAL, "zstd: %s", ZSTD_getErrorName(got));
	h->version = VCT_VERSION;
	h->sequence = e->sequence++;
	h->raw = (uint32_t)n;
	h->packed = (uint32_t)got;
	vct_head_put(h, head);
	vc_output_write(e->out, head, sizeof(head));
	vc_output_write(e->out, e->packed.at, got);
	put_u32(e, &e->seek, VCT_FRAME);
	put_u32(e, &e->seek, 0);
	put_u32(e, &e->seek, h->packed);
	put_u32(e, &e->seek, h->raw);
	e->since_header += VCT_FRAME + got;
	return e->failed ? vc_nomem(err, "writing the trace") : 0;
}

static int write_header(struct vc_encoder *e, bool complete, struct vc_error *err)
{
	struct vct_head h = { .type = VCT_HEADER, .id_base = e->next_id };
	size_t n = 0;
	char *text = vct_meta_text(e->meta, complete, e->opt.redact, &n, err);
	int rc = text ? write_block(e, &h, text, n, err) : VC_ENOMEM;

	free(text);
	e->since_header = 0;
	return rc;
}

int vc_encoder_flush(struct vc_encoder *e, struct vc_error *err)
{
	struct vct_head h = { .type = VCT_EVENTS };

	if (!e->n)
		return 0;
	begin_block(e);
	find_units(e, &h);
	h.events = (uint32_t)e->n;
	h.id_base = e->id_base;
	for (size_t i = 0; i < e->n && !e->failed; i++)
		put_event(e, &e->ev[i]);
	assemble(e, &h);
	if (e->failed)
		return vc_nomem(err, "writing the trace");
	e->n = 0;
	VC_TRY(write_block(e, &h, e->raw.at, e->raw.n, err));
	if (e->since_header >= REPEAT_HEADER)
		VC_TRY(write_header(e, false, err));
	return VC_OK;
}

int vc_encoder_append(struct vc_encoder *e, const struct vc_event *ev, size_t n,
		      struct vc_error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct vc_event *to = &e->ev[e->n++];

		*to = ev[i];
		if (e->opt.no_addresses && to->kind < VC_EV_SEGMENT_ALLOC)
			to->addr = 0;
		if (e->opt.no_stacks)
			to->site = 0;
		if (e->n == e->opt.block)
			VC_TRY(vc_encoder_flush(e, err));
	}
	return 0;
}

int vc_encoder_finish(struct vc_encoder *e, struct vc_error *err)
{
	uint32_t entries;
	uint8_t end[5] = { 0 };
	VC_TRY(vc_encoder_flush(e, err));
	VC_TRY(write_header(e, !e->opt.copy || e->meta->complete, err));
	entries = (uint32_t)(e->seek.n / 8);
	e->raw.n = 0;
	put_u32(e, &e->raw, VCT_SEEK_MAGIC);
	put_u32(e, &e->raw, (uint32_t)e->seek.n + 9);
	put_bytes(e, &e->raw, e->seek.at, e->seek.n);
	put_u32(e, &e->raw, entries);
	put_bytes(e, &e->raw, end, 1); /* descriptor: no checksums, zstd's own are in the frames */
	put_u32(e, &e->raw, VCT_SEEK_END);
	if (e->failed)
		return vc_nomem(err, "writing the trace");
	vc_output_write(e->out, e->raw.at, e->raw.n);
	return 0;
}

struct vc_encoder *vc_encoder_new(struct vc_output *out, const struct vc_meta *meta,
				  const struct vc_encoder_options *options, struct vc_error *err)
{
	struct vc_encoder *e = calloc(1, sizeof(*e));

	if (!e) {
		vc_nomem(err, "writing the trace");
		return NULL;
	}
	e->out = out;
	e->meta = meta;
	e->opt = options ? *options : (struct vc_encoder_options){ 0 };
	e->opt.level = e->opt.level ? e->opt.level : 3;
	e->opt.block = e->opt.block ? e->opt.block : BLOCK_EVENTS;
	e->next_id = 1;
	e->ev = malloc(e->opt.block * sizeof(*e->ev));
	e->birth = malloc(e->opt.block * sizeof(*e->birth));
	e->hole = malloc(e->opt.block * sizeof(*e->hole));
	e->zs = ZSTD_createCCtx();
	if (!e->ev || !e->birth || !e->hole || !e->zs) {
		vc_nomem(err, "writing the trace");
		vc_encoder_free(e);
		return NULL;
	}
	ZSTD_CCtx_setParameter(e->zs, ZSTD_c_compressionLevel, e->opt.level);
	ZSTD_CCtx_setParameter(e->zs, ZSTD_c_checksumFlag, 1);
	if (!write_header(e, false, err))
		return e;
	vc_encoder_free(e);
	return NULL;
}

static void free_bytes(struct vc_encoder *e)
{
	struct bytes *all[] = { &e->raw, &e->packed, &e->seek, &e->shape_list, &e->size_list };
	struct local *local[] = { &e->strings, &e->files, &e->frames, &e->streams };

	for (size_t i = 0; i < 5; i++)
		free(all[i]->at);
	for (size_t i = 0; i < VCT_COLUMNS; i++)
		free(e->column[i].at);
	for (size_t i = 0; i < 4; i++) {
		VC_FREE(local[i]->number, local[i]->block, local[i]->list.at);
	}
}

void vc_encoder_free(struct vc_encoder *e)
{
	if (!e)
		return;
	free_bytes(e);
	vc_map_fini(&e->shape_index);
	vc_map_fini(&e->size_index);
	ZSTD_freeCCtx(e->zs);
	VC_FREE(e->shape, e->top, e->hole, e->birth, e->path, e->ev, e);
}
