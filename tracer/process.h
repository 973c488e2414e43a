/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - start a program with the tracer in it, wait for it, pass its end on. */
#pragma once

#include <sys/types.h>

#include "common/error.h"

struct vc_process_options { /* lent */
	const char *dir;     /* of the journals */
	const char *library; /* libvramcast_trace.so */
	const char *python;  /* folder to put first on PYTHONPATH; NULL: none */
	const char *options; /* VC_OPTIONS for the tracer */
	void (*before[3])(
		int); /* set by vc_process_guard: what signals did, and do in the program */
};

/* Path of libvramcast_trace.so: beside this program, in ../lib/vramcast, or where it was
 * installed. NULL and an error when it is in none of them. malloc'ed. */
char *vc_process_library(struct vc_error *err);
/* The same for another library or file of ours. */
char *vc_process_find(const char *name, struct vc_error *err);
/* Put a library in front of LD_PRELOAD, behind the allocator of `vramcast run`. 0, or < 0. */
int vc_process_preload(const char *library);

/* A folder for journals: `wanted` itself, or, when that is on a file system that cannot be mapped
 * shared with safety (network), one in memory that `wanted` links to. Refuses a folder that still
 * holds journals. The real path, malloc'ed. */
char *vc_process_folder(const char *wanted, struct vc_error *err);
/* Removes the stub and, when no journal is left in it, the folder. */
void vc_process_folder_remove(const char *wanted, const char *real);

/* Starts argv[0] (searched in PATH). 0 and the pid, or an exit code as the shell gives it: 127 not
 * found, 126 found but not executable, 125 our own failure. */
int vc_process_start(const struct vc_process_options *o, char *const *argv, pid_t *pid,
		     struct vc_error *err);
/* Has it ended? Then *code is its exit code, 128 + n for signal n. */
bool vc_process_ended(pid_t pid, int *code);
/* Call before the start: signals meant to end us are kept for vc_process_sleep, which hands them to
 * the program; those of the terminal reach it by themselves and are ignored here. */
void vc_process_guard(struct vc_process_options *o);
/* Sleeps for so long, or until a child ends. pid 0: nobody is left to hand signals to. The signal
 * `own` (0: none) is not handed on: true when it came. */
bool vc_process_sleep(pid_t pid, unsigned milliseconds, int own);
