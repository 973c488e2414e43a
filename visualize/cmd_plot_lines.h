/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plot_lines.h - results that were written as lines of JSON, read back for the picture of a sweep. */
#ifndef VC_CMD_PLOT_LINES_H
#define VC_CMD_PLOT_LINES_H

#include "simulator/result.h"

/* Is the file one of the lines that vramcast sweep writes? Says no for whatever cannot be read. */
int vc_lines_probe(const char *path);
/* Append its runs to *result (n of them; vc_result_fini each). They carry numbers, no curves. */
int vc_lines_read(const char *path, struct vc_result **result, size_t *n, struct vc_error *err);

#endif
