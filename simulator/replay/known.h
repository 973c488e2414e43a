/* SPDX-License-Identifier: Apache-2.0 */
/* known.h - the runs that a trace has seen, kept with it (memo.h). Under settings that could not
 * have changed anything of one of them the trace is not replayed again. */
#pragma once

#include "simulator/replay/engine.h"
#include "simulator/replay/model.h"

/* The events of the run where they lie in memory, and nothing but settings decides about it; or
 * NULL. */
const struct vc_trace *vc_known_trace(const struct vc_run *run);
/* Would m, which has served nothing yet, serve the requests of t as the run did of which that is
 * the witness (model.h), as long as the device answers alike? */
bool vc_known_repeats(const struct vc_trace *t, const struct vc_model *m, const void *witness);
/* What is known of the run that is about to begin on m, which has served nothing yet. false: it
 * has to be made. On success the figures and chapters of *out are as vc_run would fill them, and
 * run->start as vc_run would leave it. t may be NULL. Thread-safe. */
bool vc_known_find(const struct vc_trace *t, struct vc_run *run, const struct vc_model *m,
		   struct vc_result *out);

/* A run that came to its end on m. asked: how it should have started. Nothing happens where t
 * keeps nothing. Thread-safe. */
void vc_known_keep(const struct vc_trace *t, const struct vc_run *run, enum vc_start asked,
		   const struct vc_model *m, const struct vc_result *made);
