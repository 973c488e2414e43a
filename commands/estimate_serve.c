/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_serve.c - see estimate_serve.h. The groups and the tokens are vLLM's own arithmetic;
 * what lies beside the cache is known when a server has run, and a band until then. */
#include "commands/estimate_serve.h"

#include "commands/choose.h"
#include "commands/estimate_sglang.h"
#include "commands/serving_model.h"
#include "common/emit.h"

/* What is beside the cache on one card. */
struct need { double low, bytes, high; };
enum { WEIGHTS, ACTIVATIONS, LIBRARIES, GRAPHS, TERMS };

/* What ends a start, or keeps the users out. */
enum death { NONE, NO_ROOM, TOO_LONG, NO_STATES, TOO_MANY };

struct answer {
	const struct vc_card *card;
	struct need term[TERMS], sum, cache;
	uint64_t max_seqs, max_batch, tp;
	double part;             /* of the card */
	struct vc_kv_server server;
	struct vc_kv_plan plan;
	double requests[3];      /* of max_len at a time; at least, best, at most */
	uint64_t blocks[3], tokens[3];
	enum death death[3];
	int verdict;             /* 0 fits, 1 undecided, 2 does not */
};

/* ---- what is beside the cache ---- */

/* One forward pass of max_num_batched_tokens: what a layer holds at once, or the logits of
 * max_num_seqs with the sampler's copies, whichever is more. */
static void activations(const struct vc_serving_model *m, struct answer *w)
{
	double wide = (4 * m->hidden + 6 * m->inner / (double)w->tp) * (double)w->max_batch;
	double seqs = (double)(w->max_seqs < w->max_batch ? w->max_seqs : w->max_batch);
	double logits = seqs * m->vocabulary * 10, most = fmax(wide, logits);

	w->term[ACTIVATIONS] = (struct need){ 0.5 * most, most, 1.6 * most + (256u << 20) };
}

/* 34 kB a node at most, a third of it seen; a dozen nodes in a layer, a graph for each of vLLM's
 * capture sizes: 1, 2, 4, then steps of 8 to 256 and of 16 to 512 (config/vllm.py). */
static void graphs(const struct vc_serve_ask *a, const struct vc_serving_model *m,
		   struct answer *w)
{
	double most = (double)(w->max_seqs < 256 ? 2 * w->max_seqs : 512);
	double sizes = 3 + fmin(most, 256) / 8 + fmax(0, most - 256) / 16;
	double nodes = sizes * m->layers * 12;

	if (!a->eager)
		w->term[GRAPHS] = (struct need){ nodes * 4e3, nodes * 11e3,
						 nodes * 34e3 + (256u << 20) };
}

/* Cards of a server that NVLink joins: NCCL keeps buffers for each channel of it. */
static bool is_linked(const struct answer *w)
{
	return w->tp > 1 && w->card && w->card->total >= 70ull << 30;
}

static void add_up(const struct vc_serve_ask *a, const struct vc_serving_model *m,
		   struct answer *w)
{
	double weights = a->weights == VC_NOT_GIVEN ? m->weights : (double)a->weights;
	double all;

	w->term[WEIGHTS] = (struct need){ weights * (1 - m->slack), weights,
					  weights * (1 + m->slack) };
	if (a->weights != VC_NOT_GIVEN)
		w->term[WEIGHTS] = (struct need){ weights, weights, weights };
	activations(m, w);
	w->term[LIBRARIES] = (struct need){ 64u << 20, 300u << 20, 1100u << 20 };
	if (is_linked(w)) /* vllm-project/vllm#10511; over PCIe 0.2 GiB, #14447 */
		w->term[LIBRARIES] = (struct need){ 200u << 20, 1024u << 20, 3600u << 20 };
	graphs(a, m, w);
	w->sum = (struct need){ 0, 0, 0 };
	for (int i = 0; i < (w->server.minor < 21 ? GRAPHS : TERMS); i++) {
		w->sum.low += w->term[i].low;
		w->sum.bytes += w->term[i].bytes;
		w->sum.high += w->term[i].high;
	}
	all = w->card ? (double)w->card->total * w->part : 0;
	w->cache = (struct need){ all - w->sum.high, all - w->sum.bytes, all - w->sum.low };
	if (a->kv_memory != VC_NOT_GIVEN)
		w->cache = (struct need){ (double)a->kv_memory, (double)a->kv_memory,
					  (double)a->kv_memory };
}

/* ---- how many tokens ---- */
static uint64_t request_length(const struct vc_serve_ask *a, const struct answer *w)
{
	return a->context && a->context < w->server.max_len ? a->context : w->server.max_len;
}

