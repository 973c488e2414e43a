/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h - arithmetic on arrays of NCCL's data types, numbered as NCCL numbers types and
 * operations. */
#pragma once

#include "common/std.h"

/* Bytes of one element. */
size_t vc_reduce_width(int type);
bool vc_reduce_is_float(int type);
/* to[i] = to[i] op from[i] for n elements. */
void vc_reduce_add(void *to, const void *from, size_t n, int type, int op);
/* After the contributions of all `ranks`: the average is a sum until here. */
void vc_reduce_finish(void *to, size_t n, int type, int op, int ranks);
