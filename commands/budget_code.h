/* SPDX-License-Identifier: Apache-2.0 */
/* budget_code.h - what 'fit --find budget' chose, as code to paste. */
#pragma once

#include "common/emit.h"
#include "simulator/search/budget.h"

/* limit: bytes that the allocator may reserve; 0: nothing limits it. */
void vc_budget_paste(struct vc_emit *e, const struct vc_budget *b, const uint8_t *how,
		    uint64_t limit);
