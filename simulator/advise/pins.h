/* SPDX-License-Identifier: Apache-2.0 */
/* pins.h - which live blocks keep mostly free segments from being given back. */
#pragma once

#include "common/emit.h"
#include "simulator/replay/result.h"

/* "pinned_by": the call sites whose blocks pin the most free bytes of the map, at most 8, largest
 * first: bytes pinned, segments, blocks, and the smallest block that does it. A segment is blamed
 * on the site of its smallest live block: moving that one is the least that would help. */
int vc_pins_report(struct vc_emit *e, const struct vc_meta *meta, const struct vc_heap_map *map,
		   struct vc_error *err);
