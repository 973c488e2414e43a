/* SPDX-License-Identifier: Apache-2.0 */
/* control_run.h - a recording and a dry run of the same program at the same values, request by
 * request. */
#pragma once

#include "simulator/session/recording.h"

/* A request in which both differ. */
struct vc_differs {
	uint64_t at;            /* of the run's, this one; or the one before which it is missing */
	uint64_t recorded, run; /* bytes; 0: that side does not make it */
	uint64_t life;          /* requests until the recording gives it back; UINT64_MAX: never */
	uint64_t frees;         /* of blocks that both have, between the one before and this */
};

struct vc_control_run {
	uint64_t requests;            /* of the recording */
	uint64_t equal;               /* of these, those that the run makes, too */
	uint64_t resized;             /* made with another size */
	uint64_t placed;              /* of these, as the same of a row that is otherwise the same:
				       * nearly all blocks live for as many requests */
	uint64_t only_recorded, only_run;
	uint64_t at_once;             /* of all that differ: given back before anything else is
				       * asked for */
	uint64_t restreamed;          /* equal ones on another stream */
	uint64_t more, less;          /* most bytes by which one request of the recording is
				       * larger, or smaller, than what the run asks for */
	uint64_t recorded, run;       /* peak reserved of both, as they were */
	struct vc_differs *differs; size_t differ, differ_cap; /* ascending */
	bool same;                    /* the same requests and frees in the same order */
};

/* Both are in memory. */
int vc_control_compare(const struct vc_recording *recorded, const struct vc_recording *run,
		    struct vc_control_run *out, struct vc_error *err);
void vc_control_fini(struct vc_control_run *t);
/* What a recording allocates and reserves at its peaks where the model does as it did. */
struct vc_peaks; /* result.h */
int vc_followed_peaks(const struct vc_recording *rec, struct vc_peaks *out, struct vc_error *err);

/* By how much a run that needs `peak` may need less or more, by what the control run shows. */
void vc_control_interval(const struct vc_control_run *t, uint64_t peak, uint64_t *low,
			 uint64_t *high);

/* "of 40 requests that differ 38 are workspaces, ..."; "" where nothing differs. Returns buf. */
char *vc_control_words(const struct vc_control_run *t, char *buf, size_t n);
