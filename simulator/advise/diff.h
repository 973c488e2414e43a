/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h - two recordings allocation by allocation: what is in both, what changed, where it
 * begins. */
#pragma once

#include "simulator/replay/result.h"
#include "simulator/replay/source.h"

const char *vc_diff_kind_name(enum vc_diff_kind k); /* "only_in_a" */

/* One side. `run` is a replay with the observer "peak"; both are lent and must outlive the diff. */
struct vc_diff_side { const struct vc_trace *trace; const struct vc_result *run; uint16_t device; };

int vc_diff_init(struct vc_diff *d, const struct vc_diff_side side[2], struct vc_error *err);
void vc_diff_fini(struct vc_diff *d);
