/* SPDX-License-Identifier: Apache-2.0 */
/* carry.h - what a recording and its control run differ in, carried over to a run of the same
 * program with other values: requests that only the recording makes stand there, too, others have
 * its sizes. */
#pragma once

#include "simulator/session/control_run.h"

/* Sizes that do not hang on the values are those that were recorded. Others were so large there, or
 * have grown as what stands beside them has: the lower end takes the smaller of both. Requests that
 * only the control run makes are in the higher end alone. */
enum vc_carry_end { VC_CARRY_LOW, VC_CARRY_HIGH };

/* 1: into *out (no meta of its own), which the caller frees; 0: the run does not make as many
 * requests as the control run, so that which is which is not known. */
int vc_carry(const struct vc_control_run *t, const struct vc_recording *control,
	     const struct vc_recording *run, enum vc_carry_end end, struct vc_trace *out,
	     struct vc_error *err);
