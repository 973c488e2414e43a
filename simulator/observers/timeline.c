/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - usage over the events, reduced while it is watched.
 *
 * At most MAX_BUCKETS buckets; when they are full, neighbours merge and each covers twice as many
 * events. A block's class is known only when it dies, so its bytes are added afterwards to every
 * bucket whose peak event it was alive at: as differences, by binary age, folded into the four
 * lifetime classes at the end, when the length of the trace is known. */

#include "common/pages.h"
#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

#define MAX_BUCKETS 4096
#define AGES 40          /* log2 of a lifetime in events */
#define AGE_FOREVER (AGES - 1)

struct birth { uint64_t event, size; };
struct death { uint64_t born, died, size; };

struct state {
	struct vc_bucket *at;
	size_t n;
	uint64_t span, event;         /* events per bucket; events seen */
	int64_t (*diff)[AGES];        /* MAX_BUCKETS + 1 rows: bytes that begin or end here */
	struct vc_pages births;
	struct death *died; size_t deaths, died_cap; /* within the open bucket */
	struct { uint64_t allocated, reserved, active, pinned, managed, ns; } last;
	uint64_t retries, ooms, segments;
	uint64_t marks;
	bool failed;                  /* and nothing was served since */
	bool split;                   /* the model counts what cannot be given back */
};

static int timeline_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	struct state *st = o->state;

	st->at = calloc(MAX_BUCKETS, sizeof(*st->at));
	st->diff = calloc(MAX_BUCKETS + 1, sizeof(*st->diff));
	VC_HAVE(st->at && st->diff, "the timeline", err);
	vc_pages_init(&st->births, sizeof(struct birth));
	st->span = 1;
	st->last.allocated = m->now.allocated;
	st->last.reserved = m->now.reserved;
	st->last.active = m->now.active;
	st->retries = m->now.retries;
	st->segments = m->now.segments;
	st->split = m->type->counts_split;
	return VC_OK;
}

static int age_of(uint64_t events)
{
	int a = 0;

	for (; events > 1 && a < AGE_FOREVER - 1; events >>= 1)
		a++;
	return a;
}

/* First closed bucket whose peak event is not before `event`. Peak events grow with the buckets. */
static size_t bucket_from(const struct state *st, uint64_t event)
{
	size_t b = (size_t)(event / st->span);

	if (b >= st->n)
		return st->n;
	return st->at[b].peak_event >= event ? b : b + 1;
}

static void add_life(struct state *st, uint64_t born, uint64_t died, uint64_t size, int age)
{
	size_t from = bucket_from(st, born),
	       to = died == UINT64_MAX ? st->n : bucket_from(st, died);

	if (from >= to)
		return;
	st->diff[from][age] += (int64_t)size;
	st->diff[to][age] -= (int64_t)size;
}

static void close_bucket(struct state *st)
{
	for (size_t i = 0; i < st->deaths; i++) {
		const struct death *d = &st->died[i];

		add_life(st, d->born, d->died, d->size, age_of(d->died - d->born));
	}
	st->deaths = 0;
}

static void merge_into(struct vc_bucket *a, const struct vc_bucket *b)
{
#define KEEP_MAX(f) if (b->f > a->f) a->f = b->f
#define KEEP_MIN(f) if (b->f < a->f) a->f = b->f
	if (b->allocated_max > a->allocated_max) {
		a->peak_event = b->peak_event;
		a->peak_ns = b->peak_ns;
	}
	KEEP_MAX(allocated_max);
	KEEP_MIN(allocated_min);
	KEEP_MAX(active_max);
	KEEP_MAX(reserved_max);
	KEEP_MIN(reserved_min);
	KEEP_MAX(requested_max);
	KEEP_MAX(stranded_max);
	KEEP_MAX(pinned_max);
	KEEP_MAX(managed_max);
	a->last_event = b->last_event;
	a->last_ns = b->last_ns;
	a->flushes += b->flushes;
	a->ooms += b->ooms;
	a->segment_allocs += b->segment_allocs;
	a->segment_frees += b->segment_frees;
#undef KEEP_MAX
#undef KEEP_MIN
}

