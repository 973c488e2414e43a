/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - one line at the bottom of a terminal while work takes longer than a second; nowhere
 * else anything is written. A line that is NULL is taken everywhere and does nothing. */
#pragma once

#include "common/opt.h"

struct vc_progress;

/* NULL: nobody watches (-q, standard error is no terminal or cannot go back in a line). */
struct vc_progress *vc_progress_open(const struct vc_console *con);
/* What is being done, in one line; how long it has taken so far is added. */
void vc_progress_say(struct vc_progress *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Before something else is written: the line goes, until the next say. */
void vc_progress_hush(struct vc_progress *p);
void vc_progress_close(struct vc_progress *p);
