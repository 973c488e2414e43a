/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - what PyTorch's own memory history would have recorded of this run, and the heap it
 * ends with: enough to write a snapshot that its viewers open. */

#include "common/pages.h"
#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

/* Entries kept (96 MiB); of longer runs the last ones, as PyTorch's ring buffer does. */
#define LIMIT ((size_t)2 << 20)

struct origin { uint64_t requested; uint32_t stream, site, label; bool used; };

/* What the recording shows since the last request: its times and call sites are those of the
 * entries. */
struct seen { uint64_t addr, time_ns; uint32_t site; uint8_t action; };

struct state {
	struct seen *seen; size_t seens, seen_cap, seen_next;
	struct vc_pages origins;         /* of live blocks, by id */
	struct vc_history_entry *at; size_t cap;
	uint64_t n, stamped; /* entries so far; those that have their time and call site */
	bool nomem, told;    /* told: the model keeps a history of its segments itself */
	struct vc_heap_map end;
};

static struct vc_history_entry *entry_at(struct state *st, uint64_t i)
{
	return &st->at[i % LIMIT];
}

static void add(struct state *st, struct vc_history_entry e)
{
	if (st->n < LIMIT && !vc_vec_room(st->at, st->cap, st->n + 1)) {
		st->nomem = true;
		return;
	}
	*entry_at(st, st->n++) = e;
}

/* ---- segments ---- */

static void history_trace(struct vc_observer *o, const struct vc_trace_entry *t)
{
	static const uint8_t action[] = {
		[VC_TR_SEGMENT_ALLOC] = VC_HIST_SEGMENT_ALLOC,
		[VC_TR_SEGMENT_FREE] = VC_HIST_SEGMENT_FREE,
		[VC_TR_SEGMENT_MAP] = VC_HIST_SEGMENT_MAP,
		[VC_TR_SEGMENT_UNMAP] = VC_HIST_SEGMENT_UNMAP,
		[VC_TR_FREE_DONE] = VC_HIST_FREE_COMPLETED, [VC_TR_OOM] = VC_HIST_OOM,
	};
	struct state *st = o->state;

	st->told = true;
	if (t->kind != VC_TR_ALLOC && t->kind != VC_TR_FREE) /* those come as steps */
		add(st, (struct vc_history_entry){ .addr = t->addr, .size = t->size,
						   .stream = t->stream,
						   .action = action[t->kind] });
}

/* Models without a history of their own: what they got from the device are their segments. */
static void history_device(struct vc_observer *o, const struct vc_device_change *c)
{
	struct state *st = o->state;
	struct vc_history_entry e = { .addr = c->addr, .size = c->size, .driver = true };

	if (c->failed)
		return;
	switch (c->what) {
	case VC_DRV_MALLOC: e.action = VC_HIST_SEGMENT_ALLOC; break;
	case VC_DRV_FREE: e.action = VC_HIST_SEGMENT_FREE; break;
	case VC_DRV_MAP: e.action = VC_HIST_SEGMENT_MAP; break;
	case VC_DRV_UNMAP: e.action = VC_HIST_SEGMENT_UNMAP; break;
	default: return;
	}
	add(st, e);
}

/* ---- blocks ---- */

static struct origin *remember(struct state *st, uint64_t id, struct origin g)
{
	struct origin *to = vc_pages_put(&st->origins, id);

	if (!to) {
		st->nomem = true;
		return NULL;
	}
	g.used = true;
	*to = g;
	return to;
}

static struct origin *origin_of(const struct state *st, uint64_t id)
{
	struct origin *g = id ? vc_pages_get(&st->origins, id) : NULL;

	return g && g->used ? g : NULL;
}

static int note_start(void *arg, const struct vc_extent *x)
{
	struct state *st = arg;
	struct origin *g = origin_of(st, x->id);

	if ((x->what != VC_X_LIVE && x->what != VC_X_PENDING) || !x->id)
		return VC_OK;
	if (!g)
		g = remember(st, x->id, (struct origin){ 0 });
	if (g) {
		g->requested = x->requested;
		g->stream = x->stream;
	}
	return VC_OK;
}

static int history_origin(struct vc_observer *o, uint64_t id, uint32_t site, struct vc_error *err)
{
	struct state *st = o->state;

	if (!st->origins.record)
		vc_pages_init(&st->origins, sizeof(struct origin));
	return remember(st, id, (struct origin){ .site = site }) ? VC_OK :
								 vc_nomem(err, "call sites");
}

static int history_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;

	st->n = st->stamped = 0; /* making the starting heap is not part of the run */
	if (!st->origins.record)
		vc_pages_init(&st->origins, sizeof(struct origin));
	return m->type->walk(m, note_start, st) < 0 ? vc_nomem(err, "the starting heap") : VC_OK;
}

