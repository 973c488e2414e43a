/* SPDX-License-Identifier: Apache-2.0 */
/* torch_pool.c - sets of free blocks, private pools, scopes, captures. */

#include "common/vec.h"
#include "simulator/models/torch_index.h"

/* ---- sets ---- */
static bool room_for_stream(struct torch *t, struct torch_pool *p, uint32_t stream)
{
	uint32_t n = stream + 4;
	struct torch_set **of, **order;

	if (stream < p->streams)
		return true;
	of = realloc(p->of, n * sizeof(*of));
	if (of)
		p->of = of;
	order = realloc(p->order, n * sizeof(*order));
	if (order)
		p->order = order;
	if (!of || !order) {
		t->nomem = true;
		return false;
	}
	memset(of + p->streams, 0, (n - p->streams) * sizeof(*of));
	p->streams = n;
	return true;
}

static bool room_for_set(struct torch *t, uint32_t *index)
{
	struct torch_set **set;
	uint32_t cap = t->set_cap ? 2 * t->set_cap : 16;

	for (*index = 0; *index < t->sets; (*index)++)
		if (!t->set[*index])
			return true;
	if (t->sets == t->set_cap) {
		set = realloc(t->set, cap * sizeof(*set));
		if (!set) {
			t->nomem = true;
			return false;
		}
		t->set = set;
		t->set_cap = cap;
	}
	t->set[t->sets++] = NULL;
	return true;
}

struct torch_set *torch_set_make(struct torch *t, struct torch_pool *p, uint32_t stream)
{
	struct torch_set *s;
	uint32_t i, k;

	if (stream < p->streams && p->of[stream])
		return p->of[stream];
	if (!room_for_stream(t, p, stream) || !room_for_set(t, &i))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		t->nomem = true;
		return NULL;
	}
	s->pool = p;
	s->stream = stream;
	s->handle = stream < t->m->streams->n ? t->m->streams->handle[stream] : stream;
	s->index = i;
	t->set[i] = s;
	p->of[stream] = s;
	for (k = p->sets; k && p->order[k - 1]->handle > s->handle; k--)
		p->order[k] = p->order[k - 1];
	p->order[k] = s;
	p->sets++;
	return s;
}

static void pool_fini(struct torch *t, struct torch_pool *p)
{
	for (uint32_t k = 0; k < p->sets; k++) {
		t->set[p->order[k]->index] = NULL;
		free(p->order[k]);
	}
	VC_FREE(p->of, p->order);
}

/* ---- private pools ---- */
/* Pool ids (a,b) travel as a << 32 | b; the real hash is that of a, or of b when a is 0. */
static uint64_t pool_hash(uint64_t id)
{
	return id >> 32 ? id >> 32 : id & UINT32_MAX;
}

struct torch_private *torch_private_find(struct torch *t, uint64_t id)
{
	for (uint32_t i = 0; i < t->privs; i++)
		if (t->priv[i] && t->priv[i]->id == id)
			return t->priv[i];
	return NULL;
}

struct torch_private *torch_private_new(struct torch *t, uint64_t id)
{
	uint32_t cap = t->priv_cap ? 2 * t->priv_cap : 8;
	struct torch_private *p = calloc(1, sizeof(*p)), **list;
	struct torch_pool *pools = calloc(2, sizeof(*pools));
	uint32_t at = 0;

	while (at < t->privs && t->priv[at])
		at++;
	if (p && pools && at == t->priv_cap) {
		list = realloc(t->priv, cap * sizeof(*list));
		if (list) {
			t->priv = list;
			t->priv_cap = cap;
		}
	}
	if (!p || !pools || at == t->priv_cap) {
		VC_FREE(p, pools);
		t->nomem = true;
		return NULL;
	}
	p->id = id;
	p->pool[0] = &pools[0];
	p->pool[1] = &pools[1];
	pools[0].small = true;
	pools[0].owner = pools[1].owner = p;
	t->priv[at] = p;
	if (at == t->privs)
		t->privs++;
	return p;
}

