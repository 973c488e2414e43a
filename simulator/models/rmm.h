/* SPDX-License-Identifier: Apache-2.0 */
/* rmm.h - what RMM can and a recording of PyTorch never does: give a block back on another stream
 * than it was asked for on. What free of model.h does, for streams of the caller's choice. */
#pragma once

#include "simulator/replay/model.h"

#define RMM_ALIGNMENT 256u /* rmm::CUDA_ALLOCATION_ALIGNMENT */

void rmm_pool_free_on(struct vc_model *m, struct vc_block *block, uint32_t stream);
