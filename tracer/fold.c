/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - see fold.h.
 *
 * The blocks of a segment are known exactly: their real sizes are in the records, and PyTorch
 * merges free neighbours, so what lies between two blocks is one free block. Whose a segment is
 * (stream, pool, small or large) shows the first request that is served from it. */
#include "tracer/fold.h"

#include "common/map.h"
#include "common/vec.h"

/* kSmallSize of c10/core/CachingDeviceAllocator.h: the largest request of the small pool. */
enum { SMALL = 1 << 20, MIN_BLOCK = 512, SETTINGS = 64 };

struct block { struct vc_record rec; bool pending, used; uint32_t uses; /* the last + 1 */ };
struct use { struct vc_record rec; uint32_t before; };
struct segment {
	uint64_t addr, size, stream, first, second; /* first, second: the pool */
	uint16_t device;
	bool expandable, small, owned;
};
struct pool { uint64_t first, second; int64_t uses; uint16_t device; uint8_t flags; };

struct vc_fold {
	struct block *block;
	size_t blocks, idle;            /* idle: the last unused + 1; its `uses` is the next */
	struct use *use;
	size_t uses, idle_uses;
	struct vc_map at;               /* index of a block + 1, by device and address */
	struct vc_map early;            /* vc_journal_known */
	struct segment *segment;
	size_t segments, unowned;
	struct pool *pool;
	size_t pools;
	struct vc_record *scope;        /* POOL_BEGIN without its end yet */
	size_t scopes;
	struct vc_record *outside;
	size_t outsides;
	struct vc_record setting[SETTINGS]; /* CONFIGURE and STREAM_CLASS, the newest at the end */
	size_t settings;
	struct vc_record *latest;       /* DEVICE_SAMPLE, FRACTION: the last of each device */
	size_t latests;
	struct vc_fold_totals t;
};

struct vc_fold *vc_fold_new(void)
{
	return calloc(1, sizeof(struct vc_fold));
}

void vc_fold_free(struct vc_fold *f)
{
	if (!f)
		return;
	vc_map_fini(&f->at);
	vc_map_fini(&f->early);
	VC_FREE(f->block, f->use, f->segment, f->pool, f->scope, f->outside, f->latest, f);
}

struct vc_fold_totals vc_fold_totals(const struct vc_fold *f)
{
	return f->t;
}

static uint64_t key_of(uint16_t device, uint64_t addr)
{
	return addr ^ (uint64_t)device << 52;
}

/* ---- blocks ---- */

static bool is_in(const struct segment *s, const struct vc_record *rec)
{
	return s->addr < rec->addr + rec->extra && rec->addr < s->addr + s->size;
}

/* The pool into which requests of the stream go now. */
static const struct vc_record *scope_of(const struct vc_fold *f, const struct vc_record *rec)
{
	for (size_t i = f->scopes; i-- > 0;)
		if (f->scope[i].device == rec->device &&
		    (f->scope[i].stream == UINT64_MAX || f->scope[i].stream == rec->stream))
			return &f->scope[i];
	return NULL;
}

