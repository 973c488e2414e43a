/* SPDX-License-Identifier: Apache-2.0 */
/* architecture.c - see architecture.h. */
#include "nullgpu/architecture.h"

#include <stddef.h>

/* CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability":
 * shared memory per SM and per block (opt-in), resident threads and blocks per SM. */
static const struct vc_architecture architectures[] = {
	{  60,  65536,  49152, 2048, 32 }, {  61,  98304,  49152, 2048, 32 },
	{  70,  98304,  98304, 2048, 32 }, {  75,  65536,  65536, 1024, 16 },
	{  80, 167936, 166912, 2048, 32 }, {  86, 102400, 101376, 1536, 16 },
	{  87, 167936, 166912, 1536, 16 }, {  89, 102400, 101376, 1536, 24 },
	{  90, 233472, 232448, 2048, 32 }, { 100, 233472, 232448, 2048, 32 },
	{ 103, 233472, 232448, 2048, 32 }, { 120, 102400, 101376, 1536, 24 },
	{ 121, 102400, 101376, 1536, 24 },
};

const struct vc_architecture *vc_architecture(int cc)
{
	const struct vc_architecture *best = &architectures[0];
	for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
		if (architectures[i].cc <= cc)
			best = &architectures[i];
	return best;
}
