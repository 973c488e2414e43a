/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - vramcast serve: does a trace of requests fit the KV cache of a vLLM server? */

#include "commands/choose.h"
#include "commands/progress.h"
#include "commands/serve_engine.h"
#include "commands/serving_model.h"
#include "common/emit.h"
#include "common/io.h"
#include "common/opt.h"
#include "common/vec.h"

struct config {
	const char *vllm, *sglang, *gpu, *model, *kv_dtype, *draft;
	uint64_t speculative;
	double acceptance;
	uint64_t tp, blocks, kv_memory, token_bytes, weights, block_size;
	uint64_t max_seqs, max_batch, max_len, long_prefill, hash_block;
	double utilization, watermark, step_ms, token_us;
	bool no_caching, no_reserve, csv, json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option serve_options[] = {
	{ 0, "vllm", VC_O_TEXT, AT(vllm), "VERSION", "as this release of vLLM, 0.10 to 0.33",
	  VC_VLLM_NEWEST },
	{ 0, "sglang", VC_O_TEXT, AT(sglang), "VERSION",
	  "SGLang's scheduler and radix cache instead, 0.5 to 0.5.23", NULL },
	{ 0, "blocks", VC_O_UINT, AT(blocks), "N",
	  "blocks of the KV cache (num_gpu_blocks)", NULL },
	{ 0, "kv-memory", VC_O_SIZE, AT(kv_memory), "SIZE",
	  "memory of the KV cache, instead of --blocks; needs --token-bytes", NULL },
	{ 'g', "gpu", VC_O_TEXT, AT(gpu), "CARD",
	  "the card, instead of --kv-memory; needs --weights and --token-bytes, or --config",
	  NULL },
	{ 0, "config", VC_O_TEXT, AT(model), "FILE",
	  "config.json of the model: its weights, and what each group of layers keeps", NULL },
	{ 0, "model", VC_O_TEXT, AT(model), "FILE", NULL, NULL },
	{ 0, "tp", VC_O_UINT, AT(tp), "N", "cards that share each layer of --config", "1" },
	{ 0, "kv-dtype", VC_O_TEXT, AT(kv_dtype), "auto|fp8", "numbers in the cache of --config",
	  "auto" },
	{ 0, "speculative", VC_O_UINT, AT(speculative), "N",
	  "drafts of each step (num_speculative_tokens), by EAGLE or MTP", "0" },
	{ 0, "draft", VC_O_TEXT, AT(draft), "MODEL", "the draft model", NULL },
	{ 0, "acceptance", VC_O_REAL, AT(acceptance), "PART",
	  "chance that a draft is right where all before it are", "0.7" },
	{ 0, "weights", VC_O_SIZE, AT(weights), "SIZE",
	  "what vLLM needs beside the KV cache: weights, activations, context", NULL },
	{ 0, "token-bytes", VC_O_SIZE, AT(token_bytes), "SIZE",
	  "of one token in the KV cache: 2 x layers x KV heads x head size x bytes", NULL },
	{ 0, "utilization", VC_O_REAL, AT(utilization), "PART",
	  "gpu_memory_utilization of -g (0.92, before vLLM 0.20 0.9)", NULL },
	{ 0, "block-size", VC_O_UINT, AT(block_size), "TOKENS",
	  "tokens in a block (16; SGLang's page_size: 1)", NULL },
	{ 0, "max-num-seqs", VC_O_UINT, AT(max_seqs), "N",
	  "requests at a time (256; with a card of 70 GiB 1024)", NULL },
	{ 0, "max-num-batched-tokens", VC_O_UINT, AT(max_batch), "N",
	  "tokens in a step (2048; with a card of 70 GiB 8192)", NULL },
	{ 0, "max-model-len", VC_O_UINT, AT(max_len), "TOKENS",
	  "of a request, prompt and output (as much as the cache holds)", NULL },
	{ 0, "long-prefill-token-threshold", VC_O_UINT, AT(long_prefill), "TOKENS",
	  "most tokens of one prompt in a step; 0: all", "0" },
	{ 0, "watermark", VC_O_REAL, AT(watermark), "PART",
	  "part of the blocks that an admission leaves free (vLLM 0.24 on)", "0" },
	{ 0, "no-prefix-caching", VC_O_FLAG, AT(no_caching), NULL,
	  "enable_prefix_caching=False", NULL },
	{ 0, "no-reserve", VC_O_FLAG, AT(no_reserve), NULL,
	  "scheduler_reserve_full_isl=False: let in whose first tokens fit (vLLM 0.19 on)", NULL },
	{ 0, "hash-block", VC_O_UINT, AT(hash_block), "TOKENS",
	  "tokens behind each entry of hash_ids", "512" },
	{ 0, "step-ms", VC_O_REAL, AT(step_ms), "MS", "time of a step, without its tokens", "20" },
	{ 0, "token-us", VC_O_REAL, AT(token_us), "US", "and of each token in it", "50" },
	{ 0, "as", VC_O_AS, 0, "table|csv|json", "csv: one line per step instead of the summary",
	  NULL },
	{ 0, "csv", VC_O_FLAG, AT(csv), NULL, NULL, NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document (vramcast.serve/1)", NULL },
	VC_OPTION_END
};

struct served {
	struct vc_requests requests;
	struct vc_engine s;
	struct vc_serving_config k;
	const char *sglang;          /* its release; NULL: vLLM */
	struct vc_serving_model m;   /* of --config */
	struct vc_kv_server server;
	struct vc_kv_plan plan;
	uint64_t block_bytes;        /* 0: not known */
	uint64_t kv_memory;          /* 0: only the number of blocks is known */
	uint64_t over;               /* bytes of --weights for which there is no room */
	uint64_t cut;                /* requests that end early because the cache ends */
	uint64_t needs;              /* blocks with which all fit; 0: no number is enough */
	bool nothing;                /* no block is left: vLLM does not start */
	uint64_t clock, refused, refused_line;
	uint64_t peak, peak_step, peak_at, most_running, most_waiting;
	const char *why;             /* the first was refused */
	struct vc_emit *csv;
};

enum { SGL_CHUNK = 8192 }; /* chunked_prefill_size of cards from 60 to 90 GB */

/* ---- how large the cache is ---- */
static int cache_memory(const struct config *c, uint64_t *bytes, uint64_t *over,
			struct vc_error *err)
{
	const struct vc_card *card;

	if (!c->gpu) {
		*bytes = c->kv_memory;
		return VC_OK;
	}
	if (c->weights == VC_NOT_GIVEN)
		return vc_fail(err, VC_EUSAGE, "-g needs --weights: what vLLM holds beside the KV "
			       "cache (it logs the model's memory when it starts), or --config "
			       "config.json");
	VC_TRY(vc_card_find(c->gpu, &card, err));
	if (!(c->utilization > 0 && c->utilization <= 1))
		return vc_fail(err, VC_EUSAGE, "--utilization is a part of the card: above 0, at "
			       "most 1");
	*bytes = (uint64_t)((double)card->total * c->utilization);
	*over = c->weights > *bytes ? c->weights - *bytes : 0;
	*bytes -= c->weights - *over;
	return VC_OK;
}

static int cache_blocks(const struct config *c, struct served *v, uint64_t *blocks,
			struct vc_error *err)
{
	int ways = (c->blocks != VC_NOT_GIVEN) + (c->kv_memory != VC_NOT_GIVEN) + (c->gpu != NULL);

	if (ways != 1)
		return vc_fail(err, VC_EUSAGE, "how large is the KV cache? Give one of --blocks, "
			       "--kv-memory and -g");
	if (!v->block_bytes && c->token_bytes != VC_NOT_GIVEN && c->block_size < 1u << 20 &&
	    c->token_bytes < 1ull << 30)
		v->block_bytes = c->block_size * c->token_bytes;
	*blocks = c->blocks;
	if (c->blocks != VC_NOT_GIVEN) {
		if (c->blocks < 1u << 30)
			v->kv_memory = c->blocks * v->block_bytes;
		return VC_OK;
	}
	if (!v->block_bytes)
		return vc_fail(err, VC_EUSAGE, "--token-bytes is missing or senseless: bytes of "
			       "one token, 2 x layers x KV heads x head size x bytes of a number; "
			       "--config config.json says it too");
	VC_TRY(cache_memory(c, &v->kv_memory, &v->over, err));
	*blocks = v->kv_memory / v->block_bytes + (c->sglang && v->kv_memory >= v->block_bytes);
	return VC_OK;
}

/* Groups of layers: whether vLLM starts. */
static int check_groups(const struct served *v, struct vc_error *err)
{
	const struct vc_serving_config *k = &v->k;
	uint64_t one = vc_kv_plan_blocks(&v->plan, &v->server, k->max_len);

	if (vc_serving_has_states(&v->m) && k->max_seqs > k->blocks)
		return vc_fail(err, VC_EUSAGE, "vLLM does not start: %" PRIu64 " state blocks do "
			       "not suffice for %" PRIu64 " sequences; --max-num-seqs %" PRIu64,
			       k->blocks, k->max_seqs, k->blocks);
	if (one >= k->blocks)
		return vc_fail(err, VC_EUSAGE, "vLLM does not start: a sequence of %" PRIu64
			       " tokens takes %" PRIu64 " blocks of its groups of layers, and "
			       "there are %" PRIu64, k->max_len, one, k->blocks - 1);
	return VC_OK;
}

/* The server with v->k.blocks. Where nobody said how long a sequence may be, the cache does. */
static int open_cache(const struct config *c, struct served *v, struct vc_error *err)
{
	struct vc_serving_config *k = &v->k;

	if (c->max_len == VC_NOT_GIVEN && k->blocks > 1 && k->blocks < 1ull << 32 &&
	    k->block_size < 1ull << 30)
		k->max_len = !k->group ? (k->blocks - 1) * k->block_size :
			     vc_kv_plan_longest(&v->plan, &v->server, k->blocks,
						v->m.max_len ? v->m.max_len : 1u << 30);
	if (k->group)
		VC_TRY(check_groups(v, err));
	return vc_engine_init(&v->s, v->sglang, k, &v->requests, err);
}

/* What a model needs where the command line does not say. */
static int with_model(struct config *c, struct served *v, struct vc_error *err)
{
	const struct vc_serving_how how = {
		.tp = c->tp, .kv_bytes = strncmp(c->kv_dtype, "fp8", 3) ? 2 : 1,
		.states = c->speculative, .draft = c->draft,
	};

	if (!c->tp || c->tp > 64 || !c->block_size || c->block_size > 1u << 16)
		return vc_fail(err, VC_EUSAGE, "--tp is 1 to 64, --block-size 1 to 65536");
	VC_TRY(vc_serving_model_read(c->model, &how, &v->m, err));
	if (c->weights == VC_NOT_GIVEN)
		c->weights = (uint64_t)v->m.weights;
	if (c->token_bytes != VC_NOT_GIVEN)
		return VC_OK;
	v->server.block_size = v->m.block > c->block_size ? v->m.block : c->block_size;
	v->server.max_batch = c->max_batch;
	v->server.states = c->speculative;
	v->server.max_len = c->max_len != VC_NOT_GIVEN ? c->max_len : v->m.max_len;
	v->server.caching = !c->no_caching;
	if (!vc_serving_caches(&v->m, v->server.minor))
		c->no_caching = true, v->server.caching = false;
	VC_TRY(vc_kv_plan(&v->m.kv, &v->server, &v->plan, err));
	v->block_bytes = v->plan.block_bytes;
	c->block_size = v->plan.block_size;
	return VC_OK;
}

static int begin(struct config *c, struct served *v, struct vc_error *err)
{
	const struct vc_card *card = c->gpu ? vc_card_by_name(c->gpu) : NULL;
	bool groups;

	v->sglang = c->sglang;
	if (c->sglang && (c->speculative || c->watermark > 0))
		return vc_fail(err, VC_EUSAGE, "--speculative and --watermark are vLLM's");
	if (c->block_size == VC_NOT_GIVEN)
		c->block_size = c->sglang ? 1 : 16;
	if (c->sglang && c->max_batch == VC_NOT_GIVEN)
		c->max_batch = SGL_CHUNK;
	sscanf(c->vllm, "0.%u", &v->server.minor);
	vc_serving_defaults(card, v->server.minor, &c->max_seqs, &c->max_batch, &c->utilization);
	if (c->model)
		VC_TRY(with_model(c, v, err));
	groups = v->plan.groups > 1 || (v->plan.groups && v->plan.group->kind != VC_KV_FULL);
	v->k = (struct vc_serving_config){
		.version = c->vllm, .block_size = c->block_size, .max_seqs = c->max_seqs,
		.max_batch = c->max_batch, .max_len = c->max_len, .long_prefill = c->long_prefill,
		.watermark = c->watermark, .no_caching = c->no_caching,
		.no_reserve = c->no_reserve, .group = groups ? v->plan.group : NULL,
		.groups = v->plan.groups, .in_flight = v->plan.in_flight,
		.drafts = c->speculative, .lookahead = c->speculative,
		.eagle = c->speculative > 0, .acceptance = c->acceptance,
	};
	if (!(c->step_ms >= 0 && c->step_ms < 1e9 && c->token_us >= 0 && c->token_us < 1e9))
		return vc_fail(err, VC_EUSAGE, "a step takes some time: --step-ms and --token-us");
	VC_TRY(cache_blocks(c, v, &v->k.blocks, err));
	v->nothing = c->blocks == VC_NOT_GIVEN && v->k.blocks < 2;
	if (!v->nothing)
		return open_cache(c, v, err);
	v->k.max_len = c->max_len == VC_NOT_GIVEN ? 0 : c->max_len;
	return VC_OK;
}

/* ---- the run ---- */
static int arrive(struct served *v, size_t *next, struct vc_error *err)
{
	for (; *next < v->requests.n && v->requests.at[*next].arrival <= v->clock; ++*next) {
		const struct vc_serve_request *rq = &v->requests.at[*next];
		const char *why = vc_engine_refuses(&v->s, rq);

		if (!why) {
			v->cut += vc_engine_cuts(&v->s, rq);
			VC_TRY(vc_engine_add(&v->s, (uint32_t)*next, err));
		} else if (!v->refused++) {
			v->why = why;
			v->refused_line = rq->line;
		}
	}
	return VC_OK;
}

static void note_step(struct served *v, const struct vc_engine_state *now)
{
	uint64_t forgotten, steps = vc_engine_totals(&v->s, &forgotten).steps;

	if (now->used > v->peak) {
		v->peak = now->used;
		v->peak_step = steps;
		v->peak_at = v->clock;
	}
	v->most_running = now->running > v->most_running ? now->running : v->most_running;
	v->most_waiting = now->waiting > v->most_waiting ? now->waiting : v->most_waiting;
	if (!v->csv)
		return;
	vc_emit_object(v->csv, NULL, NULL);
	vc_emit_uint(v->csv, "step", "step", steps);
	vc_emit_uint(v->csv, "time_ns", "time_ns", v->clock);
	vc_emit_uint(v->csv, "tokens", "tokens", now->tokens);
	vc_emit_uint(v->csv, "blocks_used", "blocks_used", now->used);
	vc_emit_uint(v->csv, "running", "running", now->running);
	vc_emit_uint(v->csv, "waiting", "waiting", now->waiting);
	vc_emit_uint(v->csv, "preempted", "preempted", now->gave_up);
	vc_emit_end(v->csv);
}

static int run(const struct config *c, struct served *v, struct vc_error *err)
{
	struct vc_engine_state now;
	size_t next = 0;

	for (;;) {
		VC_TRY(arrive(v, &next, err));
		now = vc_engine_state(&v->s);
		if (!now.running && !now.waiting) {
			if (next == v->requests.n)
				return VC_OK;
			v->clock = v->requests.at[next].arrival;
			continue;
		}
		VC_TRY(vc_engine_schedule(&v->s, err));
		now = vc_engine_state(&v->s);
		if (!now.tokens && !now.gave_up && (now.running || now.waiting))
			return vc_fail(err, VC_EINTERNAL, "no request can go on");
		note_step(v, &now);
		v->clock += (uint64_t)(c->step_ms * 1e6 +
				       c->token_us * 1e3 * (double)now.tokens);
		VC_TRY(vc_engine_output(&v->s, err));
	}
}

/* ---- how large it should be ---- */

/* Is anybody refused, preempted or cut short for want of blocks? A length that was asked for is no
 * such thing. */
static bool is_short(const struct config *c, const struct served *v)
{
	uint64_t forgotten;

	return vc_engine_totals(&v->s, &forgotten).preemptions ||
	       (c->max_len == VC_NOT_GIVEN && (v->refused || v->cut));
}

static int try_blocks(const struct config *c, const struct served *v, uint64_t blocks, bool *fits,
		      struct vc_error *err)
{
	struct served w = { .requests = v->requests, .k = v->k, .m = v->m, .server = v->server,
			    .plan = v->plan, .sglang = v->sglang };
	int r;

	w.k.blocks = blocks;
	w.k.group = v->k.group ? w.plan.group : NULL;
	r = open_cache(c, &w, err);
	if (r == VC_OK)
		r = run(c, &w, err);
	*fits = !is_short(c, &w);
	vc_engine_fini(&w.s);
	return r;
}

/* The fewest blocks with which all fit, and one less does not: twice as many until they do, then
 * between. Whoever comes when decides, so no formula says it. */
static int look_for_blocks(const struct config *c, struct served *v, struct vc_progress *line,
			   struct vc_error *err)
{
	uint64_t few = v->nothing ? 1 : v->k.blocks, many;
	bool fits = false;

	/* With so many it does not start: one of them is vLLM's own. */
	if (v->nothing && c->max_len != VC_NOT_GIVEN)
		vc_raise(&few, vc_per(c->max_len, v->k.block_size));
	many = few;
	while (!fits) {
		if (many > UINT32_MAX / 4)
			return VC_OK;
		few = many;
		many *= 2;
		vc_progress_say(line, "the requests with %" PRIu64 " blocks", many);
		VC_TRY(try_blocks(c, v, many, &fits, err));
	}
	while (many - few > 1) {
		uint64_t middle = few + (many - few) / 2;

		vc_progress_say(line, "the requests with %" PRIu64 " blocks", middle);
		VC_TRY(try_blocks(c, v, middle, &fits, err));
		*(fits ? &many : &few) = middle;
	}
	v->needs = many;
	return VC_OK;
}

/* ---- the answer ---- */
static void part_line(struct vc_emit *e, const char *label, uint64_t n, uint64_t of,
		      const char *what)
{
	char text[96];

	snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64 " %s (%.1f %%)", n, of, what,
		 of ? 100.0 * (double)n / (double)of : 0.0);
	vc_emit_text(e, NULL, label, text);
}

static void emit_cache(struct vc_emit *e, const struct served *v, const char *version)
{
	const struct vc_serving_config *k = &v->k;
	char text[128], gib[32];

	vc_emit_text(e, "schema", NULL, "vramcast.serve/1");
	vc_emit_text(e, "model", NULL, v->sglang ? "sglang_radix" : "vllm_blocks");
	vc_emit_text(vc_emit_known(e, !v->sglang), "vllm", v->sglang ? NULL : "vLLM", version);
	if (v->sglang)
		vc_emit_text(e, "sglang", "SGLang", v->sglang);
	vc_emit_uint(e, "blocks", NULL, k->blocks);
	vc_emit_uint(e, "block_size", NULL, k->block_size);
	vc_emit_uint(e, "max_model_len", v->nothing ? NULL : "max_model_len", k->max_len);
	vc_emit_uint(e, "max_num_seqs", "max_num_seqs", k->max_seqs);
	vc_emit_uint(e, "max_num_batched_tokens", "max_num_batched_tokens", k->max_batch);
	vc_emit_bytes(vc_emit_known(e, v->kv_memory), "kv_memory", NULL, v->kv_memory);
	snprintf(text, sizeof(text), "%" PRIu64 " blocks of %" PRIu64 " tokens%s%s",
		 v->nothing ? 0 : k->blocks - 1, k->block_size, v->kv_memory ? ", " : "",
		 v->kv_memory ? vc_bytes_text(v->kv_memory, gib) : "");
	vc_emit_text(e, NULL, "KV cache", text);
}

static const char *verdict_of(const struct config *c, const struct served *v)
{
	uint64_t forgotten;

	return v->nothing ? "no_cache" : v->refused ? "refuses" :
	       vc_engine_totals(&v->s, &forgotten).preemptions ? "preempts" :
	       is_short(c, v) ? "cuts" : "fits";
}

/* How much is missing; also for people. */
static void emit_verdict(struct vc_emit *e, const struct config *c, const struct served *v)
{
	uint64_t has = v->nothing ? 0 : v->k.blocks;
	uint64_t missing = v->needs > has ? v->needs - has : 0, tokens = missing * v->k.block_size;
	bool known = v->block_bytes > 0, groups = v->k.group != NULL;
	uint64_t bytes = known ? missing * v->block_bytes + v->over : 0;
	bool fits = !strcmp(verdict_of(c, v), "fits");
	char text[128], size[32];

	vc_emit_text(e, "verdict", NULL, verdict_of(c, v));
	vc_emit_text(e, NULL, "verdict", fits ? "fits" : "does not fit");
	vc_emit_uint(vc_emit_known(e, v->needs), "needs_blocks", NULL, v->needs);
	vc_emit_uint(vc_emit_known(e, v->needs && !groups), "missing_tokens", NULL, tokens);
	vc_emit_bytes(vc_emit_known(e, v->needs && known), "missing_bytes", NULL, bytes);
	if (!v->needs)
		return;
	if (groups)
		snprintf(text, sizeof(text), "%" PRIu64 " block%s, %s", missing,
			 missing == 1 ? "" : "s", vc_bytes_text(bytes, size));
	else
		snprintf(text, sizeof(text), "%" PRIu64 " tokens in %" PRIu64 " block%s%s%s",
			 tokens, missing, missing == 1 ? "" : "s", known ? ", " : "",
			 known ? vc_bytes_text(bytes, size) : "");
	vc_emit_text(e, NULL, missing ? "missing" : NULL, text);
}

static void emit_played(struct vc_emit *e, const struct served *v)
{
	uint64_t forgotten;
	const struct vc_serving_totals now = vc_engine_totals(&v->s, &forgotten);

	vc_emit_uint(e, "requests", "requests", v->requests.n);
	vc_emit_uint(e, "refused", v->refused ? "refused" : NULL, v->refused);
	vc_emit_uint(e, "steps", "steps", now.steps);
	vc_emit_ns(e, "time_ns", "time", v->clock);
	vc_emit_uint(e, "tokens_computed", "tokens computed", now.tokens);
	vc_emit_uint(e, "tokens_generated", "tokens generated", now.generated);
	vc_emit_uint(e, "peak_blocks", NULL, v->peak);
	vc_emit_uint(e, "peak_step", NULL, v->peak_step);
	vc_emit_uint(e, "peak_time_ns", NULL, v->peak_at);
	part_line(e, "peak", v->peak, v->k.blocks - 1, "blocks");
	vc_emit_uint(e, "most_running", "most at a time", v->most_running);
	vc_emit_uint(e, "most_waiting", "most waiting", v->most_waiting);
	vc_emit_uint(e, "preemptions", "preemptions", now.preemptions);
	vc_emit_uint(e, "tokens_thrown_away", now.preemptions ? "tokens thrown away" : NULL,
		     now.recomputed);
	vc_emit_uint(e, "prefix_queries", NULL, now.queries);
	vc_emit_uint(e, "prefix_hits", NULL, now.hits);
	part_line(e, "found in the prefix cache", now.hits, now.queries, "tokens");
	vc_emit_uint(vc_emit_known(e, v->k.drafts), "drafts", NULL, now.drafted);
	vc_emit_uint(vc_emit_known(e, v->k.drafts), "drafts_accepted", NULL, now.accepted);
	if (v->k.drafts)
		part_line(e, "drafts that were right", now.accepted, now.drafted, "tokens");
	vc_emit_uint(e, "blocks_forgotten", "known blocks forgotten", forgotten);
}

static void emit_remarks(struct vc_emit *e, const struct config *c, const struct served *v,
			 bool guessed)
{
	if (v->nothing)
		vc_emit_line(e, "\nNothing is left for the KV cache: what vLLM may use of the card "
			     "is needed beside it.");
	if (guessed)
		vc_emit_line(e, "\n%s beside the cache are the weights of --config, and nothing "
			     "else: vLLM's log says what it really holds (--weights).",
			     vc_bytes_text(c->weights, (char[32]){ "" }));
	if (v->refused)
		vc_emit_line(e, "\n%s refuses %" PRIu64 " request%s: that of line %" PRIu64
			     " because %s", v->sglang ? "SGLang" : "vLLM", v->refused,
			     v->refused == 1 ? "" : "s", v->refused_line,
			     v->why);
	if (v->cut)
		vc_emit_line(e, "\n%" PRIu64 " request%s longer than max_model_len, and %s with "
			     "it.", v->cut, v->cut == 1 ? " is" : "s are",
			     v->cut == 1 ? "ends" : "end");
	vc_emit_line(e, "\nA step is taken to last %g ms and %g us for each token (--step-ms, "
		     "--token-us).", c->step_ms, c->token_us);
}

static void emit_answer(struct vc_emit *e, const struct config *c, const struct served *v,
			bool guessed)
{
	vc_emit_object(e, NULL, "");
	emit_cache(e, v, c->vllm);
	if (!v->nothing)
		emit_played(e, v);
	emit_verdict(e, c, v);
	vc_emit_end(e);
	emit_remarks(e, c, v, guessed);
}

static int serve(struct config *c, const char *path, struct served *v,
		 struct vc_console *con, bool guessed)
{
	enum vc_emit_mode mode = c->csv ? VC_EMIT_CSV : c->json ? VC_EMIT_JSON : VC_EMIT_TEXT;
	struct vc_error *err = &con->err;
	struct vc_progress *line;
	struct vc_emit *e;
	int r;

