/* SPDX-License-Identifier: Apache-2.0 */
/* past.c - see past.h
 *
 * A program that repeats itself comes back to the same blocks: at some event of the recording as
 * many bytes of each size live as at its beginning. What was recorded up to there is a round, and
 * leads from the first event to the first event. */
#include "simulator/replay/past.h"

#include "common/map.h"
#include "common/vec.h"

#define GONE (UINT64_C(1) << 63) /* of what stands for a block: given back, other streams use it */
#define BIAS (UINT64_C(1) << 32) /* of counts in a map, whose values are never 0 */
#define LARGE (UINT64_C(20) << 20) /* kLargeBuffer: the segment of requests of 1 to 10 MiB */
#define SMALL (UINT64_C(1) << 20)  /* kSmallSize */

struct block { /* lives at the first event */
	uint64_t id, size, addr, segment;
	uint32_t stream;
	bool late;
	size_t died;  /* event; SIZE_MAX: not before the round ends */
	uint64_t now; /* the block that stands for it in the round that is being played, | GONE */
};

struct born { uint64_t key, id; }; /* in a round, and lives at its end */

struct maker {
	const struct vc_trace *t;
	uint16_t device;
	uint64_t max_id;     /* of all blocks of the recording */
	struct block *block; size_t blocks;
	uint32_t *of_id;     /* by id: its block + 1 */
	uint64_t *ghost;     /* by id: who stands for it in a round, | GONE */
	uint32_t *partner;   /* by id: the block + 1 whose place it takes at the end of a round */
	uint64_t next;       /* the next id of nobody */
	const struct vc_event **segment; size_t segments;
	struct vc_map count; uint64_t off;
	size_t first, end;   /* events of a round */
	size_t rest;         /* in it, where fewest bytes live: between two steps; the last such */
	size_t grown;        /* the first one, before what the step had kept goes */
	struct vc_event *ev; size_t n, cap;
};

static uint64_t key_of(uint32_t stream, uint64_t size)
{
	return (uint64_t)stream << 40 | ((size + 511) >> 9);
}

static int put(struct maker *m, struct vc_event e, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(m->ev, m->cap, m->n + 1), "what came before a recording", err);
	e.device = m->device;
	m->ev[m->n++] = e;
	return VC_OK;
}

static int put_alloc(struct maker *m, uint64_t id, uint64_t size, uint32_t stream,
		     struct vc_error *err)
{
	return put(m, (struct vc_event){ .kind = VC_EV_ALLOC, .id = id, .size = size,
					 .stream = stream }, err);
}

static int put_free(struct maker *m, uint64_t id, struct vc_error *err)
{
	return put(m, (struct vc_event){ .kind = VC_EV_FREE, .id = id }, err);
}

/* ---- the heap ---- */

static bool is_start(const struct maker *m, const struct vc_event *e)
{
	return e->device == m->device && !(e->flags & VC_EVF_FINAL) &&
	       (e->kind == VC_EV_HEAP_SEGMENT || e->kind == VC_EV_HEAP_BLOCK);
}

static int add_block(struct maker *m, const struct vc_event *e, const struct vc_event *segment,
		     uint64_t end, struct vc_error *err)
{
	VC_HAVE(vc_vec_one(m->block, m->blocks), "the starting heap", err);
	m->block[m->blocks++] = (struct block){
		.id = e->id, .size = e->size ? e->size : end - e->addr, .addr = e->addr,
		.segment = segment->size, .stream = segment->stream, .died = SIZE_MAX };
	m->of_id[e->id] = (uint32_t)m->blocks;
	return VC_OK;
}

static int read_heap(struct maker *m, struct vc_error *err)
{
	const struct vc_event *ev = m->t->ev, *segment = NULL;

	for (size_t i = 0; i < m->t->n; i++) {
		const struct vc_event *e = &ev[i];

		if (!is_start(m, e))
			continue;
		if (e->kind == VC_EV_HEAP_SEGMENT) {
			segment = e;
			VC_HAVE(vc_vec_one(m->segment, m->segments), "the starting heap", err);
			m->segment[m->segments++] = e;
		} else if (segment && (e->flags & VC_EVF_LIVE) && !(e->flags & VC_EVF_PENDING) &&
			   e->id && !m->of_id[e->id]) {
			bool last = i + 1 == m->t->n || ev[i + 1].kind != VC_EV_HEAP_BLOCK;

			VC_TRY(add_block(m, e, segment, last ? segment->addr + segment->size :
							       ev[i + 1].addr, err));
		}
	}
	return VC_OK;
}

