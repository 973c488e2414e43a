/* SPDX-License-Identifier: Apache-2.0 */
/* sort.h - a sort that leaves equals in their order, whatever C library lies below: the same input
 * gives the same bytes. VC_COMPARE (vec.h) makes the functions that compare. */
#pragma once

#include "common/std.h"

void vc_sort(void *at, size_t n, size_t each, int (*compare)(const void *, const void *));
