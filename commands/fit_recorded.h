/* SPDX-License-Identifier: Apache-2.0 */
/* fit_recorded.h - fit from one recording: its program makes the trial runs. */
#pragma once

#include "simulator/session/session.h"

/* One recording and the program behind it; shared by all classes of cards. */
struct vc_fit_recorded {
	struct vc_recording rec;
	struct vc_rerun *rerun; /* NULL: it cannot be asked, ... */
	char why[VC_RERUN_WHY]; /* ... because */
};

/* After a failure, too, vc_fit_recorded_close. key: what is looked for; NULL:
 * a change at the recorded values. */
int vc_fit_recorded_open(struct vc_fit_recorded *r, const struct vc_run_options *opt,
			 const char *path, const char *key, struct vc_error *err);
void vc_fit_recorded_close(struct vc_fit_recorded *r);

/* Was the control run on that card (NULL: the recorded one), too? Then it is its first run. */
bool vc_fit_recorded_on(const struct vc_fit_recorded *r, const struct vc_card *card);

/* Two values to begin with: the recorded one, and one nearer to what a card may hold. 0: the
 * recorded value is not known. */
size_t vc_fit_recorded_first(const struct vc_fit_recorded *r, const char *key,
			     const struct vc_card *card, uint64_t at[2]);

/* Run it at those values. once: with the memory that there is, else with as much as it needs. What
 * the card showed that such runs do not is taken off the memory that there is. */
int vc_fit_recorded_run(struct vc_fit_recorded *r, const struct vc_run_wish *wish,
			struct vc_ran *out, struct vc_error *err);
