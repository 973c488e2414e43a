/* SPDX-License-Identifier: Apache-2.0 */
/* scaling.c - one recording looked at through the others of its family: a law for each of its
 * allocations, the counterpart of one that stands alone, and the workspace that launch arithmetic
 * decides. */
#include "simulator/predict/scaling.h"

#include <math.h>
#include <stdlib.h>

#include "common/vec.h"
#include "common/workers.h"
#include "simulator/predict/matching.h"
#include "simulator/predict/single.h"
#include "simulator/predict/counts.h"

enum { THREADS = 4 };
enum { NEAR = 4096 };       /* allocations around an unmatched one: its counterpart; bounds time */
#define ROUNDED 0.02 /* by which a size may be off where a length is divided: one frame of 50 */
#define SHARE_NEEDED 0.85 /* of all bytes: autocast against none has 0.75, one script above 0.91 */

void vc_scaling_fini(struct vc_scaling *v, size_t n)
{
	for (size_t i = 0; v->match && i < n; i++)
		free(v->match[i]);
	for (size_t i = 0; v->conv && i < n; i++)
		free(v->conv[i]);
	VC_FREE(v->conv, v->match, v->law, v->origin, v->counterpart, v->other, v->workspace.at,
		v->sorts.at, v->single, v->part);
	vc_lengths_fini(&v->lengths);
	if (!v->counted)
		vc_loops_fini(&v->loops);
}

/* ---- parts ---- */

int vc_scaling_parts(struct vc_family *f, size_t base, struct vc_error *err)
{
	struct vc_scaling *v = &f->view[base];

	if (v->part)
		return 0;
	v->part = malloc(f->m[base].n + 1);
	VC_HAVE(v->part, "the phases of a recording", err);
	return vc_modes_read(&f->m[base], v->part, &v->parted, err);
}

/* Turns that no other recording has are like the first. */
static void settle_loops(struct vc_scaling *v, size_t n)
{
	for (size_t i = 0; v->loops.n && i < n; i++) {
		uint32_t like = v->loops.like[i];

		if (v->origin[i] == VC_BY_LAW || like == VC_UNMATCHED ||
		    v->origin[like] != VC_BY_LAW)
			continue;
		v->origin[i] = VC_BY_COUNTERPART;
		v->counterpart[i] = like;
		v->other[i] = VC_UNMATCHED;
	}
}

/* ---- laws ---- */

static size_t samples(const struct vc_family *f, const struct vc_scaling *v, size_t base,
		      size_t axis, size_t i, struct vc_sample *s)
{
	size_t n = 0;
	enum vc_mode part = vc_matching_part(f, v, i);

	if (!vc_matching_acts(f, axis, part)) {
		s[0] = s[1] =
			(struct vc_sample){ f->x[base][axis], (double)f->m[base].take[i].size };
		s[1].x *= 2; /* the same at any value */
		return 2;
	}
	for (size_t k = 0; k < f->n; k++) {
		struct vc_sample new = { f->x[k][axis], 0 };
		size_t at = n;

		if (k == base)
			new.y = vc_spread_middle(&f->spread[base], &f->m[base], i);
		else if (vc_matching_only_axis(f, base, k, part) == axis && v->match[k] &&
			 v->match[k][i] != VC_UNMATCHED)
			new.y = vc_full_turns_has(f->full, base, i, k, v->match[k][i]) ?
					(double)f->m[base].take[i].size :
					vc_spread_middle(&f->spread[k], &f->m[k], v->match[k][i]);
		else
			continue;
		for (; at > 0 && s[at - 1].x > new.x; at--)
			s[at] = s[at - 1];
		s[at] = new;
		n++;
	}
	return n;
}

/* Does the axis act through its square only (the side of an image), or its cube (of a volume)? 0:
 * neither. */
static unsigned side_of(const struct vc_family *f, const struct vc_scaling *v, size_t base,
			size_t axis)
{
	struct vc_sample s[64];
	size_t linear = 0, square = 0, cube = 0;

	for (size_t i = 0; i < f->m[base].n; i++) {
		size_t n = samples(f, v, base, axis, i, s);
		struct vc_law l = vc_law_fit(s, n, 0);

		linear += n > 1 && l.kind == VC_LAW_LINEAR;
		square += n > 1 && l.kind == VC_LAW_QUADRATIC && !(l.d > 0);
		cube += n > 1 && l.kind == VC_LAW_QUADRATIC && l.d > 0;
	}
	return square + cube <= 8 * linear ? 0 : cube > 8 * square ? 3 : 2;
}

