/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.h - where the virtual ranges of expandable segments begin that were there at the start. */
#pragma once

#include "simulator/replay/source.h"

/* A heap says which parts of a range are mapped. Pages in front of the first of them belong to the
 * range, too, and PyTorch maps them again; only then are they seen. Fills t->meta->base.
 * Errors: VC_ENOMEM. */
int vc_infer_ranges(struct vc_trace *t, struct vc_error *err);
