/* SPDX-License-Identifier: Apache-2.0 */
/* engine_loop.c - the loop in the middle of the house.
 *
 * Ids are dense, so live blocks are an array indexed by id (in pages that go when their blocks do);
 * events come in batches; there is no heap call per event. */
#include "simulator/replay/engine_parts.h"

#include "common/vec.h"
#include "simulator/replay/past.h"
#include "simulator/replay/settings.h"
#include "simulator/replay/start_heap.h"

#define BATCH 512
/* The path of every event, as in the torch model: one function, since calls would cost a tenth. */
#define INLINE inline __attribute__((always_inline))

static void note_most(struct vc_engine *e, const struct vc_event *ev)
{
	struct vc_at at = { e->index, ev ? ev->time_ns : 0, e->beside, e->run->device.context };

	if (vc_peaks_most(&e->stats, &e->model.now, &at, &e->watch) && e->run->enough &&
	    e->run->enough->is(e->run->enough->arg, &e->stats))
		e->given_up = e->stopped = true;
}

/* Peaks are kept here and not in an observer: every run wants them and they cost a few compares. */
static INLINE void note_peaks(struct vc_engine *e, const struct vc_event *ev)
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
static int tell_final(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_step s = { ev, NULL, &e->model, e->index, e->model.now.reserved + e->beside,
			    &e->outside, VC_DONE };

	for (size_t i = 0; i < e->nobs; i++)
		if (e->obs[i].type->final_heap && e->obs[i].type->step(&e->obs[i], &s, err) < 0)
			return vc_wrap(err, "%s", e->obs[i].type->name);
	return VC_OK;
}

static int tell_all(struct vc_engine *e, const struct vc_event *ev, const struct vc_block *b,
		    int answer, struct vc_error *err)
{
	if (!e->begun) /* the starting heap asked for again: not an event of the trace */
		return VC_OK;
	if (e->run->check && e->model.type->check && e->model.type->check(&e->model, err) < 0)
		return vc_wrap(err, "after event %" PRIu64, e->index);
	if (e->has_step) {
		struct vc_step s = { ev, b, &e->model, e->index, e->model.now.reserved + e->beside,
				     &e->outside, answer };

		for (size_t i = 0; i < e->nobs; i++)
			if (e->obs[i].type->step && e->obs[i].type->step(&e->obs[i], &s, err) < 0)
				return vc_wrap(err, "%s", e->obs[i].type->name);
	}
	e->index++;
	return VC_OK;
}

/* alert: somebody may look. Where that is known when compiling, the loop asks nobody. */
static INLINE int tell_if(struct vc_engine *e, const struct vc_event *ev, const struct vc_block *b,
			  int answer, bool alert, struct vc_error *err)
{
	note_peaks(e, ev);
	if (alert)
		return tell_all(e, ev, b, answer, err);
	e->index++;
	return VC_OK;
}

static int tell(struct vc_engine *e, const struct vc_event *ev, const struct vc_block *b,
		int answer, struct vc_error *err)
{
	return tell_if(e, ev, b, answer, e->alert, err);
}

static INLINE void count_live(struct vc_engine *e, struct vc_live *l, uint64_t bytes)
{
	l->granules = (uint32_t)((bytes + 511) / 512);
	l->life = VC_LIVE;
	e->lower += (uint64_t)l->granules * 512;
	if (e->lower > e->stats.lower_bound)
		e->stats.lower_bound = e->lower;
}

static INLINE void forget(struct vc_engine *e, struct vc_live *l, uint64_t id)
{
	l->life = VC_DEAD;
	vc_pages_forget(&e->live, id);
}

static int begin_observers(struct vc_engine *e, struct vc_error *err)
{
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && !e->begun && i < e->nobs; i++)
		if (e->obs[i].type->begin)
			r = e->obs[i].type->begin(&e->obs[i], &e->model, err);
	e->begun = true;
	e->alert = e->has_step || e->run->check;
	return r;
}

