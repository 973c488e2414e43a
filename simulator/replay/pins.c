/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c - which live blocks keep mostly free segments from being given back (result.h). */

#include "common/vec.h"
#include "simulator/replay/model.h"
#include "simulator/replay/result.h"

/* The segment that starts at extent i; the position behind it. A pin of 0 bytes: nothing is
 * pinned. */
static size_t look(const struct vc_heap_map *map, size_t i, struct vc_pin *p)
{
	*p = (struct vc_pin){ .segment = map->at[i].addr, .segments = 1 };
	for (i++; i < map->n && map->at[i].what != VC_X_SEGMENT; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what == VC_X_FREE) {
			p->bytes += x->size;
			continue;
		}
		if (!p->blocks++ || x->size < p->smallest) {
			p->smallest = x->size;
			p->id = x->id;
			p->site = x->site;
			p->label = x->label;
			p->at_start = x->at_start;
		}
	}
	if (!p->blocks)
		p->bytes = 0;
	return i;
}

VC_COMPARE(by_site, struct vc_pin,
	   VC_THEN(VC_ORDER(x->site, y->site), VC_ORDER(x->segment, y->segment)))

VC_COMPARE(by_bytes, struct vc_pin, VC_THEN(VC_ORDER(y->bytes, x->bytes), by_site(x, y)))

/* Pins of the same known site become one; those without stay one per segment. */
static size_t gather(struct vc_pin *p, size_t n)
{
	size_t k = 0;

	vc_sort(p, n, sizeof(*p), by_site);
	for (size_t i = 0; i < n; i++) {
		if (!k || p[k - 1].site != p[i].site ||
		    (!p[i].site && p[k - 1].segment != p[i].segment)) {
			p[k++] = p[i];
			continue;
		}
		p[k - 1].bytes += p[i].bytes;
		p[k - 1].segments += p[i].segments;
		p[k - 1].blocks += p[i].blocks;
		if (p[i].smallest < p[k - 1].smallest) {
			p[k - 1].smallest = p[i].smallest;
			p[k - 1].id = p[i].id;
		}
	}
	vc_sort(p, k, sizeof(*p), by_bytes);
	return k;
}

int vc_pins_of(const struct vc_heap_map *map, struct vc_pin **pins, size_t *n,
	       struct vc_error *err)
{
	struct vc_pin *p;
	size_t k = 1;

	for (size_t i = 0; i < map->n; i++)
		k += map->at[i].what == VC_X_SEGMENT;
	p = calloc(k, sizeof(*p));
	k = 0;
	VC_HAVE(p, "the pinned segments", err);
	for (size_t i = 0; i < map->n; ) {
		if (map->at[i].what != VC_X_SEGMENT) {
			i++;
			continue;
		}
		i = look(map, i, &p[k]);
		k += p[k].bytes > 0;
	}
	*n = gather(p, k);
	*pins = p;
	return VC_OK;
}

void vc_pins_mean(struct vc_pin *p, size_t n, size_t samples, struct vc_pin *out, size_t most)
{
	for (size_t i = 0; i < n; i++) /* of several samples: by the block, not by the segment */
		p[i].segment = p[i].site ? 0 : p[i].id;
	n = gather(p, n);
	for (size_t i = 0; i < n && i < most; i++) {
		out[i] = p[i];
		out[i].bytes /= samples;
		out[i].segments = (out[i].segments + samples - 1) / samples;
		out[i].blocks = (out[i].blocks + samples - 1) / samples;
	}
}
