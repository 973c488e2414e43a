/* SPDX-License-Identifier: Apache-2.0 */
/* longer.c - see longer.h
 *
 * Which block an event is of goes by how many were made since: then all micro-batches are alike, a
 * pipeline's too, which frees what an earlier one made. */
#include "simulator/search/longer.h"

#include "common/repeats.h"
#include "common/vec.h"
#include "simulator/session/job.h"

enum { MOST_STEPS = 64 };

/* Blocks made in (from, to] move by `more` for whoever comes behind. */
struct shift { uint64_t from, to, more; };

struct longer {
	const struct vc_trace *in;
	uint16_t device;
	uint64_t *made, *place; size_t ids; /* by id: which it was to be made, there and here */
	struct vc_trace out;
	uint64_t *id; size_t n;             /* those made here, in order */
	uint64_t next;                      /* id of a new block */
	struct shift shift[MOST_STEPS]; size_t shifts;
};

static bool is_ours(const struct longer *l, const struct vc_event *e)
{
	return vc_event_of_block(e) && e->device == l->device;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
	return (h ^ x) * 0x9e3779b97f4a7c15ull;
}

/* Number the blocks; false: some were there before. */
static bool count_blocks(struct longer *l, struct vc_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < l->in->n; i++)
		if (vc_event_of_block(&l->in->ev[i]) && l->in->ev[i].id >= l->ids)
			l->ids = l->in->ev[i].id + 1;
	l->next = l->ids;
	l->made = calloc(l->ids + 1, sizeof(*l->made));
	l->place = calloc(l->ids + 1, sizeof(*l->place));
	if (!l->made || !l->place) {
		vc_nomem(err, "the blocks of a recording");
		return false;
	}
	for (size_t i = 0; i < l->in->n; i++) {
		const struct vc_event *e = &l->in->ev[i];

		if (is_ours(l, e) && e->kind == VC_EV_ALLOC)
			l->made[e->id] = ++n;
		else if (is_ours(l, e) && !l->made[e->id])
			return false;
	}
	return true;
}

/* What a step from `first` to `end` does with blocks: symbols, the same without which block it is,
 * where each stands, how many blocks are held then. */
struct step { uint64_t *x, *kind; size_t *at, n; int64_t *held; };

static int read_step(const struct longer *l, size_t first, size_t end, struct step *s,
		     struct vc_error *err)
{
	uint64_t made = 0;
	int64_t held = 0;

	s->x = malloc((end - first + 1) * sizeof(*s->x));
	s->kind = malloc((end - first + 1) * sizeof(*s->kind));
	s->at = malloc((end - first + 1) * sizeof(*s->at));
	s->held = malloc((end - first + 1) * sizeof(*s->held));
	VC_HAVE(s->x && s->kind && s->at && s->held, "the micro-batches of a step", err);
	for (size_t i = first; i < end; i++) {
		const struct vc_event *e = &l->in->ev[i];
		bool birth = e->kind == VC_EV_ALLOC;

		if (!is_ours(l, e))
			continue;
		made = birth ? l->made[e->id] : made;
		held += birth - (e->kind == VC_EV_FREE);
		s->kind[s->n] = mix(mix(e->kind, e->stream), birth ? e->size : 0);
		s->x[s->n] = mix(s->kind[s->n], birth ? 0 : made - l->made[e->id]);
		s->held[s->n] = held;
		s->at[s->n++] = i;
	}
	return VC_OK;
}

static void drop_step(struct step *s)
{
	VC_FREE(s->x, s->kind, s->at, s->held);
}

/* ---- writing ---- */

static uint64_t place_of(const struct longer *l, uint64_t id)
{
	uint64_t at = l->place[id];

	for (size_t i = 0; i < l->shifts; i++)
		if (at > l->shift[i].from && at <= l->shift[i].to)
			at += l->shift[i].more;
	return at;
}