static enum death death_of(const struct vc_serve_ask *a, const struct vc_serving_model *m,
			   const struct answer *w, uint64_t blocks)
{
	uint64_t one = vc_kv_plan_blocks(&w->plan, &w->server, w->server.max_len);
	uint64_t each = vc_kv_plan_blocks(&w->plan, &w->server, request_length(a, w));

	if (blocks < 2)
		return NO_ROOM;
	if (blocks < one + 1)
		return TOO_LONG;
	if (vc_serving_has_states(m) && w->server.minor >= 25 && !a->eager && w->max_seqs > blocks)
		return NO_STATES;
	return blocks - 1 < a->users * each ? TOO_MANY : NONE;
}

static int fill(const struct vc_serve_ask *a, const struct vc_serving_model *m, struct answer *w,
		struct vc_error *err)
{
	const double bytes[3] = { w->cache.low, w->cache.bytes, w->cache.high };

	VC_TRY(vc_kv_plan(&m->kv, &w->server, &w->plan, err));
	for (int i = 2; i >= 0; i--) {
		w->blocks[i] = bytes[i] > 0 ? (uint64_t)bytes[i] / w->plan.block_bytes : 0;
		w->tokens[i] = vc_kv_plan_tokens(&w->plan, &w->server, w->blocks[i],
						 &w->requests[i]);
		w->death[i] = death_of(a, m, w, w->blocks[i]);
	}
	w->verdict = w->death[2] ? 2 : w->death[0] ? 1 : 0;
	return VC_OK;
}

static int work_out(const struct vc_serve_ask *a, const struct vc_card *card, uint64_t tp,
		    const char *path, struct vc_serving_model *m, struct answer *w,
		    struct vc_error *err)
{
	const struct vc_serving_how how = {
		.tp = tp, .states = a->speculative, .draft = a->draft,
		.kv_bytes = a->kv_dtype && !strncmp(a->kv_dtype, "fp8", 3) ? 1 : 2,
	};
	char end = '.';

	*w = (struct answer){ .card = card, .tp = tp };
	if (sscanf(a->vllm, "0.%u%c", &w->server.minor, &end) < 1 || end != '.' ||
	    w->server.minor < 10 || w->server.minor > 33)
		return vc_fail(err, VC_EUSAGE, "vLLM \"%s\" is not known, try 0.10 .. 0.33",
			       a->vllm);
	VC_TRY(vc_serving_model_read(path, &how, m, err));
	w->server.block_size = a->block_size == VC_NOT_GIVEN ? 16 : a->block_size;
	if (m->block > w->server.block_size)
		w->server.block_size = m->block;
	w->server.states = a->speculative;
	w->server.max_len = a->context ? a->context : m->max_len;
	w->server.caching = !a->no_caching &&
			    (a->caching || vc_serving_caches(m, w->server.minor));
	if (!w->server.max_len)
		return vc_fail(err, VC_EUSAGE, "how long may a request be? --context N");
	w->max_seqs = a->max_seqs;
	w->max_batch = a->max_batch;
	w->part = a->utilization;
	vc_serving_defaults(card, w->server.minor, &w->max_seqs, &w->max_batch, &w->part);
	w->server.max_batch = w->max_batch;
	add_up(a, m, w);
	return fill(a, m, w, err);
}

/* ---- what avoids it ---- */
/* One option more against what happens with the least memory; false: none is left. What was asked
 * for stays: a length that nobody named is the first to go. */
static bool one_more(struct vc_serve_ask *a, const struct answer *w, uint64_t *tp)
{
	uint64_t most = vc_kv_plan_longest(&w->plan, &w->server, w->blocks[0], w->server.max_len);
	enum death d = w->death[0];

	if (d == NO_STATES) {
		a->max_seqs = w->blocks[0];
		return true;
	}
	if (d == TOO_LONG && !a->context && most >= 1024) {
		a->context = most / 1024 * 1024;
		return true;
	}
	if (d != NO_ROOM && strncmp(a->kv_dtype, "fp8", 3)) {
		a->kv_dtype = "fp8";
		return true;
	}
	*tp *= 2;
	return a->kv_memory == VC_NOT_GIVEN && *tp <= 8;
}

/* Options with which the server starts and holds its users in any case; false: there are none. */
static bool mend(const struct vc_serve_ask *asked, const struct answer *w, const char *path,
		 struct answer *mended, char *options, size_t n)
{
	struct vc_serve_ask a = *asked;
	struct vc_serving_model m;
	struct vc_error quiet = { .status = VC_OK };
	uint64_t tp = w->tp;
	size_t at = 0;

