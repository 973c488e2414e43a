/* SPDX-License-Identifier: Apache-2.0 */
/* serve_engine.c - see serve_engine.h. */
#include "commands/serve_engine.h"

enum { NEWEST = 23, MAX_PREFILL = 16384 }; /* of 0.5; max_prefill_tokens */

static bool release_of(const char *version, unsigned *patch)
{
	char end = '\0';

	*patch = NEWEST;
	return !strcmp(version, "0.5") ||
	       (sscanf(version, "0.5.%u%c", patch, &end) == 1 && *patch <= NEWEST);
}

int vc_engine_init(struct vc_engine *e, const char *sglang, const struct vc_serving_config *k,
		   const struct vc_requests *requests, struct vc_error *err)
{
	unsigned patch;

	e->sglang = sglang != NULL;
	if (!sglang)
		return vc_serving_init(&e->vllm, k, requests, err);
	if (!release_of(sglang, &patch))
		return vc_fail(err, VC_EUSAGE, "SGLang \"%s\" is not known, try 0.5 .. 0.5.%d",
			       sglang, NEWEST);
	if (k->group)
		return vc_fail(err, VC_ENOSUP, "SGLang is played where all layers keep the whole "
			       "context, and this model has others");
	const struct vc_sgl_config s = {
		.tokens = (k->blocks - (k->blocks > 0)) * k->block_size, .page = k->block_size,
		.running = k->max_seqs, .chunk = k->max_batch, .prefill = MAX_PREFILL,
		.max_len = k->max_len, .no_caching = k->no_caching, .refresh = patch >= 22,
	};
	return vc_sgl_serving_init(&e->sgl, &s, requests, err);
}

void vc_engine_fini(struct vc_engine *e)
{
	if (e->sglang)
		vc_sgl_serving_fini(&e->sgl);
	else
		vc_serving_fini(&e->vllm);
}

const char *vc_engine_refuses(const struct vc_engine *e, const struct vc_serve_request *rq)
{
	return e->sglang ? vc_sgl_refuses(&e->sgl, rq) : vc_serving_refuses(&e->vllm, rq);
}

bool vc_engine_cuts(const struct vc_engine *e, const struct vc_serve_request *rq)
{
	const struct vc_sgl_config *k = &e->sgl.k;
	uint64_t most = k->max_len < k->tokens ? k->max_len : k->tokens;

	if (!e->sglang)
		return rq->prompt + rq->output > e->vllm.k.max_len;
	return rq->prompt + rq->output + 2 > most;
}

int vc_engine_add(struct vc_engine *e, uint32_t request, struct vc_error *err)
{
	return e->sglang ? vc_sgl_add(&e->sgl, request, err) :
			   vc_serving_add(&e->vllm, request, err);
}

int vc_engine_schedule(struct vc_engine *e, struct vc_error *err)
{
	return e->sglang ? vc_sgl_schedule(&e->sgl, err) : vc_serving_schedule(&e->vllm, err);
}

int vc_engine_output(struct vc_engine *e, struct vc_error *err)
{
	return e->sglang ? vc_sgl_output(&e->sgl, err) : vc_serving_output(&e->vllm, err);
}

struct vc_engine_state vc_engine_state(const struct vc_engine *e)
{
	struct vc_engine_state now = { 0, 0, 0, 0, 0 };

	if (e->sglang) {
		const struct vc_sgl_serving *s = &e->sgl;

		now.running = s->alive - s->waits;
		now.waiting = s->waits;
		now.gave_up = s->backs + s->dropped;
		now.used = s->k.tokens / s->k.page - s->free;
		for (size_t k = 0; k < s->served; k++)
			now.tokens += s->step[k].tokens;
		return now;
	}
	now = (struct vc_engine_state){ e->vllm.runs, e->vllm.waits, e->vllm.gave_up,
					e->vllm.cache.pool.n - 1 - e->vllm.cache.pool.free, 0 };
	for (size_t k = 0; k < e->vllm.served; k++)
		now.tokens += e->vllm.step[k].tokens;
	return now;
}

struct vc_serving_totals vc_engine_totals(const struct vc_engine *e, uint64_t *forgotten)
{
	const struct vc_sgl_totals *t = &e->sgl.now;

	*forgotten = e->sglang ? t->evicted : e->vllm.cache.pool.evicted;
	if (!e->sglang)
		return e->vllm.now;
	return (struct vc_serving_totals){
		.steps = t->steps, .tokens = t->tokens, .queries = t->queries, .hits = t->hits,
		.preemptions = t->retractions + t->aborted, .recomputed = t->recomputed,
		.finished = t->finished, .generated = t->generated,
	};
}
