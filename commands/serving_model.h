/* SPDX-License-Identifier: Apache-2.0 */
/* serving_model.h - a model as a server holds it: the bytes of its weights, and what each layer
 * keeps of the tokens, from a config.json. */
#pragma once

#include "simulator/replay/cards.h"
#include "simulator/serving/kv_plan.h"

struct vc_serving_model {
	struct vc_kv_model kv;
	double params;       /* counted from the shape */
	double weights;      /* bytes on one of the cards */
	double slack;        /* how much of them is not known: 0.02 is 2 % */
	const char *from;    /* how the weights are known */
	char format[32];     /* of the quantization; "" none */
	char type[32];       /* model_type */
	double layers, hidden, inner, vocabulary; /* inner: of the layer of a token, experts too */
	uint64_t max_len;    /* max_position_embeddings; 0: not said */
	uint64_t block;      /* tokens in a block, where attention prescribes it; else 0 */
};

/* What a server of that release takes where nobody says it: max_num_seqs and
 * max_num_batched_tokens on that card (NULL: a small one), and its part of the memory. Values that
 * were given (not VC_NOT_GIVEN, no NaN) stay. */
void vc_serving_defaults(const struct vc_card *card, unsigned minor, uint64_t *seqs,
			 uint64_t *batch, double *part);
bool vc_serving_has_states(const struct vc_serving_model *m);
/* Whether it has a prefix cache where nobody says it. */
bool vc_serving_caches(const struct vc_serving_model *m, unsigned minor);

struct vc_serving_how {
	uint64_t tp;       /* cards that share each layer */
	double kv_bytes;   /* of a number in the cache */
	uint64_t states;   /* tokens that a draft model proposes */
	const char *draft; /* its config.json; NULL: further layers of the model propose */
	bool wide_states;  /* states have 32 bits where the file does not say it (SGLang) */
};

int vc_serving_model_read(const char *path, const struct vc_serving_how *how,
			  struct vc_serving_model *m, struct vc_error *err);
