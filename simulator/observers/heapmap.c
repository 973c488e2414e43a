/* SPDX-License-Identifier: Apache-2.0 */
/* heapmap.c - see heapmap.h */
#include "simulator/observers/heapmap.h"

#include <stdlib.h>

#include "common/site.h"

#define MAX_HOLDERS 64

struct origin { uint32_t site, label; bool used, at_start; };

static struct origin *put(struct vc_origins *o, uint64_t id)
{
	if (!o->at.record)
		vc_pages_init(&o->at, sizeof(struct origin));
	return vc_pages_put(&o->at, id);
}

int vc_origins_note(struct vc_origins *o, uint64_t id, uint32_t site, struct vc_error *err)
{
	struct origin *g = put(o, id);

	if (!g)
		return vc_nomem(err, "call sites");
	*g = (struct origin){ site, 0, true, true };
	return VC_OK;
}

uint32_t vc_origins_site(const struct vc_origins *o, uint64_t id)
{
	const struct origin *g = id ? vc_pages_get(&o->at, id) : NULL;

	return g ? g->site : 0;
}

int vc_origins_step(struct vc_origins *o, const struct vc_step *s, struct vc_error *err)
{
	struct origin *g;

	if (!s->block || !(s->ev->site || s->ev->label || s->ev->kind == VC_EV_FREE))
		return VC_OK;
	if (s->ev->kind == VC_EV_ALLOC) {
		g = put(o, s->ev->id);
		if (!g)
			return vc_nomem(err, "call sites");
		*g = (struct origin){ s->ev->site, s->ev->label, true, false };
		return VC_OK;
	}
	g = vc_pages_get(&o->at, s->ev->id);
	if (g && g->used)
		vc_pages_drop(&o->at, s->ev->id);
	return VC_OK;
}

void vc_origins_fini(struct vc_origins *o)
{
	vc_pages_fini(&o->at);
}

struct taking {
	struct vc_heap_map *map;
	size_t cap;
	const struct vc_origins *o;
	struct vc_error *err;
};

static int take_one(void *arg, const struct vc_extent *x)
{
	struct taking *t = arg;
	const struct origin *g = x->id ? vc_pages_get(&t->o->at, x->id) : NULL;

	if (t->map->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 1024;
		struct vc_heap_extent *at = realloc(t->map->at, cap * sizeof(*at));

		if (!at)
			return vc_nomem(t->err, "the heap map");
		t->map->at = at;
		t->cap = cap;
	}
	t->map->at[t->map->n++] = (struct vc_heap_extent){
		.addr = x->addr, .size = x->size, .requested = x->requested, .id = x->id,
		.pool = x->pool, .stream = x->stream, .site = g ? g->site : 0,
		.label = g ? g->label : 0, .what = (uint8_t)x->what, .small = x->small,
		.expandable = x->expandable, .at_start = g && g->at_start };
	return VC_OK;
}

int vc_heapmap_take(struct vc_heap_map *map, const struct vc_model *m, const struct vc_origins *o,
		    uint64_t event, struct vc_error *err)
{
	struct taking t = { map, 0, o, err };

	free(map->at);
	*map = (struct vc_heap_map){ .event = event };
	return m->type->walk(m, take_one, &t);
}

/* A holder with what its line of code says: many call stacks end in the same line, in frames that
 * differ only in their callers. */
struct keyed { uint32_t function, file, line; struct vc_holder h; };

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int r = compare(x->file, y->file);

	r = r ? r : compare(x->line, y->line);
	r = r ? r : compare(x->function, y->function);
	r = r ? r : compare(x->h.label, y->h.label);
	return r ? r : compare(x->h.held, y->h.held);
}

static int by_bytes(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int r = compare(y->h.bytes, x->h.bytes);

	return r ? r : by_place(a, b);
}

static size_t collect(const struct vc_heap_map *map, const struct vc_meta *meta, struct keyed *k)
{
	size_t n = 0;

	for (size_t i = 0; i < map->n; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what != VC_X_LIVE && x->what != VC_X_PENDING)
			continue;
		k[n].h = (struct vc_holder){ .label = x->label, .bytes = x->size, .blocks = 1,
			.held = x->site || x->label ? VC_HELD_AT :
				x->at_start         ? VC_HELD_BEFORE : VC_HELD_NOWHERE };
		if (x->site && x->site < meta->frames) {
			const struct vc_frame *f;

			k[n].h.site = vc_site_shown(meta, x->site);
			f = &meta->frame[k[n].h.site];
			k[n].function = f->function;
			k[n].file = f->file;
			k[n].line = f->line;
		}
		n++;
	}
	return n;
}

int vc_heapmap_holders(const struct vc_heap_map *map, const struct vc_meta *meta,
		       struct vc_holder **holders, size_t *n, struct vc_error *err)
{
	struct keyed *k = calloc(map->n ? map->n : 1, sizeof(*k));
	struct vc_holder *h = calloc(MAX_HOLDERS, sizeof(*h));
	size_t all, m = 0;

	if (!k || !h) {
		free(k);
		free(h);
		return vc_nomem(err, "the list of holders");
	}
	all = collect(map, meta, k);
	qsort(k, all, sizeof(*k), by_place);
	for (size_t i = 0; i < all; i++) { /* merge equal places */
		if (m && !by_place(&k[m - 1], &k[i])) {
			k[m - 1].h.bytes += k[i].h.bytes;
			k[m - 1].h.blocks++;
		} else {
			k[m++] = k[i];
		}
	}
	qsort(k, m, sizeof(*k), by_bytes);
	for (size_t i = MAX_HOLDERS; i < m; i++) {
		k[MAX_HOLDERS - 1].h.bytes += k[i].h.bytes;
		k[MAX_HOLDERS - 1].h.blocks += k[i].h.blocks;
	}
	for (*n = 0; *n < m && *n < MAX_HOLDERS; (*n)++)
		h[*n] = k[*n].h;
	if (m > MAX_HOLDERS)
		h[MAX_HOLDERS - 1] = (struct vc_holder){ .held = VC_HELD_OTHERS,
			.bytes = h[MAX_HOLDERS - 1].bytes, .blocks = h[MAX_HOLDERS - 1].blocks };
	free(k);
	*holders = h;
	return VC_OK;
}
