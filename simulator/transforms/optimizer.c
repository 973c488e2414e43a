/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c - what-if: another optimizer. Its states replace the recorded ones, its temporaries
 * the large blocks of the recorded optimizer phases. Shapes are not recorded; Adafactor's
 * states follow those of simulator/rewrite/shapes.h. */

#include "simulator/anatomy/reduction.h"
#include "simulator/anatomy/formulas.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/resize.h"
#include "simulator/rewrite/shapes.h"

enum step { AS_USUAL, FOREACH, FUSED, LOOP };
enum { SMALL = 4096 };

struct config { uint64_t to, step, element, block; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "to", VC_P_ENUM, AT(to), "adamw", "the optimizer", VC_OPTIMIZERS },
	{ "step", VC_P_ENUM, AT(step), "usual",
	  "temporaries of step(): all tensors at once, none, one", "usual,foreach,fused,loop" },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the parameters", NULL },
	{ "block", VC_P_UINT, AT(block), "256", "values per scale of 8-bit states", NULL },
	VC_PARAM_END };

static int optimizer_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (c->element != 2 && c->element != 4)
		return vc_fail(err, VC_EUSAGE, "optimizer: element is 2 or 4 bytes");
	return c->block ? VC_OK : vc_fail(err, VC_EUSAGE, "optimizer: block starts at 1");
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	if (b->category == VC_CAT_STATE)
		return 0;
	return b->category == VC_CAT_OPTIMIZER_TEMP && b->size >= SMALL ? 0 : b->size;
}

/* foreach is PyTorch's default on CUDA but for Adafactor; those, 8-bit ones, Lion and Muon work
 * tensor by tensor. */
static enum step temporaries(const struct config *c)
{
	if (c->step != AS_USUAL)
		return (enum step)c->step;
	switch ((enum vc_optimizer)c->to) {
	case VC_OPT_ADAM8BIT: case VC_OPT_LION8BIT:
		return FUSED;
	case VC_OPT_ADAFACTOR:
	case VC_OPT_ADAFACTOR_HF:
	case VC_OPT_LION:
	case VC_OPT_MUON:
	case VC_OPT_LAMB: return LOOP;
	default: return FOREACH;
	}
}

/* Not in PyTorch: their states are made when the step comes by the tensor, not all at first. */
static bool lazy(const struct config *c)
{
	return c->to == VC_OPT_ADAFACTOR_HF || c->to == VC_OPT_LION || c->to == VC_OPT_ADAM8BIT ||
	       c->to == VC_OPT_LION8BIT || c->to == VC_OPT_LAMB;
}

/* What the step of one tensor asks for, each as large as the tensor: `a` a block, `A` gives it
 * back; `n` a new one that takes a name which stays until the next tensor's does, `o` the older
 * one of that name goes, `N` the new one does; `S` scratch of a sum over rows, `R` and `C` means
 * over one side. From the sources of PyTorch 2.11
 * (_single_tensor_*), transformers 4.57 and lion-pytorch 0.2. */
static const char *one_tensor(enum vc_optimizer to, bool matrix)
{
	switch (to) {
	case VC_OPT_SGD: case VC_OPT_MOMENTUM:
		return "";
	case VC_OPT_RMSPROP: case VC_OPT_ADAGRAD:
		return "no";
	case VC_OPT_ADAFACTOR: return matrix ? "RSCno" : "anoA";
	case VC_OPT_ADAFACTOR_HF: return matrix ? "anAoRSCnoaA" : "anAonoaA";
	case VC_OPT_ADAM: case VC_OPT_ADAMW: case VC_OPT_AMSGRAD:
		return "anAo";
	case VC_OPT_LION: return "anAN";
	default: return "aA";
	}
}

/* The same for lists of all tensors. */
static const char *all_tensors(enum vc_optimizer to)
{
	switch (to) {
	case VC_OPT_SGD: case VC_OPT_MOMENTUM:
		return "";
	case VC_OPT_ADAGRAD: return "anAa";
	default: return "a";
	}
}

static struct vc_tensor_shape shape(const struct vc_resize *r, size_t i)
{
	const struct config *c = r->config;

	return vc_shapes_guess(r->trainable, r->trainables, i, (unsigned)c->element,
			       r->convolutional);
}

static bool factored(enum vc_optimizer to)
{
	return to == VC_OPT_ADAFACTOR || to == VC_OPT_ADAFACTOR_HF;
}

/* Bytes of the means over the columns of each row (or of the others), in float; 0: of a vector. */
static uint64_t means(struct vc_tensor_shape t, bool rows)
{
	return t.cols > 1 || t.times ? 4 * (rows ? t.rows : t.cols) * (t.times ? t.times : 1) : 0;
}

