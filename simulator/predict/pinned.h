/* SPDX-License-Identifier: Apache-2.0 */
/* pinned.h - pinned memory of the host at a value nobody recorded. */
#ifndef VC_PINNED_H
#define VC_PINNED_H

#include "simulator/predict/scaling.h"

/* Read those of all recordings into f->pinned; at the end, forget them. Errors: VC_ENOMEM. */
int vc_pinned_read(struct vc_family *f, struct vc_error *err);
void vc_pinned_fini(struct vc_family *f);

/* Bytes of each of the base's pinned allocations at at[], in their order, on the heap; NULL where
 * nothing was pinned or nothing tells how it depends on the parameter. */
uint64_t *vc_pinned_sizes(const struct vc_family *f, size_t base, const double *at);

bool vc_pinned_is(const struct vc_meta *m, const struct vc_event *e);

#endif
