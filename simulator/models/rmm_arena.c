/* SPDX-License-Identifier: Apache-2.0 */
/* rmm_arena.c - RMM's arena_memory_resource: one arena, cut into superblocks that streams borrow.
 *
 * After rmm/mr/detail/arena.hpp and rmm/mr/arena_memory_resource.hpp (to 25.10 below
 * rmm/mr/device). Function names in comments are theirs.
 *
 * Superblocks tile the arena, chunks tile a superblock. Each superblock belongs to the global arena
 * or to that of a stream; whoever owns it has its free chunks in a treap by address, in which each
 * node knows the largest chunk below it. So "the first superblock with a chunk that fits, and in it
 * the first chunk" is one descent. Which list a block is looked for in when it is freed does not
 * matter: it lies in exactly one superblock. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/vec.h"
#include "simulator/models/chunks.h"
#include "simulator/models/rmm.h"
#include "simulator/models/rmm_text.h"

#define SUPERBLOCK (1ull << 20) /* superblock::minimum_size; what is larger goes to all */
#define SUPERBLOCK_MOST (1ull << 40) /* superblock::maximum_size */
#define GLOBAL 0 /* owner; the arena of stream s is s + 1 */

struct config { uint64_t release; char size[VC_PARAM_TEXT]; };

struct chunk {
	uint64_t addr, size, requested, id;
	uint64_t most;       /* free: the largest chunk at and below this node */
	uint32_t prev, next; /* neighbours in the superblock */
	uint32_t kid[2];     /* while free; kid[0] also chains unused slots */
	uint32_t super, stream;
	bool live;
};

struct super {
	uint64_t addr, size;
	uint32_t prev, next; /* by address; next also chains unused slots */
	uint32_t first, owner;
};

struct arena {
	struct chunk *c;
	uint32_t used, spare;
	size_t cap;
	struct super *s;
	uint32_t supers, idle;
	size_t room;
	uint32_t *root; /* free chunks by owner */
	size_t owners;  /* room of `root` */
	uint32_t lent;  /* superblocks that streams own */
	uint32_t first; /* superblock */
	uint64_t end;   /* without a card: of what is mapped; else 0 */
	bool made;
};

/* ---- free chunks by address ---- */
static void look_below(struct chunk *c, uint32_t n)
{
	uint64_t l = c[c[n].kid[0]].most, r = c[c[n].kid[1]].most, most = c[n].size;

	most = l > most ? l : most;
	c[n].most = r > most ? r : most;
}

/* Two trees as one; all of l lies below all of r. */
static uint32_t join(struct chunk *c, uint32_t l, uint32_t r)
{
	if (!l || !r)
		return l ? l : r;
	if (vc_treap_priority(l) > vc_treap_priority(r)) {
		c[l].kid[1] = join(c, c[l].kid[1], r);
		look_below(c, l);
		return l;
	}
	c[r].kid[0] = join(c, l, c[r].kid[0]);
	look_below(c, r);
	return r;
}

/* One tree as two: what lies below addr, and the rest. */
static void part(struct chunk *c, uint32_t n, uint64_t addr, uint32_t *l, uint32_t *r)
{
	if (!n) {
		*l = *r = 0;
	} else if (c[n].addr < addr) {
		part(c, c[n].kid[1], addr, &c[n].kid[1], r);
		look_below(c, n);
		*l = n;
	} else {
		part(c, c[n].kid[0], addr, l, &c[n].kid[0]);
		look_below(c, n);
		*r = n;
	}
}

static uint32_t put(struct chunk *c, uint32_t n, uint32_t i)
{
	if (!n || vc_treap_priority(i) > vc_treap_priority(n)) {
		part(c, n, c[i].addr, &c[i].kid[0], &c[i].kid[1]);
		look_below(c, i);
		return i;
	}
	c[n].kid[c[n].addr < c[i].addr] = put(c, c[n].kid[c[n].addr < c[i].addr], i);
	c[n].most = c[i].size > c[n].most ? c[i].size : c[n].most;
	return n;
}

