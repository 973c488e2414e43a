/* SPDX-License-Identifier: Apache-2.0 */
/* ddp.c - what-if: DistributedDataParallel. Its buckets are a second copy of all gradients, asked for
 * when the model is wrapped, unless gradients are views of them. First bucket 1 MiB, the others 25
 * MiB (torch.distributed, default bucket_cap_mb and dist._DEFAULT_FIRST_BUCKET_BYTES). */
#include "simulator/transforms/resize.h"

struct config { uint64_t bucket; bool view; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "bucket", VC_P_SIZE, AT(bucket), "25MiB", "bucket_cap_mb", NULL },
	{ "view", VC_P_BOOL, AT(view), "false", "gradient_as_bucket_view", NULL },
	VC_PARAM_END
};

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	return c->view && b->category == VC_CAT_GRADIENT ? 0 : b->size;
}

/* Buckets fill with whole tensors in the order of the backward pass. */
static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	uint64_t sum = 0, cap = 1u << 20;
	int rc = VC_OK;

	if (p->phase != VC_PHASE_FORWARD || p->iteration || p->micro)
		return VC_OK;
	for (size_t i = 0; rc == VC_OK && i < r->trainables; i++) {
		sum += r->trainable[i];
		if (sum < cap && i + 1 < r->trainables)
			continue;
		rc = vc_resize_add(r, e, sum, false, err);
		sum = 0;
		cap = c->bucket;
	}
	return rc;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = { .config = s->config, .size = size_of, .enter = enter };

	return vc_resize_run(&r, s, w, err);
}

static long ddp_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_ddp = {
	.name = "ddp", .summary = "DistributedDataParallel: gradient buckets",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.next = ddp_next, .close = vc_whole_close,
};
