/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_serve.h - estimate --serve: what a server of a model holds on a card, and how many
 * tokens are left. */
#pragma once

#include "common/opt.h"

struct vc_serve_ask {
	bool serve, caching, no_caching, eager, json;
	uint64_t context, users, tp, max_batch, max_seqs, block_size, kv_memory, speculative;
	uint64_t weights, states;
	double utilization, window_ratio, state_ratio;
	const char *vllm, *sglang, *kv_dtype, *gpu, *model, *draft;
};

/* 0: fits; 3: does not; 6: the interval leaves it open. */
int vc_estimate_serve(const struct vc_serve_ask *ask, struct vc_console *con);
