/* SPDX-License-Identifier: Apache-2.0 */
/* fit_words.h - what fit found, for people and for programs. */
#ifndef VC_FIT_WORDS_H
#define VC_FIT_WORDS_H

#include "common/emit.h"
#include "simulator/search/fit.h"

enum { VC_FIT_PROOFS = 3 };

/* Trial runs at the answer and above it. */
struct vc_fit_proof {
	int ran[VC_FIT_PROOFS]; /* 1 ran, 0 ran out, -1 not made */
	uint64_t at[VC_FIT_PROOFS], flushes[VC_FIT_PROOFS];
	bool contradicts;       /* one of them went otherwise than predicted */
};

/* The whole document, one entry per card. */
void vc_fit_say(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *card,
		const struct vc_fit_proof *proof, size_t cards, bool json);

#endif
