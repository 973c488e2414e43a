/* SPDX-License-Identifier: Apache-2.0 */
/* lora.c - what-if: low-rank adapters instead of full training. Frozen tensors lose gradient and
 * state; each adapted one gains rank * (in + out) values with gradient and two states. What was
 * kept for the gradient of a frozen tensor alone is not kept: it is what the backward pass gives
 * back by itself right behind that gradient (the input of a layer, the values a norm scales); an
 * adapted layer keeps its input for the adapter. Shapes are guessed (simulator/rewrite/shapes.h).
 */

#include "common/torch_names.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/resize.h"
#include "simulator/rewrite/shapes.h"

enum bound { BEST, LOW, HIGH };
enum { MATRIX = 16384, USED = 3, NEAR = 8 }; /* USED: allocations until what is not kept was used */
struct config { uint64_t rank, element, bound; double targets; bool twice; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param lora_params[] = {
	{ "rank", VC_P_UINT, AT(rank), "8", "rank of the adapters", NULL },
	{ "targets", VC_P_REAL, AT(targets), "1", "share of the matrices that is adapted, 0 to 1",
	  NULL },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the recorded parameters",
	  NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "activations that frozen layers keep",
	  "best,low,high" },
	VC_PARAM_END };
static const struct vc_param qlora_params[] = {
	{ "rank", VC_P_UINT, AT(rank), "8", "rank of the adapters", NULL },
	{ "targets", VC_P_REAL, AT(targets), "1", "share of the matrices that is adapted, 0 to 1",
	  NULL },
	{ "element", VC_P_UINT, AT(element), "4", "bytes per value of the recorded parameters",
	  NULL },
	{ "double", VC_P_BOOL, AT(twice), "true", "double quantisation of the scales", NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "activations that frozen layers keep",
	  "best,low,high" },
	VC_PARAM_END };

static int lora_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (!c->rank || !(c->targets >= 0 && c->targets <= 1) ||
	    (c->element != 2 && c->element != 4))
		return vc_fail(err, VC_EUSAGE,
			       "%s: rank starts at 1, targets is 0 to 1, element 2 or 4",
			       s->type->name);
	return VC_OK;
}

