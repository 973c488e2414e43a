/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - the loop in the middle of the house.
 *
 * Ids are dense, so live blocks are an array indexed by id (in pages that go when their blocks do);
 * events come in batches; there is no heap call per event. */
#include "simulator/replay/engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pages.h"
#include "common/vec.h"
#include "simulator/replay/follow.h"
#include "simulator/replay/known.h"
#include "simulator/replay/peaks.h"
#include "simulator/replay/start_heap.h"

#define MAX_OBSERVERS 16
#define BATCH 512
/* The path of every event, as in the torch model: one function, since calls would cost a tenth. */
#define INLINE inline __attribute__((always_inline))

enum life { DEAD, LIVE, WAITING };

struct live { struct vc_block block; uint32_t granules; uint8_t life; }; /* granules of 512 bytes */

struct engine {
	struct vc_run *run;
	struct vc_model model;
	struct vc_streams streams;
	const struct vc_meta *meta;
	struct vc_device *device;
	struct vc_pages live;
	struct vc_extent *heap;
	size_t heap_n; /* the starting heap while it is collected */
	uint32_t *heap_site;     /* who asked for each of its blocks */
	struct vc_observer obs[MAX_OBSERVERS];
	size_t nobs, ntrace;
	bool has_step, seeded, begun, stopped; /* begun: observers know where the run starts */
	bool alert; /* somebody looks at each event, or the run has not begun */
	bool given_up;
	bool alone; /* settings changed on the way, pools: not to be taken for another run */
	uint16_t device_index;
	uint64_t index, lower, beside;   /* beside: context + other processes */
	struct vc_watch watch;
	struct vc_follow *follow;
	struct vc_stats stats;
};

static void on_device(void *arg, const struct vc_device_change *c)
{
	struct engine *e = arg;

	e->stats.driver_calls++;
	if (!c->failed) {
		e->stats.segment_allocs += c->what == VC_DRV_MALLOC;
		e->stats.segment_frees += c->what == VC_DRV_FREE;
	}
	for (size_t i = 0; i < e->nobs; i++)
		if (e->obs[i].type->device)
			e->obs[i].type->device(&e->obs[i], c);
}

static void on_trace(void *arg, const struct vc_trace_entry *t)
{
	struct engine *e = arg;

	for (size_t i = 0; i < e->nobs; i++)
		if (e->obs[i].type->trace)
			e->obs[i].type->trace(&e->obs[i], t);
}

static void note_most(struct engine *e, const struct vc_event *ev)
{
	struct vc_at at = { e->index, ev ? ev->time_ns : 0, e->beside, e->run->device.context };

	if (vc_peaks_most(&e->stats, &e->model.now, &at, &e->watch) && e->run->enough &&
	    e->run->enough->is(e->run->enough->arg, &e->stats))
		e->given_up = e->stopped = true;
}

/* Peaks are kept here and not in an observer: every run wants them and they cost a few compares. */
static INLINE void note_peaks(struct engine *e, const struct vc_event *ev)
{
	const struct vc_totals *now = &e->model.now;
	struct vc_stats *s = &e->stats;

	if (now->requested > s->peak_requested)
		s->peak_requested = now->requested;
	if (now->allocated > s->peak_allocated)
		s->peak_allocated = now->allocated;
	if (now->active > s->peak_active)
		s->peak_active = now->active;
	if (now->segments > s->segments_peak)
		s->segments_peak = now->segments;
	if (now->reserved > e->watch.reserved ||
	    (now->reserved == e->watch.reserved && now->allocated > e->watch.allocated))
		note_most(e, ev);
}

/* The recorded end is no event: only observers that compare it hear of it. */
static int tell_final(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_step s = { ev,     NULL, &e->model, e->index, e->model.now.reserved + e->beside,
			    VC_DONE };

	for (size_t i = 0; i < e->nobs; i++)
		if (e->obs[i].type->final_heap && e->obs[i].type->step(&e->obs[i], &s, err) < 0)
			return vc_wrap(err, "%s", e->obs[i].type->name);
	return VC_OK;
}

static int tell_all(struct engine *e, const struct vc_event *ev, const struct vc_block *b,
		    int answer, struct vc_error *err)
{
	if (!e->begun) /* the starting heap asked for again: not an event of the trace */
		return VC_OK;
	if (e->run->check && e->model.type->check && e->model.type->check(&e->model, err) < 0)
		return vc_wrap(err, "after event %" PRIu64, e->index);
	if (e->has_step) {
		struct vc_step s = { ev, b, &e->model, e->index, e->model.now.reserved + e->beside,
				     answer };

		for (size_t i = 0; i < e->nobs; i++)
			if (e->obs[i].type->step && e->obs[i].type->step(&e->obs[i], &s, err) < 0)
				return vc_wrap(err, "%s", e->obs[i].type->name);
	}
	e->index++;
	return VC_OK;
}

