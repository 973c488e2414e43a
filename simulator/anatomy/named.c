/* SPDX-License-Identifier: Apache-2.0 */
/* named.c - iterations by names of call sites: a backward pass, then the optimizer. */
#include "common/torch_names.h"
#include "simulator/anatomy/period.h"


/* What comes before the first forward pass is not of the first iteration. */
bool vc_named_first(struct vc_anatomy_work *w)
{
	for (size_t k = 1; k < w->starts && k < 4; k++)
		for (size_t i = 0; i + VC_SIGNATURE < w->start[1]; i++)
			if (w->before[i] <= w->before[w->start[1]] + VC_SLACK &&
			    vc_alike_with_gaps(w, i, w->start[k]) >= VC_SIGNATURE - 1) {
				w->start[0] = i;
				return true;
			}
	return false;
}

/* Live memory need not be lower where a step begins than in an evaluation before it: a forward pass
 * that is longer than the others begins where it looks like the shortest of them. Gives the length
 * of the shortest iteration. */
static size_t skip_evaluations(struct vc_anatomy_work *w)
{
	size_t model = 0, least = SIZE_MAX, shortest = SIZE_MAX;
	struct vc_pass p;

	for (size_t k = 1; k < w->starts; k++)
		if (vc_pass_next(w, w->start[k], w->a->n, &p) && p.first - w->start[k] < least) {
			model = w->start[k];
			least = p.first - model;
		}
	for (size_t k = 0; k < w->starts; k++) {
		size_t next = k + 1 < w->starts ? w->start[k + 1] : w->a->n, at = SIZE_MAX,
		       off = least / 16 + 2;

		if (k && vc_pass_next(w, w->start[k], next, &p) &&
		    p.first - w->start[k] > least + off)
			for (size_t i = w->start[k]; i < p.first; i++) {
				size_t length = p.first - i,
				       d = length > least ? length - least : least - length;

				if (d < off &&
				    vc_alike_with_gaps(w, i, model) >= VC_SIGNATURE - 1) {
					off = d;
					at = i;
				}
			}
		w->start[k] = at != SIZE_MAX ? at : w->start[k];
		size_t length = vc_named_end(w, w->start[k], next) - w->start[k];
		shortest = length < shortest ? length : shortest;
	}
	return shortest;
}

/* Backward pass, then the optimizer: an iteration ends with the last allocation of the optimizer.
 */
int vc_named_iterations(struct vc_anatomy_work *w, struct vc_error *err)
{
	size_t end = 0, backward = SIZE_MAX, optimizer = SIZE_MAX, ends = 0, shortest = SIZE_MAX;
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < w->a->n; i++) {
		enum vc_role role = vc_named_role(w, i);

		if (role == VC_ROLE_OPTIMIZER && backward != SIZE_MAX)
			optimizer = i;
		else if (role == VC_ROLE_OPTIMIZER && !ends)
			end = i + 1; /* of a step that began before the recording */
		if (role == VC_ROLE_BACKWARD && backward == SIZE_MAX)
			backward = i;
		bool last = i + 1 == w->a->n;
		if (optimizer == SIZE_MAX || (!last && (i == optimizer || i < optimizer + 2)))
			continue;
		if (!last && vc_named_role(w, i) == VC_ROLE_OPTIMIZER)
			continue;
		size_t from = vc_forward_start(w, end, backward);
		r = vc_period_start(w, from, err);
		shortest = optimizer + 1 - from < shortest ? optimizer + 1 - from : shortest;
		end = optimizer + 1;
		ends++;
		backward = optimizer = SIZE_MAX;
	}
	if (r == VC_OK && !ends && backward != SIZE_MAX && vc_onestep_backwards(w, 0) == 1) {
		/* An optimizer that asks for nothing: the recording ends with its step. */
		r = vc_period_start(w, vc_forward_start(w, 0, backward), err);
		shortest = w->a->n - w->start[0];
		ends = 1;
		end = w->a->n;
	}
	size_t each = r == VC_OK && ends == 1 ? vc_passes_each(w, end) : 0;
	if (each)
		r = vc_by_passes(w, each, &ends, &shortest, err);
	if (r < 0 || !ends) {
		w->starts = 0;
		return r;
	}
	if (ends == 1) {
		w->start[0] = vc_onestep_start(w, w->start[0], end);
	} else {
		vc_named_first(w);
		end = vc_named_end(w, w->start[0], w->start[1]);
		w->start[0] = vc_onestep_start(w, w->start[0], end);
		VC_TRY(vc_silent_steps(w, err));
		shortest = skip_evaluations(w);
	}
	w->lag = ends == 1 ? end - w->start[0] : shortest;
	w->named = true;
	w->a->from = "names of call sites";
	w->a->confidence = ends == 1 ? 0.85 : 0.95;
	return r;
}