static int add_state(struct vc_resize *r, const struct vc_event *e, size_t i, struct vc_error *err)
{
	const struct config *c = r->config;
	enum vc_optimizer to = (enum vc_optimizer)c->to;
	uint64_t bytes = vc_optimizer_state(to, shape(r, i), (unsigned)c->element,
					    (unsigned)c->block),
		 n = r->trainable[i];
	bool narrow = to == VC_OPT_ADAM8BIT || to == VC_OPT_LION8BIT;
	uint64_t part[4] = { bytes }, values = n / c->element;

	if (to == VC_OPT_ADAM8BIT || bytes == 2 * n)
		part[0] = part[1] = bytes / 2;
	if (bytes == 3 * n)
		part[0] = part[1] = part[2] = n;
	if (factored(to) && means(shape(r, i), true)) {
		part[0] = means(shape(r, i), true);
		part[1] = bytes - part[0];
	}
	if (narrow && part[0] < 4 * values && part[0] > values) { /* values, then their scales */
		part[2] = part[0] - values;
		part[3] = part[1] ? part[2] : 0;
		part[0] = values;
		part[1] = part[1] ? values : 0;
	}
	for (int k = 0; k < 4; k++)
		VC_TRY(vc_resize_add(r, e, part[k], false, err));
	r->total += bytes;
	return VC_OK;
}

/* Scratch of the sum over the rows of a matrix: on the card that was recorded, else an A100. */
static uint64_t scratch(const struct vc_resize *r, struct vc_tensor_shape t)
{
	const struct vc_device_info *d =
		r->meta ? vc_meta_device_known(r->meta, r->c.w->device) : NULL;
	struct vc_reduction_card card = {
		d && d->sms > 0 ? (uint32_t)d->sms : 108,
		vc_threads_per_sm(d && d->cc_major ? d->cc_major : 8, d ? d->cc_minor : 0) };
	uint64_t partial, semaphores, rows = t.rows, cols = t.cols;

	if (cols > 16 * rows) { /* words times width: no product has such a shape */
		rows = t.cols;
		cols = t.rows;
	}
	return !t.times && cols > 1 && vc_reduction(cols, rows, &card, &partial, &semaphores) ?
		       partial :
		       0;
}

struct loop { uint64_t a, new, old; };

/* Asked for, used and given back. */
static int passing(struct vc_resize *r, const struct vc_event *e, uint64_t size,
		   struct vc_error *err)
{
	uint64_t id;
	int rc = size ? vc_clone_alloc(&r->c, e, size, &id, err) : VC_OK;

	return rc == VC_OK && size ? vc_clone_free(&r->c, e, id, err) : rc;
}

static int run_step(struct vc_resize *r, struct loop *l, const char *steps, size_t i,
		    const struct vc_event *e, struct vc_error *err)
{
	struct vc_tensor_shape t = shape(r, i);
	uint64_t size = r->trainable[i];

	for (; *steps; steps++) {

		switch (*steps) {
		case 'a':
			VC_TRY(vc_clone_alloc(&r->c, e, size, &l->a, err));
			break;
		case 'n':
			VC_TRY(vc_clone_alloc(&r->c, e, size, &l->new, err));
			break;
		case 'A':
			VC_TRY(vc_clone_free(&r->c, e, l->a, err));
			l->a = 0;
			break;
		case 'N':
			VC_TRY(vc_clone_free(&r->c, e, l->new, err));
			l->new = 0;
			break;
		case 'o':
			VC_TRY(vc_clone_free(&r->c, e, l->old, err));
			l->old = l->new;
			l->new = 0;
			break;
		case 'R': case 'C':
			VC_TRY(passing(r, e, means(t, *steps == 'R'), err));
			break;
		default:
			VC_TRY(passing(r, e, scratch(r, t), err));
		}
	}
	return VC_OK;
}

/* The parameters are in the order of the model, which the backward pass comes by from its end. */
static int one_by_one(struct vc_resize *r, const struct vc_event *e, bool states, bool steps,
		      struct vc_error *err)
{
	const struct config *c = r->config;
	struct loop l = { 0 };

	for (size_t i = r->trainables; i-- > 0;) {
		struct vc_tensor_shape t = shape(r, i);
		bool matrix = t.cols > 1 || t.times;

		if (states)
			VC_TRY(add_state(r, e, i, err));
		if (steps)
			VC_TRY(run_step(r, &l, one_tensor(c->to, matrix), i, e, err));
	}
	return vc_clone_free(&r->c, e, l.old, err);
}

static int add_list(struct vc_resize *r, const struct vc_event *e, uint64_t *id,
		    struct vc_error *err)
{
	for (size_t i = r->trainables; i-- > 0;)
		VC_TRY(vc_clone_alloc(&r->c, e, r->trainable[i], &id[i], err));
	return VC_OK;
}