/* alert: somebody may look. Where that is known when compiling, the loop asks nobody. */
static INLINE int tell_if(struct engine *e, const struct vc_event *ev, const struct vc_block *b,
			  int answer, bool alert, struct vc_error *err)
{
	note_peaks(e, ev);
	if (alert)
		return tell_all(e, ev, b, answer, err);
	e->index++;
	return VC_OK;
}

static int tell(struct engine *e, const struct vc_event *ev, const struct vc_block *b, int answer,
		struct vc_error *err)
{
	return tell_if(e, ev, b, answer, e->alert, err);
}

static INLINE void count_live(struct engine *e, struct live *l, uint64_t bytes)
{
	l->granules = (uint32_t)((bytes + 511) / 512);
	l->life = LIVE;
	e->lower += (uint64_t)l->granules * 512;
	if (e->lower > e->stats.lower_bound)
		e->stats.lower_bound = e->lower;
}

static INLINE void forget(struct engine *e, struct live *l, uint64_t id)
{
	l->life = DEAD;
	vc_pages_forget(&e->live, id);
}

static int begin_observers(struct engine *e, struct vc_error *err)
{
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && !e->begun && i < e->nobs; i++)
		if (e->obs[i].type->begin)
			r = e->obs[i].type->begin(&e->obs[i], &e->model, err);
	e->begun = true;
	e->alert = e->has_step || e->run->check;
	return r;
}

static INLINE void note_time(struct engine *e, const struct vc_event *ev)
{
	if (ev->time_ns > e->stats.time_ns)
		e->stats.time_ns = ev->time_ns;
}

/* Scopes of pools may be of all streams, blocks not. */
static int has_one_stream(const struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	return ev->stream != VC_STREAM_ALL ? VC_OK :
		vc_fail(err, VC_EFORMAT, "event %" PRIu64 ": a block of all streams", e->index);
}

static INLINE int do_alloc(struct engine *e, const struct vc_event *ev, bool alert,
			   struct vc_error *err)
{
	struct vc_request rq = { ev->id, ev->size, ev->time_ns, ev->addr, ev->stream,
				 ev->flags & VC_EVF_EXACT };
	struct live *l;
	int r;

	note_time(e, ev);
	VC_TRY(has_one_stream(e, ev, err));
	e->stats.allocs++;
	e->stats.cut_short = false;
	l = vc_pages_at(&e->live, ev->id, sizeof(*l));
	l = l ? l : vc_pages_slot(&e->live, ev->id);
	VC_HAVE(l, "the table of live blocks", err);
	if (e->follow && e->model.type->placed_below)
		vc_follow_place(e->follow, ev->addr);
	if (l->life != DEAD)
		return vc_fail(err, VC_EFORMAT, "event %" PRIu64 ": block %" PRIu64
			       " is allocated twice", e->index, ev->id);
	r = e->model.type->alloc(&e->model, &rq, &l->block, err);
	if (r < 0)
		return r;
	if (r == VC_DONE) {
		vc_pages_keep(&e->live, ev->id);
		if (rq.exact)
			e->alone = true;
		count_live(e, l, ev->size);
		return tell_if(e, ev, &l->block, r, alert, err);
	}
	if (r == VC_REFUSED)
		e->stats.ooms++;
	e->alone |= r == VC_RAISED || rq.exact;
	if (!e->begun && begin_observers(e, err) < 0) /* while the starting heap is rebuilt */
		return err ? (int)err->status : VC_ENOMEM;
	e->stopped = e->run->stop_at_oom;
	return tell(e, ev, NULL, r, err);
}

static INLINE int do_free(struct engine *e, const struct vc_event *ev, bool alert,
			  struct vc_error *err)
{
	struct live *l = vc_pages_at(&e->live, ev->id, sizeof(*l));
	struct vc_block b;
	int r;

