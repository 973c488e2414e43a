/* SPDX-License-Identifier: Apache-2.0 */
/* advice_words.h - what to change, and what leaks, in lines for people: the same on a terminal and
 * in a report. */
#pragma once

#include "simulator/advise/advice.h"
#include "simulator/findings/findings.h"

/* The command line that a line to paste begins with. */
struct vc_asked { const struct vc_run_options *opt; size_t traces; char **trace; };

/* Fills r->words: the leak, if there is one, then the n pieces of advice. */
int vc_advice_words(const struct vc_plan *p, const struct vc_asked *q, const struct vc_advice *a,
		    size_t n, struct vc_result *r, struct vc_error *err);
