/* SPDX-License-Identifier: Apache-2.0 */
/* infer.h - requests that a recording does not name but shows: empty_cache by the segments it gave
 * back, private pools by the segments that belong to them. */
#pragma once

#include "simulator/replay/source.h"

/* Insert VC_EV_TRIM and VC_EV_POOL_* events where the evidence of each device shows them, if the
 * trace has no such events of its own. Sets the capabilities to "derived". */
int vc_infer(struct vc_trace *t, struct vc_error *err);
