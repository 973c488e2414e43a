/* SPDX-License-Identifier: Apache-2.0 */
/* spark.h - memory over time in one line of text. */
#pragma once

#include "simulator/replay/result.h"

/* One character per column, as high as the most bytes reserved in it, full height = the capacity
 * when the run came near it, else the peak. `buf` needs 3 * columns + 1 bytes. ascii: "
 * .:-=+*#%@". Empty when the run has no timeline. Returns buf. */
char *vc_spark(const struct vc_result *r, size_t columns, bool ascii, char *buf);
