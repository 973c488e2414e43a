/* SPDX-License-Identifier: Apache-2.0 */
/* made_changes.h - changes of -x as the hook makes them in a program (change_hook.h). */
#pragma once

#include "simulator/session/rerun.h"

struct vc_made_changes { char *change, *recompute, *budget; /* of struct vc_hook */ };

/* Why those of the wish cannot be made in the recorded program, "" where they can. */
void vc_made_judge(const struct vc_run_wish *w, char why[VC_RERUN_WHY]);
/* Errors: VC_EUSAGE: they cannot. After a failure, too, close it. */
int vc_made_open(struct vc_made_changes *m, const struct vc_run_wish *w, struct vc_error *err);
void vc_made_close(struct vc_made_changes *m);
/* Did the run whose hook lies in that folder make all of them? VC_EUSAGE: it did not. */
int vc_made_check(const struct vc_made_changes *m, const char *folder, struct vc_error *err);
