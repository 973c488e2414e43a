/* SPDX-License-Identifier: Apache-2.0 */
/* best_fit.c - the textbook's best fit (Knuth, The Art of Computer Programming, volume 1, 2.5): the
 * smallest hole that is large enough, the lowest of equal ones; what is left over stays a hole. */
#include "simulator/models/heap_end.h"

static int best_fit_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
			 struct vc_error *err)
{
	return heap_end_alloc(m, rq, out, vc_chunks_best, err);
}

const struct vc_model_type vc_model_best_fit = {
	.name        = "best_fit",
	.summary     = "the textbook's best fit on one heap that grows at its end",
	.params      = heap_end_params,
	.config_size = sizeof(struct heap_end_config),
	.state_size  = sizeof(struct heap_end),
	.init        = heap_end_init,
	.alloc       = best_fit_alloc,
	.free        = heap_end_free,
	.trim        = heap_end_trim,
	.walk        = vc_chunks_walk,
	.check       = heap_end_check,
	.fini        = vc_chunks_fini,
};
