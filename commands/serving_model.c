/* SPDX-License-Identifier: Apache-2.0 */
/* serving_model.c - see serving_model.h. Names of members are those of transformers' configurations
 * (models/TYPE/configuration_TYPE.py); states are those of vllm/model_executor/layers/mamba/
 * mamba_utils.py. A test holds the sums to the numbers of parameters that authors published. */
#include "commands/serving_model.h"

#include <dirent.h>
#include <sys/stat.h>

#include "common/opt.h"
#include "common/value.h"

enum { LAYERS_MOST = 1024 };

/* _set_default_max_num_seqs_and_batched_tokens_args in engine/arg_utils.py, config/cache.py */
void vc_serving_defaults(const struct vc_card *card, unsigned minor, uint64_t *seqs,
			 uint64_t *batch, double *part)
{
	bool large = card && card->total >= 70ull << 30 && strncmp(card->name, "a100", 4);
	bool largest = card && card->total >= 160ull << 30 && minor >= 28;

	if (*seqs == VC_NOT_GIVEN)
		*seqs = large || largest ? 1024 : 256;
	if (*batch == VC_NOT_GIVEN)
		*batch = largest ? 16384 : large ? 8192 : 2048;
	if (isnan(*part))
		*part = minor < 20 ? 0.9 : 0.92;
}

bool vc_serving_has_states(const struct vc_serving_model *m)
{
	for (size_t i = 0; i < m->kv.kinds; i++)
		if (m->kv.of[i].kind == VC_KV_STATE)
			return true;
	return false;
}

/* ModelConfig.is_prefix_caching_supported: 0.25 says no for such models, 0.28 yes. */
bool vc_serving_caches(const struct vc_serving_model *m, unsigned minor)
{
	return minor >= 28 || !vc_serving_has_states(m);
}

struct shape {
	const struct vc_serving_how *how;
	double tp;
	const struct vc_value *config; /* what describes the text model */
	const struct vc_value *quant;  /* quantization_config, or NULL */
	const char *type;
	double h, layers, heads, kv_heads, head, inner, vocabulary;
	double experts, used, expert_inner, shared_inner, dense;
	double lora, q_lora, rope, nope, value; /* MLA */
	double index; /* width of the keys that choose tokens for sparse attention; 0: none do */
	double keys, values, key_head, value_head, kernel; /* GDN */
	double m_heads, m_head, m_groups, m_state, m_kernel; /* Mamba 2 */
	bool tied, gated;
};

/* What a number of each part of the weights takes. */
struct widths { double attention, state, dense, experts, shared, embedding; };

/* ---- members ---- */
static double number(const struct vc_value *c, double missing, const char *const *names)
{
	for (; *names; names++) {
		const struct vc_value *v = vc_value_get(c, *names);

		if (v && v->kind == VC_J_NUMBER)
			return v->real;
		if (v && (v->kind == VC_J_TRUE || v->kind == VC_J_FALSE))
			return v->kind == VC_J_TRUE;
	}
	return missing;
}
#define NUMBER(c, missing, ...) number(c, missing, (const char *const[]){ __VA_ARGS__, NULL })

static bool is(const char *type, const char *one)
{
	return type && !strncmp(type, one, strlen(one));
}


/* ---- the shape ---- */
static void read_experts(struct shape *s)
{
	const struct vc_value *c = s->config;
	double shared;

	s->experts = NUMBER(c, 0, "num_experts", "num_local_experts", "n_routed_experts",
			    "moe_num_experts");
	s->used = NUMBER(c, 1, "num_experts_per_tok", "num_experts_per_token", "moe_topk",
			 "experts_per_token", "top_k_experts");
	s->expert_inner = NUMBER(c, s->inner, "moe_intermediate_size", "expert_intermediate_size");
	shared = NUMBER(c, 0, "n_shared_experts", "num_shared_experts");
	s->shared_inner = NUMBER(c, shared * s->expert_inner, "shared_expert_intermediate_size",
				 "moe_shared_expert_intermediate_size",
				 "shared_intermediate_size");
	s->dense = NUMBER(c, 0, "first_k_dense_replace");
}

