/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - what several recordings say about a value nobody recorded (docs/rooms/predict.md).
 *
 * The order of events is that of the nearest recording. Each of its allocations is looked up in
 * the others (align.c), its size becomes a law of the parameter (laws.c), buffers whose size
 * follows from a kernel's launch arithmetic are computed (workspaces.c), and what no other
 * recording has takes the law of a block of its size. The peak is never extrapolated: it is
 * replayed. */
#include "simulator/predict/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "common/param.h"
#include "simulator/predict/call_sites.h"
#include "simulator/predict/outline.h"
#include "simulator/predict/pinned.h"
#include "simulator/predict/rounding.h"
#include "simulator/predict/scaling.h"
#include "simulator/predict/skipped.h"

#define CAST_MAX 0.25 /* of the bytes of parameters; tables of words and states are not copied */
enum { RECORDINGS = 64 };  /* that a law is made of, at most */
enum { FEW_STEPS = 4 };  /* of fewer nobody can say what is made in each */
enum { TELLING = 4096 }; /* bytes: smaller parameters have equals of their size by chance */

static double value_of(const struct vc_meta *m, const char *name)
{
	for (size_t i = 0; i < m->params; i++)
		if (!strcmp(m->param[i].name, name))
			return m->param[i].value;
	return NAN;
}

/* The axis with another name, but for the words that say training or evaluation; axes: none. */
static size_t counterpart(const struct vc_family *f, size_t axis)
{
	const char *rest, *other;
	enum vc_mode part = vc_mode_of_name(f->axis[axis].name, &rest);

	for (size_t a = 0; a < f->axes; a++) {
		enum vc_mode p = vc_mode_of_name(f->axis[a].name, &other);

		if (a != axis && !strcmp(rest, other) &&
		    (p == VC_MODE_EVAL) != (part == VC_MODE_EVAL))
			return a;
	}
	return f->axes;
}

/* A training and an evaluation parameter that never differ alone (the script sets one from the
 * other): each acts in its own phases. */
static void find_ties(struct vc_family *f)
{
	bool alone[VC_AXES] = { false };

	for (size_t a = 0; a < f->axes; a++)
		for (size_t i = 0; i < f->n; i++)
			alone[a] |= vc_family_has_partner(f, i, a);
	for (size_t a = 0; f->n > 1 && a < f->axes; a++)
		f->tied |= !alone[a] && counterpart(f, a) < f->axes;
	for (size_t a = 0; f->tied && a < f->axes; a++) {
		enum vc_mode part = vc_mode_of_name(f->axis[a].name, NULL);

		if (counterpart(f, a) < f->axes)
			f->axis[a].part = part == VC_MODE_EVAL ? VC_MODE_EVAL : VC_MODE_TRAIN;
	}
}

static int add_axis(struct vc_family *f, const char *name, struct vc_error *err)
{
	bool differs = false;

	for (size_t a = 0; a < f->axes; a++)
		if (!strcmp(f->axis[a].name, name))
			return 0;
	for (size_t i = 0; i < f->n; i++) {
		double v = value_of(f->m[i].trace->meta, name);
		const char *path = f->m[i].trace->meta->path;

		if (isnan(v))
			return vc_fail(err, VC_EUSAGE,
				       "%s does not say its %s; add @%s=VALUE to its name",
				       path ? path : "a recording", name, name);
		if (!(v > 0 && v <= (double)VC_AMOUNT_MOST))
			return vc_fail(err, VC_EUSAGE, "%s was recorded with %s=%g: predictions "
				       "start from values above zero, at most %.0e",
				       path ? path : "a recording", name, v,
				       (double)VC_AMOUNT_MOST);
		differs |= v != value_of(f->m[0].trace->meta, name);
	}
	if (!differs && f->n > 1)
		return 0;
	if (f->axes == VC_AXES)
		return vc_fail(err, VC_EUSAGE, "the recordings differ in more than %d parameters",
			       VC_AXES);
	f->axis[f->axes].counts = vc_single_counts(name);
	f->axis[f->axes++].name = name;
	return 0;
}

