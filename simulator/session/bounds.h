/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.h - what transforms leave open. Those with a parameter `bound` (best, low, high) say what
 * the recording does not settle: a run is repeated with all of them low and all of them high. */
#pragma once

#include "simulator/session/recording.h"

enum { VC_BOUNDS_TEXT = 512 };

/* Do these leave anything open, in what they do or by how much each was found to be off? Not where
 * the user chose a bound, or where nobody measured how far one of them is off. */
bool vc_bounds_wanted(const struct vc_list *transforms);
/* In what they do? */
bool vc_bounds_open(const struct vc_list *transforms);

/* The same transforms with all that is open at `bound` ("low", "high"). */
struct vc_bounds {
	struct vc_list transform;
	char (*text)[VC_BOUNDS_TEXT];
	const char **at;
};
/* After a failure, too, vc_bounds_fini. */
int  vc_bounds_at(const struct vc_list *transforms, const char *bound, struct vc_bounds *b,
		  struct vc_error *err);
void vc_bounds_fini(struct vc_bounds *b);

/* A server whose cache takes what it finds free: it was up to 0.8 % of what was reserved larger or
 * smaller under other settings (docs/measurements/serving.md). */
void vc_bounds_resized(struct vc_result *out);
/* Widen out's interval by how much each transform was found to be off. */
void vc_bounds_margins(const struct vc_recording *rec, const struct vc_list *transforms,
		       struct vc_result *out);

/* Has nobody measured how far off one of them is? */
bool vc_bounds_unknown(const struct vc_list *transforms);
