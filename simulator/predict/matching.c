/* SPDX-License-Identifier: Apache-2.0 */
/* matching.c - see matching.h */
#include "simulator/predict/matching.h"

#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "common/workers.h"
#include "simulator/predict/align.h"
#include "simulator/predict/turns.h"

enum { THREADS = 4 };

/* ---- which recordings say something about each other ---- */

/* Does an axis act on what belongs to `part`? */
bool vc_matching_acts(const struct vc_family *f, size_t axis, enum vc_mode part)
{
	return f->axis[axis].part == VC_MODE_ALL || part == VC_MODE_ALL ||
	       f->axis[axis].part == part;
}

/* What stands before the first step is constant nearly always: what is not goes with training. */
enum vc_mode vc_matching_part(const struct vc_family *f, const struct vc_scaling *v, size_t i)
{
	if (!f->tied)
		return VC_MODE_ALL;
	return v->part[i] == VC_MODE_EVAL ? VC_MODE_EVAL : VC_MODE_TRAIN;
}

/* The only axis of a part on which two recordings differ, or axes when they differ on several or
 * none. */
size_t vc_matching_only_axis(const struct vc_family *f, size_t i, size_t j, enum vc_mode part)
{
	size_t found = f->axes;

	for (size_t a = 0; a < f->axes; a++)
		if (f->x[i][a] != f->x[j][a] && vc_matching_acts(f, a, part)) {
			if (found != f->axes)
				return f->axes;
			found = a;
		}
	return found;
}

bool vc_family_has_partner(const struct vc_family *f, size_t i, size_t axis)
{
	enum vc_mode part = f->axis[axis].part;

	for (size_t k = 0; k < f->n; k++)
		if (k != i && vc_matching_only_axis(f, i, k, part) == axis)
			return true;
	return false;
}

/* ---- block by block ---- */

/* Match the base with recording k, where all or a part of it differs in one parameter. Buffers of
 * sums stand beside what they belong to; looped: without the turns of loops that k has not. */
static int align_with(const struct vc_family *f, struct vc_scaling *v, size_t base, size_t k,
		      bool looped, struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base], *m = &f->m[k];
	double ratio[2] = { 1, 1 };
	size_t n = 0;

	for (enum vc_mode part = VC_MODE_ALL; part <= VC_MODE_EVAL; part++) {
		size_t axis = vc_matching_only_axis(f, base, k, part);

		if (axis == f->axes || (n && ratio[0] == f->x[k][axis] / f->x[base][axis]))
			continue;
		ratio[n++] = f->x[k][axis] / f->x[base][axis];
		if (part == VC_MODE_ALL)
			break;
	}
	bool *skip = n ? calloc(b->n + m->n + 2, sizeof(*skip)) : NULL, *there = skip + b->n + 1;
	uint32_t *match = v->match[k] ? v->match[k] :
			  n           ? malloc((b->n + 1) * sizeof(*match)) :
					NULL;

	v->match[k] = match;
	if (!n)
		return 0;
	if (!skip || !match) {
		free(skip);
		return vc_nomem(err, "the alignment of two recordings");
	}
	vc_workspace_mark(b, &f->recorded, skip);
	vc_workspace_mark(m, &f->recorded, there);
	for (size_t i = 0; i < b->n; i++)
		skip[i] |= f->plan[base][i];
	for (size_t i = 0; i < m->n; i++)
		there[i] |= f->plan[k][i];
	if (looped && !v->counted)
		vc_loops_skip(&v->loops, f->x[base][0] - f->x[k][0], skip);
	if (v->counted) {
		vc_loops_once(&f->loops[base], skip);
		vc_loops_once(&f->loops[k], there);
	}
	int rc = vc_align_some(b->take, b->n, skip, m->take, m->n, there, ratio[0], ratio[1],
			       match, err);
	if (!rc)
		vc_plans_match(b, f->plan[base], m, f->plan[k], match);
	if (v->loops.n || v->counted) { /* turns have no buffers beside them */
		memset(skip, 0, (b->n + m->n + 2) * sizeof(*skip));
		vc_workspace_mark(b, &f->recorded, skip);
		vc_workspace_mark(m, &f->recorded, there);
	}
	for (size_t i = 0; !rc && i + 2 < b->n; i++)
		for (uint32_t d = 1; d <= 2 && match[i] != VC_UNMATCHED && skip[i + 1] &&
		     there[match[i] + 1]; d++)
			match[i + d] = match[i] + d;
	free(skip);
	return rc;
}

