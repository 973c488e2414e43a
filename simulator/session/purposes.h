/* SPDX-License-Identifier: Apache-2.0 */
/* purposes.h - the anatomy of a run, put into its result: what each block is for, and phases. */
#ifndef VC_PURPOSES_H
#define VC_PURPOSES_H

#include "simulator/session/session.h"

/* Fills lives.at[].purpose and steps.phase of a result of this session (its -x applied) that has
 * lives; nothing where no iterations are found, or only with little confidence, or the trace is
 * streamed. Errors: VC_ENOMEM. Thread-safe for sessions in memory. */
int vc_purposes_fill(const struct vc_session *s, struct vc_result *out, struct vc_error *err);

#endif
