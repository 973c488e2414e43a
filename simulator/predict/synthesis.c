/* SPDX-License-Identifier: Apache-2.0 */
/* synthesis.c - the events of a run that nobody made, in the order of one that was recorded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "simulator/predict/pinned.h"
#include "simulator/predict/sizes.h"

enum { BUFFER = 1 << 20, COUNTERS = 16 << 10 }; /* bytes: of small segments, of a thousand blocks */
enum { AT_ONCE = 64 }; /* events that are made of one, at most: an embedding that sorts */

struct make {
	struct vc_sizes s;
	size_t workspace;          /* the last row sum that came */
	size_t near[2];            /* where the last row sum and the last sort were found */
	uint64_t next_id;
	uint64_t skip[2];          /* ids of buffers that the target does not ask for */
	int skipping;              /* how many of them are still to come */
	uint64_t partial, semaphores;
	bool bare;                 /* see struct vc_family_ask */
	bool begun;                /* a request has come */
	const struct vc_trace *from; /* what is made of: */
	size_t next;               /* its next event, or step of the outline */
	uint64_t *pinned;          /* bytes of pinned allocations; NULL: as recorded */
	size_t pins;               /* how many have been made */
	struct vc_reduction_card card;
	struct vc_trace *out;
	struct vc_family_report *rep;
};

static int emit(struct make *k, const struct vc_event *e, uint64_t addr, uint64_t size,
		struct vc_error *err)
{
	struct vc_trace *t = k->out;

	VC_HAVE(vc_vec_room(t->ev, t->cap, t->n + 1), "the events of a prediction", err);
	t->ev[t->n] = *e;
	t->ev[t->n].addr = addr;
	t->ev[t->n++].size = size;
	return VC_OK;
}

/* Buffers that the recording did not need and the target does: asked for and given back at once. */
static int insert_scratch(struct make *k, const struct vc_event *owner, struct vc_error *err)
{
	struct vc_event e[4];

	for (int i = 0; i < 4; i++) {
		e[i] = *owner;
		e[i].addr = 0;
		e[i].kind = i < 2 ? VC_EV_ALLOC : VC_EV_FREE;
		e[i].id = k->next_id + (i == 1 || i == 2);
		e[i].size = i == 1 || i == 2 ? k->semaphores : k->partial;
	}
	k->next_id += 2;
	k->rep->scratch_new++;
	return vc_trace_append(k->out, e, 4, err);
}

static int sort_event(struct make *k, const struct vc_event *like, const uint64_t *size,
		      int block, bool asked, struct vc_error *err)
{
	struct vc_event e = *like;

	e.addr = 0;
	e.kind = asked ? VC_EV_ALLOC : VC_EV_FREE;
	e.id = k->next_id + (uint64_t)block;
	e.size = size[block];
	return vc_trace_append(k->out, &e, 1, err);
}

/* The gradient of an embedding that has too many indices at the target to go without sorting.
 * Blocks 0 to 3 come before it; a negative entry gives the block back (~block). */
static int insert_sort(struct make *k, const struct vc_sort *s, const struct vc_event *owner,
		       struct vc_error *err)
{
	static const signed char before[] = { 0, 1, 2, 3, ~3, ~2 };
	static const signed char after[] = { 4,  5,  6,   7,   ~7,  ~6, 8,  9,  10, ~10, 11,
					    12, 13, ~13, ~12, ~11, ~9, ~8, ~5, ~4, ~1,  ~0 };
	uint64_t size[VC_SORT_BLOCKS];
	int rc = 0;

	vc_sort_sizes(s, vc_sizes_indices(&k->s, s), size);
	for (size_t i = 0; !rc && i < sizeof(before); i++)
		rc = sort_event(k, owner, size, before[i] < 0 ? ~before[i] : before[i],
				before[i] >= 0, err);
	if (!rc)
		rc = emit(k, owner, owner->addr, owner->size, err);
	for (size_t i = 0; !rc && i < sizeof(after); i++)
		rc = sort_event(k, owner, size, after[i] < 0 ? ~after[i] : after[i],
				after[i] >= 0, err);
	k->next_id += VC_SORT_BLOCKS;
	k->rep->scratch_new++;
	return rc;
}

/* The embedding whose gradient allocation i is and that has to be sorted for at the target only;
 * NULL: none. */
static const struct vc_sort *starts_sorting(struct make *k, size_t i)
{
	const struct vc_sorts *l = &k->s.v->sorts; /* in order of their owners */
	size_t from = k->near[1] = vc_first_from_near(l->at, l->n, owner, i, k->near[1]);
	const struct vc_sort *s = from < l->n ? &l->at[from] : NULL;

	bool starts = s && s->owner == i && !s->present;

	return starts && vc_sort_needed(s, vc_sizes_indices(&k->s, s)) ? s : NULL;
}

