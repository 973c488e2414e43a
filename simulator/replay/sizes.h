/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h - the sizes that a recording asks for, each once: what rules of rounding are tried on. */
#pragma once

#include "simulator/replay/memo.h"
#include "simulator/replay/source.h"

struct vc_sizes {
	struct vc_memo memo; /* first */
	uint64_t *at; /* ascending, bytes; of all devices, blocks of the starting heap included */
	size_t n;
};

/* Kept with the trace; vc_memo_put(&(*out)->memo) when done. Thread-safe. Errors: VC_ENOMEM. */
int vc_sizes_of(const struct vc_trace *t, struct vc_sizes **out, struct vc_error *err);