static int find_axes(struct vc_family *f, struct vc_error *err)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->m[i].trace->meta->params; k++)
			VC_TRY(add_axis(f, f->m[i].trace->meta->param[k].name, err));
	for (size_t i = 0; i < f->n; i++)
		for (size_t a = 0; a < f->axes; a++)
			f->x[i][a] = value_of(f->m[i].trace->meta, f->axis[a].name);
	for (size_t i = 0; i < f->n; i++)
		for (size_t j = 0; j < i; j++)
			if (f->n > 1 && !memcmp(f->x[i], f->x[j], sizeof(double) * VC_AXES))
				return vc_fail(err, VC_EUSAGE, "two recordings have the same "
					       "parameters: leave one out, or say what differs "
					       "with FILE@batch=8");
	find_ties(f);
	return 0;
}

/* What a recording says of a convolution is more than what a block looks like. */
static int find_convolutions(struct vc_family *f, struct vc_error *err)
{
	for (size_t k = 0; k < f->n; k++) {
		VC_TRY(vc_convolutions_read(&f->conv[k], &f->m[k], err));
		for (size_t i = 0; i < f->conv[k].n; i++)
			if (f->conv[k].call[i].block != VC_UNMATCHED)
				f->plan[k][f->conv[k].call[i].block] = true;
	}
	return VC_OK;
}

static int find_plans(struct vc_family *f, struct vc_error *err)
{
	bool layers = false;

	for (size_t k = 0; k < f->n; k++) {
		f->plan[k] = calloc(f->m[k].n + 1, sizeof(**f->plan));
		VC_HAVE(f->plan[k], "the workspace of a recording", err);
		VC_TRY(vc_plans_mark(&f->m[k], f->plan[k], &layers, err));
	}
	for (size_t k = 0; !layers && k < f->n; k++)
		memset(f->plan[k], 0, f->m[k].n * sizeof(**f->plan));
	return find_convolutions(f, err);
}

struct vc_family *vc_family_new(const struct vc_trace *const *t, size_t n, uint16_t device,
				bool force, struct vc_error *err)
{
	struct vc_family *f = calloc(1, sizeof(*f));

	if (f) {
		f->m = calloc(n, sizeof(*f->m));
		f->x = calloc(n, sizeof(*f->x));
		f->view = calloc(n, sizeof(*f->view));
		f->spread = calloc(n, sizeof(*f->spread));
		f->plan = calloc(n, sizeof(*f->plan));
		f->skipped = calloc(n, sizeof(*f->skipped));
		f->conv = calloc(n, sizeof(*f->conv));
		pthread_mutex_init(&f->lock, NULL);
		f->force = force;
	}
	if (!f || !f->m || !f->x || !f->view || !f->spread || !f->plan ||
	    !f->skipped || !f->conv) {
		vc_nomem(err, "the family of recordings");
		vc_family_free(f);
		return NULL;
	}
	for (; f->n < n; f->n++)
		if (vc_allocations_init(&f->m[f->n], t[f->n], device, err)) {
			vc_family_free(f);
			return NULL;
		}
	if (vc_call_sites_settle(f->m, f->n, &f->edited, err) || find_plans(f, err) ||
	    find_axes(f, err) || vc_pinned_read(f, err)) {
		vc_family_free(f);
		return NULL;
	}
	f->simulated = true;
	for (size_t k = 0; k < n; k++) {
		f->skipped[k] = vc_skipped_all(&f->m[k]);
		f->simulated &= t[k]->meta->how[VC_CAP_NULL_GPU] != VC_HOW_ABSENT;
	}
	f->recorded = vc_workspace_card(f->m, f->n, &f->card_known);
	return f;
}