/* A segment that was made for a request of this block's size, or of blocks that share one. */
static void mark_late(struct maker *m)
{
	for (size_t i = 0; i < m->blocks; i++) {
		struct block *b = &m->block[i];

		b->late = b->size > SMALL && b->segment > LARGE &&
			  b->segment > (b->size + (2u << 20) - 1) / (2u << 20) * (2u << 20);
	}
}

/* ---- the round ---- */

/* So many more blocks of that kind live than at the first event. */
static bool shift(struct maker *m, uint64_t key, int by)
{
	uint64_t *v = vc_map_get(&m->count, key), bytes = (key & ((UINT64_C(1) << 40) - 1)) << 9;
	int64_t was = v ? (int64_t)(*v - BIAS) : 0, now = was + by;

	m->off += bytes * (uint64_t)llabs(now) - bytes * (uint64_t)llabs(was);
	if (v)
		*v = BIAS + (uint64_t)now;
	return v || vc_map_put(&m->count, key, BIAS + (uint64_t)now);
}

/* ghost[] holds the key of each block that a request of the recording made. */
static bool step(struct maker *m, const struct vc_event *e)
{
	uint64_t key;

	if (e->device != m->device || e->id > m->max_id)
		return true;
	if (e->kind == VC_EV_ALLOC) {
		m->ghost[e->id] = key_of(e->stream, e->size);
		return shift(m, m->ghost[e->id], 1);
	}
	if (e->kind != VC_EV_FREE)
		return true;
	if (m->of_id[e->id]) {
		const struct block *b = &m->block[m->of_id[e->id] - 1];

		return shift(m, key_of(b->stream, b->size), -1);
	}
	key = m->ghost[e->id];
	m->ghost[e->id] = 0;
	return !key || shift(m, key, -1);
}

static void begin_steps(struct maker *m)
{
	vc_map_fini(&m->count);
	m->off = 0;
	memset(m->ghost, 0, (m->max_id + 1) * sizeof(*m->ghost));
}

/* Where the last event is behind which the same blocks live as at the beginning, as nearly as they
 * ever do once most of them have been others. */
static int find_round(struct maker *m, struct vc_error *err)
{
	const struct vc_trace *t = m->t;
	uint64_t most = 0, least = UINT64_MAX;

	begin_steps(m);
	for (size_t i = m->first; i < t->n; i++) {
		VC_HAVE(step(m, &t->ev[i]), "the blocks of a round", err);
		most = m->off > most ? m->off : most;
	}
	for (int pass = 0; pass < 2; pass++) {
		bool away = false;

		begin_steps(m);
		for (size_t i = m->first; i < t->n; i++) {
			VC_HAVE(step(m, &t->ev[i]), "the blocks of a round", err);
			away |= m->off > most / 2;
			if (away && !pass && m->off < least)
				least = m->off;
			if (away && pass && m->off <= least + most / 64)
				m->end = i + 1;
		}
	}
	if (least > most / 4)
		m->end = m->first;
	return VC_OK;
}

/* Bytes that live more (or fewer) than before, behind an event of the round. ghost[] holds which
 * event asked for a block, + 1. No integer: sizes in a file may be any. */
static double live_change(struct maker *m, const struct vc_event *e)
{
	uint64_t asked;

	if (e->device != m->device || e->id > m->max_id)
		return 0;
	if (e->kind == VC_EV_ALLOC) {
		m->ghost[e->id] = (uint64_t)(e - m->t->ev) + 1;
		return (double)e->size;
	}
	if (e->kind != VC_EV_FREE)
		return 0;
	if (m->of_id[e->id])
		return -(double)m->block[m->of_id[e->id] - 1].size;
	asked = m->ghost[e->id];
	m->ghost[e->id] = 0;
	return asked ? -(double)m->t->ev[asked - 1].size : 0;
}

