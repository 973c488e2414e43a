/* SPDX-License-Identifier: Apache-2.0 */
/* zero.c - what-if: DeepSpeed ZeRO stages 1 to 3 over several cards, with offload to the host.
 *
 * States, gradients and parameters shrink to a shard per rank (padded to a multiple of the ranks);
 * a gradient is whole only until its bucket is reduced; stage 3 gathers the parameters of the
 * prefetch bucket and of the largest layer while a pass runs. Bucket sizes are DeepSpeed's
 * defaults. Activations stay as recorded: same micro-batch per card. */
#include "simulator/transforms/formulas.h"
#include "simulator/transforms/resize.h"

enum offload { NOTHING, OPTIMIZER, ALL };
enum { TENSOR_STAYS = 100000 }; /* values: param_persistence_threshold */

struct config { uint64_t stage, ranks, offload, bucket, prefetch, element, layer; bool overlap; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "stage", VC_P_UINT, AT(stage), "2", "0 to 3", NULL },
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards that share the states", NULL },
	{ "offload", VC_P_ENUM, AT(offload), "none", "what lives in host memory", "none,optimizer,all" },
	{ "bucket", VC_P_UINT, AT(bucket), "500000000", "values per reduce and gather bucket", NULL },
	{ "prefetch", VC_P_UINT, AT(prefetch), "50000000", "values gathered ahead (stage 3)", NULL },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the recorded parameters, and in buckets: "
	  "2 for a recording in 16 bit", NULL },
	{ "layer", VC_P_SIZE, AT(layer), "0", "parameters of the largest layer (0: four times the largest "
	  "tensor, stage 3)", NULL },
	{ "overlap", VC_P_BOOL, AT(overlap), "true", "overlap_comm: buckets twice", NULL },
	VC_PARAM_END
};

static int zero_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (c->stage > 3)
		return vc_fail(err, VC_EUSAGE, "zero: stage is 0 to 3");
	if (!c->ranks || c->ranks > 1u << 20)
		return vc_fail(err, VC_EUSAGE, "zero: ranks starts at 1");
	if (c->offload == ALL && c->stage < 3)
		return vc_fail(err, VC_EUSAGE, "zero: parameters are offloaded by stage 3 only");
	return VC_OK;
}

static uint64_t shard(uint64_t bytes, uint64_t ranks)
{
	return (bytes + ranks - 1) / ranks;
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER:
		if (c->stage < 3 || b->size < TENSOR_STAYS * c->element)
			return b->size;
		r->total += c->offload == ALL ? b->size : 0;
		return c->offload == ALL ? 0 : shard(b->size, c->ranks);
	case VC_CAT_STATE:
		if (c->offload) {
			r->total += b->size;
			return 0;
		}
		return c->stage ? shard(b->size, c->ranks) : b->size;
	case VC_CAT_OPTIMIZER_TEMP:
		return c->offload ? (b->size < 4096 ? b->size : 0) : c->stage ? shard(b->size, c->ranks)
									      : b->size;
	default:
		return b->size;
	}
}

/* What stays of a gradient; with the optimizer on the host, that is there. */
static uint64_t gradient_shard(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	return c->offload ? 0 : shard(b->size, c->ranks);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	uint64_t all = r->trainable_bytes, bucket = least(c->bucket * c->element, all);
	int rc = VC_OK;

	if (c->stage >= 3 && (p->phase == VC_PHASE_FORWARD || p->phase == VC_PHASE_BACKWARD)) {
		uint64_t layer = c->layer ? c->layer : least(4 * r->largest, all);
		rc = vc_resize_add(r, e, layer, true, err);
		if (rc == VC_OK)
			rc = vc_resize_add(r, e, least(c->prefetch * c->element, all), true, err);
	}
	for (int i = 0; rc == VC_OK && c->stage && p->phase == VC_PHASE_BACKWARD && i <= c->overlap; i++)
		rc = vc_resize_add(r, e, bucket, true, err);
	if (rc == VC_OK && c->stage && c->stage < 3 && p->phase == VC_PHASE_OPTIMIZER)
		rc = vc_resize_add(r, e, bucket, true, err); /* updated parameters are gathered */
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
	const struct config *c = s->config;
	struct vc_resize r = { .config = c, .size = size_of, .enter = enter, .leave = leave };

	if (c->stage >= 2) {
		r.gradients_live = 2;
		r.shard = gradient_shard;
	}
	int rc = vc_resize_run(&r, s, w, err);
	if (rc == VC_OK && c->offload && w->n) {
		double all = vc_deepspeed_host((double)(r.trainable_bytes / c->element),
					       (double)(r.largest / c->element), (unsigned)c->stage,
					       (double)c->ranks, (int)c->offload);

		rc = vc_whole_host(s, w, &w->in[0], w->next_id++, (uint64_t)(all / (double)c->ranks), err);
		if (rc == VC_OK)
			vc_meta_note(s->meta, "zero: %.2f GiB of states and parameters of this rank leave the "
				     "card; DeepSpeed's estimate is %.2f GiB of host memory for all %llu ranks, with "
				     "values of %llu bytes in the recording (element=)",
				     (double)r.total / (double)c->ranks / (1u << 30), all / (1u << 30),
				     (unsigned long long)c->ranks, (unsigned long long)c->element);
	}
	return rc == VC_OK ? vc_whole_processes(s, w, c->ranks, err) : rc;
}

static long zero_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_zero = {
	.name = "zero", .summary = "DeepSpeed ZeRO stages 0 to 3, with offload to the host",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = zero_open, .next = zero_next, .close = vc_whole_close,
};
