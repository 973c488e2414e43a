/* SPDX-License-Identifier: Apache-2.0 */
/* precision.c - what-if: from float to autocast or to pure 16 bit. Which operations stay in float
 * follows from call sites (simulator/rewrite/autocast.h); the bounds are what those leave open.
 * Without them `act` says which share of the activations halves, and the bounds are all and none.
 * A new recording is better.
 */
#include "simulator/replay/transform.h"
#include "simulator/rewrite/autocast.h"

enum to { AMP, HALF, MIXED };
enum bound { BEST, LOW, HIGH };
struct config { uint64_t to, bound; double act; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "to", VC_P_ENUM, AT(to), "amp",
	  "autocast, all in 16 bit, or all but parameters and states (for fsdp:mixed)",
	  "amp,bf16,mixed" },
	{ "act", VC_P_REAL, AT(act), "-1",
	  "share of activation bytes that halves, 0 to 1 (-1: 0.7 under autocast, else 1)", NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "all of the activations halve, or none",
	  "best,low,high" },
	VC_PARAM_END };

static int precision_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->act == -1 || (c->act >= 0 && c->act <= 1) ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "precision: act=%g is not between 0 and 1", c->act);
}

/* 0.7 was chosen on four recorded scripts, whose shares lie between 0.65 and 1. */
static double share(const struct config *c)
{
	if (c->bound != BEST)
		return c->bound == LOW;
	return c->act >= 0 ? c->act : c->to == AMP ? 0.7 : 1;
}

static int classify(struct vc_resize *r, struct vc_error *err)
{
	static const enum vc_doubt doubt[] = { [BEST] = VC_DOUBT_SEEMS, [LOW] = VC_DOUBT_HALF,
					       [HIGH] = VC_DOUBT_FLOAT };
	const struct config *c = r->config;

	return vc_types_find(r, c->to == AMP, doubt[c->bound], err);
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER: case VC_CAT_GRADIENT: case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return c->to == HALF && b->size > 8 ? (b->size + 1) / 2 : b->size;
	case VC_CAT_ACTIVATION:
	case VC_CAT_FORWARD_TEMP:
	case VC_CAT_BACKWARD_TEMP:
	case VC_CAT_OTHER_TEMP:
		if (b->size <= 512 || (r->wide && r->wide[b->born]))
			return b->size;
		return (uint64_t)((double)b->size * (1 - (r->wide ? 1 : share(c)) / 2) + 0.5);
	default: return b->size;
	}
}

/* Autocast keeps a 16-bit copy of each weight from its first use until its gradient is there. */
static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	int rc = VC_OK;

	if (c->to != AMP || p->phase != VC_PHASE_FORWARD)
		return VC_OK;
	rc = vc_resize_release(r, e, err);
	r->gradient_at = 0;
	for (size_t i = 0; rc == VC_OK && i < r->trainables; i++)
		rc = vc_resize_add(r, e, r->trainable[i] / 2, true, err);
	return rc;
}

static int leave(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	return p->phase == VC_PHASE_BACKWARD ? vc_resize_release(r, e, err) : VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct vc_resize r = { .config = c, .size = size_of, .enter = enter, .leave = leave,
			       .held_by_gradient = true, .meta = s->meta };

	if (c->act < 0 && s->meta->frames > 1)
		r.prepare = classify;

	vc_meta_note(s->meta,
		     "precision: an estimate; what stays in float is %s, act=0 and act=1 are the "
		     "bounds, a recording at that precision is exact",
		     r.prepare ? "told by call sites" : "not recorded");
	return vc_resize_run(&r, s, w, err);
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_PRECISION, .kind = "code", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .avoid = VC_TRAIT_CASTS, .text = "autocast to bf16", .params = "to=amp",
	  .paste = "with torch.autocast('cuda', torch.bfloat16): loss = model(x)" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_precision = {
	.name = "precision",
	.summary = "from float to autocast or pure 16 bit (an estimate with bounds)",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 10, .up = 8 },
	.remedies = remedies, .open = precision_open,
	VC_WHOLE(rewrite),
};
