/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - what each change of a what-if did to the memory: one after the other, before and
 * after, on a device without limit; on that of the plan, where the events have no end. */
#pragma once

#include "common/emit.h"
#include "simulator/session/session.h"

/* "changes": [{change, before, after, cut_short}], in the order in which they were asked for:
 * --set, --torch, --conf, -x; people get one line each. Bytes are those reserved at the peak;
 * cut_short: at least. Nothing where nothing was changed, or where the trace is too long to be
 * replayed again. */
void vc_changes_report(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		       bool people);