static int owner(struct make *k, const struct vc_workspace *s, const struct vc_event *e,
		 struct vc_error *err)
{
	bool needed = vc_workspace_at(s, e->size, vc_sizes_of(&k->s, s->source), &k->card,
				      &k->partial, &k->semaphores);

	k->rep->workspace++;
	if (needed && !s->present)
		return insert_scratch(k, e, err);
	k->skip[0] = k->skip[1] = UINT64_MAX;
	k->skipping = 0;
	if (s->present && !needed)
		k->skipping = 2;
	return 0;
}

/* The row sum that allocation i begins, or VC_UNMATCHED. */
static uint32_t scratch_at(struct make *k, size_t i)
{
	const struct vc_workspaces *l = &k->s.v->workspace; /* in order of their owners */
	size_t from = k->near[0] = vc_first_from_near(l->at, l->n, owner, i, k->near[0]);

	return from < l->n && l->at[from].owner == i ? (uint32_t)from : VC_UNMATCHED;
}

/* Is allocation i not made at the target? */
static bool is_none(const struct make *k, size_t i, uint64_t size)
{
	const struct vc_borrowed *p = &k->s.o->borrowed;

	return !size && (k->s.v->origin[i] == VC_BY_SORT || (p->size && p->size[i]));
}

/* What a convolution borrows at the target only: asked for and given back at once. */
static int insert_workspace(struct make *k, const struct vc_event *plan, uint64_t bytes,
			    struct vc_error *err)
{
	struct vc_event e[2] = { *plan, *plan };

	e[0].kind = VC_EV_ALLOC;
	e[1].kind = VC_EV_FREE;
	e[0].addr = e[1].addr = 0;
	e[0].size = e[1].size = bytes;
	e[0].id = e[1].id = k->next_id++;
	e[0].label = e[1].label = 0;
	return vc_trace_append(k->out, e, 2, err);
}

static int one_alloc(struct make *k, const struct vc_event *from, size_t i, struct vc_error *err)
{
	const struct vc_workspaces *l = &k->s.v->workspace;
	const struct vc_sort *sort = starts_sorting(k, i);
	uint32_t at = scratch_at(k, i);
	uint64_t size;

	if (k->skipping && k->s.v->origin[i] == VC_BY_ROWS) {
		k->skip[--k->skipping] = from->id;
		return 0;
	}
	if (k->s.v->origin[i] == VC_BY_ROWS)
		size = l->at[k->workspace].owner + 1 == i ? k->partial : k->semaphores;
	else
		size = vc_sizes_of(&k->s, i);
	if (is_none(k, i, size))
		return 0;
	if (!sort && at == VC_UNMATCHED)
		return emit(k, from, 0, size, err);
	struct vc_event e = *from;

	e.addr = 0;
	e.size = size;
	VC_TRY(sort ? insert_sort(k, sort, &e, err) : emit(k, &e, 0, size, err));
	if (at != VC_UNMATCHED) {
		k->workspace = at;
		VC_TRY(owner(k, &l->at[at], &e, err));
	}
	return VC_OK;
}

/* at: which of the events e is. */
static int one_event(struct make *k, const struct vc_event *e, size_t at, struct vc_error *err)
{
	uint64_t size = e->size;

	if (e->kind == VC_EV_PLAN) { /* what was computed as recorded is not what is predicted */
		uint64_t bytes = e->device == k->s.b->device ?
					 vc_outline_borrows(k->s.o, at, e) : 0;

		return bytes ? insert_workspace(k, e, bytes, err) : VC_OK;
	}
	if (vc_outline_drops(k->s.b, e, k->bare, k->begun))
		return 0;
	if (e->kind == VC_EV_ALLOC) {
		k->begun = true;
		return one_alloc(k, e, vc_outline_alloc(k->s.f, k->s.o, e->id) - 1, err);
	}
	if (e->kind == VC_EV_FREE || e->kind == VC_EV_FREE_DONE || e->kind == VC_EV_USE) {
		if (e->id == k->skip[0] || e->id == k->skip[1])
			return 0;
		uint32_t a = vc_outline_alloc(k->s.f, k->s.o, e->id);
		if (a)
			size = vc_sizes_of(&k->s, a - 1);
		if (a && is_none(k, a - 1, size))
			return 0;
	}
	if (k->pinned && vc_pinned_is(k->s.b->trace->meta, e))
		size = k->pinned[k->pins++];
	return emit(k, e, e->addr, size, err);
}

