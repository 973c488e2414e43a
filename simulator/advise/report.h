/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - a run in words and numbers: the parts that sim, sweep, fit and tune share. */
#pragma once

#include "common/emit.h"
#include "simulator/session/session.h"

/* The fields of one element of "runs" (docs/reference/json.md), into an object that is already
 * open. */
void vc_report_run(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		   const struct vc_result *r);
/* "trace"; the trust in it is that in answers under the plan. */
void vc_report_trace(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		     const struct vc_result *r);
void vc_report_fidelity(struct vc_emit *e, const struct vc_session *s); /* "fidelity" */

/* "ledger", of the moment with the most used on the device: allocated + cached = reserved;
 * reserved + context + libraries + others = used, which is what nvidia-smi shows; used + free =
 * capacity + over. people: with labels. */
void vc_report_ledger(struct vc_emit *e, const struct vc_plan *p, const struct vc_result *r,
		      bool people);

/* "holders" of the moment it ran out, else of the peak: their bytes and what the cache holds unused
 * sum to what is reserved then. For people (shown > 0) a table of the first so many. */
void vc_report_holders(struct vc_emit *e, const struct vc_result *r, size_t shown);
/* Who had the card, where programs take turns on it. */
void vc_report_turns(struct vc_emit *e, const struct vc_result *r, bool people);

/* "trust": {level, checked, reproduced, matched, recordings, text, narrow} of answers under a plan.
 */
void vc_report_trust(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		     const struct vc_result *r);
/* What an answer rests on, in words; NULL: the recording itself. Valid as long as s. */
const char *vc_report_words(const struct vc_session *s, const struct vc_plan *p,
			     const struct vc_result *r);
/* What would narrow it; static, NULL: nothing is open. */
const char *vc_report_narrow(const struct vc_session *s, const struct vc_plan *p,
			     const struct vc_result *r);
