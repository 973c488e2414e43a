/* SPDX-License-Identifier: Apache-2.0 */
/* allocators.h - several allocators on the same recording, side by side. */
#pragma once

#include "common/emit.h"
#include "simulator/session/session.h"

/* Do the plans name more than one model (or one with other parameters)? */
bool vc_allocators_differ(const struct vc_plan *plan, size_t n);

/* "allocators": one row per run: what it reserves, how far that is above what was live, whether it
 * runs out, its calls of the driver, and its largest hole at the peak (`peak` is observed). */
void vc_allocators_report(struct vc_emit *e, const struct vc_plan *plan,
			  const struct vc_result *run, size_t n);
