/* SPDX-License-Identifier: Apache-2.0 */
/* outline.h - what all predictions at one value in the order of one recording share: the turns that
 * loops make there, and what laws say of sizes. The draws of an interval differ in the rest only.
 */
#ifndef VC_OUTLINE_H
#define VC_OUTLINE_H

#include "simulator/predict/loops.h"
#include "simulator/predict/borrowed.h"
#include "simulator/predict/scaling.h"

/* Nothing of it changes once it is made. */
struct vc_outline {
	size_t base;               /* of that recording, ... */
	struct vc_target target;   /* ... at those values, ... */
	enum vc_bound bound;       /* ... of which one end decides how often loops turn */
	bool partly;               /* the last turn of one may not be full */
	bool turned;               /* they turn more or less often than recorded: */
	struct vc_looped looped;
	double *law[2];            /* vc_scaling_law of each allocation, in training and in an
				    * evaluation; the latter NULL where they are not apart */
	uint64_t *sized;           /* by allocation: bytes + 1 where the law is all that is asked
				    * for the best guess; 0: draws, plans or kernels decide */
	struct vc_borrowed borrowed; /* workspace that cuDNN names */
	bool *kernel;              /* by allocation: kernels ask for it, or for others beside it */
	/* What an allocator sees of the events, and whose (allocation + 1; 0: of none). */
	struct vc_outline_step { uint32_t event, of; } *step;
	size_t steps;
	size_t users;              /* the family among them */
};

/* Its events. */
const struct vc_trace *vc_outline_events(const struct vc_family *f, const struct vc_outline *o);
/* The allocation that made block `id`, or that it repeats, + 1; 0: none. */
uint32_t vc_outline_alloc(const struct vc_family *f, const struct vc_outline *o, uint64_t id);
/* Workspace that a convolution borrows at the target only, which PLAN `e` is of; 0: none. */
uint64_t vc_outline_borrows(const struct vc_outline *o, size_t event, const struct vc_event *e);
/* Is allocation i cuBLAS's workspace, and another at the target? Only of the size that no tensor
 * has. */
bool vc_outline_cublas(const struct vc_allocations *b, size_t i, const struct vc_target *target);
/* Is it for people, or what the recorded allocator did? begun: a request has come. */
bool vc_outline_drops(const struct vc_allocations *b, const struct vc_event *e, bool bare,
		      bool begun);

/* Made where the family has none at hand. NULL: no memory. Thread-safe. */
const struct vc_outline *vc_outline_get(struct vc_family *f, size_t base,
					const struct vc_target *target, enum vc_bound bound,
					struct vc_error *err);
void vc_outline_put(struct vc_family *f, const struct vc_outline *o); /* NULL is fine */

/* Forget all of them: what recordings say of each other has changed, or the family goes. */
void vc_outlines_forget(struct vc_family *f);

#endif
