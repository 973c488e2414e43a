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

#include "simulator/scratch.h"
#include "simulator/single.h"

enum { NEAR = 4096 };       /* allocations around an unmatched one searched for its twin */
#define SHARE_NEEDED 0.85   /* of all bytes: autocast against none has 0.75, one script above 0.91 */

enum origin { BY_LAW, BY_TWIN, BY_ROWS, ALONE, OPEN /* one recording: may depend or not */ };

struct axis { const char *name; bool squares; };

/* What one recording, taken as the base, knows through the others. */
struct view {
	bool ready;
	uint32_t **match;        /* per member, per allocation of the base; NULL for the base itself */
	struct vc_law *law;      /* per axis and allocation */
	uint8_t *origin;         /* enum origin by allocation */
	uint32_t *twin;          /* BY_TWIN: whose law */
	uint32_t *other;         /* BY_TWIN: one that says otherwise, or VC_UNMATCHED */
	struct vc_scratches scratch;
	uint64_t bytes, matched, unsettled;
	double residual;
};

struct vc_family {
	struct vc_member *m;
	size_t n;
	struct axis axis[VC_AXES];
	size_t axes;
	double (*x)[VC_AXES];    /* parameter values by member */
	struct view *view;
	struct vc_reduction_card recorded, card; /* card: of the prediction */
	bool force;
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
		f->recorded = f->card = (struct vc_reduction_card){ 132, 2048 }; /* H100, H200 */
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
	return f;
}

static void view_fini(struct view *v, size_t n)
{
	for (size_t i = 0; v->match && i < n; i++)
		free(v->match[i]);
	free(v->match);
	free(v->law);
	free(v->origin);
	free(v->twin);
	free(v->other);
	free(v->scratch.at);
}

void vc_family_free(struct vc_family *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		vc_member_fini(&f->m[i]);
		view_fini(&f->view[i], f->n);
	}
	free(f->m);
	free(f->x);
	free(f->view);
	free(f);
}

void vc_family_cards(struct vc_family *f, const struct vc_reduction_card *recorded,
		     const struct vc_reduction_card *target)
{
	f->recorded = *recorded;
	f->card = *target;
	for (size_t i = 0; i < f->n; i++) { /* recognised scratch depends on it: look again */
		view_fini(&f->view[i], f->n);
		f->view[i] = (struct view){ 0 };
	}
}

size_t vc_family_members(const struct vc_family *f)
{
	return f->n;
}

double vc_family_value(const struct vc_family *f, size_t member, const char *name)
{
	return member < f->n ? value_of(f->m[member].trace->meta, name) : NAN;
}

/* ---- alignment ---- */

/* The only axis on which two members differ, or axes when they differ on several. */
static size_t only_axis(const struct vc_family *f, size_t i, size_t j)
{
	size_t found = f->axes;

	for (size_t a = 0; a < f->axes; a++)
		if (f->x[i][a] != f->x[j][a]) {
			if (found != f->axes)
				return f->axes;
			found = a;
		}
	return found;
}

static bool has_partner(const struct vc_family *f, size_t i, size_t axis)
{
	for (size_t k = 0; k < f->n; k++)
		if (k != i && only_axis(f, i, k) == axis)
			return true;
	return false;
}

/* ---- laws ---- */

static size_t samples(const struct vc_family *f, const struct view *v, size_t base, size_t axis,
		      size_t i, struct vc_sample *s)
{
	size_t n = 0;

	for (size_t k = 0; k < f->n; k++) {
		struct vc_sample new = { f->x[k][axis], 0 };
		size_t at = n;

		if (k == base)
			new.y = (double)f->m[base].take[i].size;
		else if (only_axis(f, base, k) == axis && v->match[k] && v->match[k][i] != VC_UNMATCHED)
			new.y = (double)f->m[k].take[v->match[k][i]].size;
		else
			continue;
		for (; at > 0 && s[at - 1].x > new.x; at--)
			s[at] = s[at - 1];
		s[at] = new;
		n++;
	}
	return n;
}

