/* SPDX-License-Identifier: Apache-2.0 */
/* misses.h - how far off recordings are when they predict each other: what that says about their
 * prediction of a value that nobody recorded. */
#ifndef VC_MISSES_H
#define VC_MISSES_H

#include "simulator/session/whatif.h"

/* What is known of a family once, for any number of predictions. */
struct vc_misses;

struct vc_misses *vc_misses_new(struct vc_error *err); /* NULL: no memory */
void vc_misses_free(struct vc_misses *m);              /* NULL is fine */

/* Widen out's interval by what the recordings of w missed of each other. settings: what the plan is
 * known by; "": another one each time. Thread-safe. */
int vc_misses_widen(const struct vc_whatif *w, struct vc_prediction *p,
		    const struct vc_plan *plan, const char *settings, struct vc_result *out,
		    struct vc_error *err);

/* Both ends of what one recording says of another value, wider by where blocks may land. */
void vc_misses_guard(uint64_t *low, uint64_t *high);

#endif