/* Products of two counts, where a line through two samples or no law at all was found. A number
 * of samples counts nothing but itself. */
static int refit(const struct vc_family *f, struct vc_scaling *v, size_t base, size_t a,
		 struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	struct vc_law *law = &v->law[a * b->n], l;
	struct vc_sample s[64];
	struct vc_counts u;

	if (f->axis[a].counts)
		return 0;
	VC_TRY(vc_counts_find(law, b->take, b->n, v->side[a], &u, err));
	for (size_t i = 0; i < b->n; i++) {
		size_t n = samples(f, v, base, a, i, s);

		if (vc_spread_has(&f->spread[base], i))
			continue;
		if (vc_counts_doubt(&u, &law[i], n) && vc_counts_product(&u, s, n, &l))
			law[i] = l;
		law[i].power = vc_counts_power(&u, &law[i], s, n);
	}
	return VC_OK;
}

static struct vc_law fit_one(const struct vc_family *f, size_t base, unsigned side, size_t i,
			     const struct vc_sample *s, size_t n)
{
	const struct vc_spread *p = &f->spread[base];

	if (n < 2 || !vc_spread_has(p, i)) {
		struct vc_law l = vc_law_fit(s, n, side);

		return vc_spread_doubts(p, &f->m[base], i, &l, n) ? vc_spread_law(s, n, p->all) : l;
	}
	return vc_spread_law(s, n, p->sigma[p->place[i] - 1] / sqrt((double)p->steps));
}

static int read_spreads(struct vc_family *f, struct vc_error *err)
{
	bool asked = !f->spread_read && f->axes == 1 && f->n > 1, any = false;

	for (size_t k = 0; asked && k < f->n; k++) {
		VC_TRY(vc_spread_read(&f->spread[k], &f->m[k], err));
		any |= f->spread[k].varies;
	}
	for (size_t k = 0; asked && k < f->n; k++)
		VC_TRY(vc_spread_settle(&f->spread[k], &f->m[k], any, err));
	f->spread_read = true;
	return VC_OK;
}

static int fit_all(const struct vc_family *f, struct vc_scaling *v, size_t base,
		   struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	struct vc_sample s[64];

	for (size_t a = 0; a < f->axes; a++) {
		v->side[a] = side_of(f, v, base, a);
		for (size_t i = 0; i < b->n; i++) {
			size_t n = samples(f, v, base, a, i, s);
			struct vc_law *l = &v->law[a * b->n + i];

			*l = fit_one(f, base, v->side[a], i, s, n);
			if (l->kind == VC_LAW_ALONE &&
			    vc_family_has_partner(f, base, a)) /* of its part */
				v->origin[i] = VC_ALONE;
		}
		VC_TRY(refit(f, v, base, a, err));
		for (size_t i = 0; i < b->n; i++)
			v->residual = fmax(v->residual, v->law[a * b->n + i].residual /
								(double)b->take[i].size);
	}
	return VC_OK;
}

/* Size of an allocation with laws at the target. Along several axes the factors multiply, except
 * for a common constant part, which stays. */