/* Does the axis act through its square only (the side of an image)? */
static bool acts_squared(const struct vc_family *f, const struct view *v, size_t base, size_t axis)
{
	struct vc_sample s[64];
	size_t linear = 0, square = 0;

	for (size_t i = 0; i < f->m[base].n; i++) {
		size_t n = samples(f, v, base, axis, i, s);
		struct vc_law l = vc_law_fit(s, n, false);

		linear += n > 1 && l.kind == VC_LAW_LINEAR;
		square += n > 1 && l.kind == VC_LAW_QUADRATIC;
	}
	return square > 8 * linear;
}

static void fit_all(struct vc_family *f, struct view *v, size_t base)
{
	const struct vc_member *b = &f->m[base];
	struct vc_sample s[64];

	for (size_t a = 0; a < f->axes; a++) {
		f->axis[a].squares = acts_squared(f, v, base, a);
		for (size_t i = 0; i < b->n; i++) {
			size_t n = samples(f, v, base, a, i, s);
			struct vc_law *l = &v->law[a * b->n + i];

			*l = vc_law_fit(s, n, f->axis[a].squares);
			if (l->kind == VC_LAW_ALONE && has_partner(f, base, a))
				v->origin[i] = ALONE;
			if (l->residual > v->residual * (double)b->take[i].size)
				v->residual = l->residual / (double)b->take[i].size;
		}
	}
}

/* Size of an allocation with laws at the target. Along several axes the factors multiply, except
 * for a common constant part, which stays. */
static double by_law(const struct vc_family *f, const struct view *v, size_t base, size_t i,
		     const double *at)
{
	const struct vc_member *b = &f->m[base];
	double y0 = (double)b->take[i].size, y = y0, constant = 0;
	size_t moving = 0;

	for (size_t a = 0; a < f->axes; a++) {
		const struct vc_law *l = &v->law[a * b->n + i];

		if (at[a] == f->x[base][a] || l->kind == VC_LAW_CONST || l->kind == VC_LAW_ALONE)
			continue;
		if (!moving++)
			constant = l->a;
		else if (fabs(constant - l->a) > 0.5)
			constant = 0;
		y *= vc_law_at(l, at[a]) / y0;
	}
	if (moving < 2 || constant <= 0 || constant >= y0)
		return round(y);
	y = y0 - constant;
	for (size_t a = 0; a < f->axes; a++) {
		const struct vc_law *l = &v->law[a * b->n + i];
		if (at[a] != f->x[base][a] && l->kind != VC_LAW_CONST && l->kind != VC_LAW_ALONE)
			y *= (vc_law_at(l, at[a]) - constant) / (y0 - constant);
	}
	return round(constant + y);
}

static double octaves(uint32_t life)
{
	return life == UINT32_MAX ? 40 : log2(1.0 + life);
}

/* How unlike two allocations of one size are: life, call site and distance. */
static double unlike(const struct vc_member *b, size_t i, size_t j)
{
	const struct vc_take *s = &b->take[i], *t = &b->take[j];

	return 2 * fabs(octaves(s->life) - octaves(t->life)) + (s->site == t->site ? 0 : 4) +
	       0.5 * log2(i > j ? (double)(i - j) : (double)(j - i));
}

static bool is_const(const struct vc_family *f, const struct view *v, size_t n, size_t i)
{
	for (size_t a = 0; a < f->axes; a++)
		if (v->law[a * n + i].kind != VC_LAW_CONST)
			return false;
	return true;
}

/* The most similar allocation of the same size whose law is known. What comes and goes, and exists
 * at one size only, is a copy of data rather than of a parameter that happens to have its size. */
static void find_twin(const struct vc_family *f, const struct vc_member *b, struct view *v, size_t i)
{
	size_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < b->n ? i + NEAR : b->n;
	uint32_t best[2] = { VC_UNMATCHED, VC_UNMATCHED };
	double least[2] = { INFINITY, INFINITY };

	for (size_t j = from; j < to; j++) {
		if (j == i || v->origin[j] != BY_LAW || b->take[j].size != b->take[i].size)
			continue;
		bool constant = is_const(f, v, b->n, j);
		double d = unlike(b, i, j) + (constant && b->take[i].life != UINT32_MAX ? 40 : 0);
		if (d < least[constant]) {
			least[constant] = d;
			best[constant] = (uint32_t)j;
		}
	}
	bool pick = least[1] < least[0];
	v->twin[i] = best[pick];
	v->other[i] = best[!pick];
}

