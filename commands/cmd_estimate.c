/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_estimate.c - vramcast estimate: memory of a training run nobody recorded, by published
 * formulas only. Every term names its source; the least trustworthy answer vramcast gives. */

#include "common/param.h"
#include "common/emit.h"
#include "commands/estimate_cards.h"
#include "commands/estimate_serve.h"
#include "commands/model_config.h"
#include "commands/run_and_write.h"
#include "common/opt.h"
#include "simulator/replay/cards.h"
#include "simulator/anatomy/formulas.h"

/* Activation formulas are accurate for the layer they describe; what a framework adds around them
 * is not in them. A judgement, not a measurement. */
#define BAND 0.20

struct config {
	double params, layers, hidden, heads, feed_forward, kv_ratio, vocabulary;
	uint64_t batch, seq, gpus, zero, rank, tp;
	const char *optimizer, *precision, *offload, *arch, *recompute, *attention, *gpu,
		*model, *prices;
	bool json;
	struct vc_serve_ask ask;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option estimate_options[] = {
	{ 0, "config", VC_O_TEXT, AT(model), "FILE",
	  "config.json of a model, for the shape and the number of parameters", NULL },
	{ 0, "model", VC_O_TEXT, AT(model), "FILE", NULL, NULL },
	{ 0, "params", VC_O_COUNT, AT(params), "N", "parameters: 7B, 350M or 7e9", NULL },
	{ 0, "layers", VC_O_COUNT, AT(layers), "N", "transformer layers", NULL },
	{ 0, "hidden", VC_O_COUNT, AT(hidden), "N", "width", NULL },
	{ 0, "heads", VC_O_COUNT, AT(heads), "N", "attention heads (default: hidden / 128)", NULL },
	{ 0, "feed-forward", VC_O_COUNT, AT(feed_forward), "N",
	  "inner width (llama; default 3.5 x hidden)", NULL },
	{ 0, "kv-ratio", VC_O_REAL, AT(kv_ratio), "R", "key-value heads / heads (llama)", "1" },
	{ 0, "vocabulary", VC_O_COUNT, AT(vocabulary), "N", "tokens the model knows", "32000" },
	{ 0, "arch", VC_O_TEXT, AT(arch), "gpt|llama", "kind of layer", "llama" },
	{ 0, "batch", VC_O_UINT, AT(batch), "N", "sequences per card and pass", "1" },
	{ 0, "seq", VC_O_UINT, AT(seq), "N", "tokens per sequence", "2048" },
	{ 0, "optimizer", VC_O_TEXT, AT(optimizer), "NAME",
	  "adamw, adam, sgd, momentum, lion, adam8bit, ...", "adamw" },
	{ 0, "precision", VC_O_TEXT, AT(precision), "fp32|amp|bf16", "of parameters and gradients",
	  "amp" },
	{ 0, "recompute", VC_O_TEXT, AT(recompute), "none|selective|full",
	  "activation checkpointing", "none" },
	{ 0, "attention", VC_O_TEXT, AT(attention), "fused|eager",
	  "eager keeps the scores of every pair of tokens (gpt)", "fused" },
	{ 0, "zero", VC_O_UINT, AT(zero), "0..3", "DeepSpeed ZeRO stage", "0" },
	{ 0, "devices", VC_O_UINT, AT(gpus), "N", "cards that share the states", "1" },
	{ 0, "gpus", VC_O_UINT, AT(gpus), "N", NULL, "1" },
	{ 0, "tp", VC_O_UINT, AT(tp), "N", "tensor parallel", "1" },
	{ 0, "offload", VC_O_TEXT, AT(offload), "none|optimizer|all", "to host memory", "none" },
	{ 0, "lora-rank", VC_O_UINT, AT(rank), "N",
	  "train adapters of that rank only; 0: everything", "0" },
	{ 'g', "gpu", VC_O_TEXT, AT(gpu), "NAME|all", "card, for context and verdict; all: which "
	  "of them fit", NULL },
	{ 0, "prices", VC_O_TEXT, AT(prices), "FILE", "NAME,PRICE on each line: with -g all the "
	  "cheapest card that fits comes first", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};
#define ASK(f) (AT(ask) + offsetof(struct vc_serve_ask, f))
static const struct vc_option serve_options[] = {
	{ 0, "serve", VC_O_FLAG, ASK(serve), NULL,
	  "a server of MODEL: weights, the groups of its KV cache, the tokens that are left",
	  NULL },
	{ 0, "context", VC_O_UINT, ASK(context), "TOKENS", "of a request (max_model_len); 0: what "
	  "the model takes", "0" },
	{ 0, "users", VC_O_UINT, ASK(users), "N", "requests of that length at a time", "1" },
	{ 0, "vllm", VC_O_TEXT, ASK(vllm), "VERSION", "as this release plans it, 0.10 to 0.33",
	  "0.33" },
	{ 0, "kv-dtype", VC_O_TEXT, ASK(kv_dtype), "auto|fp8", "numbers in the cache", "auto" },
	{ 0, "kv-memory", VC_O_SIZE, ASK(kv_memory), "SIZE", "memory of the cache, where it is "
	  "known (\"Available KV cache memory\")", NULL },
	{ 0, "weights", VC_O_SIZE, ASK(weights), "SIZE", "of the model on a card, where they are "
	  "known", NULL },
	{ 0, "utilization", VC_O_REAL, ASK(utilization), "PART", "gpu_memory_utilization (0.92, "
	  "before vLLM 0.20 0.9)", NULL },
	{ 0, "block-size", VC_O_UINT, ASK(block_size), "TOKENS", "in a block (16; of SGLang, "
	  "page_size: 1)", NULL },
	{ 0, "max-num-seqs", VC_O_UINT, ASK(max_seqs), "N", "as for serve", NULL },
	{ 0, "max-num-batched-tokens", VC_O_UINT, ASK(max_batch), "N", "as for serve", NULL },
	{ 0, "speculative", VC_O_UINT, ASK(speculative), "N", "tokens that a draft model proposes",
	  "0" },
	{ 0, "draft", VC_O_TEXT, ASK(draft), "MODEL", "the draft model (EAGLE or any); without it "
	  "MODEL's own layers propose", NULL },
	{ 0, "prefix-caching", VC_O_FLAG, ASK(caching), NULL, "enable_prefix_caching=True, where "
	  "layers keep states, too", NULL },
	{ 0, "no-prefix-caching", VC_O_FLAG, ASK(no_caching), NULL, "enable_prefix_caching=False",
	  NULL },
	{ 0, "enforce-eager", VC_O_FLAG, ASK(eager), NULL, "no CUDA graphs", NULL },
	{ 0, "sglang", VC_O_TEXT, ASK(sglang), "VERSION", "SGLang in place of vLLM: 0.5", NULL },
	{ 0, "swa-full-tokens-ratio", VC_O_REAL, ASK(window_ratio), "R", "of SGLang", "0.8" },
	{ 0, "mamba-full-memory-ratio", VC_O_REAL, ASK(state_ratio), "R", "of SGLang", "0.9" },
	{ 0, "max-mamba-cache-size", VC_O_UINT, ASK(states), "N", "of SGLang; 0: by the ratio",
	  "0" },
	VC_OPTION_END
};

/* When a term is there: all the time; until backward is through with it; at the start of
 * backward; while one layer is recomputed; from the end of backward on; while the optimizer
 * works. */
enum when { ALWAYS, FORWARD, LOSS, LAYER, GRADIENTS, STEP, WHENS };

#define MOST 1e18 /* bytes; beyond that whole numbers end */

struct term { enum when when; const char *key, *label, *source; double bytes, low, high; };
struct sum { struct term at[14]; size_t n; double low, high, bytes, host; };

static void add(struct sum *s, enum when when, const char *const text[3], double bytes, double band)
{
	s->at[s->n++] = (struct term){ when, text[0], text[1], text[2], bytes, bytes * (1 - band),
				       bytes * (1 + band) };
}
#define TEXT(key, label, source) ((const char *const[3]){ key, label, source })

/* The fullest of two moments: backward begins, with all activations and the loss (or, later, a
 * recomputed layer); the optimizer works, with all gradients. */
static double fullest(const double of[WHENS])
{
	double backward = of[FORWARD] + fmax(of[LOSS], of[LAYER]),
	       step = of[GRADIENTS] + fmax(of[STEP], of[LAYER]);

	return of[ALWAYS] + fmax(backward, step);
}

/* Reserved over allocated in eight dry runs of small transformers: 1.01 .. 1.20. */
static void total(struct sum *s)
{
	double best[WHENS] = { 0 }, low[WHENS] = { 0 }, high[WHENS] = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		best[s->at[i].when] += s->at[i].bytes;
		low[s->at[i].when] += s->at[i].low;
		high[s->at[i].when] += s->at[i].high;
	}
	s->bytes = fullest(best);
	s->low = fullest(low);
	s->high = fullest(high);
	s->at[s->n++] = (struct term){ ALWAYS, "cached", "cached, not in use",
		"reserved over allocated: 1.01 .. 1.20 in eight dry runs", 0.08 * s->bytes,
		0.01 * s->low, 0.20 * s->high };
	s->bytes *= 1.08;
	s->low *= 1.01;
	s->high *= 1.20;
}

static int one_of(const char *text, const char *list, const char *option, struct vc_error *err)
{
	size_t len = strlen(text);
	int k = 0;

	for (const char *p = list; ; k++) {
		size_t n = strcspn(p, ",");
		if (n == len && !strncmp(p, text, n))
			return k;
		if (!p[n])
			return vc_fail(err, VC_EUSAGE, "--%s %s: must be one of %s", option, text,
				       list);
		p += n + 1;
	}
}

struct choice { int optimizer, precision, offload, arch, recompute, eager; };

static int check(const struct config *c, struct choice *ch, struct vc_error *err)
{
	const double must[] = { c->params,       c->layers,   c->hidden,    c->heads,
			       c->feed_forward, c->kv_ratio, c->vocabulary };
	static const char *const name[] = { "params",       "layers",   "hidden",    "heads",
					   "feed-forward", "kv-ratio", "vocabulary" };

	for (int i = 0; i < 3; i++)
		if (isnan(must[i]))
			return vc_fail(err, VC_EUSAGE, "estimate wants --config, or --params, "
				       "--layers and --hidden; --%s is missing", name[i]);
	for (int i = 0; i < 7; i++)
		if (must[i] <= 0)
			return vc_fail(err, VC_EUSAGE, "--%s %g: must be above zero", name[i],
				       must[i]);
		else if (must[i] > (double)VC_AMOUNT_MOST)
			return vc_fail(err, VC_EUSAGE, "--%s %g: the largest is %.0e", name[i],
				       must[i], (double)VC_AMOUNT_MOST);
	if (c->zero > 3 || !c->gpus || !c->tp || !c->batch || !c->seq)
		return vc_fail(err, VC_EUSAGE,
			       "--zero is 0 to 3; --devices, --tp, --batch and --seq start at 1");
	ch->optimizer = one_of(c->optimizer, VC_OPTIMIZERS, "optimizer", err);
	ch->precision = one_of(c->precision, "fp32,amp,bf16", "precision", err);
	ch->offload = one_of(c->offload, "none,optimizer,all", "offload", err);
	ch->arch = one_of(c->arch, "gpt,llama", "arch", err);
	ch->recompute = one_of(c->recompute, "none,selective,full", "recompute", err);
	ch->eager = one_of(c->attention, "fused,eager", "attention", err);
	if (ch->eager < 0 || ch->optimizer < 0 || ch->precision < 0 || ch->offload < 0 ||
	    ch->arch < 0 || ch->recompute < 0)
		return VC_EUSAGE;
	if (ch->offload == 2 && c->zero < 3)
		return vc_fail(err, VC_EUSAGE, "--offload all needs --zero 3");
	return VC_OK;
}

/* Values that train: adapters on the linear layers, four of hidden x hidden and three of the inner
 * width per layer, or everything. */
static double trainable(const struct config *c)
{
	double f = isnan(c->feed_forward) ? 3.5 * c->hidden : c->feed_forward;

	if (!c->rank)
		return c->params;
	return c->layers *
	       (4 * (double)vc_lora_values((uint64_t)c->hidden, (uint64_t)c->hidden, c->rank) +
		3 * (double)vc_lora_values((uint64_t)c->hidden, (uint64_t)f, c->rank));
}

static void states(const struct config *c, const struct choice *ch, struct sum *s)
{
	double n = (double)c->gpus, p = c->params / (double)c->tp, t = trainable(c) / (double)c->tp;
	unsigned weight = ch->precision == 2 || (c->rank && ch->precision) ? 2 : 4,
		 grad = ch->precision == 2 ? 2 : 4;
	struct vc_tensor_shape shape = { 1u << 20, 1u << 10, 1 };
	double state =
		(double)vc_optimizer_state((enum vc_optimizer)ch->optimizer, shape, grad, 256) /
		((double)shape.rows * (double)shape.cols);
	double host = (ch->offload ? t * (state + grad) : 0) + (ch->offload == 2 ? p * weight : 0);

	add(s, ALWAYS, TEXT("parameters", "parameters",
			    "count x bytes; ZeRO stage 3 shards them (ZeRO paper)"),
	    ch->offload == 2 ? 4 * p / c->layers : p * weight / (c->zero == 3 ? n : 1), 0.01);
	if (ch->precision == 1 && !c->rank)
		add(s, FORWARD, TEXT("casts", "16-bit copies of weights",
				     "autocast's cache (HF: 6 bytes per weight)"),
		    p * 2 / (c->zero == 3 ? n : 1), 0.01);
	add(s, GRADIENTS,
	    TEXT("gradients", "gradients", "count x bytes; sharded from ZeRO stage 2 on"),
	    ch->offload ? 0 : t * grad / (c->zero >= 2 ? n : 1), 0.01);
	add(s, ALWAYS,
	    TEXT("optimizer", "optimizer states",
		 "bytes per value of the optimizer; sharded from ZeRO stage 1 on"),
	    ch->offload ? 0 : t * state / (c->zero ? n : 1), 0.01);
	if (!ch->offload)
		add(s, STEP, TEXT("step", "temporaries of the step",
		    "foreach: one more copy of what is updated (torch/optim); none when fused"),
		    t * grad / (c->zero ? n : 1) / 2, 1);
	if (c->zero)
		add(s, ALWAYS, TEXT("buckets", "ZeRO buckets",
				    "DeepSpeed defaults: 5e8 values, reduce and gather"),
		    2 * fmin(5e8, t) * 2, 0.5);
	s->host = host / n;
}

/* GELU_NEW: transformers' GPT-2 computes it by single operations, and the papers' layer by one
 * kernel. Kept besides its input: half of it, tanh and 1 + tanh; autocast computes the power in
 * float. */
static const double gelu_new[] = { 12, 14, 6 }; /* bytes a value: fp32, amp, bf16 */

/* Bytes per token and layer that stay for the backward pass. */
static double layer_bytes(const struct config *c, const struct choice *ch, enum vc_recompute r)
{
	double heads = isnan(c->heads) ? c->hidden / 128 : c->heads,
	       element = ch->precision ? 1 : 2;
	double f = isnan(c->feed_forward) ? 3.5 * c->hidden : c->feed_forward, layer;

	if (ch->arch == 1 && r != VC_RECOMPUTE_FULL)
		return (element * vc_llama_layer(c->hidden, f, c->kv_ratio) + vc_llama_rest(heads) +
			vc_llama_eager(c->hidden, c->kv_ratio, 2 * element)) / (double)c->tp;
	/* Fused attention keeps what selective recomputation keeps (same paper). */
	if (r == VC_RECOMPUTE_NONE && !ch->eager)
		r = VC_RECOMPUTE_SELECTIVE;
	layer = element * vc_gpt_layer(c->hidden, heads, (double)c->seq, (double)c->tp, r);
	if (c->model && ch->recompute == 0) /* see GELU_NEW */
		layer += 4 * c->hidden * gelu_new[ch->precision] / (double)c->tp;
	return layer;
}

static void activations(const struct config *c, const struct choice *ch, struct sum *s)
{
	double tokens = (double)c->batch * (double)c->seq;
	const char *source = ch->arch == 0 || ch->recompute == 2 ? "Korthikanti et al. 2022, bytes "
			     "per token and layer" : "counted from the operations of a Llama layer "
			     "as transformers runs it";

	add(s, FORWARD, TEXT("activations", "activations", source),
	    tokens * c->layers * layer_bytes(c, ch, (enum vc_recompute)ch->recompute), BAND);
	if (ch->recompute == 2)
		add(s, LAYER, TEXT("one_layer", "one layer recomputed", source),
		    tokens * layer_bytes(c, ch, VC_RECOMPUTE_NONE), BAND);
	add(s, LOSS, TEXT("logits", "logits and loss", "16 bytes per logit at worst: 16 bit, float "
	    "copy, log-softmax, both gradients"), vc_logits(tokens, c->vocabulary), 0.4);
}

static int emit(const struct config *c, const struct sum *s, const struct vc_card *card,
		bool *fits, struct vc_error *err)
{
	static const char *const when[WHENS] = {
		"always",      "until backward is through", "as backward begins",
		"in backward", "from backward on",          "in the step" };
	struct vc_emit *e = vc_emit_stdout(c->json, err);

	if (!e)
		return err->status;
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.estimate/1");
	vc_emit_line(e, "By published formulas only: the least trustworthy answer. Two short "
		     "recordings (vramcast record, dryrun)\nand `vramcast sim a@batch=1 "
		     "b@batch=2 --set batch=N` are exact.");
	vc_emit_text(e, "level", NULL, "formulas");
	vc_emit_object(e, "trust", NULL);
	vc_emit_text(e, "level", NULL, "formulas");
	vc_emit_null(e, "matched", NULL);
	vc_emit_uint(e, "recordings", NULL, 0);
	vc_emit_text(e, "text", NULL, "published formulas only: the least trustworthy answer");
	vc_emit_text(e, "narrow", NULL, "a dry run (vramcast dryrun -g GPU -- python train.py)");
	vc_emit_end(e);
	if (c->model)
		vc_emit_uint(e, "params", "parameters", (uint64_t)c->params);
	vc_emit_array(e, "terms", "Per card");
	for (size_t i = 0; i < s->n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "term", "what", s->at[i].label);
		vc_emit_bytes(e, "bytes", "bytes", (uint64_t)s->at[i].bytes);
		vc_emit_bytes(e, "low", "at least", (uint64_t)s->at[i].low);
		vc_emit_bytes(e, "high", "at most", (uint64_t)s->at[i].high);
		vc_emit_text(e, "when", "when", when[s->at[i].when]);
		vc_emit_text(e, "source", "from", s->at[i].source);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_bytes(e, "total", "total per card", (uint64_t)s->bytes);
	vc_emit_bytes(e, "low", "at least", (uint64_t)s->low);
	vc_emit_bytes(e, "high", "at most", (uint64_t)s->high);
	vc_emit_bytes(e, "host", "host memory per card", (uint64_t)s->host);
	if (card) {
		vc_emit_text(e, "gpu", "card", card->name);
		vc_emit_bytes(e, "capacity", "capacity", card->total);
		vc_emit_text(e, "verdict", "verdict", s->high <= (double)card->total ? "fits" :
			     s->low > (double)card->total ? "oom" : "undecided");
	}
	if (c->gpu && !card)
		VC_TRY(vc_estimate_cards(e, &(struct vc_estimate_need){ s->low, s->bytes, s->high },
					 c->prices, fits, err));
	vc_emit_end(e);
	return vc_emit_done(e, err);
}

static void context(const struct vc_card *card, struct sum *s)
{
	const char *source = card ? "seen in messages that name the card, or the usual 450 MiB" :
				    "450 MiB: a choice";

	add(s, ALWAYS, TEXT("context", "CUDA context, libraries", source),
	    (double)(card ? card->context : VC_CARD_CONTEXT), 0.3);
	s->bytes += s->at[s->n - 1].bytes;
	s->low += s->at[s->n - 1].low;
	s->high += s->at[s->n - 1].high;
}

/* The shape of --config in place of options, which it does not share the say with. */
static int with_model(struct config *c, struct vc_error *err)
{
	struct vc_model_config m;

	if (!isnan(c->params) || !isnan(c->layers) || !isnan(c->hidden) || !isnan(c->heads) ||
	    !isnan(c->feed_forward))
		return vc_fail(err, VC_EUSAGE, "--config says what --params, --layers, --hidden, "
			       "--heads and --feed-forward say; leave these out");
	VC_TRY(vc_model_config_read(c->model, &m, err));
	c->params = m.params;
	c->layers = m.layers;
	c->hidden = m.hidden;
	c->heads = m.heads;
	c->feed_forward = m.feed_forward;
	c->kv_ratio = m.kv_heads / m.heads;
	c->vocabulary = m.vocabulary;
	c->arch = m.arch;
	return VC_OK;
}

static int estimate_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct config copy = *(const struct config *)config, *c = &copy;
	const struct vc_card *card = NULL;
	struct sum s = { .n = 0 };
	struct choice ch = { 0 };
	bool all = c->gpu && !strcmp(c->gpu, "all"), fits = true;
	char next[120], after[80];

