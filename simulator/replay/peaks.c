/* SPDX-License-Identifier: Apache-2.0 */
/* peaks.c - moments with the most reserved, and with the most used. */
#include "simulator/replay/peaks.h"

bool vc_peaks_most(struct vc_stats *s, const struct vc_totals *now, const struct vc_at *at,
		   struct vc_watch *watch)
{
	bool rises = now->reserved > s->peak_reserved, by_used;
	uint64_t used = now->reserved + at->beside, alike;

	if (used > s->peak_used ||
	    (used == s->peak_used && now->allocated > s->allocated_at_used)) {
		s->peak_used = used;
		s->reserved_at_used = now->reserved;
		s->allocated_at_used = now->allocated;
		s->others_at_used = at->beside - at->context;
	}
	if (rises ||
	    (now->reserved == s->peak_reserved && now->allocated > s->allocated_at_peak)) {
		s->peak_reserved = now->reserved;
		s->peak_event = at->event;
		s->peak_time_ns = at->time_ns;
		s->allocated_at_peak = now->allocated;
		s->stranded_at_peak = now->reserved - now->active;
	}
	/* Where other processes came or went the two differ, and the lower one is watched. What is
	 * beside was used, so the difference is not below 0. */
	alike = s->peak_used - at->beside;
	by_used = alike < s->peak_reserved ||
		  (alike == s->peak_reserved && s->allocated_at_used < s->allocated_at_peak);
	*watch = by_used ? (struct vc_watch){ alike, s->allocated_at_used } :
			   (struct vc_watch){ s->peak_reserved, s->allocated_at_peak };
	return rises;
}
