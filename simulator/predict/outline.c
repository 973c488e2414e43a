/* SPDX-License-Identifier: Apache-2.0 */
/* outline.c - see outline.h */
#include "simulator/predict/outline.h"

#include <stdlib.h>
#include <string.h>

#include "common/vec.h"

/* Events of an outline that the family keeps, at most: bounds memory. */
enum { MOST = 1 << 20 };

static void drop(struct vc_outline *o)
{
	vc_looped_fini(&o->looped);
	VC_FREE(o->law[0], o->law[1], o);
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

static struct vc_outline *make(const struct vc_family *f, size_t base,
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
	if (o->law[0] && (o->law[1] || !target->apart) && turn(f, o, err) == VC_OK)
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
