/* SPDX-License-Identifier: Apache-2.0 */
/* budget_times.h - what the kernels of a dry run take, between the marks of its modules. */
#pragma once

#include "simulator/search/budget.h"
#include "simulator/session/recording.h"

/* Fill r->kernel and r->steps; none where kernels do not tell of the marks. */
int vc_budget_times(struct vc_budget_run *r, const struct vc_recording *rec, struct vc_error *err);
/* What all kernels of the last step take; 0: nothing is known of them. */
int vc_budget_step(const struct vc_recording *rec, double *ns, struct vc_error *err);
