/* SPDX-License-Identifier: Apache-2.0 */
/* uncertainty.h - how far a prediction may be off: what recordings miss of each other, what samples
 * of their data show, and how far truths lay outside on families that no rule was made for. */
#pragma once

#include "simulator/session/whatif.h"

/* What is known of a family once, for any number of predictions. */
struct vc_uncertainty;

struct vc_uncertainty *vc_uncertainty_new(struct vc_error *err); /* NULL: no memory */
void vc_uncertainty_free(struct vc_uncertainty *m);              /* NULL is fine */

/* Widen out's interval, which holds the runs that were made so far. settings: what the plan is
 * known by; "": another one each time. Thread-safe. */
int vc_uncertainty_widen(const struct vc_whatif *w, struct vc_prediction *p,
			 const struct vc_plan *plan, const char *settings, struct vc_result *out,
			 struct vc_error *err);
