/* SPDX-License-Identifier: Apache-2.0 */
/* addresses.h - does a recording's driver give addresses in the order that the simulated device
 * does? The caching allocator takes the lower of two equally large free blocks, so a peak can hang
 * on that order by a segment. */
#pragma once

#include "simulator/session/recording.h"

/* *known: every segment lies above or below the one before it as it would on the device. Errors:
 * VC_ENOMEM. */
int vc_addresses_known(const struct vc_recording *rec, bool *known, struct vc_error *err);