	note_time(e, ev);
	e->stats.frees++;
	if (!l || l->life != LIVE) { /* its allocation was refused, or lies before the trace */
		e->stats.unknown_frees++;
		return tell(e, ev, NULL, VC_DONE, err);
	}
	if (alert)
		b = l->block;
	r = e->model.type->free(&e->model, &l->block);
	e->lower -= (uint64_t)l->granules * 512;
	if (r == VC_WAITS)
		l->life = WAITING;
	else
		forget(e, l, ev->id);
	if (r != VC_DONE || alert)
		return tell_if(e, ev, &b, r, alert, err);
	e->index++; /* a block that goes at once raises nothing (tests/models/conformance.c) */
	return VC_OK;
}

static int any_alloc(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	return do_alloc(e, ev, e->alert, err);
}

/* The request that failed in the recorded run is asked for here too. Where it succeeds, nobody
 * knows how long the program would have kept it: it counts for the peak and is given back at
 * once. */
static int do_oom(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_request rq = { .size = ev->size, .time_ns = ev->time_ns, .stream = ev->stream };
	struct vc_block b;
	int r, told;

	VC_TRY(has_one_stream(e, ev, err));
	if (e->follow && vc_follow_evidence(e->follow, ev, err) < 0)
		return err ? (int)err->status : VC_ENOMEM;
	if (!ev->size)
		return tell(e, ev, NULL, VC_DONE, err);
	r = e->model.type->alloc(&e->model, &rq, &b, err);
	if (r < 0)
		return r;
	if (r != VC_DONE) {
		e->alone |= r == VC_RAISED;
		e->stats.ooms += r == VC_REFUSED;
		e->stopped = e->run->stop_at_oom;
		return tell(e, ev, NULL, r, err);
	}
	e->stats.ooms_averted++;
	e->stats.cut_short = true;
	if (e->lower + ev->size > e->stats.lower_bound)
		e->stats.lower_bound = e->lower + ev->size;
	told = tell(e, ev, &b, VC_DONE, err);
	e->model.type->free(&e->model, &b);
	return told;
}

static int do_live(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct live *l = vc_pages_get(&e->live, ev->id);
	const struct vc_model_type *t = e->model.type;

	if (l && ev->kind == VC_EV_USE && l->life == LIVE && t->use)
		t->use(&e->model, &l->block, ev->stream);
	if (l && ev->kind == VC_EV_FREE_DONE && l->life == WAITING) {
		if (t->complete)
			t->complete(&e->model, &l->block);
		forget(e, l, ev->id);
	}
	return tell(e, ev, NULL, VC_DONE, err);
}

static int do_pool(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_pool_call c = { ev->kind, ev->flags, ev->stream, ev->id,
				  ev->label < e->meta->strings ? e->meta->string[ev->label] : "" };
	int r = e->model.type->pool ? e->model.type->pool(&e->model, &c, err) : VC_DONE;

	e->alone = true;
	return r < 0 ? r : tell(e, ev, NULL, r, err);
}

static int do_setting(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	const struct vc_model_type *t = e->model.type;
	const char *text = ev->label < e->meta->strings ? e->meta->string[ev->label] : "";
	double f;
	int r = VC_DONE;

	memcpy(&f, &ev->size, sizeof(f));
	e->alone |= ev->kind != VC_EV_TRIM || ev->id;
	e->stats.limited |= ev->kind == VC_EV_FRACTION;
	if (ev->kind == VC_EV_CONFIGURE && t->configure)
		r = t->configure(&e->model, text, err);
	else if (ev->kind == VC_EV_FRACTION && t->fraction)
		r = t->fraction(&e->model, f, err);
	else if (ev->kind == VC_EV_TRIM && t->trim)
		r = t->trim(&e->model, ev->id, err);
	e->alone |= r == VC_RAISED;
	return r < 0 ? r : tell(e, ev, NULL, r, err);
}

/* What the events say comes on top of what was given for the whole run. */
static int do_others(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	uint64_t others = e->run->device.others + ev->size;

	vc_device_set_others(e->device, others);
	e->beside = e->run->device.context + others;
	note_most(e, ev);
	return tell(e, ev, NULL, VC_DONE, err);
}

/* ---- the starting heap ---- */

