/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the device clock: it moves with the work that is submitted, see streams.c. */
#include "nullgpu/null.h"

#include <stdatomic.h>

static _Atomic uint64_t now = 1000000000;

uint64_t vc_null_clock(void)
{
	return atomic_load_explicit(&now, memory_order_relaxed);
}

void vc_null_clock_set(uint64_t to)
{
	if (to > vc_null_clock())
		atomic_store_explicit(&now, to, memory_order_relaxed);
}
