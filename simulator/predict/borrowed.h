/* SPDX-License-Identifier: Apache-2.0 */
/* borrowed.h - workspace of convolutions at a value that nobody recorded, as cuDNN names it. */
#ifndef VC_BORROWED_H
#define VC_BORROWED_H

#include "simulator/predict/scaling.h"

/* In the order of one recording. */
struct vc_borrowed {
	uint64_t *size;   /* by allocation: bytes + 1 of its workspace, 1: none there; 0: nobody
			   * says. NULL: nobody says anything */
	struct vc_borrowed_new {
		uint32_t event;  /* PLAN of the trace, that borrowed nothing */
		uint64_t bytes;
	} *added; size_t n;
	uint64_t named;   /* times that cuDNN's plan is known */
};

/* Only where training and evaluation are not apart, one parameter differs, and data decide nothing.
 * The view of `base` is open; the caller holds f->lock. Errors: VC_ENOMEM. */
int vc_borrowed_make(struct vc_family *f, size_t base, const struct vc_target *target,
		    struct vc_borrowed *out, struct vc_error *err);
void vc_borrowed_fini(struct vc_borrowed *p);

#endif
