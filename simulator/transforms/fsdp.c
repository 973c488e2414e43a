/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp.c - what-if: fully sharded data parallel. All states are shards; about two units are whole at
 * any time (limit_all_gathers), their gradients too until they are scattered; the root unit
 * (embeddings, head) stays whole from forward to backward. */
#include "simulator/transforms/resize.h"

struct config { uint64_t ranks, units, root; bool reshard; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards that share the states", NULL },
	{ "units", VC_P_UINT, AT(units), "0", "wrapped layers (0: as many as equal tensors suggest)", NULL },
	{ "root", VC_P_SIZE, AT(root), "0", "parameters outside the wrapped layers (0: the largest tensor)", NULL },
	{ "reshard", VC_P_BOOL, AT(reshard), "true", "reshard_after_forward", NULL },
	VC_PARAM_END
};

static int fsdp_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->ranks ? VC_OK : vc_fail(err, VC_EUSAGE, "fsdp: ranks starts at 1");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER: case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return (b->size + c->ranks - 1) / c->ranks;
	default:
		return b->size;
	}
}

static uint64_t gradient_shard(struct vc_resize *r, const struct vc_block_life *b)
{
	return (b->size + ((const struct config *)r->config)->ranks - 1) /
	       ((const struct config *)r->config)->ranks;
}

/* Layers repeat their tensors: the most frequent size occurs once per layer, or a few times. */
static uint64_t units_of(const struct vc_resize *r)
{
	uint64_t best = 1;

	for (size_t i = 0; i < r->trainables; i++) {
		uint64_t same = 0;
		for (size_t j = 0; j < r->trainables; j++)
			same += r->trainable[j] == r->trainable[i];
		/* matrices count: vectors of one width occur many times per layer */
		if (r->trainable[i] * 8 >= r->largest && same > best)
			best = same;
	}
	return best;
}

static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	uint64_t root = c->root ? c->root : r->largest, units = c->units ? c->units : units_of(r);
	uint64_t unit = r->trainable_bytes > root ? (r->trainable_bytes - root) / (units ? units : 1) : 0;
	int rc;

	if (p->phase != VC_PHASE_FORWARD && p->phase != VC_PHASE_BACKWARD)
		return VC_OK;
	rc = vc_resize_add(r, e, root, true, err);
	if (!c->reshard && rc == VC_OK)
		return vc_resize_add(r, e, unit * units, true, err);
	for (int i = 0; rc == VC_OK && i < 2; i++) /* the current unit and the one prefetched */
		rc = vc_resize_add(r, e, unit, true, err);
	if (rc == VC_OK) /* copy-in of the gather, or input of the scatter */
		rc = vc_resize_add(r, e, unit, true, err);
	return rc;
}

static int leave(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	(void)p;
	return vc_resize_release(r, e, err);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = { .config = s->config, .size = size_of, .enter = enter, .leave = leave,
			       .gradients_live = 4, .shard = gradient_shard };

	return vc_resize_run(&r, s, w, err);
}

static long fsdp_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_fsdp = {
	.name = "fsdp", .summary = "fully sharded data parallel over several cards",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = fsdp_open, .next = fsdp_next, .close = vc_whole_close,
};