double vc_scaling_law(const struct vc_family *f, const struct vc_scaling *v, size_t base, size_t i,
		     const double *at)
{
	const struct vc_allocations *b = &f->m[base];
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

double vc_scaling_steep(const struct vc_family *f, const struct vc_scaling *v, size_t base,
			size_t i, const double *at)
{
	const struct vc_allocations *b = &f->m[base];
	double most = 0;

	for (size_t a = 0; a < f->axes; a++) {
		const struct vc_law *l = &v->law[a * b->n + i];
		double up = at[a] / f->x[base][a];

		if (l->power > 0 && up > 1)
			most = fmax(most, (double)b->take[i].size * pow(up, l->power) /
						  vc_law_at(l, at[a]));
	}
	return fmax(1, most);
}

/* Parts of bytes for each unit of a length or for each pixel: it is divided and rounded somewhere
 * (frames of a spectrum, strides), and the law may be one of its units off. */
static bool is_rounded(const struct vc_law *l)
{
	double each = l->c > 0 ? l->c : l->b;

	return l->kind != VC_LAW_CONST && l->kind != VC_LAW_ALONE && l->kind != VC_LAW_STEP &&
	       !(l->d > 0) && !(l->e > 0) && fabs(each - round(each)) > 1e-6 * fmax(1, each);
}

double vc_scaling_miss(const struct vc_family *f, const struct vc_scaling *v, size_t base, size_t i)
{
	const struct vc_allocations *b = &f->m[base];
	double worst = 0;

	for (size_t a = 0; a < f->axes; a++) {
		const struct vc_law *l = &v->law[a * b->n + i];

		/* of a step that is held at its largest, that is the size that it is held at */
		double size = fmax((double)b->take[i].size, vc_law_at(l, f->x[base][a]));

		worst = fmax(worst, l->residual / size);
		if (f->n > 1 && !f->axis[a].counts && is_rounded(l))
			worst = fmax(worst, ROUNDED);
	}
	return worst;
}

static double octaves(uint32_t life)
{
	return life == UINT32_MAX ? 40 : log2(1.0 + life);
}

/* How unlike two allocations of one size are: life, call site and distance. */
static double unlike(const struct vc_allocations *b, size_t i, size_t j)
{
	const struct vc_take *s = &b->take[i], *t = &b->take[j];

	return 2 * fabs(octaves(s->life) - octaves(t->life)) + (s->site == t->site ? 0 : 4) +
	       0.5 * log2(i > j ? (double)(i - j) : (double)(j - i));
}

static bool is_const(const struct vc_family *f, const struct vc_scaling *v, size_t n, size_t i)
{
	for (size_t a = 0; a < f->axes; a++)
		if (v->law[a * n + i].kind != VC_LAW_CONST)
			return false;
	return true;
}

/* The most similar allocation of the same size whose law is known. What comes and goes, and exists
 * at one size only, is a copy of data rather than of a parameter that happens to have its size. */
static void find_twin(const struct vc_family *f, const struct vc_allocations *b,
		      struct vc_scaling *v, size_t i)
{
	size_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < b->n ? i + NEAR : b->n;
	uint32_t best[2] = { VC_UNMATCHED, VC_UNMATCHED };
	double least[2] = { INFINITY, INFINITY };

	for (size_t j = from; j < to; j++) {
		if (b->take[j].size != b->take[i].size || v->origin[j] != VC_BY_LAW || j == i)
			continue;
		bool constant = is_const(f, v, b->n, j);
		double d = unlike(b, i, j) + (constant && b->take[i].life != UINT32_MAX ? 40 : 0);
		if (d < least[constant]) {
			least[constant] = d;
			best[constant] = (uint32_t)j;
		}
	}
	bool pick = least[1] < least[0];
	v->counterpart[i] = best[pick];
	v->other[i] = best[!pick];
}

/* The same allocation of another step, where sizes vary with the data. */
static int find_places(const struct vc_spread *s, const struct vc_allocations *b,
		       struct vc_scaling *v, struct vc_error *err)
{
	uint32_t *known = s->varies ? calloc(s->places + 1, sizeof(*known)) : NULL;

	if (!s->varies)
		return VC_OK;
	VC_HAVE(known, "the steps of a recording", err);
	for (size_t i = b->n; i-- > 0;)
		if (s->place[i] && v->origin[i] == VC_BY_LAW)
			known[s->place[i]] = (uint32_t)i + 1;
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == VC_ALONE && s->place[i] && known[s->place[i]]) {
			v->origin[i] = VC_BY_COUNTERPART;
			v->counterpart[i] = known[s->place[i]] - 1;
			v->other[i] = VC_UNMATCHED;
		}
	free(known);
	return VC_OK;
}

static void find_twins(const struct vc_family *f, const struct vc_allocations *b,
		       struct vc_scaling *v)
{
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == VC_ALONE)
			find_twin(f, b, v, i);
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == VC_ALONE && v->counterpart[i] != VC_UNMATCHED)
			v->origin[i] = VC_BY_COUNTERPART;
}

/* ---- workspace of row sums ---- */

/* Do the other recordings agree that this is a row sum: buffers where the formula has them? */
static bool agreed(const struct vc_family *f, const struct vc_scaling *v,
		   const struct vc_workspace *s, size_t base)
{
	for (size_t k = 0; k < f->n; k++) {
		uint64_t a = 0, b;

		if (k == base || !v->match[k] || v->match[k][s->owner] == VC_UNMATCHED ||
		    v->match[k][s->source] == VC_UNMATCHED)
			continue;
		const struct vc_allocations *o = &f->m[k];
		uint32_t owner = v->match[k][s->owner];
		uint64_t source = o->take[v->match[k][s->source]].size;
		bool has = vc_workspace_follows(o, owner);

		if (vc_workspace_at(s, o->take[owner].size, source, &f->recorded, &a, &b) !=
		    (has && o->take[owner + 1].size == a))
			return false;
	}
	return true;
}

