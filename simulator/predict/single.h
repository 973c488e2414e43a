/* SPDX-License-Identifier: Apache-2.0 */
/* single.h - what one recording alone says about its sizes at another value: hardly ever a size,
 * mostly two between which it lies. */
#ifndef VC_SINGLE_H
#define VC_SINGLE_H

#include "simulator/predict/family.h"
#include "simulator/predict/allocations.h"

enum vc_single {
	VC_SINGLE_STAYS, /* parameters, gradients, the optimizer's blocks */
	VC_SINGLE_HOLDS, /* open: probably stays */
	VC_SINGLE_PAIRS,
	VC_SINGLE_TRIPLES, /* open: as large as all pairs, or triples, of samples */
	VC_SINGLE_SQUARE,  /* grows, perhaps with the square: what goes to an expert with a
			    * capacity */
	VC_SINGLE_MOVES,   /* open: probably grows with the parameter */
	VC_SINGLE_GROWS,   /* in proportion */
	VC_SINGLE_DATA,    /* in proportion when it grows, open when it shrinks: kept for the
			    * backward pass, and no cast of a parameter, but where everything
			    * divides by the value or has a parameter's size */
};

/* Does the name say that a parameter counts samples (a batch size)? */
bool vc_single_counts(const char *name);

/* how[i], enum vc_single, for every allocation of the recording made at value x of the parameter
 * `name`. Errors: VC_ENOMEM. */
int vc_single_settle(const struct vc_allocations *m, const char *name, double x, uint8_t *how,
		     struct vc_error *err);

/* By what factor such a block grows when the parameter goes from x to `at`. */
double vc_single_factor(enum vc_single how, const char *name, double x, double at,
			enum vc_bound bound);

#endif
