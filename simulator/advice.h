/* SPDX-License-Identifier: Apache-2.0 */
/* advice.h - after an out-of-memory or a thrash: the cheapest changes that would have made it fit,
 * each one simulated. */
#ifndef VC_ADVICE_H
#define VC_ADVICE_H

#include "simulator/session.h"

#define VC_ADVICE_MOST 4

struct vc_advice {
	const char *kind;      /* "conf", "code", "hardware" */
	const char *text;      /* what to do, static */
	const char *how;       /* the line to paste, or the option that simulates it */
	bool estimate;         /* the transform behind it is an estimate, not a replay */
	uint64_t peak_reserved, flushes;
	enum vc_verdict verdict;
};

/* Try the changes in order of cost until VC_ADVICE_MOST of them make the run fit (or end the flushes).
 * `r` is the run as it is. Returns their number; a change that cannot be simulated on this trace is
 * left out. 0 when the run fits, or when the trace is too long to be replayed again and again. */
size_t vc_advise(const struct vc_session *s, const struct vc_plan *p, const struct vc_result *r,
		 struct vc_advice out[VC_ADVICE_MOST]);

#endif