/* Loops that turn as often as a law of the only parameter says. */
static int read_turns(struct vc_family *f, struct vc_error *err)
{
	double *x = f->turn_x;

	if (f->loops || f->axes != 1 || f->n < 2 || f->n > VC_TURN_RECORDINGS)
		return VC_OK;
	f->loops = calloc(f->n, sizeof(*f->loops));
	VC_HAVE(f->loops, "the loops of recordings", err);
	for (size_t k = 0; k < f->n; k++)
		x[k] = f->x[k][0];
	VC_TRY(vc_turns_find(f->m, x, f->n, f->loops, err));
	for (size_t k = 0; k < f->n; k++)
		f->counted |= f->loops[k].n > 0;
	if (!f->counted)
		return VC_OK;
	return vc_full_turns_new(f->m, f->loops, x, f->n, &f->full, err);
}

/* Loops that the base turns more often than the next smaller recording: compared with each other
 * one as if it did not. */
int vc_matching_loops(const struct vc_family *f, struct vc_scaling *v, size_t base,
		      struct vc_error *err)
{
	double x = f->x[base][0];
	size_t next = f->n;

	if (f->axes != 1 || f->n < 2 || v->counted)
		return 0;
	for (size_t k = 0; k < f->n; k++)
		if (f->x[k][0] < x && (next == f->n || f->x[k][0] > f->x[next][0]))
			next = k;
	if (next < f->n)
		VC_TRY(vc_loops_find(&f->m[base], x, &f->m[next], f->x[next][0], v->match[next],
				     &v->loops, err));
	for (size_t k = 0; v->loops.n && k < f->n; k++)
		if (f->x[k][0] < x)
			VC_TRY(align_with(f, v, base, k, true, err));
	return VC_OK;
}

/* Room for what a view knows. */
static int begin_view(const struct vc_family *f, size_t base, struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	struct vc_scaling *v = &f->view[base];

	if (v->other)
		return VC_OK;
	v->match = v->match ? v->match : calloc(f->n, sizeof(*v->match));
	v->law = v->law ? v->law : calloc(b->n * (f->axes ? f->axes : 1), sizeof(*v->law));
	v->origin = v->origin ? v->origin : calloc(b->n, sizeof(*v->origin));
	v->counterpart = v->counterpart ? v->counterpart : calloc(b->n, sizeof(*v->counterpart));
	VC_HAVE(v->match && v->law && v->origin && v->counterpart &&
			(v->other = calloc(b->n, sizeof(*v->other))),
		"the family of recordings", err);
	v->counted = f->counted;
	v->loops = f->counted ? f->loops[base] : v->loops;
	return VC_OK;
}

struct aligning { struct vc_family *f; size_t from; };

static int align_one(void *arg, size_t i, struct vc_error *err)
{
	const struct aligning *a = arg;
	size_t base = a->from + i / a->f->n, k = i % a->f->n;

	return k == base ? VC_OK : align_with(a->f, &a->f->view[base], base, k, false, err);
}

int vc_matching_all(struct vc_family *f, size_t base, struct vc_error *err)
{
	struct aligning a = { .f = f, .from = f->tied ? base : 0 };
	const struct vc_work work = { .n = (f->tied ? 1 : f->n) * f->n, .arg = &a,
				      .job = align_one, .threads = vc_workers_most(THREADS) };

	if (f->aligned)
		return VC_OK;
	VC_TRY(read_turns(f, err));
	for (size_t k = a.from; k < (f->tied ? base + 1 : f->n); k++)
		VC_TRY(begin_view(f, k, err));
	VC_TRY(vc_workers_run(&work, err));
	f->aligned = !f->tied;
	return VC_OK;
}
