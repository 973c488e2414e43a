/* SPDX-License-Identifier: Apache-2.0 */
/* plans.h - workspace by plan: what a convolution or a recurrent layer borrows for one call. The
 * library picks one of several ways to compute it (cuDNN calls them plans), another one at another
 * size, and each needs another workspace or none: no law holds it. */
#ifndef VC_PLANS_H
#define VC_PLANS_H

#include "simulator/predict/allocations.h"
#include "simulator/predict/family.h"

/* Say which allocations are such workspace, if the program has such layers: *layers is set where
 * one asks for it by name, and where there are convolutions. Errors: VC_ENOMEM. */
int vc_plans_mark(const struct vc_allocations *m, bool *plan, bool *layers, struct vc_error *err);

/* Match the workspace of a, which an alignment left out, with that of b: the one behind the same
 * block. */
void vc_plans_match(const struct vc_allocations *a, const bool *in_a,
		    const struct vc_allocations *b, const bool *in_b, uint32_t *match);

/* Is that law, through so many recordings, one of a plan? A line through two is where each unit
 * takes whole bytes, or where it is one in the square of a side. What grew faster than in
 * proportion, or shrank, is of two plans: the line through them says nothing beyond both. */
bool vc_plans_shows(const struct vc_law *l, size_t recordings);

/* How many in a hundred kinds of workspace whose law is that, through so many recordings, are as it
 * says elsewhere: many where the recordings show one plan, 0 where they do not. */
unsigned vc_plans_kept(const struct vc_law *l, size_t recordings);

/* And of those that cuDNN names for a card that is not there, where a card ran the recordings. */
enum { VC_PLANS_NAMED = 90 };

/* By what factor workspace is another than its law says in the `draw`-th draw, the same for all
 * blocks of so many bytes, of which `kept` in a hundred are as it says; draw 0: all are. */
double vc_plans_factor(unsigned draw, uint64_t bytes, unsigned kept);

#endif