	VC_TRY(begin(c, v, err));
	VC_TRY(vc_requests_read(&v->requests, path, c->hash_block, err));
	e = vc_emit_file("-", mode, err);
	if (!e)
		return err->status;
	if (c->csv)
		vc_emit_array(e, NULL, NULL);
	v->csv = c->csv ? e : NULL;
	line = vc_progress_open(con);
	vc_progress_say(line, "%zu requests are played", v->requests.n);
	r = v->nothing ? VC_OK : run(c, v, err);
	v->needs = v->k.blocks;
	if (r == VC_OK && !c->csv && (v->nothing || is_short(c, v))) {
		v->needs = 0;
		r = look_for_blocks(c, v, line, err);
	}
	vc_progress_close(line);
	if (c->csv)
		vc_emit_end(e);
	else if (r == VC_OK)
		emit_answer(e, c, v, guessed);
	if (r == VC_OK)
		return vc_emit_done(e, err);
	vc_emit_drop(e);
	return r;
}

static int serve_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct config own = *(const struct config *)config, *c = &own;
	struct served v = { .clock = 0 };
	bool guessed = c->model && c->gpu && c->weights == VC_NOT_GIVEN;
	char draft[1024];
	int r;

	if (argc != 1)
		return vc_fail(&con->err, VC_EUSAGE,
			       "one trace of requests, or - for standard input");
	if (c->csv && c->json)
		return vc_fail(&con->err, VC_EUSAGE, "--csv or --json, not both");
	if (c->speculative > 64 || (c->draft && !(c->speculative && c->model)) ||
	    !(c->acceptance >= 0 && c->acceptance <= 1))
		return vc_fail(&con->err, VC_EUSAGE, "--speculative goes to 64, --draft goes with "
			       "it and --config, --acceptance from 0 to 1");
	if (c->draft && !vc_model_file(c->draft, draft, sizeof(draft)))
		return vc_fail(&con->err, VC_EIO, "%s is no config.json, no folder with one, and "
			       "no model in the hub's cache", c->draft);
	c->draft = c->draft ? draft : NULL;
	if (!c->hash_block || c->hash_block > 1u << 20)
		return vc_fail(&con->err, VC_EUSAGE, "--hash-block is a number of tokens");
	r = serve(c, argv[0], &v, con, guessed);
	if (r == VC_OK && strcmp(verdict_of(c, &v), "fits"))
		r = 3;
	vc_engine_fini(&v.s);
	vc_requests_fini(&v.requests);
	return r;
}

const struct vc_command vc_command_serve = {
	.name = "serve", .operands = "REQUESTS",
	.summary = "does a trace of requests fit the KV cache of a server?",
	.details =
		"Plays the requests with the scheduler and the cache of vLLM or SGLang: what each "
		"request gets, what is\nfound again, who is preempted. REQUESTS is CSV or JSON "
		"lines (docs/howto/serve.md). Exit code 3: a\nrequest is refused, preempted or cut "
		"short; the answer says how many tokens are missing.\n\n"
		"  vramcast serve requests.jsonl -g h100-80g-sxm --weights 17GiB --token-bytes "
		"128KiB\n"
		"  vramcast serve requests.jsonl -g l4 --config config.json\n"
		"  vramcast serve requests.csv --blocks 2048 --as csv > steps.csv",
	.options = VC_OPTIONS(serve_options),
	.config_size = sizeof(struct config), .run = serve_run,
};