static INLINE void note_time(struct vc_engine *e, const struct vc_event *ev)
{
	if (ev->time_ns > e->stats.time_ns)
		e->stats.time_ns = ev->time_ns;
}

/* Scopes of pools may be of all streams, blocks not. */
static int has_one_stream(const struct vc_engine *e, const struct vc_event *ev,
			  struct vc_error *err)
{
	return ev->stream != VC_STREAM_ALL ? VC_OK :
		vc_fail(err, VC_EFORMAT, "event %" PRIu64 ": a block of all streams", e->index);
}

void vc_engine_limit(struct vc_engine *e)
{
	e->stats.has_limit = e->model.now.has_limit;
	e->stats.limit = e->stats.has_limit ? e->model.now.limit : 0;
}

static void count_refused(struct vc_engine *e, int answer)
{
	if (answer == VC_REFUSED && !e->stats.ooms++)
		vc_engine_limit(e);
}

static INLINE int do_alloc(struct vc_engine *e, const struct vc_event *ev, bool alert,
			   struct vc_error *err)
{
	struct vc_request rq = { ev->id, ev->size, ev->time_ns, ev->addr, ev->stream,
				 ev->flags & VC_EVF_EXACT };
	struct vc_live *l;
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
	if (l->life != VC_DEAD)
		return vc_fail(err, VC_EFORMAT, "event %" PRIu64 ": block %" PRIu64
			       " is allocated twice", e->index, ev->id);
	VC_TRY(r = e->model.type->alloc(&e->model, &rq, &l->block, err));
	if (r == VC_DONE) {
		vc_pages_keep(&e->live, ev->id);
		if (rq.exact)
			e->alone = true;
		count_live(e, l, ev->size);
		return tell_if(e, ev, &l->block, r, alert, err);
	}
	count_refused(e, r);
	e->alone |= r == VC_RAISED || rq.exact;
	if (!e->begun && begin_observers(e, err) < 0) /* while the starting heap is rebuilt */
		return err ? (int)err->status : VC_ENOMEM;
	e->stopped = e->run->stop_at_oom;
	return tell(e, ev, NULL, r, err);
}

static INLINE int do_free(struct vc_engine *e, const struct vc_event *ev, bool alert,
			  struct vc_error *err)
{
	struct vc_live *l = vc_pages_at(&e->live, ev->id, sizeof(*l));
	struct vc_block b;
	int r;

	note_time(e, ev);
	e->stats.frees++;
	if (!l || l->life != VC_LIVE) { /* its allocation was refused, or lies before the trace */
		e->stats.unknown_frees++;
		return tell(e, ev, NULL, VC_DONE, err);
	}
	if (alert)
		b = l->block;
	r = e->model.type->free(&e->model, &l->block);
	e->lower -= (uint64_t)l->granules * 512;
	if (r == VC_WAITS)
		l->life = VC_WAITING;
	else
		forget(e, l, ev->id);
	if (r != VC_DONE || alert)
		return tell_if(e, ev, &b, r, alert, err);
	e->index++; /* a block that goes at once raises nothing (tests/models/conformance.c) */
	return VC_OK;
}

static int any_alloc(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	return do_alloc(e, ev, e->alert, err);
}

/* The request that failed in the recorded run is asked for here too. Where it succeeds, nobody
 * knows how long the program would have kept it: it counts for the peak and is given back at
 * once. */
