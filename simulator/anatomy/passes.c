/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c - backward passes by names of call sites: how many an iteration has, and iterations and
 * micro-batches told by them.
 *
 * An optimizer need not ask for memory in each of its steps: SGD makes its momentum in the first
 * one only, and RAdam does less in its first five (Liu et al. 2020, section 4). */
#include "simulator/anatomy/period.h"

#include "common/vec.h"

/* The train step's forward pass begins at the last moment before its backward pass at which live
 * memory was as low as it gets since the last step (evaluation comes back to that as well). */
size_t vc_forward_start(const struct vc_anatomy_work *w, size_t from, size_t backward)
{
	uint64_t lo = UINT64_MAX;
	size_t at = from;

	for (size_t i = from; i < backward; i++)
		lo = w->before[i] < lo ? w->before[i] : lo;
	for (size_t i = from; i < backward; i++)
		if (w->before[i] <= lo + VC_SLACK / 2)
			at = i;
	/* A step back to what was asked for while memory was that low: the batch itself. */
	while (at > from && w->before[at - 1] <= lo + VC_SLACK / 2)
		at--;
	return at;
}

/* Backward passes in the first step, where the only step of an optimizer that asks for anything
 * ended with block `end` and many passes follow (SGD makes its momentum, a fused Adam its states
 * there); 0: they do not. */
size_t vc_passes_each(const struct vc_anatomy_work *w, size_t end)
{
	size_t behind = vc_onestep_backwards(w, end), first = vc_onestep_backwards(w, 0) - behind;

	return first && behind > 1 && behind >= 2 * first ? first : 0;
}

/* The first block behind so many backward passes, and their optimizer, from `from` on; the first
 * of them begins at *backward. SIZE_MAX: there are not so many. */
static size_t passes_end(const struct vc_anatomy_work *w, size_t from, size_t each,
			 size_t *backward)
{
	size_t passes = 0;
	bool inside = false;

	*backward = SIZE_MAX;
	for (size_t i = from; i < w->a->n; i++) {
		enum vc_role role = vc_named_role(w, i);

		if (role == VC_ROLE_BACKWARD) {
			passes += !inside;
			inside = true;
			*backward = *backward == SIZE_MAX ? i : *backward;
		} else if (role == VC_ROLE_NONE && vc_named_by_program(w, i)) {
			if (passes >= each)
				return i;
			inside = false;
		}
	}
	return passes >= each ? w->a->n : SIZE_MAX;
}

/* An optimizer that is silent but for its first step: an iteration is so many backward passes. */
int vc_by_passes(struct vc_anatomy_work *w, size_t each, size_t *ends, size_t *shortest,
		     struct vc_error *err)
{
	size_t end = 0, next, backward;

	w->starts = *ends = 0;
	w->passes = each;
	*shortest = SIZE_MAX;
	while ((next = passes_end(w, end, each, &backward)) != SIZE_MAX) {
		size_t from = vc_forward_start(w, end, backward);

		VC_TRY(vc_period_start(w, from, err));
		*shortest = next - from < *shortest ? next - from : *shortest;
		end = next;
		++*ends;
	}
	return VC_OK;
}

size_t vc_named_end(const struct vc_anatomy_work *w, size_t from, size_t next)
{
	for (size_t i = next; i-- > from;)
		if (vc_named_role(w, i) == VC_ROLE_OPTIMIZER)
			return i + 1;
	size_t backward, end = w->passes ? passes_end(w, from, w->passes, &backward) : next;
	return end < next ? end : next;
}

bool vc_pass_next(const struct vc_anatomy_work *w, size_t from, size_t to, struct vc_pass *p)
{
	*p = (struct vc_pass){ SIZE_MAX, to };
	for (size_t i = from; i < to; i++) {
		bool inside = vc_named_role(w, i) == VC_ROLE_BACKWARD;

		if (p->first == SIZE_MAX && inside)
			p->first = i;
		if (p->first != SIZE_MAX && !inside && vc_named_by_program(w, i)) {
			p->end = i;
			break;
		}
	}
	return p->first != SIZE_MAX;
}

