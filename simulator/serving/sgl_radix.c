/* SPDX-License-Identifier: Apache-2.0 */
/* sgl_radix.c - see sgl_radix.h. */
#include "simulator/serving/sgl_radix.h"

#include "common/vec.h"

/* A path is newer at its end: what TreeCore takes off the clock for each node above. */
static const double STEP_UP = 0.00001;

static uint64_t key_of(uint32_t parent, uint64_t page)
{
	uint64_t h = page ^ ((uint64_t)parent + 1) * 0x9e3779b97f4a7c15u;

	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
	h ^= h >> 27;
	return h ? h : 1;
}

static double tick(struct vc_sgl_radix *t)
{
	return t->clock++;
}

int vc_sgl_radix_init(struct vc_sgl_radix *t, struct vc_error *err)
{
	*t = (struct vc_sgl_radix){ .clock = 0 };
	VC_HAVE(vc_vec_room(t->node, t->cap, 1), "the radix tree", err);
	t->node[0] = (struct vc_sgl_node){ .used = 0 };
	t->nodes = 1;
	return VC_OK;
}

void vc_sgl_radix_fini(struct vc_sgl_radix *t)
{
	vc_map_fini(&t->child);
	VC_FREE(t->node, t->page);
}

/* 0: no memory. */
static uint32_t new_node(struct vc_sgl_radix *t, uint32_t parent, uint64_t first, uint64_t pages)
{
	uint32_t i = t->spare;

	if (i)
		t->spare = t->node[i].children;
	else if (t->nodes == UINT32_MAX || !vc_vec_room(t->node, t->cap, t->nodes + 1))
		return 0;
	else
		i = (uint32_t)t->nodes++;
	t->node[i] = (struct vc_sgl_node){ first, pages, parent, 0, 0, tick(t) };
	tick(t); /* when it was made */
	return vc_map_put(&t->child, key_of(parent, t->page[first]), i) ? i : 0;
}

static uint32_t child_of(const struct vc_sgl_radix *t, uint32_t parent, uint64_t page)
{
	const uint64_t *at = vc_map_get(&t->child, key_of(parent, page));

	return at ? (uint32_t)*at : 0;
}

/* The first pages of a node become a node of their own, above it; 0: no memory. */
static uint32_t split(struct vc_sgl_radix *t, uint32_t child, uint64_t pages)
{
	uint32_t above = new_node(t, t->node[child].parent, t->node[child].first, pages);
	struct vc_sgl_node *c = &t->node[child];

	if (!above)
		return 0;
	t->node[above].locks = c->locks;
	t->node[above].children = 1;
	c->parent = above;
	c->first += pages;
	c->pages -= pages;
	c->used = tick(t);
	return vc_map_put(&t->child, key_of(above, t->page[c->first]), child) ? above : 0;
}

static uint64_t common(const struct vc_sgl_radix *t, uint32_t node, const uint64_t *page,
		       uint64_t n)
{
	const struct vc_sgl_node *k = &t->node[node];
	uint64_t i = 0;

	while (i < n && i < k->pages && t->page[k->first + i] == page[i])
		i++;
	return i;
}

uint64_t vc_sgl_match(struct vc_sgl_radix *t, const uint64_t *page, uint64_t n, uint32_t *node)
{
	uint64_t known = 0, same;
	uint32_t child;
	double now;

	*node = 0;
	if (!n)
		return 0;
	while (known < n && (child = child_of(t, *node, page[known]))) {
		bool part;

		same = common(t, child, page + known, n - known);
		part = same < t->node[child].pages;
		if (part && !(child = split(t, child, same)))
			return UINT64_MAX;
		*node = child;
		known += same;
		if (part)
			break;
	}
	now = tick(t);
	for (uint32_t i = *node; ; i = t->node[i].parent) {
		t->node[i].used = now;
		now -= STEP_UP;
		if (!i)
			return known;
	}
}

uint64_t vc_sgl_insert(struct vc_sgl_radix *t, const uint64_t *page, uint64_t n, uint32_t *node)
{
	uint64_t known = 0, same;
	uint32_t child;

	*node = 0;
	t->node[0].used = tick(t);
	while (known < n && (child = child_of(t, *node, page[known]))) {
		t->node[child].used = tick(t);
		same = common(t, child, page + known, n - known);
		if (same < t->node[child].pages && !(child = split(t, child, same)))
			return UINT64_MAX;
		*node = child;
		known += same;
	}
	if (known == n)
		return known;
	if (!vc_vec_room(t->page, t->page_cap, t->pages + (size_t)(n - known)))
		return UINT64_MAX;
	memcpy(t->page + t->pages, page + known, (size_t)(n - known) * sizeof(*page));
	t->pages += (size_t)(n - known);
	child = new_node(t, *node, t->pages - (n - known), n - known);
	if (!child)
		return UINT64_MAX;
	t->node[*node].children++;
	t->held += n - known;
	*node = child;
	return known;
}

void vc_sgl_lock(struct vc_sgl_radix *t, uint32_t node)
{
	for (; node; node = t->node[node].parent)
		t->locked += t->node[node].locks++ ? 0 : t->node[node].pages;
}

void vc_sgl_unlock(struct vc_sgl_radix *t, uint32_t node)
{
	for (; node; node = t->node[node].parent)
		t->locked -= --t->node[node].locks ? 0 : t->node[node].pages;
}

uint64_t vc_sgl_evict(struct vc_sgl_radix *t)
{
	uint32_t oldest = 0;
	struct vc_sgl_node *k;

	for (uint32_t i = 1; i < t->nodes; i++) {
		k = &t->node[i];
		if (k->pages && !k->children && !k->locks &&
		    (!oldest || k->used < t->node[oldest].used))
			oldest = i;
	}
	if (!oldest)
		return 0;
	k = &t->node[oldest];
	vc_map_take(&t->child, key_of(k->parent, t->page[k->first]));
	t->node[k->parent].children--;
	t->held -= k->pages;
	uint64_t freed = k->pages;
	*k = (struct vc_sgl_node){ .children = t->spare };
	t->spare = oldest;
	return freed;
}
