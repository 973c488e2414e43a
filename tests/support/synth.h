/* SPDX-License-Identifier: Apache-2.0 */
/* synth.h - a made-up training run for the tests of pictures: a toy model of a few layers trained
 * for a few steps on a toy first-fit allocator with segments. Deterministic; no engine needed. */
#ifndef VC_SYNTH_H
#define VC_SYNTH_H

#include <stdlib.h>
#include <string.h>

#include "common/event.h"
#include "simulator/replay/result.h"

struct synth_options {
	unsigned layers, steps;
	uint64_t unit;        /* bytes of one activation */
	uint64_t capacity;
	bool sites, times, oom;
};

struct synth_piece { uint64_t addr, size, id; bool live; unsigned segment; };

struct synth {
	struct synth_options o;
	struct vc_result r;
	struct vc_meta *meta;
	struct synth_piece *piece; size_t pieces, cap;
	uint64_t next_addr, next_id, event, now, allocated, reserved, seed;
	uint32_t site[8];
	bool stopped;
};

enum synth_kind { SYNTH_WEIGHT, SYNTH_STATE, SYNTH_GRAD, SYNTH_ACT, SYNTH_TEMP };

static void *synth_grow(void *at, size_t n, size_t size)
{
	/* Capacities are powers of two: grow when n is one. */
	if (n & (n - 1))
		return at;
	at = realloc(at, (n ? 2 * n : 1) * size);
	if (!at)
		exit(99);
	return at;
}

static void synth_bucket(struct synth *s)
{
	struct vc_curve *c = &s->r.curve;
	uint64_t stranded = s->reserved - s->allocated;

	c->at = synth_grow(c->at, c->n, sizeof(*c->at));
	c->at[c->n++] = (struct vc_bucket){ .first_event = s->event,
					   .last_event = s->event,
					   .first_ns = s->now,
					   .last_ns = s->now,
					   .allocated_min = s->allocated,
					   .allocated_max = s->allocated,
					   .active_max = s->allocated,
					   .reserved_min = s->reserved,
					   .reserved_max = s->reserved,
					   .requested_max = s->allocated,
					   .stranded_max = stranded,
					   .peak_event = s->event };
	if (s->reserved > s->r.stats.peak_reserved) {
		s->r.stats.peak_reserved = s->r.stats.peak_used = s->reserved;
		s->r.stats.peak_event = s->event;
		s->r.stats.stranded_at_peak = stranded;
	}
	if (s->allocated > s->r.stats.peak_allocated)
		s->r.stats.peak_allocated = s->allocated;
	s->event++;
	s->now += s->o.times ? 1000000 : 0;
}

/* A kernel that runs for most of the time until the next event; now and then a copy beside it. */
static void synth_kernel(struct synth *s, enum synth_kind kind)
{
	static const char *const name[] = { "fill", "adamw_multi_tensor", "gemm_backward",
					   "gemm_forward", "elementwise" };
	struct vc_steps *t = &s->r.steps;

	if (!s->o.times)
		return;
	t->kernel = synth_grow(t->kernel, t->kernels, sizeof(*t->kernel));
	t->kernel[t->kernels++] = (struct vc_kernel_at){
		.start_ns = s->now,
		.duration_ns = 650000 + 50000u * kind,
		.label = vc_meta_string(s->meta, name[kind], strlen(name[kind])),
		.stream = kind == SYNTH_STATE || s->event % 9 == 0 ? 1 : 0,
		.kind = VC_EV_KERNEL };
}

static void synth_insert(struct synth *s, size_t at, struct synth_piece p)
{
	s->piece = synth_grow(s->piece, s->pieces, sizeof(*s->piece));
	memmove(s->piece + at + 1, s->piece + at, (s->pieces - at) * sizeof(*s->piece));
	s->piece[at] = p;
	s->pieces++;
}