static int collect_heap(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	static const uint8_t what[] = { VC_X_FREE, VC_X_LIVE, VC_X_PENDING };
	struct vc_extent x = { .addr = ev->addr, .size = ev->size, .id = ev->id };

	if (!vc_vec_one(e->heap, e->heap_n) || !vc_vec_one(e->heap_site, e->heap_n))
		return vc_nomem(err, "the starting heap");
	if (ev->kind == VC_EV_HEAP_SEGMENT) {
		x.what = VC_X_SEGMENT;
		x.pool = ev->id;
		x.base = vc_start_heap_base(e->meta, ev);
		x.id = 0;
		x.stream = ev->stream;
		x.small = ev->flags & VC_EVF_SMALL;
		x.expandable = ev->flags & VC_EVF_EXPANDABLE;
	} else {
		if (!e->heap_n)
			return vc_fail(err, VC_EFORMAT, "a heap block comes before its segment");
		x.what = what[ev->flags & VC_EVF_LIVE ? 1 : ev->flags & VC_EVF_PENDING ? 2 : 0];
		x.requested = ev->size;
	}
	e->heap_site[e->heap_n] = ev->site;
	e->heap[e->heap_n++] = x;
	return VC_OK;
}

static int adopt_heap(struct engine *e, struct vc_error *err)
{
	struct vc_block *blocks = calloc(e->heap_n, sizeof(*blocks));
	struct vc_heap heap = { e->heap, e->heap_n };
	int r = blocks ? e->model.type->seed(&e->model, &heap, blocks, err) :
			 vc_nomem(err, "the starting heap");

	for (size_t i = 0; r >= 0 && i < e->heap_n; i++) {
		const struct vc_extent *x = &e->heap[i];
		struct live *l;

		if (x->what == VC_X_SEGMENT || x->what == VC_X_FREE || !x->id)
			continue;
		l = vc_pages_put(&e->live, x->id);
		if (!l) {
			r = vc_nomem(err, "the starting heap");
			break;
		}
		l->block = blocks[i];
		count_live(e, l, x->requested);
		if (x->what == VC_X_PENDING) {
			l->life = WAITING;
			e->lower -= (uint64_t)l->granules * 512;
		}
	}
	free(blocks);
	return r < 0 ? vc_wrap(err, "starting heap") : VC_OK;
}

/* Ask for the blocks of the starting heap again, in address order: what remains of a warm start
 * when the model or its settings are not those of the recording. */
static int rebuild_heap(struct engine *e, struct vc_error *err)
{
	for (size_t i = 0; i < e->heap_n; i++) {
		const struct vc_extent *x = &e->heap[i];
		struct vc_event ev = { .kind = VC_EV_ALLOC, .id = x->id, .size = x->requested,
				       .stream = x->stream, .device = e->run->device_index };
		int r;

		if (x->what != VC_X_LIVE || !x->id)
			continue;
		if (!ev.size)
			ev.size = x->size;
		r = any_alloc(e, &ev, err);
		if (r < 0 || e->stopped)
			return r;
	}
	return VC_OK;
}

/* Segments as recorded cannot be taken over by a device that would not have held them. */
static bool heap_fits(const struct engine *e)
{
	return e->follow ||
	       vc_start_heap_bytes(e->heap, e->heap_n) <= vc_device_available(e->device);
}

static int tell_origins(struct engine *e, struct vc_error *err)
{
	for (size_t i = 0; i < e->heap_n; i++) {
		const struct vc_extent *x = &e->heap[i];

		if ((x->what != VC_X_LIVE && x->what != VC_X_PENDING) || !x->id)
			continue;
		for (size_t k = 0; k < e->nobs; k++)
			if (e->obs[k].type->origin)
				VC_TRY(e->obs[k].type->origin(&e->obs[k], x->id, e->heap_site[i],
							      err));
	}
	return VC_OK;
}

static int begin(struct engine *e, struct vc_error *err)
{
	int r = vc_start_heap_tile(e->heap, e->heap_n, err);

	e->seeded = true;
	if (e->run->start == VC_START_WARM && (!e->model.type->seed || !heap_fits(e)))
		e->run->start = VC_START_REBUILD;
	if (r == VC_OK && e->heap_n && e->run->start == VC_START_WARM)
		r = adopt_heap(e, err);
	else if (r == VC_OK && e->heap_n && e->run->start == VC_START_REBUILD)
		r = rebuild_heap(e, err);
	note_peaks(e, NULL);
	note_most(e, NULL);
	if (r == VC_OK && e->run->start != VC_START_COLD)
		r = tell_origins(e, err);
	return r == VC_OK ? begin_observers(e, err) : r;
}

/* ---- the loop ---- */