void vc_family_free(struct vc_family *f)
{
	if (!f)
		return;
	vc_outlines_forget(f);
	for (size_t i = 0; i < f->n; i++) {
		vc_allocations_fini(&f->m[i]);
		vc_scaling_fini(&f->view[i], f->n);
		vc_spread_fini(&f->spread[i]);
		free(f->plan[i]);
		vc_convolutions_fini(&f->conv[i]);
	}
	for (size_t i = 0; f->loops && i < f->n; i++)
		vc_loops_fini(&f->loops[i]);
	vc_full_turns_free(f->full);
	vc_pinned_fini(f);
	VC_FREE(f->m, f->x, f->view, f->spread, f->plan, f->skipped, f->loops, f->conv);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void vc_family_recorded(struct vc_family *f, const struct vc_reduction_card *card)
{
	f->recorded = *card;
	f->card_known = true;
	f->precise = f->aligned = false;
	vc_outlines_forget(f);
	for (size_t i = 0; i < f->n; i++) { /* recognised workspace depends on it: look again */
		vc_scaling_fini(&f->view[i], f->n);
		f->view[i] = (struct vc_scaling){ 0 };
	}
}

void vc_family_ask_cudnn(struct vc_family *f, const struct vc_answers *answers)
{
	f->answers = answers;
	f->held.from = NULL;
	vc_outlines_forget(f);
}

struct vc_reduction_card vc_family_card(const struct vc_family *f)
{
	return f->recorded;
}

bool vc_family_card_known(const struct vc_family *f)
{
	return f->card_known;
}

double vc_family_value(const struct vc_family *f, size_t recording, const char *name)
{
	double value = recording < f->n ? value_of(f->m[recording].trace->meta, name) : NAN;
	const char *rest;

	if (recording < f->n && isnan(value) && vc_mode_of_name(name, &rest) != VC_MODE_ALL)
		value = value_of(f->m[recording].trace->meta, rest);
	return value;
}

/* Can every parameter that moves be told from a recording that differs in it alone? */
static bool is_corner(const struct vc_family *f, size_t i, const double *at)
{
	for (size_t a = 0; a < f->axes; a++)
		if (at[a] != f->x[i][a] && !vc_family_has_partner(f, i, a))
			return false;
	return true;
}

/* Does some recording show what a step of the optimizer asks for? */
static bool any_steps(const struct vc_family *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->skipped[i])
			return true;
	return false;
}

/* One that shows no step of the optimizer only where none does. */
static size_t nearest(const struct vc_family *f, const double *at)
{
	size_t best = 0;
	double least = INFINITY;
	bool steps = any_steps(f);

	for (size_t i = 0; i < f->n; i++) {
		double d = is_corner(f, i, at) ? 0 : 1e6;

		d += steps && f->skipped[i] ? 1e3 : 0;
		for (size_t a = 0; a < f->axes; a++)
			d += fabs(log(at[a] / f->x[i][a]));
		if (d < least || (d == least && f->x[i][0] > f->x[best][0])) {
			least = d;
			best = i;
		}
	}
	return best;
}

/* Which axis does the name mean, and does it mean a part of it only? axes: none. */
static size_t axis_of(const struct vc_family *f, const char *name, enum vc_mode *part)
{
	const char *rest;
	size_t a = 0;

	*part = VC_MODE_ALL;
	while (a < f->axes && strcmp(f->axis[a].name, name))
		a++;
	if (a < f->axes || (*part = vc_mode_of_name(name, &rest)) == VC_MODE_ALL)
		return a;
	for (a = 0; a < f->axes; a++) /* "train_batch" of "batch" */
		if (!strcmp(f->axis[a].name, rest))
			return a;
	return a;
}

/* A parameter that is the same in all recordings may be repeated. */
static bool is_recorded(const struct vc_family *f, const struct vc_param_value *p)
{
	for (size_t i = 0; i < f->n; i++)
		if (value_of(f->m[i].trace->meta, p->name) != p->value)
			return false;
	return true;
}

static int ask_one(const struct vc_family *f, const struct vc_param_value *p, struct vc_target *g,
		   struct vc_error *err)
{
	enum vc_mode part;
	size_t a = axis_of(f, p->name, &part);

