/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plot_lines.h - results that sweep and sim wrote as JSON, read back for pictures and other
 * formats. */
#pragma once

#include "simulator/replay/result.h"

/* Is the file one of those that vramcast sweep or sim --json writes, or fit --find plan --json?
 * VC_LINES_NONE for whatever cannot be read. */
enum { VC_LINES_NONE, VC_LINES_RUNS, VC_LINES_PLANS };
int vc_lines_probe(const char *path);
/* Append its runs to *result (n of them; vc_result_fini each). They carry numbers, no curves. */
int vc_lines_read(const char *path, struct vc_result **result, size_t *n, struct vc_error *err);
