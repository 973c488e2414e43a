/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c - see pins.h */
#include "simulator/advise/pins.h"

#include <stdlib.h>

#include "common/vec.h"
#include "simulator/replay/model.h"
#include "simulator/advise/report.h"

#define SHOWN 8

struct pin { uint64_t site, segment, bytes, segments, blocks, smallest; bool at_start; };

/* The segment that starts at extent i; the position behind it. A pin of 0 bytes: nothing is
 * pinned. */
static size_t look(const struct vc_heap_map *map, size_t i, struct pin *p)
{
	*p = (struct pin){ .segment = map->at[i].addr, .segments = 1 };
	for (i++; i < map->n && map->at[i].what != VC_X_SEGMENT; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what == VC_X_FREE) {
			p->bytes += x->size;
			continue;
		}
		if (!p->blocks++ || x->size < p->smallest) {
			p->smallest = x->size;
			p->site = x->site;
			p->at_start = x->at_start;
		}
	}
	if (!p->blocks)
		p->bytes = 0;
	return i;
}

VC_COMPARE(by_site, struct pin,
	   VC_THEN(VC_ORDER(x->site, y->site), VC_ORDER(x->segment, y->segment)))

static int by_bytes(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_site(a, b);
}

/* Pins of the same known site become one; those without stay one per segment. */
static size_t gather(struct pin *p, size_t n)
{
	size_t k = 0;

	qsort(p, n, sizeof(*p), by_site);
	for (size_t i = 0; i < n; i++) {
		if (!k || !p[i].site || p[k - 1].site != p[i].site) {
			p[k++] = p[i];
			continue;
		}
		p[k - 1].bytes += p[i].bytes;
		p[k - 1].segments++;
		p[k - 1].blocks += p[i].blocks;
		if (p[i].smallest < p[k - 1].smallest)
			p[k - 1].smallest = p[i].smallest;
	}
	qsort(p, k, sizeof(*p), by_bytes);
	return k;
}

static void emit_pin(struct vc_emit *e, const struct vc_meta *meta, const struct pin *p)
{
	struct vc_holder h = { .site = (uint32_t)p->site,
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
	struct pin *p = calloc(map->n + 1, sizeof(*p));
	size_t n = 0;

	VC_HAVE(p, "the pinned segments", err);
	for (size_t i = 0; i < map->n; ) {
		if (map->at[i].what != VC_X_SEGMENT) {
			i++;
			continue;
		}
		i = look(map, i, &p[n]);
		n += p[n].bytes > 0;
	}
	n = gather(p, n);
	vc_emit_array(e, "pinned_by", NULL);
	for (size_t i = 0; i < n && i < SHOWN; i++)
		emit_pin(e, meta, &p[i]);
	vc_emit_end(e);
	free(p);
	return VC_OK;
}