static void freed(struct state *st, const struct vc_step *s)
{
	struct origin *g = origin_of(st, s->ev->id);
	struct vc_history_entry e = { .addr = s->block->addr,
				     .size = g ? g->requested : s->ev->size,
				     .stream = g ? g->stream : s->ev->stream,
				     .action = VC_HIST_FREE_REQUESTED };

	add(st, e);
	e.action = VC_HIST_FREE_COMPLETED;
	if (s->answer == VC_WAITS)
		return;
	add(st, e);
	if (g)
		vc_pages_drop(&st->origins, s->ev->id);
}

static void see(struct state *st, const struct vc_event *ev)
{
	static const uint8_t action[] = { VC_HIST_SEGMENT_ALLOC, VC_HIST_SEGMENT_FREE,
					 VC_HIST_SEGMENT_MAP, VC_HIST_SEGMENT_UNMAP };

	if (!vc_vec_room(st->seen, st->seen_cap, st->seens + 1)) {
		st->nomem = true;
		return;
	}
	st->seen[st->seens++] = (struct seen){ ev->addr, ev->time_ns, ev->site,
					       action[ev->kind - VC_EV_SEGMENT_ALLOC] };
}

/* New entries get their time and call site: of the recorded entry that they repeat, else of the
 * event that caused them. */
static void stamp(struct state *st, const struct vc_event *ev)
{
	for (; st->stamped < st->n; st->stamped++) {
		struct vc_history_entry *e = entry_at(st, st->stamped);

		e->time_ns = ev->time_ns;
		e->site = ev->site;
		for (size_t k = 0; k < st->seens; k++) {
			const struct seen *s = &st->seen[(st->seen_next + k) % st->seens];

			if (s->action != e->action || s->addr != e->addr)
				continue;
			e->time_ns = s->time_ns;
			e->site = s->site;
			st->seen_next = (st->seen_next + k + 1) %
					st->seens; /* mostly in the same order */
			break;
		}
	}
	if (ev->kind < VC_EV_SEGMENT_ALLOC)
		st->seens = st->seen_next = 0;
}

static int history_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	const struct vc_event *ev = s->ev;
	struct origin *g;

	if (ev->kind == VC_EV_ALLOC && s->block) {
		remember(st, ev->id, (struct origin){ ev->size, ev->stream, ev->site, ev->label,
			true });
		add(st, (struct vc_history_entry){ .addr = s->block->addr, .size = ev->size,
			.id = ev->id, .stream = ev->stream, .label = ev->label,
			.action = VC_HIST_ALLOC });
	} else if (ev->kind == VC_EV_FREE && s->block) {
		freed(st, s);
	} else if (ev->kind == VC_EV_HEAP_BLOCK && ev->flags & VC_EVF_FINAL &&
		   (g = origin_of(st, ev->id)) && !g->site) {
		g->site = ev->site; /* of blocks older than the recording this is the only place */
	}
	if (ev->kind >= VC_EV_SEGMENT_ALLOC && ev->kind <= VC_EV_SEGMENT_UNMAP)
		see(st, ev);
	stamp(st, ev);
	return st->nomem ? vc_nomem(err, "the memory history") : VC_OK;
}

/* ---- the end ---- */

static int take_extent(void *arg, const struct vc_extent *x)
{
	struct state *st = arg;
	const struct origin *g = origin_of(st, x->id);
	struct vc_heap_map *m = &st->end;

	if (!vc_vec_one(m->at, m->n))
		return VC_ENOMEM;
	m->at[m->n++] = (struct vc_heap_extent){ .addr = x->addr, .size = x->size,
		.requested = x->requested, .id = x->id, .pool = x->pool, .stream = x->stream,
		.site = g ? g->site : 0, .label = g ? g->label : 0, .what = (uint8_t)x->what,
		.small = x->small, .expandable = x->expandable };
	return VC_OK;
}

/* Oldest first, without what the model's own history says better. */
static struct vc_history_entry *unroll(struct state *st, uint64_t first, size_t *n)
{
	struct vc_history_entry *at = malloc(((size_t)(st->n - first) + 1) * sizeof(*at));

	*n = 0;
	for (uint64_t i = first; at && i < st->n; i++)
		if (!(st->told && entry_at(st, i)->driver))
			at[(*n)++] = *entry_at(st, i);
	return at;
}

static int history_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		       struct vc_error *err)
{
	struct state *st = o->state;
	struct vc_history *h = &r->history;

	st->end.event = r->stats.events;
	if (m->type->walk(m, take_extent, st) < 0)
		return vc_nomem(err, "the final heap");
	h->dropped = vc_minus(st->n, LIMIT);
	h->at = unroll(st, h->dropped, &h->n);
	VC_HAVE(h->at, "the memory history", err);
	h->end = st->end;
	st->end.at = NULL;
	return VC_OK;
}

static void history_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	vc_pages_fini(&st->origins);
	VC_FREE(st->seen, st->at, st->end.at);
}

const struct vc_observer_type vc_observer_history = {
	.name = "history",
	.summary = "PyTorch's memory history of the run and the heap it ends with",
	.state_size = sizeof(struct state), .origin = history_origin, .begin = history_begin,
	.step = history_step, .trace = history_trace, .device = history_device,
	.end = history_end, .fini = history_fini,
};