static void read_states(struct shape *s)
{
	const struct vc_value *c = s->config, *kda = vc_value_get(c, "linear_attn_config");

	s->keys = NUMBER(c, 0, "linear_num_key_heads");
	s->values = NUMBER(c, 0, "linear_num_value_heads");
	s->key_head = NUMBER(c, 0, "linear_key_head_dim");
	s->value_head = NUMBER(c, 0, "linear_value_head_dim");
	s->kernel = NUMBER(c, 4, "linear_conv_kernel_dim");
	if (kda) {
		s->keys = s->values = NUMBER(kda, 0, "num_heads");
		s->key_head = s->value_head = NUMBER(kda, 0, "head_dim");
		s->kernel = NUMBER(kda, 4, "short_conv_kernel_size");
	}
	s->m_heads = NUMBER(c, 0, "mamba_num_heads", "mamba_n_heads");
	s->m_head = NUMBER(c, 64, "mamba_head_dim", "mamba_d_head");
	s->m_groups = NUMBER(c, 1, "n_groups", "mamba_n_groups");
	s->m_state = NUMBER(c, 128, "ssm_state_size", "mamba_d_state");
	s->m_kernel = NUMBER(c, 4, "conv_kernel", "mamba_d_conv");
}

static int read_shape(const struct vc_value *root, const struct vc_serving_how *how,
		      struct shape *s, struct vc_error *err)
{
	const struct vc_value *text = vc_value_get(root, "text_config"), *c, *q;

	if (!text)
		text = vc_value_get(root, "transformer_layer_config"); /* of speculators */
	c = text && text->kind == VC_J_OBJECT ? text : root;

	*s = (struct shape){ .how = how, .tp = (double)how->tp, .config = c,
			     .type = vc_value_text(c, "model_type") };
	if (!s->type)
		s->type = vc_value_text(root, "model_type");
	q = vc_value_get(root, "quantization_config");
	s->quant = q ? q : vc_value_get(c, "quantization_config");
	if (s->quant && s->quant->kind != VC_J_OBJECT)
		s->quant = NULL;
	if (!s->type || !*s->type)
		return vc_fail(err, VC_EFORMAT, "no configuration of a model: it has no "
			       "model_type");
	s->h = NUMBER(c, 0, "hidden_size", "n_embd");
	s->layers = NUMBER(c, 0, "num_hidden_layers", "n_layer");
	s->heads = NUMBER(c, 0, "num_attention_heads", "n_head");
	s->kv_heads = NUMBER(c, s->heads, "num_key_value_heads");
	s->head = NUMBER(c, s->heads > 0 ? s->h / s->heads : 0, "head_dim", "attention_head_dim");
	s->inner = NUMBER(c, 4 * s->h, "intermediate_size", "n_inner");
	s->vocabulary = NUMBER(c, 0, "vocab_size");
	s->tied = NUMBER(c, NUMBER(root, is(s->type, "gemma") || is(s->type, "gpt2") ||
			 is(s->type, "cohere"), "tie_word_embeddings"), "tie_word_embeddings") > 0;
	s->gated = !is(s->type, "nemotron") && !is(s->type, "gpt2") && !is(s->type, "gptj");
	s->lora = NUMBER(c, 0, "kv_lora_rank");
	s->q_lora = NUMBER(c, 0, "q_lora_rank");
	s->rope = NUMBER(c, 64, "qk_rope_head_dim");
	s->nope = NUMBER(c, 128, "qk_nope_head_dim");
	s->value = NUMBER(c, 128, "v_head_dim");
	s->index = NUMBER(c, 0, "index_head_dim");
	read_experts(s);
	read_states(s);
	if (!(s->h > 0 && s->layers > 0 && s->layers < LAYERS_MOST && s->heads > 0 &&
	      s->kv_heads > 0 && s->head > 0 && s->vocabulary > 0))
		return vc_fail(err, VC_EFORMAT, "the width, the layers, the heads or the "
			       "vocabulary is missing, or is not above zero");
	return VC_OK;
}

/* ---- what each layer is ---- */
enum layer { FULL, SLIDING, CHUNKED, STATE, NOTHING };

