/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_cards.h - which of all cards an estimate fits, and what they cost by a list. */
#pragma once

#include "common/emit.h"

/* Bytes of one card without its context. */
struct vc_estimate_need { double low, bytes, high; };

/* "cards": every card, the cheapest that fits first (without prices: the smallest), and
 * "cheapest". prices: a file with NAME,PRICE on each line, or NULL. *fits: at least one does. */
int vc_estimate_cards(struct vc_emit *e, const struct vc_estimate_need *need, const char *prices,
		      bool *fits, struct vc_error *err);
