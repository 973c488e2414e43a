/* SPDX-License-Identifier: Apache-2.0 */
/* bindings.h - in a program that was found running: calls between its libraries that a preloaded
 * tracer would have been put into. */
#pragma once

#include "common/std.h"

/* Calls of functions that the tracer interposes go to it from now on; those of CUPTI only where the
 * tracer starts it, too. false: memory is short. */
bool vc_bindings_take(bool cupti);
/* They go where they went before. */
void vc_bindings_give_back(void);