static int put(struct longer *l, struct vc_event e, struct vc_error *err)
{
	if (e.kind == VC_EV_ALLOC && e.device == l->device) {
		VC_HAVE(vc_vec_one(l->id, l->n), "the blocks of a recording", err);
		l->id[l->n++] = e.id;
	}
	return vc_trace_append(&l->out, &e, 1, err);
}

static int copy(struct longer *l, size_t from, size_t end, struct vc_error *err)
{
	for (size_t i = from; i < end; i++) {
		struct vc_event e = l->in->ev[i];

		if (e.kind == VC_EV_KERNEL || e.kind == VC_EV_COPY)
			continue;
		if (is_ours(l, &e) && e.kind == VC_EV_ALLOC)
			l->place[e.id] = l->n + 1;
		else if (is_ours(l, &e))
			e.id = l->id[place_of(l, e.id) - 1];
		VC_TRY(put(l, e, err));
	}
	return VC_OK;
}

/* The last period of r once more. *whole: false where it reaches for what is not there. */
static int repeat(struct longer *l, const struct step *s, const struct vc_repeats *r, uint64_t by,
		  bool *whole, struct vc_error *err)
{
	for (size_t k = r->end - r->period; k < r->end; k++) {
		struct vc_event e = l->in->ev[s->at[k]];
		uint64_t at;

		e.addr = 0;
		e.time_ns = l->out.n ? l->out.ev[l->out.n - 1].time_ns : 0;
		if (e.kind == VC_EV_ALLOC) {
			e.id = l->next++;
		} else {
			at = place_of(l, e.id) + by;
			*whole = *whole && at <= l->n;
			if (!*whole)
				return VC_OK;
			e.id = l->id[at - 1];
		}
		VC_TRY(put(l, e, err));
	}
	return VC_OK;
}

static uint64_t births(const struct longer *l, const struct step *s, size_t from, size_t end)
{
	uint64_t n = 0;

	for (size_t k = from; k < end; k++)
		n += l->in->ev[s->at[k]].kind == VC_EV_ALLOC;
	return n;
}

/* Where the blocks begin to be made of which r tells: a pipeline frees in its first periods what
 * was made before them. False: it reaches back further. */
static bool reaches(const struct longer *l, const struct step *s, const struct vc_repeats *r,
		    size_t *from)
{
	uint64_t first;
	size_t k;

	for (k = r->from; k && s->kind[k - 1] == s->kind[k - 1 + r->period]; k--)
		;
	*from = k;
	while (k < r->end && l->in->ev[s->at[k]].kind != VC_EV_ALLOC)
		k++;
	first = k < r->end ? l->made[l->in->ev[s->at[k]].id] : UINT64_MAX;
	for (k = r->end - r->period; k < r->end; k++)
		if (l->made[l->in->ev[s->at[k]].id] < first)
			return false;
	return true;
}

/* Copies a step from `first` to `end`, with `times` more of what repeats in it. */
static int lengthen(struct longer *l, size_t first, size_t end, const struct step *s,
		    const struct vc_repeats *r, uint64_t times, bool *whole, struct vc_error *err)
{
	uint64_t each = births(l, s, r->end - r->period, r->end), before;
	size_t middle = s->at[r->end - 1] + 1, from;

	*whole = reaches(l, s, r, &from);
	if (!*whole)
		return VC_OK;
	VC_TRY(copy(l, first, middle, err));
	before = l->n;
	for (uint64_t k = 1; k <= times && *whole; k++)
		VC_TRY(repeat(l, s, r, k * each, whole, err));
	if (l->shifts == MOST_STEPS || !*whole) {
		*whole = false;
		return VC_OK;
	}
	l->shift[l->shifts++] = (struct shift){ before - births(l, s, from, r->end), before,
						times * each };
	return copy(l, middle, end, err);
}

/* ---- steps ---- */

struct ask { uint64_t have, want, stages; };

