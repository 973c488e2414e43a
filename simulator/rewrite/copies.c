/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - copies of phases and iterations. */
#include "simulator/rewrite/copies.h"
#include "common/vec.h"
#include "simulator/rewrite/warm_start.h"

int vc_clone_init(struct vc_clone *c, struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	int r = vc_thaw(s, w, err);

	if (r == VC_OK)
		r = vc_whole_anatomy(w, s->meta, &c->a, err);
	c->w = w;
	c->ids = w->next_id + 1;
	c->of_id = calloc(c->ids, sizeof(*c->of_id));
	c->alias = calloc(c->ids, sizeof(*c->alias));
	if (r == VC_OK && (!c->of_id || !c->alias))
		r = vc_nomem(err, "copies of blocks");
	for (size_t i = 0; r == VC_OK && i < c->a.n; i++)
		c->of_id[c->a.block[i].id] = (uint32_t)i + 1;
	for (uint64_t i = 0; r == VC_OK && i < c->ids; i++)
		c->alias[i] = i;
	if (r < 0)
		vc_clone_fini(c);
	return r;
}

void vc_clone_fini(struct vc_clone *c)
{
	vc_anatomy_fini(&c->a);
	VC_FREE(c->of_id, c->alias, c->weight);
	c->weight = NULL;
	c->of_id = NULL;
	c->alias = NULL;
}

const struct vc_block_life *vc_clone_block(const struct vc_clone *c, uint64_t id)
{
	return id < c->ids && c->of_id[id] ? &c->a.block[c->of_id[id] - 1] : NULL;
}

int vc_clone_event(struct vc_clone *c, const struct vc_event *e, struct vc_error *err)
{
	struct vc_event now = *e;

	if (vc_event_outdated(e))
		return VC_OK;
	if ((vc_event_of_block(e) || e->kind == VC_EV_PAGES_OUT || e->kind == VC_EV_PAGES_IN) &&
	    e->id < c->ids) {
		now.id = c->alias[e->id];
		now.addr = 0;
		if (!now.id)
			return VC_OK;
	}
	return vc_whole_put(c->w, &now, 1, err);
}

int vc_clone_alloc(struct vc_clone *c, const struct vc_event *e, uint64_t size, uint64_t *id,
		   struct vc_error *err)
{
	struct vc_event now = vc_event_like(e, VC_EV_ALLOC, c->w->next_id, size);

	*id = c->w->next_id++;
	return vc_whole_put(c->w, &now, 1, err);
}

int vc_clone_free(struct vc_clone *c, const struct vc_event *e, uint64_t id, struct vc_error *err)
{
	struct vc_event now = vc_event_like(e, VC_EV_FREE, id, 0);

	return id ? vc_whole_put(c->w, &now, 1, err) : VC_OK;
}

static int clone_alloc(struct vc_clone *c, const struct vc_event *e, bool later, uint64_t size,
		       struct vc_error *err)
{
	uint64_t old = c->alias[e->id];

	VC_TRY(vc_clone_alloc(c, e, size, &c->alias[e->id], err));
	return later ? vc_clone_free(c, e, old, err) : VC_OK;
}

/* Is it given back after the stretch? In the last iteration the recording may just have ended
 * before that. */
static bool outlives(const struct vc_clone *c, const struct vc_block_life *b, size_t end)
{
	if (c->keeps && b->died_event >= c->keeps)
		return false;
	if (b->died_event == SIZE_MAX)
		return c->a.iterations > 1 && b->iteration + 1 == c->a.iterations;
	return b->died_event >= end;
}

static int copy(struct vc_clone *c, const struct vc_event *e, size_t first, size_t end,
		uint64_t size, struct vc_error *err)
{
	const struct vc_block_life *b = vc_event_of_block(e) ? vc_clone_block(c, e->id) : NULL;

	if (!vc_event_of_block(e))
		return vc_clone_event(c, e, err);
	if (!b || b->event < first || b->event >= end)
		return VC_OK; /* the recording's own free of an older block has happened already */
	if (!b->iteration &&
	    (c->a.iterations > 1 ? b->died_event == SIZE_MAX : b->category == VC_CAT_WORKSPACE))
		return VC_OK; /* workspaces and the like come once */
	if (e->kind == VC_EV_ALLOC)
		return clone_alloc(c, e, outlives(c, b, end), size ? size : e->size, err);
	return vc_clone_event(c, e, err);
}