/* Between two steps fewest bytes live. */
static void find_rest(struct maker *m)
{
	double live, low = 0, high = 0;
	size_t grown = m->first;
	bool found = false, away = false;

	m->grown = m->end;
	for (int pass = 0; pass < 2; pass++) {
		begin_steps(m);
		live = 0;
		for (size_t i = m->first; i < m->end; i++) {
			const struct vc_event *e = &m->t->ev[i];
			double by = live_change(m, e);

			live += by;
			low = !pass && live < low ? live : low;
			high = !pass && live > high ? live : high;
			grown = by > 0 ? i + 1 : grown;
			away |= pass && live > low + (high - low) / 2;
			if (!pass || live > low + (high - low) / 64)
				continue;
			m->rest = i + 1;
			if (away && !found)
				m->grown = grown;
			found |= away;
		}
	}
}

VC_COMPARE(by_key, struct born, VC_THEN(VC_ORDER(x->key, y->key), VC_ORDER(x->id, y->id)))

/* Who lives at the end of a round in the place of a block that died in it. */
static int pair_up(struct maker *m, struct vc_error *err)
{
	const struct vc_trace *t = m->t;
	struct born *old = NULL, *now = NULL;
	size_t olds = 0, n = 0;
	bool ok = true;

	begin_steps(m);
	for (size_t i = m->first; i < m->end; i++) {
		const struct vc_event *e = &t->ev[i];

		ok = ok && step(m, e);
		if (e->device == m->device && e->kind == VC_EV_FREE && e->id <= m->max_id &&
		    m->of_id[e->id])
			m->block[m->of_id[e->id] - 1].died = i;
	}
	for (size_t i = 0; ok && i < m->blocks; i++) {
		const struct block *b = &m->block[i];

		if (b->died != SIZE_MAX && (ok = vc_vec_one(old, olds)))
			old[olds++] = (struct born){ key_of(b->stream, b->size), i };
	}
	for (uint64_t id = 0; ok && id <= m->max_id; id++)
		if (m->ghost[id] && (ok = vc_vec_one(now, n)))
			now[n++] = (struct born){ m->ghost[id], id };
	if (ok && n && olds) {
		vc_sort(old, olds, sizeof(*old), by_key);
		vc_sort(now, n, sizeof(*now), by_key);
	}
	for (size_t i = 0, k = 0; ok && i < n && k < olds;) {
		if (now[i].key == old[k].key)
			m->partner[now[i++].id] = (uint32_t)old[k++].id + 1;
		else if (now[i].key < old[k].key)
			i++;
		else
			k++;
	}
	VC_FREE(old, now);
	return ok ? VC_OK : vc_nomem(err, "the blocks of a round");
}

static uint64_t *stand_in(struct maker *m, uint64_t id)
{
	return m->of_id[id] ? &m->block[m->of_id[id] - 1].now : &m->ghost[id];
}

/* The id under which a block of the recording is played; 0: it is not. */
static uint64_t played(struct maker *m, const struct vc_event *e)
{
	uint64_t now;

	if (e->id > m->max_id)
		return 0;
	now = *stand_in(m, e->id);
	return now & GONE && e->kind != VC_EV_FREE_DONE ? 0 : now & ~GONE;
}

static int play_event(struct maker *m, const struct vc_event *e, bool last, struct vc_error *err)
{
	struct vc_event now = *e;

	now.time_ns = 0;
	now.site = now.label = 0;
	switch (e->kind) {
	case VC_EV_ALLOC:
		if (e->id > m->max_id || (e->flags & VC_EVF_EXACT))
			return VC_OK;
		now.id = last && m->partner[e->id] ? m->block[m->partner[e->id] - 1].id : m->next++;
		now.addr = 0;
		m->ghost[e->id] = now.id;
		return put(m, now, err);
	case VC_EV_FREE: case VC_EV_FREE_DONE: case VC_EV_USE:
		now.id = played(m, e);
		return now.id ? put(m, now, err) : VC_OK;
	case VC_EV_SYNC:
		return put(m, now, err);
	case VC_EV_TRIM:
		return e->id ? VC_OK : put(m, now, err);
	default:
		return VC_OK;
	}
}

