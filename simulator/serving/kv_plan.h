/* SPDX-License-Identifier: Apache-2.0 */
/* kv_plan.h - from the layers of a model to the groups of its KV cache, the bytes of a block, and
 * the tokens that vLLM says when it starts.
 *
 * Source: vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py), kv_cache_interface.py and
 * platforms/interface.py of the releases. */
#pragma once

#include "simulator/serving/kv_groups.h"

/* Layers that are alike; the first kind is that of the first layer. */
struct vc_kv_layers {
	enum vc_kv_kind kind;
	uint64_t n;
	uint64_t bytes;       /* of one token, K and V; of VC_KV_STATE: of the whole state */
	uint64_t window;
	bool draft;           /* of a model that speculates */
};

enum { VC_KV_LAYERS = 16 };

struct vc_kv_model {
	struct vc_kv_layers of[VC_KV_LAYERS];
	size_t kinds;
	bool mla;
};

struct vc_kv_server {
	unsigned minor;       /* of vLLM: 0.33 is 33 */
	uint64_t block_size;  /* tokens; what vLLM is told or its own 16 */
	uint64_t max_len, max_batch, encoder;
	uint64_t states;      /* tokens that a draft model proposes */
	bool caching, one_kind; /* prefix cache; disable_hybrid_kv_cache_manager */
};

struct vc_kv_plan {
	struct vc_kv_group group[VC_KV_GROUPS];
	uint64_t layers[VC_KV_GROUPS];
	size_t kind[VC_KV_GROUPS];    /* in vc_kv_model */
	size_t groups;
	uint64_t block_size;          /* tokens of the smallest block */
	uint64_t block_bytes;         /* of a block in all layers of a group */
	uint64_t request[VC_KV_GROUPS]; /* blocks that a request of max_len holds at most */
	uint64_t in_flight;
};

int vc_kv_plan(const struct vc_kv_model *m, const struct vc_kv_server *v, struct vc_kv_plan *out,
	       struct vc_error *err);
/* "GPU KV cache size" and "Maximum concurrency" with so many blocks. */
uint64_t vc_kv_plan_tokens(const struct vc_kv_plan *p, const struct vc_kv_server *v,
			   uint64_t blocks, double *requests);
/* Blocks that a request of so many tokens holds at most. */
uint64_t vc_kv_plan_blocks(const struct vc_kv_plan *p, const struct vc_kv_server *v,
			   uint64_t tokens);
/* The longest request, of at most so many tokens, that fewer than `blocks` hold; 0: none. */
uint64_t vc_kv_plan_longest(const struct vc_kv_plan *p, const struct vc_kv_server *v,
			    uint64_t blocks, uint64_t most);