static void own(struct vc_fold *f, const struct vc_record *rec)
{
	const struct vc_record *scope = scope_of(f, rec);
	uint64_t size = (rec->size + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;

	for (size_t i = 0; i < f->segments; i++) {
		struct segment *s = &f->segment[i];

		if (s->owned || !is_in(s, rec))
			continue;
		s->owned = true;
		s->device = rec->device;
		s->stream = rec->stream;
		s->small = size <= SMALL;
		s->first = scope ? scope->addr : 0;
		s->second = scope ? scope->extra : 0;
		f->unowned--;
	}
}

static void drop_uses(struct vc_fold *f, struct block *b)
{
	while (b->uses) {
		uint32_t i = b->uses - 1;

		b->uses = f->use[i].before;
		f->use[i].before = (uint32_t)f->idle_uses;
		f->idle_uses = i + 1u;
	}
}

static void drop_block(struct vc_fold *f, uint64_t key)
{
	uint64_t i = vc_map_take(&f->at, key);
	struct block *b;

	if (!i)
		return;
	b = &f->block[i - 1];
	if (!b->pending)
		f->t.allocated -= b->rec.extra;
	drop_uses(f, b);
	b->used = false;
	b->uses = (uint32_t)f->idle;
	f->idle = i;
	f->t.blocks--;
}

static bool add_block(struct vc_fold *f, const struct vc_record *rec, bool pending)
{
	uint64_t key = key_of(rec->device, rec->addr);
	struct block *b;
	size_t i;

	drop_block(f, key);
	if (f->idle) {
		i = f->idle - 1;
		f->idle = f->block[i].uses;
	} else {
		if (!vc_vec_one(f->block, f->blocks))
			return false;
		i = f->blocks++;
	}
	b = &f->block[i];
	*b = (struct block){ .rec = *rec, .pending = pending, .used = true };
	if (!pending)
		f->t.allocated += rec->extra;
	f->t.blocks++;
	return vc_map_put(&f->at, key, i + 1);
}

static struct block *block_at(const struct vc_fold *f, const struct vc_record *rec)
{
	const uint64_t *i = vc_map_get(&f->at, key_of(rec->device, rec->addr));

	return i ? &f->block[*i - 1] : NULL;
}

static void free_block(struct vc_fold *f, const struct vc_record *rec)
{
	struct block *b = block_at(f, rec);

	if (!b || b->pending)
		return;
	if (!(rec->flags & VC_EVF_PENDING)) {
		drop_block(f, key_of(rec->device, rec->addr));
		return;
	}
	f->t.allocated -= b->rec.extra;
	b->pending = true;
	drop_uses(f, b);
}

static bool add_use(struct vc_fold *f, const struct vc_record *rec)
{
	struct block *b = block_at(f, rec);
	size_t i;

	if (!b)
		return true;
	if (f->idle_uses) {
		i = f->idle_uses - 1;
		f->idle_uses = f->use[i].before;
	} else {
		if (!vc_vec_one(f->use, f->uses))
			return false;
		i = f->uses++;
	}
	f->use[i] = (struct use){ *rec, b->uses };
	b->uses = (uint32_t)i + 1;
	return true;
}

/* ---- segments ---- */

static bool add_segment(struct vc_fold *f, const struct vc_record *rec, bool expandable)
{
	if (!vc_vec_one(f->segment, f->segments))
		return false;
	f->segment[f->segments++] = (struct segment){ .addr = rec->addr, .size = rec->size,
		.device = rec->device, .expandable = expandable, .small = rec->size <= 2 * SMALL };
	f->unowned++;
	f->t.reserved += rec->size;
	return true;
}

static void remove_segment(struct vc_fold *f, size_t i)
{
	f->t.reserved -= f->segment[i].size;
	f->unowned -= !f->segment[i].owned;
	f->segment[i] = f->segment[--f->segments];
}

/* What cudaFree gives back is a whole segment; an unmapping may be a part of several. */
static bool cut_segments(struct vc_fold *f, const struct vc_record *rec)
{
	uint64_t end = rec->addr + rec->size;

	for (size_t i = f->segments; i-- > 0;) {
		struct segment s = f->segment[i];

		if (!s.expandable || s.addr >= end || rec->addr >= s.addr + s.size)
			continue;
		remove_segment(f, i);
		for (int side = 0; side < 2; side++) {
			struct segment part = s;

			part.addr = side && end > s.addr ? end : s.addr;
			part.size = s.addr + s.size - part.addr;
			if (!side)
				part.size = rec->addr > s.addr ? rec->addr - s.addr : 0;
			if (!part.size || part.addr >= s.addr + s.size)
				continue;
			if (!vc_vec_one(f->segment, f->segments))
				return false;
			f->segment[f->segments++] = part;
			f->unowned += !part.owned;
			f->t.reserved += part.size;
		}
	}
	return true;
}

static void free_segment(struct vc_fold *f, const struct vc_record *rec)
{
	for (size_t i = 0; i < f->segments; i++)
		if (!f->segment[i].expandable && f->segment[i].addr == rec->addr) {
			remove_segment(f, i);
			return;
		}
}

/* And what is not behind a segment now. */
static bool put_outside(struct vc_fold *f, const struct vc_record *rec)
{
	if (rec->kind == VC_EV_OUTSIDE_ALLOC || rec->kind == VC_EV_PAGES_OUT) {
		if (!vc_vec_one(f->outside, f->outsides))
			return false;
		f->outside[f->outsides++] = *rec;
		return true;
	}
	for (size_t i = f->outsides; i-- > 0;)
		if (f->outside[i].addr == rec->addr &&
		    (f->outside[i].kind == VC_EV_OUTSIDE_ALLOC) ==
		    (rec->kind == VC_EV_OUTSIDE_FREE)) {
			f->outside[i] = f->outside[--f->outsides];
			break;
		}
	return true;
}

static bool put_segment(struct vc_fold *f, const struct vc_record *rec)
{
	int known = vc_journal_known(&f->early, rec);

	if (known)
		return known > 0;
	if (rec->kind == VC_EV_SEGMENT_ALLOC)
		return add_segment(f, rec, false);
	if (rec->kind == VC_EV_SEGMENT_FREE)
		free_segment(f, rec);
	return put_outside(f, rec);
}

/* ---- pools and settings ---- */

static bool put_pool(struct vc_fold *f, const struct vc_record *rec)
{
	size_t i = 0;

	while (i < f->pools && (f->pool[i].first != rec->addr || f->pool[i].second != rec->extra ||
				f->pool[i].device != rec->device))
		i++;
	if (i == f->pools) {
		if (!vc_vec_one(f->pool, f->pools))
			return false;
		f->pool[f->pools++] = (struct pool){ rec->addr, rec->extra, 0, rec->device, 0 };
	}
	if (rec->kind == VC_EV_POOL_CREATE)
		f->pool[i].flags |= rec->flags &
				    (VC_EVF_USE_ON_OOM | VC_EVF_NO_SPLIT | VC_EVF_SERVED);
	f->pool[i].uses += rec->kind == VC_EV_POOL_RELEASE ? -1 : rec->kind != VC_EV_POOL_END;
	if (rec->kind == VC_EV_POOL_BEGIN) {
		if (!vc_vec_one(f->scope, f->scopes))
			return false;
		f->scope[f->scopes++] = *rec;
	}
	for (size_t k = f->scopes; rec->kind == VC_EV_POOL_END && k-- > 0;)
		if (f->scope[k].addr == rec->addr && f->scope[k].extra == rec->extra &&
		    f->scope[k].device == rec->device) {
			memmove(&f->scope[k], &f->scope[k + 1],
				(--f->scopes - k) * sizeof(*f->scope));
			break;
		}
	if (f->pool[i].uses <= 0)
		f->pool[i] = f->pool[--f->pools];
	return true;
}

static void put_setting(struct vc_fold *f, const struct vc_record *rec)
{
	if (f->settings == SETTINGS)
		memmove(&f->setting[0], &f->setting[1], --f->settings * sizeof(*f->setting));
	f->setting[f->settings++] = *rec;
}

static bool put_latest(struct vc_fold *f, const struct vc_record *rec)
{
	size_t i = 0;

	if (rec->kind == VC_EV_DEVICE_SAMPLE) {
		f->t.free = rec->addr;
		f->t.total = rec->size;
	}
	while (i < f->latests &&
	       (f->latest[i].kind != rec->kind || f->latest[i].device != rec->device))
		i++;
	if (i == f->latests) {
		if (!vc_vec_one(f->latest, f->latests))
			return false;
		f->latests++;
	}
	f->latest[i] = *rec;
	return true;
}

bool vc_fold_put(struct vc_fold *f, const struct vc_record *rec)
{
	if (rec->flags & VC_RECF_DRIVER && (rec->kind == VC_EV_ALLOC || rec->kind == VC_EV_FREE) &&
	    vc_journal_known(&f->early, rec) < 0)
		return false;
	switch (rec->kind) {
	case VC_EV_ALLOC:
		if (f->unowned)
			own(f, rec);
		return add_block(f, rec, false);
	case VC_EV_FREE:
		free_block(f, rec);
		return true;
	case VC_EV_FREE_DONE:
		if (block_at(f, rec) && block_at(f, rec)->pending)
			drop_block(f, key_of(rec->device, rec->addr));
		return true;
	case VC_EV_USE: return add_use(f, rec);
	case VC_EV_SEGMENT_ALLOC: case VC_EV_SEGMENT_FREE:
	case VC_EV_OUTSIDE_ALLOC: case VC_EV_OUTSIDE_FREE: return put_segment(f, rec);
	case VC_EV_SEGMENT_MAP: return add_segment(f, rec, true);
	case VC_EV_SEGMENT_UNMAP: return cut_segments(f, rec);
	case VC_EV_PAGES_OUT: case VC_EV_PAGES_IN: return put_outside(f, rec);
	case VC_EV_POOL_CREATE: case VC_EV_POOL_BEGIN: case VC_EV_POOL_END: case VC_EV_POOL_RELEASE:
		return put_pool(f, rec);
	case VC_EV_CONFIGURE: case VC_EV_STREAM_CLASS:
		put_setting(f, rec);
		return true;
	case VC_EV_FRACTION: case VC_EV_DEVICE_SAMPLE: return put_latest(f, rec);
	case VC_EV_HEAP_SEGMENT:
		if (!add_segment(f, rec, rec->flags & VC_EVF_EXPANDABLE))
			return false;
		f->unowned--;
		f->segment[f->segments - 1].owned = true;
		f->segment[f->segments - 1].small = rec->flags & VC_EVF_SMALL;
		f->segment[f->segments - 1].stream = rec->stream;
		f->segment[f->segments - 1].first = rec->extra;
		f->segment[f->segments - 1].second = rec->reserved;
		return true;
	case VC_EV_HEAP_BLOCK:
		return !(rec->flags & (VC_EVF_LIVE | VC_EVF_PENDING)) ||
		       add_block(f, rec, rec->flags & VC_EVF_PENDING);
	case VC_REC_KNOWN: return vc_map_put(&f->early, rec->addr, rec->size);
	default: return true;
	}
}

/* ---- out ---- */

struct out { struct vc_record *rec; size_t n; uint64_t time_ns; bool nomem; };

static void emit(struct out *o, struct vc_record rec)
{
	if (o->nomem || !vc_vec_one(o->rec, o->n)) {
		o->nomem = true;
		return;
	}
	rec.seq = 0;
	rec.time_ns = o->time_ns;
	o->rec[o->n++] = rec;
}

VC_COMPARE(by_segment, struct segment,
	   VC_THEN(VC_ORDER(x->device, y->device), VC_ORDER(x->addr, y->addr)))

static int by_block(const void *a, const void *b)
{
	const struct vc_record *x = &(*(struct block *const *)a)->rec;
	const struct vc_record *y = &(*(struct block *const *)b)->rec;

	return x->device != y->device ? (x->device < y->device ? -1 : 1) :
	       x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Runs of one expandable segment that were mapped one after the other are one. */
static bool is_same_run(const struct segment *a, const struct segment *b)
{
	return a->expandable && b->expandable && a->device == b->device &&
	       a->addr + a->size == b->addr &&
	       (!b->owned || !a->owned || (a->stream == b->stream && a->small == b->small &&
					   a->first == b->first && a->second == b->second));
}

static size_t join_runs(struct segment *s, size_t n)
{
	size_t k = 0;

	for (size_t i = 1; i < n; i++)
		if (is_same_run(&s[k], &s[i])) {
			struct segment whole = s[k].owned ? s[k] : s[i];

			whole.addr = s[k].addr;
			whole.size = s[k].size + s[i].size;
			s[k] = whole;
		} else {
			s[++k] = s[i];
		}
	return n ? k + 1 : 0;
}

static void emit_free(struct out *o, const struct segment *s, uint64_t addr)
{
	emit(o, (struct vc_record){ .kind = VC_EV_HEAP_BLOCK, .addr = addr, .stream = s->stream,
				    .device = s->device });
}

/* A segment and the blocks in it, of which b[0] is the first that is not before it. How many. */
static size_t emit_segment(struct out *o, const struct segment *s, struct block **b, size_t n)
{
	uint64_t at = s->addr, end = s->addr + s->size;
	size_t i = 0;

	emit(o, (struct vc_record){ .kind = VC_EV_HEAP_SEGMENT, .addr = s->addr, .size = s->size,
		.stream = s->stream, .extra = s->first, .reserved = s->second,
		.device = s->device, .flags = (uint8_t)((s->small ? VC_EVF_SMALL : 0) |
		(s->expandable ? VC_EVF_EXPANDABLE : 0)) });
	for (; i < n && b[i]->rec.device == s->device && b[i]->rec.addr < end; i++) {
		struct vc_record r = b[i]->rec;

		if (r.addr > at)
			emit_free(o, s, at);
		r.kind = VC_EV_HEAP_BLOCK;
		r.flags = b[i]->pending ? VC_EVF_PENDING : VC_EVF_LIVE;
		emit(o, r);
		at = r.addr + r.extra;
	}
	if (at < end)
		emit_free(o, s, at);
	return i;
}

static bool is_before(const struct block *b, const struct segment *s)
{
	return b->rec.device < s->device ||
	       (b->rec.device == s->device && b->rec.addr < s->addr);
}

/* Blocks that lie in no segment (the CPU's, those of the driver's pools) are asked for anew, behind
 * the heap: no heap event may follow another event of its device. */
static void emit_heap(struct out *o, struct segment *s, size_t segments, struct block **b, size_t n)
{
	size_t k = 0, others = 0;

	for (size_t i = 0; i < segments; i++) {
		while (k < n && is_before(b[k], &s[i]))
			b[others++] = b[k++];
		k += emit_segment(o, &s[i], &b[k], n - k);
	}
	while (k < n)
		b[others++] = b[k++];
	for (size_t i = 0; i < others; i++) {
		struct vc_record r = b[i]->rec;

		r.kind = VC_EV_ALLOC;
		r.flags = r.flags & VC_RECF_BLOCK_ONLY;
		if (!b[i]->pending)
			emit(o, r);
	}
}

static void emit_rest(const struct vc_fold *f, struct out *o)
{
	for (size_t i = 0; i < f->latests; i++)
		emit(o, f->latest[i]);
	for (size_t i = 0; i < f->settings; i++)
		emit(o, f->setting[i]);
	for (size_t i = 0; i < f->outsides; i++)
		emit(o, f->outside[i]);
	for (size_t i = 0; i < f->pools; i++) {
		const struct pool *p = &f->pool[i];
		int64_t uses = p->uses;

		for (size_t k = 0; k < f->scopes; k++) /* to begin is a use of its own */
			uses -= f->scope[k].addr == p->first && f->scope[k].extra == p->second &&
				f->scope[k].device == p->device;
		for (; uses > 0; uses--)
			emit(o, (struct vc_record){ .kind = VC_EV_POOL_CREATE, .addr = p->first,
				.extra = p->second, .device = p->device, .flags = p->flags });
	}
	for (size_t i = 0; i < f->scopes; i++)
		emit(o, f->scope[i]);
	for (size_t i = 0; i < f->blocks; i++) {
		uint32_t u = f->block[i].used ? f->block[i].uses : 0;

		for (; u; u = f->use[u - 1].before)
			emit(o, f->use[u - 1].rec);
	}
	for (size_t i = 0; f->early.slot && i <= f->early.mask; i++)
		if (f->early.slot[i].value)
			emit(o, (struct vc_record){ .kind = VC_REC_KNOWN,
				.addr = f->early.slot[i].key, .size = f->early.slot[i].value });
}

struct vc_record *vc_fold_records(struct vc_fold *f, uint64_t time_ns, size_t *n)
{
	struct block **b = calloc(f->t.blocks + 1, sizeof(struct block *));
	struct segment *s = calloc(f->segments + 1, sizeof(*s));
	struct out o = { .time_ns = time_ns, .nomem = !b || !s };
	size_t k = 0;

	for (size_t i = 0; !o.nomem && i < f->blocks; i++)
		if (f->block[i].used)
			b[k++] = &f->block[i];
	if (!o.nomem) {
		qsort(b, k, sizeof(struct block *), by_block);
		if (f->segments)
			memcpy(s, f->segment, f->segments * sizeof(*s));
		qsort(s, f->segments, sizeof(*s), by_segment);
		emit_heap(&o, s, join_runs(s, f->segments), b, k);
		emit_rest(f, &o);
	}
	o.nomem = o.nomem || !vc_vec_one(o.rec, o.n); /* not NULL when there is nothing */
	if (o.nomem) {
		free(o.rec);
		o.rec = NULL;
		o.n = 0;
	}
	VC_FREE(b, s);
	*n = o.n;
	return o.rec;
}
