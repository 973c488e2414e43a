/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_rewind.c - see snapshot_rewind.h.
 *
 * Only live blocks and segments are tracked on the way back; free space follows from them at the
 * end, because PyTorch always merges free neighbours (c10/cuda/CUDACachingAllocator.cpp,
 * free_block). */
#include "simulator/sources/snapshot_rewind.h"

#include "common/map.h"
#include "common/vec.h"

/* c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer */
#define MIN_BLOCK ((uint64_t)512)
#define SMALL_SIZE ((uint64_t)1 << 20)
#define SMALL_BUFFER ((uint64_t)2 << 20)
#define LARGE_BUFFER ((uint64_t)20 << 20)

struct rewind {
	const struct snapshot_settings *settings;
	struct snapshot_heap *h;      /* segments sorted by address; blocks in any order */
	size_t segment_cap;
	struct vc_map at;             /* address -> index of block + 1 */
	uint32_t *spare; size_t spares, spare_cap;
	struct vc_error *err;
};

VC_COMPARE(compare_segments, struct snapshot_segment, VC_ORDER(x->addr, y->addr))
VC_COMPARE(compare_blocks, struct snapshot_block, VC_ORDER(x->addr, y->addr))

int snapshot_final_heap(const struct snapshot *s, uint16_t device, struct snapshot_heap *h,
			struct vc_error *err)
{
	size_t n = 0, blocks = 0;

	*h = (struct snapshot_heap){ 0 };
	for (size_t i = 0; i < s->segments; i++) {
		n += s->segment[i].device == device;
		blocks += s->segment[i].device == device ? s->segment[i].blocks : 0;
	}
	h->segment = calloc(n + 1, sizeof(*h->segment));
	h->block = calloc(blocks + 1, sizeof(*h->block));
	h->cap = blocks + 1;
	VC_HAVE(h->segment && h->block, "the heap of the snapshot", err);
	for (size_t i = 0; i < s->segments; i++)
		if (s->segment[i].device == device)
			h->segment[h->segments++] = s->segment[i];
	vc_sort(h->segment, h->segments, sizeof(*h->segment), compare_segments);
	for (size_t i = 0; i < h->segments; i++) {
		struct snapshot_segment *seg = &h->segment[i];

		if (seg->blocks)
			memcpy(h->block + h->blocks, s->block + seg->block,
			       seg->blocks * sizeof(*h->block));
		seg->block = h->blocks;
		h->blocks += seg->blocks;
	}
	return 0;
}

