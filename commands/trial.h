/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - run a user's program under vramcast dryrun or record: the one way in which other
 * commands do. */
#pragma once

#include "commands/change_hook.h"
#include "commands/progress.h"
#include "common/program.h"

struct vc_param_value; /* common/meta.h */

struct vc_trial {
	const char *verb;      /* "dryrun" or "record" */
	const char *gpu;       /* card profile, or NULL */
	const char *capacity;  /* of the card, where it is another one; or NULL */
	uint64_t steps;        /* of its optimizer, then it is ended; 0: all */
	const struct vc_param_value *at; size_t n; /* {name} in the arguments becomes the value */
	char *const *argv;     /* program and its arguments */
	size_t argc;
	const struct vc_program *as; /* its folder, environment and options; NULL: ours */
	const char *conf;      /* PYTORCH_CUDA_ALLOC_CONF of the program; NULL, "": its own */
	const struct vc_hook *hook; /* in front of it; or NULL */
	const struct vc_texts *environment; /* variables on top of these; or NULL */
	const char *const *more; /* options of it, NULL behind them; or NULL */
	const char *log;       /* NULL: FILE.log */
	struct vc_progress *progress;
};

/* Run it into `file` (NULL: without a recording). What the program prints goes to its log, which
 * vc_trial_show() writes to standard error: it matters only when a run failed in a way that nobody
 * expected. *code: its exit code, 128 + N for signal N. A signal that stops the caller
 * ends it, and all that it started: VC_ESTOPPED (stop.h). */
int vc_trial_run(const struct vc_trial *t, const char *file, int *code, struct vc_error *err);
void vc_trial_show(const char *log, struct vc_progress *progress);
/* A folder for runs in `path` (at least 200 bytes), and its removal with all files in it. */
int vc_trial_folder(char *path, struct vc_error *err);
void vc_trial_remove(const char *path);
/* Is there a recording? */
bool vc_trial_recorded(const char *file);
