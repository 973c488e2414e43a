/* SPDX-License-Identifier: Apache-2.0 */
/* first_fit.c - the textbook's first fit (Knuth, The Art of Computer Programming, volume 1, 2.5,
 * algorithm A): the lowest hole that is large enough; what is left over stays a hole. */
#include "simulator/models/heap_end.h"

static int first_fit_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
			 struct vc_error *err)
{
	return heap_end_alloc(m, rq, out, vc_chunks_first, err);
}

static int first_fit_init(struct vc_model *m, struct vc_error *err)
{
	((struct heap_end *)m->state)->k.by = VC_BY_PLACE;
	return heap_end_init(m, err);
}

const struct vc_model_type vc_model_first_fit = {
	.name        = "first_fit",
	.summary     = "the textbook's first fit on one heap that grows at its end",
	.params      = heap_end_params,
	.config_size = sizeof(struct heap_end_config),
	.state_size  = sizeof(struct heap_end),
	.init        = first_fit_init,
	.alloc       = first_fit_alloc,
	.free        = heap_end_free,
	.trim        = heap_end_trim,
	.walk        = vc_chunks_walk,
	.check       = heap_end_check,
	.fini        = vc_chunks_fini,
};
