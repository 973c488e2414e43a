/* SPDX-License-Identifier: Apache-2.0 */
/* time.h - how long a step takes: what the recordings show, what a what-if makes of it, and the
 * words for it. Everything stays unknown where no kernels were recorded. */
#pragma once

#include "common/emit.h"
#include "simulator/session/session.h"
#include "simulator/time/time_profile.h"

/* Of a step, what may be of kernels that nobody knows before its time is unknown. */
#define VC_TIME_UNKNOWN 0.25

/* Read the kernels of the session's recordings into s->time; nothing where there are none. Closed
 * with the session. Sessions made from it by vc_session_at share it. Errors: VC_ENOMEM, or those of
 * reading the file again when it is streamed. */
int vc_time_open(struct vc_session *s, struct vc_error *err);

/* The profile of the first recording, NULL without kernels. */
const struct vc_profile *vc_time_profile(const struct vc_session *s);

/* Fill r->timing and r->stats.predicted_ns for a run of `plan`; its result needs the chapter of the
 * observer pace for what flushes cost. What cannot be known is left unknown, with the reason in
 * r->timing.why. Thread-safe. Errors: VC_ENOMEM. */
int vc_time_answer(const struct vc_session *s, const struct vc_plan *plan, struct vc_result *r,
		   struct vc_error *err);

/* The same of a step alone, without a replay and so without what flushes cost: step_ns 0 where it
 * is unknown, with the reason in o->why. Thread-safe. Errors: VC_ENOMEM. */
int vc_time_step(const struct vc_session *s, const struct vc_plan *plan, struct vc_timing *o,
		 struct vc_error *err);

/* The kernels of the session as those of steps with more micro-batches (vc_profile_lengthen). */
int vc_time_lengthen(struct vc_session *s, uint64_t have, uint64_t want, uint64_t stages,
		     bool *done, struct vc_error *err);

/* How long a step of a job takes whose ranks these sessions recorded, each of one: what one sends,
 * the others wait for. step_ns 0: not known of one of them, with the reason in o->why. Errors:
 * VC_ENOMEM. */
int vc_time_ranks(struct vc_session *const *s, size_t n, struct vc_timing *o, struct vc_error *err);

/* Of that step what is left without the collectives that join samples (vc_profiles_within); zeros
 * where it is not known. */
int vc_time_within(struct vc_session *const *s, size_t n, const uint64_t ranks[VC_SHARED],
		   double ns[2], struct vc_error *err);

/* ---- words ---- */

/* "time" of a run (docs/reference/json.md), into an open object. */
void vc_time_report(struct vc_emit *e, const struct vc_result *r);
/* "about 36 ms a step (28 ms .. 44 ms), GPU busy 99 %, 51 % of the peak" of a dry run's steps; ""
 * when unknown. Returns buf. */
const char *vc_time_profile_words(const struct vc_profile *p, char *buf, size_t n);
/* "time" of ranks that meet, and the line for people. */
void vc_time_report_ranks(struct vc_emit *e, const struct vc_timing *t);
/* "time" of a recording (info), into an open object; also the line for people. */
void vc_time_report_profile(struct vc_emit *e, const struct vc_session *s);
/* Is most of the time of the recording's products, convolutions and attention in 16 bit already?
 * False where its kernels are not known. */
bool vc_time_is_half(const struct vc_session *s);
/* "  64000 samples/s      98 it/s (31 .. 130) rough"; "" when unknown. */
const char *vc_time_pace_words(const struct vc_timing *t, char *buf, size_t n);
/* "31.2 ms a step (30.0 .. 33.1), 769 samples/s, GPU busy 93 %"; "" when unknown. Returns buf. */
const char *vc_time_words(const struct vc_result *r, char *buf, size_t n);
/* "batch 24 gives 1.31x the samples/s of 16; 32 would flush the cache 14 times per step" from
 * runs at several values (info.vary, info.value); "" when it cannot be said. `best`: index of the
 * one to recommend, of n. Returns buf. */
const char *vc_time_compare(const struct vc_result *r, size_t n, size_t best, char *buf,
			    size_t len);