static uint64_t size_of(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct vc_anatomy *a = &r->c.a;

	/* nor is there a sum over rows where no bias has a gradient */
	if (b->category == VC_CAT_BACKWARD_TEMP &&
	    (vc_shapes_partial_sums(a, b->born) ||
	     (b->born && vc_shapes_partial_sums(a, b->born - 1))))
		return 0;
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

static bool is_matrix(const struct vc_resize *r, size_t i)
{
	return i < r->trainables &&
	       r->trainable[i] / ((const struct config *)r->config)->element >= MATRIX;
}

/* torch.nn.MultiheadAttention multiplies by itself: an adapter of its matrices would not be
 * asked. In the backward pass the one behind the attention comes first, then the three before it
 * as one. */
static bool is_of_attention(const struct vc_resize *r, size_t i)
{
	size_t k = i + 1, back = i;

	if (!r->own_attention)
		return false;
	while (k < r->trainables && !is_matrix(r, k))
		k++;
	while (back > 0 && !is_matrix(r, --back))
		;
	return (k < r->trainables && r->trainable[k] == 3 * r->trainable[i]) ||
	       (back < i && is_matrix(r, back) && r->trainable[i] == 3 * r->trainable[back]);
}

/* Has gradient i, in order of the backward pass, an adapter? The first and the last matrix, head
 * and embedding, have none (PEFT's all-linear leaves the output layer out); of the others the
 * share asked for, evenly. */
static bool adapted(const struct vc_resize *r, size_t i, double *debt)
{
	const struct config *c = r->config;
	size_t first = 0, last = r->trainables;

	while (first < i && !is_matrix(r, first))
		first++;
	while (last > i + 1 && !is_matrix(r, last - 1))
		last--;
	if (!is_matrix(r, i) || is_of_attention(r, i) || (first < i) != (last > i + 1))
		return false;
	*debt += c->targets;
	if (*debt < 1)
		return false;
	*debt -= 1;
	return true;
}

struct back {
	const struct vc_block_life *gradient, *saved;
	size_t open, gone, may_be_open;
	bool adapted, input_first;  /* the gradient of the input came before that of the tensor */
};

static uint32_t site_of(const struct vc_resize *r, size_t block)
{
	return vc_frame_caller(r->meta, r->c.w->in[r->c.a.block[block].event].site);
}

/* Does a layer keep block x, and not a function? Adapters are of layers; convolutions keep what
 * they get whether they are trained or not. What is asked for next says it. */
static bool goes_into_layer(const struct vc_resize *r, size_t x)
{
	const struct vc_meta *m = r->meta;
	uint32_t own = site_of(r, x), site = own;

	for (size_t i = x; m && site && site < m->frames && i < r->c.a.n && i < x + NEAR; i++) {
		site = site_of(r, i);
		if (vc_frame_roles(m, site, VC_NAME_PRODUCT | VC_NAME_CONV1D))
			return true;
		if (site != own && r->c.a.block[i].size > 512)
			return !site || site >= m->frames;
	}
	return true;
}

/* An operation is over: what it gave back alone, behind the gradient of a tensor that is frozen.
 * What is asked for in between and still there is the result of another operation. */
static void over(struct vc_resize *r, struct back *k)
{
	if (k->gone == 1 && k->gradient && (!k->adapted || !goes_into_layer(r, k->saved->born)))
		r->lives[k->saved->born] = USED;
	if (k->gone)
		k->gradient = NULL;
	k->gone = 0;
}

static void backward(struct vc_resize *r, const struct vc_span *p)
{
	const struct config *c = r->config;
	struct back k = { 0 };
	double debt = 0;
	size_t n = 0;

	for (size_t i = p->first; i < p->end; i++) {
		const struct vc_event *e = &r->c.w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ?
						vc_clone_block(&r->c, e->id) : NULL;

		if (b && e->kind == VC_EV_FREE && b->event < p->first &&
		    b->category == VC_CAT_ACTIVATION) {
			k.saved = b;
			k.gone += k.open > k.may_be_open ? 2 : 1;
		} else if (b && e->kind == VC_EV_FREE && k.gradient &&
			   b->event > k.gradient->event) {
			k.open--;
		}
		if (!b || e->kind != VC_EV_ALLOC) {
			k.input_first = k.input_first && !b;
			continue;
		}
		over(r, &k);
		if (b->category == VC_CAT_GRADIENT) {
			/* a bias beside an adapted matrix does not count */
			bool has = adapted(r, n++, &debt) && c->bound != LOW;
			k.adapted = has || (k.gradient && k.adapted);
			if (!k.gradient)
				k.may_be_open = !k.input_first;
			k.gradient = b;
			k.open = 0;
		} else {
			k.open++;
			k.input_first = true;
		}
	}
	over(r, &k);
}

static bool is_layer(const struct vc_resize *r, size_t i)
{
	return r->c.a.block[i].size > 512 &&
	       vc_frame_roles(r->meta, site_of(r, i), VC_NAME_LINEAR | VC_NAME_CONV1D);
}

/* What layer i takes: what came last before it and the layers one behind the other. */
static size_t input_of(const struct vc_resize *r, size_t i)
{
	const struct vc_block_life *b = r->c.a.block;
	size_t x = i;

	while (x > 0 && (is_layer(r, x) || b[x].size < b[i].size / 64 || b[x].size <= 512))
		x--;
	return x;
}

/* PEFT's adapters are in float: each takes a float copy of what goes into its layer, and keeps
 * it, where the model is in 16 bit. The last layer of the pass, the head, has no adapter. */
static void float_copies(struct vc_resize *r, const struct vc_span *p)
{
	const struct config *c = r->config;
	const struct vc_block_life *b = r->c.a.block;
	size_t last = 0;
	double debt = 0;

	for (size_t i = 0; i < r->c.a.n && b[i].event < p->end; i++)
		if (b[i].event >= p->first && is_layer(r, i))
			last = i;
	for (size_t i = 1; i < last; i++) {
		if (b[i].event < p->first || !is_layer(r, i))
			continue;
		size_t x = input_of(r, i);

		/* gate, activation, this one and a product of both: it takes what the gate took */
		if (x && is_layer(r, x - 1) && b[x].size == b[i].size &&
		    b[x - 1].size == b[i].size && !is_layer(r, i + 1) &&
		    b[i + 1].size == b[i].size)
			x = input_of(r, x - 1);
		debt += c->targets;
		if (debt < 1 || b[x].event < p->first)
			continue;
		debt -= 1;
		r->extra[x].beside += 2 * b[x].size;
		r->extra[x].pieces++;
		r->extra[x].until = UINT32_MAX;
	}
}

static bool calls_layer(const struct vc_resize *r, size_t i)
{
	return r->c.a.block[i].category != VC_CAT_WORKSPACE && is_layer(r, i);
}

/* Layers that span p calls. */
static size_t calls(const struct vc_resize *r, const struct vc_span *p)
{
	size_t end = vc_anatomy_block_at(&r->c.a, p->end), n = 0;

	for (size_t i = vc_anatomy_block_at(&r->c.a, p->first); i < end; i++)
		n += calls_layer(r, i);
	return n;
}

/* Which blocks are what an adapted layer says, in a stretch in which the model runs. The last layer
 * of each pass, the head, has no adapter. */
static void find_sums(struct vc_resize *r, const struct vc_span *p, size_t each)
{
	const struct config *c = r->config;
	size_t n = calls(r, p), seen = 0, end = vc_anatomy_block_at(&r->c.a, p->end);
	double debt = 0;

	for (size_t i = vc_anatomy_block_at(&r->c.a, p->first); n && each && i < end; i++) {
		if (!calls_layer(r, i))
			continue;
		seen++;
		if (n % each ? seen == n : seen % each == 0)
			continue;
		debt += c->targets;
		if (debt < 1)
			continue;
		debt -= 1;
		r->wide[i] = 1;
	}
}

/* Behind what an adapted layer says: what the adapter says, that times a factor, and the sum, which
 * takes the place of all of them. Three blocks of one size are there at a time. */
static int add_sum(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		   struct vc_error *err)
{
	uint64_t up, times, sum, *own = &r->c.alias[b->id];

	if (!r->wide || !r->wide[b->born] || !*own)
		return VC_OK;
	VC_TRY(vc_clone_alloc(&r->c, e, b->size, &up, err));
	VC_TRY(vc_clone_alloc(&r->c, e, b->size, &times, err));
	VC_TRY(vc_clone_free(&r->c, e, up, err));
	VC_TRY(vc_clone_alloc(&r->c, e, b->size, &sum, err));
	VC_TRY(vc_clone_free(&r->c, e, times, err));
	VC_TRY(vc_clone_free(&r->c, e, *own, err));
	*own = sum;
	return VC_OK;
}

/* In training and in what runs beside it as often as a training pass calls layers. */
static void find_all_sums(struct vc_resize *r)
{
	const struct vc_anatomy *a = &r->c.a;
	size_t each = 0;

	for (size_t k = 0; k < a->spans && !each; k++)
		if (a->span[k].phase == VC_PHASE_FORWARD)
			each = calls(r, &a->span[k]);
	for (size_t k = 0; k < a->spans; k++)
		if (a->span[k].phase == VC_PHASE_FORWARD || a->span[k].phase == VC_PHASE_OTHER)
			find_sums(r, &a->span[k], each);
}

static int not_kept(struct vc_resize *r, struct vc_error *err)
{
	const struct config *c = r->config;

	for (uint32_t i = 1; r->meta && i < r->meta->frames && !r->own_attention; i++)
		r->own_attention = r->meta->frame[i].function < r->meta->strings &&
				   !strcmp(r->meta->string[r->meta->frame[i].function],
					   "multi_head_attention_forward");
	r->lives = calloc(r->c.a.n + 1, sizeof(*r->lives));
	VC_HAVE(r->lives, "what frozen layers do not keep", err);
	for (size_t k = 0; k < r->c.a.spans && c->bound != HIGH; k++)
		if (r->c.a.span[k].phase == VC_PHASE_BACKWARD)
			backward(r, &r->c.a.span[k]);
	r->wide = calloc(r->c.a.n + 1, 1);
	VC_HAVE(r->wide, "what adapted layers say", err);
	if (r->meta && r->meta->frames > 1)
		find_all_sums(r);
	if (c->element != 2 || c->bound == LOW)
		return VC_OK;
	r->extra = calloc(r->c.a.n + 1, sizeof(*r->extra));
	for (size_t k = 0; r->extra && k < r->c.a.spans; k++)
		if (r->c.a.span[k].phase == VC_PHASE_FORWARD)
			float_copies(r, &r->c.a.span[k]);
	return r->extra ? VC_OK : vc_nomem(err, "copies that adapters take");
}

/* Adapters in float, with gradient and two states, from the start of the first iteration on. */
static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct config *c = r->config;
	double debt = 0;

	if (r->size == quantised &&
	    (p->phase == VC_PHASE_FORWARD || p->phase == VC_PHASE_BACKWARD)) {
		uint64_t second = 0; /* the current layer's weight in 16 bit, for the product */
		for (size_t i = 0; i < r->trainables; i++)
			if (r->trainable[i] > second && r->trainable[i] < r->largest)
				second = r->trainable[i];
		VC_TRY(vc_resize_add(r, e, second / c->element * 2, true, err));
	}
	if (p->phase != VC_PHASE_FORWARD || p->iteration || p->micro)
		return VC_OK;
	for (size_t i = 0; i < r->trainables; i++) {
		struct vc_tensor_shape t = vc_shapes_guess(r->trainable, r->trainables, i,
							   (unsigned)c->element, false);

		if (!adapted(r, i, &debt))
			continue;
		uint64_t bytes = 4 * vc_lora_values(t.rows, t.cols, c->rank);
		for (int copy = 0; copy < 4; copy++)
			VC_TRY(vc_resize_add(r, e, bytes, false, err));
		r->total += bytes / 4;
	}
	return VC_OK;
}

