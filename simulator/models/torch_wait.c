/* SPDX-License-Identifier: Apache-2.0 */
/* torch_wait.c - blocks that other streams use: events, queues, deferred frees, forced
 * completion. */

#include "common/vec.h"
#include "simulator/models/torch_index.h"

/* Index of a fresh element of a growing array with a list of spare ones; 0 = no memory. */
#define TAKE(t, what) \
	((t)->what##_spare ? take_spare_##what(t) : \
	 (t)->what##_used < (t)->what##_cap || grow_##what(t) ? (t)->what##_used++ : 0)
#define GROWING(what, type, spare_link) \
static bool grow_##what(struct torch *t) \
{ \
	uint32_t cap = t->what##_cap ? 2 * t->what##_cap : 64; \
	type *p = realloc(t->what, cap * sizeof(*p)); \
\
	if (!p) { \
		t->nomem = true; \
		return false; \
	} \
	t->what = p; \
	t->what##_cap = cap; \
	if (!t->what##_used) \
		t->what##_used = 1; \
	return true; \
} \
static uint32_t take_spare_##what(struct torch *t) \
{ \
	uint32_t i = t->what##_spare; \
\
	t->what##_spare = t->what[i].spare_link; \
	return i; \
} \
static void give_##what(struct torch *t, uint32_t i) \
{ \
	t->what[i].spare_link = t->what##_spare; \
	t->what##_spare = i; \
}
GROWING(event, struct torch_event, next)
GROWING(wait, struct torch_wait, block)
GROWING(link, struct torch_link, next)

/* c10::Stream's hash: the kind of device (CUDA is 1), its index, the handle. */
static uint64_t stream_hash(const struct torch *t, uint32_t stream)
{
	uint64_t device = vc_device_config(t->m->device)->index;

	return (1ull << 56) + (device << 48) +
	       (stream < t->m->streams->n ? t->m->streams->handle[stream] : stream);
}

static void drop_links(struct torch *t, uint32_t i)
{
	while (i) {
		uint32_t next = t->link[i].next;

		give_link(t, i);
		i = next;
	}
}

static void end_wait(struct torch *t, uint32_t w)
{
	drop_links(t, t->wait[w].use);
	drop_links(t, t->wait[w].note);
	give_wait(t, w);
}

static void add_once(struct torch *t, uint32_t *head, uint32_t value)
{
	uint32_t n, *at = head;

	for (; *at; at = &t->link[*at].next)
		if (t->link[*at].value == value)
			return;
	/* Growing may move the array that `at` points into. */
	n = TAKE(t, link);
	if (!n)
		return;
	t->link[n] = (struct torch_link){ value, 0 };
	for (at = head; *at; at = &t->link[*at].next)
		;
	*at = n;
}

void torch_use(struct torch *t, uint32_t i, uint32_t stream)
{
	uint32_t w = t->b[i].wait;

	if (t->b[i].state != TORCH_LIVE || stream == t->set[t->b[i].set]->stream)
		return;
	if (!w) {
		w = TAKE(t, wait);
		if (!w)
			return;
		t->wait[w] = (struct torch_wait){ .block = i };
		t->b[i].wait = w;
	}
	add_once(t, &t->wait[w].use, stream);
	if (torch_capturing(t))
		add_once(t, &t->wait[w].note, stream);
}

/* ---- events ---- */
static struct torch_queue *queue_of(struct torch *t, uint32_t stream)
{
	uint64_t hash = stream_hash(t, stream);
	uint32_t *at = torch_map_find(&t->queues, hash, stream), q;
	struct torch_queue *p;

	if (at)
		return &t->queue[*at];
	for (q = 0; q < t->nqueue && t->queue[q].head; q++)
		;
	if (q == t->nqueue) {
		p = realloc(t->queue, (q + 1) * sizeof(*p));
		if (!p)
			return NULL;
		t->queue = p;
		t->nqueue++;
	}
	if (!torch_map_put(&t->queues, hash, stream, q))
		return NULL;
	t->queue[q] = (struct torch_queue){ stream, 0, 0 };
	return &t->queue[q];
}

static void insert_event(struct torch *t, uint32_t w, uint32_t stream)
{
	struct torch_stream *s = torch_stream_at(t, stream);
	uint32_t e = TAKE(t, event);
	struct torch_queue *q = e ? queue_of(t, stream) : NULL;

	if (!q) {
		t->nomem = true;
		return;
	}
	s->issued++;
	if (t->k->completion == TORCH_AT_NEXT)
		s->done = s->issued;
	t->event[e] = (struct torch_event){ s->issued, w, 0 };
	if (q->tail)
		t->event[q->tail].next = e;
	else
		q->head = e;
	q->tail = e;
	t->wait[w].events++;
	t->waiting++;
}

/* The streams in the order of PyTorch's own set; those noted in a capture are left out first. */
static void insert_events(struct torch *t, uint32_t w, bool drop_noted)
{
	struct torch_map set = { 0 };
	bool ok = true;

	for (uint32_t i = t->wait[w].use; i; i = t->link[i].next)
		ok &= torch_map_put(&set, stream_hash(t, t->link[i].value), t->link[i].value,
				    t->link[i].value);
	for (uint32_t i = drop_noted ? t->wait[w].note : 0; i; i = t->link[i].next)
		torch_map_erase(&set, stream_hash(t, t->link[i].value), t->link[i].value);
	for (uint32_t at = torch_map_next(&set, 0); at != UINT32_MAX;
	     at = torch_map_next(&set, at + 1))
		insert_event(t, w, set.e[at].value);
	t->nomem |= !ok;
	torch_map_fini(&set);
	drop_links(t, t->wait[w].use);
	t->wait[w].use = 0;
}

bool torch_defer(struct torch *t, uint32_t i)
{
	uint32_t w = t->b[i].wait, n;

	if (!t->wait[w].use) {
		end_wait(t, w);
		t->b[i].wait = 0;
		return false;
	}
	t->b[i].state = TORCH_PENDING;
	if (!torch_capturing(t)) {
		insert_events(t, w, false);
		return true;
	}
	n = TAKE(t, link);
	if (!n)
		return true;
	t->link[n] = (struct torch_link){ w, 0 };
	if (t->deferred)
		t->link[t->deferred_last].next = n;
	else
		t->deferred = n;
	t->deferred_last = n;
	t->wait[w].deferred = true;
	t->waiting++;
	return true;
}

/* The last event has passed, or there was none left to wait for. */
static void finish(struct torch *t, uint32_t w)
{
	uint32_t i = t->wait[w].block;

	end_wait(t, w);
	if (!i)
		return;
	if (t->m->trace)
		torch_emit(t, VC_TR_FREE_DONE, &t->b[i], t->b[i].requested);
	torch_complete_free(t, i);
}

static void process_deferred(struct torch *t)
{
	uint32_t at = t->deferred;

	t->deferred = t->deferred_last = 0;
	while (at) {
		uint32_t w = t->link[at].value, next = t->link[at].next;

		give_link(t, at);
		t->waiting--;
		t->wait[w].deferred = false;
		if (t->wait[w].block)
			insert_events(t, w, t->r->deferred_drop);
		if (!t->wait[w].events)
			finish(t, w);
		at = next;
	}
}

static void pop(struct torch *t, struct torch_queue *q)
{
	uint32_t e = q->head, w = t->event[e].wait;

	q->head = t->event[e].next;
	if (!q->head)
		q->tail = 0;
	give_event(t, e);
	t->waiting--;
	if (!--t->wait[w].events)
		finish(t, w);
}

static bool is_passed(struct torch *t, const struct torch_queue *q)
{
	const struct torch_event *e = &t->event[q->head];

	return !t->failed && (torch_stream_at(t, q->stream)->done >= e->seq ||
			      !t->wait[e->wait].block);
}

bool torch_process_events(struct torch *t)
{
	uint32_t at;

	process_deferred(t);
	at = torch_map_next(&t->queues, 0);
	while (at != UINT32_MAX) {
		struct torch_queue *q = &t->queue[t->queues.e[at].value];

		while (q->head && is_passed(t, q))
			pop(t, q);
		if (!q->head)
			torch_map_erase(&t->queues, stream_hash(t, q->stream), q->stream);
		at = torch_map_next(&t->queues, q->head ? at + 1 : at);
	}
	return !torch_failed(t);
}

static bool is_of(const struct torch *t, uint32_t wait, const struct torch_private *only)
{
	uint32_t i = t->wait[wait].block;

	return !only || !i || t->set[t->b[i].set]->pool->owner == only;
}

/* Wait for the events of a queue, of one pool only when asked. */
static void drain(struct torch *t, struct torch_queue *q, const struct torch_private *only)
{
	struct torch_stream *s = torch_stream_at(t, q->stream);
	struct torch_queue kept = { q->stream, 0, 0 };

	while (q->head) {
		uint32_t e = q->head;

		if (is_of(t, t->event[e].wait, only)) {
			if (s->done < t->event[e].seq)
				s->done = t->event[e].seq;
			pop(t, q);
			continue;
		}
		q->head = t->event[e].next;
		t->event[e].next = 0;
		if (kept.tail)
			t->event[kept.tail].next = e;
		else
			kept.head = e;
		kept.tail = e;
	}
	*q = kept;
}

int torch_sync(struct torch *t, const struct torch_private *only)
{
	uint32_t at;

	t->sync_all++;
	if (t->r->capture == TORCH_ANY_SCOPE && t->scopes) {
		torch_raise(t, "captures_underway.%s INTERNAL ASSERT FAILED",
			    t->r->empty_assert_new ? "empty()" : "size() == 0");
		return VC_RAISED;
	}
	if (t->r->capture == TORCH_REAL_CAPTURE && torch_capturing(t)) {
		torch_raise(t, "!is_capture_context() INTERNAL ASSERT FAILED");
		return VC_RAISED;
	}
	process_deferred(t);
	at = torch_map_next(&t->queues, 0);
	while (at != UINT32_MAX) {
		struct torch_queue *q = &t->queue[t->queues.e[at].value];

		drain(t, q, only);
		if (only && !q->head) {
			torch_map_erase(&t->queues, stream_hash(t, q->stream), q->stream);
			at = torch_map_next(&t->queues, at);
		} else {
			at = torch_map_next(&t->queues, at + 1);
		}
	}
	if (!only)
		torch_map_clear(&t->queues);
	return torch_failed(t) ? VC_RAISED : VC_DONE;
}

void torch_complete_recorded(struct torch *t, uint32_t i)
{
	uint32_t w = t->b[i].wait;

	t->wait[w].block = 0; /* its events are skipped when they are met */
	if (t->m->trace)
		torch_emit(t, VC_TR_FREE_DONE, &t->b[i], t->b[i].requested);
	torch_complete_free(t, i);
}

void torch_wait_fini(struct torch *t)
{
	for (uint32_t i = 0; i < t->streams; i++)
		free(t->stream[i].klass);
	VC_FREE(t->stream, t->queue, t->event, t->wait, t->link);
	torch_map_fini(&t->queues);
}
