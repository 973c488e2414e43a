/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - see points.h */
#include "visualize/points.h"

#include "common/format.h"
#include "visualize/reduce.h"

uint64_t vc_point_ns(const struct vc_result *r, uint64_t event, uint64_t time_ns)
{
	return vc_curve_has_times(r) ? time_ns : event * 1000;
}

size_t vc_points(const struct vc_result *r, size_t bucket, struct vc_point at[VC_POINTS])
{
	const struct vc_bucket *b = &r->curve.at[bucket];
	uint64_t first = vc_point_ns(r, b->first_event, b->first_ns);
	uint64_t last = vc_point_ns(r, b->last_event, b->last_ns);
	uint64_t top = vc_point_ns(r, b->peak_event, vc_curve_time(r, b->peak_event));
	struct vc_point low = { first, b->allocated_min, b->reserved_min, b->stranded_max };
	size_t n = 0;

	if (top < first || top > last)
		top = first;
	if (b->allocated_min == b->allocated_max && b->reserved_min == b->reserved_max) {
		at[n++] = low;
		return n;
	}
	/* where in the bucket the minimum lies is not known: at both ends of it, around the
	 * maximum */
	if (top > first)
		at[n++] = low;
	at[n++] = (struct vc_point){ top, b->allocated_max, b->reserved_max, b->stranded_max };
	if (last > top) {
		low.ns = last;
		at[n++] = low;
	}
	return n;
}

void vc_point_title(const struct vc_result *r, char *buf, size_t cap)
{
	const struct vc_run_info *i = &r->info;
	char low[VC_FORMAT], high[VC_FORMAT];
	size_t n = (size_t)snprintf(buf, cap, "%s: %s%s%s%s%s%s%s", i->trace ? i->trace : "run",
		 i->model ? i->model : "", i->torch ? " " : "", i->torch ? i->torch : "",
		 i->conf && *i->conf ? " " : "", i->conf ? i->conf : "", i->gpu ? " on " : "",
		 i->gpu ? i->gpu : "");
	if (r->trust.level && n < cap)
		n += (size_t)snprintf(buf + n, cap - n, " (%s, %s", vc_verdict_name(
				      vc_result_verdict(r)), vc_level_name(r->trust.level));
	if (r->trust.level && r->has_interval && n < cap)
		n += (size_t)snprintf(buf + n, cap - n, ", reserved between %s and %s",
				      vc_format_bytes(r->low, low),
				      vc_format_bytes(r->high, high));
	if (r->trust.level && n < cap)
		snprintf(buf + n, cap - n, ")");
}
