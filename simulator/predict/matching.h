/* SPDX-License-Identifier: Apache-2.0 */
/* matching.h - which recordings of a family say something about each other, and which allocation of
 * one is which of another. */
#ifndef VC_MATCHING_H
#define VC_MATCHING_H

#include "simulator/predict/scaling.h"

/* Does an axis act on what belongs to `part`? */
bool vc_matching_acts(const struct vc_family *f, size_t axis, enum vc_mode part);

/* Which part allocation i of a view belongs to, where parts are told apart. */
enum vc_mode vc_matching_part(const struct vc_family *f, const struct vc_scaling *v, size_t i);

/* The only axis of a part on which two recordings differ, or axes when they differ on several or
 * none. */
size_t vc_matching_only_axis(const struct vc_family *f, size_t i, size_t j, enum vc_mode part);

/* Fill `match` of the base's view, and where every view will be opened, of all views, on several
 * threads; what a view knows has room then. The caller holds f->lock. Errors: VC_ENOMEM. */
int vc_matching_all(struct vc_family *f, size_t base, struct vc_error *err);

/* Loops that the base turns more often than the next smaller recording: compared with each other
 * one as if it did not. */
int vc_matching_loops(const struct vc_family *f, struct vc_scaling *v, size_t base,
		      struct vc_error *err);

#endif