int vc_clone_copy(struct vc_clone *c, const struct vc_event *e, size_t first, size_t end,
		  struct vc_error *err)
{
	return copy(c, e, first, end, 0, err);
}

int vc_clone_range(struct vc_clone *c, size_t first, size_t end, vc_clone_size_fn *size, void *arg,
		   struct vc_error *err)
{
	for (size_t i = first; i < end; i++) {
		const struct vc_event *e = &c->w->in[i];
		const struct vc_block_life *b =
			size && e->kind == VC_EV_ALLOC ? vc_clone_block(c, e->id) : NULL;

		VC_TRY(copy(c, e, first, end, b ? size(arg, b) : 0, err));
	}
	return VC_OK;
}

bool vc_clone_steady(const struct vc_clone *c, size_t *first, size_t *end, uint32_t *iteration)
{
	const struct vc_anatomy *a = &c->a;
	uint32_t want = a->iterations > 2 ? a->iterations - 2 : a->iterations - 1;

	*first = *end = 0;
	*iteration = want;
	for (size_t k = 0; a->iterations && k < a->spans; k++)
		if (a->span[k].iteration == want) {
			*first = *end ? *first : a->span[k].first;
			*end = a->span[k].end;
		}
	return *end > *first;
}

void vc_clone_say_heap(const struct vc_clone *c, struct vc_source *s)
{
	const uint64_t little = UINT64_C(16) << 20;
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->w->n; i++) {
		const struct vc_event *e = &c->w->in[i];
		if (e->kind == VC_EV_HEAP_BLOCK && (e->flags & VC_EVF_LIVE) &&
		    !(e->flags & VC_EVF_FINAL) && e->device == c->w->device)
			bytes += e->size;
	}
	if (bytes > little)
		vc_meta_note(s->meta, "%s: %.2f GiB were there before the recording began; what of "
			     "it are parameters and states is not known, so none of it changes: "
			     "record from the start of the program", s->type->name,
			     (double)bytes / (1u << 30));
}

/* Behind the last request: where a program that ends begins to give back what lasts. */
size_t vc_clone_end(const struct vc_clone *c)
{
	size_t last = c->a.n ? c->a.block[c->a.n - 1].event + 1 : 0;

	for (size_t i = last; i < c->w->n; i++) {
		const struct vc_event *e = &c->w->in[i];
		const struct vc_block_life *b =
			e->kind == VC_EV_FREE ? vc_clone_block(c, e->id) : NULL;

		if (e->kind == VC_EV_FREE &&
		    (!b || b->category == VC_CAT_PARAMETER || b->category == VC_CAT_STATE ||
		     b->iteration == UINT32_MAX))
			return i;
	}
	return c->w->n;
}

int vc_clone_steps(struct vc_clone *c, size_t *rest, struct vc_error *err)
{
	*rest = vc_clone_end(c);
	for (size_t i = 0; i < *rest; i++)
		VC_TRY(vc_clone_event(c, &c->w->in[i], err));
	return VC_OK;
}

int vc_clone_rest(struct vc_clone *c, size_t rest, struct vc_error *err)
{
	for (size_t i = rest; i < c->w->n; i++)
		VC_TRY(vc_clone_event(c, &c->w->in[i], err));
	return VC_OK;
}

static bool is_weight(struct vc_clone *c, uint64_t size)
{
	if (!c->weight && (c->weight = calloc(c->a.n + 1, sizeof(*c->weight)))) {
		for (size_t i = 0; i < c->a.n; i++)
			if (c->a.block[i].category == VC_CAT_PARAMETER ||
			    c->a.block[i].category == VC_CAT_GRADIENT)
				c->weight[c->weights++] = c->a.block[i].size;
		vc_sort_u64(c->weight, c->weights);
	}
	return c->weight && vc_find_u64(c->weight, c->weights, size);
}

uint64_t vc_clone_share(void *arg, const struct vc_block_life *b)
{
	struct vc_share *s = arg;
	bool data = b->category == VC_CAT_ACTIVATION || b->category == VC_CAT_FORWARD_TEMP ||
		    b->category == VC_CAT_BACKWARD_TEMP;

	if (!data || b->size <= 512 || is_weight((struct vc_clone *)s->c, b->size))
		return b->size;
	return (uint64_t)((double)b->size * s->share + 0.5);
}