static uint64_t site(const struct vc_anatomy_work *w, size_t block)
{
	return vc_site_leaf(w->meta, w->ev[w->a->block[block].event].site);
}

/* The blocks of two stretches are asked for at the same places, from their ends on; up to
 * VC_SIGNATURE others in between. */
static bool same_places(const struct vc_anatomy_work *w, struct vc_pass x, struct vc_pass y)
{
	size_t n = x.end - x.first, m = y.end - y.first, shorter = n < m ? n : m, good = 0;

	while (x.end > x.first && y.end > y.first) {
		size_t d = 0;

		if (site(w, x.end - 1) == site(w, y.end - 1)) {
			good++;
		} else {
			for (d = 1; d < VC_SIGNATURE; d++) {
				if (x.end - x.first > d &&
				    site(w, x.end - 1 - d) == site(w, y.end - 1)) {
					x.end -= d;
					break;
				}
				if (y.end - y.first > d &&
				    site(w, x.end - 1) == site(w, y.end - 1 - d)) {
					y.end -= d;
					break;
				}
			}
			if (d < VC_SIGNATURE)
				continue;
		}
		x.end--;
		y.end--;
	}
	return shorter >= VC_SIGNATURE && good * 4 >= shorter * 3 && shorter * 2 >= n &&
	       shorter * 2 >= m;
}

size_t vc_pass_starts(const struct vc_anatomy_work *w, size_t from, size_t end, size_t *start,
		      size_t room)
{
	struct vc_pass first, p;
	size_t n = 0;

	if (!vc_pass_next(w, from, end, &first))
		return 0;
	for (size_t at = first.end; n < room && vc_pass_next(w, at, end, &p); at = p.end) {
		if (!same_places(w, (struct vc_pass){ from, first.first },
				 (struct vc_pass){ at, p.first }))
			return 0;
		start[n++] = at;
	}
	return n;
}

/* ---- optimizers that are silent in some of their steps ---- */

static size_t count(const struct vc_anatomy_work *w, size_t from, size_t end)
{
	struct vc_pass p;
	size_t n = 0;

	for (size_t at = from; vc_pass_next(w, at, end, &p); at = p.end)
		n++;
	return n;
}

/* The backward passes that more than half of the iterations have; 0: none. */
static size_t usual(const size_t *passes, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		size_t same = 0;

		for (size_t j = 0; j < n; j++)
			same += passes[j] == passes[k];
		if (same * 2 > n)
			return passes[k];
	}
	return 0;
}

/* The iteration [from, end) as iterations of so many passes each; where its passes are not alike
 * it stays one. */
static int split(struct vc_anatomy_work *w, size_t from, size_t end, size_t each,
		 struct vc_error *err)
{
	size_t n = count(w, from, end), *start = calloc(n + 1, sizeof(*start));
	int r = VC_OK;

	VC_HAVE(start, "the iterations of a trace", err);
	size_t found = vc_pass_starts(w, from, end, start, n);
	for (size_t k = each; r == VC_OK && found && k < n; k += each) {
		struct vc_pass p;

		vc_pass_next(w, start[k - 1], end, &p);
		r = vc_period_start(w, vc_forward_start(w, start[k - 1], p.first), err);
		w->passes = each;
	}
	free(start);
	return r;
}

int vc_silent_steps(struct vc_anatomy_work *w, struct vc_error *err)
{
	size_t n = w->starts, *start = w->start, *passes = calloc(n + 1, sizeof(*passes));
	int r = VC_OK;

	VC_HAVE(passes, "the iterations of a trace", err);
	for (size_t k = 0; k < n; k++)
		passes[k] = count(w, start[k], k + 1 < n ? start[k + 1] : w->a->n);
	size_t each = usual(passes, n);
	w->start = NULL;
	w->starts = 0;
	for (size_t k = 0; r == VC_OK && k < n; k++) {
		r = vc_period_start(w, start[k], err);
		if (r == VC_OK && each && passes[k] > each && passes[k] % each == 0)
			r = split(w, start[k], k + 1 < n ? start[k + 1] : w->a->n, each, err);
	}
	VC_FREE(start, passes);
	return r;
}
