/* SPDX-License-Identifier: Apache-2.0 */
/* rates.h - how fast a product is depends on what it is computed in. */
#pragma once

/* name in a kernel's name, name of the variable VRAMCAST_NULL_FLOPS_..., RTX 4090 (operations a
 * second, simulator/replay/card_rates.c) */
#define VC_NULL_RATE_TABLE(X) \
	X(FP32, "fp32", "FLOPS", 82600000000000ull) \
	X(TF32, "tf32", "FLOPS_TF32", 82500000000000ull) \
	X(FP16, "fp16", "FLOPS_FP16", 165000000000000ull) \
	X(BF16, "bf16", "FLOPS_BF16", 165000000000000ull) \
	X(FP8, "fp8", "FLOPS_FP8", 330000000000000ull) \
	X(FP64, "fp64", "FLOPS_FP64", 1290625000000ull)

enum vc_null_rate {
#define X(id, word, variable, fallback) VC_NULL_##id,
	VC_NULL_RATE_TABLE(X)
#undef X
	VC_NULL_RATES
};

/* Names of a kernel, one for each rate: what it computes in can be read from the recording. */
#define VC_NULL_NAMES(stem) { stem "_fp32", stem "_tf32", stem "_fp16", stem "_bf16", stem "_fp8", \
			      stem "_fp64" }

/* Kernels of a product by how the rows of its matrices begin, in elements: where no 16 bytes can be
 * loaded at once, there are others, which are slower, as their names say on a card. */
enum vc_null_rows { VC_NULL_ROWS_ALIGNED, VC_NULL_ROWS_ALIGN2, VC_NULL_ROWS_ALIGN1 };
#define VC_NULL_NAMES_BY_ROWS(stem) \
	{ VC_NULL_NAMES(stem), VC_NULL_NAMES(stem "_align2"), VC_NULL_NAMES(stem "_align1") }

static inline enum vc_null_rows vc_null_rows(long a, long b, long c)
{
	long all = a | b | c;
	return all & 1 ? VC_NULL_ROWS_ALIGN1 : all & 7 ? VC_NULL_ROWS_ALIGN2 : VC_NULL_ROWS_ALIGNED;
}

/* By cudaDataType: bytes of one element, the operations of one multiplication and addition (two,
 * and eight of complex numbers), and the rate. `tf32`: the caller lets float products take TF32. */
struct vc_null_number {
	double width, operations;
	enum vc_null_rate rate;
};

static inline struct vc_null_number vc_null_number(int type, int tf32)
{
	enum vc_null_rate single = tf32 ? VC_NULL_TF32 : VC_NULL_FP32;

	switch (type) {
	case 0: return (struct vc_null_number){ 4, 2, single };
	case 1: return (struct vc_null_number){ 8, 2, VC_NULL_FP64 };
	case 2: return (struct vc_null_number){ 2, 2, VC_NULL_FP16 };
	case 4: return (struct vc_null_number){ 8, 8, single };
	case 5: return (struct vc_null_number){ 16, 8, VC_NULL_FP64 };
	case 14: return (struct vc_null_number){ 2, 2, VC_NULL_BF16 };
	}
	return (struct vc_null_number){ 1, 2, VC_NULL_FP8 };
}