/* Events that an allocator sees, for as long as `most` more than there are now may be too many. */
static int some_events(struct make *k, size_t most, struct vc_error *err)
{
	int rc = VC_OK;

	for (; !rc && k->next < k->s.o->steps && k->out->n < most; k->next++) {
		const struct vc_outline_step *s = &k->s.o->step[k->next];
		const struct vc_event *e = &k->from->ev[s->event];

		if (!s->of || k->s.o->kernel[s->of - 1])
			rc = one_event(k, e, s->event, err);
		else
			rc = emit(k, e, e->kind == VC_EV_ALLOC ? 0 : e->addr,
				  vc_sizes_of(&k->s, s->of - 1), err);
	}
	return rc;
}

static void report(struct make *k)
{
	struct vc_family_report *r = k->rep;

	r->recordings = k->s.f->n;
	r->base = k->s.base;
	r->single = k->s.f->n == 1;
	r->allocs = k->s.b->n;
	r->bytes = k->s.v->bytes;
	r->matched_bytes = k->s.v->matched;
	r->unsettled_bytes = k->s.v->unsettled;
	r->alone = (uint64_t)((double)k->s.v->alone * fmax(1, k->s.growth[0]));
	r->residual = k->s.v->residual;
	r->lengths = k->s.v->lengths.vary;
	r->noise = r->lengths ? k->s.v->lengths.sigma : 0;
	for (size_t i = 0; i < k->s.f->n; i++)
		r->noise = fmax(r->noise, k->s.f->spread[i].noise);
	r->same = k->s.same;
	r->rounded = !r->same && k->s.v->rounds;
	r->convolutions = k->s.f->conv[k->s.base].n;
	r->named = k->s.o->borrowed.named;
	if (r->named)
		snprintf(r->cudnn, sizeof(r->cudnn), "%s", k->s.f->conv[k->s.base].key->version);
	for (size_t i = 0; !k->bare && i < k->s.b->n; i++) {
		r->plans |= k->s.f->n > 1 && !r->same && k->s.f->plan[k->s.base][i] &&
			    !(k->s.f->simulated && k->s.o->borrowed.size &&
			      k->s.o->borrowed.size[i]);
		enum vc_law_kind kind = k->s.f->axes ? k->s.v->law[i].kind : VC_LAW_CONST;

		r->kind[kind]++;
		r->moving += kind == VC_LAW_CONST ? 0 : k->s.b->take[i].size;
		r->borrowed += k->s.v->origin[i] == VC_BY_COUNTERPART;
	}
}

static int finish(struct make *k, struct vc_error *err)
{
	struct vc_meta *m = k->bare ? NULL : vc_meta_copy(k->s.b->trace->meta, err);

	if (!m)
		return k->bare ? VC_OK : VC_ENOMEM;
	k->out->meta = m;
	m->max_id = k->next_id;
	m->how[VC_CAP_ADDRESSES] = m->how[VC_CAP_FINAL_HEAP] = m->how[VC_CAP_SEGMENTS] =
		VC_HOW_ABSENT;
	for (size_t a = 0; a < k->s.f->axes; a++) {
		const char *name = k->s.f->axis[a].name;
		char eval[VC_PARAM_TEXT];

		vc_meta_param(m, name,
			      k->s.f->axis[a].part == VC_MODE_EVAL ? k->s.target->eval[a] :
								   k->s.target->train[a]);
		snprintf(eval, sizeof(eval), "eval_%s", name);
		if (k->s.f->axis[a].part == VC_MODE_ALL &&
		    k->s.target->train[a] != k->s.target->eval[a])
			vc_meta_param(m, eval, k->s.target->eval[a]);
	}
	return vc_meta_ok(m) ? 0 : vc_nomem(err, "the predicted trace");
}

/* Does its loop make one turn only? Then nothing shows what one that is not full is like. */
static bool one_turn(const struct vc_loops *l, uint32_t i)
{
	for (size_t j = 0; j < l->n; j++)
		if (i >= l->at[j].from && i < l->at[j].to)
			return !l->at[j].count ||
			       l->at[j].to - l->at[j].from < 2 * l->at[j].period;
	return true;
}

/* Twice the largest block of a turn that is not full, which asks for other sizes than all others
 * do, where no replay shows it. */
static void find_varying(struct make *k)
{
	const struct vc_loops *l = &k->s.v->loops;

	for (size_t i = 0; k->rep->partly && i < k->s.b->n; i++) {
		bool rest = l->like[i] != VC_UNMATCHED && one_turn(l, (uint32_t)i);
		uint64_t size = rest ? 2 * vc_sizes_at(&k->s, i) : 0;

		k->rep->one_turn |= rest;
		k->rep->varying = size > k->rep->varying ? size : k->rep->varying;
	}
}

