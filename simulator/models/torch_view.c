/* SPDX-License-Identifier: Apache-2.0 */
/* torch_view.c - looking at the heap: snapshot order, statistics, invariants. */

#include "simulator/models/torch_index.h"
#include "common/vec.h"

struct run { uint64_t addr; uint32_t first; };

VC_COMPARE(by_addr, struct run, VC_ORDER(x->addr, y->addr))

static bool is_mapped(const struct torch *t, uint32_t i)
{
	return i && t->b[i].state != TORCH_UNMAPPED && t->b[i].state != TORCH_UNUSED;
}

/* A run of mapped blocks starts where nothing, or nothing mapped, lies before. */
static struct run *list_runs(const struct torch *t, size_t *n)
{
	struct run *r;
	size_t k = 0;

	for (uint32_t i = 1; i < t->used; i++)
		k += is_mapped(t, i) && !is_mapped(t, t->b[i].prev);
	r = malloc((k + 1) * sizeof(*r));
	if (!r)
		return NULL;
	k = 0;
	for (uint32_t i = 1; i < t->used; i++)
		if (is_mapped(t, i) && !is_mapped(t, t->b[i].prev))
			r[k++] = (struct run){ t->b[i].addr, i };
	vc_sort(r, k, sizeof(*r), by_addr);
	*n = k;
	return r;
}

static struct vc_extent describe_run(const struct torch *t, uint32_t first)
{
	const struct torch_set *s = t->set[t->b[first].set];
	struct vc_extent x = { .what = VC_X_SEGMENT, .addr = t->b[first].addr, .stream = s->stream,
			       .small = s->pool->small, .expandable = t->b[first].range != 0,
			       .pool = s->pool->owner ? s->pool->owner->id : 0,
			       .away = t->away.n && torch_is_away(t, t->b[first].addr) };

	for (uint32_t i = first, n = 0; is_mapped(t, i) && n < t->used; i = t->b[i].next, n++) {
		const struct torch_block *b = &t->b[i];

		x.size += b->size;
		if (b->state == TORCH_FREE || b->state == TORCH_LOST)
			continue;
		x.active += b->size;
		x.requested += b->requested;
		if (b->state == TORCH_LIVE)
			x.allocated += b->size;
	}
	return x;
}

static int walk_run(const struct torch *t, uint32_t first, vc_extent_fn *fn, void *arg)
{
	struct vc_extent x = describe_run(t, first);
	int r = fn(arg, &x);

	for (uint32_t i = first, n = 0; r >= 0 && is_mapped(t, i) && n < t->used;
	     i = t->b[i].next, n++) { /* once torn a chain can lead back to itself */
		const struct torch_block *b = &t->b[i];

		x.what = b->state == TORCH_LIVE ? VC_X_LIVE
		       : b->state == TORCH_PENDING ? VC_X_PENDING : VC_X_FREE;
		x.addr = b->addr;
		x.size = b->size;
		x.requested = b->requested;
		x.id = x.what == VC_X_FREE ? 0 : b->id;
		x.allocated = x.active = 0;
		r = fn(arg, &x);
	}
	return r;
}

int torch_walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	const struct torch *t = m->state;
	size_t n = 0;
	struct run *r = list_runs(t, &n);
	int rc = r ? VC_OK : VC_ENOMEM;

	for (size_t k = 0; k < n && rc >= 0; k++)
		rc = walk_run(t, r[k].first, fn, arg);
	free(r);
	return rc < 0 ? rc : VC_OK;
}

/* ---- statistics ---- */
static int scalar(vc_stat_fn *fn, void *arg, const char *name, int64_t v)
{
	struct vc_stat s = { name, NULL, v, v, 0, 0 };

	return fn(arg, &s);
}

static int classes(const struct torch *t, enum torch_stat_kind k, const char *name, vc_stat_fn *fn,
		   void *arg)
{
	const struct torch_stat s[2] = { t->stat[0][k], t->stat[1][k] };
	int64_t up = s[0].up + s[1].up;
	struct vc_stat all = { name, "all", t->all[k].cur, t->all[k].peak, up, up - t->all[k].cur };
	struct vc_stat small = { name,      "small_pool", s[0].cur,
				s[0].peak, s[0].up,      s[0].up - s[0].cur };
	struct vc_stat large = { name,      "large_pool", s[1].cur,
				s[1].peak, s[1].up,      s[1].up - s[1].cur };
	int r = fn(arg, &all);

	if (r >= 0)
		r = fn(arg, &small);
	return r < 0 ? r : fn(arg, &large);
}

/* What is handed out plus what waits for other streams; both enter at the hand-out. */
static int active(const struct torch *t, bool bytes, vc_stat_fn *fn, void *arg)
{
	static const char *const klass[3] = { "all", "small_pool", "large_pool" };
	enum torch_stat_kind k = bytes ? TORCH_ALLOCATED_BYTES : TORCH_ALLOCATION;
	const struct torch_pending *wait = bytes ? t->bytes : t->blocks;
	const struct torch_stat s[2] = { t->stat[0][k], t->stat[1][k] };
	int r = VC_OK;

	for (int c = 0; c < 3 && r >= 0; c++) {
		const struct torch_pending *w = &wait[c ? c - 1 : 2];
		int64_t cur = (c ? s[c - 1].cur : t->all[k].cur) + w->cur;
		int64_t peak = c ? s[c - 1].peak : t->all[k].peak,
			up = c ? s[c - 1].up : s[0].up + s[1].up;
		struct vc_stat x = { bytes ? "active_bytes" : "active", klass[c], cur,
				     peak > w->peak ? peak : w->peak, up, up - cur };

		r = fn(arg, &x);
	}
	return r;
}

