/* SPDX-License-Identifier: Apache-2.0 */
/* fidelity.c - does the model reproduce this recording? Watches a run under the recorded settings
 * with the recorded device answers, compares every address, every segment and the final heap. */
#include <stdarg.h>

#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

struct state {
	struct vc_fidelity f;
	struct vc_event *final; size_t finals, cap;
	char why[320];
};

static void diverge(struct state *st, uint64_t event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void diverge(struct state *st, uint64_t event, const char *fmt, ...)
{
	va_list ap;

	if (st->f.diverged)
		return;
	st->f.diverged = true;
	st->f.diverged_event = event;
	va_start(ap, fmt);
	vsnprintf(st->why, sizeof(st->why), fmt, ap);
	va_end(ap);
}

static int count_segment(void *arg, const struct vc_extent *x)
{
	struct state *st = arg;

	if (x->what == VC_X_SEGMENT) {
		st->f.segments_recorded++;
		st->f.segments_simulated++;
	}
	return VC_OK;
}

static int fidelity_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	return m->type->walk(m, count_segment, o->state); /* the starting heap is in both */
}

static void compare_alloc(struct state *st, const struct vc_step *s)
{
	if (s->answer == VC_RAISED) {
		diverge(st, s->index, "%" PRIu64 " bytes cannot be at %" PRIx64 ": %s", s->ev->size,
			s->ev->addr, s->model->note);
		return;
	}
	if (s->answer != VC_DONE || !s->block) {
		diverge(st, s->index, "the model runs out of memory for %" PRIu64 " bytes, the "
			"recording did not", s->ev->size);
		return;
	}
	if (!s->ev->addr)
		return;
	st->f.events_compared++;
	if (s->block->addr == s->ev->addr)
		return;
	st->f.address_mismatches++;
	diverge(st, s->index, "%" PRIu64 " bytes were placed at %" PRIx64
		", the recording has them at %" PRIx64,
		s->ev->size, s->block->addr, s->ev->addr);
}

static int keep_final(struct state *st, const struct vc_event *ev, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(st->final, st->cap, st->finals + 1), "the recorded final heap", err);
	st->final[st->finals++] = *ev;
	return VC_OK;
}

static int fidelity_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;

	switch (s->ev->kind) {
	case VC_EV_ALLOC:
		compare_alloc(st, s);
		break;
	case VC_EV_FREE: case VC_EV_FREE_DONE:
		st->f.events_compared++;
		break;
	case VC_EV_SEGMENT_ALLOC: case VC_EV_SEGMENT_MAP:
		st->f.segments_recorded++;
		break;
	case VC_EV_OOM:
		if (s->answer == VC_DONE && s->block)
			diverge(st, s->index, "the recording runs out of memory for %" PRIu64
				" bytes, the model does not", s->ev->size);
		break;
	case VC_EV_HEAP_SEGMENT: case VC_EV_HEAP_BLOCK:
		if (s->ev->flags & VC_EVF_FINAL)
			return keep_final(st, s->ev, err);
		break;
	default:
		break;
	}
	return VC_OK;
}

static void fidelity_trace(struct vc_observer *o, const struct vc_trace_entry *t)
{
	struct state *st = o->state;

	if (t->kind == VC_TR_SEGMENT_ALLOC || t->kind == VC_TR_SEGMENT_MAP)
		st->f.segments_simulated++;
}

struct comparing { struct state *st; size_t at; uint64_t end; };

static uint64_t recorded_size(const struct state *st, size_t i, uint64_t segment_end)
{
	const struct vc_event *e = &st->final[i];

	if (e->kind == VC_EV_HEAP_SEGMENT)
		return e->size;
	return (i + 1 < st->finals && st->final[i + 1].kind == VC_EV_HEAP_BLOCK
		? st->final[i + 1].addr : segment_end) - e->addr;
}

static bool same(const struct vc_extent *x, const struct vc_event *e, uint64_t size)
{
	static const uint8_t flag[] = { 0, VC_EVF_LIVE, VC_EVF_PENDING, 0 };

	if ((x->what == VC_X_SEGMENT) != (e->kind == VC_EV_HEAP_SEGMENT) || x->addr != e->addr ||
	    x->size != size)
		return false;
	if (x->what == VC_X_SEGMENT)
		return x->stream == e->stream && x->pool == e->id;
	return flag[x->what] == (e->flags & (VC_EVF_LIVE | VC_EVF_PENDING)) &&
	       (x->what == VC_X_FREE || x->requested == e->size);
}

static int compare_final(void *arg, const struct vc_extent *x)
{
	struct comparing *c = arg;
	struct state *st = c->st;
	const struct vc_event *e = c->at < st->finals ? &st->final[c->at] : NULL;

	if (e && e->kind == VC_EV_HEAP_SEGMENT)
		c->end = e->addr + e->size;
	if (!e || !same(x, e, recorded_size(st, c->at, c->end))) {
		st->f.final_mismatches++;
		diverge(st, UINT64_MAX, "the final heap differs at %" PRIx64 ": %s of %" PRIu64
			" bytes, the recording %s", x->addr, x->what == VC_X_SEGMENT ? "a segment" :
			x->what == VC_X_FREE ? "a free block" : "a live block", x->size,
			e ? "has something else there" : "ends before");
	}
	c->at++;
	return VC_OK;
}

static int fidelity_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
			struct vc_error *err)
{
	struct state *st = o->state;
	struct comparing c = { st, 0, 0 };

	if (st->finals) {
		if (m->type->walk(m, compare_final, &c) < 0)
			return vc_fail(err, VC_EINTERNAL, "the model's heap cannot be walked");
		if (c.at < st->finals) {
			st->f.final_mismatches += st->finals - c.at;
			diverge(st, UINT64_MAX, "the recording's final heap has more segments");
		}
	}
	if (st->f.segments_recorded != st->f.segments_simulated)
		diverge(st, UINT64_MAX, "%" PRIu64 " segments recorded, %" PRIu64 " simulated",
			st->f.segments_recorded, st->f.segments_simulated);
	st->f.checked = st->f.events_compared > 0;
	st->f.exact = st->f.checked && !st->f.diverged;
	if (st->f.diverged && !(st->f.diverged_why = strdup(st->why)))
		return vc_nomem(err, "fidelity");
	r->fidelity = st->f;
	st->f.diverged_why = NULL;
	return VC_OK;
}

static bool fidelity_repeat(const struct vc_result *of, struct vc_result *to)
{
	to->fidelity = of->fidelity;
	if (of->fidelity.diverged_why)
		to->fidelity.diverged_why = strdup(of->fidelity.diverged_why);
	return to->fidelity.diverged_why || !of->fidelity.diverged_why;
}

static void fidelity_fini(struct vc_observer *o)
{
	struct state *st = o->state;

	VC_FREE(st->final, st->f.diverged_why);
}

const struct vc_observer_type vc_observer_fidelity = {
	.name = "fidelity",
	.summary = "does the model reproduce the recording: every address, every segment",
	.state_size = sizeof(struct state), .final_heap = true, .begin = fidelity_begin,
	.step = fidelity_step, .trace = fidelity_trace, .end = fidelity_end,
	.repeat = fidelity_repeat, .fini = fidelity_fini,
};