static enum layer by_name(const char *name)
{
	return is(name, "sliding") ? SLIDING : is(name, "chunked") ? CHUNKED :
	       is(name, "linear") || is(name, "mamba") ? STATE :
	       is(name, "mlp") || is(name, "moe") ? NOTHING : FULL;
}

static bool in_list(const struct vc_value *list, double one)
{
	for (const struct vc_value *v = list ? list->first : NULL; v; v = v->next)
		if (v->real == one)
			return true;
	return false;
}

static const struct vc_value *nth(const struct vc_value *list, size_t i)
{
	const struct vc_value *v = list ? list->first : NULL;

	while (v && i--)
		v = v->next;
	return v;
}

static enum layer layer_of(const struct shape *s, size_t i)
{
	const struct vc_value *c = s->config, *kda = vc_value_get(c, "linear_attn_config");
	const struct vc_value *types = vc_value_get(c, "layer_types"), *one;
	const char *pattern = vc_value_text(c, "hybrid_override_pattern");
	double window = NUMBER(c, 0, "sliding_window"), every;

	if (!types)
		types = vc_value_get(c, "layers_block_type");
	if (kda)
		return in_list(vc_value_get(kda, "kda_layers"), (double)i + 1) ? STATE : FULL;
	if (pattern && i < strlen(pattern))
		return pattern[i] == 'M' ? STATE : pattern[i] == '*' ? FULL : NOTHING;
	one = nth(types, i);
	if (one && one->kind == VC_J_TEXT)
		return by_name(one->text);
	one = nth(vc_value_get(c, "hybrid_layer_pattern"), i); /* MiMo */
	if (one && one->kind == VC_J_NUMBER)
		return one->real > 0 ? SLIDING : FULL;
	every = NUMBER(c, is(s->type, "qwen3_next") || is(s->type, "qwen3_5") ? 4 : 0,
		       "full_attention_interval");
	if (every > 0)
		return (double)(i + 1) - every * floor((double)(i + 1) / every) > 0 ? STATE : FULL;
	if (NUMBER(c, 0, "attention_chunk_size") > 0)
		return (i + 1) % 4 ? CHUNKED : FULL;
	if (!(window > 0) || NUMBER(c, !is(s->type, "qwen"), "use_sliding_window") <= 0)
		return FULL;
	every = NUMBER(c, is(s->type, "gemma3") ? 6 : is(s->type, "gemma2") ||
		       is(s->type, "gpt_oss") ? 2 : 0, "sliding_window_pattern");
	return every > 0 && (double)(i + 1) - every * floor((double)(i + 1) / every) <= 0 ?
	       FULL : SLIDING;
}

/* ---- what a layer keeps ---- */
static double state_number(const struct shape *s)
{
	const char *type = vc_value_text(s->config, "mamba_ssm_dtype");

	if (!type)
		type = vc_value_text(s->config, "mamba_ssm_cache_dtype");
	if (!type)
		return s->how->wide_states || vc_value_get(s->config, "linear_attn_config") ? 4 : 2;
	return strcmp(type, "float32") ? 2 : 4;
}

static double state_bytes(const struct shape *s, double states)
{
	double tp = s->tp, rows = s->kernel - 1 + states, m_rows = s->m_kernel - 1 + states;

	if (s->values > 0)
		return (2 * s->keys * s->key_head + s->values * s->value_head) / tp * rows * 2 +
		       s->values / tp * s->value_head * s->key_head * state_number(s);
	return (s->m_heads * s->m_head + 2 * s->m_groups * s->m_state) / tp * m_rows * 2 +
	       s->m_heads / tp * s->m_head * s->m_state * state_number(s);
}

static double token_bytes(const struct shape *s, enum layer l)
{
	const struct vc_value *c = s->config;
	double heads = s->kv_heads, head = s->head, value, kv = s->how->kv_bytes;

	if (s->lora > 0 && s->index > 0 && kv < 2) /* fp8_ds_mla: its scales, and rope in 16 bits */
		return s->lora + s->lora / 32 + 2 * s->rope;
	if (s->lora > 0)
		return (s->lora + s->rope) * kv;
	value = NUMBER(c, head, "v_head_dim");
	if (l == FULL) { /* Gemma 4 */
		head = NUMBER(c, head, "global_head_dim");
		value = NUMBER(c, value, "global_head_dim");
		heads = NUMBER(c, heads, "num_global_key_value_heads");
	} else { /* MiMo */
		head = NUMBER(c, head, "swa_head_dim");
		value = NUMBER(c, value, "swa_v_head_dim");
		heads = NUMBER(c, heads, "swa_num_key_value_heads");
	}
	return fmax(1, heads / s->tp) * (head + value) * kv;
}

