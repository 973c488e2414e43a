/* SPDX-License-Identifier: Apache-2.0 */
/* past.h - what a program may have done before its recording begins.
 *
 * A recording that begins in the middle shows the heap that the rules of its day had made. Other
 * rules would have made another one, out of requests that nobody recorded. Most of them are known
 * all the same: programs repeat themselves. A past is one list of requests that leads from an
 * empty heap to the blocks that live at the first event. Played under the recorded rules it shows
 * by the heap that it makes how much it is worth. */
#pragma once

#include "simulator/replay/memo.h"
#include "simulator/replay/source.h"

enum vc_past_kind {
	VC_PAST_ALONE,  /* the blocks that live, from low to high addresses */
	VC_PAST_SIZES,  /* the same, the largest first */
	VC_PAST_ROUND,  /* ALONE, then what was recorded until the same blocks live again */
	VC_PAST_LATE,   /* from the beginning of a step on, whose end makes what lies in segments
			 * that others had needed, as states of an optimizer do; then ROUND */
	VC_PAST_STATES, /* the same, and as late whatever is more than there are gradients of its
			 * size */
	VC_PAST_FILLED, /* each recorded segment was in use as a whole, all at one moment */
	VC_PASTS
};

struct vc_past {
	struct vc_memo memo; /* first */
	struct vc_event *ev; /* ALLOC, FREE, USE, FREE_DONE, SYNC and TRIM; n of them, 0: the trace
			      * does not show what such a past needs */
	size_t n;
};

/* The past of that kind for `device` of t, kept with it; vc_memo_put(&(*out)->memo) when done.
 * Blocks that live at the first event have their own ids, all others ids above the recorded ones.
 * Errors: VC_ENOMEM. Thread-safe. */
int vc_past_of(const struct vc_trace *t, uint16_t device, enum vc_past_kind kind,
		  struct vc_past **out, struct vc_error *err);