static void synth_segment(struct synth *s, uint64_t size)
{
	struct vc_segments *v = &s->r.segments;

	v->at = synth_grow(v->at, v->n, sizeof(*v->at));
	v->at[v->n] = (struct vc_segment_life){
		.addr = s->next_addr, .size = size, .born = s->event, .died = UINT64_MAX };
	synth_insert(s, s->pieces,
		     (struct synth_piece){ s->next_addr, size, 0, false, (unsigned)v->n });
	v->n++;
	s->next_addr += size + (64u << 20);
	s->reserved += size;
	s->r.stats.segment_allocs++;
}

static void synth_map(struct synth *s, struct vc_heap_map *m)
{
	free(m->at);
	*m = (struct vc_heap_map){ .event = s->event };
	for (size_t i = 0; i < s->pieces; i++) {
		const struct synth_piece *p = &s->piece[i];
		const struct vc_segment_life *g = &s->r.segments.at[p->segment];
		if (p->addr == g->addr) {
			m->at = synth_grow(m->at, m->n, sizeof(*m->at));
			m->at[m->n++] = (struct vc_heap_extent){ .addr = g->addr, .size = g->size };
		}
		m->at = synth_grow(m->at, m->n, sizeof(*m->at));
		m->at[m->n++] = (struct vc_heap_extent){ .addr = p->addr,
							.size = p->size,
							.id = p->id,
							.requested = p->size,
							.what = p->live ? 1 : 3 };
	}
}

static void synth_fail(struct synth *s, uint64_t size)
{
	struct vc_oom_report *o = &s->r.oom;

	*o = (struct vc_oom_report){ .happened = true, .event = s->event, .time_ns = s->now,
		.id = s->next_id + 1, .request = size, .rounded = size, .alloc_size = size,
		.device_free = s->o.capacity - s->reserved };
	for (size_t i = 0; i < s->pieces; i++)
		if (!s->piece[i].live) {
			o->free_in_cache += s->piece[i].size;
			if (s->piece[i].size > o->largest_free)
				o->largest_free = s->piece[i].size;
		}
	s->r.stats.ooms = 1;
	synth_map(s, &s->r.last);
	s->stopped = true;
}

static uint64_t synth_alloc(struct synth *s, enum synth_kind kind, uint64_t size)
{
	static const uint8_t lifetime[] = { VC_LIFE_PERSISTENT, VC_LIFE_PERSISTENT, VC_LIFE_STEP,
		VC_LIFE_PHASE, VC_LIFE_SHORT };
	size_t i;

	size = (size + 511) / 512 * 512;
	if (s->stopped)
		return 0;
	for (i = 0; i < s->pieces; i++)
		if (!s->piece[i].live && s->piece[i].size >= size)
			break;
	if (i == s->pieces) {
		uint64_t want =
			size < (20u << 20) ? 20u << 20 : (size + (2u << 20) - 1) >> 21 << 21;
		if (s->o.capacity && s->reserved + want > s->o.capacity) {
			synth_fail(s, size);
			return 0;
		}
		synth_segment(s, want);
	}
	struct synth_piece *p = &s->piece[i];
	if (p->size > size) {
		synth_insert(s, i + 1,
			     (struct synth_piece){ p->addr + size, p->size - size, 0, false,
						  p->segment });
		p = &s->piece[i];
		p->size = size;
	}
	p->live = true;
	p->id = ++s->next_id;
	s->allocated += size;
	struct vc_lives *v = &s->r.lives;
	v->at = synth_grow(v->at, v->n, sizeof(*v->at));
	v->at[v->n++] = (struct vc_life){ .id = p->id,
					 .size = size,
					 .requested = size,
					 .addr = p->addr,
					 .born = s->event,
					 .died = UINT64_MAX,
					 .born_ns = s->now,
					 .died_ns = UINT64_MAX,
					 .site = s->o.sites ? s->site[kind] : 0,
					 .lifetime = lifetime[kind] };
	s->r.stats.allocs++;
	synth_kernel(s, kind);
	synth_bucket(s);
	return p->id;
}

