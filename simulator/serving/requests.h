/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h - traces of requests to a language model that is served: when they came, how long they
 * were, and which texts they share. */
#pragma once

#include "common/error.h"

/* A piece of a prompt: the first `tokens` tokens of the text called `name`. Two pieces of the same
 * name begin alike; texts of different names are taken to differ from their first token on. */
struct vc_text { uint64_t name, tokens; };

struct vc_serve_request {
	uint64_t arrival;  /* ns since the first */
	uint64_t line;     /* of the file, 1 is the first */
	uint64_t prompt, output; /* tokens; output is at least 1 */
	size_t first, texts; /* of its prompt, in vc_requests.text */
	uint64_t answer;   /* name of the text that is its output */
};

struct vc_requests {
	struct vc_serve_request *at;
	size_t n, cap;
	struct vc_text *text;
	size_t texts, text_cap;
};

/* Reads CSV with a header or one JSON object per line; requests come out in order of arrival.
 * `hash_block`: tokens behind each entry of "hash_ids" (512 in published traces). */
int  vc_requests_read(struct vc_requests *r, const char *path, uint64_t hash_block,
		      struct vc_error *err);
void vc_requests_fini(struct vc_requests *r);

/* One more, for callers that make requests themselves: the pieces are copied. */
int vc_requests_add(struct vc_requests *r, const struct vc_serve_request *what,
		    const struct vc_text *texts, size_t n, struct vc_error *err);

uint64_t vc_mix(uint64_t h); /* splitmix64 */

/* In a request: its texts, and its output behind them; a token in one of them. */
struct vc_place { size_t text; uint64_t offset; };

/* A hash of the next tokens, behind which *at goes, and of what was `before` them. Tokens are known
 * by their text and their place in it. 64 bits: that two of a million blocks are taken for one
 * another has a chance of one in 30 million. */
uint64_t vc_requests_hash(const struct vc_requests *r, const struct vc_serve_request *rq,
			  struct vc_place *at, uint64_t tokens, uint64_t before);