static uint32_t cut(struct chunk *c, uint32_t n, uint32_t i)
{
	if (n == i)
		return join(c, c[n].kid[0], c[n].kid[1]);
	c[n].kid[c[n].addr < c[i].addr] = cut(c, c[n].kid[c[n].addr < c[i].addr], i);
	look_below(c, n);
	return n;
}

/* Chunk i has grown or shrunk where it stands. */
static void resized(struct chunk *c, uint32_t n, uint32_t i)
{
	if (n != i)
		resized(c, c[n].kid[c[n].addr < c[i].addr], i);
	look_below(c, n);
}

/* The lowest chunk of at least `size` bytes, 0: none. */
static uint32_t first_fit(const struct chunk *c, uint32_t n, uint64_t size)
{
	if (c[n].most < size)
		return 0;
	for (;;) {
		if (c[c[n].kid[0]].most >= size)
			n = c[n].kid[0];
		else if (c[n].size >= size)
			return n;
		else
			n = c[n].kid[1];
	}
}

static uint32_t *root_of(struct arena *a, uint32_t i)
{
	return &a->root[a->s[a->c[i].super].owner];
}

static void put_free(struct arena *a, uint32_t i)
{
	*root_of(a, i) = put(a->c, *root_of(a, i), i);
}

static void cut_free(struct arena *a, uint32_t i)
{
	*root_of(a, i) = cut(a->c, *root_of(a, i), i);
	a->c[i].kid[0] = a->c[i].kid[1] = 0;
}

/* ---- chunks ---- */
/* Room for the chunks and the superblock that one request can add; slot 0 means none. */
static bool ensure(struct arena *a, uint32_t owner)
{
	a->used = a->used ? a->used : 1;
	a->supers = a->supers ? a->supers : 1;
	return vc_vec_zeroed(a->c, a->cap, (size_t)a->used + 3) &&
	       vc_vec_zeroed(a->s, a->room, (size_t)a->supers + 2) &&
	       vc_vec_zeroed(a->root, a->owners, (size_t)owner + 1);
}

static uint32_t new_chunk(struct arena *a, uint32_t super, uint64_t addr, uint64_t size)
{
	uint32_t i = a->spare ? a->spare : a->used;

	if (a->spare)
		a->spare = a->c[i].kid[0];
	else
		a->used++;
	a->c[i] = (struct chunk){ .addr = addr, .size = size, .super = super };
	return i;
}

static void drop_chunk(struct arena *a, uint32_t i)
{
	a->c[i].live = false;
	a->c[i].kid[0] = a->spare;
	a->spare = i;
}

/* superblock::first_fit: the low part of free chunk i; the rest keeps its place in the tree. */
static uint32_t take_chunk(struct arena *a, uint32_t i, uint64_t size)
{
	struct chunk *c = a->c;
	uint32_t low;

	if (c[i].size == size) {
		cut_free(a, i);
		return i;
	}
	low = new_chunk(a, c[i].super, c[i].addr, size);
	c[i].addr += size;
	c[i].size -= size;
	resized(c, *root_of(a, i), i);
	c[low].prev = c[i].prev;
	c[low].next = i;
	if (c[i].prev)
		c[c[i].prev].next = low;
	else
		a->s[c[i].super].first = low;
	c[i].prev = low;
	return low;
}

/* superblock::coalesce */
static void free_chunk(struct arena *a, uint32_t i)
{
	struct chunk *c = a->c;
	uint32_t n = c[i].next, p = c[i].prev;

	c[i].live = false;
	if (n && !c[n].live) {
		cut_free(a, n);
		c[i].size += c[n].size;
		c[i].next = c[n].next;
		if (c[n].next)
			c[c[n].next].prev = i;
		drop_chunk(a, n);
	}
	if (!p || c[p].live) {
		put_free(a, i);
		return;
	}
	c[p].size += c[i].size;
	c[p].next = c[i].next;
	if (c[i].next)
		c[c[i].next].prev = p;
	drop_chunk(a, i);
	resized(c, *root_of(a, p), p);
}

/* ---- superblocks ---- */
static uint32_t new_super(struct arena *a, uint64_t addr, uint64_t size)
{
	uint32_t s = a->idle ? a->idle : a->supers;

	if (a->idle)
		a->idle = a->s[s].next;
	else
		a->supers++;
	a->s[s] = (struct super){ .addr = addr, .size = size, .owner = GLOBAL };
	return s;
}