/* The largest buffer of a sum, with its counters behind it, that follows a law because no formula
 * explains it: at other sizes there may be one more. */
static void find_loose(struct make *k)
{
	for (uint32_t i = 0; i + 1 < k->s.b->n; i++) {
		const struct vc_take *t = &k->s.b->take[i];
		uint64_t size;

		if (t->size <= BUFFER || t[1].size > COUNTERS || k->s.f->plan[k->s.base][i] ||
		    k->s.v->origin[i] == VC_BY_ROWS || !vc_workspace_is_buffer(k->s.b, i))
			continue;
		size = vc_sizes_of(&k->s, i);
		if (size != t->size && size > k->rep->loose) /* a handle's stays as it is */
			k->rep->loose = size;
	}
}

static void find_lasting(struct make *k)
{
	bool data = k->s.data || k->rep->lengths || k->rep->noise > 0;

	for (size_t i = 0; data && i < k->s.b->n / 2; i++)
		if (vc_allocations_lasts(k->s.b, i))
			k->rep->lasting += vc_sizes_of(&k->s, i);
}

static int begin(struct make *k, struct vc_error *err)
{
	struct vc_family_report *rep = k->rep;

	k->next_id = k->s.b->ids + 1;
	VC_TRY(vc_sizes_begin(&k->s, err));
	report(k);
	rep->lengths |= k->s.data;
	rep->drawn = k->s.data;
	rep->partly = k->s.o->partly;
	k->pinned = k->bare ? NULL : vc_pinned_sizes(k->s.f, k->s.base, k->s.target->train);
	k->from = vc_outline_events(k->s.f, k->s.o);
	if (k->s.o->turned) {
		k->next_id = k->s.o->looped.ids;
		rep->turns = k->s.o->looped.turns;
	}
	return VC_OK;
}

static void end(struct make *k)
{
	vc_sizes_end(&k->s);
	free(k->pinned);
}

static struct make make_of(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
			   const struct vc_target *target)
{
	return (struct make){ .s = vc_sizes_of_ask(f, base, ask, target),
			      .card = ask->card.sms ? ask->card : f->recorded, .bare = ask->bare,
			      .skip = { UINT64_MAX, UINT64_MAX } };
}

int vc_synthesis(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
		 const struct vc_target *target, struct vc_trace *out, struct vc_family_report *rep,
		 struct vc_error *err)
{
	struct make k = make_of(f, base, ask, target);
	int rc;

	k.out = out;
	k.rep = rep;
	rc = begin(&k, err);
	if (!rc && !k.bare) {
		find_lasting(&k);
		find_varying(&k);
		find_loose(&k);
	}
	if (!rc && !vc_vec_room(out->ev, out->cap, k.from->n))
		rc = vc_nomem(err, "the events of a prediction");
	if (!rc && k.bare)
		rc = some_events(&k, SIZE_MAX, err);
	for (; !rc && !k.bare && k.next < k.from->n; k.next++)
		rc = one_event(&k, &k.from->ev[k.next], k.next, err);
	if (!rc)
		rc = finish(&k, err);
	end(&k);
	if (rc)
		vc_trace_fini(out);
	return rc;
}

/* ---- the same as a source ---- */

struct flow {
	struct make k;
	struct vc_target target;
	struct vc_family_report report;
	struct vc_trace out; /* the room of whoever reads */
};

static long flow_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct flow *l = s->state;

	if (cap <= AT_ONCE)
		return vc_fail(err, VC_EINTERNAL, "a prediction needs room for %d events", AT_ONCE);
	l->out = (struct vc_trace){ .ev = ev, .cap = cap };
	VC_TRY(some_events(&l->k, cap - AT_ONCE, err));
	return (long)l->out.n;
}

static void flow_close(struct vc_source *s)
{
	struct flow *l = s->state;

	if (l->k.s.f)
		end(&l->k);
}

static const struct vc_source_type flow_type = {
	.name = "prediction",
	.summary = "events that nobody recorded, made as they are read",
	.state_size = sizeof(struct flow), .next = flow_next, .close = flow_close,
};

struct vc_source *vc_synthesis_source(struct vc_family *f, size_t base,
				      const struct vc_family_ask *ask,
				      const struct vc_target *target, struct vc_error *err)
{
	struct vc_source *s = vc_source_new(&flow_type, err);
	struct flow *l = s ? s->state : NULL;

	if (!s)
		return NULL;
	l->target = *target;
	l->k = make_of(f, base, ask, &l->target);
	l->k.bare = true;
	l->k.rep = &l->report;
	l->k.out = &l->out;
	s->lent = true;
	if (begin(&l->k, err) == VC_OK)
		return s;
	vc_source_free(s);
	return NULL;
}
