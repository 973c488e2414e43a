/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - what several recordings say about a value nobody recorded (docs/rooms/predict.md).
 *
 * The order of events is that of the nearest recording. Each of its allocations is looked up in
 * the others (align.c), its size becomes a law of the parameter (laws.c), buffers whose size
 * follows from a kernel's launch arithmetic are computed (workspaces.c), and what no other
 * recording has takes the law of a block of its size. The peak is never extrapolated: it is
 * replayed. */
#include "simulator/predict/family.h"

#include "common/vec.h"
#include "common/param.h"
#include "simulator/predict/scaling.h"

const char *const vc_rule_names[VC_RULES] = {
	[VC_RULE_SIMILAR] = "most similar allocation",
	[VC_RULE_SUMS] = "buffers of row sums",
	[VC_RULE_NAMED] = "algorithms of cuDNN", [VC_RULE_STEPS] = "data of steps",
};

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
	f->axis[f->axes].counts = vc_family_counts(name);
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
	return 0;
}

/* Workspace of convolutions, where the recordings note these. */
static int find_plans(struct vc_family *f, struct vc_error *err)
{
	for (size_t k = 0; k < f->n; k++) {
		f->plan[k] = calloc(f->m[k].n + 1, sizeof(**f->plan));
		VC_HAVE(f->plan[k], "the workspace of a recording", err);
		VC_TRY(vc_convolutions_read(&f->conv[k], &f->m[k], err));
		for (size_t i = 0; i < f->conv[k].n; i++)
			if (f->conv[k].call[i].block != VC_UNMATCHED)
				f->plan[k][f->conv[k].call[i].block] = true;
		for (size_t i = 0; i < f->conv[k].others; i++)
			f->plan[k][f->conv[k].nameless[i]] = true;
	}
	return VC_OK;
}

static int read_all(struct vc_family *f, const struct vc_trace *const *t, size_t n, uint16_t device,
		    struct vc_error *err)
{
	f->m = calloc(n, sizeof(*f->m));
	f->x = calloc(n, sizeof(*f->x));
	f->view = calloc(n, sizeof(*f->view));
	f->steps = calloc(n, sizeof(*f->steps));
	f->plan = calloc(n, sizeof(*f->plan));
	f->conv = calloc(n, sizeof(*f->conv));
	VC_HAVE(f->m && f->x && f->view && f->steps && f->plan && f->conv,
		"the family of recordings", err);
	for (f->simulated = true; f->n < n; f->n++) {
		VC_TRY(vc_allocations_init(&f->m[f->n], t[f->n], device, err));
		f->simulated &= t[f->n]->meta->how[VC_CAP_NULL_GPU] != VC_HOW_ABSENT;
	}
	VC_TRY(find_plans(f, err));
	VC_TRY(find_axes(f, err));
	f->recorded = vc_workspace_card(f->m, f->n, &f->card_known);
	return VC_OK;
}

struct vc_family *vc_family_new(const struct vc_trace *const *t, size_t n, uint16_t device,
				unsigned without, struct vc_error *err)
{
	struct vc_family *f = calloc(1, sizeof(*f));

	if (!f) {
		vc_nomem(err, "the family of recordings");
		return NULL;
	}
	pthread_mutex_init(&f->lock, NULL);
	f->without = without;
	if (read_all(f, t, n, device, err) == VC_OK)
		return f;
	vc_family_free(f);
	return NULL;
}

void vc_family_free(struct vc_family *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		vc_allocations_fini(&f->m[i]);
		vc_scaling_fini(&f->view[i], f->n);
		vc_step_sizes_fini(&f->steps[i]);
		free(f->plan[i]);
		vc_convolutions_fini(&f->conv[i]);
	}
	VC_FREE(f->m, f->x, f->view, f->steps, f->plan, f->conv);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void vc_family_recorded(struct vc_family *f, const struct vc_reduction_card *card)
{
	f->recorded = *card;
	f->card_known = true;
	for (size_t i = 0; i < f->n; i++) { /* recognised workspace depends on it: look again */
		vc_scaling_fini(&f->view[i], f->n);
		f->view[i] = (struct vc_scaling){ 0 };
	}
}

void vc_family_ask_cudnn(struct vc_family *f, const struct vc_answers *answers)
{
	f->answers = vc_family_uses(f, VC_RULE_NAMED) ? answers : NULL;
	f->held.from = NULL;
}

struct vc_reduction_card vc_family_card(const struct vc_family *f, bool *known)
{
	*known = f->card_known;
	return f->recorded;
}

double vc_family_value(const struct vc_family *f, size_t recording, const char *name)
{
	return recording < f->n ? value_of(f->m[recording].trace->meta, name) : NAN;
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
	size_t a = 0;

	while (a < f->axes && strcmp(f->axis[a].name, p->name))
		a++;
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
	g->at[a] = p->value;
	return 0;
}

/* The target on each axis; names the family does not know are refused. */
static int set_target(const struct vc_family *f, const struct vc_family_ask *ask,
		      struct vc_target *g, struct vc_error *err)
{
	for (size_t a = 0; a < f->axes; a++) {
		g->at[a] = f->x[0][a];
		for (size_t i = 1; i < f->n; i++)
			g->at[a] = fmax(g->at[a], f->x[i][a]);
	}
	for (size_t i = 0; i < ask->n; i++)
		VC_TRY(ask_one(f, &ask->at[i], g, err));
	return VC_OK;
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
	*rep = (struct vc_family_report){ .single = false };
	if (rc)
		return rc;
	size_t base = ask->has_order && ask->order < f->n ? ask->order : nearest(f, target->at);
	if (f->n > 1 && !is_corner(f, base, target->at))
		return vc_fail(err, ask->has_order ? VC_ENOSUP : VC_EUSAGE, "no recording differs "
			       "from %s in one parameter alone: what each does cannot be told",
			       vc_allocations_from(&f->m[base]));
	pthread_mutex_lock(&f->lock);
	rc = vc_scaling_open(f, base, err);
	pthread_mutex_unlock(&f->lock);
	if (rc)
		return rc;
	*order = base;
	return VC_OK;
}

int vc_family_at(struct vc_family *f, const struct vc_family_ask *ask, struct vc_trace *out,
		 struct vc_family_report *rep, struct vc_error *err)
{
	struct vc_family_report unused;
	struct vc_target target = { .elsewhere = false };
	size_t base;

	*out = (struct vc_trace){ 0 };
	rep = rep ? rep : &unused;
	VC_TRY(find_target(f, ask, &target, &base, rep, err));
	return vc_synthesis(f, base, ask, &target, out, rep, err);
}

struct vc_source *vc_family_source(struct vc_family *f, const struct vc_family_ask *ask,
				   const struct vc_meta *meta, struct vc_error *err)
{
	struct vc_family_report unused;
	struct vc_target target = { .elsewhere = false };
	struct vc_source *s;
	size_t base;

	if (find_target(f, ask, &target, &base, &unused, err))
		return NULL;
	s = vc_synthesis_source(f, base, ask, &target, err);
	if (s)
		s->meta = (struct vc_meta *)meta; /* `lent`: nobody writes to it */
	return s;
}