	if (!(p->value > 0))
		return vc_fail(err, VC_EUSAGE, "%s must be above zero", p->name);
	if (a == f->axes && is_recorded(f, p))
		return 0;
	if (a == f->axes && isnan(value_of(f->m[0].trace->meta, p->name)))
		return vc_fail(err, VC_EUSAGE, "%s not say %s %s; name it, as FILE@%s=VALUE",
			       f->n > 1 ? "the recordings do" : "the recording does",
			       f->n > 1 ? "their" : "its", p->name, p->name);
	if (a == f->axes)
		return vc_fail(err, VC_EUSAGE, "the recordings do not differ in %s: add one that "
			       "does, or give one of them alone", p->name);
	if (part != VC_MODE_EVAL)
		g->train[a] = p->value;
	if (part != VC_MODE_TRAIN)
		g->eval[a] = p->value;
	g->named[a] |= part == VC_MODE_EVAL;
	return 0;
}

/* The target on each axis; names the family does not know are refused. */
static int set_target(const struct vc_family *f, const struct vc_family_ask *ask,
		      struct vc_target *g, struct vc_error *err)
{
	for (size_t a = 0; a < f->axes; a++)
		g->train[a] = g->eval[a] = NAN;
	for (int parts = 0; parts < 2; parts++) /* those of a part say more than those of all */
		for (size_t i = 0; i < ask->n; i++) {
			enum vc_mode part;

			axis_of(f, ask->at[i].name, &part);
			int rc = (part != VC_MODE_ALL) == parts ?
					 ask_one(f, &ask->at[i], g, err) : 0;
			if (rc)
				return rc;
		}
	for (size_t a = 0; a < f->axes; a++) {
		double most = f->x[0][a];

		for (size_t i = 1; i < f->n; i++)
			most = fmax(most, f->x[i][a]);
		g->train[a] = isnan(g->train[a]) ? most : g->train[a];
		g->eval[a] = isnan(g->eval[a]) ? most : g->eval[a];
		g->apart |= g->train[a] != g->eval[a];
	}
	return 0;
}

/* Training and evaluation apart: the recording must show both, and its evaluation must depend on
 * what is asked for; one of its own size is a parameter of its own. */
static int part(struct vc_family *f, size_t base, const struct vc_target *g, struct vc_error *err)
{
	const struct vc_scaling *v = &f->view[base];
	const struct vc_allocations *m = &f->m[base];
	const char *path = vc_allocations_from(m);
	int rc = vc_scaling_parts(f, base, err);
	bool moves[VC_AXES] = { false };

	if (rc)
		return rc;
	if (!v->parted)
		return vc_fail(err, VC_EUSAGE, "%s shows no evaluation that could be set apart "
			       "from training; ask without train_ and eval_, or record with an "
			       "evaluation", path);
	for (size_t a = 0; a < f->axes; a++)
		for (size_t i = 0; i < m->n && !moves[a]; i++)
			moves[a] = v->part[i] == VC_MODE_EVAL &&
				   (f->n == 1 || v->law[a * m->n + i].kind != VC_LAW_CONST);
	for (size_t a = 0; a < f->axes; a++)
		if (g->named[a] && f->axis[a].part == VC_MODE_ALL && !moves[a])
			return vc_fail(err, VC_EUSAGE, "the evaluation in these recordings does "
				       "not depend on %s; record it at another value as well, as "
				       "FILE@%s=8,eval_%s=16", f->axis[a].name, f->axis[a].name,
				       f->axis[a].name);
	return 0;
}

static size_t count(const struct vc_allocations *m, double size)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += fabs((double)m->take[i].size - size) < 1;
	return n;
}

/* Blocks of that size in recording k, without those that are as much larger or smaller in j as the
 * parameter or a power of it is, and those that differ between steps: they are data, and no
 * copies of parameters. */
static size_t copies(const struct vc_family *f, size_t k, size_t j, double size)
{
	const struct vc_allocations *m = &f->m[k];
	const uint32_t *match = f->view[k].ready && f->axes == 1 ? f->view[k].match[j] : NULL;
	double ratio = f->x[j][0] / f->x[k][0];
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		const uint32_t *like = f->loops ? f->loops[k].like : NULL;
		size_t at = like && like[i] != VC_UNMATCHED ? like[i] : i;
		double there = match && match[at] != VC_UNMATCHED ?
				       (double)f->m[j].take[match[at]].size : size;

		n += fabs((double)m->take[i].size - size) < 1 && fabs(there - size * ratio) >= 1 &&
		     fabs(there - size * ratio * ratio) >= 1 && !vc_spread_has(&f->spread[k], i);
	}
	return n;
}

