/* SPDX-License-Identifier: Apache-2.0 */
/* minimalloc.c - the life of every block as id,lower,upper,size, which offline planners read
 * (minimalloc, idealloc, omnimalloc): what the best possible packing would need. Times are
 * events, half open. */

#include "common/io.h"
#include "visualize/sink.h"

static int minimalloc_write(const struct vc_result *runs, size_t n, const void *config,
			    struct vc_output *out, struct vc_error *err)
{
	if (n != 1)
		return vc_fail(err, VC_EUSAGE,
			       "minimalloc: one run at a time, its file has no room for more");
	if (runs->lives.dropped)
		return vc_fail(err, VC_ENOSUP, "minimalloc: the run has too many blocks to list "
			       "each; take a part of it (-x window)");
	vc_output_text(out, "id,lower,upper,size\n");
	for (size_t i = 0; i < runs->lives.n; i++) {
		const struct vc_life *l = &runs->lives.at[i];
		uint64_t end = l->died == UINT64_MAX ? runs->stats.events : l->died;
		uint64_t from = l->at_start ? 0 : l->born;

		vc_output_printf(out, "%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, from,
				 end > from ? end : from + 1, l->size);
	}
	return VC_OK;
}

const struct vc_sink_type vc_sink_minimalloc = {
	.name = "minimalloc", .extension = "minimalloc",
	.summary =
		"lives of blocks as id,lower,upper,size, for offline packing (minimalloc, "
		"idealloc)",
	.observers = VC_READS("lives"), .write = minimalloc_write,
};