	if (!isnan(c->ask.utilization) && !c->ask.serve)
		return vc_fail(&con->err, VC_EUSAGE, "--utilization is of a server: give --serve");
	if (!(c->ask.window_ratio > 0 && c->ask.state_ratio > 0))
		return vc_fail(&con->err, VC_EUSAGE, "--%s starts above 0",
			       c->ask.window_ratio > 0 ? "mamba-full-memory-ratio" :
							 "swa-full-tokens-ratio");
	if (c->ask.serve) {
		c->ask.gpu = c->gpu;
		c->ask.tp = c->tp;
		c->ask.json = c->json;
		c->ask.model = argc ? argv[0] : c->model;
		return argc > 1 ? vc_fail(&con->err, VC_EUSAGE, "one model, not %zu", argc) :
				  vc_estimate_serve(&c->ask, con);
	}
	if (c->prices && !all)
		return vc_fail(&con->err, VC_EUSAGE, "--prices goes with -g all");
	if (c->model)
		VC_TRY(with_model(c, &con->err));
	VC_TRY(check(c, &ch, &con->err));
	if (argc)
		return vc_fail(&con->err, VC_EUSAGE,
			       "estimate takes no trace ('%s'): that is what sim is for", argv[0]);
	if (c->gpu && !all) {
		VC_TRY(vc_card_find(c->gpu, &card, &con->err));
		vc_remark_cards(&(struct vc_list){ (const char **)&c->gpu, 1 }, con);
	}
	states(c, &ch, &s);
	activations(c, &ch, &s);
	total(&s);
	if (!all)
		context(card, &s);
	if (!(s.high < MOST && s.host < MOST))
		return vc_fail(&con->err, VC_EUSAGE, "%.3g bytes are more than any machine has: "
			       "look at --params, --layers, --hidden, --batch and --seq",
			       fmax(s.high, s.host));
	VC_TRY(emit(c, &s, card, &fits, &con->err));
	snprintf(next, sizeof(next), "dryrun -g %s -- python%s", card ? card->name : "rtx4090",
		 c->model ? " -m vramcast.model" : "");
	snprintf(after, sizeof(after), c->model ? " --batch %" PRIu64 " --seq %" PRIu64 : "",
		 c->batch, c->seq);
	vc_next(con, next, c->model ? c->model : "train.py", after);
	if (!fits)
		return 3;
	if (!card || s.high <= (double)card->total)
		return 0;
	return s.low > (double)card->total ? 3 : 6;
}

const struct vc_command vc_command_estimate = {
	.name = "estimate", .operands = "[MODEL]",
	.summary =
	"without any recording: published formulas, each term with its source and a band",
	.details =
	"For transformers. The total is that of the fullest moment: as backward begins, or in the "
		"step of the\noptimizer. Bands: 1 % on states, 20 % on activations, 40 % on the "
		"loss; checked on small models only.",
	.options = VC_OPTIONS(estimate_options, serve_options),
	.config_size = sizeof(struct config), .run = estimate_run,
};
