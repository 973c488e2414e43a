/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.h - vLLM's KV-cache manager: layers of one kind form groups, each with a table of
 * blocks per request, all out of one pool.
 *
 * Source: vllm/v1/core/single_type_kv_cache_manager.py, kv_cache_coordinator.py and
 * kv_cache_manager.py. Where the three newest releases differ, struct vc_vllm_rules says it. */
#pragma once

#include "simulator/serving/kv_blocks.h"

/* What differs between releases of vLLM. */
struct vc_vllm_rules {
	bool front;         /* free blocks without a hash go to the front of the queue */
	bool front_cached;  /* but only where the prefix cache is on */
	bool whole;         /* a request is admitted when all of its prompt fits */
	bool watermark;     /* blocks can be kept free at admissions */
	bool alone;         /* the threshold for long prompts is off while one request is there */
	bool hits_admitted; /* hits are counted at the admission, before: at every look */
	bool groups;        /* groups are played for this release */
	bool resent;        /* what a prompt leaves behind is of use to one that equals it */
	bool ahead;         /* a hash covers the token behind its block, for EAGLE, in place of a
			     * found block that is computed again */
	bool verified;      /* blocks that drafts filled are known when they are verified */
	bool keyed_once;    /* a state that is known where it stands is not learnt again, and what a
			     * draft model needs of a junction is kept a block lower, too */
};

enum vc_kv_kind {
	VC_KV_FULL,    /* every token stays: also MLA */
	VC_KV_SLIDING, /* the last `window` tokens stay */
	VC_KV_CHUNKED, /* those of the newest chunk of `window` tokens stay */
	VC_KV_STATE,   /* a block is the state of a whole sequence: Mamba, GDN, linear attention */
	VC_KV_CROSS,   /* the encoder's tokens, when a request is let in */
};

enum { VC_KV_GROUPS = 256 }; /* a draft model may leave groups of one layer */

struct vc_kv_group {
	enum vc_kv_kind kind;
	uint64_t block_size;  /* tokens */
	uint64_t window;      /* of VC_KV_SLIDING and VC_KV_CHUNKED */
	uint64_t states;      /* further states for speculative tokens */
	uint64_t checkpoint;  /* alignment of states taken within a prompt; 0: none are */
	unsigned spec;        /* groups of equal layers have the same number */
	bool eagle;           /* the last found block is computed again, for a draft model */
};

#define VC_KV_DENSE UINT64_MAX

/* Computed by vc_kv_cache_init(): what must fit what. */
struct vc_kv_sizes {
	uint64_t scheduler; /* tokens: multiple of all blocks */
	uint64_t hash;      /* tokens behind each hash */
	uint64_t hit;       /* what is found has a multiple of so many tokens */
	bool fine;          /* a block can be found before it is full */
};

struct vc_kv_table {
	uint32_t *block;
	size_t n, cap;
	size_t cached;       /* blocks whose hash the pool knows, or knew before */
	bool tracked;        /* the request was seen by the prefix cache */
	bool running;        /* of a state: the last block is written by this request */
	size_t retired;      /* of a state: blocks before are gone */
	uint64_t checkpoint; /* of a state: tokens of the one to be taken in this step */
	size_t checkpoint_at;
	uint32_t partial;    /* a block that is found or known in part: to be copied; 0: none */
	size_t partial_at;
};

/* A request as the cache sees it. */
struct vc_kv_owner {
	uint64_t tokens, computed, prompt, encoder;
	uint64_t junction;         /* tokens that others have too, and no state is known for */
	uint64_t *hash;            /* of its beginnings, every vc_kv_sizes.hash tokens */
	size_t hashes, hash_cap;
	struct vc_kv_table *table; /* one per group */
};

struct vc_kv_hit { uint32_t *block; size_t n, cap; };
struct vc_kv_copy { uint32_t group, from, to; };

struct vc_kv_cache {
	struct vc_kv_pool pool;
	struct vc_kv_group group[VC_KV_GROUPS];
	size_t groups;
	struct vc_kv_sizes size;
	struct vc_vllm_rules rules;
	bool caching;
	bool eagle;                /* any group is */
	uint64_t lookahead;        /* slots behind the tokens of a step, for a draft model */
	uint64_t max_len;
	uint64_t retention;        /* tokens between states that are kept; 0: where prompts end;
				    * VC_KV_DENSE: all */
	uint64_t cap[VC_KV_GROUPS];  /* blocks that a request holds at most */
	struct vc_kv_hit hit[VC_KV_GROUPS]; /* of the last vc_kv_lookup() */
	struct vc_kv_copy *copy;   /* of this step */
	uint32_t *end;             /* blocks of the copies */
	size_t copies, copy_cap, end_cap;
	uint64_t *fresh;           /* states that are known only when this step is over */
	size_t freshes, fresh_cap;
};

/* c->group, groups, rules, caching, lookahead and retention are set. `match`: tokens behind each
 * hash, where a finer match is wished; 0: as the groups say. `in_flight`: most tokens that are
 * scheduled and not computed. */
int  vc_kv_cache_init(struct vc_kv_cache *c, uint32_t blocks, uint64_t match, uint64_t in_flight,
		      uint64_t max_len, struct vc_error *err);
void vc_kv_cache_fini(struct vc_kv_cache *c);
void vc_kv_step_starts(struct vc_kv_cache *c);
/* Copies were made: both ends are free again. */
int  vc_kv_step_ends(struct vc_kv_cache *c, struct vc_error *err);
/* What is known of the request's beginning, in c->hit, at most `most` tokens; its length.
 * VC_ENOMEM as (uint64_t)-1. */
uint64_t vc_kv_lookup(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t most);
/* How many free blocks it takes to hold `tokens`, `found` of them in c->hit if `admission`; with
 * `whole` for the whole request. */
int64_t vc_kv_wanted(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t tokens, uint64_t found,
		     bool admission, bool whole);
/* Blocks that attention does not look at any more become free. */
void vc_kv_trim(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t computed);
/* Take them. */
int  vc_kv_allocate(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t tokens, uint64_t found,
		    bool admission, struct vc_error *err);
/* Blocks that are full after this step are known from now on. */
int  vc_kv_learn_blocks(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t tokens,
			struct vc_error *err);
void vc_kv_leave(struct vc_kv_cache *c, struct vc_kv_owner *r);

/* The largest position before which a prompt's state is of use, in steps of `step` tokens. */
uint64_t vc_kv_state_position(const struct vc_kv_cache *c, uint64_t tokens, uint64_t step);
/* Whether a state there can be taken within a step from `start` to `end`. */
bool vc_kv_state_within(uint64_t start, uint64_t end, uint64_t at, uint64_t hash, uint64_t block,
			uint64_t alignment);
static inline uint64_t vc_kv_key(uint64_t hash, size_t group)
{
	uint64_t h = hash ^ (group * 0x9e3779b97f4a7c15u);

	return h ? h : 1;
}
