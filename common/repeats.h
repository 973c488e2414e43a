/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.h - the loop in a sequence: the longest part in which something is done again and again.
 */
#pragma once

#include "common/std.h"

struct vc_repeats { size_t from, end, period; }; /* what is done twice at least in [from, end) */

/* Where it goes over the middle of x. Of those that go as far, the shortest period. False: nothing
 * is repeated. */
bool vc_repeats_find(const uint64_t *x, size_t n, struct vc_repeats *out);

/* How many micro-batches a period holds, of a step of n operations that has `have` of them: one, or
 * as many as a schedule takes together, a divisor of the stages of its pipeline. 0: it is something
 * else that repeats. */
uint64_t vc_repeats_hold(const struct vc_repeats *r, size_t n, uint64_t have, uint64_t stages);
