/* SPDX-License-Identifier: Apache-2.0 */
/* ddp.c - what-if: DistributedDataParallel. Buckets are a second copy of all gradients; with
 * gradient_as_bucket_view the gradients move there, and what the backward pass makes of each
 * lives for a moment only. When the model is wrapped there is one bucket of everything; before
 * the second forward pass it is replaced by buckets of bucket_cap_mb, filled with whole tensors
 * in the order of the backward pass, the first of 1 MiB unless the size was given
 * (torch.nn.parallel.distributed, reducer.cpp, 2.11). NCCL's watchdog looks every 100 ms and may
 * still hold the old bucket when the new ones are made: the high bound. Before 1.12 buckets were
 * small from the start. */
#include "simulator/replay/transform.h"
#include "simulator/rewrite/resize.h"

enum { LIVES = 2 }; /* allocations until a gradient is copied into its bucket */
enum bound { BEST, LOW, HIGH };
struct config { uint64_t ranks, bucket, bound; bool view, rebuild; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards; each holds the same, however many", NULL },
	{ "bucket", VC_P_SIZE, AT(bucket), "0",
	  "bucket_cap_mb (0: not given, 1 MiB first, then 25 MiB)", NULL },
	{ "view", VC_P_BOOL, AT(view), "false", "gradient_as_bucket_view", NULL },
	{ "rebuild", VC_P_BOOL, AT(rebuild), "true",
	  "false: static_graph=False, find_unused_parameters=True", NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "how long the first bucket lives",
	  "best,low,high" },
	VC_PARAM_END };

static int ddp_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->ranks ? VC_OK : vc_fail(err, VC_EUSAGE, "ddp: ranks starts at 1");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	return b->size;
}

static int add_buckets(struct vc_resize *r, const struct vc_event *e, bool one,
		       struct vc_error *err)
{
	const struct config *c = r->config;
	uint64_t sum = 0, cap = c->bucket ? c->bucket : 1u << 20;

	for (size_t i = 0; i < r->trainables; i++) {
		sum += r->trainable[i];
		if ((one || sum < cap) && i + 1 < r->trainables)
			continue;
		VC_TRY(vc_resize_add(r, e, sum, one, err));
		sum = 0;
		cap = c->bucket ? c->bucket : 25u << 20;
	}
	return VC_OK;
}

static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	bool late = c->bound == HIGH;
	int rc = VC_OK;

	if (!c->rebuild)
		return p->phase == VC_PHASE_FORWARD && !p->iteration && !p->micro ?
			       add_buckets(r, e, false, err) :
			       VC_OK;
	if (p->phase == VC_PHASE_FORWARD && !p->iteration && !p->micro)
		return add_buckets(r, e, true, err);
	if (p->iteration == 1 && p->phase == VC_PHASE_FORWARD && !p->micro) {
		rc = late ? VC_OK : vc_resize_release(r, e, err);
		return rc == VC_OK ? add_buckets(r, e, false, err) : rc;
	}
	return late && p->iteration == 1 && p->phase == VC_PHASE_OPTIMIZER ?
		       vc_resize_release(r, e, err) :
		       VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct vc_resize r = { .config = c, .size = size_of, .enter = enter,
			       .gradients_live = c->view ? LIVES : 0 };

	return vc_resize_run(&r, s, w, err);
}

const struct vc_source_type vc_transform_ddp = {
	.name = "ddp", .summary = "DistributedDataParallel: gradient buckets",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 0.5, .up = 0.5 },
	.open = ddp_open,
	VC_WHOLE(rewrite),
};
