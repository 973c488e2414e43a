/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h - a run as columns of half a pixel: minimum and maximum are kept, so no peak vanishes.
 */
#pragma once

#include "visualize/classify.h"

struct vc_column {
	uint32_t from, to;           /* columns [from, to): one state wide enough spans many */
	uint64_t allocated_min, allocated_max, reserved_min, reserved_max, stranded,
		pinned, managed;
	uint64_t layer[VC_SLOTS];    /* at the instant of allocated_max; they sum to it */
	uint32_t flushes, ooms, bucket; /* bucket: that of allocated_max */
};

struct vc_columns {
	struct vc_column *at; size_t n;
	bool by_time;
	uint64_t first, span;        /* of the x axis: events or ns; span > 0 */
	uint32_t width;              /* number of columns */
	uint64_t allocated, reserved, stranded, pinned, managed; /* maxima */
	size_t top;                  /* index of the column with the most allocated bytes */
	bool used[VC_SLOTS];
	bool layered;                /* false: nothing known about layers, all bytes are "other" */
};

/* `width` columns over the whole run, up to the failure where it ended with one (or over `span`
 * from `first`, where span > 0). */
struct vc_range { uint64_t first, span; };
int vc_columns_init(struct vc_columns *k, const struct vc_classes *c, bool by_time, uint32_t width,
		    const struct vc_range *range, struct vc_error *err);
void vc_columns_fini(struct vc_columns *k);

/* Has the run times that grow? */
bool vc_curve_has_times(const struct vc_result *r);
/* Has it, and they spread what happens: not most of it in a sliver, as where a model is moved
 * onto the card for a second and the first step runs out of memory in milliseconds? */
bool vc_curve_reads_by_time(const struct vc_result *r);
/* The column of an event index or time; between 0 and width. */
uint32_t vc_columns_x(const struct vc_columns *k, uint64_t at);
/* The time of an event: exact for what pictures speak of (peaks, the failure), else from the
 * buckets. */
uint64_t vc_curve_time(const struct vc_result *r, uint64_t event);
/* The one clock of all pictures, from the first event on: "795 ms", or "event 14,116". buf holds
 * VC_FORMAT bytes. */
char *vc_moment_text(const struct vc_result *r, bool by_time, uint64_t event, char *buf);
