/* SPDX-License-Identifier: Apache-2.0 */
/* tp.c - what-if: tensor parallel. Matrices and their gradients and states are divided; activations
 * shrink as in Korthikanti et al. 2022, table 2: from 34 to 10 + 24/t parts, to 34/t with sequence
 * parallelism. An estimate. */
#include "common/vec.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/resize.h"

enum { MATRIX = 65536 }; /* values; smaller tensors are replicated */
struct config { uint64_t ranks, element; bool sequence; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards that share each layer", NULL },
	VC_PARAM_ALIAS("t", "ranks"),
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the parameters", NULL },
	{ "sequence", VC_P_BOOL, AT(sequence), "false", "sequence parallelism", NULL },
	VC_PARAM_END
};

static int tp_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->ranks && c->element ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "tp: ranks and element start at 1");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;
	double t = (double)c->ranks;

	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER: case VC_CAT_GRADIENT: case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return b->size / c->element < MATRIX ? b->size : vc_per(b->size, c->ranks);
	case VC_CAT_ACTIVATION: case VC_CAT_FORWARD_TEMP: case VC_CAT_BACKWARD_TEMP:
		return b->size <= 512 ?
			       b->size :
			       (uint64_t)((double)b->size *
						  (c->sequence ? 1 / t : (10 + 24 / t) / 34) +
					  0.5);
	default: return b->size;
	}
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = { .config = s->config, .size = size_of };

	vc_meta_note(s->meta, "tp: an estimate by published formulas, held against one real run "
		     "(a Llama on two ranks): the interval is a judgement");
	return vc_resize_run(&r, s, w, err);
}

const struct vc_source_type vc_transform_tp = {
	.name = "tp", .summary = "tensor parallel over several cards (an estimate)",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 30, .up = 30 },
	.open = tp_open,
	VC_WHOLE(rewrite),
};
