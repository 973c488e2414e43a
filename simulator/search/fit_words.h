/* SPDX-License-Identifier: Apache-2.0 */
/* fit_words.h - what fit found, for people and for programs. */
#pragma once

#include "common/emit.h"
#include "simulator/search/fit.h"

enum { VC_FIT_PROOFS = 64 };

/* Trial runs on a card, in the order in which they were made. */
struct vc_fit_proof {
	size_t n;
	bool ran[VC_FIT_PROOFS]; /* or it ran out of memory */
	uint64_t at[VC_FIT_PROOFS], flushes[VC_FIT_PROOFS];
	uint64_t largest, failing; /* the largest that ran without emptying the cache, the
				    * smallest that did not; 0: none */
	bool contradicts;       /* one of them went otherwise than predicted */
	bool proved;            /* those two are neighbours */
};

/* The whole document, one entry per card. */
void vc_fit_say(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *card,
		const struct vc_fit_proof *proof, size_t cards, bool json);
