/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_estimate.c - vramcast estimate: memory of a training run nobody recorded, by published
 * formulas only. Every term names its source; the least trustworthy answer vramcast gives. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/emit.h"
#include "common/opt.h"
#include "simulator/cards.h"
#include "simulator/transforms/formulas.h"

/* Activation formulas are accurate for the layer they describe; what a framework adds around them
 * is not in them. A judgement, not a measurement. */
#define BAND 0.20

struct config {
	double params, layers, hidden, heads, feed_forward, kv_ratio, vocabulary, trainable;
	uint64_t batch, seq, gpus, zero, rank, tp;
	const char *optimizer, *precision, *offload, *arch, *recompute, *gpu;
	bool json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option estimate_options[] = {
	{ 0, "params", VC_O_REAL, AT(params), "N", "parameters, as in 7e9", NULL },
	{ 0, "layers", VC_O_REAL, AT(layers), "N", "transformer layers", NULL },
	{ 0, "hidden", VC_O_REAL, AT(hidden), "N", "width", NULL },
	{ 0, "heads", VC_O_REAL, AT(heads), "N", "attention heads (default: hidden / 128)", NULL },
	{ 0, "feed-forward", VC_O_REAL, AT(feed_forward), "N", "inner width (llama; default 3.5 x hidden)", NULL },
	{ 0, "kv-ratio", VC_O_REAL, AT(kv_ratio), "R", "key-value heads / heads (llama)", "1" },
	{ 0, "vocabulary", VC_O_REAL, AT(vocabulary), "N", "tokens the model knows", "32000" },
	{ 0, "arch", VC_O_TEXT, AT(arch), "gpt|llama", "kind of layer", "llama" },
	{ 0, "batch", VC_O_UINT, AT(batch), "N", "sequences per card and pass", "1" },
	{ 0, "seq", VC_O_UINT, AT(seq), "N", "tokens per sequence", "2048" },
	{ 0, "optimizer", VC_O_TEXT, AT(optimizer), "NAME", "adamw, adam, sgd, momentum, lion, adam8bit, ...", "adamw" },
	{ 0, "precision", VC_O_TEXT, AT(precision), "fp32|amp|bf16", "of parameters and gradients", "amp" },
	{ 0, "recompute", VC_O_TEXT, AT(recompute), "none|selective|full", "activation checkpointing", "none" },
	{ 0, "zero", VC_O_UINT, AT(zero), "0..3", "DeepSpeed ZeRO stage", "0" },
	{ 0, "gpus", VC_O_UINT, AT(gpus), "N", "cards that share the states", "1" },
	{ 0, "tp", VC_O_UINT, AT(tp), "N", "tensor parallel", "1" },
	{ 0, "offload", VC_O_TEXT, AT(offload), "none|optimizer|all", "to host memory", "none" },
	{ 0, "lora-rank", VC_O_UINT, AT(rank), "N", "train adapters of that rank only; 0: everything", "0" },
	{ 'g', "gpu", VC_O_TEXT, AT(gpu), "NAME", "card, for context and verdict", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { estimate_options, NULL };

struct term { const char *key, *label, *source; double bytes, low, high; };
struct sum { struct term at[12]; size_t n; double low, high, bytes, host; };

static void add(struct sum *s, const char *key, const char *label, double bytes, double band,
		const char *source)
{
	s->at[s->n++] = (struct term){ key, label, source, bytes, bytes * (1 - band), bytes * (1 + band) };
	s->bytes += bytes;
	s->low += bytes * (1 - band);
	s->high += bytes * (1 + band);
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
			return vc_fail(err, VC_EUSAGE, "--%s %s: must be one of %s", option, text, list);
		p += n + 1;
	}
}

struct choice { int optimizer, precision, offload, arch, recompute; };

static int check(const struct config *c, struct choice *ch, struct vc_error *err)
{
	const double must[] = { c->params, c->layers, c->hidden };
	static const char *const name[] = { "params", "layers", "hidden" };

	for (int i = 0; i < 3; i++)
		if (!(must[i] > 0))
			return vc_fail(err, VC_EUSAGE, "estimate wants --params, --layers and --hidden; --%s is "
				       "missing", name[i]);
	if (c->zero > 3 || !c->gpus || !c->tp || !c->batch || !c->seq)
		return vc_fail(err, VC_EUSAGE, "--zero is 0 to 3; --gpus, --tp, --batch and --seq start at 1");
	ch->optimizer = one_of(c->optimizer, VC_OPTIMIZERS, "optimizer", err);
	ch->precision = one_of(c->precision, "fp32,amp,bf16", "precision", err);
	ch->offload = one_of(c->offload, "none,optimizer,all", "offload", err);
	ch->arch = one_of(c->arch, "gpt,llama", "arch", err);
	ch->recompute = one_of(c->recompute, "none,selective,full", "recompute", err);
	if (ch->optimizer < 0 || ch->precision < 0 || ch->offload < 0 || ch->arch < 0 || ch->recompute < 0)
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
	return c->layers * (4 * (double)vc_lora_values((uint64_t)c->hidden, (uint64_t)c->hidden, c->rank) +
			    3 * (double)vc_lora_values((uint64_t)c->hidden, (uint64_t)f, c->rank));
}

static void states(const struct config *c, const struct choice *ch, struct sum *s)
{
	double n = (double)c->gpus, p = c->params / (double)c->tp, t = trainable(c) / (double)c->tp;
	unsigned weight = ch->precision == 2 || c->rank ? 2 : 4, grad = ch->precision == 2 ? 2 : 4;
	struct vc_tensor_shape shape = { 1u << 20, 1u << 10, 1 };
	double state = (double)vc_optimizer_state((enum vc_optimizer)ch->optimizer, shape, grad, 256) /
		       ((double)shape.rows * (double)shape.cols);
	double host = (ch->offload ? t * (state + grad) : 0) + (ch->offload == 2 ? p * weight : 0);

	add(s, "parameters", "parameters", ch->offload == 2 ? 4 * p / c->layers :
	    p * weight / (c->zero == 3 ? n : 1), 0.01, "count x bytes; ZeRO stage 3 shards them (ZeRO paper)");
	if (ch->precision == 1 && !c->rank)
		add(s, "casts", "16-bit copies of weights", p * 2 / (c->zero == 3 ? n : 1), 0.01,
		    "autocast's cache (HF: 6 bytes per weight)");
	add(s, "gradients", "gradients", ch->offload ? 0 : t * grad / (c->zero >= 2 ? n : 1), 0.01,
	    "count x bytes; sharded from ZeRO stage 2 on");
	add(s, "optimizer", "optimizer states", ch->offload ? 0 : t * state / (c->zero ? n : 1), 0.01,
	    "bytes per value of the optimizer; sharded from ZeRO stage 1 on");
	if (c->zero)
		add(s, "buckets", "ZeRO buckets", 2 * fmin(5e8, t) * 2, 0.5,
		    "DeepSpeed defaults: 5e8 values, reduce and gather");
	s->host = host / n;
}

static void activations(const struct config *c, const struct choice *ch, struct sum *s)
{
	double tokens = (double)c->batch * (double)c->seq, element = ch->precision ? 1 : 2;
	double heads = isnan(c->heads) ? c->hidden / 128 : c->heads;
	double f = isnan(c->feed_forward) ? 3.5 * c->hidden : c->feed_forward;
	double layer = ch->arch == 0 || ch->recompute ?
		       vc_gpt_layer(c->hidden, heads, (double)c->seq, (double)c->tp,
				    (enum vc_recompute)ch->recompute) :
		       (vc_llama_layer(c->hidden, f, c->kv_ratio) + vc_llama_rest(heads)) / (double)c->tp;

	add(s, "activations", "activations", tokens * c->layers * layer * element, BAND,
	    ch->arch == 0 || ch->recompute ? "Korthikanti et al. 2022, bytes per token and layer" :
	    "counted from the operations of a Llama layer, not measured");
	if (ch->recompute == 2)
		add(s, "one_layer", "one layer recomputed", tokens * element *
		    vc_gpt_layer(c->hidden, heads, (double)c->seq, (double)c->tp, VC_RECOMPUTE_NONE), BAND,
		    "Korthikanti et al. 2022");
	add(s, "logits", "logits and loss", vc_logits(tokens, c->vocabulary), 0.4,
	    "16 bytes per logit at worst: 16 bit, float copy, log-softmax, both gradients");
}

static int emit(const struct config *c, const struct sum *s, const struct vc_card *card,
		struct vc_error *err)
{
	struct vc_output *out = vc_output_open("-", err);
	struct vc_emit *e = out ? vc_emit_new(out, c->json ? VC_EMIT_JSON : VC_EMIT_TEXT, err) : NULL;

	if (!e) {
		vc_output_close(out);
		return err->status;
	}
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.estimate/1");
	vc_emit_line(e, "By published formulas only: the least trustworthy answer. Two short recordings "
		     "(vramcast record, dryrun)\nand `vramcast sim a@batch=1 b@batch=2 --set batch=N` are exact.");
	vc_emit_text(e, "level", NULL, "formulas");
	vc_emit_object(e, "trust", NULL);
	vc_emit_text(e, "level", NULL, "formulas");
	vc_emit_null(e, "matched", NULL);
	vc_emit_uint(e, "recordings", NULL, 0);
	vc_emit_text(e, "text", NULL, "published formulas only: the least trustworthy answer");
	vc_emit_text(e, "narrow", NULL, "a dry run (vramcast dryrun -g GPU -- python train.py)");
	vc_emit_end(e);
	vc_emit_array(e, "terms", "Per card");
	for (size_t i = 0; i < s->n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "term", "what", s->at[i].label);
		vc_emit_bytes(e, "bytes", "bytes", (uint64_t)s->at[i].bytes);
		vc_emit_bytes(e, "low", "at least", (uint64_t)s->at[i].low);
		vc_emit_bytes(e, "high", "at most", (uint64_t)s->at[i].high);
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
			     s->low > (double)card->total ? "oom" : "unsure");
	}
	vc_emit_end(e);
	int r = vc_emit_finish(e, err);
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

static int estimate_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const struct vc_card *card = NULL;
	struct sum s = { .n = 0 };
	struct choice ch = { 0 };
	int r = check(c, &ch, &con->err);

	if (r == VC_OK && argc)
		r = vc_fail(&con->err, VC_EUSAGE, "estimate takes no trace ('%s'): that is what sim is for", argv[0]);
	if (r == VC_OK && c->gpu)
		r = vc_card_find(c->gpu, &card, &con->err);
	if (r < 0)
		return r;
	states(c, &ch, &s);
	activations(c, &ch, &s);
	add(&s, "context", "CUDA context, libraries", (double)(card ? card->context : VC_CARD_CONTEXT), 0.3,
	    card ? "seen in messages that name the card, or the usual 450 MiB" : "450 MiB: a choice");
	r = emit(c, &s, card, &con->err);
	if (r < 0)
		return r;
	return card && s.low > (double)card->total ? 3 : 0;
}

const struct vc_command vc_command_estimate = {
	.name = "estimate",
	.operands = "",
	.summary = "without any recording: published formulas, each term with its source and a band",
	.details = "For transformers. The band is a judgement: 1 % on states, 20 % on activations, 40 % on the loss.",
	.options = tables,
	.config_size = sizeof(struct config),
	.run = estimate_run,
};
