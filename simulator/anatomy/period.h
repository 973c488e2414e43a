/* SPDX-License-Identifier: Apache-2.0 */
/* period.h - the half of anatomy.c that looks for repetition. */
#ifndef VC_PERIOD_H
#define VC_PERIOD_H

#include "simulator/anatomy/anatomy.h"

enum {
	VC_SIGNATURE = 6,    /* allocations by which a boundary is recognised */
	VC_SHORTEST = 12,    /* allocations of the shortest iteration */
	VC_SLACK = 1 << 20,  /* bytes by which live memory may differ between equal moments */
};

enum vc_role { VC_ROLE_NONE, VC_ROLE_BACKWARD, VC_ROLE_OPTIMIZER }; /* what a call site says */

struct vc_anatomy_work {
	struct vc_anatomy *a;
	const struct vc_event *ev;
	size_t n;
	const struct vc_meta *meta;
	uint64_t *token, *before;  /* per block: what it is; live bytes just before it */
	uint8_t *role;             /* per site: enum vc_role */
	size_t *start;             /* blocks at which iterations begin */
	size_t starts, lag;
	size_t end;                /* block at which the last of them ends at the latest */
	uint16_t device;
	bool named;
	size_t passes; /* backward passes of an iteration whose optimizer asks for nothing; 0: it
			  does */
};

/* Sets w->lag, 0 when nothing repeats. */
void vc_period_lag(struct vc_anatomy_work *w, struct vc_error *err);
/* Fills w->start and the confidence. */
int vc_period_boundaries(struct vc_anatomy_work *w, struct vc_error *err);
int vc_period_start(struct vc_anatomy_work *w, size_t block, struct vc_error *err);
/* How many of the next allocations after i and j agree, others in between allowed at i. */
unsigned vc_alike_with_gaps(const struct vc_anatomy_work *w, size_t i, size_t j);

/* single_step.c: recordings of one step, told by call sites. How many backward passes they name
 * from block `from` on; and where the forward pass of the step begins that ends before block
 * `end`: behind the parameters, where the recording saw them made, else at `guess`. */
size_t vc_onestep_backwards(const struct vc_anatomy_work *w, size_t from);
size_t vc_onestep_start(const struct vc_anatomy_work *w, size_t guess, size_t end);

/* left_out.c: do the named iterations without a mark lack their optimizer, and has none of the
 * others two marks? Then marks say less than names. */
bool vc_steps_left_out(const struct vc_anatomy_work *w);

/* categories.c: the category of every block; spans and blocks are known. */
void vc_purposes(struct vc_anatomy *a);

#endif
