/* SPDX-License-Identifier: Apache-2.0 */
/* still_clock.c - a null GPU's clock on which nothing has happened yet: preloaded. */
#include <stdint.h>

uint64_t vc_null_clock(void);
uint64_t vc_null_clock(void)
{
	return 1000000000;
}
