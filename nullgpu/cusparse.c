/* SPDX-License-Identifier: Apache-2.0 */
/* cusparse.c - libcusparse: what the size of its scratch could be, and the one function that does
 * not return a status.
 *
 * The documentation gives no sizes. What sorting, transposing and balancing need is linear in the
 * matrix: assumed is 32 bytes for each value and row of the largest matrix that was made: an
 * index and a value of it, twice over. */
#include "nullgpu/null.h"

static uint64_t largest; /* rows and values */

static int make(void **out, int64_t rows, int64_t values)
{
	static long object[32]; /* matrices have no behaviour: one stands for all */
	uint64_t n = (uint64_t)rows + (uint64_t)values;
	if (n > __atomic_load_n(&largest, __ATOMIC_RELAXED))
		__atomic_store_n(&largest, n, __ATOMIC_RELAXED);
	*out = object;
	return 0;
}

VC_API(int, cusparseCreateCsr, void **out, int64_t rows, int64_t columns, int64_t values,
       void *offsets, void *indices, void *data, int offset_type, int index_type, int base,
       int type)
{
	return make(out, rows, values);
}

VC_API_RETURNS(cusparseCreateCoo, (void **out, int64_t rows, int64_t columns, int64_t values,
       void *row_indices, void *column_indices, void *data, int index_type, int base, int type),
	make(out, rows, values))

void vc_cusparse_scratch(const char *name)
{
	vc_null_range(name, &(struct vc_null_range){
		.most = 32 * __atomic_load_n(&largest, __ATOMIC_RELAXED) });
}

/* libraryPropertyType: major, minor, patch. Those of CUDA 12.9. */
VC_API(int, cusparseGetProperty, unsigned which, int *v)
{
	static const int version[] = { 12, 5, 10 };
	if (which >= sizeof version / sizeof *version)
		return 3; /* CUSPARSE_STATUS_INVALID_VALUE */
	*v = version[which];
	return 0;
}

VC_API(const char *, cusparseGetErrorString, int e)
{
	return e ? "cuSPARSE error" : "success";
}
