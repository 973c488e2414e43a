/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.c - see chunks.h */
#include "simulator/models/chunks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/vec.h"

bool vc_fits_have(struct vc_fits *f, uint32_t list)
{
	if (!vc_vec_zeroed(f->at, f->n, (size_t)list + 1))
		return false;
	if (!f->at[list])
		f->at[list] = calloc(1, sizeof(**f->at));
	return f->at[list];
}

void vc_fits_fini(struct vc_fits *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->at[i]);
	free(f->at);
}

bool vc_chunks_room(struct vc_chunks *k, size_t more)
{
	k->used = k->used ? k->used : 1; /* slot 0 means none */
	return vc_vec_room(k->c, k->cap, k->used + more) &&
	       vc_vec_room(k->region, k->room, k->regions + 1);
}

static uint32_t new_chunk(struct vc_chunks *k, uint64_t addr, uint64_t size)
{
	uint32_t i = k->spare;

	if (i)
		k->spare = k->c[i].kid[0];
	else
		i = k->used++;
	k->c[i] = (struct vc_chunk){ .addr = addr, .size = size };
	return i;
}

void vc_chunks_drop(struct vc_chunks *k, uint32_t i)
{
	k->c[i].live = false;
	k->c[i].kid[0] = k->spare;
	k->spare = i;
}

uint32_t vc_chunks_region(struct vc_chunks *k, uint64_t addr, uint64_t size)
{
	uint32_t at = k->regions, i = new_chunk(k, addr, size);

	for (; at && k->region[at - 1].addr > addr; at--)
		k->region[at] = k->region[at - 1];
	k->region[at] = (struct vc_region){ addr, size, i };
	k->regions++;
	return i;
}

uint32_t vc_chunks_split(struct vc_chunks *k, uint32_t i, uint64_t size)
{
	uint32_t rest = new_chunk(k, k->c[i].addr + size, k->c[i].size - size);

	k->c[i].size = size;
	k->c[rest].prev = i;
	k->c[rest].next = k->c[i].next;
	k->c[i].next = rest;
	if (k->c[rest].next)
		k->c[k->c[rest].next].prev = rest;
	return rest;
}

/* Chunk `i` takes in its upper neighbour, which is in no list. */
static void absorb_next(struct vc_chunks *k, uint32_t i)
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

uint32_t vc_chunks_free(struct vc_chunks *k, struct vc_fit *f, uint32_t list, uint32_t i)
{
	uint32_t n = k->c[i].next, p = k->c[i].prev;

	k->c[i].live = false;
	k->c[i].stream = list;
	if (joins(k, n, list)) {
		vc_fit_remove(k, f, n);
		absorb_next(k, i);
	}
	if (joins(k, p, list)) {
		vc_fit_remove(k, f, p);
		absorb_next(k, p);
		i = p;
	}
	vc_fit_add(k, f, i);
	return i;
}

void vc_chunks_move(struct vc_chunks *k, struct vc_fit *from, struct vc_fit *to, uint32_t list)
{
	for (uint32_t n = 0; (n = vc_fit_up(from, n)) < VC_FIT_CLASSES; ) {
		uint32_t i = from->root[n];

		vc_fit_remove(k, from, i);
		vc_chunks_free(k, to, list, i);
	}
}

void vc_chunks_serve(struct vc_model *m, struct vc_chunks *k, uint32_t i,
		     const struct vc_request *rq, struct vc_block *out)
{
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

void vc_chunks_unserve(struct vc_model *m, const struct vc_chunks *k, uint32_t i)
{
	m->now.requested -= k->c[i].requested;
	m->now.allocated -= k->c[i].size;
	m->now.active -= k->c[i].size;
}

bool vc_chunks_idle(const struct vc_chunks *k, const struct vc_region *r)
{
	return !k->c[r->first].live && k->c[r->first].size == r->size;
}

static int walk_region(const struct vc_chunks *k, const struct vc_region *r, vc_extent_fn *fn,
		       void *arg)
{
	struct vc_extent x = { .what = VC_X_SEGMENT, .addr = r->addr, .size = r->size };
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
					.size = c->size };
		if (c->live) {
			x.requested = c->requested;
			x.id = c->id;
			x.stream = c->stream;
		}
		rc = fn(arg, &x);
	}
	return rc;
}

int vc_chunks_walk(const struct vc_chunks *k, vc_extent_fn *fn, void *arg)
{
	int rc = VC_OK;

	for (uint32_t i = 0; i < k->regions && rc >= 0; i++)
		rc = walk_region(k, &k->region[i], fn, arg);
	return rc < 0 ? rc : VC_OK;
}

static bool is_found(const struct vc_chunks *k, const struct vc_fit *f, uint32_t i)
{
	uint32_t n = f->root[vc_fit_class(k->c[i].size)];

	while (n && n != i)
		n = k->c[n].kid[vc_fit_before(&k->c[n], &k->c[i])];
	return n == i;
}

static int check_region(const struct vc_chunks *k, const struct vc_region *r, vc_fit_of_fn *fit,
			const void *arg, uint64_t *live)
{
	uint64_t at = r->addr;

	for (uint32_t i = r->first, last = 0; i; last = i, i = k->c[i].next) {
		const struct vc_chunk *c = &k->c[i];

		if (c->addr != at || c->prev != last ||
		    (!c->live && (joins(k, last, c->stream) ||
				  !is_found(k, fit(arg, c->stream), i))))
			return VC_EINTERNAL;
		at += c->size;
		*live += c->live ? c->size : 0;
	}
	return at == r->addr + r->size ? VC_OK : VC_EINTERNAL;
}

int vc_chunks_check(const struct vc_model *m, const struct vc_chunks *k, vc_fit_of_fn *fit,
		    const void *arg, struct vc_error *err)
{
	uint64_t sum = 0, live = 0;

	for (uint32_t i = 0; i < k->regions; i++) {
		if (check_region(k, &k->region[i], fit, arg, &live) < 0)
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

void vc_chunks_fini(struct vc_chunks *k)
{
	VC_FREE(k->c, k->region);
}

void vc_model_tell(const struct vc_model *m, enum vc_trace_kind kind, uint32_t stream,
		   uint64_t addr, uint64_t size)
{
	struct vc_trace_entry e = { .kind = kind, .stream = stream, .addr = addr, .size = size };

	if (m->trace)
		m->trace(m->trace_arg, &e);
}
