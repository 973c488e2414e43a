/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_sglang.c - see estimate_sglang.h. SGLang takes a part of the memory that is free before
 * it loads (mem_fraction_static); what the weights leave of it is divided into pools. */
#include "commands/estimate_sglang.h"

#include "commands/serving_model.h"
#include "common/emit.h"
#include "simulator/serving/sgl_plan.h"

struct sgl {
	struct vc_serving_model m;
	struct vc_sgl_server server;
	struct vc_sgl_plan plan[3]; /* at least, best, at most */
	double memory[3];           /* of all pools; the largest when the least lies beside it */
	double weights[3];
	int verdict;                /* 0 fits, 1 undecided, 2 does not */
	const char *why;
};

/* is_hybrid_swa_model in srt/configs/model_config.py: others keep all tokens in all layers. */
static bool has_windows(const char *type)
{
	static const char *const types[] = { "gemma4", "gpt_oss", "llama4", "mimo_v2", "step3p5",
					     "step3p7", "granite_swa", "granitemoe_swa" };

	for (size_t i = 0; type && i < sizeof(types) / sizeof(*types); i++)
		if (!strncmp(type, types[i], strlen(types[i])))
			return true;
	return false;
}

static int verdict_of(const struct vc_serve_ask *a, struct sgl *s, const struct vc_sgl_plan *p)
{
	uint64_t context = a->context ? a->context : s->server.max_len;

	s->why = !p->tokens || (p->state_bytes && !p->states) ? "the weights leave no room" :
		 p->narrow ? "the pool of the window does not hold one request" :
		 p->running < a->users && p->state_bytes ? "so many users have no states" :
		 p->tokens / a->users < context ? "so many users do not fit at a time" : NULL;
	return s->why ? 2 : 0;
}

/* What is free before the weights: the card without what CUDA and NCCL hold by then. */
static void memory_of(const struct vc_serve_ask *a, const struct vc_card *card, struct sgl *s)
{
	static const double libraries[3] = { 1.1, 0.5, 0.25 };
	double weights = a->weights == VC_NOT_GIVEN ? s->m.weights : (double)a->weights;
	double slack = a->weights == VC_NOT_GIVEN ? s->m.slack : 0;

	for (int i = 0; i < 3; i++) {
		s->weights[i] = weights * (1 + slack * (1 - i));
		s->memory[i] = a->kv_memory != VC_NOT_GIVEN ? (double)a->kv_memory :
			       ((double)card->total - libraries[i] * (1u << 30)) * a->utilization -
			       s->weights[i];
	}
}

static int work_out(const struct vc_serve_ask *a, const struct vc_card *card, const char *path,
		    struct sgl *s, struct vc_error *err)
{
	const struct vc_serving_how how = {
		.tp = a->tp, .states = a->speculative, .draft = a->draft, .wide_states = true,
		.kv_bytes = a->kv_dtype && !strncmp(a->kv_dtype, "fp8", 3) ? 1 : 2,
	};
	int of[3];

	VC_TRY(vc_serving_model_read(path, &how, &s->m, err));
	s->server = (struct vc_sgl_server){
		.page = a->block_size == VC_NOT_GIVEN ? s->m.block ? s->m.block : 1 : a->block_size,
		.states = a->states, .running = a->max_seqs == VC_NOT_GIVEN ? 0 : a->max_seqs,
		.max_len = a->context ? a->context : s->m.max_len, .state_ratio = a->state_ratio,
		.window_ratio = a->window_ratio, .radix = !a->no_caching,
		.windows = has_windows(s->m.type),
	};
	if (!s->server.max_len)
		return vc_fail(err, VC_EUSAGE, "how long may a request be? --context N");
	memory_of(a, card, s);
	for (int i = 2; i >= 0; i--) {
		s->server.memory = s->memory[i] > 0 ? (uint64_t)s->memory[i] : 0;
		VC_TRY(vc_sgl_plan(&s->m.kv, &s->server, &s->plan[i], err));
		of[i] = verdict_of(a, s, &s->plan[i]);
	}
	s->verdict = of[2] ? 2 : of[0] ? 1 : 0;
	return VC_OK;
}