/* Are blocks of that size made in most steps of recording k, as copies of a weight are? The data of
 * one step may have half the size of several weights, because they share a side. */
static bool in_most_steps(const struct vc_family *f, size_t k, double size)
{
	const struct vc_allocations *m = &f->m[k];
	const struct vc_spread *s = &f->spread[k];
	uint32_t last = UINT32_MAX;
	size_t n = 0;

	if (!s->step || s->steps < FEW_STEPS)
		return true;
	for (size_t i = 0; i < m->n; i++) {
		if (fabs((double)m->take[i].size - size) >= 1 || s->step[i] >= s->steps)
			continue;
		n += s->step[i] != last;
		last = s->step[i];
	}
	return 2 * n >= s->steps;
}

/* Blocks of data that have that size in recording j, and another in k. Where it is the size of a
 * parameter, gradients and states of the optimizer have it, too: about as many in both. */
static size_t data_of(const struct vc_allocations *k, const struct vc_allocations *j, double size)
{
	size_t all = count(j, size);
	size_t own = vc_allocations_has_lasting(j, (uint64_t)size) ? count(k, size) : 0;

	return all > own ? all - own : 0;
}

/* The share of what lasts in recording k (parameters) of which it makes copies of half the size,
 * where recording j has nothing of that size. Data of such a size are as many in j, as much larger
 * as a parameter of the run is, or more: others have that size by chance. */
static double cast_share(const struct vc_family *f, size_t k, size_t j)
{
	const struct vc_allocations *m = &f->m[k];
	double all = 0, cast = 0;
	bool is_cast = false;
	size_t sizes = 0; /* data may be as large as half of one kind of weight, by chance */

	for (size_t i = 0; i < m->lastings; i++) {
		double half = (double)m->lasting[i] / 2;

		if (m->lasting[i] < TELLING)
			continue;
		if (!i || m->lasting[i] != m->lasting[i - 1]) {
			size_t n = copies(f, k, j, half);

			is_cast = n && !count(&f->m[j], half) && in_most_steps(f, k, half);
			for (size_t a = 0; is_cast && a < f->axes; a++)
				is_cast = n > 2 * data_of(m, &f->m[j],
							  half * f->x[j][a] / f->x[k][a]);
			sizes += is_cast;
		}
		all += half;
		cast += is_cast ? half : 0;
	}
	return all > 0 && sizes > 1 ? cast / all : 0;
}

/* Autocast copies its weights to half of their size before each use. Recordings with and without
 * it differ by little else that no law explains: half the bytes at twice the batch are as many. */
static int one_precision(const struct vc_family *f, struct vc_error *err)
{
	for (size_t k = 0; k < f->n && !f->force; k++)
		for (size_t j = 0; j < f->n; j++)
			if (j != k && cast_share(f, k, j) > CAST_MAX)
				return vc_fail(err, VC_EUSAGE, "the recordings are not of one "
					       "configuration: %s copies its weights to half of "
					       "their size (autocast), %s does not",
					       f->m[k].trace->meta->path,
					       f->m[j].trace->meta->path);
	return VC_OK;
}

/* Values of a parameter by recording; how many: those of a parameter that may be rounded. */
static size_t may_round(const struct vc_family *f, size_t axis, double *x)
{
	if (f->n < 2 || f->n > RECORDINGS || f->axis[axis].side ||
	    f->axis[axis].counts)
		return 0; /* samples are counted, and pictures cut into patches */
	for (size_t i = 0; i < f->n; i++)
		x[i] = f->x[i][axis];
	return f->n;
}

/* Where the recordings cannot tell a length from one that is rounded up: the ends are those of
 * all that explain them. */
