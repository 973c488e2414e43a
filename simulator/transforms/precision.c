/* SPDX-License-Identifier: Apache-2.0 */
/* precision.c - what-if: from float to autocast or to pure 16 bit. Which operations stay in float follows
 * from call sites, by the lists of torch.amp (autocast_mode.h): products of matrices and convolutions in
 * 16 bit, losses and softmax in float, what stands between them in the type of what it gets; a residual
 * stream is in float, and a norm's result has a copy in 16 bit for the product behind it, the only one
 * that is kept. Without call sites `act` says which share of the activations halves. The bounds are all
 * and none. A new recording is better. */
#include <stdlib.h>
#include <string.h>

#include "simulator/transforms/resize.h"

enum to { AMP, HALF };
enum bound { BEST, LOW, HIGH };
struct config { uint64_t to, bound; double act; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "to", VC_P_ENUM, AT(to), "amp", "autocast, or everything in 16 bit", "amp,bf16" },
	{ "act", VC_P_REAL, AT(act), "-1",
	  "share of activation bytes that halves, 0 to 1 (-1: 0.7 under autocast, else 1)", NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "all of the activations halve, or none", "best,low,high" },
	VC_PARAM_END
};

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

enum op { UNKNOWN, PRODUCT, SIXTEEN, NORM, FLOAT, LOSS };

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static const char *string_of(const struct vc_meta *m, uint32_t s)
{
	return s < m->strings ? m->string[s] : "";
}

/* By the innermost frame; Transformers computes losses in float whatever comes in. */
static enum op op_at(const struct vc_meta *m, uint32_t site, bool *float_loss)
{
	static const char *const wide[] = { "softmax", "log_softmax", "cross_entropy", "nll_loss", "mse_loss",
		"l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "kl_div", NULL };
	static const char *const norm[] = { "layer_norm", "group_norm", "rms_norm", NULL };
	const struct vc_frame *f = site && site < m->frames ? &m->frame[site] : NULL;
	const char *file = f ? string_of(m, f->file) : "", *function = f ? string_of(m, f->function) : "";

	for (uint32_t at = site; at && at < m->frames; at = m->frame[at].parent)
		if (ends_with(string_of(m, m->frame[at].file), "loss/loss_utils.py")) {
			*float_loss = true;
			return LOSS;
		}
	for (int i = 0; wide[i]; i++)
		if (!strcmp(function, wide[i]))
			return LOSS;
	if (!strcmp(function, "embedding"))
		return FLOAT;
	for (int i = 0; norm[i]; i++)
		if (!strcmp(function, norm[i]))
			return NORM;
	if (strstr(file, "modules/conv.py") || strstr(file, "modules/linear.py"))
		return PRODUCT;
	return strstr(file, "torch/nn/") || strstr(file, "sdpa_attention") ? SIXTEEN : UNKNOWN;
}

static int by_size(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

static bool is_one_of(const uint64_t *size, size_t n, uint64_t s)
{
	return n && bsearch(&s, size, n, sizeof(*size), by_size);
}

/* What stays in float; in pure 16 bit losses of Transformers only. */
static int classify(struct vc_resize *r, struct vc_error *err)
{
	const struct config *c = r->config;
	const struct vc_anatomy *a = &r->c.a;
	uint64_t *norm = calloc(a->n + 1, sizeof(*norm)), *lost = calloc(a->n + 1, sizeof(*lost));
	uint8_t *op = calloc(a->n + 1, 1);
	size_t norms = 0, losses = 0;

	r->wide = calloc(a->n + 1, 1);
	for (size_t i = 0; norm && lost && op && r->wide && i < a->n; i++) {
		op[i] = (uint8_t)op_at(r->meta, r->c.w->in[a->block[i].event].site, &r->float_loss);
		if (op[i] == NORM && a->block[i].size > 512)
			norm[norms++] = a->block[i].size;
		if (op[i] == LOSS && a->block[i].size > 512)
			lost[losses++] = a->block[i].size;
	}
	bool ok = norm && lost && op && r->wide;
	if (ok) {
		qsort(norm, norms, sizeof(*norm), by_size);
		qsort(lost, losses, sizeof(*lost), by_size);
	}
	for (size_t i = 0; ok && i < a->n; i++) {
		const struct vc_block_life *b = &a->block[i];
		bool named = r->c.w->in[b->event].site != 0;

		if (op[i] == LOSS || (op[i] != SIXTEEN && op[i] != PRODUCT && is_one_of(lost, losses, b->size)))
			r->wide[i] = c->to == AMP || r->float_loss;
		else if (c->to == AMP && r->convolutional) /* what a norm in float hands to the next product */
			r->wide[i] = named && op[i] != PRODUCT && is_one_of(norm, norms, b->size);
		else if (c->to == AMP && (op[i] == UNKNOWN || op[i] == FLOAT) && named)
			r->wide[i] = !norms || is_one_of(norm, norms, b->size);
	}
	free(norm);
	free(lost);
	free(op);
	return ok ? VC_OK : vc_nomem(err, "what stays in float");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	switch ((enum vc_category)b->category) {
	case VC_CAT_PARAMETER: case VC_CAT_GRADIENT: case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return c->to == HALF && b->size > 8 ? (b->size + 1) / 2 : b->size;
	case VC_CAT_ACTIVATION: case VC_CAT_FORWARD_TEMP: case VC_CAT_BACKWARD_TEMP: case VC_CAT_OTHER_TEMP:
		if (b->size <= 512 || (r->wide && r->wide[b->born]))
			return b->size;
		return (uint64_t)((double)b->size * (1 - (r->wide ? 1 : share(c)) / 2) + 0.5);
	default:
		return b->size;
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

	if (c->act < 0 && c->bound == BEST && s->meta->frames > 1)
		r.prepare = classify;

	vc_meta_note(s->meta, "precision: an estimate; what stays in float is %s, act=0 and act=1 are the "
		     "bounds, a recording at that precision is exact",
		     r.prepare ? "told by call sites" : "not recorded");
	return vc_resize_run(&r, s, w, err);
}

static long precision_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_precision = {
	.name = "precision", .summary = "from float to autocast or pure 16 bit (an estimate with bounds)",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = precision_open, .next = precision_next, .close = vc_whole_close,
};