/* ---- the answer ---- */
static void pool(struct vc_emit *e, const char *kind, uint64_t each, uint64_t n)
{
	if (!each)
		return;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "kind", "keeps", kind);
	vc_emit_bytes(e, "entry_bytes", "bytes of one", each);
	vc_emit_uint(e, "entries", "how many", n);
	vc_emit_bytes(e, "bytes", "bytes", each * n);
	vc_emit_end(e);
}

static void emit_pools(struct vc_emit *e, const struct vc_sgl_plan *p)
{
	vc_emit_array(e, "pools", "Pools, per card");
	pool(e, "tokens", p->full_bytes, p->tokens);
	pool(e, "tokens in a window", p->window_bytes, p->window_tokens);
	pool(e, "states", p->state_bytes, p->states + 1);
	vc_emit_end(e);
}

static uint64_t whole(double v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static int emit(const struct vc_serve_ask *a, const struct vc_card *card, const struct sgl *s,
		struct vc_console *con)
{
	static const char *const words[] = { "fits", "undecided", "oom" };
	const struct vc_sgl_plan *p = s->plan;
	struct vc_emit *e = vc_emit_stdout(a->json, &con->err);

	if (!e)
		return con->err.status;
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.estimate/1");
	vc_emit_text(e, "level", NULL, "formulas");
	vc_emit_text(e, "sglang", "SGLang", a->sglang);
	vc_emit_text(e, "gpu", "card", card ? card->name : NULL);
	vc_emit_uint(e, "tp", "tensor parallel", a->tp);
	vc_emit_uint(e, "params", "parameters", whole(s->m.params));
	vc_emit_uint(e, "context_length", "context_length", s->server.max_len);
	vc_emit_uint(e, "page_size", "page_size", s->server.page);
	vc_emit_bytes(e, "weights", "weights per card", whole(s->weights[1]));
	vc_emit_text(e, "weights_source", "from", s->m.from);
	vc_emit_bytes(e, "kv_memory", "left for the pools", whole(s->memory[1]));
	vc_emit_bytes(e, "kv_memory_low", "at least", whole(s->memory[0]));
	vc_emit_bytes(e, "kv_memory_high", "at most", whole(s->memory[2]));
	emit_pools(e, &p[1]);
	vc_emit_between(e, "tokens", "max_total_num_tokens",
			(uint64_t[]){ p[0].tokens, p[1].tokens, p[2].tokens });
	if (p->state_bytes)
		vc_emit_between(e, "states", "max_mamba_cache_size",
				(uint64_t[]){ p[0].states, p[1].states, p[2].states });
	vc_emit_between(e, "running", "max_running_requests",
			(uint64_t[]){ p[0].running, p[1].running, p[2].running });
	vc_emit_uint(e, "users", "users", a->users);
	vc_emit_text(e, "verdict", "verdict", words[s->verdict]);
	vc_emit_text(e, "why", s->why ? "because" : NULL, s->why);
	vc_emit_end(e);
	return vc_emit_done(e, &con->err);
}

int vc_estimate_sglang(const struct vc_serve_ask *a, const struct vc_card *card,
		       const char *path, struct vc_console *con)
{
	struct sgl s = { .verdict = 0 };

	if (strncmp(a->sglang, "0.5", 3) || (a->sglang[3] && a->sglang[3] != '.'))
		return vc_fail(&con->err, VC_EUSAGE, "SGLang \"%s\" is not known, try 0.5",
			       a->sglang);
	if (a->kv_memory == VC_NOT_GIVEN && (!card || isnan(a->utilization)))
		return vc_fail(&con->err, VC_EUSAGE, "--sglang wants one card and --utilization "
			       "(mem_fraction_static, which SGLang logs), or --kv-memory SIZE");
	VC_TRY(work_out(a, card, path, &s, &con->err));
	VC_TRY(emit(a, card, &s, con));
	return s.verdict == 0 ? 0 : s.verdict == 2 ? 3 : 6;
}
