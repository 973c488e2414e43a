/* SPDX-License-Identifier: Apache-2.0 */
/* inject.h - have the Python of a running process execute a file. */
#pragma once

#include <sys/types.h>

#include "common/error.h"

/* May we, and has it a Python? One sentence when not. */
int vc_inject_check(pid_t pid, struct vc_error *err);
/* Asks the main thread to execute the file between two of its own instructions of Python, soon.
 * The file finds `page` and `size`: memory that was made for this, and is no longer needed then.
 * Nothing in it may raise. */
int vc_inject_python(pid_t pid, const char *file, struct vc_error *err);
