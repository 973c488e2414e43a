/* SPDX-License-Identifier: Apache-2.0 */
/* packing.h - where segments stand in a picture of address over time: at each moment one on the
 * other without gaps, those that stay longest at the bottom, so that the pile is as high as what is
 * reserved. */
#pragma once

#include "simulator/replay/result.h"

/* One segment, or a piece of an expandable one. */
struct vc_shelf {
	uint64_t addr, size, born, died; /* event index; died = UINT64_MAX: to the end */
	uint64_t offset;                 /* bytes from the bottom, see vc_packing_stack */
};
struct vc_packing {
	struct vc_shelf *at; size_t n;   /* from the bottom of the pile to its top */
	bool guessed;                    /* no segments were recorded: made from the blocks */
};

enum { VC_NO_SHELF = UINT32_MAX };

int  vc_packing_init(struct vc_packing *p, const struct vc_result *r, struct vc_error *err);
void vc_packing_fini(struct vc_packing *p);
/* The index of the shelf that each block was born on, or VC_NO_SHELF; home has lives->n entries. */
int  vc_packing_homes(const struct vc_packing *p, const struct vc_lives *lives, uint32_t *home,
		      struct vc_error *err);
/* Give each shelf that stands at `event` its offset; the height of the pile. */
uint64_t vc_packing_stack(struct vc_packing *p, uint64_t event);
/* Give each shelf an offset that it keeps as long as it stands: the lowest place that is free then.
 * The height; 0 where there are too many shelves for that. */
int vc_packing_keep(struct vc_packing *p, uint64_t *height, struct vc_error *err);
