/* SPDX-License-Identifier: Apache-2.0 */
/* cublas.c - libcublas: handles, modes, and matrix products that take their modelled time.
 *
 * PyTorch hands each handle a workspace from its own allocator before the first product
 * (common/torch_sizes.def). By then the handle has taken memory of its own, which it keeps: one
 * handle a thread, so a training program has two of them. */
#include "nullgpu/null.h"

#include <stdlib.h>

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
		vc_null_at_most("a handle of cuBLAS 13", handle_keeps[KEPT - 1]);
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
VC_API_RETURNS(cublasSetWorkspace_v2, (struct blas *h, void *workspace, size_t size), 0)
VC_API_DOES(cublasGetVersion_v2, (struct blas *h, int *v), *v = CUBLAS_VERSION)

VC_API(const char *, cublasGetStatusString, int status)
{
	return status ? "cuBLAS error" : "CUBLAS_STATUS_SUCCESS";
}

/* bytes of one element by cudaDataType: 0 fp32, 1 fp64, 2 fp16, 14 bf16, 4/5 complex */
static double width_of(int type)
{
	switch (type) {
	case 0: return 4;
	case 1: case 4: return 8;
	case 2: case 14: return 2;
	case 5: return 16;
	}
	return 1;
}

static int product(struct blas *h, const char *name, double m, double n, double k, double batch,
		   double width)
{
	double bytes = batch * width * (m * k + k * n + m * n);
	return vc_null_library_work(name, h->stream, bytes, 2 * batch * m * n * k);
}

VC_API_RETURNS(cublasGemmEx, (struct blas *h, int ta, int tb, int m, int n, int k,
       const void *alpha, const void *a, int a_type),
	product(h, "cublas_gemm", m, n, k, 1, width_of(a_type)))
VC_API_RETURNS(cublasSgemmEx, (struct blas *h, int ta, int tb, int m, int n, int k,
       const void *alpha, const void *a, int a_type),
	product(h, "cublas_gemm", m, n, k, 1, width_of(a_type)))

VC_API(int, cublasGemmStridedBatchedEx, struct blas *h, int ta, int tb, int m, int n, int k,
       const void *alpha, const void *a, int a_type, int lda, long stride_a, const void *b,
       int b_type, int ldb, long stride_b, const void *beta, void *c, int c_type, int ldc,
       long stride_c, int batch)
{
	return product(h, "cublas_gemm_batched", m, n, k, batch, width_of(a_type));
}

#define GEMM(letter, width) \
	VC_API(int, cublas##letter##gemm_v2, struct blas *h, int ta, int tb, int m, int n, int k) \
	{ \
		return product(h, "cublas_gemm", m, n, k, 1, width); \
	} \
	VC_API(int, cublas##letter##gemmStridedBatched, struct blas *h, int ta, int tb, int m, \
	       int n, int k, const void *alpha, const void *a, int lda, long stride_a, \
	       const void *b, int ldb, long stride_b, const void *beta, void *c, int ldc, \
	       long stride_c, int batch) \
	{ \
		return product(h, "cublas_gemm_batched", m, n, k, batch, width); \
	} \
	VC_API(int, cublas##letter##gemv_v2, struct blas *h, int ta, int m, int n) \
	{ \
		return product(h, "cublas_gemv", m, 1, n, 1, width); \
	}

/* no libtorch asks for this one: vLLM's own library does */
VC_API(int, cublasHgemm, struct blas *h, int ta, int tb, int m, int n, int k)
{
	return product(h, "cublas_gemm", m, n, k, 1, 2);
}

GEMM(S, 4)
GEMM(D, 8)
GEMM(C, 8)
GEMM(Z, 16)
