/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.c - see model_config.h. The weights of a kind are counted as transformers 4.57 makes
 * them (models/TYPE/modeling_TYPE.py); a test holds the sums to those of published models. */
#include "commands/model_config.h"

#include "common/value.h"

/* Kinds, by "model_type". Where the file does not say, the class of the configuration does. */
struct kind {
	const char *type, *arch;
	bool tied;      /* the output layer is the embedding, unless tie_word_embeddings says no */
	bool qkv_bias;  /* biases in the projections to queries, keys and values */
	double norms;   /* of the width, per layer */
	double head_norms; /* of a head's size, per layer */
};
static const struct kind kinds[] = {
	{ "llama", "llama", false, false, 2, 0 },  { "mistral", "llama", false, false, 2, 0 },
	{ "qwen2", "llama", false, true, 2, 0 },   { "qwen3", "llama", false, false, 2, 2 },
	{ "phi3", "llama", false, false, 2, 0 },   { "gemma", "llama", true, false, 2, 0 },
	{ "gemma2", "llama", true, false, 4, 0 },  { "gpt2", "gpt", true, true, 2, 0 },
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* What is read; a number that is not there is 0. GPT-2 has names of its own. */
struct numbers {
	double hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
	double intermediate_size, vocab_size, n_positions, experts, tied;
};
static const struct { const char *key; size_t offset; } fields[] = {
#define FIELD(key, member) { key, offsetof(struct numbers, member) }
	FIELD("hidden_size", hidden_size), FIELD("n_embd", hidden_size),
	FIELD("num_hidden_layers", num_hidden_layers), FIELD("n_layer", num_hidden_layers),
	FIELD("num_attention_heads", num_attention_heads), FIELD("n_head", num_attention_heads),
	FIELD("num_key_value_heads", num_key_value_heads), FIELD("head_dim", head_dim),
	FIELD("intermediate_size", intermediate_size), FIELD("n_inner", intermediate_size),
	FIELD("vocab_size", vocab_size), FIELD("n_positions", n_positions),
	FIELD("num_local_experts", experts), FIELD("num_experts", experts),
	FIELD("n_routed_experts", experts), FIELD("tie_word_embeddings", tied),
};

static void read_fields(const struct vc_value *config, struct numbers *n)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const struct vc_value *v = vc_value_get(config, fields[i].key);
		double number = !v ? 0 : v->kind == VC_J_NUMBER ? v->real :
				v->kind == VC_J_TRUE || v->kind == VC_J_OBJECT;

		if (v && v->kind != VC_J_NULL)
			memcpy((char *)n + fields[i].offset, &number, sizeof(number));
	}
}

static const struct kind *kind_of(const char *type, struct vc_error *err)
{
	char list[128] = "";
	size_t n = 0;

	for (size_t i = 0; i < KINDS; i++) {
		if (!strcmp(kinds[i].type, type))
			return &kinds[i];
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      kinds[i].type);
	}
	vc_fail(err, VC_ENOSUP, "the weights of model_type '%s' are not counted here (those of %s "
		"are); give --params, --layers and --hidden, or dry-run a script", type, list);
	return NULL;
}

static double llama_params(const struct kind *k, const struct numbers *n)
{
	double h = n->hidden_size, q = n->num_attention_heads * n->head_dim;
	double kv = n->num_key_value_heads * n->head_dim;
	double layer = h * (q + 2 * kv) + q * h + 3 * h * n->intermediate_size + k->norms * h +
		       k->head_norms * n->head_dim + (k->qkv_bias ? q + 2 * kv : 0);

	return n->num_hidden_layers * layer + n->vocab_size * h * (n->tied ? 1 : 2) + h;
}

/* Biases everywhere, norms with a bias, learnt positions. */
static double gpt_params(const struct numbers *n)
{
	double h = n->hidden_size, f = n->intermediate_size;
	double layer = 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h;

	return n->num_hidden_layers * layer + (n->vocab_size + n->n_positions) * h + 2 * h +
	       (n->tied ? 0 : n->vocab_size * h);
}

static int fill(const struct kind *k, struct numbers *n, struct vc_model_config *m,
		struct vc_error *err)
{
	bool gpt = !strcmp(k->arch, "gpt");

	if (n->experts > 0)
		return vc_fail(err, VC_ENOSUP, "a mixture of experts: which expert works is not in "
			       "a configuration; dry-run a script");
	if (gpt && !n->intermediate_size)
		n->intermediate_size = 4 * n->hidden_size;
	if (!n->num_key_value_heads)
		n->num_key_value_heads = n->num_attention_heads;
	if (!n->head_dim && n->num_attention_heads > 0)
		n->head_dim = n->hidden_size / n->num_attention_heads;
	if (!(n->hidden_size > 0 && n->num_hidden_layers > 0 && n->num_attention_heads > 0 &&
	      n->num_key_value_heads > 0 && n->intermediate_size > 0 && n->vocab_size > 0))
		return vc_fail(err, VC_EFORMAT, "the width, the layers, the heads, the inner width "
			       "or the vocabulary is missing, or is not above zero");
	*m = (struct vc_model_config){ gpt ? gpt_params(n) : llama_params(k, n),
		n->num_hidden_layers, n->hidden_size, n->num_attention_heads,
		n->num_key_value_heads, n->head_dim, n->intermediate_size, n->vocab_size, k->arch };
	return VC_OK;
}

static int read_config(const struct vc_value *config, struct vc_model_config *m,
		       struct vc_error *err)
{
	struct numbers n = { .tied = -1 };
	const char *type = vc_value_text(config, "model_type");
	const struct kind *k = type && *type ? kind_of(type, err) : NULL;

	if (config->kind != VC_J_OBJECT)
		return vc_fail(err, VC_EFORMAT, "no configuration of a model: not a JSON object");
	if (!type || !*type)
		return vc_fail(err, VC_EFORMAT, "no configuration of a model: it has no "
			       "model_type");
	if (!k)
		return (int)err->status;
	read_fields(config, &n);
	n.tied = n.tied < 0 ? k->tied : n.tied;
	return fill(k, &n, m, err);
}

int vc_model_config_read(const char *path, struct vc_model_config *m, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	struct vc_value *config = in ? vc_value_read(in, err) : NULL;
	int r = config ? read_config(config, m, err) :
		in && err->status == VC_EFORMAT ? vc_wrap(err, "no configuration of a model") :
						  (int)err->status;

	vc_value_free(config);
	vc_input_close(in);
	return r == VC_OK || !in ? r : vc_wrap(err, "%s", path);
}
