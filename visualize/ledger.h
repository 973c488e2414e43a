/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - where the bytes of the card are at the moment that matters: every line adds up. */
#pragma once

#include "visualize/classify.h"

struct vc_ledger {
	bool at_oom;               /* else at the peak of what is reserved */
	uint64_t event;
	uint64_t capacity;         /* 0: unknown; then nothing is free */
	bool limited;              /* not the card, but a fraction of it that was set */
	uint64_t context, others;  /* beside the allocator; context 0: unknown */
	uint64_t slot[VC_SLOTS];   /* live, by what it is for */
	uint64_t live, waiting;    /* sum of these; freed and waiting for another stream */
	uint64_t returnable, stranded; /* free in segments without a live block; in others */
	uint64_t reserved;         /* live + waiting + returnable + stranded */
	uint64_t used, free;       /* on the device; used + free = capacity */
	uint64_t request;          /* that was refused; 0: none */
	uint64_t largest;          /* free piece that the request could have, at the OOM */
	size_t segments;           /* at that moment */
};

void vc_ledger_make(struct vc_ledger *l, const struct vc_classes *c);
