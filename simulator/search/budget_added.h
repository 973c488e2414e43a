/* SPDX-License-Identifier: Apache-2.0 */
/* budget_added.h - what a choice adds to a step: the step of a run with it against that of the run
 * as it is, both played again on the card (simulator/time/time_replay.c). */
#pragma once

#include "simulator/session/recording.h"
#include "simulator/time/time_profile.h"

/* Nothing (NULL): no kernels, or no steps, are known of one of the runs. */
enum vc_budget_by { VC_BUDGET_BY_NOTHING, VC_BUDGET_BY_STEPS, VC_BUDGET_BY_KERNELS };

struct vc_budget_added {
	enum vc_budget_by by; /* kernels: their sum, as the card waits for the program */
	double ns, low, high;
	double step;          /* of the run as it is */
	char unknown[200];    /* a kernel of which nothing is known and that matters; "": none */
};

/* plain: the run as it is, or NULL. The same kernels are as far off in both, so that only what is
 * launched more or less often makes low and high. Errors: VC_ENOMEM. */
int vc_budget_added(const struct vc_profile *plain, const struct vc_recording *chosen,
		    struct vc_budget_added *out, struct vc_error *err);
