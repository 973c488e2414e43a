/* SPDX-License-Identifier: Apache-2.0 */
/* live_words.h - what a process that is being recorded does, in words. */
#pragma once

#include "tracer/live.h"

/* "runs out in about 340 steps (in 22 minutes), because attention.py:88 keeps 2.00 MiB a step"; ""
 * when it does not. */
const char *vc_live_words(const struct vc_live_page *p, char *buf, size_t n);
