/* SPDX-License-Identifier: Apache-2.0 */
/* run_start.h - the program of `vramcast run`. */
#pragma once

#include "common/error.h"

/* Start a program and wait for its end: its exit code as the shell has it, or less than 0. Signals
 * of the terminal reach it by themselves and are ignored here. */
int vc_run_start(char **argv, size_t argc, struct vc_error *err);
