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
enum eval { UNSAID, AUTOCAST, FLOAT };
enum loss { ASKED, LOSS_FLOAT, LOSS_LISTS };
struct config { uint64_t to, bound, eval, loss; double act; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "to", VC_P_ENUM, AT(to), "amp",
	  "autocast, all in 16 bit, or all but parameters and states (for fsdp:mixed)",
	  "amp,bf16,mixed" },
	{ "act", VC_P_REAL, AT(act), "-1",
	  "share of activation bytes that halves, 0 to 1 (-1: 0.7 under autocast, else 1)", NULL },
	{ "eval", VC_P_ENUM, AT(eval), "auto",
	  "under autocast: what runs beside the training steps does so too, or in float (auto: "
	  "too, and the high bound is in float)",
	  "auto,autocast,float" },
	{ "loss", VC_P_ENUM, AT(loss), "auto",
	  "float: the program turns scores into float before their loss (auto: it does not, and "
	  "the high bound does)",
	  "auto,float,lists" },
	{ "bound", VC_P_ENUM, AT(bound), "best", "all of the activations halve, or none",
	  "best,low,high" },
	VC_PARAM_END };

static const char *unmade(const void *config)
{
	const struct config *c = config;

	return c->to == MIXED ? "mixed precision is part of fsdp" : NULL;
}

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

/* In a model of 16 bit all is. */
static bool evaluates_in_16_bit(const struct config *c)
{
	return c->to != AMP || c->eval == AUTOCAST || (c->eval == UNSAID && c->bound != HIGH);
}

static int classify(struct vc_resize *r, struct vc_error *err)
{
	static const enum vc_doubt doubt[] = { [BEST] = VC_DOUBT_SEEMS, [LOW] = VC_DOUBT_HALF,
					       [HIGH] = VC_DOUBT_FLOAT };
	const struct config *c = r->config;
	struct vc_types t = {
		.autocast = c->to == AMP, .doubt = doubt[c->bound],
		.evaluation = evaluates_in_16_bit(c),
		.float_losses = c->loss == LOSS_FLOAT || (c->loss == ASKED && c->bound == HIGH) };

	return vc_types_find(r, &t, err);
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
		if (b->category == VC_CAT_OTHER_TEMP && !evaluates_in_16_bit(c))
			return b->size;
		if (b->size <= 512 || (r->wide && r->wide[b->born]))
			return b->size;
		return (uint64_t)((double)b->size * (1 - (r->wide ? 1 : share(c)) / 2) + 0.5);
	default: return b->size;
	}
}

/* Bytes of the parameters that get no gradient: autocast keeps copies of those that could get one
 * (of a model that runs without gradients), of frozen ones it does not. The high bound. */
static uint64_t others(const struct vc_resize *r)
{
	const struct config *c = r->config;
	uint64_t all = r->c.a.parameters, trained = r->trainable_bytes;

	return c->bound == HIGH && all > trained ? (all - trained) / 2 : 0;
}

/* Does the model run in that phase, under autocast? */
static bool runs(const struct vc_resize *r, const struct vc_span *p)
{
	return p->phase == VC_PHASE_FORWARD ||
	       (p->phase == VC_PHASE_OTHER && evaluates_in_16_bit(r->config) &&
		vc_types_evaluates(r, p));
}

/* Autocast keeps a 16-bit copy of each weight from its first use until its gradient is there, or
 * until it ends. */
static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	int rc = VC_OK;

	if (c->to != AMP || !runs(r, p))
		return VC_OK;
	rc = vc_resize_release(r, e, err);
	r->gradient_at = 0;
	for (size_t i = 0; rc == VC_OK && i < r->trainables; i++)
		rc = vc_resize_add(r, e, r->trainable[i] / 2, true, err);
	return rc == VC_OK ? vc_resize_add(r, e, others(r), true, err) : rc;
}

static int leave(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	return p->phase == VC_PHASE_BACKWARD || p->phase == VC_PHASE_OTHER ?
		       vc_resize_release(r, e, err) : VC_OK;
}

static void say(struct vc_source *s, const struct vc_resize *r)
{
	static const char *const evaluation[] = { [UNSAID] = "under autocast too is assumed",
						  [AUTOCAST] = "under autocast",
						  [FLOAT] = "in float" };
	const struct config *c = s->config;

	vc_meta_note(s->meta,
		     "precision: an estimate; what stays in float is %s, act=0 and act=1 are the "
		     "bounds, a recording at that precision is exact",
		     r->prepare ? "by call sites" : "not recorded");
	if (c->to == AMP)
		vc_meta_note(s->meta,
			     "precision: what runs beside the training steps, as an evaluation "
			     "does: %s (eval=autocast, eval=float)", evaluation[c->eval]);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct vc_resize r = { .config = c, .size = size_of, .enter = enter, .leave = leave,
			       .held_by_gradient = true, .meta = s->meta };

	if (c->act < 0 && s->meta->frames > 1)
		r.prepare = classify;
	say(s, &r);
	return vc_resize_run(&r, s, w, err);
}

static void step(const void *config, struct vc_step_change *c)
{
	c->cast = ((const struct config *)config)->to == AMP ? VC_CAST_AUTO : VC_CAST_ALL;
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
	.margin = &(const struct vc_margin){ .down = 10, .up = 8, .layout = true },
	.step = step, .remedies = remedies, .unmade = unmade, .open = precision_open,
	VC_WHOLE(rewrite),
};