/* Twice the span: pairs become one bucket, and the bytes live at the surviving peak event stay. */
static void halve(struct state *st)
{
	int64_t sum[AGES] = { 0 }, was[AGES] = { 0 };

	for (size_t k = 0; k < st->n / 2; k++) {
		struct vc_bucket *a = &st->at[2 * k], *b = &st->at[2 * k + 1];
		bool second = b->allocated_max > a->allocated_max;
		int64_t pick[AGES];

		for (int g = 0; g < AGES; g++) {
			int64_t first = sum[g] + st->diff[2 * k][g];

			sum[g] = first + st->diff[2 * k + 1][g];
			pick[g] = second ? sum[g] : first;
		}
		merge_into(a, b);
		st->at[k] = *a;
		for (int g = 0; g < AGES; g++) {
			st->diff[k][g] = pick[g] - was[g];
			was[g] = pick[g];
		}
	}
	st->n /= 2;
	memset(st->at + st->n, 0, (MAX_BUCKETS - st->n) * sizeof(*st->at));
	memset(st->diff + st->n, 0, (MAX_BUCKETS + 1 - st->n) * sizeof(*st->diff));
	for (int g = 0; g < AGES;
	     g++) /* only the dead are in here: nothing goes on beyond the last bucket */
		st->diff[st->n][g] = -was[g];
	st->span *= 2;
}

static struct vc_bucket *open_bucket(struct state *st)
{
	struct vc_bucket *b;

	if (st->event / st->span < st->n)
		return &st->at[st->n - 1];
	close_bucket(st);
	if (st->n == MAX_BUCKETS)
		halve(st);
	if (st->event / st->span < st->n)
		return &st->at[st->n - 1];
	b = &st->at[st->n++];
	*b = (struct vc_bucket){.first_event = st->event,
				.first_ns = st->last.ns,
				.peak_event = st->event ?
						      st->event - 1 :
						      0, /* the state that enters belongs to it */
				.peak_ns = st->last.ns, .allocated_min = st->last.allocated,
				.allocated_max = st->last.allocated,
				.reserved_min = st->last.reserved,
				.reserved_max = st->last.reserved, .active_max = st->last.active,
				.pinned_max = st->last.pinned, .managed_max = st->last.managed,
				.last_ns = st->last.ns };
	return b;
}

static int note_life(struct state *st, const struct vc_step *s, struct vc_error *err)
{
	struct birth *b;

	if (!s->block)
		return VC_OK;
	if (s->ev->kind == VC_EV_OOM) { /* served here: for nobody, and for one event */
		VC_HAVE(vc_vec_room(st->died, st->died_cap, st->deaths + 1), "the timeline", err);
		st->died[st->deaths++] =
			(struct death){ st->event, st->event + 1, s->block->size };
		return VC_OK;
	}
	if (s->ev->kind == VC_EV_ALLOC) {
		b = vc_pages_put(&st->births, s->ev->id);
		VC_HAVE(b, "the timeline", err);
		*b = (struct birth){ st->event, s->block->size };
		return VC_OK;
	}
	b = vc_pages_get(&st->births, s->ev->id);
	if (!b || !b->size)
		return VC_OK;
	VC_HAVE(vc_vec_room(st->died, st->died_cap, st->deaths + 1), "the timeline", err);
	st->died[st->deaths++] = (struct death){ b->event, st->event, b->size };
	vc_pages_drop(&st->births, s->ev->id);
	return VC_OK;
}

/* The clock of memory: kernels and copies are reported late, with the times at which the device
 * ran them; 0 = unknown. It never goes back. */
static void tick(struct state *st, const struct vc_event *ev)
{
	if (ev->time_ns > st->last.ns && ev->kind != VC_EV_KERNEL && ev->kind != VC_EV_COPY)
		st->last.ns = ev->time_ns;
}

