/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c - see repeats.h */
#include "common/repeats.h"

enum { WORD = 8, PLACES = 3 }; /* entries that a candidate agrees in; places that are looked at */

static bool same_word(const uint64_t *x, size_t a, size_t b)
{
	for (size_t i = 0; i < WORD; i++)
		if (x[a + i] != x[b + i])
			return false;
	return true;
}

static struct vc_repeats widest(const uint64_t *x, size_t n, size_t at, size_t period)
{
	struct vc_repeats r = { at, at, period };

	while (r.from && x[r.from - 1] == x[r.from - 1 + period])
		r.from--;
	while (r.end + period < n && x[r.end] == x[r.end + period])
		r.end++;
	r.end += period;
	return r;
}

bool vc_repeats_find(const uint64_t *x, size_t n, struct vc_repeats *out)
{
	*out = (struct vc_repeats){ 0 };
	for (size_t k = 0; k < PLACES; k++) {
		size_t at = n / 8 * (k + PLACES); /* 3, 4 and 5 eighths */

		for (size_t p = 1; at + p + WORD <= n; p++) {
			struct vc_repeats r;

			if (x[at] != x[at + p] || !same_word(x, at, at + p))
				continue;
			r = widest(x, n, at, p);
			if (r.end - r.from >= 2 * p && r.end - r.from > out->end - out->from)
				*out = r;
		}
	}
	return out->period > 0;
}

/* A first micro-batch may do a little less than the others, and what is behind the last one is less
 * than all of them. All others repeat, but for those that fill and empty a pipeline. */
uint64_t vc_repeats_hold(const struct vc_repeats *r, size_t n, uint64_t have, uint64_t stages)
{
	uint64_t least = have >= 2 * stages ? have + 1 - 2 * stages : 0;

	for (uint64_t each = 1; each <= stages; each++)
		if (stages % each == 0 && 20 * r->period * have <= 21 * each * n)
			return 2 * r->period * have > each * n &&
			       each * (r->end - r->from) >= least * r->period ? each : 0;
	return 0;
}
