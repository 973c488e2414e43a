/* SPDX-License-Identifier: Apache-2.0 */
/* sgl_serving.h - SGLang's scheduler over its radix cache: prefills first, as many as have room for
 * a part of what they may generate; else all that run decode a token, and who has least goes back.
 *
 * Source: sglang/srt/managers/scheduler.py, schedule_policy.py and schedule_batch.py of 0.5.23,
 * first come first served, one step after the other, layers that all keep the whole context. */
#pragma once

#include "simulator/serving/requests.h"
#include "simulator/serving/sgl_radix.h"

struct vc_sgl_config {
	uint64_t tokens;      /* max_total_num_tokens */
	uint64_t page;        /* page_size */
	uint64_t running;     /* max_running_requests */
	uint64_t chunk;       /* chunked_prefill_size; 0: prompts are never cut */
	uint64_t prefill;     /* max_prefill_tokens */
	uint64_t max_len;     /* of a request, prompt and output */
	bool no_caching;      /* disable_radix_cache */
	bool refresh;         /* prefixes of the waiting are kept in use (0.5.22 on) */
};

struct vc_sgl_served { uint32_t request; uint64_t tokens; };

struct vc_sgl_totals {
	uint64_t steps, tokens, queries, hits, retractions, recomputed, finished, generated;
	uint64_t aborted;     /* the last that runs has no page left */
	uint64_t evicted;     /* pages that were forgotten */
};

struct vc_sgl_request;

struct vc_sgl_serving {
	struct vc_sgl_config k;
	const struct vc_requests *requests; /* lent */
	struct vc_sgl_radix tree;
	uint64_t free;                      /* pages */
	struct vc_sgl_request *r;           /* by index of the request */
	size_t r_cap;
	uint32_t *waiting, *running, *back;
	uint32_t *last;                     /* a prefill that has not joined those that run */
	size_t waits, waiting_cap, runs, running_cap, lasts, last_cap, backs, back_cap;
	size_t alive;                       /* requests that have not all of their tokens */
	uint32_t chunked;                   /* index + 1 of the one that is prefilled in parts */
	bool full;                          /* batch_is_full */
	double ratio;                       /* new_token_ratio */
	uint64_t passes;                    /* of admissions */
	bool decodes;                       /* what the last step did */
	size_t dropped;                     /* requests that it gave up for good */
	struct vc_sgl_served *step;
	size_t served, step_cap;
	struct vc_sgl_totals now;
};

int  vc_sgl_serving_init(struct vc_sgl_serving *s, const struct vc_sgl_config *k,
			 const struct vc_requests *requests, struct vc_error *err);
void vc_sgl_serving_fini(struct vc_sgl_serving *s);
/* Why the request can never be served; NULL: it can. */
const char *vc_sgl_refuses(const struct vc_sgl_serving *s, const struct vc_serve_request *rq);
int  vc_sgl_add(struct vc_sgl_serving *s, uint32_t request, struct vc_error *err);
/* Who computes what in the next step; nobody: s->served is 0. */
int  vc_sgl_schedule(struct vc_sgl_serving *s, struct vc_error *err);
/* Its tokens come out. */
int  vc_sgl_output(struct vc_sgl_serving *s, struct vc_error *err);