/* Other recordings that sort where this one does not, or the other way round, as the number of
 * indices says; elsewhere it is no gradient of an embedding. */
static bool sorts_agree(const struct vc_family *f, const struct vc_scaling *v,
			const struct vc_sort *s, size_t base)
{
	for (size_t k = 0; k < f->n; k++) {
		const uint32_t *match = v->match[k];

		if (k == base || !match || match[s->owner] == VC_UNMATCHED ||
		    match[s->source] == VC_UNMATCHED)
			continue;
		const struct vc_allocations *o = &f->m[k];
		struct vc_sort there;
		uint64_t indices = o->take[match[s->source]].size / s->per;

		if (vc_sort_needed(s, indices) != vc_sort_at(o, match[s->owner], &there))
			return false;
	}
	return true;
}

static int find_sorts(const struct vc_family *f, struct vc_scaling *v, size_t base,
		      const double *grows, struct vc_error *err)
{
	size_t kept = 0;

	VC_TRY(vc_sort_find(&f->m[base], grows, &v->sorts, err));
	for (size_t i = 0; i < v->sorts.n; i++) {
		struct vc_sort *s = &v->sorts.at[i];

		if (!sorts_agree(f, v, s, base))
			continue;
		for (uint32_t k = 0; s->present && k <= VC_SORT_BLOCKS; k++) {
			uint32_t j = s->owner - VC_SORT_BEFORE + k;
			if (j == s->owner)
				continue;
			v->origin[j] = VC_BY_SORT;
			v->counterpart[j] = (uint32_t)kept;
		}
		v->sorts.at[kept++] = *s;
	}
	v->sorts.n = kept;
	return VC_OK;
}

static int find_scratch(struct vc_family *f, struct vc_scaling *v, size_t base,
			struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	double *grows = calloc(b->n, sizeof(*grows)), further[VC_AXES];
	size_t kept = 0;
	int rc = grows ? 0 : vc_nomem(err, "the row sums of a recording");

	for (size_t a = 0; a < f->axes; a++) /* any other place shows what grows, and how fast */
		further[a] = f->x[base][a] * (1.37 + 0.11 * (double)a);
	for (size_t i = 0; !rc && i < b->n; i++) {
		size_t from = v->origin[i] == VC_BY_COUNTERPART ? v->counterpart[i] : i;
		grows[i] = vc_scaling_law(f, v, base, from, further) / (double)b->take[from].size;
	}
	if (!rc)
		rc = vc_workspace_find(b, grows, &f->recorded, &v->workspace, err);
	for (size_t i = 0; !rc && i < v->workspace.n; i++) {
		struct vc_workspace *s = &v->workspace.at[i];

		if (s->source == VC_UNMATCHED || !agreed(f, v, s, base))
			continue;
		if (s->present)
			v->origin[s->owner + 1] = v->origin[s->owner + 2] = VC_BY_ROWS;
		v->workspace.at[kept++] = *s;
	}
	v->workspace.n = kept;
	if (!rc)
		rc = find_sorts(f, v, base, grows, err);
	free(grows);
	return rc;
}

/* ---- a view ---- */

/* The same in one recording, where the parameter is a number of samples. */
static int find_lengths_alone(const struct vc_family *f, struct vc_scaling *v, struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[0];
	bool *moves = f->axis[0].counts ? malloc(b->n + 1) : NULL;
	int rc = 0;

	if (!f->axis[0].counts)
		return 0;
	for (size_t i = 0; moves && i < b->n; i++)
		moves[i] = v->single[i] != VC_SINGLE_STAYS && v->single[i] != VC_SINGLE_HOLDS;
	rc = moves ? vc_lengths_alone(&v->lengths, b, moves, err) :
		     vc_nomem(err, "the steps of a recording");
	free(moves);
	return rc;
}

/* Steps as long as their samples happen to be, along the only parameter. */
static int find_lengths(const struct vc_family *f, struct vc_scaling *v, size_t base,
			struct vc_error *err)
{
	double x[64];
	const struct vc_lengths_of o = { .m = f->m, .n = f->n, .x = x, .match = v->match,
					 .plan = f->plan[base] };

