/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.c - see chunks.h */
#include "simulator/models/chunks.h"

/* ---- lists ---- */
uint32_t vc_chunks_same(const struct vc_chunks *k, uint32_t list, const struct vc_chunk *x)
{
	uint32_t n = k->list[list]->root[vc_fit_class(x->size)];

	while (n && (k->c[n].size != x->size || k->c[n].addr != x->addr))
		n = k->c[n].kid[vc_fit_before(&k->c[n], x)];
	return n;
}

/* ---- chunks ---- */
bool vc_chunks_more_room(struct vc_chunks *k, size_t more, uint32_t list)
{
	for (; k->lists <= list; k->lists++) {
		k->used = k->used ? k->used : 1; /* slot 0 means none */
		if (!vc_vec_one(k->list, k->lists) ||
		    !(k->list[k->lists] = calloc(1, sizeof(**k->list))))
			return false;
	}
	return vc_vec_room(k->c, k->cap, k->used + more) &&
	       vc_vec_room(k->region, k->room, k->regions + 1);
}

uint32_t vc_chunks_new(struct vc_chunks *k, uint64_t addr, uint64_t size, uint32_t list)
{
	uint32_t i = k->spare;

	if (i)
		k->spare = k->c[i].kid[0];
	else
		i = k->used++;
	k->c[i] = (struct vc_chunk){ .addr = addr, .size = size, .stream = list };
	return i;
}

void vc_chunks_drop(struct vc_chunks *k, uint32_t i)
{
	k->c[i].live = false;
	k->c[i].kid[0] = k->spare;
	k->spare = i;
}

uint32_t vc_chunks_region(struct vc_chunks *k, uint64_t addr, uint64_t size, uint32_t list)
{
	uint32_t i = vc_chunks_new(k, addr, size, list);
	size_t at = vc_first_above(k->region, k->regions, addr, addr);
	struct vc_region *r = &k->region[at];

	memmove(r + 1, r, (k->regions++ - at) * sizeof(*r));
	*r = (struct vc_region){ addr, size, i };
	vc_chunks_put(k, i);
	return i;
}

/* Chunk i, in no list, keeps `size` bytes; the rest behind it, in no list either. */
static uint32_t split(struct vc_chunks *k, uint32_t i, uint64_t size)
{
	uint32_t rest = vc_chunks_new(k, k->c[i].addr + size, k->c[i].size - size,
				      k->c[i].stream);

	k->c[i].size = size;
	k->c[rest].prev = i;
	k->c[rest].next = k->c[i].next;
	k->c[i].next = rest;
	if (k->c[rest].next)
		k->c[k->c[rest].next].prev = rest;
	return rest;
}

void vc_chunks_take(struct vc_chunks *k, uint32_t i, uint64_t size)
{
	vc_chunks_cut(k, i);
	if (k->c[i].size > size)
		vc_chunks_put(k, split(k, i, size));
}

/* A chunk in no list takes in the one behind it, in none either. */
static void absorb(struct vc_chunks *k, uint32_t i)
{
	uint32_t n = k->c[i].next;

	k->c[i].size += k->c[n].size;
	k->c[i].next = k->c[n].next;
	if (k->c[n].next)
		k->c[k->c[n].next].prev = i;
	vc_chunks_drop(k, n);
}

static bool joins(const struct vc_chunks *k, uint32_t i, uint32_t list)
{
	return i && !k->c[i].live && k->c[i].stream == list;
}

uint32_t vc_chunks_free(struct vc_chunks *k, uint32_t list, uint32_t i)
{
	uint32_t n = k->c[i].next, p = k->c[i].prev;

	k->c[i].stream = list;
	if (joins(k, n, list)) {
		vc_chunks_cut(k, n);
		absorb(k, i);
	}
	if (joins(k, p, list)) {
		vc_chunks_cut(k, p);
		absorb(k, p);
		i = p;
	}
	vc_chunks_put(k, i);
	return i;
}

void vc_chunks_move(struct vc_chunks *k, uint32_t from, uint32_t to)
{
	for (uint32_t n = 0; (n = vc_fit_up(k->list[from], n)) < VC_FIT_CLASSES; ) {
		uint32_t i = k->list[from]->root[n];

		vc_chunks_cut(k, i);
		vc_chunks_free(k, to, i);
	}
}

/* ---- regions ---- */
bool vc_chunks_idle(const struct vc_chunks *k, const struct vc_region *r)
{
	return !k->c[r->first].live && k->c[r->first].size == r->size;
}

void vc_chunks_give_back(struct vc_model *m, struct vc_region *r, uint32_t stream)
{
	vc_chunks_cut(m->state, r->first);
	vc_chunks_drop(m->state, r->first);
	r->first = 0;
	vc_device_free(m->device, r->addr, r->size);
	vc_model_tell(m, VC_TR_SEGMENT_FREE, stream, r->addr, r->size);
}

void vc_chunks_pack(struct vc_chunks *k)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < k->regions; i++)
		if (k->region[i].first)
			k->region[kept++] = k->region[i];
	k->regions = kept;
}

/* ---- what all models do around it ---- */
void vc_chunks_serve(struct vc_model *m, uint32_t i, const struct vc_request *rq,
		     struct vc_block *out)
{
	struct vc_chunks *k = m->state;
	struct vc_chunk *c = &k->c[i];