static int free_list(struct vc_resize *r, const struct vc_event *e, uint64_t *id,
		     struct vc_error *err)
{
	for (size_t i = r->trainables; i-- > 0;) {
		VC_TRY(vc_clone_free(&r->c, e, id[i], err));
		id[i] = 0;
	}
	return VC_OK;
}

static int all_at_once(struct vc_resize *r, const struct vc_event *e, struct vc_error *err)
{
	const struct config *c = r->config;
	uint64_t *id = calloc(2 * r->trainables + 2, sizeof(*id)), *a = id,
		 *n = id ? id + r->trainables : NULL;
	int rc = id ? VC_OK : vc_nomem(err, "temporaries of an optimizer");

	for (size_t i = r->trainables; rc == VC_OK && c->to == VC_OPT_ADAFACTOR && i-- > 0;) {
		struct loop l = { 0 };
		rc = run_step(r, &l, "RSC", i, e, err);
	}
	for (const char *k = all_tensors((enum vc_optimizer)c->to); rc == VC_OK && *k; k++)
		rc = *k == 'A' ? free_list(r, e, a, err) : add_list(r, e, *k == 'a' ? a : n, err);
	if (rc == VC_OK)
		rc = free_list(r, e, a, err);
	if (rc == VC_OK)
		rc = free_list(r, e, n, err);
	free(id);
	return rc;
}

static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	enum step how = temporaries(c);
	bool first = !p->iteration, together = lazy(c) && how == LOOP;

	if (c->to == VC_OPT_ADAGRAD && first && p->phase == VC_PHASE_FORWARD && !p->micro)
		return one_by_one(r, e, true, false, err); /* made with the optimizer itself */
	if (p->phase != VC_PHASE_OPTIMIZER)
		return VC_OK;
	if (first && !together && c->to != VC_OPT_ADAGRAD)
		VC_TRY(one_by_one(r, e, true, false, err));
	if (how == LOOP)
		VC_TRY(one_by_one(r, e, first && together, true, err));
	if (how == FOREACH)
		VC_TRY(all_at_once(r, e, err));
	return VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = {
		.config = s->config, .size = size_of, .enter = enter, .meta = s->meta };

	return vc_resize_run(&r, s, w, err);
}

/* How often the kernels of a step read or write a tensor of a parameter's size: the operations of
 * _multi_tensor_* and _fused_* of PyTorch 2.11, counted. */
static void step(const void *config, struct vc_step_change *c)
{
	const struct config *o = config;
	bool fused = temporaries(o) == FUSED;

	switch ((enum vc_optimizer)o->to) {
	case VC_OPT_SGD: c->accesses = 3; break;
	case VC_OPT_MOMENTUM: c->accesses = fused ? 5 : 8; break;
	case VC_OPT_ADAM: c->accesses = fused ? 7 : 18; break;
	case VC_OPT_ADAMW: c->accesses = fused ? 7 : 20; break;
	case VC_OPT_AMSGRAD: c->accesses = fused ? 9 : 24; break;
	case VC_OPT_RMSPROP: c->accesses = 13; break;
	case VC_OPT_ADAGRAD: c->accesses = fused ? 5 : 12; break;
	case VC_OPT_ADAM8BIT: c->accesses = 4; break;
	default: c->accesses = NAN;
	}
}

static const char *unmade(const void *config)
{
	const struct config *c = config;

	return c->to == VC_OPT_LAMB || c->to == VC_OPT_MUON ?
		       "PyTorch has no optimizer of that name for all parameters" : NULL;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_STEP, .kind = "code", .estimate = true,
	  .needs = VC_TRAIT_TRAINS | VC_TRAIT_MOMENTS,
	  .text = "a fused optimizer step, without temporaries", .params = "to=adamw,step=fused",
	  .paste = "optimizer = torch.optim.AdamW(model.parameters(), fused=True)" },
	{ .cost = VC_COST_STATES, .kind = "code", .estimate = true,
	  .needs = VC_TRAIT_TRAINS | VC_TRAIT_STATES,
	  .text = "an optimizer with 8-bit states", .params = "to=adam8bit",
	  .paste = "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())" },
	{ .cost = VC_COST_STATES, .kind = "code", .estimate = true,
	  .needs = VC_TRAIT_TRAINS | VC_TRAIT_STATES,
	  .text = "an optimizer with factored states", .params = "to=adafactor",
	  .paste = "optimizer = torch.optim.Adafactor(model.parameters())" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_optimizer = {
	.name = "optimizer",
	.summary = "another optimizer: its states and the temporaries of its step",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 3, .up = 4 },
	.step = step, .remedies = remedies, .unmade = unmade, .open = optimizer_open,
	VC_WHOLE(rewrite),
};
