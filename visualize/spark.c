/* SPDX-License-Identifier: Apache-2.0 */
/* spark.c - memory over time in one line of text. */
#include "visualize/spark.h"

#include "visualize/svg.h"

char *vc_spark(const struct vc_result *r, size_t columns, bool ascii, char *buf)
{
	const struct vc_curve *v = &r->curve;
	uint64_t most = r->stats.peak_reserved, first, span;
	size_t b = 0, at = 0;

	*buf = '\0';
	if (!v->n || !columns)
		return buf;
	if (r->info.capacity > most && most > r->info.capacity / 2)
		most = r->info.capacity;
	first = v->at[0].first_event;
	span = v->at[v->n - 1].last_event - first + 1;
	for (size_t x = 0; x < columns; x++) {
		uint64_t end = first + vc_muldiv(x + 1, span, columns), top = 0;
		/* The bucket a column begins in counts for it too: it may have begun earlier. */
		do {
			if (v->at[b].reserved_max > top)
				top = v->at[b].reserved_max;
		} while (v->at[b].last_event + 1 < end && b + 1 < v->n && ++b);
		size_t level = most ? (size_t)vc_muldiv(top, ascii ? 9 : 7, most) : 0;
		if (ascii) {
			buf[at++] = " .:-=+*#%@"[level > 9 ? 9 : level];
		} else {
			memcpy(buf + at, "\xE2\x96\x81", 3);
			buf[at + 2] = (char)(0x81 + (level > 7 ? 7 : level));
			at += 3;
		}
	}
	buf[at] = '\0';
	return buf;
}
