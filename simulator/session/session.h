/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what the commands share: from traces and options to runs.
 *
 * A session owns one trace (in memory, or read anew for every run when it is too long for that),
 * knows which device and which framework version to replay, and turns options into run plans. */
#ifndef VC_SESSION_H
#define VC_SESSION_H

#include "common/opt.h"
#include "simulator/replay/cards.h"
#include "simulator/replay/census.h"
#include "simulator/replay/engine.h"

/* The options that sim, sweep, fit, tune, plot and report have in common; first member of their
 * config, so that vc_run_options (a table for vc_command.options) fits all of them. */
struct vc_run_options {
	struct vc_list model, torch, conf, gpu, used, set, transform;
	uint64_t capacity, context;  /* VC_NOT_GIVEN: not given */
	double fraction;             /* NaN: not given */
	const char *start;           /* warm | rebuild | cold, or NULL */
	uint64_t device, rank;       /* VC_NOT_GIVEN: the one that decides */
	bool verify, treat_segments;
};
extern const struct vc_option vc_run_options[];
/* "Nothing given", for commands that do not take these options. */
struct vc_run_options vc_run_options_none(void);

struct vc_whatif; /* whatif.h */
struct vc_time;   /* time.h */

struct vc_session {
	const struct vc_run_options *opt; /* lent */
	const char *path;                 /* as given, lent */
	struct vc_trace trace;            /* events, unless streamed */
	struct vc_meta *meta;             /* lent from the trace */
	const char *source;               /* the decoder that read it */
	bool streamed;                    /* too long for memory: every run reads the file again */
	struct vc_census census;
	const struct vc_device_census *device;
	char torch[16];                   /* version to replay, "" for models without */
	const char *torch_from;           /* "recorded", "guessed", "given", "newest" */
	char change[256];                 /* transforms in words, "" = as recorded */
	uint64_t total; /* of the recorded device where only a replay could tell; else 0 */
	struct vc_fidelity fidelity;      /* checked = false: not verified */
	double matched; /* what-if from recordings: share of bytes matched, else 1 */
	struct vc_whatif *whatif;         /* several recordings or --set; else NULL */
	struct vc_time *time;             /* kernels of the recordings (vc_time_open); else NULL */
	struct vc_process process[16];    /* --used SIZE@pid */
	size_t processes;
	uint64_t others;
};

enum vc_session_flags { VC_SESSION_IN_MEMORY = 1, /* many runs will follow: keep the events */
			VC_SESSION_NO_REQUESTS_OK = 2 /* info, dump: nothing will be simulated */ };

/* Open the traces, choose device and version, apply --set, verify (--verify). */
int  vc_session_open(struct vc_session *s, const struct vc_run_options *opt, size_t n, char **paths,
		     unsigned flags, struct vc_error *err);
/* One recording as it is: no --set. */
int  vc_session_open_one(struct vc_session *s, const struct vc_run_options *opt, const char *path,
			 unsigned flags, struct vc_error *err);
void vc_session_close(struct vc_session *s);

/* One planned run. */
struct vc_plan {
	const struct vc_model_type *model;
	char params[256];          /* of the model, "" = none */
	char torch[16];            /* "" = the model has no versions */
	const char *conf;          /* settings string, "" = defaults; lent */
	const struct vc_card *card;/* NULL: --capacity or the recorded device */
	const char *device;        /* name of the card or of the recorded device, or NULL; lent */
	uint64_t capacity;         /* 0 = unlimited */
	uint64_t prop_total;
	uint64_t context;          /* of this process, libraries included */
	uint64_t libraries;        /* of these, what the recording saw libraries allocate */
	enum vc_start start;
	double fraction;           /* < 0: never set */
	bool stop_at_oom;
	enum vc_va_policy va;      /* of fresh addresses; INC (0) stands for WINDOW, the driver's */
};

/* All combinations of -m, --torch, --conf and -g, in that order. *plans is the caller's. */
int vc_session_plans(struct vc_session *s, struct vc_plan **plans, size_t *n, struct vc_error *err);

/* Run one plan with these observers (NULL-terminated). Thread-safe for sessions in memory. */
int vc_session_run(const struct vc_session *s, const struct vc_plan *plan,
		   const struct vc_observer_type *const *observers, struct vc_result *out,
		   struct vc_error *err);

/* Replay the recording as it was: its settings, its own device answers (torch `version`), no -x
 * and no
 * --set. On success the caller owns *out. */
int vc_session_follow(const struct vc_session *s, const char *version,
		      const struct vc_observer_type *const *observers, struct vc_result *out,
		      struct vc_error *err);

/* A source over the session's events with -x applied; the caller frees it. */
struct vc_source *vc_session_source(const struct vc_session *s, struct vc_error *err);

/* Replay under the recorded settings and device answers. */
int vc_session_verify(struct vc_session *s, struct vc_error *err);

/* Bytes used for everything but the allocator when a plan runs. */
uint64_t vc_session_beside(const struct vc_session *s, const struct vc_plan *plan);

#endif