static int all_classes(const struct torch *t, vc_stat_fn *fn, void *arg)
{
	static const struct { const char *name; enum torch_stat_kind k;
	} row[] = { { "allocation", TORCH_ALLOCATION },
		   { "segment", TORCH_SEGMENT },
		   { "active", TORCH_STATS },
		   { "inactive_split", TORCH_SPLIT },
		   { "allocated_bytes", TORCH_ALLOCATED_BYTES },
		   { "reserved_bytes", TORCH_RESERVED_BYTES },
		   { "active_bytes", TORCH_STATS },
		   { "inactive_split_bytes", TORCH_SPLIT_BYTES },
		   { "requested_bytes", TORCH_REQUESTED_BYTES } };
	int r = VC_OK;

	for (size_t i = 0; i < sizeof(row) / sizeof(*row) && r >= 0; i++)
		r = row[i].k == TORCH_STATS ? active(t, i > 2, fn, arg)
					    : classes(t, row[i].k, row[i].name, fn, arg);
	return r;
}

int torch_stats(const struct vc_model *m, vc_stat_fn *fn, void *arg)
{
	const struct torch *t = m->state;
	const struct torch_stat *o[2] = { &t->oversize_allocs, &t->oversize_segments };
	const char *const oname[2] = { "oversize_allocations", "oversize_segments" };
	int r = all_classes(t, fn, arg);

	for (int k = 0; k < 2 && r >= 0; k++) {
		struct vc_stat s = { oname[k],   "",       o[k]->cur,
				    o[k]->peak, o[k]->up, o[k]->up - o[k]->cur };

		r = fn(arg, &s);
	}
	if (r >= 0)
		r = scalar(fn, arg, "num_alloc_retries", t->retries);
	if (r >= 0)
		r = scalar(fn, arg, "num_ooms", t->ooms);
	if (r >= 0)
		r = scalar(fn, arg, "max_split_size", t->initial_max_split);
	if (r >= 0 && t->r->stat_sync)
		r = scalar(fn, arg, "num_sync_all_streams", t->sync_all);
	if (r >= 0 && t->r->stat_device)
		r = scalar(fn, arg, "num_device_alloc", t->device_alloc);
	if (r >= 0 && t->r->stat_device)
		r = scalar(fn, arg, "num_device_free", t->device_free);
	if (r >= 0 && t->r->stat_rejections)
		r = scalar(fn, arg, "num_oom_rejections", t->rejections);
	return r < 0 ? r : VC_OK;
}

/* ---- invariants ---- */
struct sums { uint64_t mapped, active, allocated, free_blocks; };

static int broken(struct vc_error *err, const struct torch_block *b, const char *what)
{
	return vc_fail(err, VC_EINTERNAL, "torch: block at %#" PRIx64 " of %" PRIu64 " bytes %s",
		       b->addr, b->size, what);
}

static int check_block(const struct torch *t, uint32_t i, struct sums *sum, struct vc_error *err)
{
	const struct torch_block *b = &t->b[i], *n = &t->b[b->next];

	if (b->next && (n->prev != i || n->addr != b->addr + b->size || n->set != b->set))
		return broken(err, b, "does not meet its neighbour");
	if (b->next && n->state == b->state &&
	    (b->state == TORCH_FREE || b->state == TORCH_UNMAPPED))
		return broken(err, b, "was not merged with its neighbour");
	if (!b->size)
		return broken(err, b, "is empty");
	if (b->state != TORCH_UNMAPPED)
		sum->mapped += b->size;
	if (b->state == TORCH_LIVE)
		sum->allocated += b->size;
	if (b->state == TORCH_LIVE || b->state == TORCH_PENDING)
		sum->active += b->size;
	sum->free_blocks += b->state == TORCH_FREE;
	return VC_OK;
}

static int check_order(const struct torch *t, const struct torch_set *s, uint64_t *n,
		       struct vc_error *err)
{
	uint32_t last = 0;

	for (uint32_t i = torch_index_first(s); i; i = torch_index_step(t, i, 1)) {
		if (t->b[i].state != TORCH_FREE || t->b[i].set != s->index)
			return broken(err, &t->b[i], "is in the wrong set");
		if (last && !torch_free_before(&t->b[last], &t->b[i]))
			return broken(err, &t->b[i], "is out of order");
		last = i;
		++*n;
	}
	return VC_OK;
}

int torch_check(const struct vc_model *m, struct vc_error *err)
{
	const struct torch *t = m->state;
	struct sums sum = { 0, 0, 0, 0 };
	uint64_t listed = 0;
	int r = VC_OK;

	if (t->torn) /* as in the real program nothing holds any more */
		return VC_OK;
	for (uint32_t i = 1; i < t->used && r >= 0; i++)
		if (t->b[i].state != TORCH_UNUSED)
			r = check_block(t, i, &sum, err);
	for (uint32_t k = 0; k < t->sets && r >= 0; k++)
		if (t->set[k])
			r = check_order(t, t->set[k], &listed, err);
	VC_TRY(r);
	if (listed != sum.free_blocks || sum.mapped != m->now.reserved + t->away.reserved ||
	    sum.mapped != t->total || sum.allocated != m->now.allocated + t->away.allocated ||
	    sum.active != m->now.active + t->away.active)
		return vc_fail(err, VC_EINTERNAL,
			       "torch: blocks sum to %" PRIu64 " mapped, %" PRIu64
			       " active, %" PRIu64 " allocated; the totals say %" PRIu64
			       ", %" PRIu64 ", %" PRIu64,
			       sum.mapped, sum.active, sum.allocated, m->now.reserved,
			       m->now.active, m->now.allocated);
	return VC_OK;
}
