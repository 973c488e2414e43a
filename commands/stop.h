/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - Ctrl-C or kill for a command that runs programs: it ends all that it has started, starts
 * nothing more, and says what it has. The signal stays pending, so that every thread sees it. */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "common/error.h"

/* From here on such a signal does not end this thread, nor those that it starts; one that was
 * ignored stays so. before: what to put back where none has come; or NULL. */
void vc_stop_guard(sigset_t *before);
/* Its number; 0: none has come. Its name. */
int vc_stop_asked(void);
const char *vc_stop_name(void);
/* VC_ESTOPPED, and its name, if one has come. */
int vc_stop_check(struct vc_error *err);
/* Await a child, whose programs are ended when one comes. Returns 0 or an errno. */
int vc_stop_wait(pid_t child, int *status);
/* At the end: whatever is left of all that was started. */
void vc_stop_rest(void);
