/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_cards.h - which of all cards an estimate fits, and what they cost by a list. */
#pragma once

#include "common/emit.h"
#include "common/opt.h"
#include "simulator/replay/cards.h"

/* Bytes of one card without its context. */
struct vc_estimate_need { double low, bytes, high; };

/* "cards": every card, the cheapest that fits first (without prices: the smallest), and
 * "cheapest". prices: a file with NAME,PRICE on each line, or NULL. *fits: at least one does. */
int vc_estimate_cards(struct vc_emit *e, const struct vc_estimate_need *need, const char *prices,
		      bool *fits, struct vc_error *err);

/* `-g all` of a command that takes several cards: each card of CUDA's in its place, the smallest
 * first; with --prices the cheapest first, and those that the file does not name last. */
int vc_gpu_all(const struct vc_command *c, void *config, struct vc_error *err);
/* What the file says of that card. Errors: VC_EUSAGE: nothing. */
int vc_card_price(const char *prices, const struct vc_card *card, double *price,
		  struct vc_error *err);
/* "cheapest": the first of those cards on which it fits, with its price. */
void vc_gpu_cheapest(struct vc_emit *e, const char *prices, const struct vc_card *fits);