	c->live = true;
	c->shared = false;
	c->requested = rq->size;
	c->id = rq->id;
	c->stream = rq->stream;
	m->now.requested += rq->size;
	m->now.allocated += c->size;
	m->now.active += c->size;
	*out = (struct vc_block){ c->addr, c->size, (void *)(uintptr_t)i };
}

uint32_t vc_chunks_unserve(struct vc_model *m, const struct vc_block *b)
{
	const struct vc_chunks *k = m->state;
	uint32_t i = (uint32_t)(uintptr_t)b->cookie;

	if (i) {
		m->now.requested -= k->c[i].requested;
		m->now.allocated -= k->c[i].size;
		m->now.active -= k->c[i].size;
	}
	return i;
}

/* By address: which goes first decides where the device puts what comes next. */
int vc_chunks_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	struct vc_chunks *k = m->state;

	for (uint32_t i = 0; i < k->regions; i++) {
		struct vc_region *r = &k->region[i];

		if (vc_chunks_idle(k, r))
			vc_chunks_give_back(m, r, k->by_stream ? k->c[r->first].stream : 0);
	}
	vc_chunks_pack(k);
	return VC_DONE;
}

void vc_chunks_fini(struct vc_model *m)
{
	struct vc_chunks *k = m->state;

	for (uint32_t i = 0; i < k->lists; i++)
		free(k->list[i]);
	VC_FREE(k->list, k->c, k->region);
}

void vc_model_tell(struct vc_model *m, enum vc_trace_kind kind, uint32_t stream, uint64_t addr,
		   uint64_t size)
{
	struct vc_trace_entry e = { .kind = kind, .stream = stream, .addr = addr, .size = size };

	if (kind == VC_TR_SEGMENT_ALLOC || kind == VC_TR_SEGMENT_MAP)
		m->now.reserved += size;
	else if (kind == VC_TR_SEGMENT_FREE || kind == VC_TR_SEGMENT_UNMAP)
		m->now.reserved -= size;
	m->now.segments += kind == VC_TR_SEGMENT_ALLOC;
	m->now.segments -= kind == VC_TR_SEGMENT_FREE;
	if (m->trace)
		m->trace(m->trace_arg, &e);
}

int vc_model_refuse(struct vc_model *m, const struct vc_request *rq, uint64_t rounded,
		    uint64_t alloc_size)
{
	m->refusal = (struct vc_refusal){ rounded, alloc_size, vc_device_available(m->device) };
	m->now.ooms++;
	vc_model_tell(m, VC_TR_OOM, rq->stream, m->refusal.device_free, rounded);
	return VC_REFUSED;
}

/* ---- looking at it ---- */
static int walk_region(const struct vc_chunks *k, const struct vc_region *r, vc_extent_fn *fn,
		       void *arg)
{
	uint32_t stream = k->by_stream ? k->c[r->first].stream : 0;
	struct vc_extent x = { .what = VC_X_SEGMENT, .addr = r->addr, .size = r->size,
			       .stream = stream };
	int rc;

	for (uint32_t i = r->first; i; i = k->c[i].next)
		if (k->c[i].live) {
			x.requested += k->c[i].requested;
			x.active += k->c[i].size;
		}
	x.allocated = x.active;
	rc = fn(arg, &x);
	for (uint32_t i = r->first; i && rc >= 0; i = k->c[i].next) {
		const struct vc_chunk *c = &k->c[i];

		x = (struct vc_extent){ .what = c->live ? VC_X_LIVE : VC_X_FREE, .addr = c->addr,
					.size = c->size, .stream = c->live ? c->stream : stream,
					.requested = c->live ? c->requested : 0,
					.id = c->live ? c->id : 0 };
		rc = fn(arg, &x);
	}
	return rc;
}

int vc_chunks_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct vc_chunks *k = m->state;
	int rc = VC_OK;

	for (uint32_t i = 0; i < k->regions && rc >= 0; i++)
		rc = walk_region(k, &k->region[i], fn, arg);
	return rc < 0 ? rc : VC_OK;
}

static int check_region(const struct vc_chunks *k, const struct vc_region *r, uint64_t *live)
{
	uint64_t at = r->addr;

	for (uint32_t i = r->first, last = 0; i; last = i, i = k->c[i].next) {
		const struct vc_chunk *c = &k->c[i];

		if (c->addr != at || c->prev != last ||
		    (!c->live && (joins(k, last, c->stream) ||
				  vc_chunks_same(k, c->stream, c) != i)))
			return VC_EINTERNAL;
		at += c->size;
		*live += c->live ? c->size : 0;
	}
	return at == r->addr + r->size ? VC_OK : VC_EINTERNAL;
}

int vc_chunks_check(const struct vc_model *m, struct vc_error *err)
{
	const struct vc_chunks *k = m->state;
	uint64_t sum = 0, live = 0;

	for (uint32_t i = 0; i < k->regions; i++) {
		if (check_region(k, &k->region[i], &live) < 0)
			return vc_fail(err, VC_EINTERNAL, "%s: a chunk of the region at 0x%" PRIx64
				       " is not where it belongs", m->type->name,
				       k->region[i].addr);
		sum += k->region[i].size;
	}
	if (sum != m->now.reserved || live != m->now.allocated)
		return vc_fail(err, VC_EINTERNAL,
			       "%s: regions sum to %" PRIu64 " and live chunks to %" PRIu64
			       ", the totals say %" PRIu64 " and %" PRIu64, m->type->name, sum,
			       live, m->now.reserved, m->now.allocated);
	return VC_OK;
}