static int add_kind(const struct shape *s, struct vc_kv_layers one, double bytes,
		    struct vc_kv_model *m, struct vc_error *err)
{
	if (!(bytes >= 1 && bytes < 1e12) || one.window > 1000000000000u ||
	    ((one.kind == VC_KV_SLIDING || one.kind == VC_KV_CHUNKED) && one.window < 1))
		return vc_fail(err, VC_ENOSUP, "what a layer of this kind keeps of the tokens is "
			       "not known: model_type '%s'", s->type);
	one.bytes = (uint64_t)bytes;
	for (size_t i = 0; i < m->kinds; i++)
		if (m->of[i].kind == one.kind && m->of[i].bytes == one.bytes &&
		    m->of[i].window == one.window) {
			m->of[i].n++;
			return VC_OK;
		}
	if (m->kinds < VC_KV_LAYERS)
		m->of[m->kinds++] = one;
	return VC_OK;
}

/* DeepseekV32IndexerCache in vllm/model_executor/models/deepseek_v2.py: a byte for each number of
 * the key, four for each 128 of them. Layers that share an indexer keep none. */
static int add_indexer(const struct shape *s, size_t i, struct vc_kv_model *m,
		       struct vc_error *err)
{
	const struct vc_value *one = nth(vc_value_get(s->config, "indexer_types"), i);

	if (!(s->index > 0) || (one && one->kind == VC_J_TEXT && !strcmp(one->text, "shared")))
		return VC_OK;
	return add_kind(s, (struct vc_kv_layers){ VC_KV_FULL, 1, 0, 0, false },
			s->index + 4 * floor(s->index / 128), m, err);
}

static int add_layer(const struct shape *s, enum layer l, double states, struct vc_kv_model *m,
		     struct vc_error *err)
{
	static const enum vc_kv_kind kind[] = { VC_KV_FULL, VC_KV_SLIDING, VC_KV_CHUNKED,
						VC_KV_STATE };
	double bytes = l == STATE ? state_bytes(s, states) : token_bytes(s, l);
	double window = l == SLIDING ? NUMBER(s->config, 0, "sliding_window") :
			l == CHUNKED ? NUMBER(s->config, 0, "attention_chunk_size") : 0;

	if (!(window >= 0 && window < 1e12))
		window = 0;
	return add_kind(s, (struct vc_kv_layers){ kind[l], 1, 0, (uint64_t)window, false }, bytes,
			m, err);
}

/* ---- how many weights, and how wide ---- */
static double attention_params(const struct shape *s, enum layer l)
{
	double q = s->heads * s->head, kv = 2 * s->kv_heads * s->head;

	if (s->lora > 0) {
		double wide = s->heads * (s->nope + s->rope);

		return (s->q_lora > 0 ? s->h * s->q_lora + s->q_lora * wide : s->h * wide) +
		       s->h * (s->lora + s->rope) + s->lora * s->heads * (s->nope + s->value) +
		       s->heads * s->value * s->h;
	}
	if (l == FULL && NUMBER(s->config, 0, "global_head_dim") > 0) {
		double head = NUMBER(s->config, 0, "global_head_dim");

		q = s->heads * head;
		kv = 2 * NUMBER(s->config, s->kv_heads, "num_global_key_value_heads") * head;
	}
	if (is(s->type, "qwen3_next") || is(s->type, "qwen3_5"))
		kv += q; /* a gate for the output */
	return s->h * (q + kv) + q * s->h;
}

static double state_params(const struct shape *s)
{
	double keys = s->keys * s->key_head, values = s->values * s->value_head;
	double wide = s->m_heads * s->m_head, groups = 2 * s->m_groups * s->m_state;

	if (s->values > 0)
		return s->h * (2 * keys + 2 * values + 2 * s->values) +
		       (2 * keys + values) * s->kernel + values * s->h;
	return s->h * (2 * wide + groups + s->m_heads) + (wide + groups) * s->m_kernel +
	       wide * s->h;
}

