/* SPDX-License-Identifier: Apache-2.0 */
/* cufft.c - libcufft: plans and their scratch memory. */
#include "nullgpu/null.h"

VC_API(int, cufftCreate, int *plan)
{
	static int plans;
	*plan = __atomic_add_fetch(&plans, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* That of CUDA 12.9. */
VC_API_DOES(cufftGetVersion, (int *version), *version = 11401)

/* cuFFT documents its scratch memory as "in most cases" one copy of the (complex) data, up to
 * eight times that in the worst case. Lengths that a single kernel holds need none: 4096 points
 * of 8 bytes fill the shared memory of the smallest card. Two dimensions go one after the other, in
 * the result: an H100 took none for 128, 160 and 224 points each way (CUDA 13.0, between real and
 * complex data). Three were not seen. */
static int scratch(int rank, size_t points, size_t longest, bool twice, size_t *size)
{
	size_t copy = points * (twice ? 16 : 8);
	*size = rank <= 2 && longest <= 4096 ? 0 : copy;
	vc_null_at_most("cuFFT workspaces", 8 * copy - *size);
	return 0;
}

VC_API(int, cufftXtMakePlanMany, int plan, int rank, const long long *n, const long long *in_embed,
       long long in_stride, long long in_distance, int in_type, const long long *out_embed,
       long long out_stride, long long out_distance, int out_type, long long batch, size_t *size,
       int type)
{
	size_t points = (size_t)batch, longest = 0;
	for (int i = 0; i < rank; i++) {
		points *= (size_t)n[i];
		if ((size_t)n[i] > longest)
			longest = (size_t)n[i];
	}
	/* CUDA_R_64F, CUDA_C_64F */
	return scratch(rank, points, longest, type == 1 || type == 5, size);
}

/* cufftType: transforms of doubles are D2Z (0x6a), Z2D (0x6c) and Z2Z (0x69). */
VC_API(int, cufftMakePlanMany, int plan, int rank, const int *n, const int *in_embed, int in_stride,
       int in_distance, const int *out_embed, int out_stride, int out_distance, int type, int batch,
       size_t *size)
{
	size_t points = (size_t)batch, longest = 0;
	for (int i = 0; i < rank; i++) {
		points *= (size_t)n[i];
		if ((size_t)n[i] > longest)
			longest = (size_t)n[i];
	}
	return scratch(rank, points, longest, type == 0x6a || type == 0x6c || type == 0x69, size);
}
