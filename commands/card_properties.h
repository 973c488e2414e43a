/* SPDX-License-Identifier: Apache-2.0 */
/* card_properties.h - a card of the table in the words that cuDNN asks for. */
#pragma once

#include "nullgpu/properties.h"
#include "simulator/replay/cards.h"

static inline int vc_card_properties(const struct vc_card *card, char *out, size_t n,
				     struct vc_error *err)
{
	struct vc_properties p = { .name = card->title, .total = card->total,
		.cc = card->cc_major * 10 + card->cc_minor, .sms = (int)card->sms };

	vc_card_clocks(card, &p.clock_mhz, &p.memory_mhz);
	return vc_properties_text(&p, out, n, err);
}
