/* SPDX-License-Identifier: Apache-2.0 */
/* formulas.h - published arithmetic of model states: optimizers, LoRA, ZeRO, activations. Every
 * function says its source; docs/reference/transforms.md names them in one place. */
#pragma once

#include "common/std.h"

enum vc_optimizer {
	VC_OPT_SGD, VC_OPT_MOMENTUM, VC_OPT_ADAM, VC_OPT_ADAMW, VC_OPT_AMSGRAD, VC_OPT_ADAFACTOR,
	VC_OPT_LION, VC_OPT_RMSPROP, VC_OPT_ADAGRAD, VC_OPT_LAMB, VC_OPT_ADAM8BIT, VC_OPT_MUON,
	VC_OPT_ADAFACTOR_HF, VC_OPT_LION8BIT
};
/* For VC_P_ENUM parameters, in the same order. */
#define VC_OPTIMIZERS                                                                            \
	"sgd,momentum,adam,adamw,amsgrad,adafactor,lion,rmsprop,adagrad,lamb,adam8bit,muon,"     \
	"adafactor_hf,lion8bit"

/* cols = 1 and times = 0: a vector of `rows`. times: so many matrices in one tensor (the kernels
 * of a convolution); 0: one. */
struct vc_tensor_shape { uint64_t rows, cols, times; };

/* Bytes of optimizer state of one tensor whose values take `element` bytes (states follow the
 * parameter's type, except Adafactor and the 8-bit ones). block: values per scale of 8-bit. */
uint64_t vc_optimizer_state(enum vc_optimizer o, struct vc_tensor_shape t, unsigned element,
			    unsigned block);

/* DeepSpeed's estimators (estimate_zero{2,3}_model_states_mem_needs): bytes of the host. offload:
 * 0 none, 1 optimizer, 2 optimizer and parameters (stage 3 only). largest: values of the largest
 * layer. */
double vc_deepspeed_host(double parameters, double largest, unsigned stage, double ranks,
			 int offload);

/* Values that a LoRA adapter of that rank adds to one linear layer. */
uint64_t vc_lora_values(uint64_t in, uint64_t out, uint64_t rank);
/* Bits per weight of 4-bit NormalFloat, with block-wise scales, double quantisation or not. */
double vc_nf4_bits(bool double_quantisation);

/* Activations of a transformer layer, bytes per token and layer, 16 bit. */
enum vc_recompute { VC_RECOMPUTE_NONE, VC_RECOMPUTE_SELECTIVE, VC_RECOMPUTE_FULL };
double vc_gpt_layer(double hidden, double heads, double seq, double tensor_parallel,
		    enum vc_recompute r);
/* SwiGLU feed-forward f, key-value ratio g, RMSNorm, flash attention, no dropout. */
double vc_llama_layer(double hidden, double feed_forward, double kv_ratio);
/* What is kept beside that, per token and layer: flash attention's log-sum-exp, norm statistics. */
double vc_llama_rest(double heads);
/* Bytes per token and layer that an eager Llama of transformers keeps beside; element: bytes per
 * value. */
double vc_llama_eager(double h, double g, double element);
/* Worst case of the loss: logits in 16 bit, their float copy, log-softmax and both gradients. */
double vc_logits(double tokens, double vocabulary);
