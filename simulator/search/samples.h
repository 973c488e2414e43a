/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - how long the samples of a data set are, and what a random batch of them holds. */
#pragma once

#include "common/error.h"

struct vc_sample_length { uint64_t length, samples; };

struct vc_samples {
	struct vc_sample_length *at; size_t n; /* ascending, each length once */
	uint64_t samples, tokens, cut;         /* tokens: before padding; cut: those cut off */
};

/* From a file with a length per line, or a length and how many samples have it ("512 1040",
 * "512,1040"); '#' begins a comment, and a first line of names is passed over. Longer ones are cut
 * to `most` (0: none is), and lengths are padded to multiples of `pad`. On success and on failure
 * vc_samples_fini. */
int vc_samples_read(struct vc_samples *s, const char *path, uint64_t most, uint64_t pad,
		    struct vc_error *err);
void vc_samples_fini(struct vc_samples *s);

/* How many are longer, and the tokens by which they are. */
uint64_t vc_samples_over(const struct vc_samples *s, uint64_t length, uint64_t *tokens);

/* The length that a share of the samples does not exceed. */
uint64_t vc_samples_quantile(const struct vc_samples *s, double share);

/* The chance that at least one of `some` samples is among `drawn` of them, drawn at random, none
 * twice. */
double vc_samples_chance(const struct vc_samples *s, uint64_t some, uint64_t drawn);
