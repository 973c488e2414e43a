/* SPDX-License-Identifier: Apache-2.0 */
/* budget_times.h - what the kernels of a dry run take, between the marks of its modules. */
#pragma once

#include "simulator/search/budget.h"
#include "simulator/session/recording.h"
#include "simulator/time/time_profile.h"

/* Fill r->kernel and r->steps; none where kernels do not tell of the marks. */
int vc_budget_times(struct vc_budget_run *r, const struct vc_recording *rec, struct vc_error *err);
/* Its kernels, played again; p->speeds may be set. */
int vc_budget_profile(struct vc_profile *p, const struct vc_recording *rec, struct vc_error *err);
