/* SPDX-License-Identifier: Apache-2.0 */
/* outline.c - see outline.h */
#include "simulator/predict/outline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/torch_sizes.h"
#include "common/vec.h"
#include "common/param.h"

/* Events of an outline that the family keeps, at most: bounds memory. */
enum { MOST = 1 << 19 };

static void drop(struct vc_outline *o)
{
	vc_looped_fini(&o->looped);
	vc_borrowed_fini(&o->borrowed);
	VC_FREE(o->law[0], o->law[1], o->sized, o->kernel, o->step, o);
}

/* The caller holds f->lock. */
static void let_go(struct vc_outline *o)
{
	if (o && !--o->users)
		drop(o);
}

static bool is_same(const struct vc_family *f, const struct vc_outline *o, size_t base,
		    const struct vc_target *t, enum vc_bound bound)
{
	const size_t bytes = f->axes * sizeof(*t->train);

	return o->base == base && o->bound == bound && o->target.apart == t->apart &&
	       o->target.elsewhere == t->elsewhere && o->target.there == t->there &&
	       o->target.cublas == t->cublas &&
	       !memcmp(o->target.train, t->train, bytes) &&
	       !memcmp(o->target.eval, t->eval, bytes);
}

/* Do loops turn more or less often there? */
static int turn(const struct vc_family *f, struct vc_outline *o, struct vc_error *err)
{
	const struct vc_loops *l = &f->view[o->base].loops;
	int64_t *more = l->n ? calloc(l->n, sizeof(*more)) : NULL;
	int rc = VC_OK;

	if (!l->n)
		return VC_OK;
	VC_HAVE(more, "the loops of a prediction", err);
	o->partly = vc_loops_more(l, f->x[o->base][0], o->target.train[0], o->bound, more);
	for (size_t j = 0; j < l->n; j++)
		o->turned |= more[j] != 0;
	if (o->turned)
		rc = vc_loops_repeat(l, &f->m[o->base], more, &o->looped, err);
	free(more);
	return rc;
}

static double *laws(const struct vc_family *f, size_t base, const double *at, struct vc_error *err)
{
	const size_t n = f->m[base].n;
	double *law = malloc((n + 1) * sizeof(*law));

	for (size_t i = 0; law && i < n; i++)
		law[i] = vc_scaling_law(f, &f->view[base], base, i, at);
	if (!law)
		vc_nomem(err, "the sizes of a prediction");
	return law;
}

const struct vc_trace *vc_outline_events(const struct vc_family *f, const struct vc_outline *o)
{
	return o->turned ? &o->looped.trace : f->m[o->base].trace;
}

uint32_t vc_outline_alloc(const struct vc_family *f, const struct vc_outline *o, uint64_t id)
{
	const struct vc_allocations *b = &f->m[o->base];

	if (o->turned && id >= o->looped.from && id < o->looped.ids)
		return o->looped.of[id - o->looped.from] + 1;
	return id < b->ids ? b->of_id[id] : 0;
}

bool vc_outline_cublas(const struct vc_allocations *b, size_t i, const struct vc_target *target)
{
	return target->cublas && vc_is_odd_torch_workspace(b->take[i].size);
}

VC_COMPARE(by_event, struct vc_borrowed_new, VC_ORDER(x->event, y->event))

/* Turns that were made say in `id` which event they repeat. */
uint64_t vc_outline_borrows(const struct vc_outline *o, size_t event, const struct vc_event *e)
{
	const struct vc_borrowed_new wanted = { .event = (uint32_t)(o->turned ? e->id : event) };
	const struct vc_borrowed_new *found = o->borrowed.n ?
		bsearch(&wanted, o->borrowed.added, o->borrowed.n, sizeof(wanted), by_event) : NULL;

	return found ? found->bytes : 0;
}

bool vc_outline_drops(const struct vc_allocations *b, const struct vc_event *e, bool bare,
		      bool begun)
{
	if (e->device != b->device ||
	    (e->kind >= VC_EV_SEGMENT_ALLOC && e->kind <= VC_EV_DEVICE_SAMPLE) ||
	    (e->kind >= VC_EV_HEAP_SEGMENT && (e->flags & VC_EVF_FINAL)))
		return true;
	return bare && begun && e->kind != VC_EV_ALLOC &&
	       (e->kind == VC_EV_MARK || vc_event_is_evidence(e));
}

static void find_steps(const struct vc_family *f, struct vc_outline *o)
{
	const struct vc_trace *t = vc_outline_events(f, o);
	bool begun = false;

	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];
		bool block = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ||
			     e->kind == VC_EV_FREE_DONE || e->kind == VC_EV_USE;

		if (vc_outline_drops(&f->m[o->base], e, true, begun) &&
		    !(e->kind == VC_EV_PLAN && vc_outline_borrows(o, i, e)))
			continue;
		begun |= e->kind == VC_EV_ALLOC;
		o->step[o->steps++] = (struct vc_outline_step){
			(uint32_t)i, block ? vc_outline_alloc(f, o, e->id) : 0 };
	}
}

