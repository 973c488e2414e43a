/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - run a program under vramcast dryrun or record with a parameter filled in. */
#pragma once

#include "commands/progress.h"

struct vc_trial {
	const char *verb;      /* "dryrun" or "record" */
	const char *gpu;       /* card profile, or NULL */
	const char *key;       /* {key} in the arguments becomes the value */
	char *const *argv;     /* program and its arguments */
	size_t argc;
	const char *folder;    /* where recordings go */
	const char *conf;      /* PYTORCH_CUDA_ALLOC_CONF of the program; NULL, "": its own */
	struct vc_progress *progress;
};

/* Run it; *out (at least 512 bytes) gets "FILE@key=value". What the program prints goes to standard
 * error. A program that ends with another code than 0 is an error, except when it ran out of
 * memory and left a recording: *oom tells (NULL: an error too). */
int vc_trial_run(const struct vc_trial *t, uint64_t value, char *out, int *oom,
		 struct vc_error *err);

/* `text` with every {key} replaced, on the heap; NULL: no memory. */
char *vc_trial_fill(const char *text, const char *key, uint64_t value);

/* Any command line, what it prints to the file `log`; conf as above. *code: the exit code, 128 + N
 * for signal N. An interrupt from the keyboard ends it, not the caller. */
int vc_trial_execute(char **argv, const char *conf, const char *log, int *code,
		     struct vc_error *err);
/* A log to standard error: it matters only when a run failed in a way nobody expected. */
void vc_trial_show(const char *log, struct vc_progress *progress);
