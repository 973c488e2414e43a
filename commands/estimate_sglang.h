/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_sglang.h - estimate --serve --sglang: the pools of an SGLang server. */
#pragma once

#include "commands/estimate_serve.h"
#include "simulator/replay/cards.h"

/* `path`: the config.json. 0: fits; 3: does not; 6: the interval leaves it open. */
int vc_estimate_sglang(const struct vc_serve_ask *ask, const struct vc_card *card,
		       const char *path, struct vc_console *con);