	*mended = *w;
	options[0] = '\0';
	while (mended->death[0])
		if (!one_more(&a, mended, &tp) ||
		    work_out(&a, w->card, tp, path, &m, mended, &quiet) != VC_OK)
			return false;
	if (tp != w->tp)
		at = (size_t)snprintf(options, n, " --tensor-parallel-size %" PRIu64, tp);
	if (a.context != asked->context)
		at += (size_t)snprintf(options + at, n - at, " --max-model-len %" PRIu64,
				       a.context);
	if (a.max_seqs != asked->max_seqs)
		at += (size_t)snprintf(options + at, n - at, " --max-num-seqs %" PRIu64,
				       a.max_seqs);
	if (a.kv_dtype != asked->kv_dtype)
		snprintf(options + at, n - at, " --kv-cache-dtype fp8");
	return true;
}

static void reason(const struct vc_serve_ask *a, const struct answer *w, enum death d, char *text,
		   size_t n)
{
	uint64_t one = vc_kv_plan_blocks(&w->plan, &w->server, w->server.max_len);

	if (d == NO_ROOM)
		snprintf(text, n, "weights, a step, libraries and graphs leave no room for the "
			 "cache");
	else if (d == TOO_LONG)
		snprintf(text, n, "one request of %" PRIu64 " tokens (max_model_len) takes %.2f "
			 "GiB of cache, and %.2f are left", w->server.max_len,
			 (double)(one * w->plan.block_bytes) / (1u << 30),
			 fmax(0, (d == w->death[2] ? w->cache.high : w->cache.low) / (1u << 30)));
	else if (d == NO_STATES)
		snprintf(text, n, "max_num_seqs %" PRIu64 " exceeds the %" PRIu64 " blocks for "
			 "states", w->max_seqs, w->blocks[d == w->death[2] ? 2 : 0]);
	else
		snprintf(text, n, "%" PRIu64 " users do not fit at a time", a->users);
}

/* The one sentence. */
static void sentence(const struct vc_serve_ask *a, const struct answer *w, const char *path,
		     char *text, size_t n)
{
	struct answer safe;
	char why[200], options[160];
	bool mended = mend(a, w, path, &safe, options, sizeof(options));
	enum death d = w->death[2] ? w->death[2] : w->death[0];
	uint64_t length = request_length(a, &safe), users;
	size_t at = 0;

	if (d) {
		reason(a, w, d, why, sizeof(why));
		at = (size_t)snprintf(text, n, "%s %s; ",
				      d == TOO_MANY ? w->death[2] ? "starts, but" :
				      "starts, but maybe" : w->death[2] ? "dies:" : "may die:",
				      why);
		if (!mended) {
			snprintf(text + at, n - at, "no option of vLLM's own is known that avoids "
				 "it");
			return;
		}
		at += (size_t)snprintf(text + at, n - at, "with%s it ", options);
	}
	users = (safe.blocks[0] - 1) / vc_kv_plan_blocks(&safe.plan, &safe.server, length);
	at += (size_t)snprintf(text + at, n - at, "starts with %s%" PRIu64 " tokens, %" PRIu64
			       " request%s of %" PRIu64 " at a time",
			       a->kv_memory == VC_NOT_GIVEN ? "at least " : "", safe.tokens[0],
			       users, users == 1 ? "" : "s", length);
	if (a->kv_memory == VC_NOT_GIVEN)
		snprintf(text + at, n - at, "; safe: --kv-cache-memory=%" PRIu64,
			 safe.blocks[0] * safe.plan.block_bytes);
}

