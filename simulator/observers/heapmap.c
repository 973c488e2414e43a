/* SPDX-License-Identifier: Apache-2.0 */
/* heapmap.c - see heapmap.h */
#include "simulator/observers/heapmap.h"

#include "common/vec.h"

struct origin { uint32_t site, label; bool used, at_start; };

static struct origin *put(struct vc_origins *o, uint64_t id)
{
	if (!o->at.record)
		vc_pages_init(&o->at, sizeof(struct origin));
	return vc_pages_put(&o->at, id);
}

int vc_origins_at_start(struct vc_observer *o, uint64_t id, uint32_t site, struct vc_error *err)
{
	struct origin *g = put(o->state, id);

	VC_HAVE(g, "call sites", err);
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
		VC_HAVE(g, "call sites", err);
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
	const struct vc_origins *o;
	struct vc_error *err;
};

static int take_one(void *arg, const struct vc_extent *x)
{
	struct taking *t = arg;
	const struct origin *g = x->id ? vc_pages_get(&t->o->at, x->id) : NULL;

	if (x->away) /* not on the card */
		return VC_OK;
	VC_HAVE(vc_vec_room(t->map->at, t->map->room, t->map->n + 1), "the heap map", t->err);
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
	struct taking t = { map, o, err };

	map->event = event;
	map->n = 0; /* its room stays: looks follow each other and are about as large */
	return m->type->walk(m, take_one, &t);
}

/* The classes of docs/reference/models.md, "unused bytes". */
void vc_heapmap_unused(const struct vc_heap_map *map, struct vc_fragmentation *f)
{
	const struct vc_heap_extent *seg = NULL;
	uint64_t live = 0;

	for (size_t i = 0; i < map->n; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what == VC_X_SEGMENT) {
			seg = x;
			live = 0;
			for (size_t k = i + 1; k < map->n && map->at[k].what != VC_X_SEGMENT; k++)
				live += map->at[k].what != VC_X_FREE ? map->at[k].size : 0;
			continue;
		}
		if (x->what != VC_X_FREE)
			f->rounding += x->size - x->requested;
		else if (x->pool)
			f->private_pools += x->size;
		else if (x->stream)
			f->other_streams += x->size;
		else if (!live)
			f->whole_free += x->size;
		else if (seg && (seg->small || x->size < 1u << 20))
			f->remainders += x->size; /* too small for any request of the large pool */
		else
			f->pinned += x->size;
	}
}
