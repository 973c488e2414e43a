/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - computed by a C++ compiler from each version's own c10/cuda/CUDACachingAllocator.h (the
 * value of a pointer to member is 1 + 8 * slot in the Itanium C++ ABI); 2.0.1 to 2.15.0. */
#include "allocator/slots.h"

#include <stddef.h>

static const struct vc_slots table[] = {
	{ 0, 2, 3, 4, 5, 6, 14, 15, 16, 13, 10, 18, 19, 40 },
	{ 3, 5, 4, 6, 7, 8, 16, 17, 18, 15, 12, 20, 21, 48 },
	{ 6, 8, 4, 6, 7, 8, 19, 20, 21, 18, 13, 23, 24, 56 },
	{ 9, 9, 4, 12, 13, 14, 9, 10, 11, 22, 7, 24, 25, 64 },
	{ 10, 15, 4, 13, 14, 15, 9, 10, 11, 24, 7, 26, 27, 72 },
};

const struct vc_slots *vc_slots(int minor)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (minor >= table[i].first && minor <= table[i].last)
			return &table[i];
	return NULL;
}