static int other_event(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	switch ((enum vc_event_kind)ev->kind) {
	case VC_EV_FREE_DONE: case VC_EV_USE:
		return do_live(e, ev, err);
	case VC_EV_POOL_CREATE: case VC_EV_POOL_BEGIN: case VC_EV_POOL_END: case VC_EV_POOL_RELEASE:
	case VC_EV_CAPTURE_BEGIN: case VC_EV_CAPTURE_END: case VC_EV_STREAM_CLASS:
		return do_pool(e, ev, err);
	case VC_EV_TRIM: case VC_EV_CONFIGURE: case VC_EV_FRACTION:
		return do_setting(e, ev, err);
	case VC_EV_OTHERS: return do_others(e, ev, err);
	case VC_EV_SYNC:
		if (e->model.type->sync)
			e->model.type->sync(&e->model, ev->stream);
		break;
	case VC_EV_OOM: return do_oom(e, ev, err);
	case VC_EV_SEGMENT_ALLOC: case VC_EV_SEGMENT_FREE: case VC_EV_SEGMENT_MAP:
	case VC_EV_SEGMENT_UNMAP:
		if (e->follow && vc_follow_evidence(e->follow, ev, err) < 0)
			return err ? (int)err->status : VC_ENOMEM;
		break;
	case VC_EV_HEAP_SEGMENT: case VC_EV_HEAP_BLOCK:
		return tell_final(e, ev, err);
	default:
		break;
	}
	return tell(e, ev, NULL, VC_DONE, err);
}

static int any_event(struct engine *e, const struct vc_event *ev, struct vc_error *err)
{
	int r;

	if (ev->device != e->device_index && ev->kind != VC_EV_MARK)
		return VC_OK;
	if (ev->kind == VC_EV_HEAP_SEGMENT || ev->kind == VC_EV_HEAP_BLOCK) {
		if (!(ev->flags & VC_EVF_FINAL))
			return e->seeded ? VC_OK : collect_heap(e, ev, err);
	}
	if (!e->seeded && ((r = begin(e, err)) < 0 || e->stopped))
		return r;
	if (ev->kind == VC_EV_ALLOC)
		return any_alloc(e, ev, err);
	if (ev->kind == VC_EV_FREE)
		return do_free(e, ev, e->alert, err);
	note_time(e, ev);
	return other_event(e, ev, err);
}

/* Nearly every event, once the run has begun. */
static INLINE int step(struct engine *e, const struct vc_event *ev, bool alert,
		       struct vc_error *err)
{
	if (ev->device != e->device_index)
		return any_event(e, ev, err);
	if (ev->kind == VC_EV_ALLOC)
		return do_alloc(e, ev, alert, err);
	return ev->kind == VC_EV_FREE ? do_free(e, ev, alert, err) : any_event(e, ev, err);
}

/* Events up to `end`, for as long as it is so that somebody looks at each, or nobody. Returns where
 * that ended. */
static INLINE const struct vc_event *walk(struct engine *e, const struct vc_event *ev,
					  const struct vc_event *end, bool alert, int *r,
					  struct vc_error *err)
{
	while (ev < end && *r == VC_OK && !e->stopped && (!alert || e->alert))
		*r = step(e, ev++, alert, err);
	return ev;
}

static long next_batch(struct vc_source *s, struct vc_event *room, const struct vc_event **ev,
		       struct vc_error *err)
{
	if (s->type->view) /* in memory: no copy */
		return s->type->view(s, ev);
	*ev = room;
	return s->type->next(s, room, BATCH, err);
}

static int replay(struct engine *e, struct vc_error *err)
{
	struct vc_source *s = e->run->source;
	struct vc_event room[BATCH];
	const struct vc_event *ev, *end;
	long n;
	int r = VC_OK;

	while (r == VC_OK && !e->stopped && (n = next_batch(s, room, &ev, err)) != 0) {
		if (n < 0)
			return (int)n;
		e->streams = (struct vc_streams){ e->meta->stream, e->meta->streams };
		for (end = ev + n; ev < end && r == VC_OK && !e->stopped && !e->seeded;)
			r = any_event(e, ev++, err);
		ev = walk(e, ev, end, true, &r, err);
		ev = walk(e, ev, end, false, &r, err);
	}
	if (r == VC_OK && !e->seeded)
		r = begin(e, err);
	return r;
}

static int setup_observers(struct engine *e, struct vc_error *err)
{
	const struct vc_observer_type *const *t = e->run->observers;

	for (; t && t[e->nobs]; e->nobs++) {
		struct vc_observer *o = &e->obs[e->nobs];

		if (e->nobs == MAX_OBSERVERS)
			return vc_fail(err, VC_EINTERNAL, "more than %d observers", MAX_OBSERVERS);
		o->type = t[e->nobs];
		o->meta = e->meta;
		o->state = calloc(1, o->type->state_size ? o->type->state_size : 1);
		VC_HAVE(o->state, o->type->name, err);
		e->has_step |= o->type->step != NULL;
		e->ntrace += o->type->trace != NULL;
	}
	if (e->ntrace) {
		e->model.trace = on_trace;
		e->model.trace_arg = e;
	}
	return VC_OK;
}

