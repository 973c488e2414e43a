/* SPDX-License-Identifier: Apache-2.0 */
/* ground.h - on what the replay of one recording under a plan stands: the recorded run itself, all
 * of its requests, the recorded heap, or a past that may have been. */
#pragma once

#include "simulator/replay/past.h"
#include "simulator/session/job.h"

/* How a past is chosen: 0 leaves it to the recording, 1 + enum vc_past_kind names one. */
enum { VC_TAKE_BEST, VC_TAKE_WARM = VC_PASTS + 1, VC_TAKE_TRIMMED };

/* Where the plan stands. Errors: VC_ENOMEM, those of settings that no model knows. */
int vc_ground_find(const struct vc_job *job, const struct vc_plan *plan, struct vc_run *run,
		   struct vc_stand *out, struct vc_error *err);

/* A collection threshold acts only under a limit, and one that was set before the recording began
 * is not in it. Does the plan leave it open whether there is one? */
bool vc_ground_hides_limit(const struct vc_recording *rec, const struct vc_plan *plan);

/* A program that emptied its cache before the recording began may have reserved more there than the
 * recording shows. Is the device of the plan so small that this could count? Not one as large as
 * the recorded one, nor one with twice of what was ever seen to be reserved. */
bool vc_ground_hides_before(const struct vc_recording *rec, const struct vc_plan *plan);

/* The run on that ground. *held: what vc_ground_leave lets go of when it is over. */
struct vc_footing { struct vc_memo *past, *calls; };
int vc_ground_take(const struct vc_job *job, const struct vc_plan *plan, const struct vc_stand *s,
		   struct vc_run *run, struct vc_footing *held, struct vc_error *err);
void vc_ground_leave(struct vc_footing *held);

/* A past and the recording behind it, under the recorded rules and without limit. */
struct vc_distance {
	struct vc_memo memo; /* first */
	double share;  /* bytes of segments that its heap has and the recorded one has not, or the
			* other way, of what is reserved at the start; < 0: there is no such past */
	uint64_t peak; /* that it comes to reserve */
};
/* Kept with the trace; vc_memo_put(&(*out)->memo) when done. Errors: VC_ENOMEM. */
int vc_ground_distance(const struct vc_recording *rec, enum vc_past_kind kind,
		       struct vc_distance **out, struct vc_error *err);

/* The past that comes nearest, of those that a program may have had. */
int vc_ground_nearest(const struct vc_recording *rec, enum vc_past_kind *kind, double *share,
		      struct vc_error *err);

/* A past of which less than this share is wrong is taken for what happened. */
#define VC_GROUND_NEAR 0.05