	if (f->axes == 1 && f->n == 1)
		return find_lengths_alone(f, v, err);
	if (f->axes != 1 || f->n < 2 || f->n > sizeof(x) / sizeof(*x) || f->spread[base].varies)
		return 0;
	for (size_t k = 0; k < f->n; k++)
		x[k] = f->x[k][0];
	return vc_lengths_read(&v->lengths, &o, base, err);
}

/* A family of one recording. */
static int settle_alone(const struct vc_family *f, struct vc_scaling *v, struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[0];

	v->single = calloc(b->n * f->axes, sizeof(*v->single));
	VC_HAVE(v->single, "the family of recordings", err);
	for (size_t a = 0; a < f->axes; a++) {
		uint8_t *how = v->single + a * b->n;

		VC_TRY(vc_single_settle(b, f->axis[a].name, f->x[0][a], how, err));
		for (size_t i = 0; i < b->n; i++) {
			double size = (double)b->take[i].size;
			bool grows = how[i] == VC_SINGLE_MOVES || how[i] == VC_SINGLE_GROWS ||
				     how[i] == VC_SINGLE_DATA;

			v->law[a * b->n + i] =
				grows ? (struct vc_law){ .kind = VC_LAW_LINEAR,
							.b = size / f->x[0][a] } :
					(struct vc_law){ .kind = VC_LAW_CONST, .a = size };
			if (how[i] != VC_SINGLE_STAYS && how[i] != VC_SINGLE_GROWS)
				v->origin[i] = VC_OPEN;
			else if (v->origin[i] != VC_OPEN)
				v->origin[i] = VC_BY_LAW;
		}
	}
	return VC_OK;
}

static int need_parts(struct vc_family *f, size_t base, struct vc_error *err)
{
	int rc = vc_scaling_parts(f, base, err);

	if (rc || f->view[base].parted)
		return rc;
	return vc_fail(err, VC_EUSAGE, "the recordings differ in several parameters at once, and "
		       "%s shows no evaluation that would tell them apart; give recordings that "
		       "differ in one", vc_allocations_from(&f->m[base]));
}

static int one_configuration(const struct vc_family *f, size_t base, struct vc_error *err)
{
	if (f->n < 2 || f->view[base].share >= SHARE_NEEDED || f->force)
		return VC_OK;
	return vc_fail(err, VC_EUSAGE, "the recordings are not of one configuration: %.0f %% of "
		       "the bytes of %s have no counterpart (another dtype, model or kernel?)",
		       100 * (1 - f->view[base].share), vc_allocations_from(&f->m[base]));
}

/* What a view knows, but for what all views share. */
static int settle(void *arg, size_t base, struct vc_error *err)
{
	struct vc_family *f = arg;
	const struct vc_allocations *b = &f->m[base];
	struct vc_scaling *v = &f->view[base];

	if (v->settled)
		return VC_OK;
	VC_TRY(vc_matching_loops(f, v, base, err));
	VC_TRY(fit_all(f, v, base, err));
	if (f->n == 1 && f->axes)
		VC_TRY(settle_alone(f, v, err));
	VC_TRY(find_places(&f->spread[base], b, v, err));
	find_twins(f, b, v);
	settle_loops(v, b->n);
	VC_TRY(find_lengths(f, v, base, err));
	VC_TRY(find_scratch(f, v, base, err));
	vc_scaling_account(b, &f->spread[base], f->plan[base], v);
	for (size_t i = 0; i < b->n && !v->rounds; i++)
		v->rounds = v->origin[i] == VC_BY_LAW && vc_scaling_miss(f, v, base, i) > 0;
	v->settled = true;
	return VC_OK;
}

int vc_scaling_open(struct vc_family *f, size_t base, struct vc_error *err)
{
	struct vc_scaling *v = &f->view[base];
	struct vc_work all = { .n = f->n, .arg = f, .job = settle };

	if (v->ready)
		return one_configuration(f, base, err);
	all.threads = vc_workers_most(THREADS);
	if (f->tied)
		VC_TRY(need_parts(f, base, err));
	VC_TRY(vc_matching_all(f, base, err));
	VC_TRY(read_spreads(f, err));
	VC_TRY(f->tied ? settle(f, base, err) : vc_workers_run(&all, err));
	for (size_t a = 0; a < f->axes; a++)
		f->axis[a].side = v->side[a];
	v->ready = true;
	return one_configuration(f, base, err);
}
