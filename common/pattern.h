/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - the steps of a run whose recording has no marks, from the order of its allocations
 * and frees alone: sizes may differ from step to step (lengths of texts), the order hardly does.
 */
#pragma once

#include "common/error.h"
#include "common/event.h"

struct vc_pattern_steps {
	uint64_t steps;      /* 0: nothing repeats three times */
	uint64_t events;     /* allocations and frees from one step to the next */
	double confidence; /* 0..1: share of them that come again in the same order one step later
			    */
};

struct vc_pattern;
struct vc_pattern *vc_pattern_new(uint16_t device, struct vc_error *err);
void vc_pattern_free(struct vc_pattern *p); /* NULL is fine */
/* Events in order; only allocations and frees of the device count. Of a long recording the first
 * two million are looked at, and the rest is taken to go on like them. Errors: VC_ENOMEM. */
int vc_pattern_add(struct vc_pattern *p, const struct vc_event *ev, size_t n, struct vc_error *err);
/* Errors: VC_ENOMEM. */
int vc_pattern_find(struct vc_pattern *p, struct vc_pattern_steps *out, struct vc_error *err);
