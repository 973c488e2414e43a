/* SPDX-License-Identifier: Apache-2.0 */
/* pp.c - what-if: pipeline parallel, one forward one backward. A stage holds its share of the layers
 * and the activations of min(m, p - i) micro-batches. An estimate: layers are taken for equal. */
#include "simulator/transforms/resize.h"

struct config { uint64_t stages, stage, micro; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "stages", VC_P_UINT, AT(stages), "2", "stages of the pipeline", NULL },
	{ "stage", VC_P_UINT, AT(stage), "0", "which one, from 0", NULL },
	{ "micro", VC_P_UINT, AT(micro), "8", "micro-batches in flight per step", NULL },
	VC_PARAM_END
};

static int pp_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->stages && c->stage < c->stages && c->micro ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "pp: stages and micro start at 1, stage is below stages");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;
	uint64_t held = c->stages - c->stage < c->micro ? c->stages - c->stage : c->micro;

	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER: case VC_CAT_GRADIENT: case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return (b->size + c->stages - 1) / c->stages;
	case VC_CAT_ACTIVATION:
		return b->size <= 512 ? b->size : (b->size * held + c->stages - 1) / c->stages;
	default:
		return b->size;
	}
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = { .config = s->config, .size = size_of };

	vc_meta_note(s->meta, "pp: an estimate, with layers taken for equal, never held against a real run: the "
		     "interval is a judgement");
	return vc_resize_run(&r, s, w, err);
}

static long pp_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_pp = {
	.name = "pp", .summary = "pipeline parallel: one stage of several (an estimate)",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = pp_open, .next = pp_next, .close = vc_whole_close,
};