static uint32_t private_index(const struct torch *t, const struct torch_private *p)
{
	uint32_t i = 0;

	while (t->priv[i] != p)
		i++;
	return i;
}

static void private_free(struct torch *t, struct torch_private *p)
{
	pool_fini(t, p->pool[0]);
	pool_fini(t, p->pool[1]);
	VC_FREE(p->pool[0], p);
}

static bool is_in(const struct torch *t, uint32_t i, const struct torch_private *p)
{
	return t->b[i].state != TORCH_UNUSED && t->set[t->b[i].set]->pool->owner == p;
}

void torch_private_delete(struct torch *t, struct torch_private *p)
{
	uint32_t at = private_index(t, p);

	/* Its count of driver allocations can reach 0 too early (expandable segments); the real
	 * program then corrupts its heap. The pool stays here as long as it has blocks. */
	torch_map_erase(&t->freeable, pool_hash(p->id), p->id);
	p->freeable = false;
	for (uint32_t i = 1; i < t->used; i++)
		if (is_in(t, i, p) && t->b[i].state != TORCH_UNMAPPED)
			return;
	for (uint32_t i = 1; i < t->used; i++)
		if (is_in(t, i, p)) {
			t->range[t->b[i].range].used = false;
			torch_drop(t, i);
		}
	private_free(t, p);
	t->priv[at] = NULL;
}

static int add_use(struct torch *t, uint64_t id, struct torch_private **out)
{
	struct torch_private *p = torch_private_find(t, id);

	if (p && p->use <= 0) {
		torch_raise(t, "it->second->use_count > 0 INTERNAL ASSERT FAILED");
		return VC_RAISED;
	}
	if (!p)
		p = torch_private_new(t, id);
	if (!p)
		return VC_ENOMEM;
	p->use++;
	*out = p;
	return VC_DONE;
}

static int pool_create(struct torch *t, const struct vc_pool_call *c)
{
	struct torch_private *p;
	int r;

	if (!t->r->create_pool)
		return VC_REFUSED;
	r = add_use(t, c->pool, &p);
	if (r != VC_DONE)
		return r;
	if (c->flags & VC_EVF_USE_ON_OOM && t->r->overflow)
		t->nomem |= !torch_map_put(&t->on_oom, pool_hash(p->id), p->id, 0);
	if (c->flags & VC_EVF_NO_SPLIT && t->r->no_split)
		p->no_split = true;
	p->served |= c->flags & VC_EVF_SERVED;
	return VC_DONE;
}

static int pool_begin(struct torch *t, const struct vc_pool_call *c)
{
	struct torch_private *p;
	int r = add_use(t, c->pool, &p);

	if (r != VC_DONE)
		return r;
	for (uint32_t i = 0; i < t->scopes; i++)
		if (t->scope[i].pool == p) { /* the use stays added */
			torch_raise(t, "beginAllocateToPool: already recording to mempool_id");
			return VC_RAISED;
		}
	if (t->scopes == t->scope_cap) {
		uint32_t cap = t->scope_cap ? 2 * t->scope_cap : 8;
		struct torch_scope *s = realloc(t->scope, cap * sizeof(*s));

		if (!s)
			return VC_ENOMEM;
		t->scope = s;
		t->scope_cap = cap;
	}
	t->scope[t->scopes++] = (struct torch_scope){ p, c->stream };
	return VC_DONE;
}

static int pool_end(struct torch *t, const struct vc_pool_call *c)
{
	uint32_t i = 0;

	while (i < t->scopes && t->scope[i].pool->id != c->pool)
		i++;
	if (i == t->scopes) {
		torch_raise(t, "endAllocatePool: not currently recording to mempool_id");
		return VC_RAISED;
	}
	memmove(t->scope + i, t->scope + i + 1, (t->scopes - i - 1) * sizeof(*t->scope));
	t->scopes--;
	return VC_DONE;
}

