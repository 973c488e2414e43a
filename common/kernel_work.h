/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_work.h - what a launch computes and moves: the plane `work` of a recording. Equal launches
 * share one text, which stands in the dictionary of call sites: event.h, KERNEL. */
#pragma once

#include "common/std.h"

#define VC_WORK_KIND_TABLE(X) \
	X(OTHER, "other") X(GEMM, "gemm") X(CONV, "conv") X(ATTENTION, "attention") \
	X(ELEMENTWISE, "elementwise") X(REDUCTION, "reduction") X(COPY, "copy") \
	X(GATHER, "gather") X(OPTIMIZER, "optimizer") X(COLLECTIVE, "collective") \
	X(GRAPH, "graph")

enum vc_work_kind {
#define X(id, word) VC_WORK_##id,
	VC_WORK_KIND_TABLE(X)
#undef X
	VC_WORK_KINDS
};

/* What a launch costs the program by the clock of the null GPU: about 4 us through the runtime on
 * current machines (NVIDIA, "Understanding the overhead of kernel launches"). */
enum { VC_NULL_SUBMIT_NS = 4000 };

enum { VC_WORK_TYPE = 8, VC_WORK_TEXT = 160, VC_WORK_DIMS = 4 };

struct vc_kernel_work {
	enum vc_work_kind kind;
	char type[VC_WORK_TYPE];    /* what it computes in: "bf16"; "-": not known */
	double flops, read, written; /* operations and bytes */
	/* Products and convolutions (as products): m, n, k, batch. Attention: batch x heads,
	 * queries, keys, width of a head. Collectives: ranks, this rank, the number of the
	 * communicator, ranks on its node (0: not known). Messages: ranks, this rank of the job,
	 * the communicator, the other rank of the job; their type: alone (-), first of a group (f),
	 * another of it (n), and o if it goes to another node. A graph: kernels, products that
	 * wait for each other; its bytes are those of kernels that do not compute. All others:
	 * blocks, threads of one; of a sum how many blocks make one result. */
	uint64_t dim[VC_WORK_DIMS];
};

/* "gemm bf16 137438953472 8388608 4194304 1024 4096 512 1" into buf; returns it. */
const char *vc_kernel_work_text(const struct vc_kernel_work *w, char buf[VC_WORK_TEXT]);
/* Something is known of what it moves or computes, or it is too small to matter. */
static inline bool vc_kernel_work_is_known(const struct vc_kernel_work *w)
{
	return w->kind != VC_WORK_OTHER || w->read + w->written + w->flops > 0 ||
	       w->dim[0] * w->dim[1] <= 1 << 16;
}
/* False: that is no such text. */
bool vc_kernel_work_parse(const char *text, struct vc_kernel_work *w);
const char *vc_kernel_work_kind(enum vc_work_kind k);