static int leave(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	return vc_resize_release(r, e, err);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_resize r = { .config = s->config, .size = size_of, .enter = enter, .leave = leave,
			       .made = add_sum, .prepare = not_kept, .meta = s->meta };

	if (s->type->params == qlora_params)
		r.size = quantised;
	int rc = vc_resize_run(&r, s, w, err);
	if (rc == VC_OK)
		vc_meta_note(s->meta,
			     "%s: %.2f million trainable values; dropout of the adapters (none "
			     "here) would keep a copy of each input%s",
			     s->type->name, (double)r.total / 1e6,
			     s->type->params == qlora_params ? "; held against one real run" : "");
	return rc;
}

static void step(const void *config, struct vc_step_change *c)
{
	c->frozen = true;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_MODEL, .kind = "code", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .avoid = VC_TRAIT_CONVOLUTIONAL, .text = "low-rank adapters instead of full training",
	  .paste = "model = peft.get_peft_model(model, peft.LoraConfig(r=8, "
		   "target_modules='all-linear'))" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_lora = {
	.name = "lora", .summary = "low-rank adapters instead of full training",
	.params = lora_params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 20, .up = 12, .layout = true },
	.step = step, .remedies = remedies, .open = lora_open,
	VC_WHOLE(rewrite),
};

const struct vc_source_type vc_transform_qlora = {
	.name = "qlora", .summary = "low-rank adapters over 4-bit weights",
	.params = qlora_params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 30, .up = 20, .layout = true },
	.open = lora_open,
	VC_WHOLE(rewrite),
};
