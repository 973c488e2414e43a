/* SPDX-License-Identifier: Apache-2.0 */
/* left_out.c - marks of steps: several optimizers in one, and steps that a gradient scaler leaves
 * out.
 *
 * GradScaler calls the optimizer only where no gradient has overflowed (torch/amp/grad_scaler.py,
 * _maybe_opt_step). Its first scale is meant to be too large, so the first steps of a run have no
 * mark of the optimizer, though they have a forward and a backward pass like the others. */
#include "common/torch_names.h"
#include "simulator/anatomy/period.h"

#include "common/vec.h"

/* Nothing but optimizers between two marks: they are steps of several in one iteration. */
static bool same_step(const struct vc_anatomy_work *w, size_t from, size_t to)
{
	size_t others = 0;

	for (size_t i = from; i < to; i++)
		others += vc_named_role(w, i) != VC_ROLE_OPTIMIZER;
	return others < VC_SHORTEST;
}

int vc_step_marks(const struct vc_anatomy_work *w, size_t **mark, size_t *n, struct vc_error *err)
{
	size_t block = 0;

	*mark = NULL;
	*n = 0;
	for (size_t i = 0; i < w->n; i++) {
		while (block < w->a->n && w->a->block[block].event < i)
			block++;
		if (w->ev[i].kind != VC_EV_MARK || w->ev[i].flags != VC_MARK_STEP ||
		    w->ev[i].device != w->device)
			continue;
		if (*n && same_step(w, (*mark)[*n - 1], block))
			--*n;
		VC_HAVE(vc_vec_one(*mark, *n), "the marks of a trace", err);
		(*mark)[(*n)++] = block;
	}
	return VC_OK;
}

/* Which iteration a mark ends is what block comes next: the iterations that have one. False: two
 * in one, so names do not see what marks do. */
static bool count(const struct vc_anatomy_work *w, const size_t *mark, size_t n, bool *marked)
{
	for (size_t i = 0, k = 0; i < n; i++) {
		while (k + 1 < w->starts && mark[i] > w->start[k + 1])
			k++;
		if (mark[i] <= w->start[0])
			continue;
		if (marked[k])
			return false;
		marked[k] = true;
	}
	return true;
}

bool vc_steps_left_out(const struct vc_anatomy_work *w, const size_t *mark, size_t n)
{
	size_t frames = w->meta ? w->meta->frames : 0;
	bool *marked = calloc(w->starts + 1, sizeof(*marked)),
	     *steps = calloc(frames + 1, sizeof(*steps)), /* the optimizer itself, by call site */
	     all = marked && steps && frames && count(w, mark, n, marked);

	for (size_t i = 1; all && i < frames; i++) {
		uint32_t parent = w->meta->frame[i].parent;

		steps[i] = (parent < i && steps[parent]) ||
			   vc_frame_roles(w->meta, (uint32_t)i, VC_NAME_OPTIM);
	}
	for (size_t k = 0; all && k < w->starts; k++) {
		size_t end = k + 1 < w->starts ? w->start[k + 1] : w->end;

		for (size_t i = w->start[k]; all && !marked[k] && i < end; i++) {
			uint32_t site = w->ev[w->a->block[i].event].site;

			all = site >= frames || !steps[site];
		}
	}
	VC_FREE(marked, steps);
	return all;
}
