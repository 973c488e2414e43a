/* SPDX-License-Identifier: Apache-2.0 */
/* synthesis.c - the events of a run that nobody made, in the order of one that was recorded. */

#include "common/param.h"
#include "common/torch_sizes.h"
#include "common/vec.h"
#include "simulator/predict/scaling.h"

#define PLANS_MORE 2
enum { AT_ONCE = 8 }; /* events that are made of one, at most */

struct make {
	struct vc_family *f;
	const struct vc_scaling *v;
	const struct vc_allocations *b;
	size_t base;
	enum vc_bound bound;
	unsigned sample;           /* see struct vc_family_ask */
	const struct vc_target *target;
	double growth;             /* product of the axes' ratios */
	bool same;                 /* the target was recorded */
	uint32_t *from;            /* which step each step gets its data from; NULL: they do not
				    * vary */
	uint64_t *sized;           /* bytes + 1 by allocation, once asked for; before: 0 */
	struct vc_borrowed borrowed; /* workspace that cuDNN names */
	const struct vc_workspace *sum; /* the last row sum that came */
	size_t near;               /* where the last row sum was found */
	uint64_t next_id;
	uint64_t skip[2];          /* ids of buffers that the target does not ask for */
	int skipping;              /* how many of them are still to come */
	uint64_t partial, semaphores;
	bool bare;                 /* see struct vc_family_ask */
	bool begun;                /* a request has come */
	size_t next;               /* event */
	uint64_t *pinned;          /* bytes of pinned allocations; NULL: as recorded */
	size_t pins;               /* how many have been made */
	struct vc_reduction_card card;
	struct vc_trace *out;
	struct vc_family_report *rep;
};

/* ---- sizes ---- */

/* A size without a law: as it is, or where it may be large as much larger as the parameter is. */
static uint64_t kept_size(const struct make *k, size_t i)
{
	double size = (double)k->b->take[i].size, up = 1;

	for (size_t a = 0; a < k->f->axes; a++)
		up *= k->target->at[a] / k->f->x[k->base][a];
	return vc_size_of(size * (k->bound == VC_BOUND_HIGH ? fmax(1, up) : 1) + 0.5);
}

/* One recording: what it leaves open, along each axis. */
static uint64_t open_size(const struct make *k, size_t i)
{
	double size = (double)k->b->take[i].size;

	for (size_t a = 0; a < k->f->axes; a++)
		size *= vc_single_factor(k->v->single[a * k->b->n + i], k->f->axis[a].name,
					 k->f->x[k->base][a], k->target->at[a], k->bound);
	return vc_size_of(fmax(1, size + 0.5));
}

static double law_size(const struct make *k, size_t i)
{
	return vc_scaling_law(k->f, k->v, k->base, i, k->target->at, k->bound);
}

static uint64_t matched_size(const struct make *k, size_t i)
{
	uint32_t other = k->v->other[i];
	double size = law_size(k, k->v->matched[i]), second = size;

	if (k->bound && other != VC_UNMATCHED)
		second = law_size(k, other);
	return vc_size_of(k->bound == VC_BOUND_LOW ? fmin(size, second) : fmax(size, second));
}

/* Workspace of a plan that nobody names, or only for a card that is not there: cuDNN may take
 * another one, which needs none, or twice as much (docs/measurements/gpu.md). */
static uint64_t plan_end(const struct make *k, double size, bool named)
{
	if (named || !k->bound)
		return vc_size_of(size);
	return k->bound == VC_BOUND_LOW ? 1 : vc_size_of(PLANS_MORE * size);
}

static uint64_t plan_size(const struct make *k, size_t i)
{
	double size = law_size(k, i), up = k->growth * (double)k->b->take[i].size;

	return plan_end(k, k->bound == VC_BOUND_HIGH ? fmax(size, up) : size, false);
}

static uint64_t find_size(const struct make *k, size_t i)
{
	/* cuBLAS's workspace, and another at the target? Only of the size that no tensor has. */
	if (k->target->cublas && vc_is_odd_torch_workspace(k->b->take[i].size))
		return k->target->cublas;
	if (k->borrowed.size && k->borrowed.size[i])
		return plan_end(k, (double)(k->borrowed.size[i] - 1), k->f->simulated);
	if (k->v->origin[i] == VC_OPEN)
		return open_size(k, i);
	if (k->same)
		return k->b->take[i].size;
	if (k->v->origin[i] == VC_ALONE)
		return kept_size(k, i);
	if (k->v->origin[i] == VC_BY_MATCHED)
		return matched_size(k, i);
	if (k->f->n > 1 && k->f->plan[k->base][i])
		return plan_size(k, i);
	if (!k->from || !vc_step_sizes_has(&k->f->steps[k->base], i))
		return vc_size_of(fmax(1, law_size(k, i)));
	return vc_size_of(fmax(1, law_size(k, i) * vc_step_sizes_factor(&k->f->steps[k->base], i,
									k->from, k->growth)));
}

/* For the events, of which a block has two and more. */
static uint64_t size_of(struct make *k, size_t i)
{
	if (!k->sized[i])
		k->sized[i] = find_size(k, i) + 1;
	return k->sized[i] - 1;
}

