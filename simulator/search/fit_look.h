/* SPDX-License-Identifier: Apache-2.0 */
/* fit_look.h - what the search of fit.h finds out about one value, and about several of them at
 * once before they are asked for. */
#pragma once

#include "simulator/search/fit.h"

struct vc_fit_told; /* what is known of a value that nobody has asked for yet */

struct vc_fit_hunt {
	struct vc_fit *f;
	struct vc_fit_card *c;
	struct vc_fit_told *told;
	size_t tolds;
};

/* A value that will be asked for. open: with its interval. */
struct vc_fit_soon { uint64_t value; bool open; };

/* The probe at `value`; with `open` its interval is known. It belongs to the card. */
int vc_fit_look(struct vc_fit_hunt *h, uint64_t value, bool open,
		const struct vc_fit_probe **out, struct vc_error *err);

/* Where the recordings cannot tell, the value to ask the program for is this one. */
int vc_fit_ask(struct vc_fit_hunt *h, uint64_t value, struct vc_error *err);

/* The run at `value` with what it takes of time. */
int vc_fit_look_times(struct vc_fit_hunt *h, uint64_t value, struct vc_result *out,
		      struct vc_error *err);

/* These are looked at on all processors, so that vc_fit_look has them at hand. What fails is asked
 * again by vc_fit_look, which says why. */
int vc_fit_look_at_all(struct vc_fit_hunt *h, const struct vc_fit_soon *soon, size_t n,
		       struct vc_error *err);

/* The same where only the first of them is certain to be asked for: as many as there are threads,
 * and none where one prediction keeps all of them busy. Nothing happens while the first is at hand.
 */
int vc_fit_look_beyond(struct vc_fit_hunt *h, const struct vc_fit_soon *soon, size_t n,
		       struct vc_error *err);

/* Bytes at a value that nobody has looked at, on the line through those of the nearest that are
 * known. of: what a probe says, NAN: nothing. NAN: nobody knows. */
double vc_fit_guess(const struct vc_fit_hunt *h, double (*of)(const struct vc_fit_probe *),
		    uint64_t value);

void vc_fit_hunt_end(struct vc_fit_hunt *h);
