/* SPDX-License-Identifier: Apache-2.0 */
/* peaks.h - what is told of the moments with the most reserved, and with the most used beside other
 * processes: of all such moments the fullest. */
#pragma once

#include "simulator/replay/model.h"
#include "simulator/replay/result.h"

/* With less reserved than this, or as much and not more allocated, a moment is none of them. */
struct vc_watch { uint64_t reserved, allocated; };
/* beside: of the context and of other processes */
struct vc_at { uint64_t event, time_ns, beside, context; };

/* Looks at a moment; also wanted whenever `beside` changes. Does the most reserved rise? */
bool vc_peaks_most(struct vc_stats *s, const struct vc_totals *now, const struct vc_at *at,
		   struct vc_watch *watch);
