/* SPDX-License-Identifier: Apache-2.0 */
/* lora.c - what-if: low-rank adapters instead of full training. Frozen tensors lose gradient and
 * state; each adapted one gains rank * (in + out) values with gradient and two states. Activations
 * stay: an upper bound, for the input of a layer that is not adapted need not be kept. Shapes are
 * not recorded: a matrix counts as square. */
#include <math.h>

#include "simulator/transforms/formulas.h"
#include "simulator/transforms/resize.h"

enum { MATRIX = 65536 };
struct config { uint64_t rank, element; double targets; bool twice; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param lora_params[] = {
	{ "rank", VC_P_UINT, AT(rank), "8", "rank of the adapters", NULL },
	{ "targets", VC_P_REAL, AT(targets), "1", "share of the matrices that is adapted, 0 to 1", NULL },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the recorded parameters", NULL },
	VC_PARAM_END
};
static const struct vc_param qlora_params[] = {
	{ "rank", VC_P_UINT, AT(rank), "8", "rank of the adapters", NULL },
	{ "targets", VC_P_REAL, AT(targets), "1", "share of the matrices that is adapted, 0 to 1", NULL },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the recorded parameters", NULL },
	{ "double", VC_P_BOOL, AT(twice), "true", "double quantisation of the scales", NULL },
	VC_PARAM_END
};

static int lora_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (!c->rank || !(c->targets >= 0 && c->targets <= 1) || (c->element != 2 && c->element != 4))
		return vc_fail(err, VC_EUSAGE, "%s: rank starts at 1, targets is 0 to 1, element 2 or 4",
			       s->type->name);
	return VC_OK;
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	(void)r;
	return b->category == VC_CAT_GRADIENT || b->category == VC_CAT_STATE ||
	       (b->category == VC_CAT_OPTIMIZER_TEMP && b->size >= 4096) ? 0 : b->size;
}

/* Linear layers in 4 bit; vectors and the largest matrix (embeddings, head) stay. */
static uint64_t quantised(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;
	uint64_t values = b->size / c->element;

	if (b->category != VC_CAT_PARAMETER || values < MATRIX || b->size >= r->largest)
		return size_of(r, b);
	return (uint64_t)((double)values * vc_nf4_bits(c->twice) / 8 + 0.5);
}

/* Adapters in float, with gradient and two states, from the start of the first iteration on. */
static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	double debt = 0;
	int rc = VC_OK;

	if (r->size == quantised && (p->phase == VC_PHASE_FORWARD || p->phase == VC_PHASE_BACKWARD)) {
		uint64_t second = 0; /* the current layer's weight in 16 bit, for the product */
		for (size_t i = 0; i < r->trainables; i++)
			if (r->trainable[i] > second && r->trainable[i] < r->largest)
				second = r->trainable[i];
		rc = vc_resize_add(r, e, second / c->element * 2, true, err);
	}
	if (p->phase != VC_PHASE_FORWARD || p->iteration || p->micro)
		return rc;
	for (size_t i = 0; rc == VC_OK && i < r->trainables; i++) {
		uint64_t values = r->trainable[i] / c->element, side = (uint64_t)sqrt((double)values);

		if (values < MATRIX || (debt += c->targets) < 1)
			continue;
		debt -= 1;
		uint64_t bytes = 4 * vc_lora_values(side, side, c->rank);
		for (int copy = 0; rc == VC_OK && copy < 4; copy++)
			rc = vc_resize_add(r, e, bytes, false, err);
		r->total += bytes / 4;
	}
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
	struct vc_resize r = { .config = s->config, .size = size_of, .enter = enter, .leave = leave };

	if (s->type == &vc_transform_qlora)
		r.size = quantised;
	int rc = vc_resize_run(&r, s, w, err);
	if (rc == VC_OK)
		vc_meta_note(s->meta, "%s: %.2f million trainable values; activations are an upper bound",
			     s->type->name, (double)r.total / 1e6);
	return rc;
}

static long lora_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_lora = {
	.name = "lora", .summary = "low-rank adapters instead of full training",
	.params = lora_params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = lora_open, .next = lora_next, .close = vc_whole_close,
};

const struct vc_source_type vc_transform_qlora = {
	.name = "qlora", .summary = "low-rank adapters over 4-bit weights",
	.params = qlora_params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = lora_open, .next = lora_next, .close = vc_whole_close,
};
