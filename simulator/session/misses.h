/* SPDX-License-Identifier: Apache-2.0 */
/* misses.h - how far off recordings are when they predict each other: what that says about their
 * prediction of a value that nobody recorded. */
#pragma once

#include "simulator/session/whatif.h"

/* What is known of a family once, for any number of predictions. */
struct vc_misses;

struct vc_misses *vc_misses_new(struct vc_error *err); /* NULL: no memory */
void vc_misses_free(struct vc_misses *m);              /* NULL is fine */

/* What the recordings of w miss of each other, into p. settings: what the plan is known by; "":
 * another one each time. Thread-safe. */
int vc_misses_find(const struct vc_whatif *w, struct vc_prediction *p, const struct vc_plan *plan,
		   const char *settings, struct vc_error *err);

/* Widen out's interval by what others of these recordings, and draws, say of the value. 1: all that
 * the plan asks for is known. Thread-safe. */
int vc_misses_widen(const struct vc_whatif *w, struct vc_prediction *p,
		    const struct vc_plan *plan, const char *settings, struct vc_result *out,
		    struct vc_error *err);

/* And by all that no replay shows, the last of it. What reaches farther does so behind it, too. */
void vc_misses_widen_last(const struct vc_whatif *w, struct vc_prediction *p,
			  struct vc_result *out);

/* Where the plan asks for the lower end: bytes beyond which no run moves it to where it settles
 * anything. What a run is given up at may be anything above. */
uint64_t vc_misses_most(const struct vc_whatif *w, struct vc_prediction *p,
			const struct vc_plan *plan);

/* Is all that the plan asks of the interval known, by what is known of it before the last of it is?
 * 1: it is. */
int vc_misses_settled(const struct vc_whatif *w, struct vc_prediction *p,
		      const struct vc_plan *plan, const struct vc_result *out,
		      struct vc_error *err);
