/* SPDX-License-Identifier: Apache-2.0 */
/* time_change.h - what transforms, flushes and another card do to the time of a step. */
#pragma once

#include "simulator/replay/transform.h"
#include "simulator/session/session.h"
#include "simulator/time/time_tempo.h"

enum { VC_CHANGE_PARTS = 256 };

struct vc_change {
	struct vc_step_change step;
	struct vc_tempo_part part[VC_CHANGE_PARTS];
	size_t parts; /* the shares of the forward pass's requests that are recomputed */
	bool other_card;
	const struct vc_card *there; /* then: which */
	double bytes, fp32, tf32, half; /* how many times faster that card is */
	struct vc_tempo_cast cast, slow, fast; /* with step.cast; and how far off it may be */
	double optimizer_ns;      /* 0: as recorded */
};

/* Read the plan's transforms and card; p: the kernels of a recording. 1: the time under one of
 * them is not known, the reason is in why. */
int vc_change_read(const struct vc_session *s, const struct vc_profile *p,
		   const struct vc_plan *plan, struct vc_change *c, char *why, size_t n);

/* Driver calls and flushes of a steady step from r->pace into r->timing; < 0 there when the steps
 * are not known. Errors: VC_ENOMEM. */
int vc_change_flushes(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *r,
		      struct vc_error *err);