static void find_twins(const struct vc_family *f, const struct vc_member *b, struct view *v)
{
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == ALONE)
			find_twin(f, b, v, i);
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == ALONE && v->twin[i] != VC_UNMATCHED)
			v->origin[i] = BY_TWIN;
}

/* ---- scratch of row sums ---- */

/* Do the other recordings agree that this is a row sum: buffers where the formula has them? */
static bool agreed(const struct vc_family *f, const struct view *v, const struct vc_scratch *s,
		   size_t base)
{
	for (size_t k = 0; k < f->n; k++) {
		uint64_t a = 0, b;

		if (k == base || !v->match[k] || v->match[k][s->owner] == VC_UNMATCHED ||
		    v->match[k][s->source] == VC_UNMATCHED)
			continue;
		const struct vc_member *o = &f->m[k];
		uint32_t owner = v->match[k][s->owner];
		uint64_t rows = o->take[v->match[k][s->source]].size / s->row;
		bool has = vc_scratch_follows(o, owner);

		if (vc_scratch_size(s, rows, &f->recorded, &a, &b) != (has && o->take[owner + 1].size == a))
			return false;
	}
	return true;
}

static int find_scratch(struct vc_family *f, struct view *v, size_t base, struct vc_error *err)
{
	const struct vc_member *b = &f->m[base];
	double *grows = calloc(b->n, sizeof(*grows)), further[VC_AXES];
	size_t kept = 0;
	int rc = grows ? 0 : vc_nomem(err, "the row sums of a recording");

	for (size_t a = 0; a < f->axes; a++) /* any other place shows what grows, and how fast */
		further[a] = f->x[base][a] * (1.37 + 0.11 * (double)a);
	for (size_t i = 0; !rc && i < b->n; i++) {
		size_t from = v->origin[i] == BY_TWIN ? v->twin[i] : i;
		grows[i] = by_law(f, v, base, from, further) / (double)b->take[from].size;
	}
	if (!rc)
		rc = vc_scratch_find(b, grows, &f->recorded, &v->scratch, err);
	free(grows);
	for (size_t i = 0; !rc && i < v->scratch.n; i++) {
		struct vc_scratch *s = &v->scratch.at[i];

		if (s->source == VC_UNMATCHED || !agreed(f, v, s, base))
			continue;
		if (s->present)
			v->origin[s->owner + 1] = v->origin[s->owner + 2] = BY_ROWS;
		v->scratch.at[kept++] = *s;
	}
	v->scratch.n = kept;
	return rc;
}

/* ---- a view ---- */

static void account(const struct vc_member *b, struct view *v)
{
	for (size_t i = 0; i < b->n; i++) {
		v->bytes += b->take[i].size;
		if (v->origin[i] == ALONE || v->origin[i] == OPEN)
			v->unsettled += b->take[i].size;
		else if (v->origin[i] != BY_TWIN)
			v->matched += b->take[i].size;
	}
}

