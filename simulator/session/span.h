/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - what a change of settings, version or card leaves open where the requests are the
 * recorded ones: the order of fresh addresses, and what came before the recording. */
#pragma once

#include "simulator/session/job.h"

/* out: the best estimate of this plan (vc_job_run). Fills out->basis, and widens its interval where
 * something is open. unlimited: the interval is that of the need, and no verdict is looked at. */
int vc_span_widen(const struct vc_job *job, const struct vc_plan *plan, bool unlimited,
		  struct vc_result *out, struct vc_error *err);