struct parts { double attention, state, dense, experts, shared, embedding; };

static void count_layer(const struct shape *s, size_t i, enum layer l, struct parts *p)
{
	double matrices = s->gated ? 3 : 2;
	const char *pattern = vc_value_text(s->config, "hybrid_override_pattern");
	bool mlp = !pattern || i >= strlen(pattern) || pattern[i] == '-' || pattern[i] == 'E';
	bool moe = s->experts > 0 && (pattern ? i < strlen(pattern) && pattern[i] == 'E' :
				      (double)i >= s->dense);

	p->attention += l == STATE || l == NOTHING ? 0 : attention_params(s, l);
	p->state += l == STATE ? state_params(s) : 0;
	if (moe) {
		p->experts += s->experts * matrices * s->h * s->expert_inner;
		p->shared += matrices * s->h * s->shared_inner + s->h * s->experts;
	} else if (mlp) {
		p->dense += matrices * s->h * s->inner;
	}
}

/* Whether the list of what is left in 16 bits names a part. */
static bool left_out(const struct vc_value *quant, const char *part)
{
	static const char *const lists[] = { "ignore", "modules_to_not_convert",
					     "ignored_layers", "exclude_modules" };

	for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
		const struct vc_value *l = vc_value_get(quant, lists[k]);

		for (const struct vc_value *v = l ? l->first : NULL; v; v = v->next)
			if (v->kind == VC_J_TEXT && strstr(v->text, part))
				return true;
	}
	return false;
}

/* Bytes of a weight in a group of so many that share a scale of 16 bits and a zero. */
static double packed(double bits, double group)
{
	return bits / 8 + (group > 0 ? (2 + bits / 8) / group : 0);
}

static double quant_width(const struct vc_value *q, const char *method)
{
	const struct vc_value *groups = vc_value_get(q, "config_groups"),
			      *w = vc_value_get(groups ? groups->first : NULL, "weights");
	const char *algo = vc_value_text(q, "quant_algo"), *format = vc_value_text(q, "format");
	double bits = NUMBER(q, NUMBER(w, 0, "num_bits"), "bits", "w_bit");
	double group = NUMBER(q, NUMBER(w, 0, "group_size"), "group_size", "q_group_size");

	if ((algo && strstr(algo, "FP4")) || (format && strstr(format, "nvfp4")) ||
	    (method && strstr(method, "fp4") && !is(method, "mxfp4")))
		return 0.5 + 1.0 / 16; /* a scale of 8 bits for 16 */
	if (is(method, "mxfp4"))
		return 0.5 + 1.0 / 32;
	if (is(method, "fp8") || is(method, "fbgemm_fp8") || (algo && strstr(algo, "FP8")))
		return 1;
	if (is(method, "bitsandbytes"))
		return NUMBER(q, 0, "load_in_4bit") > 0 ? 0.5 + 4.0 / 64 : 1;
	return bits > 0 ? bits >= 8 ? bits / 8 : packed(bits, group > 0 ? group : 0) : 0;
}

static int read_widths(const struct shape *s, struct vc_serving_model *m, struct widths *w,
		       struct vc_error *err)
{
	const char *method = vc_value_text(s->quant, "quant_method");
	double wide;

	*w = (struct widths){ 2, 2, 2, 2, 2, 2 };
	m->slack = 0.02;
	if (!s->quant)
		return VC_OK;
	wide = quant_width(s->quant, method);
	snprintf(m->format, sizeof(m->format), "%.31s", method ? method : "quantized");
	if (!(wide > 0))
		return vc_fail(err, VC_ENOSUP, "how wide the weights are in '%s' is not known; "
			       "give --weights", m->format);
	w->dense = w->experts = w->attention = w->state = w->shared = wide;
	if (is(method, "mxfp4"))
		w->attention = w->state = w->dense = w->shared = 2;
	if (left_out(s->quant, "self_attn"))
		w->attention = 2;
	if (left_out(s->quant, "linear_attn") || left_out(s->quant, "mixer"))
		w->state = 2;
	if (left_out(s->quant, "shared_expert"))
		w->shared = 2;
	m->slack = 0.05;
	return VC_OK;
}

