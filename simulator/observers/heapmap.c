/* SPDX-License-Identifier: Apache-2.0 */
/* heapmap.c - see heapmap.h */
#include "simulator/observers/heapmap.h"

#include <stdlib.h>

#define MAX_HOLDERS 64

struct origin { uint32_t site, label; bool used; };

void vc_origins_init(struct vc_origins *o)
{
	vc_pages_init(&o->at, sizeof(struct origin));
}

int vc_origins_step(struct vc_origins *o, const struct vc_step *s, struct vc_error *err)
{
	struct origin *g;

	if (!s->block || !(s->ev->site || s->ev->label || s->ev->kind == VC_EV_FREE))
		return VC_OK;
	if (s->ev->kind == VC_EV_ALLOC) {
		g = vc_pages_put(&o->at, s->ev->id);
		if (!g)
			return vc_nomem(err, "call sites");
		*g = (struct origin){ s->ev->site, s->ev->label, true };
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

struct taking { struct vc_heap_map *map; size_t cap; const struct vc_origins *o; struct vc_error *err; };

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
		.expandable = x->expandable };
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

static int by_place(const void *a, const void *b)
{
	const struct vc_holder *x = a, *y = b;

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return (x->segment > y->segment) - (x->segment < y->segment);
}

static int by_bytes(const void *a, const void *b)
{
	const struct vc_holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_place(a, b);
}

int vc_heapmap_holders(const struct vc_heap_map *map, struct vc_holder **holders, size_t *n,
		       struct vc_error *err)
{
	struct vc_holder *h = calloc(map->n ? map->n : 1, sizeof(*h));
	uint64_t segment = 0;
	size_t k = 0, m = 0;

	if (!h)
		return vc_nomem(err, "the list of holders");
	for (size_t i = 0; i < map->n; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what == VC_X_SEGMENT)
			segment = x->addr;
		if (x->what != VC_X_LIVE && x->what != VC_X_PENDING)
			continue;
		h[k++] = (struct vc_holder){ x->site, x->label, x->site ? 0 : segment, x->size, 1 };
	}
	qsort(h, k, sizeof(*h), by_place);
	for (size_t i = 0; i < k; i++) { /* merge equal places */
		if (m && !by_place(&h[m - 1], &h[i])) {
			h[m - 1].bytes += h[i].bytes;
			h[m - 1].blocks++;
		} else {
			h[m++] = h[i];
		}
	}
	qsort(h, m, sizeof(*h), by_bytes);
	*holders = h;
	*n = m < MAX_HOLDERS ? m : MAX_HOLDERS;
	return VC_OK;
}
