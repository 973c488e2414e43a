/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - a device that answers as the recorded one did: the evidence of a recording (segments
 * obtained, given back, mapped) decides which driver calls succeed and at which addresses. */
#pragma once

#include "common/event.h"
#include "simulator/replay/device.h"
#include "simulator/replay/source.h"

struct vc_follow;
/* Puts the script into the device. NULL: no memory. The device must outlive it. `whole` (lent, or
 * NULL: not in memory) is the trace that is being replayed: a reservation made by a request that
 * failed shows its address only when a later one maps something there. */
struct vc_follow *vc_follow_new(struct vc_device *d, const struct vc_trace *whole, uint16_t device,
				struct vc_error *err);
void vc_follow_free(struct vc_follow *f); /* NULL is fine */

/* A request whose address the device gives: the next reservation lies there. */
void vc_follow_place(struct vc_follow *f, uint64_t addr);

/* One piece of evidence, in recorded order, before the request that caused it. */
int vc_follow_evidence(struct vc_follow *f, const struct vc_event *ev, struct vc_error *err);
