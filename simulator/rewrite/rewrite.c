/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c - read all, rewrite, hand out. */
#include "simulator/rewrite/rewrite.h"
#include "simulator/anatomy/layers.h"
#include "simulator/replay/memo.h"

#include "common/vec.h"

enum { BATCH = 4096 }; /* events read at once: bounds a table */

/* Lent where it lies in memory, else read into w->own. */
static int read_events(struct vc_source *up, struct vc_whole *w, struct vc_error *err)
{
	size_t cap = 0;
	long n = 1;

	if (up->type->view) {
		n = up->type->view(up, &w->in);
		w->n = n > 0 ? (size_t)n : 0;
		return n < 0 ? (int)n : VC_OK;
	}
	while (n > 0) {
		VC_HAVE(vc_vec_room(w->own, cap, w->n + BATCH), "the events to rewrite", err);
		n = up->type->next(up, w->own + w->n, cap - w->n, err);
		if (n < 0)
			return (int)n;
		w->n += (size_t)n;
	}
	w->in = w->own;
	return VC_OK;
}

static int read_all(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_source *up = s->upstream;
	uint64_t allocs[64] = { 0 };

	VC_TRY(read_events(up, w, err));
	w->same = up->type->trace ? up->type->trace(up) : NULL;
	w->next_id = vc_whole_next_id(w->in, w->n, s->meta);
	for (size_t i = 0; i < w->n; i++) {
		const struct vc_event *e = &w->in[i];

		if (e->kind == VC_EV_ALLOC && e->device < 64 &&
		    ++allocs[e->device] > allocs[w->device])
			w->device = e->device;
	}
	return VC_OK;
}

uint64_t vc_whole_next_id(const struct vc_event *ev, size_t n, const struct vc_meta *m)
{
	uint64_t id = m->max_id;

	for (size_t i = 0; i < n; i++)
		if ((ev[i].kind <= VC_EV_USE || ev[i].kind == VC_EV_HEAP_BLOCK) && ev[i].id > id)
			id = ev[i].id;
	return id + 1;
}

long vc_whole_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct vc_whole *w = s->state;

	if (!w->ready) {
		int r = read_all(s, w, err);
		if (r == VC_OK)
			r = s->type->rewrite(s, w, err);
		VC_TRY(r);
		w->ready = true;
		if (w->next_id > s->meta->max_id)
			s->meta->max_id = w->next_id;
	}
	size_t n = w->m - w->at < cap ? w->m - w->at : cap;
	if (n)
		memcpy(ev, w->out + w->at, n * sizeof(*ev));
	w->at += n;
	return (long)n;
}

static bool is_measured(const struct vc_event *e)
{
	return e->kind == VC_EV_KERNEL || e->kind == VC_EV_COPY || e->kind == VC_EV_OVERHEAD ||
	       e->kind == VC_EV_LAUNCH;
}

/* Time goes on by what lies between an event and the one put before it, as far as it was not
 * there yet: a step back costs nothing, nor does the way from a copy to where the recording is.
 * What a device did keeps its distance to the requests around it. */
static uint64_t ticks(struct vc_whole *w, const struct vc_event *e)
{
	uint64_t at = e->time_ns, from = w->clock.in;

	if (is_measured(e))
		return at + (w->clock.out - from);
	if (from < w->clock.high && at >= w->clock.high)
		from = w->clock.high;
	w->clock.out += at > from ? at - from : 0;
	w->clock.high = at > w->clock.high ? at : w->clock.high;
	w->clock.in = at;
	return w->clock.out;
}

int vc_whole_put(struct vc_whole *w, const struct vc_event *ev, size_t n, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(w->out, w->cap, w->m + n), "the rewritten events", err);
	for (size_t i = 0; i < n; i++) {
		w->out[w->m] = ev[i];
		w->out[w->m++].time_ns = ticks(w, &ev[i]);
	}
	return VC_OK;
}

int vc_whole_host(struct vc_source *s, struct vc_whole *w, const struct vc_event *like, uint64_t id,
		  uint64_t size, struct vc_error *err)
{
	struct vc_event e =
		vc_event_like(like, size ? VC_EV_OUTSIDE_ALLOC : VC_EV_OUTSIDE_FREE, id, size);

	e.label = vc_meta_string(s->meta, VC_LABEL_PINNED, sizeof(VC_LABEL_PINNED) - 1);
	return vc_whole_put(w, &e, 1, err);
}

int vc_whole_processes(struct vc_source *s, struct vc_whole *w, uint64_t n, struct vc_error *err)
{
	struct vc_event e = { .kind = VC_EV_MARK, .flags = VC_MARK_INSTANT, .size = n,
			      .device = w->device };

	e.label = vc_meta_string(s->meta, VC_LABEL_PROCESSES, sizeof(VC_LABEL_PROCESSES) - 1);
	return n > 1 ? vc_whole_put(w, &e, 1, err) : VC_OK;
}

void vc_whole_close(struct vc_source *s)
{
	struct vc_whole *w = s->state;

	VC_FREE(w->own, w->out);
	vc_memo_put(w->from);
	*w = (struct vc_whole){ 0 };
}

int vc_whole_anatomy(const struct vc_whole *w, const struct vc_meta *meta, struct vc_anatomy *a,
		     struct vc_error *err)
{
	return w->same ? vc_anatomy_of(a, w->same, w->device, err) :
			 vc_anatomy_read(a, w->in, w->n, w->device, meta, err);
}

int vc_whole_layers(const struct vc_whole *w, const struct vc_meta *meta,
		    const struct vc_anatomy *a, size_t span, struct vc_layers *l,
		    struct vc_error *err)
{
	return w->same ? vc_layers_of(l, w->same, w->device, span, err) :
			 vc_layers_find(l, a, w->in, meta, span, err);
}

struct vc_event vc_event_like(const struct vc_event *like, uint8_t kind, uint64_t id, uint64_t size)
{
	bool on_stream = kind == VC_EV_ALLOC || kind == VC_EV_FREE;

	return (struct vc_event){
		.time_ns = like->time_ns, .id = id, .size = size,
		/* A scope of a pool is one of all streams; a block has one. */
		.stream = on_stream && like->stream != VC_STREAM_ALL ? like->stream : 0,
		.site = kind == VC_EV_ALLOC ? like->site : 0, .device = like->device,
		.kind = kind };
}

bool vc_event_outdated(const struct vc_event *e)
{
	return (e->kind >= VC_EV_SEGMENT_ALLOC && e->kind <= VC_EV_DEVICE_SAMPLE) ||
	       (e->kind >= VC_EV_HEAP_SEGMENT && (e->flags & VC_EVF_FINAL));
}
