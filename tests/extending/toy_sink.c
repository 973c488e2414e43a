/* SPDX-License-Identifier: Apache-2.0 */
/* toy_sink.c - one line of text from the chapter of toy_observer.c. */
#include <inttypes.h>

#include "common/io.h"
#include "visualize/sink.h"

static int toy_write(const struct vc_result *runs, size_t n, const void *config,
		     struct vc_output *out, struct vc_error *err)
{
	(void)config;
	(void)err;
	for (size_t i = 0; i < n; i++)
		vc_output_printf(out, "%" PRIu64 " requests\n", (uint64_t)runs[i].phases.steps);
	return VC_OK;
}

static const char *const chapters[] = { "toy", NULL };

const struct vc_sink_type vc_sink_toy = {
	.name = "toy", .extension = "toy", .summary = "how many requests there were",
	.observers = chapters, .write = toy_write,
};