static int timeline_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;
	const struct vc_totals *now = &s->model->now;
	struct vc_bucket *b;

	tick(st, s->ev);
	b = open_bucket(st);

	if (now->allocated > b->allocated_max) {
		b->allocated_max = now->allocated;
		b->peak_event = st->event;
		b->peak_ns = st->last.ns;
	}
	if (now->allocated < b->allocated_min)
		b->allocated_min = now->allocated;
	if (now->active > b->active_max)
		b->active_max = now->active;
	if (now->reserved > b->reserved_max)
		b->reserved_max = now->reserved;
	if (now->reserved < b->reserved_min)
		b->reserved_min = now->reserved;
	if (now->requested > b->requested_max)
		b->requested_max = now->requested;
	/* What a program gives back after a failure, often because it ends, is in nobody's way. */
	st->failed = s->answer == VC_REFUSED || (st->failed && s->ev->kind != VC_EV_ALLOC);
	uint64_t stranded = st->split ? now->split : now->reserved - now->active;
	if (!st->failed && stranded > b->stranded_max)
		b->stranded_max = stranded;
	b->flushes += (uint32_t)(now->retries - st->retries);
	b->ooms += s->answer == VC_REFUSED;
	if (now->segments > st->segments)
		b->segment_allocs += (uint32_t)(now->segments - st->segments);
	else
		b->segment_frees += (uint32_t)(st->segments - now->segments);
	st->retries = now->retries;
	st->segments = now->segments;
	b->last_event = st->event;
	b->last_ns = st->last.ns;
	st->last.allocated = now->allocated;
	st->last.reserved = now->reserved;
	st->last.active = now->active;
	st->last.pinned = s->beside->pinned;
	st->last.managed = s->beside->live[VC_BESIDE_MANAGED];
	st->marks += s->ev->kind == VC_EV_MARK && s->ev->flags == VC_MARK_STEP;
	if (s->beside->pinned > b->pinned_max)
		b->pinned_max = s->beside->pinned;
	if (s->beside->live[VC_BESIDE_MANAGED] > b->managed_max)
		b->managed_max = s->beside->live[VC_BESIDE_MANAGED];
	VC_TRY(note_life(st, s, err));
	st->event++;
	return VC_OK;
}

static enum vc_lifetime class_of(int age, uint64_t step)
{
	uint64_t events = 1ull << age;

	if (age == AGE_FOREVER || events > 2 * step)
		return VC_LIFE_PERSISTENT;
	if (events <= 16)
		return VC_LIFE_SHORT;
	return events > step / 4 ? VC_LIFE_STEP : VC_LIFE_PHASE;
}

/* What sleeps is not on the card: that lives longest. */
static void leave_out(struct vc_bucket *b, uint64_t bytes)
{
	static const enum vc_lifetime order[] = { VC_LIFE_PERSISTENT, VC_LIFE_STEP, VC_LIFE_PHASE,
						  VC_LIFE_SHORT };

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		uint64_t *layer = &b->layer[order[i]], part = bytes < *layer ? bytes : *layer;

		*layer -= part;
		bytes -= part;
	}
}

static void fold_layers(struct state *st)
{
	/* Without marks a step is guessed as an eighth of the recording: only colours depend on
	 * it. */
	uint64_t step = st->marks ? st->event / (st->marks + 1) : st->event / 8;
	int64_t sum[AGES] = { 0 };

	for (size_t k = 0; k < st->n; k++) {
		uint64_t known = 0;

		for (int g = 0; g < AGES; g++) {
			sum[g] += st->diff[k][g];
			st->at[k].layer[class_of(g, step)] += (uint64_t)sum[g];
			known += (uint64_t)sum[g];
		}
		if (st->at[k].allocated_max > known) /* blocks of the starting heap */
			st->at[k].layer[VC_LIFE_PERSISTENT] += st->at[k].allocated_max - known;
		else
			leave_out(&st->at[k], known - st->at[k].allocated_max);
	}
}

static int timeline_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
			struct vc_error *err)
{
	struct state *st = o->state;

	close_bucket(st);
	for (size_t k = 0; k < st->births.pages; k++) {
		for (uint64_t i = 0; st->births.page[k] && i < VC_PAGE_RECORDS; i++) {
			const struct birth *b = vc_pages_get(&st->births, (k << VC_PAGE_SHIFT) + i);

			if (b->size)
				add_life(st, b->event, UINT64_MAX, b->size, AGE_FOREVER);
		}
	}
	fold_layers(st);
	r->curve.at = st->at;
	r->curve.n = st->n;
	r->curve.split = m->type->counts_split;
	st->at = NULL;
	return VC_OK;
}

static void timeline_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	VC_FREE(st->at, st->diff, st->died);
	vc_pages_fini(&st->births);
}

const struct vc_observer_type vc_observer_timeline = {
	.name = "timeline", .summary = "usage over the events, reduced with its extremes kept",
	.state_size = sizeof(struct state),
	.begin = timeline_begin, .step = timeline_step, .end = timeline_end, .fini = timeline_fini,
};
