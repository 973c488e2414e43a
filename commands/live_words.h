/* SPDX-License-Identifier: Apache-2.0 */
/* live_words.h - processes that are being recorded: where their journals are, a report of them, and
 * what they do, in words. */
#pragma once

#include "common/opt.h"
#include "tracer/live.h"

/* The folder of the journals of a recording (the file it will write) or of a process. */
enum { VC_LIVE_PATH = 4400 };
int vc_live_folder(const char *what, char dir[VC_LIVE_PATH], struct vc_error *err);

/* A report of n journals, as far as they go; `refresh`: seconds after which the page reads itself
 * anew, or NULL. */
int vc_report_live(size_t n, char **journal, const char *to, const char *refresh,
		   struct vc_console *con);

/* "runs out in about 340 steps (in 22 minutes), because attention.py:88 keeps 2.00 MiB a step"; ""
 * when it does not. */
const char *vc_live_words(const struct vc_live_page *p, char *buf, size_t n);