static bool is_empty(const struct arena *a, uint32_t s)
{
	const struct chunk *c = &a->c[a->s[s].first];

	return !c->live && c->size == a->s[s].size;
}

/* Its free chunks move to the tree of the new owner. */
static void set_owner(struct arena *a, uint32_t s, uint32_t owner)
{
	for (uint32_t i = a->s[s].first; i; i = a->c[i].next)
		if (!a->c[i].live)
			cut_free(a, i);
	a->lent += (owner != GLOBAL) - (a->s[s].owner != GLOBAL);
	a->s[s].owner = owner;
	for (uint32_t i = a->s[s].first; i; i = a->c[i].next)
		if (!a->c[i].live)
			put_free(a, i);
}

/* superblock::split: the head of an empty superblock becomes one of its own. */
static uint32_t split_super(struct arena *a, uint32_t s, uint64_t size)
{
	uint32_t head = new_super(a, a->s[s].addr, size), i = a->s[s].first;
	struct super *x = &a->s[s];

	a->s[head].prev = x->prev;
	a->s[head].next = s;
	if (x->prev)
		a->s[x->prev].next = head;
	else
		a->first = head;
	x->prev = head;
	x->addr += size;
	x->size -= size;
	a->c[i].addr += size;
	a->c[i].size -= size;
	resized(a->c, *root_of(a, i), i);
	i = new_chunk(a, head, a->s[head].addr, size);
	a->s[head].first = i;
	put_free(a, i);
	return head;
}

/* global_arena::coalesce: s takes in the empty superblock above it. */
static bool take_in_next(struct arena *a, uint32_t s)
{
	uint32_t n = a->s[s].next, i = a->s[s].first;

	if (!s || !n || a->s[s].owner != GLOBAL || a->s[n].owner != GLOBAL || !is_empty(a, s) ||
	    !is_empty(a, n))
		return false;
	cut_free(a, a->s[n].first);
	drop_chunk(a, a->s[n].first);
	a->c[i].size += a->s[n].size;
	a->s[s].size += a->s[n].size;
	resized(a->c, *root_of(a, i), i);
	a->s[s].next = a->s[n].next;
	if (a->s[n].next)
		a->s[a->s[n].next].prev = s;
	a->s[n].next = a->idle;
	a->idle = n;
	return true;
}

/* defragment: every stream gives all its superblocks back. */
static void defragment(struct arena *a)
{
	if (!a->lent)
		return;
	for (uint32_t s = a->first; s; s = a->s[s].next)
		if (a->s[s].owner != GLOBAL)
			set_owner(a, s, GLOBAL);
	for (uint32_t s = a->first; s; s = a->s[s].next)
		while (take_in_next(a, s))
			;
}

/* global_arena::first_fit: the free chunk in which `size` bytes fit, of a superblock that is split
 * off if all of it was free; 0: none. */
static uint32_t find_global(struct arena *a, uint64_t size)
{
	uint32_t i = first_fit(a->c, a->root[GLOBAL], size), s = a->c[i].super;
	uint64_t least = size > SUPERBLOCK ? size : SUPERBLOCK;

	if (i && is_empty(a, s) && a->s[s].size >= least + SUPERBLOCK)
		return a->s[split_super(a, s, least)].first;
	return i;
}

/* arena::allocate: a free chunk for a request of a stream, 0: none. */
static uint32_t find(struct arena *a, uint32_t owner, uint64_t size)
{
	uint32_t i;

	if (size > SUPERBLOCK)
		return find_global(a, size);
	i = first_fit(a->c, a->root[owner], size);
	if (i)
		return i;
	i = find_global(a, size); /* expand_arena: its superblock comes over */
	if (i)
		set_owner(a, a->c[i].super, owner);
	return i;
}

/* ---- the arena ---- */
/* Without a card there is no half to take: as many pages as the requests reach. RMM serves them
 * from the same places in any arena that is at least so large. */