/* PyTorch's round_size, with roundup_power2_divisions. */
static uint64_t rounded(const struct snapshot_settings *s, uint64_t size)
{
	unsigned log = 0;
	uint64_t floor, divisions, step;

	if (size < MIN_BLOCK)
		return MIN_BLOCK;
	while (size >> (log + 1))
		log++;
	divisions = s->divisions[log < 20 ? 0 : log > 35 ? 15 : log - 20];
	if (divisions <= 1 || size <= MIN_BLOCK * divisions)
		return (size + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;
	floor = (uint64_t)1 << log;
	step = floor / divisions;
	if (size == floor || !step)
		return step ? size : floor << 1;
	return (size + step - 1) / step * step;
}

/* ---- segments ---- */

/* First segment that ends behind addr. */
static size_t find(const struct snapshot_heap *h, uint64_t addr)
{
	size_t low = 0, high = h->segments;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (h->segment[mid].addr + h->segment[mid].size > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int insert(struct rewind *r, size_t at, struct snapshot_segment seg)
{
	struct snapshot_heap *h = r->h;

	if (!vc_vec_room(h->segment, r->segment_cap, h->segments + 1))
		return vc_nomem(r->err, "the heap of the snapshot");
	memmove(h->segment + at + 1, h->segment + at, (h->segments - at) * sizeof(*h->segment));
	h->segment[at] = seg;
	h->segments++;
	return 0;
}

static void erase(struct snapshot_heap *h, size_t at)
{
	h->segments--;
	memmove(h->segment + at, h->segment + at + 1, (h->segments - at) * sizeof(*h->segment));
}

/* Undo segment_alloc or segment_map: the range goes. A run may lose its front, its end or its
 * middle. */
static int undo_alloc(struct rewind *r, const struct vc_event *e)
{
	struct snapshot_heap *h = r->h;
	size_t at = find(h, e->addr);
	struct snapshot_segment *seg = &h->segment[at], rest;
	uint64_t end = e->addr + e->size;

	if (at == h->segments || e->addr < seg->addr || end > seg->addr + seg->size ||
	    (e->kind == SNAP_SEGMENT_ALLOC && (e->addr != seg->addr || e->size != seg->size))) {
		h->contradictions++;
		return 0;
	}
	rest = *seg;
	rest.addr = end;
	rest.size = seg->addr + seg->size - end;
	seg->size = e->addr - seg->addr;
	if (seg->size && rest.size)
		return insert(r, at + 1, rest);
	if (rest.size)
		*seg = rest;
	else if (!seg->size)
		erase(h, at);
	return 0;
}

/* Undo segment_free or segment_unmap: the range is back, all free. Which pool it belonged to
 * shows in its size: small segments are exactly 2 MiB; mappings grow in steps of 2 or of 20 MiB.
 */
static int undo_free(struct rewind *r, const struct vc_event *e)
{
	struct snapshot_heap *h = r->h;
	size_t at = find(h, e->addr);
	bool map = e->kind == SNAP_SEGMENT_UNMAP;
	struct snapshot_segment seg = {
		.addr = e->addr, .size = e->size, .pool = e->id, .stream = e->stream,
		.device = e->device, .expandable = map, .small = map ? e->size % LARGE_BUFFER != 0 :
		e->size == SMALL_BUFFER,
	};
	struct snapshot_segment *left = at ? &h->segment[at - 1] : NULL;
	struct snapshot_segment *right = at < h->segments ? &h->segment[at] : NULL;

	if (!e->size || (right && right->addr < e->addr + e->size)) {
		h->contradictions++;
		return 0;
	}
	if (map && left && left->expandable && left->addr + left->size == e->addr &&
	    left->stream == e->stream) {
		left->size += e->size;
		if (right && right->expandable && right->addr == left->addr + left->size &&
		    right->stream == left->stream && right->small == left->small) {
			left->size += right->size;
			erase(h, at);
		}
		return 0;
	}
	if (map && right && right->expandable && right->addr == e->addr + e->size &&
	    right->stream == e->stream) {
		right->addr = e->addr;
		right->size += e->size;
		return 0;
	}
	return insert(r, at, seg);
}

/* ---- blocks ---- */

static int add_block(struct rewind *r, struct snapshot_block b)
{
	struct snapshot_heap *h = r->h;
	size_t at = h->blocks;

	if (r->spares) {
		at = r->spare[--r->spares];
	} else if (h->blocks == h->cap) {
		size_t cap = h->cap * 2;
		struct snapshot_block *bigger = realloc(h->block, cap * sizeof(*bigger));

		VC_HAVE(bigger, "the heap of the snapshot", r->err);
		h->block = bigger;
		h->cap = cap;
	}
	h->block[at] = b;
	h->blocks += at == h->blocks;
	return vc_map_put(&r->at, b.addr, at + 1) ? 0 :
						    vc_nomem(r->err, "the heap of the snapshot");
}

static int drop_block(struct rewind *r, uint64_t addr)
{
	uint64_t at = vc_map_take(&r->at, addr);

	if (!at)
		return 0;
	if (!vc_vec_room(r->spare, r->spare_cap, r->spares + 1))
		return vc_nomem(r->err, "the heap of the snapshot");
	r->spare[r->spares++] = (uint32_t)(at - 1);
	r->h->block[at - 1].state = SNAP_INACTIVE;
	return 0;
}

static int undo(struct rewind *r, const struct vc_event *e)
{
	uint64_t *at = e->kind <= SNAP_FREE_COMPLETED ? vc_map_get(&r->at, e->addr) : NULL;
	struct snapshot_block *b = at ? &r->h->block[*at - 1] : NULL;

	switch (e->kind) {
	case SNAP_ALLOC:
		r->h->contradictions += !b || b->state != SNAP_LIVE;
		return drop_block(r, e->addr);
	case SNAP_FREE_REQUESTED:
		r->h->contradictions += !b || b->state != SNAP_PENDING;
		if (b) {
			b->state = SNAP_LIVE;
			return 0;
		}
		return add_block(r, (struct snapshot_block){
			.addr = e->addr, .requested = e->size, .state = SNAP_LIVE });
	case SNAP_FREE_COMPLETED:
		if (b) {
			r->h->contradictions++;
			return 0;
		}
		return add_block(r, (struct snapshot_block){
			.addr = e->addr, .requested = e->size, .state = SNAP_PENDING });
	case SNAP_SEGMENT_ALLOC: case SNAP_SEGMENT_MAP: return undo_alloc(r, e);
	case SNAP_SEGMENT_FREE: case SNAP_SEGMENT_UNMAP: return undo_free(r, e);
	default: return 0;
	}
}

/* ---- the free space between ---- */

/* The last of n sorted blocks that begins before addr, plus 1. */
static size_t before(const struct snapshot_block *b, size_t n, uint64_t addr)
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (b[mid].addr < addr)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

/* An allocation is put at the front of a free block, and two free blocks never touch. So while a
 * block of the start lives, the lowest address that is handed out between it and the next block of
 * the start is its end. */
static void see_alloc(struct rewind *r, size_t n, uint64_t addr, const bool *gone)
{
	size_t k = before(r->h->block, n, addr), at;
	struct snapshot_block *b = k ? &r->h->block[k - 1] : NULL;
	const struct snapshot_segment *seg;

	if (!b || gone[k - 1] || (b->size && b->addr + b->size <= addr) ||
	    (k < n && b[1].addr <= addr))
		return;
	at = find(r->h, b->addr);
	seg = &r->h->segment[at];
	/* What follows a run of mapped pages may be mapped later. */
	if (at < r->h->segments && addr < seg->addr + seg->size + seg->expandable)
		b->size = addr - b->addr;
}

/* Ends of blocks whose real size nobody recorded, as later events prove them. */
static int find_ends(struct rewind *r, size_t n, const struct vc_event *e, size_t events)
{
	bool *gone = calloc(n + 1, sizeof(*gone));

	VC_HAVE(gone, "the heap of the snapshot", r->err);
	for (size_t i = 0; i < n; i++)
		gone[i] = r->h->block[i].size != 0;
	for (size_t i = 0; i < events; i++) {
		size_t k;

		if (e[i].kind == SNAP_ALLOC)
			see_alloc(r, n, e[i].addr, gone);
		if (e[i].kind != SNAP_FREE_COMPLETED)
			continue;
		k = before(r->h->block, n, e[i].addr);
		if (k < n && r->h->block[k].addr == e[i].addr)
			gone[k] = true;
	}
	free(gone);
	return 0;
}

/* Where a block ends whose real size nobody recorded: what is left behind it was split off unless
 * it was too small for that (should_split: 512 bytes in small pools and expandable segments, 1
 * MiB in large ones, never for blocks of max_split_size and more). */
static uint64_t end_of(const struct rewind *r, const struct snapshot_segment *seg,
		       const struct snapshot_block *b, uint64_t limit)
{
	uint64_t size = b->size ? b->size : rounded(r->settings, b->requested);
	uint64_t rest = limit - b->addr > size ? limit - b->addr - size : 0;

	if (b->size)
		return b->addr + size;
	if (!rest || (!seg->small && !seg->expandable && !r->settings->expandable &&
		      (rest <= SMALL_SIZE || size >= r->settings->max_split)))
		return limit;
	return b->addr + size;
}

struct tiles { struct snapshot_block *block; size_t n; };

static void tile(struct rewind *r, struct snapshot_segment *seg, size_t *from, size_t n,
		 struct tiles *to)
{
	const struct snapshot_block *b = r->h->block;
	uint64_t at = seg->addr, end = seg->addr + seg->size;

	seg->block = to->n;
	for (; *from < n && b[*from].addr < end; ++*from) {
		struct snapshot_block x = b[*from];
		uint64_t limit = *from + 1 < n && b[*from + 1].addr < end ? b[*from + 1].addr : end;

		if (x.addr < at) { /* before the segment, or inside the block before */
			r->h->contradictions++;
			continue;
		}
		if (x.addr > at)
			to->block[to->n++] =
				(struct snapshot_block){ .addr = at, .size = x.addr - at };
		at = end_of(r, seg, &x, limit);
		if (at > limit || at - x.addr < x.requested)
			r->h->contradictions++;
		if (at > limit)
			at = limit;
		x.size = at - x.addr;
		to->block[to->n++] = x;
	}
	if (at < end)
		to->block[to->n++] = (struct snapshot_block){ .addr = at, .size = end - at };
	seg->blocks = to->n - seg->block;
}

static int lay_out(struct rewind *r, const struct vc_event *e, size_t events)
{
	struct snapshot_heap *h = r->h;
	struct tiles to = { NULL, 0 };
	size_t n = 0, from = 0;

	for (size_t i = 0; i < h->blocks; i++)
		if (h->block[i].state != SNAP_INACTIVE)
			h->block[n++] = h->block[i];
	vc_sort(h->block, n, sizeof(*h->block), compare_blocks);
	if (find_ends(r, n, e, events))
		return VC_ENOMEM;
	to.block = malloc((2 * n + h->segments + 1) * sizeof(*to.block));
	VC_HAVE(to.block, "the heap of the snapshot", r->err);
	for (size_t i = 0; i < h->segments; i++) {
		for (; from < n && h->block[from].addr < h->segment[i].addr; from++)
			h->contradictions++; /* in no segment */
		tile(r, &h->segment[i], &from, n, &to);
	}
	h->contradictions += n - from;
	free(h->block);
	h->block = to.block;
	h->blocks = h->cap = to.n;
	return 0;
}

int snapshot_start_heap(const struct snapshot *s, uint16_t device, struct snapshot_heap *h,
			struct vc_error *err)
{
	struct rewind r = { .settings = &s->settings, .h = h, .err = err };
	const struct vc_event *e = NULL;
	size_t events = 0;
	int rc = snapshot_final_heap(s, device, h, err);

	r.segment_cap = h->segments + 1;
	for (size_t i = 0; i < h->blocks && !rc; i++)
		if (h->block[i].state != SNAP_INACTIVE &&
		    !vc_map_put(&r.at, h->block[i].addr, i + 1))
			rc = vc_nomem(err, "the heap of the snapshot");
	if (device < s->lists && s->list[device].n) {
		e = s->ev + s->list[device].first;
		events = s->list[device].n;
		for (size_t i = events; i-- > 0 && !rc; )
			rc = undo(&r, &e[i]);
	}
	if (!rc)
		rc = lay_out(&r, e, events);
	vc_map_fini(&r.at);
	free(r.spare);
	return rc;
}

void snapshot_heap_fini(struct snapshot_heap *h)
{
	free(h->segment);
	free(h->block);
	*h = (struct snapshot_heap){ 0 };
}
