/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - texts of the journal that records refer to: a name is stored once. */
#pragma once

#include "common/std.h"

/* Where the name stands in the text area; 0: it is NULL or empty, or there is no room. */
uint32_t vc_names_put(const char *s);

void vc_names_before_fork(void);
void vc_names_after_fork(bool child);
