/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c - see pins.h */
#include "simulator/advise/pins.h"

#define SHOWN 8

static void emit_pin(struct vc_emit *e, const struct vc_meta *meta, const struct vc_pin *p)
{
	struct vc_holder h = { .site = p->site,
			      .held = p->at_start ? VC_HELD_BEFORE : VC_HELD_NOWHERE };
	char place[512];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "site", NULL, vc_holder_text(meta, &h, place, sizeof(place)));
	vc_emit_bytes(e, "bytes", NULL, p->bytes);
	vc_emit_uint(e, "segments", NULL, p->segments);
	vc_emit_uint(e, "blocks", NULL, p->blocks);
	vc_emit_bytes(e, "smallest_block", NULL, p->smallest);
	vc_emit_end(e);
}

int vc_pins_report(struct vc_emit *e, const struct vc_meta *meta, const struct vc_heap_map *map,
		   struct vc_error *err)
{
	struct vc_pin *p = NULL;
	size_t n = 0;

	VC_TRY(vc_pins_of(map, &p, &n, err));
	vc_emit_array(e, "pinned_by", NULL);
	for (size_t i = 0; i < n && i < SHOWN; i++)
		emit_pin(e, meta, &p[i]);
	vc_emit_end(e);
	free(p);
	return VC_OK;
}