static int setup(struct engine *e, struct vc_error *err)
{
	const struct vc_model_type *t = e->run->model;
	void *cfg = calloc(1, t->config_size ? t->config_size : 1);

	e->meta = e->run->source->meta;
	e->device_index = e->run->device_index;
	e->streams = (struct vc_streams){ e->meta->stream, e->meta->streams };
	vc_pages_init(&e->live, sizeof(struct live));
	e->live.as_it_was = true;
	e->model = (struct vc_model){ .type = t, .config = cfg, .streams = &e->streams,
				      .version = e->run->version, .conf = e->run->conf,
				      .state = calloc(1, t->state_size ? t->state_size : 1) };
	VC_HAVE(cfg && e->model.state, "the model", err);
	if (e->run->follow)
		e->run->device.va = VC_VA_LIST;
	e->device = vc_device_new(&e->run->device, err);
	if (!e->device)
		return VC_ENOMEM;
	e->model.device = e->device;
	e->beside = e->run->device.context + e->run->device.others;
	vc_device_listen(e->device, on_device, e);
	if (e->run->follow &&
	    !(e->follow = vc_follow_new(e->device, e->run->whole, e->run->device_index, err)))
		return VC_ENOMEM;
	if (vc_params_parse(t->params, cfg, e->run->model_params, err) < 0 ||
	    (t->init && t->init(&e->model, err) < 0))
		return vc_wrap(err, "%s", t->name);
	if (e->run->fraction >= 0 && t->fraction) {
		int r = t->fraction(&e->model, e->run->fraction, err);

		if (r == VC_RAISED)
			return vc_fail(err, VC_EUSAGE, "%s", e->model.note);
		if (r < 0)
			return r;
	}
	return setup_observers(e, err);
}

static void teardown(struct engine *e)
{
	if (e->model.type->fini && e->model.state)
		e->model.type->fini(&e->model);
	VC_FREE((void *)e->model.config, e->model.state);
	for (size_t i = 0; i < e->nobs; i++) {
		if (e->obs[i].type->fini)
			e->obs[i].type->fini(&e->obs[i]);
		free(e->obs[i].state);
	}
	vc_follow_free(e->follow);
	vc_device_free_all(e->device);
	vc_pages_fini(&e->live);
	VC_FREE(e->heap, e->heap_site);
}

static int finish(struct engine *e, struct vc_result *out, struct vc_error *err)
{
	e->stats.events = e->index;
	e->stats.limited |= e->run->fraction >= 0;
	e->stats.cut_short |= !e->stats.allocs; /* the heap at one moment, no requests */
	e->stats.flushes = e->model.now.retries;
	e->stats.final_reserved = e->model.now.reserved;
	e->stats.final_allocated = e->model.now.allocated;
	e->stats.driver_ns = vc_device_clock_ns(e->device);
	e->stats.has_times = e->stats.time_ns != 0;
	out->stats = e->stats;
	out->meta = e->meta;
	for (size_t i = 0; i < e->nobs; i++)
		VC_TRY(e->obs[i].type->end(&e->obs[i], &e->model, out, err));
	return VC_OK;
}

static int replay_all(struct engine *e, struct vc_result *out, struct vc_error *err)
{
	const struct vc_trace *t = vc_known_trace(e->run);
	enum vc_start asked = e->run->start;

	if (vc_known_find(t, e->run, &e->model, out)) {
		out->meta = e->meta;
		return VC_OK;
	}
	VC_TRY(replay(e, err));
	VC_TRY(finish(e, out, err));
	out->given_up = e->given_up;
	/* Whether the heap could be taken over hangs on more than the answers of the device. */
	if (!e->alone && (asked == e->run->start || !e->model.type->seed))
		vc_known_keep(t, e->run, asked, &e->model, out);
	return VC_OK;
}

int vc_run(struct vc_run *run, struct vc_result *out, struct vc_error *err)
{
	struct engine e = { .run = run, .alert = true };
	int r = setup(&e, err);

	*out = (struct vc_result){ 0 };
	if (r == VC_OK)
		r = replay_all(&e, out, err);
	if (r < 0)
		vc_result_fini(out);
	teardown(&e);
	return r < 0 ? r : VC_OK;
}
