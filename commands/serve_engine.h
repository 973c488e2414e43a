/* SPDX-License-Identifier: Apache-2.0 */
/* serve_engine.h - what serve plays requests with: vLLM's scheduler, or SGLang's. */
#pragma once

#include "simulator/serving/serving.h"
#include "simulator/serving/sgl_serving.h"

struct vc_engine {
	bool sglang;
	struct vc_serving vllm;
	struct vc_sgl_serving sgl;
};

struct vc_engine_state { uint64_t running, waiting, gave_up, used, tokens; };

/* `sglang`: its release, for which max_batch is chunked_prefill_size; NULL: vLLM. Blocks are pages,
 * and one of them nobody gets. */
int  vc_engine_init(struct vc_engine *e, const char *sglang, const struct vc_serving_config *k,
		    const struct vc_requests *requests, struct vc_error *err);
void vc_engine_fini(struct vc_engine *e);
const char *vc_engine_refuses(const struct vc_engine *e, const struct vc_serve_request *rq);
/* Whether the request ends before it has all of its tokens. */
bool vc_engine_cuts(const struct vc_engine *e, const struct vc_serve_request *rq);
int  vc_engine_add(struct vc_engine *e, uint32_t request, struct vc_error *err);
int  vc_engine_schedule(struct vc_engine *e, struct vc_error *err);
int  vc_engine_output(struct vc_engine *e, struct vc_error *err);
/* Who is there now, and what the last step took. */
struct vc_engine_state vc_engine_state(const struct vc_engine *e);
struct vc_serving_totals vc_engine_totals(const struct vc_engine *e, uint64_t *forgotten);
