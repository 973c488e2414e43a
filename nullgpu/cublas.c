/* SPDX-License-Identifier: Apache-2.0 */
/* cublas.c - libcublas: handles, modes, and matrix products that take their modelled time.
 *
 * PyTorch hands each handle a workspace from its own allocator before the first product
 * (common/torch_sizes.def). By then the handle has taken memory of its own, which it keeps: one
 * handle a thread, so a training program has two of them. */
#include "nullgpu/null.h"

#define CUBLAS_VERSION 120804
#define CUBLAS_ALLOC_FAILED 3

/* What cublasCreate of cuBLAS 13 asked the driver for on an H100, in this order (PyTorch
 * 2.11.0+cu130, driver 580.159.04, 168 recordings: docs/measurements/gpu.md). */
static const size_t handle_keeps[] = { 1024, 131072, 64u << 20 };
enum { KEPT = sizeof handle_keeps / sizeof *handle_keeps };

struct blas {
	void *stream;
	int math_mode, pointer_mode, atomics_mode;
	uint64_t kept[KEPT];
};

VC_API(int, cublasDestroy_v2, struct blas *h)
{
	for (size_t i = 0; h && i < KEPT; i++)
		if (h->kept[i])
			vc_null_free(h->kept[i]);
	free(h);
	return 0;
}

/* On other cards nobody has looked: there it is an interval. cuBLAS 12 is left alone: the cards
 * whose contexts are known were measured with it, handles included. */
static int take(struct blas *h)
{
	int bad = 0;

	if (vc_null_card()->cc != 90) {
		vc_null_beside("a handle of cuBLAS 13", handle_keeps[KEPT - 1]);
		return 0;
	}
	for (size_t i = 0; i < KEPT && !bad; i++)
		bad = vc_null_alloc(vc_null_current(), handle_keeps[i], &h->kept[i]);
	return bad;
}

VC_API(int, cublasCreate_v2, struct blas **h)
{
	*h = calloc(1, sizeof **h);
	if (*h && VC_CUDA_MAJOR >= 13 && take(*h)) {
		cublasDestroy_v2(*h);
		*h = NULL;
	}
	return *h ? 0 : CUBLAS_ALLOC_FAILED;
}

VC_API_DOES(cublasSetStream_v2, (struct blas *h, void *stream), h->stream = stream)
VC_API_DOES(cublasGetStream_v2, (struct blas *h, void **stream), *stream = h->stream)
VC_API_DOES(cublasGetMathMode, (struct blas *h, int *mode), *mode = h->math_mode)
VC_API_DOES(cublasSetMathMode, (struct blas *h, int mode), h->math_mode = mode)
VC_API_DOES(cublasGetPointerMode_v2, (struct blas *h, int *mode), *mode = h->pointer_mode)
VC_API_DOES(cublasSetPointerMode_v2, (struct blas *h, int mode), h->pointer_mode = mode)
VC_API_DOES(cublasGetVersion_v2, (struct blas *h, int *v), *v = CUBLAS_VERSION)

VC_API(const char *, cublasGetStatusString, int status)
{
	return status ? "cuBLAS error" : "CUBLAS_STATUS_SUCCESS";
}

/* cublasComputeType_t; in a handle's mode of mathematics TF32 is 3 */
#define COMPUTE_FAST_TF32 77
#define MATH_TF32 3

enum shape { ONE, BATCHED, VECTOR };

static int into(struct blas *h, enum shape shape, enum vc_null_rows rows, double m, double n,
		double k, double batch, int type, int compute, int result)
{
	static const char *const names[][3][VC_NULL_RATES] = {
		VC_NULL_NAMES_BY_ROWS("cublas_gemm"), VC_NULL_NAMES_BY_ROWS("cublas_gemm_batched"),
		VC_NULL_NAMES_BY_ROWS("cublas_gemv"),
	};
	struct vc_null_number v =
		vc_null_number(type, compute == COMPUTE_FAST_TF32 || h->math_mode == MATH_TF32);
	double written = vc_null_number(result, 0).width;
	return vc_null_product(names[shape][rows], h->stream, &(struct vc_null_product){
		.bytes = batch * (v.width * (m * k + k * n) + written * m * n),
		.operations = v.operations * batch * m * n * k, .rate = v.rate,
		.written = batch * written * m * n,
		.dim = { (uint64_t)m, (uint64_t)n, (uint64_t)k, (uint64_t)batch } });
}

static int product(struct blas *h, enum shape shape, double m, double n, double k, double batch,
		   int type, int compute)
{
	return into(h, shape, VC_NULL_ROWS_ALIGNED, m, n, k, batch, type, compute, type);
}

VC_API(int, cublasGemmEx, struct blas *h, int ta, int tb, int m, int n, int k, const void *alpha,
       const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta,
       void *c, int c_type, int ldc, int compute)
{
	return into(h, ONE, vc_null_rows(lda, ldb, ldc), m, n, k, 1, a_type, compute, c_type);
}

VC_API_RETURNS(cublasSgemmEx, (struct blas *h, int ta, int tb, int m, int n, int k,
       const void *alpha, const void *a, int a_type),
	product(h, ONE, m, n, k, 1, a_type, 0))

VC_API(int, cublasGemmStridedBatchedEx, struct blas *h, int ta, int tb, int m, int n, int k,
       const void *alpha, const void *a, int a_type, int lda, long stride_a, const void *b,
       int b_type, int ldb, long stride_b, const void *beta, void *c, int c_type, int ldc,
       long stride_c, int batch, int compute)
{
	return into(h, BATCHED, vc_null_rows(lda, ldb, ldc), m, n, k, batch, a_type, compute,
		    c_type);
}

#define GEMM(letter, type) \
	VC_API(int, cublas##letter##gemm_v2, struct blas *h, int ta, int tb, int m, int n, int k) \
	{ \
		return product(h, ONE, m, n, k, 1, type, 0); \
	} \
	VC_API(int, cublas##letter##gemmStridedBatched, struct blas *h, int ta, int tb, int m, \
	       int n, int k, const void *alpha, const void *a, int lda, long stride_a, \
	       const void *b, int ldb, long stride_b, const void *beta, void *c, int ldc, \
	       long stride_c, int batch) \
	{ \
		return product(h, BATCHED, m, n, k, batch, type, 0); \
	} \
	VC_API(int, cublas##letter##gemv_v2, struct blas *h, int ta, int m, int n) \
	{ \
		return product(h, VECTOR, m, 1, n, 1, type, 0); \
	}

/* no libtorch asks for this one: vLLM's own library does */
VC_API(int, cublasHgemm, struct blas *h, int ta, int tb, int m, int n, int k)
{
	return product(h, ONE, m, n, k, 1, 2, 0);
}

GEMM(S, 0)
GEMM(D, 1)
GEMM(C, 4)
GEMM(Z, 5)
