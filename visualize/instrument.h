/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.h - what the script of the report works on: runs as columns, and their largest blocks
 * with call stacks, as lines of text. */
#pragma once

#include "visualize/classify.h"

/* Append lines for at most four runs, as a <template>: "NAME value value ...". Columns and blocks
 * are differences to the one before; sizes are in the run's unit. first: the classes of *runs. */
int vc_instrument_write(struct vc_svg *out, const struct vc_result *runs, size_t n, bool by_time,
			struct vc_error *err);
