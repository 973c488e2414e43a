/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - where the bytes of the card are at the moment that matters. */
#include "visualize/ledger.h"

enum { SEGMENT, LIVE, PENDING, FREE }; /* of vc_heap_extent.what */

/* One segment and its blocks, from `i` on; the index behind it. Free pages of an expandable segment
 * are unmapped one by one: a live block holds no more of it back than its own pages, and PyTorch
 * does not count them as inactive split (CUDACachingAllocator.cpp). */
static size_t add_segment(struct vc_ledger *l, const struct vc_classes *c,
			  const struct vc_heap_map *h, size_t i)
{
	bool held = false, expandable = h->at[i].expandable;
	uint64_t free = 0;

	l->segments++;
	l->reserved += h->at[i].size;
	for (i++; i < h->n && h->at[i].what != SEGMENT; i++) {
		const struct vc_heap_extent *x = &h->at[i];

		held |= x->what != FREE;
		if (x->what == LIVE) {
			l->slot[vc_classes_of_id(c, x->id)] += x->size;
			l->live += x->size;
		} else if (x->what == PENDING) {
			l->waiting += x->size;
		} else {
			free += x->size;
		}
	}
	*(held && !expandable ? &l->stranded : &l->returnable) += free;
	return i;
}

/* Where no heap was kept: totals only. */
static void from_totals(struct vc_ledger *l, const struct vc_stats *t)
{
	uint64_t active = t->peak_reserved > t->stranded_at_peak ?
				  t->peak_reserved - t->stranded_at_peak : 0;

	l->reserved = t->peak_reserved;
	l->live = t->allocated_at_peak < active ? t->allocated_at_peak : active;
	l->slot[VC_SLOT_OTHER] = l->live;
	l->waiting = active - l->live;
	l->stranded = l->reserved - active;
}

void vc_ledger_make(struct vc_ledger *l, const struct vc_classes *c)
{
	const struct vc_result *r = c->r;
	const struct vc_heap_map *h = vc_result_heap(r);

	*l = (struct vc_ledger){ .at_oom = h == &r->last,
				 .event = h == &r->last ? r->oom.event :
					  h->n          ? h->event : r->stats.peak_event,
				 .capacity = r->info.capacity, .context = r->info.context,
				 .others = r->info.others, .largest = r->oom.largest_free };
	for (size_t i = 0; i < h->n;)
		i = add_segment(l, c, h, i);
	if (!h->n && !l->at_oom)
		from_totals(l, &r->stats);
	l->used = l->reserved + l->context + l->others;
	if (r->info.has_limit &&
	    (!l->capacity || r->info.limit + l->context + l->others < l->capacity)) {
		l->capacity = r->info.limit + l->context + l->others;
		l->limited = true;
	}
	l->free = l->capacity > l->used ? l->capacity - l->used : 0;
	l->request = r->oom.happened ? r->oom.request : 0;
}
