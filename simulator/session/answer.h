/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - how far a run is to be believed, and what that makes of its verdict: the one place
 * that decides. Commands and sinks read struct vc_trust of a result.
 *
 * Both ends of the interval are replayed: a run that needs so many bytes more is one on a device
 * with so many bytes less. Where both end in the same way, that is the verdict; else it is
 * undecided, unless --assume says which value counts. */
#pragma once

#include "simulator/session/session.h"

/* The weakest of all that the answer rests on. r: the result it is about, whose interval is known
 * (NULL: no run was made; then nothing that a run shows counts). The one place that says `exact`:
 * what was recorded is replayed as it was, or nothing that is open decided anything. */
enum vc_level vc_answer_level(const struct vc_session *s, const struct vc_plan *p,
			      const struct vc_result *r);

/* Were all recordings behind it checked, and did the model reproduce each? */
bool vc_answer_checked(const struct vc_session *s);
bool vc_answer_reproduced(const struct vc_session *s);

/* Is it the allocator of another version of PyTorch than the recorded one? */
/* Has the recorded program a server that sleeps, and are settings or card others? Its cache takes
 * what it finds free, so it would have asked for other sizes. */
bool vc_answer_resized(const struct vc_recording *rec, const struct vc_plan *p);
bool vc_answer_other_torch(const struct vc_recording *rec, const struct vc_plan *p);
/* Widen the interval of such an answer by what the requests of versions were found to differ. */
void vc_answer_widen_torch(struct vc_result *out);

/* Where a prediction may be off by more than it is good for (a fifth of the best guess): why, and
 * the command that can tell. "" where it is not, or --force asks for the number all the same. */
const char *vc_answer_cannot(const struct vc_session *s, uint64_t best, uint64_t low, uint64_t high,
			     char *buf, size_t n);
/* The same words for the values of s, whatever its interval. */
void vc_answer_who_can(const struct vc_session *s, char *buf, size_t n);

/* Fill out->trust; its interval is known. A few more replays, where an end of it may lie
 * beyond what the device has. */
int vc_answer_decide(const struct vc_session *s, const struct vc_job *job,
		     const struct vc_plan *plan, struct vc_result *out, struct vc_error *err);
