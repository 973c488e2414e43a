/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - named instants and ranges in the order of the allocations around them. */
#ifndef VC_MARKS_H
#define VC_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

/* Offset of a name in the text area, stored once; 0: no room. */
uint32_t vc_marks_name(const char *s, size_t n);
void vc_marks_put(enum vc_mark what, uint32_t name);
void vc_marks_value(enum vc_mark what, uint32_t name, uint64_t bytes); /* with a size */

void vc_marks_before_fork(void);
void vc_marks_after_fork(bool child);

#endif
