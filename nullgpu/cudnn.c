/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn.c - libcudnn, classic interface: handles, tensor descriptors, batch norm, dropout. */
#include "nullgpu/cudnn.h"

/* PyTorch refuses a library older than the one it was built with in the major version only, so
 * one high minor version serves all wheels with cuDNN 9. VRAMCAST_NULL_CUDNN overrides it. */
#define CUDNN_VERSION 91002

size_t vc_cudnn_width(int type)
{
	switch (type) {
	case 0: case 4: return 4;  /* float, int32 */
	case 1: case 10: return 8; /* double, int64 */
	case 2: case 9: return 2;  /* half, bfloat16 */
	}
	return 1;
}

VC_API(size_t, cudnnGetVersion, void)
{
	const char *s = getenv("VRAMCAST_NULL_CUDNN");
	return s && *s ? strtoull(s, NULL, 10) : CUDNN_VERSION;
}

VC_API(size_t, cudnnGetCudartVersion, void)
{
	return 12080;
}

VC_API(int, cudnnGetProperty, int which, int *v)
{
	int n = (int)cudnnGetVersion();
	*v = which == 0 ? n / 10000 : which == 1 ? n / 100 % 100 : n % 100;
	return 0;
}

VC_API(const char *, cudnnGetErrorString, int status)
{
	return status ? "CUDNN_STATUS_ERROR" : "CUDNN_STATUS_SUCCESS";
}

VC_API(void, cudnnGetLastErrorString, char *message, size_t n)
{
	if (n)
		*message = 0;
}

struct handle {
	void *stream;
};

VC_API(int, cudnnCreate, struct handle **h)
{
	*h = calloc(1, sizeof **h);
	return *h ? 0 : VC_CUDNN_NOMEM;
}

VC_API_DOES(cudnnDestroy, (struct handle *h), free(h))
VC_API_DOES(cudnnSetStream, (struct handle *h, void *stream), h->stream = stream)
VC_API_DOES(cudnnGetStream, (struct handle *h, void **stream), *stream = h->stream)

/* ---- descriptors ---- */

