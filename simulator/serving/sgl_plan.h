/* SPDX-License-Identifier: Apache-2.0 */
/* sgl_plan.h - how SGLang divides what memory is left: tokens of all layers, tokens of the layers
 * with a window, states.
 *
 * Source: sglang/srt/mem_cache/kv_cache_configurator.py and model_executor/pool_configurator.py of
 * 0.5.23. */
#pragma once

#include "simulator/serving/kv_plan.h"

struct vc_sgl_server {
	uint64_t memory;      /* bytes, of all pools */
	uint64_t page;        /* tokens: page_size */
	uint64_t states;      /* max_mamba_cache_size; 0: a part of the memory */
	uint64_t running;     /* max_running_requests; 0: not said */
	uint64_t max_len;     /* context_length */
	double state_ratio;   /* mamba_full_memory_ratio: memory of states / that of tokens */
	double window_ratio;  /* swa_full_tokens_ratio: tokens with a window / others */
	bool radix;           /* the radix cache is on */
	bool windows;         /* layers with a window have a pool of their own */
};

struct vc_sgl_plan {
	uint64_t full_bytes;   /* of a token in the layers that keep all */
	uint64_t window_bytes; /* of a token in those with a window */
	uint64_t state_bytes;  /* of a state, all layers together */
	uint64_t tokens;       /* max_total_num_tokens */
	uint64_t window_tokens;
	uint64_t states;       /* max_mamba_cache_size; one more is allocated */
	uint64_t running;      /* max_running_requests, at most */
	bool narrow;           /* the pool of the window does not hold one request */
};

int vc_sgl_plan(const struct vc_kv_model *m, const struct vc_sgl_server *v, struct vc_sgl_plan *p,
		struct vc_error *err);
