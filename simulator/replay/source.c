/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - see source.h. Chaining transforms, traces in memory. */
#include "simulator/replay/source.h"

#include "common/io.h"
#include "simulator/replay/memo.h"
#include "simulator/replay/transform.h"
#include "common/vec.h"

#define BATCH 4096 /* events pulled at a time when a whole trace is read */
#define EXPECTED_MAX ((size_t)1 << 24) /* no more than 800 MB on the word of a source */

struct vc_source *vc_source_new(const struct vc_source_type *type, struct vc_error *err)
{
	struct vc_source *s = calloc(1, sizeof(*s));

	if (!s) {
		vc_nomem(err, "a source");
		return NULL;
	}
	s->type = type;
	s->config = calloc(1, type->config_size ? type->config_size : 1);
	s->state = calloc(1, type->state_size ? type->state_size : 1);
	if (s->config && s->state)
		return s;
	vc_nomem(err, "a source");
	VC_FREE(s->config, s->state, s);
	return NULL;
}

/* One source of a chain, without what it shares. */
static void drop(struct vc_source *s)
{
	if (s->type->close)
		s->type->close(s);
	VC_FREE(s->config, s->state, s);
}

void vc_source_free(struct vc_source *s)
{
	while (s) {
		struct vc_source *up = s->upstream;
		struct vc_input *in = s->input;
		struct vc_meta *m = up || s->lent ? NULL : s->meta;
		struct vc_memo *held = s->holds;

		drop(s);
		vc_memo_put(held);
		vc_input_close(in);
		vc_meta_free(m);
		s = up;
	}
}

/* Transforms add notes while others read the same trace. */
static int own_meta(struct vc_source *s, struct vc_error *err)
{
	struct vc_meta *copy;

	if (!s->lent)
		return VC_OK;
	copy = vc_meta_copy(s->meta, err);
	if (!copy)
		return err ? (int)err->status : VC_ENOMEM;
	s->meta = copy;
	s->lent = false;
	return VC_OK;
}

struct vc_source *vc_transform_open(const struct vc_transform_use *u, struct vc_source *upstream,
				    struct vc_error *err)
{
	struct vc_source *s = own_meta(upstream, err) < 0 ? NULL : vc_source_new(u->type, err);

	if (!s)
		return NULL;
	s->upstream = upstream;
	s->meta = upstream->meta;
	s->reads = upstream->reads;
	memcpy(s->config, u->config, u->type->config_size);
	if (u->type->open && u->type->open(s, err) < 0) {
		drop(s);
		return NULL;
	}
	if (!vc_transform_margin(u))
		vc_meta_note(s->meta, "%s: how far off its answer may be was never measured; "
			     "take the numbers as a guess", u->type->name);
	return s;
}

int vc_trace_expect(struct vc_trace *t, const struct vc_source *s, struct vc_error *err)
{
	if (s->expected < EXPECTED_MAX)
		VC_HAVE(vc_vec_room(t->ev, t->cap, s->expected), "the trace's events", err);
	return VC_OK;
}

int vc_trace_append_many(struct vc_trace *t, const struct vc_event *ev, size_t n,
			 struct vc_error *err)
{
	VC_HAVE(vc_vec_room(t->ev, t->cap, t->n + n), "the trace's events", err);
	if (n)
		memcpy(t->ev + t->n, ev, n * sizeof(*ev));
	t->n += n;
	return 0;
}

int vc_trace_read(struct vc_trace *t, struct vc_source *s, struct vc_error *err)
{
	long n;

	VC_TRY(vc_trace_expect(t, s, err));
	do {
		VC_HAVE(vc_vec_room(t->ev, t->cap, t->n + BATCH), "the trace's events", err);
		n = s->type->next(s, t->ev + t->n, t->cap - t->n, err);
		if (n < 0)
			return (int)n;
		t->n += (size_t)n;
	} while (n);
	VC_HAVE(vc_meta_ok(s->meta), "the trace's dictionaries", err);
	VC_TRY(own_meta(s, err));
	t->meta = s->meta;
	t->reads = s->reads;
	for (; s; s = s->upstream)
		s->meta = NULL;
	return 0;
}

void vc_trace_fini(struct vc_trace *t)
{
	vc_memos_free(t->memos);
	vc_meta_free(t->meta);
	free(t->ev);
	*t = (struct vc_trace){ 0 };
}

struct memory { const struct vc_trace *trace; size_t at; };

static long memory_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct memory *m = s->state;
	size_t n = m->trace->n - m->at;

	if (n > cap)
		n = cap;
	if (n)
		memcpy(ev, m->trace->ev + m->at, n * sizeof(*ev));
	m->at += n;
	return (long)n;
}

static long memory_view(struct vc_source *s, const struct vc_event **ev)
{
	struct memory *m = s->state;
	size_t n = m->trace->n - m->at;

	*ev = m->trace->ev + m->at;
	m->at += n;
	return (long)n;
}

static const struct vc_trace *memory_trace(const struct vc_source *s)
{
	return ((const struct memory *)s->state)->trace;
}

static const struct vc_source_type memory_type = {
	.name = "memory", .summary = "a trace that was read before",
	.state_size = sizeof(struct memory), .next = memory_next, .view = memory_view,
	.trace = memory_trace,
};

struct vc_source *vc_source_memory(const struct vc_trace *t, struct vc_error *err)
{
	struct vc_source *s = vc_source_new(&memory_type, err);

	if (!s)
		return NULL;
	((struct memory *)s->state)->trace = t;
	s->meta = t->meta;
	s->reads = t->reads;
	s->lent = true;
	return s;
}
