/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.c - libcupti: versions and clocks; no records yet come out of it. */
#include "nullgpu/null.h"

VC_API(int, cuptiGetVersion, unsigned *v)
{
	*v = VC_CUDA_MAJOR >= 13 ? 130000 : 26; /* CUPTI_API_VERSION of 13.0 and 12.8 */
	return 0;
}

VC_API(int, cuptiGetResultString, int e, const char **s)
{
	*s = e ? "CUPTI_ERROR" : "CUPTI_SUCCESS";
	return 0;
}

VC_API(int, cuptiGetTimestamp, uint64_t *t)
{
	*t = vc_null_clock();
	return 0;
}

VC_API(int, cuptiActivityGetNextRecord, void *buffer, size_t size, void **record)
{
	*record = 0;
	return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED: no more records */
}

VC_API(int, cuptiActivityGetNumDroppedRecords, void *context, unsigned stream, size_t *n)
{
	*n = 0;
	return 0;
}