/* ---- the answer ---- */
static uint64_t whole(double v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static void emit_terms(struct vc_emit *e, const struct vc_serving_model *m, const struct answer *w)
{
	static const char *const label[] = { "weights", "activations", "libraries",
					     "CUDA graphs" };
	const char *source[] = { m->from, "one step of max_num_batched_tokens; logits of "
				 "max_num_seqs", is_linked(w) ?
				 "0.2 .. 3.6 GiB in published logs, NCCL over NVLink" :
				 "0.06 .. 1.1 GiB in published logs",
				 w->server.minor < 21 ? "not in vLLM's account before 0.21" :
				 "4 .. 34 kB a node" };

	vc_emit_array(e, "terms", "Beside the cache, per card");
	for (int i = 0; i < TERMS; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "term", "what", label[i]);
		vc_emit_bytes(e, "bytes", "bytes", whole(w->term[i].bytes));
		vc_emit_bytes(e, "low", "at least", whole(w->term[i].low));
		vc_emit_bytes(e, "high", "at most", whole(w->term[i].high));
		vc_emit_text(e, "source", "from", source[i]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

/* How many groups from g on are alike. */
static size_t alike(const struct vc_kv_plan *p, size_t g)
{
	size_t n = 1;

	while (g + n < p->groups && p->kind[g + n] == p->kind[g] &&
	       p->layers[g + n] == p->layers[g])
		n++;
	return n;
}

static void emit_groups(struct vc_emit *e, const struct answer *w)
{
	static const char *const kind[] = { "full attention", "sliding window", "chunks", "state",
					    "cross attention" };
	const struct vc_kv_plan *p = &w->plan;

	vc_emit_array(e, "groups", "Groups of layers");
	for (size_t g = 0, n; g < p->groups; g += n) {
		n = alike(p, g);
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "kind", "keeps", kind[p->group[g].kind]);
		vc_emit_uint(e, "count", "groups", n);
		vc_emit_uint(e, "layers", "layers", p->layers[g]);
		vc_emit_uint(e, "block_size", "tokens a block", p->group[g].block_size);
		vc_emit_uint(e, "window", NULL, p->group[g].window);
		vc_emit_uint(e, "request_blocks", "blocks of the longest request", p->request[g]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_bytes(e, "block_bytes", "a block", p->block_bytes);
}

static void emit_counts(struct vc_emit *e, const struct vc_serve_ask *a, const struct answer *w,
			const char *answer)
{
	static const char *const words[] = { "fits", "undecided", "oom" };
	static const char *const why[] = {
		NULL, "nothing is left for the cache",
		"one request of max_model_len does not fit",
		"max_num_seqs exceeds the blocks for states",
		"so many users do not fit at a time",
	};
	char text[96];

	vc_emit_bytes(e, "kv_memory", "left for the cache", whole(w->cache.bytes));
	vc_emit_bytes(e, "kv_memory_low", "at least", whole(w->cache.low));
	vc_emit_bytes(e, "kv_memory_high", "at most", whole(w->cache.high));
	vc_emit_between(e, "blocks", "blocks", w->blocks);
	vc_emit_between(e, "tokens", "GPU KV cache size, tokens", w->tokens);
	vc_emit_real(e, "requests", NULL, w->requests[1]);
	snprintf(text, sizeof(text), "%.2f (%.2f .. %.2f)", w->requests[1], w->requests[0],
		 w->requests[2]);
	vc_emit_text(e, NULL, "requests of max_model_len", text);
	vc_emit_uint(e, "users", "users", a->users);
	vc_emit_text(e, "verdict", "verdict", words[w->verdict]);
	vc_emit_text(e, "why", why[w->death[2]] ? "because" : NULL, why[w->death[2]]);
	vc_emit_text(e, "answer", "answer", answer);
}

static void emit_head(struct vc_emit *e, const struct vc_serve_ask *a,
		      const struct vc_serving_model *m, const struct answer *w)
{
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.estimate/1");
	vc_emit_text(e, "level", NULL, "formulas");
	vc_emit_text(e, "vllm", "vLLM", a->vllm);
	vc_emit_text(e, "gpu", "card", w->card ? w->card->name : NULL);
	vc_emit_uint(e, "tp", "tensor parallel", w->tp);
	vc_emit_uint(e, "params", "parameters", whole(m->params));
	vc_emit_text(e, "format", *m->format ? "format" : NULL, *m->format ? m->format : NULL);
	vc_emit_uint(e, "max_model_len", "max_model_len", w->server.max_len);
	vc_emit_uint(e, "max_num_seqs", "max_num_seqs", w->max_seqs);
	vc_emit_uint(e, "max_num_batched_tokens", "max_num_batched_tokens", w->max_batch);
}

/* Which cards, and how many of them with tensor parallelism, the smallest first. */
static int emit_cards(struct vc_emit *e, const struct vc_serve_ask *a, const char *path,
		      bool *any, struct vc_error *err)
{
	const struct vc_card *order[256];
	size_t n = 0;

	for (size_t i = 0; i < vc_cards_n && n < 256; i++) {
		size_t at = n;

		if (vc_cards[i].kind != VC_KIND_CUDA)
			continue;
		while (at && order[at - 1]->total > vc_cards[i].total) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = &vc_cards[i];
		n++;
	}
	vc_emit_array(e, "cards", "Cards");
	for (size_t i = 0; i < n; i++) {
		struct vc_serving_model m;
		struct answer w;
		uint64_t tp = 1;

		VC_TRY(work_out(a, order[i], tp, path, &m, &w, err));
		while (w.verdict && tp < 8) {
			tp *= 2;
			VC_TRY(work_out(a, order[i], tp, path, &m, &w, err));
		}
		*any |= !w.verdict;
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "gpu", "card", order[i]->name);
		vc_emit_bytes(e, "capacity", "capacity", order[i]->total);
		if (w.verdict)
			vc_emit_null(e, "count", "how many");
		else
			vc_emit_uint(e, "count", "how many", tp);
		vc_emit_uint(e, "tokens", "tokens", w.tokens[1]);
		vc_emit_uint(e, "tokens_low", "at least", w.tokens[0]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	return VC_OK;
}

static int refuse(const struct vc_serve_ask *a, struct vc_error *err)
{
	if (!a->model)
		return vc_fail(err, VC_EUSAGE, "--serve wants a model: a config.json, its folder, "
			       "or a name in the hub's cache");
	if (!a->gpu && a->kv_memory == VC_NOT_GIVEN)
		return vc_fail(err, VC_EUSAGE, "--serve wants a card: -g CARD, -g all or "
			       "--kv-memory SIZE");
	if (!a->tp || a->tp > 64 || !a->users || a->users > 1u << 20 || a->context > 1u << 30 ||
	    !a->block_size || (a->block_size != VC_NOT_GIVEN && a->block_size > 1u << 16) ||
	    !a->max_seqs || !a->max_batch ||
	    (a->max_batch != VC_NOT_GIVEN && a->max_batch > 1u << 24) ||
	    (a->max_seqs != VC_NOT_GIVEN && a->max_seqs > 1u << 20) || a->speculative > 64 ||
	    a->states > 1u << 30)
		return vc_fail(err, VC_EUSAGE, "--tp is 1 to 64, --users and --max-num-seqs 1 to "
			       "2^20, --context at most 2^30 tokens, --block-size 1 to 65536");
	if (!isnan(a->utilization) && !(a->utilization > 0 && a->utilization <= 1))
		return vc_fail(err, VC_EUSAGE, "--utilization is a part of the card: above 0, at "
			       "most 1");
	return VC_OK;
}

static void say_next(const struct vc_serve_ask *a, const struct answer *w, const char *path,
		     struct vc_console *con)
{
	char after[160], before[160];

	snprintf(before, sizeof(before), "dryrun -g %s%s -- vllm serve",
		 w->card ? w->card->name : "h100-80g-sxm", a->tp > 1 ? " --world auto" : "");
	snprintf(after, sizeof(after), " --load-format dummy --max-model-len %" PRIu64,
		 w->server.max_len);
	vc_next(con, before, path, after);
}

int vc_estimate_serve(const struct vc_serve_ask *ask, struct vc_console *con)
{
	struct vc_serve_ask own = *ask, *a = &own;
	char draft[1024], answer[600];
	const struct vc_card *card = NULL;
	struct vc_serving_model m;
	struct answer w;
	char path[1024], folder[1024];
	bool all = a->gpu && !strcmp(a->gpu, "all"), any = false;
	struct vc_emit *e;

	VC_TRY(refuse(a, &con->err));
	if (!vc_model_file(a->model, path, sizeof(path)))
		return vc_fail(&con->err, VC_EIO, "%s is no config.json, no folder with one, and "
			       "no model in the hub's cache", a->model);
	if (a->draft && !vc_model_file(a->draft, draft, sizeof(draft)))
		return vc_fail(&con->err, VC_EIO, "%s is no config.json, no folder with one, and "
			       "no model in the hub's cache", a->draft);
	if (a->draft && !a->speculative)
		return vc_fail(&con->err, VC_EUSAGE, "--draft goes with --speculative N: the "
			       "tokens that it proposes");
	a->draft = a->draft ? draft : NULL;
	if (a->gpu && !all)
		VC_TRY(vc_card_find(a->gpu, &card, &con->err));
	if (a->sglang)
		return vc_estimate_sglang(a, card, path, con);
	VC_TRY(work_out(a, card, a->tp, path, &m, &w, &con->err));
	e = vc_emit_stdout(a->json, &con->err);
	if (!e)
		return con->err.status;
	emit_head(e, a, &m, &w);
	emit_terms(e, &m, &w);
	emit_groups(e, &w);
	if (!all)
		sentence(a, &w, path, answer, sizeof(answer));
	if (all)
		VC_TRY(emit_cards(e, a, path, &any, &con->err));
	else
		emit_counts(e, a, &w, answer);
	vc_emit_end(e);
	VC_TRY(vc_emit_done(e, &con->err));
	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	say_next(a, &w, folder, con);
	return all ? any ? 0 : 3 : w.verdict == 0 ? 0 : w.verdict == 2 ? 3 : 6;
}