static void find_kernels(const struct vc_scaling *v, const struct vc_borrowed *p, size_t n,
			 bool *kernel)
{
	for (size_t i = 0; i < n; i++)
		kernel[i] = v->origin[i] == VC_BY_ROWS || v->origin[i] == VC_BY_SORT;
	for (size_t i = 0; i < v->workspace.n; i++)
		kernel[v->workspace.at[i].owner] = true;
	for (size_t i = 0; i < v->sorts.n; i++)
		kernel[v->sorts.at[i].owner] = true;
	for (size_t i = 0; p->size && i < n; i++)
		kernel[i] |= p->size[i] == 1;
}

/* As synthesis.c does it for the best guess. */
static void find_sizes(const struct vc_family *f, struct vc_outline *o)
{
	const struct vc_scaling *v = &f->view[o->base];

	for (size_t i = 0; !o->target.apart && i < f->m[o->base].n; i++) {
		bool drawn = vc_spread_has(&f->spread[o->base], i) || f->plan[o->base][i] ||
			     (v->lengths.vary && v->lengths.group[i]);

		if (vc_outline_cublas(&f->m[o->base], i, &o->target))
			o->sized[i] = o->target.cublas + 1;
		else if (o->borrowed.size && o->borrowed.size[i] && f->simulated)
			o->sized[i] = o->borrowed.size[i];
		else if (!drawn && v->origin[i] == VC_BY_LAW)
			o->sized[i] = vc_size_of(fmax(o->law[0][i], 1)) + 1;
		else if (!drawn && v->origin[i] == VC_BY_COUNTERPART)
			o->sized[i] = vc_size_of(o->law[0][v->counterpart[i]]) + 1;
	}
}

static int find_rest(const struct vc_family *f, struct vc_outline *o, struct vc_error *err)
{
	const size_t n = f->m[o->base].n;

	o->sized = calloc(n + 1, sizeof(*o->sized));
	o->kernel = malloc((n + 1) * sizeof(*o->kernel));
	o->step = malloc((vc_outline_events(f, o)->n + 1) * sizeof(*o->step));
	VC_HAVE(o->sized && o->kernel && o->step, "the sizes of a prediction", err);
	find_steps(f, o);
	find_kernels(&f->view[o->base], &o->borrowed, n, o->kernel);
	find_sizes(f, o);
	return VC_OK;
}

static struct vc_outline *make(struct vc_family *f, size_t base,
			       const struct vc_target *target, enum vc_bound bound,
			       struct vc_error *err)
{
	struct vc_outline *o = calloc(1, sizeof(*o));

	if (!o) {
		vc_nomem(err, "the sizes of a prediction");
		return NULL;
	}
	o->base = base;
	o->target = *target;
	o->bound = bound;
	o->law[0] = laws(f, base, target->train, err);
	o->law[1] = o->law[0] && target->apart ? laws(f, base, target->eval, err) : NULL;
	if (o->law[0] && (o->law[1] || !target->apart) && turn(f, o, err) == VC_OK &&
	    vc_borrowed_make(f, base, target, &o->borrowed, err) == VC_OK &&
	    find_rest(f, o, err) == VC_OK)
		return o;
	drop(o);
	return NULL;
}

/* The caller holds f->lock. */
static struct vc_outline *find_or_make(struct vc_family *f, size_t base,
				       const struct vc_target *target, enum vc_bound bound,
				       struct vc_error *err)
{
	struct vc_outline *o;

	for (size_t i = 0; i < VC_OUTLINES; i++)
		if (f->outline[i] && is_same(f, f->outline[i], base, target, bound))
			return f->outline[i];
	o = make(f, base, target, bound, err);
	if (o && o->looped.trace.n <= MOST) {
		let_go(f->outline[f->outlined % VC_OUTLINES]);
		f->outline[f->outlined++ % VC_OUTLINES] = o;
		o->users = 1;
	}
	return o;
}

const struct vc_outline *vc_outline_get(struct vc_family *f, size_t base,
					const struct vc_target *target, enum vc_bound bound,
					struct vc_error *err)
{
	struct vc_outline *o;

	pthread_mutex_lock(&f->lock);
	o = find_or_make(f, base, target, bound, err);
	if (o)
		o->users++;
	pthread_mutex_unlock(&f->lock);
	return o;
}

void vc_outline_put(struct vc_family *f, const struct vc_outline *o)
{
	pthread_mutex_lock(&f->lock);
	let_go((struct vc_outline *)o);
	pthread_mutex_unlock(&f->lock);
}

void vc_outlines_forget(struct vc_family *f)
{
	for (size_t i = 0; i < VC_OUTLINES; i++) {
		let_go(f->outline[i]);
		f->outline[i] = NULL;
	}
}
