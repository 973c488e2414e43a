/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - one replay: a recording under a plan. */
#pragma once

#include "simulator/session/request.h"

struct vc_job {
	const struct vc_recording *rec;
	const struct vc_trace *events;    /* in place of those of the recording; NULL: those */
	struct vc_source *source;         /* the same, for one run, which frees it */
	const char *change;               /* --set in words, for the result; NULL: as recorded */
	bool reran;                       /* rec was recorded with that change: none to replay */
};

/* Where the plan stands on its recording (ground.h). */
struct vc_stand {
	enum vc_ground ground;
	bool same_rules;  /* of settings and version, as far as this recording can tell */
	uint64_t start;   /* bytes of segments that the recording begins with */
	uint64_t pinned;  /* of these, those with a block that lives */
	uint64_t most;    /* reserved at the recorded peak */
};

int vc_job_stand(const struct vc_job *job, const struct vc_plan *plan, struct vc_stand *out,
		 struct vc_error *err);

/* Run it with these observers (NULL-terminated, or NULL). Thread-safe for recordings in memory. On
 * success the caller owns *out. Errors: VC_ENOSUP for settings that no model knows, those of the
 * transforms and of the model. */
int vc_job_run(const struct vc_job *job, const struct vc_plan *plan,
	       const struct vc_observer_type *const *observers, struct vc_result *out,
	       struct vc_error *err);

/* Replay the recording as it was: its settings, its own device answers (torch `version`). */
int vc_job_follow(const struct vc_recording *rec, const char *version,
		  const struct vc_observer_type *const *observers, struct vc_result *out,
		  struct vc_error *err);

/* What is changed, in words: "batch=32, checkpoint:every=2", "" for nothing. change: --set in
 * words, or NULL. Returns buf. */
char *vc_job_change(const char *change, const struct vc_list *transforms, char *buf, size_t n);

/* Widen [low, high] of *out by the peak of this job; where out has no interval, it becomes one. */
int vc_job_widen(const struct vc_job *job, const struct vc_plan *plan, struct vc_result *out,
		 struct vc_error *err);
