/* SPDX-License-Identifier: Apache-2.0 */
/* warm_start.h - recordings that begin in the middle of a run: what was alive before them becomes
 * requests. */
#pragma once

#include "simulator/rewrite/rewrite.h"

#define VC_THAW_LITTLE (UINT64_C(16) << 20) /* bytes alive before a recording that do not matter */

/* Where much was alive on w->device before the recording and at least one step is found behind
 * it, w->in becomes the run that leads there: parameters and whatever else stays, the step once
 * more with the optimizer's states made in it, then what was recorded, whole steps only. From an
 * empty cache: what the allocator had cached is not known to be of use for a changed run. Notes
 * say so. Else w is as it was. Errors: VC_ENOMEM. */
int vc_thaw(struct vc_source *s, struct vc_whole *w, struct vc_error *err);
