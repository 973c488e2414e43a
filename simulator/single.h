/* SPDX-License-Identifier: Apache-2.0 */
/* single.h - what one recording alone says about its sizes at another value. */
#ifndef VC_SINGLE_H
#define VC_SINGLE_H

#include "simulator/laws.h"
#include "simulator/member.h"

/* For every allocation of the recording made at value x: law[i] linear or constant where that is
 * clear, settled[i] = 1; blocks that could be either keep settled[i] = 0. Errors: VC_ENOMEM. */
int vc_single_settle(const struct vc_member *m, double x, struct vc_law *law, uint8_t *settled,
		     struct vc_error *err);

#endif
