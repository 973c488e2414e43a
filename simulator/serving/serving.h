/* SPDX-License-Identifier: Apache-2.0 */
/* serving.h - vLLM's scheduler over its block pool: which request runs in a step, with how many
 * tokens, in which blocks, and who has to give way.
 *
 * Source: vllm/v1/core/sched/scheduler.py of each release, first come first served, one step after
 * the other. */
#pragma once

#include "common/error.h"
#include "simulator/serving/kv_groups.h"
#include "simulator/serving/requests.h"

/* Rules of "0.11" (patch numbers are ignored); NULL: the newest. -1: not known. */
int vc_vllm_rules_for(const char *version, struct vc_vllm_rules *out);
#define VC_VLLM_OLDEST "0.10"
#define VC_VLLM_NEWEST "0.33"

struct vc_serving_config {
	const char *version;     /* of vLLM; NULL: the newest */
	uint64_t blocks;         /* num_gpu_blocks, the null block included */
	uint64_t block_size;     /* tokens in a block */
	uint64_t max_seqs;       /* max_num_seqs */
	uint64_t max_batch;      /* max_num_batched_tokens */
	uint64_t max_len;        /* max_model_len */
	uint64_t long_prefill;   /* long_prefill_token_threshold; 0: off */
	double watermark;        /* of the blocks */
	bool no_caching;         /* enable_prefix_caching=False */
	bool no_reserve;         /* scheduler_reserve_full_isl=False */
	const struct vc_kv_group *group; /* NULL: all layers attend to the whole context */
	size_t groups;
	uint64_t match;          /* prefix_match_unit; 0: as the groups say */
	uint64_t retention;      /* prefix_cache_retention_interval; VC_KV_DENSE: None */
	uint64_t in_flight;      /* tokens of steps that overlap; 0: max_batch */
	uint64_t encoder;        /* tokens that the encoder of each request gives */
	uint64_t drafts;         /* num_speculative_tokens */
	uint64_t lookahead;      /* num_lookahead_tokens: slots that the draft model writes */
	uint64_t draft_slots;    /* max_num_new_slots_for_drafting: of a step, per request */
	bool eagle;              /* drafts come from the model's own states (EAGLE, MTP) */
	double acceptance;       /* chance that a draft is right, where all before it are */
};

struct vc_served { /* of one step */
	uint32_t request;
	uint64_t tokens;
	uint64_t drafts; /* of them: behind the known ones, to be verified */
	bool padded;     /* with drafts that nobody proposed */
};

struct vc_serving_totals {
	uint64_t steps, tokens;  /* computed, those of preempted requests again and again */
	uint64_t queries, hits;  /* tokens that were looked for in the cache, and found */
	uint64_t preemptions, recomputed; /* tokens that a preemption threw away */
	uint64_t finished, generated;
	uint64_t drafted, accepted; /* drafts that were verified, and were right */
	uint64_t operations;     /* successful calls for slots */
};

struct vc_running; /* a request while it is there */

struct vc_serving {
	struct vc_serving_config k;
	struct vc_vllm_rules rules;
	const struct vc_requests *requests; /* lent; may grow between steps */
	struct vc_kv_cache cache;
	uint64_t ahead;                     /* tokens behind a block that its hash covers */
	bool states;                        /* steps end where a state is to be kept */
	uint64_t checkpoint;                /* unless it is taken on the way: their alignment */
	struct vc_running *r;               /* by index of the request */
	size_t r_cap;
	uint32_t *running, *given_up;       /* in order; preempted in the last step */
	size_t runs, running_cap, gave_up, given_cap;
	uint32_t first, last;               /* of the waiting; index + 1 */
	size_t waits;
	struct vc_served *step;             /* what the last step computed */
	size_t served, step_cap;
	struct vc_serving_totals now;
};

int  vc_serving_init(struct vc_serving *s, const struct vc_serving_config *k,
		     const struct vc_requests *requests, struct vc_error *err);
void vc_serving_fini(struct vc_serving *s);

/* Why the request can never be served with this cache; NULL: it can. */
const char *vc_serving_refuses(const struct vc_serving *s, const struct vc_serve_request *rq);
/* The request arrives, at the end of the queue. */
int vc_serving_add(struct vc_serving *s, uint32_t request, struct vc_error *err);
/* Who computes what in the next step: s->step and s->given_up tell. */
int vc_serving_schedule(struct vc_serving *s, struct vc_error *err);
/* The step was computed: its tokens come out, and who has all of them leaves. */
int vc_serving_output(struct vc_serving *s, struct vc_error *err);
void vc_serving_abort(struct vc_serving *s, uint32_t request);
/* The blocks of a request that runs, in a group. */
const uint32_t *vc_serving_blocks(const struct vc_serving *s, uint32_t request, size_t group,
				  size_t *n);