/* ---- events ---- */

/* The allocation that made block `id`, + 1; 0: none. */
static uint32_t alloc_of(const struct make *k, uint64_t id)
{
	return id < k->b->ids ? k->b->of_id[id] : 0;
}

/* Is it for people, or what the recorded allocator did? */
static bool is_dropped(const struct make *k, const struct vc_event *e)
{
	if (e->device != k->b->device ||
	    (e->kind >= VC_EV_SEGMENT_ALLOC && e->kind <= VC_EV_DEVICE_SAMPLE) ||
	    (e->kind >= VC_EV_HEAP_SEGMENT && (e->flags & VC_EVF_FINAL)))
		return true;
	return k->bare && k->begun && e->kind != VC_EV_ALLOC &&
	       (e->kind == VC_EV_MARK || vc_event_is_evidence(e));
}

/* What the recording did not need and the target does: asked for and given back at once, the last
 * one first. */
static int borrow(struct make *k, const struct vc_event *like, const uint64_t *size, int n,
		  struct vc_error *err)
{
	struct vc_event e[4];

	for (int i = 0; i < 2 * n; i++) {
		int at = i < n ? i : 2 * n - 1 - i;

		e[i] = *like;
		e[i].kind = i < n ? VC_EV_ALLOC : VC_EV_FREE;
		e[i].addr = 0;
		e[i].label = like->kind == VC_EV_PLAN ? 0 : like->label;
		e[i].id = k->next_id + (uint64_t)at;
		e[i].size = size[at];
	}
	k->next_id += (uint64_t)n;
	return vc_trace_append(k->out, e, 2 * (size_t)n, err);
}

static int owner(struct make *k, const struct vc_workspace *s, const struct vc_event *e,
		 struct vc_error *err)
{
	bool needed = vc_workspace_at(s, e->size, size_of(k, s->source), &k->card,
				      &k->partial, &k->semaphores);

	k->rep->workspace++;
	if (needed && !s->present) {
		k->rep->workspace_new++;
		return borrow(k, e, (uint64_t[]){ k->partial, k->semaphores }, 2, err);
	}
	k->skip[0] = k->skip[1] = UINT64_MAX;
	k->skipping = 0;
	if (s->present && !needed)
		k->skipping = 2;
	return 0;
}

/* The row sum that allocation i begins, or NULL. */
static const struct vc_workspace *sum_at(struct make *k, size_t i)
{
	const struct vc_workspaces *l = &k->v->workspace; /* in order of their owners */

	k->near = vc_first_from_near(l->at, l->n, owner, i, k->near);
	return k->near < l->n && l->at[k->near].owner == i ? &l->at[k->near] : NULL;
}

/* Is allocation i not made at the target? */
static bool is_none(const struct make *k, size_t i, uint64_t size)
{
	return !size && k->borrowed.size && k->borrowed.size[i];
}

static int one_alloc(struct make *k, const struct vc_event *from, size_t i, struct vc_error *err)
{
	const struct vc_workspace *sum = sum_at(k, i);
	bool buffer = k->v->origin[i] == VC_BY_ROWS;
	struct vc_event e = *from;

	if (k->skipping && buffer) {
		k->skip[--k->skipping] = e.id;
		return 0;
	}
	e.addr = 0;
	e.size = !buffer ? size_of(k, i) : k->sum->owner + 1 == i ? k->partial : k->semaphores;
	if (is_none(k, i, e.size))
		return 0;
	VC_TRY(vc_trace_append(k->out, &e, 1, err));
	if (!sum)
		return VC_OK;
	k->sum = sum;
	return owner(k, sum, &e, err);
}

VC_COMPARE(by_event, struct vc_borrowed_new, VC_ORDER(x->event, y->event))

/* What the convolution of that event borrows at the target only; 0: none. */
static uint64_t borrows(const struct make *k, size_t event)
{
	const struct vc_borrowed_new wanted = { .event = (uint32_t)event };
	const struct vc_borrowed_new *found = k->borrowed.n ?
		bsearch(&wanted, k->borrowed.added, k->borrowed.n, sizeof(wanted), by_event) : NULL;

	return found ? found->bytes : 0;
}

/* at: which of the events e is. */
static int one_event(struct make *k, const struct vc_event *e, size_t at, struct vc_error *err)
{
	struct vc_event to = *e;

	if (e->kind == VC_EV_PLAN) { /* what was computed as recorded is not what is predicted */
		uint64_t bytes = e->device == k->b->device ? borrows(k, at) : 0;

		return bytes ? borrow(k, e, &bytes, 1, err) : VC_OK;
	}
	if (is_dropped(k, e))
		return 0;
	if (e->kind == VC_EV_ALLOC) {
		k->begun = true;
		return one_alloc(k, e, alloc_of(k, e->id) - 1, err);
	}
	if (e->kind == VC_EV_FREE || e->kind == VC_EV_FREE_DONE || e->kind == VC_EV_USE) {
		if (e->id == k->skip[0] || e->id == k->skip[1])
			return 0;
		uint32_t a = alloc_of(k, e->id);
		if (a)
			to.size = size_of(k, a - 1);
		if (a && is_none(k, a - 1, to.size))
			return 0;
	}
	if (k->pinned && vc_pinned_is(k->b->trace->meta, e))
		to.size = k->pinned[k->pins++];
	return vc_trace_append(k->out, &to, 1, err);
}