static int do_oom(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_request rq = { .size = ev->size, .time_ns = ev->time_ns, .stream = ev->stream };
	struct vc_block b;
	int r, told;

	VC_TRY(has_one_stream(e, ev, err));
	if (e->follow && vc_follow_evidence(e->follow, ev, err) < 0)
		return err ? (int)err->status : VC_ENOMEM;
	if (!ev->size)
		return tell(e, ev, NULL, VC_DONE, err);
	VC_TRY(r = e->model.type->alloc(&e->model, &rq, &b, err));
	if (r != VC_DONE) {
		e->alone |= r == VC_RAISED;
		count_refused(e, r);
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

static int do_live(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_live *l = vc_pages_get(&e->live, ev->id);
	const struct vc_model_type *t = e->model.type;

	if (l && ev->kind == VC_EV_USE && l->life == VC_LIVE && t->use)
		t->use(&e->model, &l->block, ev->stream);
	if (l && ev->kind == VC_EV_FREE_DONE && l->life == VC_WAITING) {
		if (t->complete)
			t->complete(&e->model, &l->block);
		forget(e, l, ev->id);
	}
	return tell(e, ev, NULL, VC_DONE, err);
}

static int do_pool(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_pool_call c = { ev->kind, ev->flags, ev->stream, ev->id,
				  ev->label < e->meta->strings ? e->meta->string[ev->label] : "" };
	int r = e->model.type->pool ? e->model.type->pool(&e->model, &c, err) : VC_DONE;

	e->alone = true;
	return r < 0 ? r : tell(e, ev, NULL, r, err);
}

static int do_setting(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	const struct vc_model_type *t = e->model.type;
	const char *text = ev->label < e->meta->strings ? e->meta->string[ev->label] : "";
	char over[1024];
	double f;
	int r = VC_DONE;

	memcpy(&f, &ev->size, sizeof(f));
	e->alone |= ev->kind != VC_EV_TRIM || ev->id;
	e->resettled |= ev->kind != VC_EV_TRIM;
	e->stats.limited |= ev->kind == VC_EV_FRACTION;
	if (ev->kind == VC_EV_CONFIGURE && t->configure)
		r = t->configure(&e->model,
				 vc_settings_over(text, e->meta->conf ? e->meta->conf : "",
						  e->run->conf ? e->run->conf : "", over,
						  sizeof(over)), err);
	else if (ev->kind == VC_EV_FRACTION && t->fraction)
		r = t->fraction(&e->model, f, err);
	else if (ev->kind == VC_EV_TRIM && t->trim)
		r = t->trim(&e->model, ev->id, err);
	e->alone |= r == VC_RAISED;
	return r < 0 ? r : tell(e, ev, NULL, r, err);
}

/* Somebody beneath the allocator gives memory back, or takes it again where there may be none. Of a
 * block that is not there in this run nothing is known: its memory stays. */
static int do_pages(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	struct vc_live *l = ev->id ? vc_pages_get(&e->live, ev->id) : NULL;
	struct vc_block none = { .addr = ev->addr, .size = ev->size };
	const struct vc_block *b = l && l->life != VC_DEAD ? &l->block : ev->id ? NULL : &none;
	int r = VC_DONE;

	e->alone = true;
	if (b && e->model.type->pages)
		r = e->model.type->pages(&e->model, b, ev->kind == VC_EV_PAGES_IN, err);
	VC_TRY(r);
	if (r == VC_REFUSED) {
		count_refused(e, r);
		e->stopped = e->run->stop_at_oom;
	}
	note_most(e, ev);
	return tell(e, ev, NULL, r, err);
}

/* What the events say comes on top of what was given for the whole run. */
static int do_others(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	uint64_t others = e->run->device.others + ev->size;

	vc_device_set_others(e->device, others);
	e->beside = e->run->device.context + others;
	note_most(e, ev);
	return tell(e, ev, NULL, VC_DONE, err);
}

/* ---- the starting heap ---- */

static int collect_heap(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
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

static int adopt_heap(struct vc_engine *e, struct vc_error *err)
{
	struct vc_block *blocks = calloc(e->heap_n, sizeof(*blocks));
	struct vc_heap heap = { e->heap, e->heap_n, e->run->heap_order };
	int r = blocks ? e->model.type->seed(&e->model, &heap, blocks, err) :
			 vc_nomem(err, "the starting heap");

	for (size_t i = 0; r >= 0 && i < e->heap_n; i++) {
		const struct vc_extent *x = &e->heap[i];
		struct vc_live *l;

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
			l->life = VC_WAITING;
			e->lower -= (uint64_t)l->granules * 512;
		}
	}
	free(blocks);
	return r < 0 ? vc_wrap(err, "starting heap") : VC_OK;
}

/* Ask for the blocks of the starting heap again, in address order: what remains of a warm start
 * when the model or its settings are not those of the recording. */
static int rebuild_heap(struct vc_engine *e, struct vc_error *err)
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

/* What may have come before: where it does not fit, the run ends before the recording begins. */
static int play_past(struct vc_engine *e, const struct vc_past *h, struct vc_error *err)
{
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && !e->stopped && i < h->n; i++) {
		const struct vc_event *ev = &h->ev[i];

		if (ev->kind == VC_EV_ALLOC)
			r = any_alloc(e, ev, err);
		else if (ev->kind == VC_EV_FREE)
			r = do_free(e, ev, e->alert, err);
		else if (ev->kind == VC_EV_TRIM)
			r = do_setting(e, ev, err);
		else if (ev->kind != VC_EV_SYNC)
			r = do_live(e, ev, err);
		else if (e->model.type->sync)
			e->model.type->sync(&e->model, ev->stream);
	}
	e->stats.allocs = e->stats.frees = 0;
	return r;
}

/* Segments as recorded cannot be taken over by a device that would not have held them. */
static bool heap_fits(const struct vc_engine *e)
{
	return e->follow ||
	       vc_start_heap_bytes(e->heap, e->heap_n) <= vc_device_available(e->device);
}

static int tell_origins(struct vc_engine *e, struct vc_error *err)
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

static int begin(struct vc_engine *e, struct vc_error *err)
{
	int r = vc_start_heap_tile(e->heap, e->heap_n, err);

	e->seeded = true;
	if (e->run->start == VC_START_WARM && (!e->model.type->seed || !heap_fits(e)))
		e->run->start = VC_START_REBUILD;
	if (r == VC_OK && e->heap_n &&
	    (e->run->start == VC_START_WARM || e->run->start == VC_START_TRIMMED))
		r = adopt_heap(e, err);
	if (r == VC_OK && e->heap_n && e->run->start == VC_START_TRIMMED) {
		e->trimmed = true;
		r = e->model.type->trim(&e->model, 0, err);
		r = r < 0 ? r : VC_OK;
	} else if (r == VC_OK && e->heap_n && e->run->start == VC_START_REBUILD) {
		r = e->run->before && e->run->before->n ? play_past(e, e->run->before, err) :
							  rebuild_heap(e, err);
	}
	note_peaks(e, NULL);
	note_most(e, NULL);
	if (r == VC_OK && e->run->start != VC_START_COLD)
		r = tell_origins(e, err);
	return r == VC_OK ? begin_observers(e, err) : r;
}

/* ---- the loop ---- */

/* Memory that is not the allocator's. */
static int do_outside(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
{
	uint64_t size, managed;

	VC_TRY(vc_beside_event(&e->outside, e->meta, ev, &size, err));
	managed = e->outside.live[VC_BESIDE_MANAGED];
	if (e->outside.pinned > e->stats.pinned)
		e->stats.pinned = e->outside.pinned;
	if (managed > e->stats.managed)
		e->stats.managed = managed;
	return tell(e, ev, NULL, VC_DONE, err);
}

static int other_event(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
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
	case VC_EV_PAGES_OUT: case VC_EV_PAGES_IN: return do_pages(e, ev, err);
	case VC_EV_SYNC:
		if (e->model.type->sync)
			e->model.type->sync(&e->model, ev->stream);
		break;
	case VC_EV_OOM: return do_oom(e, ev, err);
	case VC_EV_OUTSIDE_ALLOC: case VC_EV_OUTSIDE_FREE: return do_outside(e, ev, err);
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

static int any_event(struct vc_engine *e, const struct vc_event *ev, struct vc_error *err)
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
static INLINE int step(struct vc_engine *e, const struct vc_event *ev, bool alert,
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
static INLINE const struct vc_event *walk(struct vc_engine *e, const struct vc_event *ev,
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

int vc_engine_loop(struct vc_engine *e, struct vc_error *err)
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
