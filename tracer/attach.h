/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - begin and end a recording of a process that runs already. */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "common/error.h"

struct vc_attach_options { /* lent */
	pid_t pid;
	const char *dir;     /* of the journals */
	const char *library; /* libvramcast_trace.so */
	const char *options; /* VC_OPTIONS for the tracer */
	void (*meanwhile)(void *who); /* the process may let us wait; NULL: nothing to do */
	void *who;
};

/* May it be attached to, and is it not recorded already? One sentence when not. */
int vc_attach_check(pid_t pid, struct vc_error *err);
/* How the process was started, malloc'ed; NULL: nobody knows. */
char *vc_attach_command(pid_t pid);
/* From its return on everything is recorded, and the journal begins with the heap. */
int vc_attach_join(const struct vc_attach_options *o, struct vc_error *err);
/* The process is as it was before. It may have ended: that is fine. */
int vc_attach_leave(const struct vc_attach_options *o, struct vc_error *err);
bool vc_attach_ended(pid_t pid);

/* Signals meant to end us end the recording; call before the start. */
void vc_attach_guard(void);
/* Sleeps for so long; the signal that came, or 0. */
int vc_attach_sleep(unsigned milliseconds);