static int view_open(struct vc_family *f, size_t base, struct vc_error *err)
{
	const struct vc_member *b = &f->m[base];
	struct view *v = &f->view[base];
	int rc = 0;

	if (v->ready)
		return 0;
	v->match = calloc(f->n, sizeof(*v->match));
	v->law = calloc(b->n * (f->axes ? f->axes : 1), sizeof(*v->law));
	v->origin = calloc(b->n, sizeof(*v->origin));
	v->twin = calloc(b->n, sizeof(*v->twin));
	v->other = calloc(b->n, sizeof(*v->other));
	if (!v->match || !v->law || !v->origin || !v->twin || !v->other)
		return vc_nomem(err, "the family of recordings");
	for (size_t k = 0; !rc && k < f->n; k++) {
		size_t axis = only_axis(f, base, k);
		if (k != base && axis < f->axes)
			rc = vc_align_best(b->take, b->n, f->m[k].take, f->m[k].n,
					   f->x[k][axis] / f->x[base][axis], &v->match[k], err);
	}
	if (rc)
		return rc;
	fit_all(f, v, base);
	if (f->n == 1 && f->axes) {
		rc = vc_single_settle(b, f->x[0][0], v->law, v->origin, err);
		for (size_t i = 0; i < b->n; i++)
			v->origin[i] = v->origin[i] ? BY_LAW : OPEN;
	}
	if (rc)
		return rc;
	find_twins(f, b, v);
	rc = find_scratch(f, v, base, err);
	if (rc)
		return rc;
	account(b, v);
	v->ready = true;
	double share = v->bytes ? (double)v->matched / (double)v->bytes : 1;
	if (f->n > 1 && share < SHARE_NEEDED && !f->force)
		return vc_fail(err, VC_EUSAGE, "the recordings are not of one configuration: %.0f %% of "
			       "the bytes of %s have no counterpart (another dtype, model or kernel?)",
			       100 * (1 - share),
			       b->trace->meta->path ? b->trace->meta->path : "the nearest one");
	return 0;
}

/* ---- synthesis ---- */

struct make {
	struct vc_family *f;
	const struct view *v;
	const struct vc_member *b;
	size_t base;
	enum vc_lean lean;
	double at[VC_AXES];
	double growth;             /* product of the axes' ratios */
	size_t scratch;            /* next scratch to come */
	uint64_t next_id;
	uint64_t skip[2];          /* ids of buffers that the target does not ask for */
	uint64_t partial, semaphores;
	struct vc_trace *out;
	struct vc_family_report *rep;
};

static uint64_t kept_size(const struct make *k, size_t i)
{
	double size = (double)k->b->take[i].size;

	if (k->lean == VC_LEAN_HIGH && k->growth > 1)
		size *= k->growth;
	return (uint64_t)(size + 0.5);
}

static uint64_t size_at(const struct make *k, size_t i)
{
	if (k->v->origin[i] == ALONE)
		return kept_size(k, i);
	if (k->v->origin[i] == OPEN && k->lean == VC_LEAN_LOW)
		return k->b->take[i].size;
	if (k->v->origin[i] == BY_TWIN) {
		size_t other = k->v->other[i];
		double size = by_law(k->f, k->v, k->base, k->v->twin[i], k->at);

		if (k->lean == VC_LEAN_NONE || other == VC_UNMATCHED)
			return (uint64_t)size;
		double second = by_law(k->f, k->v, k->base, other, k->at);
		return (uint64_t)(k->lean == VC_LEAN_LOW ? fmin(size, second) : fmax(size, second));
	}
	return (uint64_t)by_law(k->f, k->v, k->base, i, k->at);
}

