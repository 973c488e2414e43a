/* SPDX-License-Identifier: Apache-2.0 */
/* cublaslt.c - libcublasLt: descriptors, one algorithm for every product, modelled time. */
#include "nullgpu/null.h"

#define CUBLAS_VERSION 120804
#define ALLOC_FAILED 3
#define INVALID_VALUE 7
#define COMPUTE_FAST_TF32 77 /* cublasComputeType_t */

struct layout {
	int type, order;
	uint64_t rows, columns;
	int64_t leading, stride, plane;
	int batch;
};

/* cublasLtMatrixLayoutAttribute_t: what a layout holds under each number. */
static const struct { size_t at, size; } attributes[] = {
#define AT(f) { offsetof(struct layout, f), sizeof ((struct layout *)NULL)->f }
	AT(type), AT(order), AT(rows), AT(columns), AT(leading), AT(batch), AT(stride), AT(plane),
};

static int new_object(void **out, size_t size)
{
	*out = calloc(1, size);
	return *out ? 0 : ALLOC_FAILED;
}

VC_API(size_t, cublasLtGetVersion, void)
{
	return CUBLAS_VERSION;
}

VC_API_RETURNS(cublasLtCreate, (void **h), new_object(h, 8))
VC_API_DOES(cublasLtDestroy, (void *h), free(h))

/* What a product is computed in. */
struct operation {
	int compute;
};

VC_API(int, cublasLtMatmulDescCreate, struct operation **d, int compute, int scale)
{
	int bad = new_object((void **)d, sizeof **d);
	if (!bad)
		(*d)->compute = compute;
	return bad;
}

VC_API_DOES(cublasLtMatmulDescDestroy, (void *d), free(d))

VC_API(int, cublasLtMatrixLayoutCreate, struct layout **l, int type, uint64_t rows,
       uint64_t columns, int64_t leading)
{
	*l = calloc(1, sizeof **l);
	if (!*l)
		return ALLOC_FAILED;
	**l = (struct layout){ .type = type, .rows = rows, .columns = columns,
			       .leading = leading, .batch = 1 };
	return 0;
}

VC_API_DOES(cublasLtMatrixLayoutDestroy, (void *l), free(l))

VC_API(int, cublasLtMatrixLayoutSetAttribute, struct layout *l, unsigned attribute, const void *v,
       size_t size)
{
	if (attribute < sizeof attributes / sizeof *attributes &&
	    size == attributes[attribute].size)
		memcpy((char *)l + attributes[attribute].at, v, size);
	return 0;
}

VC_API(int, cublasLtMatrixLayoutGetAttribute, const struct layout *l, unsigned attribute, void *v,
       size_t size, size_t *written)
{
	if (attribute >= sizeof attributes / sizeof *attributes ||
	    (v && size < attributes[attribute].size))
		return INVALID_VALUE;
	if (v)
		memcpy(v, (const char *)l + attributes[attribute].at, attributes[attribute].size);
	if (written)
		*written = attributes[attribute].size;
	return 0;
}

VC_API_RETURNS(cublasLtMatmulPreferenceCreate, (void **p), new_object(p, 8))
VC_API_DOES(cublasLtMatmulPreferenceDestroy, (void *p), free(p))

/* cublasLtMatmulHeuristicResult_t: 64 bytes of algorithm, workspace, status, waves, reserved */
struct heuristic {
	uint64_t algorithm[8];
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
};

VC_API(int, cublasLtMatmulAlgoGetHeuristic, void *h, void *op, void *a, void *b, void *c, void *d,
       void *preference, int wanted, struct heuristic *out, int *n)
{
	*n = wanted > 0;
	if (*n)
		*out = (struct heuristic){ .waves = 1 };
	return 0;
}

VC_API(int, cublasLtMatmul, void *h, const struct operation *op, const void *alpha, const void *a,
       const struct layout *la, const void *b, const struct layout *lb, const void *beta,
       const void *c, const struct layout *lc, void *d, const struct layout *ld,
       const void *algorithm, void *workspace, size_t size, void *stream)
{
	static const char *const names[3][VC_NULL_RATES] =
		VC_NULL_NAMES_BY_ROWS("cublaslt_matmul");
	double m = (double)ld->rows, n = (double)ld->columns, batch = ld->batch;
	double elements = (double)la->rows * (double)la->columns;
	double k = m > 0 ? elements / m : 0;
	struct vc_null_number v = vc_null_number(la->type, op->compute == COMPUTE_FAST_TF32);
	double written = vc_null_number(ld->type, 0).width;
	enum vc_null_rows rows = vc_null_rows(la->leading, lb->leading, ld->leading);
	return vc_null_product(names[rows], stream, &(struct vc_null_product){
		.bytes = batch * (v.width * (m * k + k * n) + written * m * n),
		.operations = v.operations * batch * m * n * k, .rate = v.rate,
		.written = batch * written * m * n,
		.dim = { (uint64_t)m, (uint64_t)n, (uint64_t)k, (uint64_t)batch } });
}