static void make_freeable(struct torch *t, struct torch_private *p)
{
	p->freeable = true;
	t->nomem |= !torch_map_put(&t->freeable, pool_hash(p->id), p->id, private_index(t, p));
}

/* The overflow search enters a pool and leaves it again, whatever state the pool is in: one that
 * was released fails an assertion, one that was deleted comes back empty. NULL: raised, or no
 * memory. */
struct torch_private *torch_pool_visit(struct torch *t, uint64_t id)
{
	struct torch_private *p;

	if (add_use(t, id, &p) != VC_DONE)
		return NULL;
	for (uint32_t i = 0; i < t->scopes; i++)
		if (t->scope[i].pool == p) {
			torch_raise(t, "beginAllocateToPool: already recording to mempool_id");
			return NULL;
		}
	if (!--p->use)
		make_freeable(t, p);
	return p;
}

static int pool_release(struct torch *t, const struct vc_pool_call *c)
{
	struct torch_private *p = torch_private_find(t, c->pool);

	if (!p || --p->use < 0) {
		torch_raise(t, "%s INTERNAL ASSERT FAILED",
			    p ? "uc >= 0" : "it != graph_pools.end()");
		return VC_RAISED;
	}
	if (p->use)
		return VC_DONE;
	if (t->r->release_splits)
		p->no_split = false;
	make_freeable(t, p);
	return VC_DONE;
}

static int set_class(struct torch *t, const struct vc_pool_call *c)
{
	struct torch_stream *s = torch_stream_at(t, c->stream);
	size_t n = strlen(c->klass) + 1;
	char *copy;

	if (!t->r->opt_reserve)
		return VC_REFUSED;
	copy = malloc(n);
	if (!copy)
		return VC_ENOMEM;
	memcpy(copy, c->klass, n);
	free(s->klass);
	s->klass = copy;
	return VC_DONE;
}

static int capture(struct torch *t, uint32_t stream, bool on)
{
	torch_stream_at(t, stream)->capturing = on;
	if (!on && !t->captures && t->r->capture == TORCH_REAL_CAPTURE) {
		torch_raise(t, "%sactive_captures_ > 0 INTERNAL ASSERT FAILED",
			    t->r->active_captures ? "" : "num_");
		return VC_RAISED;
	}
	if (on)
		t->captures++;
	else if (t->captures)
		t->captures--;
	t->current = on ? stream : 0;
	return VC_DONE;
}

int torch_pool_call(struct torch *t, const struct vc_pool_call *c)
{
	switch (c->what) {
	case VC_EV_POOL_CREATE: return pool_create(t, c);
	case VC_EV_POOL_BEGIN: return pool_begin(t, c);
	case VC_EV_POOL_END: return pool_end(t, c);
	case VC_EV_POOL_RELEASE: return pool_release(t, c);
	case VC_EV_CAPTURE_BEGIN: return capture(t, c->stream, true);
	case VC_EV_CAPTURE_END: return capture(t, c->stream, false);
	case VC_EV_STREAM_CLASS: return set_class(t, c);
	default: return VC_REFUSED;
	}
}

struct torch_pool *torch_choose_pool(struct torch *t, bool small, uint32_t stream)
{
	for (uint32_t k = 0; k < t->scopes; k++) {
		const struct torch_scope *s = &t->scope[t->r->newest_scope ? t->scopes - 1 - k : k];

		if (s->stream == VC_STREAM_ALL || s->stream == stream)
			return s->pool->pool[!small];
	}
	return &t->pool[!small];
}

void torch_pool_fini(struct torch *t)
{
	for (uint32_t i = 0; i < t->privs; i++)
		if (t->priv[i])
			private_free(t, t->priv[i]);
	pool_fini(t, &t->pool[0]);
	pool_fini(t, &t->pool[1]);
	VC_FREE(t->priv, t->scope, t->set);
	torch_map_fini(&t->freeable);
	torch_map_fini(&t->on_oom);
	torch_map_fini(&t->whole);
}
