/* SPDX-License-Identifier: Apache-2.0 */
/* period.h - the half of anatomy.c that looks for repetition. */
#pragma once

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

/* roles.c: what the sites of all blocks say; what that of one says, and whether it names a line of
 * the program; a site as a number: its innermost line. */
int vc_named_roles(struct vc_anatomy_work *w, struct vc_error *err);
enum vc_role vc_named_role(const struct vc_anatomy_work *w, size_t block);
bool vc_named_by_program(const struct vc_anatomy_work *w, size_t block);
uint64_t vc_site_leaf(const struct vc_meta *m, uint32_t site);

/* named.c: iterations by names of call sites (none: w->starts is 0), and the first of iterations
 * found otherwise (false: there is none before the second). */
int vc_named_iterations(struct vc_anatomy_work *w, struct vc_error *err);
bool vc_named_first(struct vc_anatomy_work *w);

struct vc_pass { size_t first, end; }; /* blocks [first, end) */

/* passes.c. The next backward pass in blocks [from, to); false: there is none. */
bool vc_pass_next(const struct vc_anatomy_work *w, size_t from, size_t to, struct vc_pass *p);
/* Where what leads to the further backward passes of [from, end) begins, up to `room` of them; 0:
 * they are not alike. */
size_t vc_pass_starts(const struct vc_anatomy_work *w, size_t from, size_t end, size_t *start,
		      size_t room);
/* The block at which the forward pass begins that leads to block `backward`, from `from` on. */
size_t vc_forward_start(const struct vc_anatomy_work *w, size_t from, size_t backward);
/* How many passes an iteration has whose only optimizer step that is named ends with block `end`
 * (0: cannot be told), and the iterations by that; *ends of them, the shortest that long. */
size_t vc_passes_each(const struct vc_anatomy_work *w, size_t end);
int vc_by_passes(struct vc_anatomy_work *w, size_t each, size_t *ends, size_t *shortest,
		 struct vc_error *err);
/* An iteration with several times as many passes as most is so many iterations. */
int vc_silent_steps(struct vc_anatomy_work *w, struct vc_error *err);
/* The block at which the iteration ends that begins with block `from`, before the next. */
size_t vc_named_end(const struct vc_anatomy_work *w, size_t from, size_t next);

/* single_step.c: recordings of one step, told by call sites. How many backward passes they name
 * from block `from` on; and where the forward pass of the step begins that ends before block
 * `end`: behind the parameters, where the recording saw them made, else at `guess`. */
size_t vc_onestep_backwards(const struct vc_anatomy_work *w, size_t from);
size_t vc_onestep_start(const struct vc_anatomy_work *w, size_t guess, size_t end);

/* left_out.c: the blocks before which steps are marked, those of several optimizers in one step as
 * one; the caller frees *mark. Do the named iterations without a mark lack their optimizer, and has
 * none of the others two marks? Then marks say less than names. */
int vc_step_marks(const struct vc_anatomy_work *w, size_t **mark, size_t *n, struct vc_error *err);
bool vc_steps_left_out(const struct vc_anatomy_work *w, const size_t *mark, size_t n);

/* categories.c: the category of every block; spans and blocks are known. */
void vc_purposes(struct vc_anatomy *a);
