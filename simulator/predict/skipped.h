/* SPDX-License-Identifier: Apache-2.0 */
/* skipped.h - recordings in which the optimizer made no step. A gradient scaler (torch.amp) begins
 * with a large factor and lets the optimizer skip each step whose gradients overflow, often the
 * first few: such a recording lacks the optimizer's states, which the run will have. */
#ifndef VC_SKIPPED_H
#define VC_SKIPPED_H

#include "simulator/predict/allocations.h"

/* Did a gradient scaler scale losses, and the optimizer ask for nothing? False where no call sites
 * were recorded. */
bool vc_skipped_all(const struct vc_allocations *m);

/* Bytes that Adam would keep: two blocks for each of the parameters that have gradients. */
uint64_t vc_skipped_states(const struct vc_allocations *m);

#endif
