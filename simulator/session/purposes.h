/* SPDX-License-Identifier: Apache-2.0 */
/* purposes.h - the anatomy of a run, put into its result: what each block is for, and phases. */
#pragma once

#include "simulator/session/recording.h"

/* Fills lives.at[].purpose and steps.phase of a result of this recording under these transforms
 * that has lives; nothing where no iterations are found, or only with little confidence, or the
 * trace is streamed. Errors: VC_ENOMEM. Thread-safe for recordings in memory. */
int vc_purposes_fill(const struct vc_recording *rec, const struct vc_list *transforms,
		     struct vc_result *out, struct vc_error *err);