/* ---- what lies beside the file ---- */
/* The bytes of all *.safetensors, or what their index says; 0: there are none. */
static double files_beside(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	char name[1024];
	DIR *d;
	struct dirent *e;
	double sum = 0;

	snprintf(name, sizeof(name), "%.*s", n ? (int)n : 1, n ? path : ".");
	d = n < 700 ? opendir(name) : NULL;
	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);
		struct stat st;

		if (len < 12 || strcmp(e->d_name + len - 12, ".safetensors"))
			continue;
		snprintf(name, sizeof(name), "%.*s/%.250s", n ? (int)n : 1, n ? path : ".",
			 e->d_name);
		if (stat(name, &st) == 0)
			sum += (double)st.st_size;
	}
	if (d)
		closedir(d);
	return sum;
}

static double index_beside(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[1024];
	struct vc_error quiet = { .status = VC_OK };
	struct vc_value *v;
	double size;

	snprintf(name, sizeof(name), "%.*s/model.safetensors.index.json",
		 slash ? (int)(slash - path) : 1, slash ? path : ".");
	v = vc_value_load(name, &quiet);
	size = NUMBER(vc_value_get(v, "metadata"), 0, "total_size");
	vc_value_free(v);
	return size;
}

static void weigh(const char *path, const struct parts *p, const struct widths *w, double tp,
		  struct vc_serving_model *m)
{
	double files = index_beside(path);

	if (!(files > 0))
		files = files_beside(path);
	m->params = p->attention + p->state + p->dense + p->experts + p->shared + p->embedding;
	m->weights = p->attention * w->attention + p->state * w->state + p->dense * w->dense +
		     p->experts * w->experts + p->shared * w->shared + p->embedding * w->embedding;
	m->from = "counted from the shape";
	if (files > 0) {
		m->weights = files;
		m->slack = 0.01;
		m->from = "size of the files";
	}
	m->weights /= tp;
}

/* A tower for pictures: attention of its width, an inner layer of two matrices. */
static double vision_params(const struct vc_value *root)
{
	const struct vc_value *v = vc_value_get(root, "vision_config");
	double wide = NUMBER(v, 0, "hidden_size", "embed_dim");
	double inner = NUMBER(v, 4 * wide, "intermediate_size");

	return NUMBER(v, 0, "num_hidden_layers", "depth") * (4 * wide * wide + 2 * wide * inner);
}

/* Layers that predict further tokens: attention and an MLP like the others'. */
static int add_own_draft(const struct shape *s, struct vc_kv_model *m, struct parts *p,
			 struct vc_error *err)
{
	double n = NUMBER(s->config, 0, "mtp_num_hidden_layers", "num_nextn_predict_layers");

	if (!s->how->states || s->how->draft)
		return VC_OK;
	for (double i = 0; i < n && i < LAYERS_MOST; i++) {
		VC_TRY(add_layer(s, FULL, 0, m, err));
		VC_TRY(add_indexer(s, (size_t)s->layers, m, err));
		count_layer(s, (size_t)s->layers, FULL, p);
	}
	return VC_OK;
}

/* An EAGLE head takes the tokens and the states of the model, has few words, and uses the model's
 * embedding; any other draft is a model of its own. Numbers of a draft have 16 bits. */
static double draft_params(const struct vc_value *root, const struct shape *s,
			   const struct parts *p)
{
	const struct vc_value *name = vc_value_get(root, "architectures");
	double words = NUMBER(root, NUMBER(s->config, 0, "draft_vocab_size"), "draft_vocab_size");
	double layers = p->attention + p->state + p->dense + p->experts + p->shared;

	name = name ? name->first : NULL;
	if (words > 0) /* EAGLE-3: the layer's input is twice as wide, of three states */
		return layers + s->h * (s->heads + 2 * s->kv_heads) * s->head + 3 * s->h * s->h +
		       words * s->h;
	if (name && name->kind == VC_J_TEXT && strstr(name->text, "agle"))
		return layers + 2 * s->h * s->h;
	return layers + s->vocabulary * s->h * (s->tied ? 1 : 2);
}