static void synth_free(struct synth *s, uint64_t id)
{
	size_t i;

	for (i = 0; i < s->pieces && s->piece[i].id != id; i++)
		;
	if (!id || i == s->pieces || s->stopped)
		return;
	struct vc_life *l = &s->r.lives.at[id - 1];
	l->died = s->event;
	l->died_ns = s->now;
	s->allocated -= s->piece[i].size;
	s->piece[i].live = false;
	s->piece[i].id = 0;
	if (i + 1 < s->pieces && !s->piece[i + 1].live &&
	    s->piece[i + 1].segment == s->piece[i].segment) {
		s->piece[i].size += s->piece[i + 1].size;
		memmove(s->piece + i + 1, s->piece + i + 2,
			(s->pieces - i - 2) * sizeof(*s->piece));
		s->pieces--;
	}
	if (i && !s->piece[i - 1].live && s->piece[i - 1].segment == s->piece[i].segment) {
		s->piece[i - 1].size += s->piece[i].size;
		memmove(s->piece + i, s->piece + i + 1, (s->pieces - i - 1) * sizeof(*s->piece));
		s->pieces--;
	}
	s->r.stats.frees++;
	synth_bucket(s);
}

static void synth_mark(struct synth *s, uint8_t kind, const char *name)
{
	struct vc_steps *t = &s->r.steps;

	if (s->stopped)
		return;
	t->mark = synth_grow(t->mark, t->marks, sizeof(*t->mark));
	t->mark[t->marks++] = (struct vc_mark_at){ s->event, s->now,
		vc_meta_string(s->meta, name, strlen(name)), kind, 0 };
}

static void synth_names(struct synth *s)
{
	static const struct { const char *file, *function; uint32_t line;
	} f[] = {
		{ "/home/u/model.py", "_apply", 31 },
		{ "/usr/lib/python3/dist-packages/torch/optim/adamw.py", "_init_group", 140 },
		{ "/home/u/train.py", "backward", 77 },
		{ "/home/u/model.py", "forward", 212 },
		{ "/home/u/attention.py", "forward", 88 },
	};
	struct vc_frame root = { 0, vc_meta_string(s->meta, "main", 4),
		vc_meta_string(s->meta, "/home/u/train.py", 16), 12 };
	uint32_t top = vc_meta_frame(s->meta, root);

	for (size_t i = 0; i < sizeof(f) / sizeof(*f); i++)
		s->site[i] = vc_meta_frame(s->meta, (struct vc_frame){ top,
			vc_meta_string(s->meta, f[i].function, strlen(f[i].function)),
			vc_meta_string(s->meta, f[i].file, strlen(f[i].file)), f[i].line });
}

static uint64_t synth_random(struct synth *s, uint64_t below)
{
	s->seed = s->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (s->seed >> 33) % below;
}

static void synth_step(struct synth *s, unsigned step, uint64_t *grad, uint64_t *act,
		       uint64_t *state)
{
	uint64_t u = s->o.unit;

	synth_mark(s, VC_MARK_STEP, "step");
	synth_mark(s, VC_MARK_BEGIN, "forward");
	for (unsigned l = 0; l < s->o.layers; l++) {
		for (unsigned k = 0; k < 4; k++)
			act[4 * l + k] = synth_alloc(s, SYNTH_ACT, u + synth_random(s, u / 8 + 1));
		uint64_t t = synth_alloc(s, SYNTH_TEMP, u / 2);
		synth_free(s, t);
	}
	synth_mark(s, VC_MARK_END, "forward");
	synth_mark(s, VC_MARK_BEGIN, "backward");
	for (unsigned l = s->o.layers; l-- > 0;) {
		uint64_t t = synth_alloc(s, SYNTH_TEMP, u);
		grad[l] = synth_alloc(s, SYNTH_GRAD, u * 2);
		for (unsigned k = 4; k-- > 0;)
			synth_free(s, act[4 * l + k]);
		synth_free(s, t);
	}
	synth_mark(s, VC_MARK_END, "backward");
	synth_mark(s, VC_MARK_BEGIN, "optimizer");
	for (unsigned l = 0; l < s->o.layers; l++) {
		if (!step)
			for (unsigned k = 0; k < 2; k++)
				state[2 * l + k] = synth_alloc(s, SYNTH_STATE, u * 2);
		uint64_t t = synth_alloc(s, SYNTH_TEMP, u);
		synth_free(s, t);
	}
	for (unsigned l = 0; l < s->o.layers; l++)
		synth_free(s, grad[l]);
	synth_mark(s, VC_MARK_END, "optimizer");
}