static int step(struct longer *l, const struct ask *q, size_t first, size_t end, bool *whole,
		struct vc_error *err)
{
	struct step s = { .n = 0 };
	struct vc_repeats r;
	int rc = read_step(l, first, end, &s, err);
	uint64_t each = 0;

	if (rc == VC_OK && vc_repeats_find(s.x, s.n, &r) &&
	    s.held[r.end - 1] == s.held[r.end - 1 - r.period])
		each = vc_repeats_hold(&r, s.n, q->have, q->stages);
	*whole = each && (q->want - q->have) % each == 0;
	if (rc == VC_OK && *whole)
		rc = lengthen(l, first, end, &s, &r, (q->want - q->have) / each, whole, err);
	drop_step(&s);
	return rc;
}

/* The next step mark from i on, or the end. */
static size_t mark(const struct longer *l, size_t i)
{
	while (i < l->in->n && (l->in->ev[i].kind != VC_EV_MARK ||
				l->in->ev[i].flags != VC_MARK_STEP))
		i++;
	return i;
}

static size_t blocks(const struct longer *l, size_t i, size_t end)
{
	size_t n = 0;

	for (; i < end; i++)
		n += is_ours(l, &l->in->ev[i]);
	return n;
}

/* Between the marks lie the steps, and with less than half of the work what is before and behind
 * them. */
static int all_steps(struct longer *l, const struct ask *q, bool *whole, struct vc_error *err)
{
	size_t most = 0, steps = 0, end;

	for (size_t i = 0; i < l->in->n; i = end + 1) {
		size_t n;

		end = mark(l, i);
		n = blocks(l, i, end);
		most = n > most ? n : most;
	}
	for (size_t i = 0; i < l->in->n && *whole; i = end) {
		size_t from = i;

		end = mark(l, i + (i > 0));
		if (2 * blocks(l, i, end) < most) {
			VC_TRY(copy(l, from, end, err));
			continue;
		}
		VC_TRY(step(l, q, from, end, whole, err));
		steps++;
	}
	*whole = *whole && steps;
	return VC_OK;
}

static int peak(const struct vc_session *s, const struct vc_trace *events, uint64_t *out,
		struct vc_error *err)
{
	struct vc_job job = { .rec = s->rec, .events = events };
	struct vc_plan *planned, plan;
	struct vc_result r;
	size_t n;
	int rc;

	VC_TRY(vc_session_plans(s, &planned, &n, err));
	plan = vc_plan_unlimited(planned);
	plan.start = VC_START_COLD;
	free(planned);
	rc = vc_job_run(&job, &plan, NULL, &r, err);
	if (rc < 0)
		return rc;
	*out = r.stats.peak_reserved;
	vc_result_fini(&r);
	return VC_OK;
}

int vc_longer_find(const struct vc_session *s, uint64_t have, uint64_t want, uint64_t stages,
		   struct vc_longer *out, struct vc_error *err)
{
	struct longer l = { .in = &s->rec->trace, .device = s->rec->device->device,
			    .out = { .meta = s->rec->trace.meta } };
	struct vc_error why = { 0 };
	uint64_t before = 0, after = 0;
	bool whole = !s->rec->streamed && count_blocks(&l, &why);
	int rc = why.status == VC_ENOMEM ? VC_ENOMEM : VC_OK;

	*out = (struct vc_longer){ 0 };
	if (whole)
		rc = all_steps(&l, &(struct ask){ have, want, stages }, &whole, &why);
	if (rc == VC_OK && whole)
		rc = peak(s, NULL, &before, &why);
	if (rc == VC_OK && whole)
		rc = peak(s, &l.out, &after, &why);
	out->known = rc == VC_OK && whole;
	out->more = after > before ? after - before : 0;
	VC_FREE(l.made, l.place, l.id, l.out.ev);
	return rc == VC_ENOMEM ? vc_nomem(err, "the micro-batches of a step") : VC_OK;
}
