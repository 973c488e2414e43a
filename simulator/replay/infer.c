/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c - see infer.h.
 *
 * empty_cache leaves a run of segment releases. So does a request that found the device full;
 * then releases and the new segment share their call stack. Without stacks: that request had
 * found no cached block either, so if a segment in the run would have served it, it was
 * empty_cache. Otherwise the level decides: a request under pressure stands at the highest level
 * that the recording ever reached, and just below what a card has.
 *
 * A segment's pool is known when it lives to the end (the final heap names it) or when the
 * recording names it at birth. Requests placed in a private pool's segments were made inside its
 * scope. */
#include "simulator/replay/infer.h"

#include "common/vec.h"
#include "simulator/replay/cards.h"

/* Context and other processes hardly take more of a card on which somebody trains. */
#define BESIDE (3ull << 29)

struct span { uint64_t addr, size, pool; size_t born, died; }; /* a segment's life by event index */

struct out { struct vc_event *ev; size_t n, cap; bool nomem; };

struct infer {
	struct vc_trace *t;
	uint16_t device;
	struct span *span; size_t spans, span_cap;
	uint64_t *pool;          /* of the request at each event index; 0 = default or no request */
	uint64_t peak;           /* highest reserved bytes of the recording */
	uint64_t held;           /* reserved bytes now */
	bool own_releases;       /* settings under which requests release segments by themselves */
	bool trims, pools;       /* what to infer */
	struct { uint64_t pool; unsigned uses; } used[64]; size_t useds;
	uint64_t open;           /* the pool whose scope is open */
};

static bool is_release(const struct vc_event *e)
{
	return e->kind == VC_EV_SEGMENT_FREE || e->kind == VC_EV_SEGMENT_UNMAP;
}

static bool is_growth(const struct vc_event *e)
{
	return e->kind == VC_EV_SEGMENT_ALLOC || e->kind == VC_EV_SEGMENT_MAP;
}

/* Between the requests that cause them, evidence and completions stand together. */
static bool is_evidence(const struct vc_event *e)
{
	return is_release(e) || is_growth(e) || e->kind == VC_EV_FREE_DONE || e->kind == VC_EV_OOM;
}

static void emit(struct out *o, const struct vc_event *e)
{
	if (!vc_vec_room(o->ev, o->cap, o->n + 1)) {
		o->nomem = true;
		return;
	}
	o->ev[o->n++] = *e;
}

static void emit_call(struct out *o, const struct infer *f, uint8_t kind, uint64_t pool,
		      uint64_t time_ns)
{
	struct vc_event e = { .kind = kind, .id = pool, .device = f->device, .time_ns = time_ns,
			      .stream = kind == VC_EV_POOL_BEGIN ? VC_STREAM_ALL : 0 };

	emit(o, &e);
}

/* ---- which pool a request was served from ---- */

static int add_span(struct infer *f, const struct vc_event *e, size_t born, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(f->span, f->span_cap, f->spans + 1), "segments", err);
	f->span[f->spans++] = (struct span){ e->addr, e->size, e->id, born, SIZE_MAX };
	return VC_OK;
}

static void end_spans(struct infer *f, const struct vc_event *e, size_t at)
{
	for (size_t i = f->spans; i-- > 0;) {
		struct span *s = &f->span[i];

		if (s->died == SIZE_MAX && e->addr >= s->addr && e->addr - s->addr < s->size)
			s->died = at;
	}
}

static void name_spans(struct infer *f, const struct vc_event *e)
{
	for (size_t i = 0; i < f->spans; i++)
		if (f->span[i].died == SIZE_MAX && f->span[i].addr >= e->addr &&
		    f->span[i].addr - e->addr < e->size)
			f->span[i].pool = e->id;
}

static int collect_spans(struct infer *f, struct vc_error *err)
{
	const struct vc_trace *t = f->t;
	uint64_t held = 0;
	int r = VC_OK;

	for (size_t i = 0; i < t->n && r == VC_OK; i++) {
		const struct vc_event *e = &t->ev[i];
		bool start = e->kind == VC_EV_HEAP_SEGMENT && !(e->flags & VC_EVF_FINAL);

		if (e->device != f->device)
			continue;
		if (start || is_growth(e)) {
			r = add_span(f, e, i, err);
			held += e->size;
			f->peak = held > f->peak ? held : f->peak;
		} else if (is_release(e)) {
			end_spans(f, e, i);
			held -= e->size < held ? e->size : held;
		} else if (e->kind == VC_EV_HEAP_SEGMENT) {
			name_spans(f, e);
		}
	}
	return r;
}

VC_COMPARE(by_addr, struct span, VC_ORDER(x->addr, y->addr))