static int read_draft(const struct vc_value *root, const struct vc_serving_how *how,
		      struct vc_serving_model *m, struct vc_error *err)
{
	struct parts p = { .embedding = 0 };
	struct shape s;
	double params;

	if (root->kind != VC_J_OBJECT)
		return vc_fail(err, VC_EFORMAT, "no configuration of a model: not a JSON object");
	VC_TRY(read_shape(root, how, &s, err));
	for (size_t i = 0; i < (size_t)s.layers; i++) {
		enum layer l = layer_of(&s, i);

		count_layer(&s, i, l, &p);
		if (l != NOTHING)
			VC_TRY(add_layer(&s, l, 0, &m->kv, err));
	}
	params = draft_params(root, &s, &p);
	m->params += params;
	m->weights += 2 * params / s.tp;
	return VC_OK;
}

static int read_model(const char *path, const struct vc_value *root,
		      const struct vc_serving_how *how, struct vc_serving_model *m,
		      struct vc_error *err)
{
	struct shape s;
	struct parts p = { .embedding = 0 };
	struct widths w;
	double shared;

	if (root->kind != VC_J_OBJECT)
		return vc_fail(err, VC_EFORMAT, "no configuration of a model: not a JSON object");
	VC_TRY(read_shape(root, how, &s, err));
	if (vc_value_get(s.config, "compress_rates") || vc_value_get(s.config, "compress_ratios"))
		return vc_fail(err, VC_ENOSUP, "how much is kept of the tokens by layers that "
			       "compress them (%.31s) is not modelled: a dry run of the server "
			       "says it", s.type);
	VC_TRY(read_widths(&s, m, &w, err));
	shared = NUMBER(s.config, 0, "num_kv_shared_layers");
	for (size_t i = 0; i < (size_t)s.layers; i++) {
		enum layer l = layer_of(&s, i);

		count_layer(&s, i, l, &p);
		if (l != NOTHING && (double)i < s.layers - shared)
			VC_TRY(add_layer(&s, l, (double)how->states, &m->kv, err));
		VC_TRY(add_indexer(&s, i, &m->kv, err));
	}
	VC_TRY(add_own_draft(&s, &m->kv, &p, err));
	p.embedding = s.vocabulary * s.h * (s.tied ? 1 : 2) + vision_params(root);
	m->kv.mla = s.lora > 0;
	snprintf(m->type, sizeof(m->type), "%.31s", s.type);
	m->block = s.index > 0 ? 64 : 0; /* DEEPSEEK_V32_INDEXER */
	m->layers = s.layers;
	m->hidden = s.h;
	m->inner = s.experts > 0 ? s.used * s.expert_inner + s.shared_inner : s.inner;
	m->vocabulary = s.vocabulary;
	m->max_len = (uint64_t)NUMBER(s.config, 0, "max_position_embeddings", "n_positions",
				      "max_sequence_length");
	weigh(path, &p, &w, s.tp, m);
	return VC_OK;
}

static int with_root(const char *path, struct vc_value **root, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);

	*root = in ? vc_value_read(in, err) : NULL;
	vc_input_close(in);
	return *root || !in ? *root ? VC_OK : (int)err->status :
	       err->status == VC_EFORMAT ? vc_wrap(err, "%s: no configuration of a model", path) :
	       vc_wrap(err, "%s", path);
}

int vc_serving_model_read(const char *path, const struct vc_serving_how *how,
			  struct vc_serving_model *m, struct vc_error *err)
{
	struct vc_value *root, *other = NULL;
	int r;

	*m = (struct vc_serving_model){ .params = 0 };
	VC_TRY(with_root(path, &root, err));
	r = read_model(path, root, how, m, err);
	if (r != VC_OK)
		r = vc_wrap(err, "%s", path);
	vc_value_free(root);
	if (r != VC_OK || !how->draft)
		return r;
	VC_TRY(with_root(how->draft, &other, err));
	r = read_draft(other, how, m, err);
	vc_value_free(other);
	return r == VC_OK ? r : vc_wrap(err, "%s", how->draft);
}
