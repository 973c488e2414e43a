/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - the driver calls that a recording shows, for a device that answers with their addresses
 * for as long as a run makes the same ones. */
#pragma once

#include "simulator/replay/device.h"
#include "simulator/replay/memo.h"
#include "simulator/replay/source.h"

struct vc_calls {
	struct vc_memo memo; /* first */
	struct vc_device_call *at; /* in recorded order; none where segments were mapped */
	size_t n;
};

/* Those of `device`, kept with the trace; vc_memo_put(&(*out)->memo) when done. Thread-safe.
 * Errors: VC_ENOMEM. */
int vc_calls_of(const struct vc_trace *t, uint16_t device, struct vc_calls **out,
		struct vc_error *err);