static int emit(struct make *k, struct vc_event *e, struct vc_error *err)
{
	return vc_trace_append(k->out, e, 1, err);
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

static int owner(struct make *k, const struct vc_scratch *s, const struct vc_event *e,
		 struct vc_error *err)
{
	double rows = (double)size_at(k, s->source) / (double)s->row;
	bool needed = vc_scratch_size(s, (uint64_t)(rows + 0.5), &k->f->card, &k->partial,
				      &k->semaphores);

	k->scratch++;
	k->rep->scratch++;
	if (needed && !s->present)
		return insert_scratch(k, e, err);
	k->skip[0] = k->skip[1] = UINT64_MAX;
	if (s->present && !needed)
		for (int i = 0; i < 2; i++)
			k->skip[i] = k->b->trace->ev[k->b->event[s->owner + 1 + i]].id;
	return 0;
}

static int one_alloc(struct make *k, const struct vc_event *from, size_t i, struct vc_error *err)
{
	const struct vc_scratches *l = &k->v->scratch;
	struct vc_event e = *from;

	e.addr = 0;
	if (e.id == k->skip[0] || e.id == k->skip[1])
		return 0;
	if (k->v->origin[i] == BY_ROWS)
		e.size = l->at[k->scratch - 1].owner + 1 == i ? k->partial : k->semaphores;
	else
		e.size = size_at(k, i);
	int rc = emit(k, &e, err);
	if (!rc && k->scratch < l->n && l->at[k->scratch].owner == i)
		rc = owner(k, &l->at[k->scratch], &e, err);
	return rc;
}

static int one_event(struct make *k, const struct vc_event *from, size_t *i, struct vc_error *err)
{
	struct vc_event e = *from;

	if (e.device != k->b->device || (e.kind >= VC_EV_SEGMENT_ALLOC && e.kind <= VC_EV_DEVICE_SAMPLE))
		return 0;
	if (e.kind >= VC_EV_HEAP_SEGMENT && (e.flags & VC_EVF_FINAL))
		return 0;
	if (e.kind == VC_EV_ALLOC)
		return one_alloc(k, from, (*i)++, err);
	if (e.kind == VC_EV_FREE || e.kind == VC_EV_FREE_DONE || e.kind == VC_EV_USE) {
		if (e.id == k->skip[0] || e.id == k->skip[1])
			return 0;
		uint32_t a = e.id < k->b->ids ? k->b->of_id[e.id] : 0;
		if (a)
			e.size = size_at(k, a - 1);
	}
	return emit(k, &e, err);
}

/* Can every parameter that moves be told from a recording that differs in it alone? */
static bool is_corner(const struct vc_family *f, size_t i, const double *at)
{
	for (size_t a = 0; a < f->axes; a++)
		if (at[a] != f->x[i][a] && !has_partner(f, i, a))
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

static void report(struct make *k)
{
	struct vc_family_report *r = k->rep;

	r->members = k->f->n;
	r->base = k->base;
	r->single = k->f->n == 1;
	r->allocs = k->b->n;
	r->bytes = k->v->bytes;
	r->matched_bytes = k->v->matched;
	r->unsettled_bytes = k->v->unsettled;
	r->residual = k->v->residual;
	r->same = true;
	for (size_t a = 0; a < k->f->axes; a++)
		r->same &= k->at[a] == k->f->x[k->base][a];
	for (size_t i = 0; i < k->b->n; i++) {
		r->kind[k->f->axes ? k->v->law[i].kind : VC_LAW_CONST]++;
		r->borrowed += k->v->origin[i] == BY_TWIN;
	}
}

static int finish(struct make *k, struct vc_error *err)
{
	struct vc_meta *m = vc_meta_copy(k->b->trace->meta, err);

	if (!m)
		return VC_ENOMEM;
	k->out->meta = m;
	m->max_id = k->next_id;
	m->how[VC_CAP_ADDRESSES] = m->how[VC_CAP_FINAL_HEAP] = m->how[VC_CAP_SEGMENTS] = VC_HOW_ABSENT;
	for (size_t a = 0; a < k->f->axes; a++)
		vc_meta_param(m, k->f->axis[a].name, k->at[a]);
	return vc_meta_ok(m) ? 0 : vc_nomem(err, "the predicted trace");
}

int vc_family_at(struct vc_family *f, const struct vc_family_ask *ask, struct vc_trace *out,
		 struct vc_family_report *rep, struct vc_error *err)
{
	struct vc_family_report unused;
	struct make k = { .f = f, .lean = ask->lean, .out = out, .rep = rep ? rep : &unused,
			  .growth = 1, .skip = { UINT64_MAX, UINT64_MAX } };
	size_t i = 0;
	int rc = target(f, ask, k.at, err);

	*out = (struct vc_trace){ 0 };
	*k.rep = (struct vc_family_report){ 0 };
	if (rc)
		return rc;
	k.base = ask->has_order && ask->order < f->n ? ask->order : nearest(f, k.at);
	rc = view_open(f, k.base, err);
	if (rc)
		return rc;
	k.b = &f->m[k.base];
	k.v = &f->view[k.base];
	k.next_id = k.b->ids + 1;
	for (size_t a = 0; a < f->axes; a++)
		k.growth *= k.at[a] / f->x[k.base][a];
	report(&k);
	for (size_t e = 0; !rc && e < k.b->trace->n; e++)
		rc = one_event(&k, &k.b->trace->ev[e], &i, err);
	if (!rc)
		rc = finish(&k, err);
	if (rc)
		vc_trace_fini(out);
	return rc;
}