static void round_target(const struct vc_family *f, size_t base, enum vc_bound bound,
			 struct vc_target *g, struct vc_family_report *rep)
{
	const struct vc_allocations *b = &f->m[base];
	double x[RECORDINGS];

	for (size_t a = 0; a < f->axes; a++) {
		size_t n = may_round(f, a, x);
		bool two = vc_rounding_may_be(f->view[base].law + a * b->n, b->take, b->n,
					      vc_rounding_power(x, n));
		double high = vc_rounding_other(x, n, g->train[a], two, true);
		double low = vc_rounding_other(x, n, g->train[a], two, false);
		double step = vc_rounding_step(x, n, g->train[a], bound != VC_BOUND_LOW);

		if (high != g->train[a] || low != g->train[a] || step != 1) {
			rep->tells = vc_rounding_tells(x, n);
			rep->telling = f->axis[a].name;
		}
		if (bound == VC_BOUND_NONE)
			continue;
		g->constant = step;
		g->train[a] = bound == VC_BOUND_HIGH ? high : low;
		g->eval[a] = vc_rounding_other(x, n, g->eval[a], two, bound == VC_BOUND_HIGH);
	}
}

/* The values that are asked for, and the recording whose order decides, whose view is open then. */
static int find_target(struct vc_family *f, const struct vc_family_ask *ask,
		       struct vc_target *target, size_t *order, struct vc_family_report *rep,
		       struct vc_error *err)
{
	int rc = set_target(f, ask, target, err);

	target->there = ask->there;
	target->cublas = ask->cublas;
	target->elsewhere = ask->there || (ask->card.sms && memcmp(&ask->card, &f->recorded,
								   sizeof(ask->card)) != 0);
	*rep = (struct vc_family_report){ .edited = f->edited };
	if (rc)
		return rc;
	size_t base = ask->has_order && ask->order < f->n ? ask->order : nearest(f, target->train);
	if (ask->has_order && !is_corner(f, base, target->train) &&
	    is_corner(f, nearest(f, target->train), target->train))
		return vc_fail(err, VC_ENOSUP,
			       "that recording alone does not tell all parameters apart");
	pthread_mutex_lock(&f->lock);
	rc = vc_scaling_open(f, base, err);
	for (size_t k = 0; !rc && k < f->n && !f->tied; k++) /* whatever the target */
		rc = vc_scaling_open(f, k, err);
	if ((!rc || rc == VC_EUSAGE) && !f->precise && one_precision(f, err)) /* says more */
		rc = VC_EUSAGE;
	f->precise |= !rc && (!f->tied || f->axes != 1); /* all that it reads is open */
	if (!rc && target->apart)
		rc = part(f, base, target, err);
	pthread_mutex_unlock(&f->lock);
	if (rc)
		return rc;
	round_target(f, base, ask->bound, target, rep);
	*order = base;
	return VC_OK;
}

int vc_family_at(struct vc_family *f, const struct vc_family_ask *ask, struct vc_trace *out,
		 struct vc_family_report *rep, struct vc_error *err)
{
	struct vc_family_report unused;
	struct vc_target target = { .apart = false };
	size_t base;
	int rc;

	*out = (struct vc_trace){ 0 };
	rep = rep ? rep : &unused;
	rc = find_target(f, ask, &target, &base, rep, err);
	if (rc)
		return rc;
	rep->states = any_steps(f) ? 0 : vc_skipped_states(&f->m[base]);
	return vc_synthesis(f, base, ask, &target, out, rep, err);
}

struct vc_source *vc_family_source(struct vc_family *f, const struct vc_family_ask *ask,
				   const struct vc_meta *meta, struct vc_error *err)
{
	struct vc_family_report unused;
	struct vc_target target = { .apart = false };
	struct vc_source *s;
	size_t base;

	if (find_target(f, ask, &target, &base, &unused, err))
		return NULL;
	s = vc_synthesis_source(f, base, ask, &target, err);
	if (s)
		s->meta = (struct vc_meta *)meta; /* `lent`: nobody writes to it */
	return s;
}
