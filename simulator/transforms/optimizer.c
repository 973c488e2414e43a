/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c - what-if: another optimizer. Its states replace the recorded ones, its temporaries
 * the large blocks of the recorded optimizer phases. Shapes are not recorded; Adafactor's
 * states follow those of simulator/transforms/shapes.h. */
#include "simulator/transforms/resize.h"
#include "simulator/transforms/shapes.h"

enum step { AS_USUAL, FOREACH, FUSED, LOOP };
enum { SMALL = 4096 };

struct config { uint64_t to, step, element, block; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "to", VC_P_ENUM, AT(to), "adamw", "the optimizer", VC_OPTIMIZERS },
	{ "step", VC_P_ENUM, AT(step), "usual", "temporaries of step(): all tensors at once, none, one",
	  "usual,foreach,fused,loop" },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the parameters", NULL },
	{ "block", VC_P_UINT, AT(block), "256", "values per scale of 8-bit states", NULL },
	VC_PARAM_END
};

static int optimizer_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (c->element != 2 && c->element != 4)
		return vc_fail(err, VC_EUSAGE, "optimizer: element is 2 or 4 bytes");
	return c->block ? VC_OK : vc_fail(err, VC_EUSAGE, "optimizer: block starts at 1");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	(void)r;
	if (b->category == VC_CAT_STATE)
		return 0;
	return b->category == VC_CAT_OPTIMIZER_TEMP && b->size >= SMALL ? 0 : b->size;
}

/* foreach is PyTorch's default on CUDA; Adafactor, 8-bit, Lion and Muon work tensor by tensor. */
static enum step temporaries(const struct config *c)
{
	if (c->step != AS_USUAL)
		return (enum step)c->step;
	switch ((enum vc_optimizer)c->to) {
	case VC_OPT_ADAM8BIT:
		return FUSED;
	case VC_OPT_ADAFACTOR: case VC_OPT_LION: case VC_OPT_MUON: case VC_OPT_LAMB:
		return LOOP;
	default:
		return FOREACH;
	}
}

static int add_states(struct vc_resize *r, const struct vc_event *e, struct vc_error *err)
{
	const struct config *c = r->config;
	int rc = VC_OK;

	for (size_t i = 0; rc == VC_OK && i < r->trainables; i++) {
		struct vc_tensor_shape t = vc_shapes_guess(r->trainable, r->trainables, i, (unsigned)c->element,
							   r->convolutional);
		uint64_t bytes = vc_optimizer_state((enum vc_optimizer)c->to, t, (unsigned)c->element,
						    (unsigned)c->block);
		uint64_t half = bytes / 2, n = r->trainable[i];
		bool two = bytes == 2 * n || c->to == VC_OPT_ADAM8BIT;

		rc = vc_resize_add(r, e, two ? half : bytes, false, err);
		if (rc == VC_OK && two)
			rc = vc_resize_add(r, e, bytes - half, false, err);
		r->total += bytes;
	}
	return rc;
}

static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	int rc = VC_OK;

	if (p->phase != VC_PHASE_OPTIMIZER)
		return VC_OK;
	if (!p->iteration)
		rc = add_states(r, e, err);
	switch (temporaries(c)) {
	case FOREACH:
		for (size_t i = 0; rc == VC_OK && i < r->trainables; i++)
			rc = vc_resize_add(r, e, c->to == VC_OPT_SGD ? 0 : r->trainable[i], true, err);
		break;
	case LOOP:
		for (size_t i = 0; rc == VC_OK && i < r->trainables; i++) {
			rc = vc_resize_add(r, e, r->trainable[i], true, err);
			if (rc == VC_OK)
				rc = vc_resize_release(r, e, err);
		}
		break;
	case FUSED: case AS_USUAL:
		break;
	}
	return rc == VC_OK ? vc_resize_release(r, e, err) : rc;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = { .config = s->config, .size = size_of, .enter = enter };

	return vc_resize_run(&r, s, w, err);
}

static long optimizer_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_optimizer = {
	.name = "optimizer", .summary = "another optimizer: its states and the temporaries of its step",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = optimizer_open, .next = optimizer_next, .close = vc_whole_close,
};
