/* SPDX-License-Identifier: Apache-2.0 */
/* retired.h - mappings of a journal that was left, to which a thread may still be about to write.
 * Call with the recorder's lock held. */
#pragma once

#include "common/std.h"

/* What is written there from now on goes nowhere. It takes addresses, and no memory. */
void vc_retired_put(void *at, size_t bytes);
/* Those go that were put so long ago that no thread can be in the middle of writing any more. */
void vc_retired_reclaim(void);