/* At the end of a round the blocks live that lived at its beginning, and no stream is behind. */
static int close_round(struct maker *m, bool last, struct vc_error *err)
{
	for (uint64_t id = 0; id <= m->max_id; id++) {
		uint64_t now = *stand_in(m, id);

		if (now & GONE)
			VC_TRY(put(m, (struct vc_event){ .kind = VC_EV_FREE_DONE,
							 .id = now & ~GONE }, err));
		if (!m->ghost[id] || m->ghost[id] & GONE)
			continue;
		if (m->partner[id])
			m->block[m->partner[id] - 1].now = m->ghost[id];
		else
			VC_TRY(put_free(m, m->ghost[id], err));
	}
	for (size_t i = 0; i < m->blocks; i++) {
		struct block *b = &m->block[i];

		if (b->died == SIZE_MAX)
			continue;
		if (b->now && !(b->now & GONE))
			continue;
		b->now = last ? b->id : m->next++;
		VC_TRY(put_alloc(m, b->now, b->size, b->stream, err));
	}
	return VC_OK;
}

static int play(struct maker *m, size_t from, size_t to, bool last, struct vc_error *err)
{
	for (size_t i = from; i < to; i++) {
		const struct vc_event *e = &m->t->ev[i];
		uint64_t *now;

		if (e->device != m->device)
			continue;
		VC_TRY(play_event(m, e, last, err));
		if (e->id > m->max_id)
			continue;
		now = stand_in(m, e->id);
		if (e->kind == VC_EV_FREE && !(*now & GONE))
			*now = *now && e->flags & VC_EVF_PENDING ? *now | GONE : 0;
		else if (e->kind == VC_EV_FREE_DONE && *now & GONE)
			*now = 0;
	}
	return VC_OK;
}

static void begin_round(struct maker *m)
{
	memset(m->ghost, 0, (m->max_id + 1) * sizeof(*m->ghost));
}

/* ---- the kinds ---- */

static int put_blocks(struct maker *m, bool late, bool rounds, struct vc_error *err)
{
	for (size_t i = 0; i < m->blocks; i++) {
		struct block *b = &m->block[i];
		bool dies = rounds && b->died != SIZE_MAX;

		if ((b->late && !dies) != late)
			continue;
		b->now = dies ? m->next++ : b->id;
		VC_TRY(put_alloc(m, b->now, b->size, b->stream, err));
	}
	return VC_OK;
}

static int make_round(struct maker *m, struct vc_error *err)
{
	VC_TRY(find_round(m, err));
	if (m->end == m->first)
		return VC_OK;
	VC_TRY(pair_up(m, err));
	VC_TRY(put_blocks(m, false, true, err));
	begin_round(m);
	VC_TRY(play(m, m->first, m->end, true, err));
	return close_round(m, true, err);
}

/* How many blocks of a kind live and go again: now (lower half), and one more than ever at once. */
static bool count_passing(struct maker *m, uint64_t key, int by)
{
	uint64_t *v = vc_map_get(&m->count, key), most = v ? *v >> 32 : 1;
	uint64_t now = (v ? (uint32_t)*v : 0) + (uint64_t)(int64_t)by;

	most = now + 1 > most ? now + 1 : most;
	return vc_map_put(&m->count, key, most << 32 | (uint32_t)now);
}

