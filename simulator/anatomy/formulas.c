/* SPDX-License-Identifier: Apache-2.0 */
/* formulas.c - see formulas.h; sources at each function. */
#include "simulator/anatomy/formulas.h"

#include "common/vec.h"

/* bitsandbytes, Optimizer2State: blocks of 256 values, tensors under 4096 values stay in float. */
enum { SMALLEST_8BIT = 4096 };

/* HF transformers "Methods and tools for efficient training"; torch.optim source for what each
 * keeps; Adafactor: Shazeer and Stern 2018, row and column sums over the last two sides, no
 * momentum; 8-bit: one byte per value for each of two states plus a float scale per block. */
uint64_t vc_optimizer_state(enum vc_optimizer o, struct vc_tensor_shape t, unsigned element,
			    unsigned block)
{
	uint64_t times = t.times ? t.times : 1, n = t.rows * t.cols * times;

	switch (o) {
	case VC_OPT_SGD: return 0;
	case VC_OPT_MOMENTUM: case VC_OPT_LION: case VC_OPT_RMSPROP: case VC_OPT_ADAGRAD:
		return n * element;
	case VC_OPT_ADAM: case VC_OPT_ADAMW: case VC_OPT_LAMB:
		return 2 * n * element;
	case VC_OPT_AMSGRAD: return 3 * n * element;
	case VC_OPT_MUON: /* momentum of matrices, AdamW of the rest */
		return (t.cols > 1 || t.times ? 1 : 2) * n * element;
	case VC_OPT_ADAFACTOR: case VC_OPT_ADAFACTOR_HF:
		return t.cols > 1 || t.times ? 4 * (t.rows + t.cols) * times : 4 * n;
	case VC_OPT_ADAM8BIT:
		return n < SMALLEST_8BIT ? 8 * n : 2 * n + 2 * 4 * vc_per(n, block ? block : 256);
	case VC_OPT_LION8BIT:
		return n < SMALLEST_8BIT ? 4 * n : n + 4 * vc_per(n, block ? block : 256);
	}
	return 0;
}

/* deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, estimate_*_mem_needs: the host part with
 * buffer factor 1.5, one node. */
double vc_deepspeed_host(double p, double largest, unsigned stage, double n, int offload)
{
	const double factor = 1.5;

	if (stage < 3)
		return offload ? p * (4 * n > 16 ? 4 * n : 16) * factor : p * 4 * n * factor;
	if (offload == 2)
		return p * (4 * n > 18 ? 4 * n : 18) * factor;
	if (offload)
		return p * (4 * n > 16 ? 4 * n : 16) * factor;
	return largest * 4 * n * factor;
}

uint64_t vc_lora_values(uint64_t in, uint64_t out, uint64_t rank)
{
	return rank * (in + out); /* Hu et al. 2021: A is rank x in, B is out x rank */
}

/* Dettmers et al. 2023: a float scale per 64 weights; double quantisation: 8 bit per scale and a
 * float per 256 of them. */
double vc_nf4_bits(bool twice)
{
	return twice ? 4 + 8.0 / 64 + 32.0 / (64 * 256) : 4 + 32.0 / 64;
}

/* Korthikanti et al. 2022, table 2, divided by s*b. */
double vc_gpt_layer(double h, double heads, double seq, double t, enum vc_recompute r)
{
	if (r == VC_RECOMPUTE_FULL)
		return 2 * h;
	if (r == VC_RECOMPUTE_SELECTIVE)
		return h * (t > 1 ? 10 + 24 / t : 34);
	return t > 1 ? h * (10 + 24 / t + 5 * heads * seq / (h * t)) :
		       h * (34 + 5 * heads * seq / h);
}

/* Counted from the operations of the layer; not measured. */
double vc_llama_layer(double h, double f, double g)
{
	return 2 * (h + h + (1 + 2 * g) * h + h + h + h + 4 * f);
}

/* What transformers' modules keep beside: the float result of each of two norms before its
 * weight, and rotated queries and keys. */
double vc_llama_eager(double h, double g, double element)
{
	return 2 * 4 * h + (1 + g) * h * element;
}

double vc_llama_rest(double heads)
{
	return 4 * heads + 8;
}

double vc_logits(double tokens, double vocabulary)
{
	return tokens * vocabulary * (2 + 4 + 4 + 4 + 2);
}
