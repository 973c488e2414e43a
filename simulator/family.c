/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - what several recordings say about a value nobody recorded (docs/what-if.md 1).
 *
 * The order of events is that of the nearest recording. Each of its allocations is looked up in the
 * others (align.c), its size becomes a law of the parameter (laws.c), buffers whose size follows
 * from a kernel's launch arithmetic are computed (scratch.c), and what no other recording has takes
 * the law of a block of its size. The peak is never extrapolated: it is replayed. */
#include "simulator/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/view.h"

static double value_of(const struct vc_meta *m, const char *name)
{
	for (size_t i = 0; i < m->params; i++)
		if (!strcmp(m->param[i].name, name))
			return m->param[i].value;
	return NAN;
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

		if (isnan(v) || v <= 0)
			return vc_fail(err, VC_EUSAGE, "%s does not say its %s; add @%s=VALUE to its name",
				       path ? path : "a recording", name, name);
		differs |= v != value_of(f->m[0].trace->meta, name);
	}
	if (!differs && f->n > 1)
		return 0;
	if (f->axes == VC_AXES)
		return vc_fail(err, VC_EUSAGE, "the recordings differ in more than %d parameters", VC_AXES);
	f->axis[f->axes++].name = name;
	return 0;
}

static int find_axes(struct vc_family *f, struct vc_error *err)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->m[i].trace->meta->params; k++) {
			int rc = add_axis(f, f->m[i].trace->meta->param[k].name, err);
			if (rc)
				return rc;
		}
	for (size_t i = 0; i < f->n; i++)
		for (size_t a = 0; a < f->axes; a++)
			f->x[i][a] = value_of(f->m[i].trace->meta, f->axis[a].name);
	for (size_t i = 0; i < f->n; i++)
		for (size_t j = 0; j < i; j++)
			if (f->n > 1 && !memcmp(f->x[i], f->x[j], sizeof(double) * VC_AXES))
				return vc_fail(err, VC_EUSAGE, "two recordings have the same parameters; "
					       "say what differs with FILE@batch=8");
	return 0;
}

struct vc_family *vc_family_new(const struct vc_trace *const *t, size_t n, uint16_t device, bool force,
				struct vc_error *err)
{
	struct vc_family *f = calloc(1, sizeof(*f));

	if (f) {
		f->m = calloc(n, sizeof(*f->m));
		f->x = calloc(n, sizeof(*f->x));
		f->view = calloc(n, sizeof(*f->view));
		pthread_mutex_init(&f->lock, NULL);
		f->force = force;
	}
	if (!f || !f->m || !f->x || !f->view) {
		vc_nomem(err, "the family of recordings");
		vc_family_free(f);
		return NULL;
	}
	for (; f->n < n; f->n++)
		if (vc_member_init(&f->m[f->n], t[f->n], device, err)) {
			vc_family_free(f);
			return NULL;
		}
	if (find_axes(f, err)) {
		vc_family_free(f);
		return NULL;
	}
	f->recorded = vc_scratch_card(f->m, f->n, &f->card_known);
	return f;
}

void vc_family_free(struct vc_family *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		vc_member_fini(&f->m[i]);
		vc_view_fini(&f->view[i], f->n);
	}
	free(f->m);
	free(f->x);
	free(f->view);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void vc_family_recorded(struct vc_family *f, const struct vc_reduction_card *card)
{
	f->recorded = *card;
	f->card_known = true;
	for (size_t i = 0; i < f->n; i++) { /* recognised scratch depends on it: look again */
		vc_view_fini(&f->view[i], f->n);
		f->view[i] = (struct vc_view){ 0 };
	}
}

struct vc_reduction_card vc_family_card(const struct vc_family *f)
{
	return f->recorded;
}

bool vc_family_card_known(const struct vc_family *f)
{
	return f->card_known;
}

size_t vc_family_members(const struct vc_family *f)
{
	return f->n;
}

double vc_family_value(const struct vc_family *f, size_t member, const char *name)
{
	return member < f->n ? value_of(f->m[member].trace->meta, name) : NAN;
}

/* Can every parameter that moves be told from a recording that differs in it alone? */
static bool is_corner(const struct vc_family *f, size_t i, const double *at)
{
	for (size_t a = 0; a < f->axes; a++)
		if (at[a] != f->x[i][a] && !vc_family_has_partner(f, i, a))
			return false;
	return true;
}

static size_t nearest(const struct vc_family *f, const double *at)
{
	size_t best = 0;
	double least = INFINITY;

	for (size_t i = 0; i < f->n; i++) {
		double d = is_corner(f, i, at) ? 0 : 1e6;
		for (size_t a = 0; a < f->axes; a++)
			d += fabs(log(at[a] / f->x[i][a]));
		if (d < least || (d == least && f->x[i][0] > f->x[best][0])) {
			least = d;
			best = i;
		}
	}
	return best;
}

/* The target on each axis; names the family does not know are refused. */
static int target(const struct vc_family *f, const struct vc_family_ask *ask, double *at,
		  struct vc_error *err)
{
	for (size_t a = 0; a < f->axes; a++)
		at[a] = NAN;
	for (size_t i = 0; i < ask->n; i++) {
		size_t a = 0;

		while (a < f->axes && strcmp(f->axis[a].name, ask->at[i].name))
			a++;
		if (a == f->axes)
			return vc_fail(err, VC_EUSAGE, "the recordings do not differ in %s; give two that do, "
				       "as FILE@%s=VALUE", ask->at[i].name, ask->at[i].name);
		if (!(ask->at[i].value > 0))
			return vc_fail(err, VC_EUSAGE, "%s must be above zero", ask->at[i].name);
		at[a] = ask->at[i].value;
	}
	for (size_t a = 0; a < f->axes; a++)
		if (isnan(at[a])) {
			at[a] = f->x[0][a];
			for (size_t i = 1; i < f->n; i++)
				at[a] = fmax(at[a], f->x[i][a]);
		}
	return 0;
}

int vc_family_at(struct vc_family *f, const struct vc_family_ask *ask, struct vc_trace *out,
		 struct vc_family_report *rep, struct vc_error *err)
{
	struct vc_family_report unused;
	double at[VC_AXES];
	int rc = target(f, ask, at, err);

	*out = (struct vc_trace){ 0 };
	rep = rep ? rep : &unused;
	*rep = (struct vc_family_report){ 0 };
	if (rc)
		return rc;
	size_t base = ask->has_order && ask->order < f->n ? ask->order : nearest(f, at);
	pthread_mutex_lock(&f->lock);
	rc = vc_view_open(f, base, err);
	pthread_mutex_unlock(&f->lock);
	return rc ? rc : vc_synthesis(f, base, ask, at, out, rep, err);
}