static bool count_round(struct maker *m)
{
	bool ok = true;

	begin_steps(m);
	for (size_t i = 0; ok && i < m->blocks; i++)
		if (m->block[i].died != SIZE_MAX)
			ok = count_passing(m, key_of(m->block[i].stream, m->block[i].size), 1);
	for (size_t i = m->first; ok && i < m->end; i++) {
		const struct vc_event *e = &m->t->ev[i];
		const struct block *b;

		if (e->device != m->device || e->id > m->max_id)
			continue;
		b = m->of_id[e->id] ? &m->block[m->of_id[e->id] - 1] : NULL;
		if (e->kind == VC_EV_ALLOC) {
			m->ghost[e->id] = key_of(e->stream, e->size);
			ok = count_passing(m, m->ghost[e->id], 1);
		} else if (e->kind == VC_EV_FREE && b) {
			ok = count_passing(m, key_of(b->stream, b->size), -1);
		} else if (e->kind == VC_EV_FREE && m->ghost[e->id]) {
			ok = count_passing(m, m->ghost[e->id], -1);
			m->ghost[e->id] = 0;
		}
	}
	return ok;
}

/* Of blocks that live on, as many as there are gradients of their size are parameters. Where there
 * are at least as many others, those are states of the optimizer, which come late. */
static int mark_states(struct maker *m, struct vc_error *err)
{
	struct vc_map late = { 0 };
	bool ok = count_round(m);

	for (size_t i = 0; ok && i < m->blocks; i++) {
		const struct block *b = &m->block[i];
		uint64_t key = key_of(b->stream, b->size), *v = vc_map_get(&late, key);

		ok = b->died != SIZE_MAX || vc_map_put(&late, key, (v ? *v : 0) + 1);
	}
	for (size_t k = 0; ok && late.slot && k <= late.mask; k++) {
		uint64_t *v = vc_map_get(&m->count, late.slot[k].key);
		uint64_t gradients = v ? (*v >> 32) - 1 : 0, all = late.slot[k].value;

		gradients = all >= 2 * gradients ? gradients : 0;
		if (all) /* one more, for values in a map are never 0 */
			late.slot[k].value = gradients ? all - gradients + 1 : 1;
	}
	for (size_t i = m->blocks; ok && i-- > 0;) {
		struct block *b = &m->block[i];
		uint64_t *v = vc_map_get(&late, key_of(b->stream, b->size));

		if (b->died != SIZE_MAX || !v || *v < 2)
			continue;
		b->late = true;
		*v -= 1;
	}
	vc_map_fini(&late);
	return ok ? VC_OK : vc_nomem(err, "the blocks of a round");
}

/* What lives where the first step begins, besides what lives on: it is asked for there. */
static int put_at_rest(struct maker *m, struct vc_error *err)
{
	uint64_t *id = m->ghost;

	begin_round(m);
	for (size_t i = m->first; i < m->rest; i++)
		live_change(m, &m->t->ev[i]);
	for (uint64_t k = 0; k <= m->max_id; k++) {
		const struct vc_event *e = id[k] ? &m->t->ev[id[k] - 1] : NULL;

		if (!e)
			continue;
		VC_TRY(put_alloc(m, m->next, e->size, e->stream, err));
		id[k] = m->next++;
	}
	for (size_t i = 0; i < m->blocks; i++) {
		struct block *b = &m->block[i];

		b->now = 0;
		if (b->died == SIZE_MAX ? b->late : b->died < m->rest)
			continue;
		b->now = b->died == SIZE_MAX ? b->id : m->next++;
		VC_TRY(put_alloc(m, b->now, b->size, b->stream, err));
	}
	return VC_OK;
}

/* From the beginning of a step: its first one makes at its end what lives on in segments that it
 * needed itself before. */
static int make_late(struct maker *m, bool states, struct vc_error *err)
{
	VC_TRY(find_round(m, err));
	if (m->end == m->first)
		return VC_OK;
	VC_TRY(pair_up(m, err));
	if (states)
		VC_TRY(mark_states(m, err));
	find_rest(m);
	VC_TRY(put_at_rest(m, err));
	VC_TRY(play(m, m->rest, m->end, false, err));
	VC_TRY(close_round(m, false, err));
	begin_round(m);
	VC_TRY(play(m, m->first, m->grown, true, err));
	for (size_t i = 0; i < m->blocks; i++) {
		struct block *b = &m->block[i];

		if (!b->late || b->died != SIZE_MAX)
			continue;
		b->now = b->id;
		VC_TRY(put_alloc(m, b->now, b->size, b->stream, err));
	}
	VC_TRY(play(m, m->grown, m->end, true, err));
	return close_round(m, true, err);
}

