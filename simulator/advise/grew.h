/* SPDX-License-Identifier: Apache-2.0 */
/* grew.h - what two recordings of one program differ by, by kind: tensors, workspaces of
 * convolutions, buffers of compiled graphs, the allocator's cache; which convolution, and who
 * computes it. */
#pragma once

#include "common/emit.h"
#include "simulator/advise/diff.h"

enum vc_grew_kind {
	VC_GREW_TENSORS, VC_GREW_WORKSPACE, VC_GREW_GRAPH, VC_GREW_CACHE, VC_GREW_KINDS
};

/* A convolution that cuDNN computes in one of both, or with other workspace. */
struct vc_grew_convolution {
	char *key;              /* "forward bf16 nchw 1x96x..." (convolution.h) */
	uint64_t bytes[2];      /* most workspace that it took */
	uint64_t times[2];      /* computed by cuDNN; 0: not by cuDNN */
	uint32_t site[2];
};

/* At the call site that changed most: the largest request of either. */
struct vc_grew_largest { uint64_t size[2]; uint32_t site[2]; };

struct vc_grew {
	uint64_t kind[VC_GREW_KINDS][2]; /* bytes at the peak of what is reserved */
	char cudnn[2][24];               /* "": no convolution was recorded */
	struct vc_grew_convolution *conv; size_t convs; /* the largest change first */
	struct vc_grew_largest largest;
	char kernels[200];               /* that only B runs, those that take longest; "": none */
};

/* side and d as for vc_diff_init, which was called before. Errors: VC_ENOMEM. */
int vc_grew_init(struct vc_grew *g, const struct vc_diff_side side[2], const struct vc_diff *d,
		 struct vc_error *err);
void vc_grew_fini(struct vc_grew *g);

/* What changed, where, and who computes it now, in sentences; "" where nothing did. name: how the
 * sides are called ("torch=2.8", "torch=2.9.1"). Returns buf. */
char *vc_grew_words(const struct vc_grew *g, const struct vc_diff_side side[2],
		    const struct vc_diff *d, const char *const name[2], char *buf, size_t n);
/* "kinds", "convolutions", ... of an open object; tables for people. */
void vc_grew_emit(struct vc_emit *e, const struct vc_grew *g);
