/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c - what was obtained from the device, and when it was given back. Pages of an
 * expandable segment that are mapped next to each other at one event count as one piece. */

#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

struct state { struct vc_segment_life *at; size_t n, cap; uint64_t event; bool nomem; };

static void add(struct state *st, const struct vc_segment_life *l)
{
	if (!vc_vec_room(st->at, st->cap, st->n + 1)) {
		st->nomem = true;
		return;
	}
	st->at[st->n++] = *l;
}

static int note_start(void *arg, const struct vc_extent *x)
{
	if (x->what == VC_X_SEGMENT)
		add(arg, &(struct vc_segment_life){ .addr = x->addr, .size = x->size,
			.pool = x->pool, .died = UINT64_MAX, .stream = x->stream, .small = x->small,
			.expandable = x->expandable });
	return VC_OK;
}

static int segments_begin(struct vc_observer *o, const struct vc_model *m, struct vc_error *err)
{
	/* A heap that is asked for anew was obtained from the device before the first event: the
	 * walk finds it again. */
	((struct state *)o->state)->n = 0;
	return m->type->walk(m, note_start, o->state);
}

static int segments_step(struct vc_observer *o, const struct vc_step *s, struct vc_error *err)
{
	struct state *st = o->state;

	st->event = s->index + 1; /* device calls come before the step that caused them is told */
	return st->nomem ? vc_nomem(err, "segment lives") : VC_OK;
}

/* Give back [addr, addr + size): a piece may lose its beginning, middle or end. */
static void end_range(struct state *st, uint64_t addr, uint64_t size)
{
	for (size_t i = st->n; i-- > 0;) {
		struct vc_segment_life *l = &st->at[i], rest;

		if (l->died != UINT64_MAX || addr < l->addr || addr - l->addr >= l->size)
			continue;
		rest = *l;
		l->died = st->event;
		if (addr > rest.addr) {
			l->size = addr - rest.addr;
			l->died = UINT64_MAX;
			add(st, &(struct vc_segment_life){ .addr = addr, .size = size,
				.born = rest.born, .died = st->event, .pool = rest.pool,
				.stream = rest.stream, .small = rest.small,
				.expandable = rest.expandable });
		} else if (size < rest.size) {
			l->size = size;
		}
		if (addr + size < rest.addr + rest.size) {
			rest.size -= addr + size - rest.addr;
			rest.addr = addr + size;
			add(st, &rest);
		}
		return;
	}
}

static void segments_device(struct vc_observer *o, const struct vc_device_change *c)
{
	struct state *st = o->state;
	struct vc_segment_life *last = st->n ? &st->at[st->n - 1] : NULL;

	if (c->failed)
		return;
	if (c->what == VC_DRV_MALLOC) {
		add(st, &(struct vc_segment_life){ .addr = c->addr, .size = c->size,
			.born = st->event, .died = UINT64_MAX });
	} else if (c->what == VC_DRV_MAP) {
		if (last && last->expandable && last->born == st->event &&
		    last->died == UINT64_MAX && last->addr + last->size == c->addr)
			last->size += c->size;
		else
			add(st, &(struct vc_segment_life){ .addr = c->addr, .size = c->size,
				.born = st->event, .died = UINT64_MAX, .expandable = true });
	} else if (c->what == VC_DRV_FREE || c->what == VC_DRV_UNMAP) {
		end_range(st, c->addr, c->size);
	}
}

static int segments_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
			struct vc_error *err)
{
	struct state *st = o->state;

	if (st->nomem)
		return vc_nomem(err, "segment lives");
	r->segments = (struct vc_segments){ st->at, st->n };
	st->at = NULL;
	return VC_OK;
}

static void segments_fini(struct vc_observer *o)
{
	free(((struct state *)o->state)->at);
}

const struct vc_observer_type vc_observer_segments = {
	.name = "segments", .summary = "what was obtained from the device, and when",
	.state_size = sizeof(struct state), .begin = segments_begin, .step = segments_step,
	.device = segments_device, .end = segments_end, .fini = segments_fini,
};