static uint64_t pool_at(const struct infer *f, uint64_t addr, size_t index)
{
	size_t lo = vc_first_above(f->span, f->spans, addr, addr);

	/* lives of the same range follow each other in the table: look back a little */
	for (size_t k = 0; k < 64 && lo-- > 0; k++) {
		const struct span *s = &f->span[lo];

		if (addr - s->addr < s->size && s->born <= index && index < s->died)
			return s->pool;
	}
	return 0;
}

static int find_pools(struct infer *f, struct vc_error *err)
{
	VC_TRY(collect_spans(f, err));
	if (f->spans)
		vc_sort(f->span, f->spans, sizeof(*f->span), by_addr);
	f->pool = calloc(f->t->n ? f->t->n : 1, sizeof(*f->pool));
	VC_HAVE(f->pool, "pools", err);
	for (size_t i = 0; i < f->t->n; i++) {
		const struct vc_event *e = &f->t->ev[i];

		if (e->device == f->device &&
		    ((e->kind == VC_EV_ALLOC && e->addr) || is_release(e)))
			f->pool[i] = pool_at(f, e->addr, is_release(e) && i ? i - 1 : i);
	}
	return VC_OK;
}

/* ---- scopes ---- */

static void note_use(struct infer *f, uint64_t pool)
{
	for (size_t i = 0; i < f->useds; i++) {
		if (f->used[i].pool == pool) {
			f->used[i].uses++;
			return;
		}
	}
	if (f->useds < sizeof(f->used) / sizeof(*f->used)) {
		f->used[f->useds].pool = pool;
		f->used[f->useds++].uses = 1;
	}
}

static void close_scope(struct infer *f, struct out *o, uint64_t time_ns)
{
	if (f->open)
		emit_call(o, f, VC_EV_POOL_END, f->open, time_ns);
	f->open = 0;
}

static void open_scope(struct infer *f, struct out *o, uint64_t pool, uint64_t time_ns)
{
	if (f->open == pool)
		return;
	close_scope(f, o, time_ns);
	emit_call(o, f, VC_EV_POOL_BEGIN, pool, time_ns);
	note_use(f, pool);
	f->open = pool;
}

/* A pool whose segments go back is not in use any more. */
static void release_pool(struct infer *f, struct out *o, uint64_t pool, uint64_t time_ns)
{
	for (size_t i = 0; i < f->useds; i++)
		for (; f->used[i].pool == pool && f->used[i].uses; f->used[i].uses--)
			emit_call(o, f, VC_EV_POOL_RELEASE, pool, time_ns);
}

/* ---- runs of evidence ---- */

struct run {
	size_t end, last_release;
	uint64_t grown;
	uint32_t release_site, growth_site;
	bool release, grows_after, oom, named; /* named: a TRIM of its own follows */
};

static struct run look_at_run(const struct infer *f, size_t from)
{
	struct run r = { .end = from };

	for (size_t i = from; i < f->t->n; i++) {
		const struct vc_event *e = &f->t->ev[i];

		if (e->device != f->device)
			continue;
		if (!is_evidence(e)) {
			r.named = e->kind == VC_EV_TRIM;
			break;
		}
		r.end = i + 1;
		if (is_release(e)) {
			r.release = true;
			r.last_release = i;
			r.release_site = e->site;
			r.grows_after = false;
			r.grown = 0;
		} else if (is_growth(e)) {
			r.grows_after = true;
			r.growth_site = e->site;
			r.grown += e->size;
		}
		r.oom |= e->kind == VC_EV_OOM;
	}
	return r;
}

/* Segments of the small pool have 2 MiB and serve requests up to 1 MiB (c10's kSmallBuffer and
 * kSmallSize), all others serve larger ones; expandable segments go in pages of 2 MiB and 20 MiB.
 */
static bool is_small(const struct vc_event *release)
{
	if (release->kind == VC_EV_SEGMENT_UNMAP)
		return release->size % (20u << 20) != 0;
	return release->size <= 2u << 20;
}

/* Was a segment released in this run that would have served the request behind it? */
static bool had_served(const struct infer *f, size_t from, const struct run *r)
{
	const struct vc_event *rq = NULL;

	for (size_t i = r->end; i < f->t->n && !rq; i++)
		if (f->t->ev[i].device == f->device)
			rq = &f->t->ev[i];
	if (!rq || rq->kind != VC_EV_ALLOC)
		return true; /* nobody asked for memory */
	for (size_t i = from; i < r->end; i++) {
		const struct vc_event *e = &f->t->ev[i];

		if (e->device == f->device && is_release(e) && e->stream == rq->stream &&
		    e->size >= rq->size && is_small(e) == (rq->size <= 1u << 20))
			return true;
	}
	return false;
}