static bool reach(struct vc_model *m, uint64_t end, uint32_t stream)
{
	struct arena *a = m->state;
	uint64_t size = (end - a->end + VC_DEVICE_GRANULE - 1) / VC_DEVICE_GRANULE *
			VC_DEVICE_GRANULE;

	if (!a->end || end <= a->end)
		return true;
	if (!vc_device_create(m->device, size))
		return false;
	vc_device_map(m->device, a->end, size);
	vc_model_tell(m, VC_TR_SEGMENT_MAP, stream, a->end, size);
	m->now.segments = 1;
	a->end += size;
	return true;
}

static void begin_at(struct arena *a, uint64_t addr, uint64_t size)
{
	uint32_t s = new_super(a, addr, size), i = new_chunk(a, s, addr, size);

	a->first = s;
	a->s[s].first = i;
	put_free(a, i);
	a->made = true;
}

/* global_arena::global_arena */
static int make(struct vc_model *m, const struct vc_request *rq, struct vc_error *err)
{
	const struct config *k = m->config;
	struct arena *a = m->state;
	uint64_t size, addr = 0;

	VC_TRY(rmm_initial_size(m, "arena_size", k->size, &size, err));
	m->refusal.alloc_size = size = size / RMM_ALIGNMENT * RMM_ALIGNMENT;
	if (!size && vc_device_reserve(m->device, SUPERBLOCK_MOST, &addr)) {
		a->end = addr;
		begin_at(a, addr, SUPERBLOCK_MOST);
		return VC_DONE;
	}
	if (size < SUPERBLOCK ||
	    !vc_device_alloc(m->device, rmm_malloc_size(size, k->release), &addr)) {
		if (size < SUPERBLOCK)
			rmm_text_small_arena(m->note, sizeof(m->note));
		else
			rmm_text_malloc(m->note, sizeof(m->note), size, k->release);
		return vc_model_refuse(m, rq, size, size);
	}
	vc_model_tell(m, VC_TR_SEGMENT_ALLOC, 0, addr, size);
	begin_at(a, addr, size);
	return VC_DONE;
}

static int arena_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		       struct vc_error *err)
{
	struct arena *a = m->state;
	uint64_t size = (rq->size + RMM_ALIGNMENT - 1) / RMM_ALIGNMENT * RMM_ALIGNMENT;
	uint32_t owner = rq->stream + 1, i;
	struct chunk *c;
	int r;

	*out = (struct vc_block){ 0 };
	VC_HAVE(ensure(a, owner), "the rmm_arena model", err);
	if (!a->made && (r = make(m, rq, err)) != VC_DONE)
		return r;
	if (!rq->size) /* a null pointer */
		return VC_DONE;
	m->refusal.alloc_size = 0; /* the device is not asked again */
	i = size < rq->size ? 0 : find(a, owner, size);
	if (!i && size >= rq->size) {
		defragment(a);
		m->now.retries++;
		i = find(a, owner, size);
	}
	if (!i || !reach(m, a->c[i].addr + size, rq->stream))
		return rmm_refuse(m, rq, size, "No room in arena.",
				  ((const struct config *)m->config)->release);
	i = take_chunk(a, i, size);
	c = &a->c[i];
	c->live = true;
	c->requested = rq->size;
	c->id = rq->id;
	c->stream = rq->stream;
	m->now.requested += rq->size;
	m->now.allocated += size;
	m->now.active += size;
	*out = (struct vc_block){ c->addr, size, (void *)(uintptr_t)i };
	return VC_DONE;
}

static int arena_free(struct vc_model *m, struct vc_block *block)
{
	struct arena *a = m->state;
	uint32_t i = (uint32_t)(uintptr_t)block->cookie, s = i ? a->c[i].super : 0;

	if (!i)
		return VC_DONE;
	m->now.requested -= a->c[i].requested;
	m->now.allocated -= a->c[i].size;
	m->now.active -= a->c[i].size;
	free_chunk(a, i);
	if (a->s[s].owner == GLOBAL && is_empty(a, s)) {
		take_in_next(a, s);
		take_in_next(a, a->s[s].prev);
	}
	return VC_DONE;
}

