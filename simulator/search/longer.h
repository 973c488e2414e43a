/* SPDX-License-Identifier: Apache-2.0 */
/* longer.h - what a step needs with more micro-batches than were recorded. */
#pragma once

#include "simulator/session/session.h"

struct vc_longer {
	bool known;     /* false: nothing repeats in its steps, or what is held grows */
	uint64_t more;  /* bytes that the allocator reserves at the peak on top of the recorded */
};

/* By a replay in which every step does as often what repeats in it, as a program that is told
 * `want` micro-batches and not `have` would. stages: micro-batches that a schedule may take
 * together. The recording begins cold. Errors: VC_ENOMEM. */
int vc_longer_find(const struct vc_session *s, uint64_t have, uint64_t want, uint64_t stages,
		   struct vc_longer *out, struct vc_error *err);