/* Is there a card, the recorded one if known, that is full at this level? */
static bool fills_a_card(const struct infer *f, uint64_t before, uint64_t grown)
{
	for (size_t i = 0; i < f->t->meta->devices; i++) {
		const struct vc_device_info *d = &f->t->meta->device[i];

		if (d->index == f->device && d->total)
			return before + grown + BESIDE > d->total;
	}
	for (size_t i = 0; i < vc_cards_n; i++)
		if (before < vc_cards[i].total && before > vc_cards[i].total / 2 &&
		    before + grown + BESIDE > vc_cards[i].total)
			return true;
	return false;
}

static bool is_trim(const struct infer *f, size_t from, const struct run *r)
{
	if (!f->trims || !r->release || r->oom || r->named)
		return false;
	if (!r->grows_after)
		return true;
	if (r->release_site && r->growth_site) /* one request, one call stack */
		return r->release_site != r->growth_site;
	if (f->own_releases)
		return false;
	return had_served(f, from, r) || f->held + r->grown <= f->peak ||
	       !fills_a_card(f, f->held, r->grown);
}

static void write_run(struct infer *f, struct out *o, size_t from, const struct run *r, bool trim)
{
	for (size_t i = from; i < r->end; i++) {
		const struct vc_event *e = &f->t->ev[i];

		if (e->device == f->device && is_release(e)) {
			if (f->pools && f->pool[i]) {
				close_scope(f, o, e->time_ns);
				release_pool(f, o, f->pool[i], e->time_ns);
			}
			f->held -= e->size < f->held ? e->size : f->held;
		}
		if (e->device == f->device && is_growth(e))
			f->held += e->size;
		emit(o, e);
		if (trim && i == r->last_release) {
			close_scope(f, o, e->time_ns);
			emit_call(o, f, VC_EV_TRIM, 0, e->time_ns);
		}
	}
}

static uint64_t next_pool(const struct infer *f, size_t from)
{
	for (size_t i = from; i < f->t->n; i++)
		if (f->t->ev[i].device == f->device && f->t->ev[i].kind == VC_EV_ALLOC)
			return f->pool[i];
	return 0;
}

static void write_event(struct infer *f, struct out *o, size_t i)
{
	const struct vc_event *e = &f->t->ev[i];
	bool request = f->pools && e->device == f->device && e->kind == VC_EV_ALLOC;

	if (e->kind == VC_EV_TRIM &&
	    e->device == f->device) /* between two captures into one pool */
		close_scope(f, o, e->time_ns);
	if (request && f->pool[i])
		open_scope(f, o, f->pool[i], e->time_ns);
	else if (request)
		close_scope(f, o, e->time_ns);
	emit(o, e);
	if (f->open && request && next_pool(f, i + 1) != f->open)
		close_scope(f, o, e->time_ns);
	if (e->device == f->device && e->kind == VC_EV_HEAP_SEGMENT && !(e->flags & VC_EVF_FINAL))
		f->held += e->size;
}

static int one_device(struct infer *f, struct vc_error *err)
{
	struct out o = { 0 };
	int r = find_pools(f, err);

	for (size_t i = 0; i < f->t->n && r == VC_OK;) {
		const struct vc_event *e = &f->t->ev[i];
		struct run run;

		if (e->device != f->device || !is_evidence(e)) {
			write_event(f, &o, i++);
			continue;
		}
		run = look_at_run(f, i);
		write_run(f, &o, i, &run, is_trim(f, i, &run));
		i = run.end;
	}
	if (o.nomem)
		r = vc_nomem(err, "inferred events");
	if (r < 0) {
		free(o.ev);
		return r;
	}
	free(f->t->ev);
	f->t->ev = o.ev;
	f->t->n = o.n;
	f->t->cap = o.cap;
	return VC_OK;
}

static void what_is_there(const struct vc_trace *t, struct infer *f, uint64_t *devices)
{
	*devices = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->kind >= VC_EV_POOL_CREATE && e->kind <= VC_EV_CAPTURE_END)
			f->pools = false;
		if (is_release(e) || (e->kind == VC_EV_HEAP_SEGMENT && e->id))
			*devices |= 1ull << (e->device & 63);
	}
}

int vc_infer(struct vc_trace *t, struct vc_error *err)
{
	const char *conf = t->meta->conf ? t->meta->conf : "";
	struct infer base = { .t = t, .trims = t->meta->how[VC_CAP_TRIMS] != VC_HOW_RECORDED,
		.pools = true, .own_releases = strstr(conf, "garbage_collection") ||
		strstr(conf, "max_split_size") };
	uint64_t devices;
	int r = VC_OK;

	what_is_there(t, &base, &devices);
	for (uint16_t d = 0; d < 64 && r == VC_OK; d++) {
		struct infer f = base;

		if (!(devices >> d & 1) || !(f.trims || f.pools))
			continue;
		f.device = d;
		r = one_device(&f, err);
		VC_FREE(f.span, f.pool);
	}
	if (devices && base.trims)
		t->meta->how[VC_CAP_TRIMS] = VC_HOW_DERIVED;
	return r;
}