#define OBJECT(what, size) \
	VC_API(int, cudnnCreate##what, void **out) \
	{ \
		*out = calloc(1, size); \
		return *out ? 0 : VC_CUDNN_NOMEM; \
	} \
	VC_API(int, cudnnDestroy##what, void *object) \
	{ \
		free(object); \
		return 0; \
	}

OBJECT(TensorDescriptor, sizeof(struct vc_cudnn_tensor))
OBJECT(FilterDescriptor, sizeof(struct vc_cudnn_tensor))
OBJECT(ActivationDescriptor, 64)
OBJECT(CTCLossDescriptor, 64)
OBJECT(ConvolutionDescriptor, 64)
OBJECT(DropoutDescriptor, 64)
OBJECT(PoolingDescriptor, 64)
OBJECT(SpatialTransformerDescriptor, 64)

static void set_sizes(struct vc_cudnn_tensor *t, int n, const int *size, const int *stride)
{
	t->n = n < VC_CUDNN_DIMENSIONS ? n : VC_CUDNN_DIMENSIONS;
	memcpy(t->size, size, (size_t)t->n * sizeof *size);
	if (stride)
		memcpy(t->stride, stride, (size_t)t->n * sizeof *stride);
}

VC_API(int, cudnnSetTensorNdDescriptor, struct vc_cudnn_tensor *t, int type, int n,
       const int *size, const int *stride)
{
	t->type = type;
	set_sizes(t, n, size, stride);
	return 0;
}

VC_API(int, cudnnGetTensorNdDescriptor, const struct vc_cudnn_tensor *t, int wanted, int *type,
       int *n, int *size, int *stride)
{
	size_t bytes = (size_t)(wanted < t->n ? wanted : t->n) * sizeof *size;
	*type = t->type;
	*n = t->n;
	memcpy(size, t->size, bytes);
	memcpy(stride, t->stride, bytes);
	return 0;
}

VC_API(int, cudnnSetFilterNdDescriptor, struct vc_cudnn_tensor *t, int type, int format, int n,
       const int *size)
{
	t->type = type;
	t->format = format;
	set_sizes(t, n, size, NULL);
	return 0;
}

VC_API(int, cudnnGetFilterNdDescriptor, const struct vc_cudnn_tensor *t, int wanted, int *type,
       int *format, int *n, int *size)
{
	*type = t->type;
	*format = t->format;
	*n = t->n;
	memcpy(size, t->size, (size_t)(wanted < t->n ? wanted : t->n) * sizeof *size);
	return 0;
}

/* ---- batch norm and dropout ---- */

enum { SPATIAL_PERSISTENT = 2, PLAIN = 0 };

/* One partial result for each group of 64 channels and so many rows (elements of a channel),
 * beside a counter for each group and a flag for each multiprocessor: 1,400 requests of four nets
 * on an H100, all to the byte (cuDNN 9.19, 2026-11-26). PyTorch asks for this mode where channels
 * are last; in the other modes there is none. */
static uint64_t partial_results(const struct vc_cudnn_tensor *x, int mode, bool backward)
{
	bool wide = x && vc_cudnn_width(x->type) == 4;
	uint64_t rows = x && x->n > 1 ? (uint64_t)x->size[0] : 0;
	uint64_t tile = backward ? 96 : wide ? 64 : 160;

	if (!rows || mode != SPATIAL_PERSISTENT)
		return 0;
	for (int i = 2; i < x->n; i++)
		rows *= (uint64_t)x->size[i];
	return 8ull * (uint64_t)vc_null_card()->sms + (backward ? 0 : 16) +
	       (((uint64_t)x->size[1] + 63) / 64) *
		       ((backward ? 512 : 516) * ((rows + tile - 1) / tile) + 4);
}

/* Other cards than those of 9.0 were not measured. */
static int partial_size(const struct vc_cudnn_tensor *x, int mode, bool backward, size_t *size)
{
	uint64_t bytes = partial_results(x, mode, backward);

	*size = bytes;
	if (bytes && vc_null_card()->cc != 90)
		vc_null_range("cuDNN batch norm, workspace", &(struct vc_null_range){
				      .counted = bytes, .most = 2 * bytes, .measured = true });
	return 0;
}

VC_API(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, void *h, int mode, int ops,
       const struct vc_cudnn_tensor *x, void *z, void *y, void *scale, void *activation,
       size_t *size)
{
	return partial_size(x, mode, false, size);
}

VC_API(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, void *h, int mode, int ops,
       const struct vc_cudnn_tensor *x, void *y, void *dy, void *dz, void *dx, void *scale,
       void *activation, size_t *size)
{
	return partial_size(x, mode, true, size);
}

/* A bit an element, for an activation (API reference), which PyTorch does not ask for. */
VC_API(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void *h, int mode, int ops,
       void *activation, const struct vc_cudnn_tensor *x, size_t *size)
{
	uint64_t elements = ops != PLAIN && x && x->n > 0;
	for (int i = 0; x && i < x->n; i++)
		elements *= (uint64_t)x->size[i];
	*size = (elements + 7) / 8;
	return 0;
}

/* A block for each channel, which reads its part of x (and of dy) once, and writes as much as x. */
static int normalize(struct handle *h, const char *name, const struct vc_cudnn_tensor *x, int reads)
{
	struct vc_kernel_work w = { .kind = VC_WORK_REDUCTION, .type = "fp32",
				    .dim = { 1, 512, 1, 0 } };
	void *stream;
	double bytes = x ? (double)vc_cudnn_width(x->type) : 0;

	for (int i = 0; x && i < x->n; i++)
		bytes *= x->size[i];
	w.dim[0] = x && x->n > 1 ? (uint64_t)x->size[1] : 1;
	w.read = reads * bytes;
	w.written = bytes;
	cudnnGetStream(h, &stream);
	return vc_null_known_work(name, stream, &w);
}

VC_API(int, cudnnBatchNormalizationForwardTrainingEx, struct handle *h, int mode, int ops,
       void *alpha, void *beta, const struct vc_cudnn_tensor *x)
{
	return normalize(h, "cudnn_bn_fw_tr", x, 1);
}

VC_API(int, cudnnBatchNormalizationForwardInference, struct handle *h, int mode, void *alpha,
       void *beta, const struct vc_cudnn_tensor *x)
{
	return normalize(h, "cudnn_bn_fw_inf", x, 1);
}

VC_API(int, cudnnBatchNormalizationBackwardEx, struct handle *h, int mode, int ops, void *alpha,
       void *beta, void *alpha_parameters, void *beta_parameters,
       const struct vc_cudnn_tensor *x)
{
	return normalize(h, "cudnn_bn_bw", x, 2);
}

/* One random state of 16 bytes for every thread the card can hold. */
VC_API(int, cudnnDropoutGetStatesSize, void *h, size_t *size)
{
	const struct vc_null_card *c = vc_null_card();
	*size = (size_t)c->sms * (size_t)c->threads_sm * 16;
	return 0;
}