static int walk_super(const struct arena *a, uint32_t s, uint64_t end, vc_extent_fn *fn, void *arg)
{
	int rc = VC_OK;

	for (uint32_t i = a->s[s].first; i && rc >= 0 && a->c[i].addr < end; i = a->c[i].next) {
		const struct chunk *c = &a->c[i];
		struct vc_extent x = { .what = c->live ? VC_X_LIVE : VC_X_FREE, .addr = c->addr,
				       .size = c->size };

		if (x.addr + x.size > end)
			x.size = end - x.addr;
		if (c->live) {
			x.requested = c->requested;
			x.id = c->id;
			x.stream = c->stream;
		}
		rc = fn(arg, &x);
	}
	return rc;
}

static int arena_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct arena *a = m->state;
	struct vc_extent x = { .what = VC_X_SEGMENT, .size = m->now.reserved,
			       .requested = m->now.requested, .allocated = m->now.allocated,
			       .active = m->now.active };
	int rc;

	if (!m->now.segments)
		return VC_OK;
	x.addr = a->s[a->first].addr;
	rc = fn(arg, &x);
	for (uint32_t s = a->first; s && rc >= 0; s = a->s[s].next)
		rc = walk_super(a, s, x.addr + x.size, fn, arg);
	return rc < 0 ? rc : VC_OK;
}

/* Chunks tile their superblock, no two free ones touch, and the owner finds each free one. */
static bool is_sound(const struct arena *a, uint32_t s, uint64_t *live)
{
	uint64_t at = a->s[s].addr;

	for (uint32_t i = a->s[s].first, last = 0; i; last = i, i = a->c[i].next) {
		const struct chunk *c = &a->c[i];
		uint32_t n = a->root[a->s[s].owner];

		while (!c->live && n && n != i)
			n = a->c[n].most < c->size ? 0 : a->c[n].kid[a->c[n].addr < c->addr];
		if (c->addr != at || c->prev != last || c->super != s ||
		    (!c->live && (n != i || (last && !a->c[last].live))))
			return false;
		at += c->size;
		*live += c->live ? c->size : 0;
	}
	return at == a->s[s].addr + a->s[s].size;
}

static int arena_check(const struct vc_model *m, struct vc_error *err)
{
	const struct arena *a = m->state;
	uint64_t live = 0, end = a->made ? a->s[a->first].addr : 0;

	for (uint32_t s = a->first; s; end += a->s[s].size, s = a->s[s].next)
		if (a->s[s].addr != end || !is_sound(a, s, &live))
			return vc_fail(err, VC_EINTERNAL, "rmm_arena: the superblock at 0x%" PRIx64
				       " is not what it should be", a->s[s].addr);
	if (live != m->now.allocated)
		return vc_fail(err, VC_EINTERNAL, "rmm_arena: live chunks sum to %" PRIu64
			       ", the totals say %" PRIu64, live, m->now.allocated);
	return VC_OK;
}

static int arena_init(struct vc_model *m, struct vc_error *err)
{
	uint64_t size;

	return rmm_initial_size(m, "arena_size", ((const struct config *)m->config)->size, &size,
				err);
}

static void arena_fini(struct vc_model *m)
{
	struct arena *a = m->state;

	VC_FREE(a->c, a->s, a->root);
}

static const struct vc_param arena_params[] = {
	{ "arena_size", VC_P_TEXT, offsetof(struct config, size), "half",
	  "what it takes at its start, and no more: half of the free bytes of the card (without a "
	  "card as much as the requests reach), or so many bytes", NULL },
	RMM_RELEASE(struct config),
	VC_PARAM_END };

const struct vc_model_type vc_model_rmm_arena = {
	.name          = "rmm_arena",
	.summary       = "RMM's arena: superblocks that streams borrow, first fit, to the byte",
	.owner         = "RMM's arena",
	.params        = arena_params,
	.config_size   = sizeof(struct config),
	.state_size    = sizeof(struct arena),
	.keeps_regions = true,
	.init          = arena_init,
	.alloc         = arena_alloc,
	.free          = arena_free,
	.walk          = arena_walk,
	.check         = arena_check,
	.fini          = arena_fini,
};
