/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what the commands share: recordings and options in, answers out. */
#pragma once

#include "simulator/session/job.h"

struct vc_whatif; /* whatif.h */

/* What a room above keeps with a session: first member of its own struct. */
struct vc_keeps {
	void (*drop)(struct vc_keeps *k);
};

struct vc_session {
	const struct vc_run_options *opt; /* lent */
	const struct vc_recording *rec;   /* what is replayed: the recording, or the prediction */
	struct vc_recording own;          /* the one recording; empty for predictions */
	const struct vc_recording *lent;  /* instead of it, the shelf's; else NULL */
	struct vc_shelf *shelf;
	struct vc_whatif *whatif;         /* several recordings, --set, or a program that is run
					   * with the change of -x; else NULL */
	struct vc_run_options rest;       /* *opt without the changes that were made in it */
	char change[256];                 /* --set and these in words, "" = as recorded */
	char why[VC_RERUN_WHY];           /* its program was not run, because; "": not asked */
	double matched;                   /* of a prediction: share of bytes matched, else 1 */
	struct vc_tenants tenants;        /* --used */
	struct vc_keeps *time;            /* kernels of the recordings (vc_time_open); else NULL */
	bool time_lent;
};

/* Open the traces, choose device and version, apply --set, verify (--verify). After a failure,
 * too, vc_session_close. */
int  vc_session_open(struct vc_session *s, const struct vc_run_options *opt, size_t n, char **paths,
		     unsigned flags, struct vc_error *err);
/* One recording as it is: no --set. */
int  vc_session_open_one(struct vc_session *s, const struct vc_run_options *opt, const char *path,
			 unsigned flags, struct vc_error *err);
void vc_session_close(struct vc_session *s);

/* The same recordings at other values: a session of its own that lends the recordings from `from`,
 * which must outlive it. Closed with vc_session_close. `text`: "batch=32" for people. */
int vc_session_at(const struct vc_session *from, const struct vc_param_value *at, size_t n,
		  const char *text, struct vc_session *out, struct vc_error *err);

/* All combinations of -m, --torch, --conf and -g, in that order. *plans is the caller's. */
int vc_session_plans(const struct vc_session *s, struct vc_plan **plans, size_t *n,
		     struct vc_error *err);

/* Run one plan with these observers (NULL-terminated), say how far the answer may be off, and
 * decide (answer.h). Thread-safe for recordings in memory. */
int vc_session_run(const struct vc_session *s, const struct vc_plan *plan,
		   const struct vc_observer_type *const *observers, struct vc_result *out,
		   struct vc_error *err);
/* The two halves of it: the replay; and the interval of its result, which costs several more, with
 * the verdict of both ends. */
int vc_session_replay(const struct vc_session *s, const struct vc_plan *plan,
		      const struct vc_observer_type *const *observers, struct vc_result *out,
		      struct vc_error *err);
int vc_session_decide(const struct vc_session *s, const struct vc_plan *plan,
		      struct vc_result *out, struct vc_error *err);
/* The interval alone. */
int vc_session_interval(const struct vc_session *s, const struct vc_plan *plan,
			struct vc_result *out, struct vc_error *err);
/* The interval without the alternatives of a prediction. */
int vc_session_interval_of_change(const struct vc_session *s, const struct vc_plan *plan,
				  struct vc_result *out, struct vc_error *err);

/* A source over the session's events with -x applied; the caller frees it. */
struct vc_source *vc_session_source(const struct vc_session *s, struct vc_error *err);