/* Events for as long as `most` more than there are now may be too many. */
static int some_events(struct make *k, size_t most, struct vc_error *err)
{
	const struct vc_trace *t = k->b->trace;
	int rc = VC_OK;

	for (; !rc && k->next < t->n && k->out->n < most; k->next++)
		rc = one_event(k, &t->ev[k->next], k->next, err);
	return rc;
}

static void report(struct make *k)
{
	const struct vc_family *f = k->f;
	struct vc_family_report *r = k->rep;

	r->recordings = f->n;
	r->base = k->base;
	r->single = f->n == 1;
	r->allocs = k->b->n;
	r->bytes = k->v->bytes;
	r->explained = k->v->explained;
	r->unsure = k->v->unsure;
	r->lines = k->v->lines;
	r->same = k->same;
	r->steps_known = true;
	for (size_t i = 0; i < f->n; i++) {
		r->noise = fmax(r->noise, f->steps[i].noise);
		r->data |= f->steps[i].vary;
		r->steps_known &= f->steps[i].steps > 0;
		r->unmatched = fmax(r->unmatched, f->view[i].unmatched);
		r->repeated = fmax(r->repeated, f->view[i].repeated);
	}
	r->convolutions = f->conv[k->base].n + f->conv[k->base].others;
	for (size_t i = 0; i < f->conv[k->base].n && !r->same; i++)
		r->measured |= f->conv[k->base].call[i].tried;
	r->named = k->borrowed.named;
	if (r->named)
		snprintf(r->cudnn, sizeof(r->cudnn), "%s", f->conv[k->base].key->version);
	for (size_t i = 0; !k->bare && i < k->b->n; i++)
		r->plans |= f->n > 1 && !r->same && f->plan[k->base][i] &&
			    !(f->simulated && k->borrowed.size && k->borrowed.size[i]);
}

static int finish(struct make *k, struct vc_error *err)
{
	struct vc_meta *m = k->bare ? NULL : vc_meta_copy(k->b->trace->meta, err);

	if (!m)
		return k->bare ? VC_OK : VC_ENOMEM;
	k->out->meta = m;
	m->max_id = k->next_id;
	m->how[VC_CAP_ADDRESSES] = m->how[VC_CAP_FINAL_HEAP] = m->how[VC_CAP_SEGMENTS] =
		VC_HOW_ABSENT;
	for (size_t a = 0; a < k->f->axes; a++)
		vc_meta_param(m, k->f->axis[a].name, k->target->at[a]);
	return vc_meta_ok(m) ? 0 : vc_nomem(err, "the predicted trace");
}

static int begin(struct make *k, struct vc_error *err)
{
	const struct vc_step_sizes *s = &k->f->steps[k->base];

	k->next_id = k->b->ids + 1;
	k->sized = calloc(k->b->n + 1, sizeof(*k->sized));
	VC_HAVE(k->sized, "the sizes of a prediction", err);
	if (s->vary && !k->same) {
		k->from = calloc(s->steps + 1, sizeof(*k->from));
		VC_HAVE(k->from, "the sizes of a prediction", err);
		vc_step_sizes_sample(s, k->sample, k->from);
	}
	pthread_mutex_lock(&k->f->lock);
	int rc = k->same ? VC_OK :
			   vc_borrowed_make(k->f, k->base, k->target, &k->borrowed, err);
	pthread_mutex_unlock(&k->f->lock);
	report(k);
	k->pinned = k->bare ? NULL : vc_pinned_sizes(k->f, k->base, k->target->at);
	return rc;
}

static void end(struct make *k)
{
	vc_borrowed_fini(&k->borrowed);
	VC_FREE(k->from, k->sized, k->pinned);
}

static struct make make_of(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
			   const struct vc_target *target)
{
	struct make k = { .f = f, .v = &f->view[base], .b = &f->m[base], .base = base,
			  .bound = ask->bound, .target = target, .growth = 1, .same = true,
			  .sample = ask->sample, .card = ask->card.sms ? ask->card : f->recorded,
			  .bare = ask->bare, .skip = { UINT64_MAX, UINT64_MAX } };

	for (size_t a = 0; a < f->axes; a++) {
		k.growth *= target->at[a] / f->x[base][a];
		k.same &= target->at[a] == f->x[base][a];
	}
	return k;
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
	if (!rc && !vc_vec_room(out->ev, out->cap, k.b->trace->n))
		rc = vc_nomem(err, "the events of a prediction");
	if (!rc)
		rc = some_events(&k, SIZE_MAX, err);
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

	if (l->k.f)
		end(&l->k);
}

static const struct vc_source_type flow_type = {
	.name = "prediction", .summary = "events that nobody recorded, made as they are read",
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
