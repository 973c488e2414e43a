/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - named instants and ranges in the order of the allocations around them. */
#pragma once

#include "common/std.h"

#include "common/event.h"

/* `name` from vc_names_put. */
void vc_marks_put(enum vc_mark what, uint32_t name);
void vc_marks_value(enum vc_mark what, uint32_t name, uint64_t bytes); /* with a size */
/* So much "device" or "pinned host" memory was refused. */
void vc_marks_refusal(const char *memory, size_t bytes);
