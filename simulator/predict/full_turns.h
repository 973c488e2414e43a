/* SPDX-License-Identifier: Apache-2.0 */
/* full_turns.h - what the full turns of loops ask for. A recording whose loop makes one full turn
 * and one that is not shows no stretch that repeats itself, and either may be matched. */
#ifndef VC_FULL_TURNS_H
#define VC_FULL_TURNS_H

#include "simulator/predict/loops.h"

struct vc_full_turns;

/* Of n recordings, at the values x[], and their loops, which are lent. Errors: VC_ENOMEM. */
int vc_full_turns_new(const struct vc_allocations *m, const struct vc_loops *loops,
		      const double *x, size_t n, struct vc_full_turns **out, struct vc_error *err);
void vc_full_turns_free(struct vc_full_turns *t); /* NULL is fine */

/* Is block i of recording `base`, which is like one of a turn, matched with a block j of recording
 * k that has another size and stands in no stretch, while k asks for one like i, too, or makes one
 * turn that may well be that part of a full one? Then a full turn asks for as much in both, and j
 * is of one that is not full. t: NULL, there are no loops. */
bool vc_full_turns_has(const struct vc_full_turns *t, size_t base, size_t i, size_t k, uint32_t j);

#endif
