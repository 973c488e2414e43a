/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn.h - shared by the files of the stand-in libcudnn. */
#pragma once

#include "nullgpu/null.h"

#define VC_CUDNN_NOMEM 2     /* CUDNN_STATUS_ALLOC_FAILED in its oldest numbering */
#define VC_CUDNN_DIMENSIONS 8

/* A tensor or filter descriptor of the classic interface. */
struct vc_cudnn_tensor {
	int type, format, n;
	int size[VC_CUDNN_DIMENSIONS], stride[VC_CUDNN_DIMENSIONS];
};

/* Bytes of one element by cudnnDataType_t. */
size_t vc_cudnn_width(int type);

VC_SHARED size_t cudnnGetVersion(void);
struct handle;
VC_SHARED int cudnnGetStream(struct handle *h, void **stream);
