/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.h - the shape of a transformer from a config.json as Hugging Face's hub has it. */
#pragma once

#include "common/error.h"

struct vc_model_config {
	double params;      /* of all weights together, counted from the shape */
	double layers, hidden, heads, kv_heads, head_dim, feed_forward, vocabulary;
	const char *arch;   /* "gpt" or "llama" */
};

/* VC_ENOSUP: a kind of model whose weights nobody has counted. */
int vc_model_config_read(const char *path, struct vc_model_config *m, struct vc_error *err);