static int make_filled(struct maker *m, struct vc_error *err)
{
	uint64_t from = m->next;

	for (size_t i = 0; i < m->segments; i++) {
		const struct vc_event *s = m->segment[i];
		bool small = s->flags & VC_EVF_SMALL;
		uint64_t size = small ? SMALL : s->size;

		VC_TRY(put_alloc(m, m->next++, size, s->stream, err));
		if (small)
			VC_TRY(put_alloc(m, m->next++, size, s->stream, err));
	}
	for (uint64_t id = from; id < m->next; id++)
		VC_TRY(put_free(m, id, err));
	return put_blocks(m, false, false, err);
}

VC_COMPARE(by_size, struct block, VC_THEN(VC_ORDER(y->size, x->size), VC_ORDER(x->addr, y->addr)))

/* Ids of other kinds number pools, kernels, ... */
static bool names_block(const struct vc_event *e)
{
	return e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE || e->kind == VC_EV_HEAP_BLOCK;
}

/* Tables by id: false where ids are so far apart that those would be larger than the trace. */
static bool is_dense(struct maker *m)
{
	for (size_t i = 0; i < m->t->n; i++)
		if (names_block(&m->t->ev[i]) && m->t->ev[i].id > m->max_id)
			m->max_id = m->t->ev[i].id;
	return m->max_id / 16 <= m->t->n;
}

static int make_events(struct maker *m, enum vc_past_kind kind, struct vc_error *err)
{
	size_t n = m->max_id + 1;

	m->of_id = calloc(n, sizeof(*m->of_id));
	m->ghost = calloc(n, sizeof(*m->ghost));
	m->partner = calloc(n, sizeof(*m->partner));
	m->next = n;
	VC_HAVE(m->of_id && m->ghost && m->partner, "what came before a recording", err);
	VC_TRY(read_heap(m, err));
	while (m->first < m->t->n && (is_start(m, &m->t->ev[m->first]) ||
				      m->t->ev[m->first].device != m->device))
		m->first++;
	switch (kind) {
	case VC_PAST_SIZES:
		if (m->blocks)
			vc_sort(m->block, m->blocks, sizeof(*m->block), by_size);
		/* fallthrough */
	case VC_PAST_ALONE:
		return put_blocks(m, false, false, err);
	case VC_PAST_ROUND:
		return make_round(m, err);
	case VC_PAST_LATE: case VC_PAST_STATES:
		mark_late(m);
		return make_late(m, kind == VC_PAST_STATES, err);
	case VC_PAST_FILLED:
		return make_filled(m, err);
	case VC_PASTS:
		break;
	}
	return VC_OK;
}

static void drop(struct vc_memo *m)
{
	struct vc_past *h = (struct vc_past *)m;

	VC_FREE(h->ev, h);
}

static int make(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		struct vc_error *err)
{
	struct maker m = { .t = t, .device = (uint16_t)(key >> 8) };
	struct vc_past *h = calloc(1, sizeof(*h));
	int r = !h ? vc_nomem(err, "what came before a recording") : !is_dense(&m) ? VC_OK :
		make_events(&m, (enum vc_past_kind)(key & 0xff), err);

	VC_FREE(m.block, m.of_id, m.ghost, m.partner, m.segment);
	vc_map_fini(&m.count);
	if (r < 0) {
		VC_FREE(m.ev, h);
		return r;
	}
	h->memo.drop = drop;
	h->memo.bytes = m.n * sizeof(*m.ev);
	h->ev = m.ev;
	h->n = m.n;
	*out = &h->memo;
	return VC_OK;
}

int vc_past_of(const struct vc_trace *t, uint16_t device, enum vc_past_kind kind,
		  struct vc_past **out, struct vc_error *err)
{
	struct vc_memo *m;

	VC_TRY(vc_memo_get(t, (uint64_t)device << 8 | kind, make, NULL, &m, err));
	*out = (struct vc_past *)m;
	return VC_OK;
}
