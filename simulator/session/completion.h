/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - when memory that other streams used comes back, in runs that were never recorded.
 *
 * A recording says at which request each such block came back. Where that is not known, and under
 * changed settings, it is a matter of time on the device; two policies bound it: back at the next
 * request, and back only when the allocator is forced to wait. */
#pragma once

#include "simulator/session/job.h"

/* A recording with uses but without completions: blocks come back at the next request. */
void vc_completion_default(const struct vc_recording *rec, struct vc_plan *p);

/* Is there anything that the two bound? */
bool vc_completion_is_open(const struct vc_job *job, const struct vc_plan *p);

/* Runs a what-if under both policies as well; out's interval spans all three peaks. Nothing
 * happens for recorded settings, for models without the parameter, and where no stream waits for
 * another. A model that knows two bounds only (a parameter `bound`) is run with either. */
int vc_completion_interval(const struct vc_job *job, const struct vc_plan *p,
			   struct vc_result *out, struct vc_error *err);