/* Unused bytes at up to 64 moments of the curve: of six parts, most pinned or returnable. */
static void synth_unused(struct synth *s)
{
	struct vc_unused *u = &s->r.unused;
	size_t every = s->r.curve.n / 64 + 1;

	u->at = calloc(s->r.curve.n / every + 1, sizeof(*u->at));
	for (size_t i = 0; u->at && i < s->r.curve.n; i += every) {
		const struct vc_bucket *b = &s->r.curve.at[i];
		uint64_t left = b->stranded_max, part = left / 16;
		struct vc_unused_at *a = &u->at[u->n++];

		*a = (struct vc_unused_at){ .event = b->first_event, .time_ns = b->first_ns,
					    .reserved = b->reserved_max,
					    .requested = b->reserved_max - left };
		a->part = (struct vc_fragmentation){ part, part, 5 * part, part, part,
						     left - 9 * part };
		a->pin[0] = (struct vc_pin){ .bytes = 5 * part, .segments = 2, .blocks = 3,
					     .id = 4, .smallest = 1 << 20, .site = 1 };
		if (left > u->worst.reserved - u->worst.requested)
			u->worst = *a;
		u->last = a->event;
	}
	u->pin[0] = u->worst.pin[0];
}

/* The caller ends it with synth_fini. */
static struct synth *synth_new(const struct synth_options *o)
{
	struct synth *s = calloc(1, sizeof(*s));
	uint64_t *ids = calloc((size_t)o->layers * 8 + 8, sizeof(*ids));

	if (!s || !ids)
		exit(99);
	s->o = *o;
	s->next_addr = 0x7f0000000000;
	s->seed = 7;
	s->meta = vc_meta_new(NULL);
	synth_names(s);
	for (unsigned l = 0; l < o->layers; l++)
		synth_alloc(s, SYNTH_WEIGHT, o->unit * 2);
	for (unsigned i = 0; i < o->steps; i++)
		synth_step(s, i, ids, ids + o->layers, ids + 5 * o->layers);
	free(ids);
	if (!s->stopped)
		synth_map(s, &s->r.peak);
	s->r.meta = s->meta;
	s->r.info.model = strdup("torch");
	s->r.info.owner = "PyTorch";
	s->r.info.torch = strdup("2.9");
	s->r.info.conf = strdup("");
	s->r.info.trace = strdup("/data/train.vct");
	s->r.info.gpu = strdup("h100-80g");
	s->r.info.change = strdup("batch=26");
	s->r.info.capacity = o->capacity;
	s->r.stats.events = s->event;
	s->r.stats.has_times = o->times;
	s->r.stats.final_allocated = s->allocated;
	s->r.stats.final_reserved = s->reserved;
	s->r.stats.segments_peak = s->r.segments.n;
	s->r.stats.lower_bound = s->r.stats.peak_allocated;
	synth_unused(s);
	return s;
}

static void synth_fini(struct synth *s)
{
	vc_result_fini(&s->r);
	vc_meta_free(s->meta);
	free(s->piece);
	free(s);
}

#endif
