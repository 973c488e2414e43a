/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - does the model reproduce a recording? */
#pragma once

#include "simulator/session/recording.h"

/* Is there anything to compare with? Not in a script, in requests alone, in a heap without events,
 * in another allocator's work. */
bool vc_verify_possible(const struct vc_recording *rec);

/* Replay it under the recorded settings and device answers, and keep how well that went in
 * rec->fidelity. Where the recording does not say which version made it, or how large its device
 * was, those that reproduce it are taken. Nothing happens where there is nothing to compare with.
 * Errors: those of the replay. */
int vc_verify(struct vc_recording *rec, const struct vc_recording_ask *ask, struct vc_error *err);
