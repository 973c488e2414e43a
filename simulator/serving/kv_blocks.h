/* SPDX-License-Identifier: Apache-2.0 */
/* kv_blocks.h - vLLM's block pool: which block of the KV cache a request gets, which is forgotten.
 *
 * All blocks are alike, so there is nothing to fit and no bytes: a block is a number. Free blocks
 * stand in one queue; those that still hold a known prefix keep their hash until they are taken.
 * Source: vllm/v1/core/block_pool.py and kv_cache_utils.py. */
#pragma once

#include "common/error.h"
#include "common/map.h"

struct vc_kv_block {
	uint32_t prev, next; /* neighbours in the free queue */
	uint32_t refs;       /* requests that use it, copies that read or write it */
	uint64_t tokens;     /* of the prefix that its first hash stands for */
};

/* A hash that a block is known by. Entry i is the first of block i; further ones stand behind. */
struct vc_kv_entry {
	uint64_t hash;         /* of the tokens up to its end, for one group; 0: none */
	uint32_t block;
	uint32_t older, newer; /* entries of the same hash, by age; 0: none */
	uint32_t newest;       /* of the oldest of them: the other end */
	uint32_t more;         /* the block's next entry; of a spare one: the next spare; 0: none */
};

struct vc_kv_pool {
	struct vc_kv_block *block; /* n, then the two ends of the free queue */
	struct vc_kv_entry *entry; /* n, then further ones */
	size_t entries, entry_cap;
	uint32_t spare;
	uint32_t n;                /* block 0 is never given out: vLLM's null block */
	uint32_t free;
	struct vc_map known;       /* hash -> the oldest entry that has it */
	uint64_t evicted;          /* blocks whose hash was forgotten because they were taken */
};

int  vc_kv_init(struct vc_kv_pool *p, uint32_t blocks, struct vc_error *err);
void vc_kv_fini(struct vc_kv_pool *p);

/* The block that holds the prefix of that hash; 0: none does. */
uint32_t vc_kv_find(const struct vc_kv_pool *p, uint64_t hash);
/* One more request uses a block that was found. */
void vc_kv_touch(struct vc_kv_pool *p, uint32_t block);
/* The first free block; there is one. What it held is forgotten. */
uint32_t vc_kv_take(struct vc_kv_pool *p);
/* The block is known by the hash of a prefix of so many tokens from now on, besides what it was
 * known by. false: no memory. */
bool vc_kv_learn(struct vc_kv_pool *p, uint32_t block, uint64_t hash, uint64_t tokens);
/* Forget what the block is known by; false: nothing. */
bool vc_kv_unlearn(struct vc_kv_pool *p, uint32_t block);
/* `to` is known by what `from` was known by. false: no memory. */
bool vc_kv_move(struct vc_kv_pool *p, uint32_t from, uint32_t to);
/* Whether the block is known by that hash. */
bool vc_kv_known(const struct vc_kv_pool *p, uint32_t block, uint64_t hash);
/* The n blocks of a request, in its order, null blocks among them: the last one becomes free first.
 * `front`: those without a hash go to the front of the queue, where vLLM has that rule. */
void vc_kv_release(struct vc_kv_pool *p, const uint32_t *block, size_t n, bool front);
/* Forget all hashes; false: blocks are in use, nothing was done. */
bool vc_kv_forget(struct vc_kv_pool *p);
