/* SPDX-License-Identifier: Apache-2.0 */
/* addressmap.h - segments and blocks of one moment in address order, wrapped into rows, to scale.
 */
#pragma once

#include "visualize/scene.h"

struct vc_heap_facts {
	uint64_t reserved, live, free, largest_free, per_row;
	size_t segments;
	int rows;
	bool used[VC_SLOTS];
};

/* Draws into box (its width; rows of `row` height) and says what it saw. Returns the y below, or
 * negative: failed. */
int vc_addressmap_draw(struct vc_page *p, const struct vc_classes *c, const struct vc_heap_map *h,
		    struct vc_box box, struct vc_heap_facts *facts);
void vc_heap_measure(const struct vc_heap_map *h, struct vc_heap_facts *f);
/* Outline the block `id` in the map that was drawn in box. */
void vc_addressmap_mark(struct vc_page *p, const struct vc_heap_map *h, struct vc_box box,
			const struct vc_heap_facts *f, uint64_t id);
/* "needed 0.53 GiB" above "largest free 0.16 of 11.9 GiB", on the scale of the map above. */
int vc_addressmap_scale(struct vc_page *p, const struct vc_result *r, const struct vc_heap_facts *f,
		     struct vc_box box);
