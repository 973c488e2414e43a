/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - loops whose number of turns depends on the parameter, found in each recording of a
 * family by itself: a loss in chunks, tasks one after the other, batches until a constant number of
 * samples is reached. */
#ifndef VC_TURNS_H
#define VC_TURNS_H

#include "simulator/predict/loops.h"

/* Loops of each of n recordings whose number of turns differs between them: out[k] is of m[k], at
 * the value x[k]. Nothing is found where no call sites were recorded. The caller frees each with
 * vc_loops_fini. Errors: VC_ENOMEM. */
int vc_turns_find(const struct vc_allocations *m, const double *x, size_t n, struct vc_loops *out,
		  struct vc_error *err);

#endif
