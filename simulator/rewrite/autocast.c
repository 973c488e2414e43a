/* SPDX-License-Identifier: Apache-2.0 */
/* autocast.c - types of blocks under autocast or in pure 16 bit.
 *
 * Lists of torch.amp (aten/src/ATen/autocast_mode.h): products of matrices and convolutions are
 * made in 16 bit of copies of what they get; norms of layers and groups, losses, softmax and
 * powers in float of copies of what they get; everything else in the widest type it gets. In pure
 * 16 bit norms that are written out (RMS) and the softmax of Transformers work on copies in
 * float. Always as they were: masks of dropout, statistics of norms and attention (float), places
 * of maxima, partial sums of a reduction (float; Reduce.cuh). */
#include "common/torch_names.h"
#include "simulator/rewrite/autocast.h"
#include "common/vec.h"
#include "simulator/rewrite/shapes.h"

enum op { UNKNOWN, PRODUCT, ATTENTION, PLAIN, NORM, FLOAT, LOSS, COPIED, ENTROPY, SOFTMAX, POOL };
enum { SMALL = 512, NEAR = 3, BACK = 64, POWERS = 8, TINY = 16, SAME_NORM = 8,
       FAR = 2048 };

struct work {
	struct vc_resize *r;
	const struct vc_anatomy *a;
	const struct vc_meta *m;
	uint8_t *op;            /* enum op of each block, ... */
	uint32_t *site;         /* ... and the frame by which that is known */
	uint8_t *fixed;         /* keeps its bytes whatever its operation is */
	uint64_t *norm; size_t norms; /* sizes that norms give, ascending */
	bool autocast, transformers, evaluation, float_losses;
	enum vc_doubt doubt;
};

static uint32_t site_of(const struct work *w, size_t i)
{
	return w->site[i];
}

static uint64_t bytes(const struct work *w, size_t i)
{
	return w->a->block[i].size;
}

/* By the innermost frame; Transformers computes losses in float whatever comes in. */
static enum op op_at(const struct work *w, uint32_t site, bool *float_loss)
{
	static const struct { uint32_t name; enum op op; } ops[] = {
		{ VC_NAME_ENTROPY, ENTROPY }, { VC_NAME_SOFTMAX, SOFTMAX }, { VC_NAME_LOSS, LOSS },
		{ VC_NAME_EMBEDDING, FLOAT }, { VC_NAME_NORM, NORM },       { VC_NAME_POOL, POOL },
		{ VC_NAME_ATTENTION, ATTENTION },
		{ VC_NAME_PRODUCT | VC_NAME_CONV1D | VC_NAME_PROJECTION, PRODUCT },
		{ VC_NAME_REPEAT, PLAIN } };
	const uint32_t nn = VC_NAME_NN | VC_NAME_TRANSFORMER;

	for (uint32_t at = site; at && at < w->m->frames; at = w->m->frame[at].parent)
		if (vc_frame_roles(w->m, at, VC_NAME_LOSS_UTILS)) {
			*float_loss = true;
			return vc_frame_roles(w->m, site, VC_NAME_ENTROPY) ? COPIED : LOSS;
		}
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (vc_frame_roles(w->m, site, ops[i].name))
			return ops[i].op;
	return vc_frame_roles(w->m, site, nn) == VC_NAME_NN ? PLAIN : UNKNOWN;
}

static bool kept(const struct work *w, size_t i)
{
	return w->a->block[i].category == VC_CAT_ACTIVATION;
}

/* ---- what never changes ---- */

/* Blocks of one call besides its value: a mask (a byte for four), statistics, places (eight for
 * four). */
static void fix_seconds(struct work *w, size_t i)
{
	uint32_t site = site_of(w, i);

	for (size_t d = 1; site && d <= NEAR && d <= i; d++) {
		if (site_of(w, i - d) != site)
			break;
		if (bytes(w, i) * 4 <= bytes(w, i - d) ||
		    (w->op[i] == POOL && bytes(w, i) == 2 * bytes(w, i - d)))
			w->fixed[i] = 1;
		/* attention of one call: its value, and a sum for each row of scores */
		if (w->op[i - d] == UNKNOWN && bytes(w, i) * TINY <= bytes(w, i - d) &&
		    bytes(w, i) > SMALL && d == 1 && bytes(w, i - d) % bytes(w, i) == 0 &&
		    kept(w, i) && kept(w, i - 1))
			w->op[i - d] = ATTENTION;
	}
}

static struct vc_extra *extra(struct work *w, size_t i)
{
	return &w->r->extra[i];
}

/* Block i is asked for in the other type, and becomes what it is kept in when block `at` is
 * wanted. */
static void turns(struct work *w, size_t i, size_t at, uint64_t first)
{
	if (!extra(w, i)->first && bytes(w, i) > SMALL)
		*extra(w, i) = (struct vc_extra){.first = first,
						 .turn = (uint32_t)at,
						 .beside = extra(w, i)->beside,
						 .until = extra(w, i)->until };
}

static void beside(struct work *w, size_t i, uint64_t more, uint32_t until)
{
	extra(w, i)->beside += more;
	extra(w, i)->until = until;
}

/* ---- norms that are written out ---- */

static bool same_function(const struct work *w, size_t i, size_t k)
{
	uint32_t x = site_of(w, i), y = site_of(w, k);

	return x && y && w->m->frame[x].file == w->m->frame[y].file &&
	       w->m->frame[x].function == w->m->frame[y].function;
}

/* x.pow(2), its mean, a little added, rsqrt, x times that [, the weight times that]: the number
 * of the block that holds the normed values, 0: no such norm begins with block i. */
static size_t written_norm(const struct work *w, size_t i, size_t end)
{
	uint64_t size = bytes(w, i);
	size_t k = i + 1, few = 0;

	if (w->op[i] != UNKNOWN || size <= SMALL)
		return 0;
	for (; k < end && bytes(w, k) * TINY <= size && same_function(w, i, k); k++)
		few += size % bytes(w, k) == 0 && bytes(w, k) == bytes(w, i + 1);
	return few >= 2 && few <= SAME_NORM && few == k - i - 1 && k < end && bytes(w, k) == size &&
	       same_function(w, i, k) ? k : 0;
}

static void find_norms(struct work *w)
{
	for (size_t i = 0; i < w->a->n; i++)
		if (bytes(w, i) > SMALL &&
		    ((w->op[i] == NORM && !w->fixed[i]) || written_norm(w, i, w->a->n)))
			w->norm[w->norms++] = bytes(w, i);
	vc_sort_u64(w->norm, w->norms);
}

static bool is_norm_size(const struct work *w, uint64_t s)
{
	return vc_find_u64(w->norm, w->norms, s);
}

/* ---- one forward pass ---- */

/* The block of that size (0: of any) that came last before i. */
static size_t latest(const struct work *w, size_t i, size_t from, uint64_t size, size_t back)
{
	for (size_t k = i; k-- > from && back--;)
		if (bytes(w, k) > SMALL && !w->fixed[k] && (!size || bytes(w, k) == size))
			return k;
	return SIZE_MAX;
}

static bool keeps_its_result(const struct work *w, size_t i)
{
	return vc_frame_roles(w->m, site_of(w, i), VC_NAME_KEEPS) != 0;
}

/* A product takes what came last in a copy in 16 bit; several products in a row take one each.
 * What an operation gave goes then, unless somebody else keeps it. */
static void cast_down(struct work *w, size_t i, size_t from)
{
	bool first = true;
	size_t x = latest(w, i, from, 0, BACK);

	for (; x != SIZE_MAX && w->op[x] == PRODUCT; first = false)
		x = latest(w, x, from, 0, BACK);
	if (x == SIZE_MAX || !w->r->wide[x])
		return;
	if (first && w->op[x] != UNKNOWN && !keeps_its_result(w, x)) {
		turns(w, x, i, bytes(w, x));
		w->r->halved[x] = 1;
	} else if (kept(w, x)) {
		beside(w, x, bytes(w, x) / 2, UINT32_MAX);
	}
}

/* Attention takes all three in 16 bit: what is kept since the products before it. */
static void cast_three(struct work *w, size_t i, size_t from)
{
	for (size_t x = i; x-- > from && w->op[x] != PRODUCT;)
		if (w->r->wide[x] && kept(w, x) && bytes(w, x) > SMALL && !w->fixed[x]) {
			turns(w, x, i, bytes(w, x));
			w->r->halved[x] = 1;
		}
}

/* What works in float takes what came last of its size in a float copy, and keeps that. */
static void cast_up(struct work *w, size_t i, size_t from)
{
	size_t x = latest(w, i, from, bytes(w, i), BACK);

	if (x == SIZE_MAX || w->r->wide[x])
		return;
	w->r->wide[x] = 1;
	turns(w, x, i, bytes(w, x) / 2);
}

/* Two blocks that are there, one behind the other in block i: torch.cat, which takes the widest of
 * their types. */
static bool is_wide_join(const struct work *w, size_t i, size_t from)
{
	const struct vc_block_life *b = w->a->block;
	size_t x = latest(w, i, from, 0, BACK);

	while (x != SIZE_MAX && b[x].died <= i) /* what the operation before needed for itself */
		x = latest(w, x, from, 0, BACK);
	if (x == SIZE_MAX || bytes(w, x) >= bytes(w, i))
		return false;
	for (size_t y = x; y-- > from && x - y < FAR;)
		if (bytes(w, y) == bytes(w, i) - bytes(w, x) && b[y].died > i && !w->fixed[y])
			return w->r->wide[x] || (w->r->wide[y] && !w->r->halved[y]);
	return false;
}

static bool is_wide_before(const struct work *w, size_t i, size_t from)
{
	size_t part = latest(w, i, from, 0, BACK);

	if (w->op[i] == UNKNOWN && is_wide_join(w, i, from))
		return true;
	/* a part of what a product has just given: a gate's half, a query, a key or a value */
	if (part != SIZE_MAX && w->op[part] == PRODUCT &&
	    (bytes(w, part) == 2 * bytes(w, i) || bytes(w, part) == 3 * bytes(w, i)))
		return w->r->wide[part];
	size_t x = latest(w, i, from, bytes(w, i), 24);

	if (x == SIZE_MAX)
		x = latest(w, i, from, 0, BACK);
	return x == SIZE_MAX ? true : w->r->wide[x] != 0;
}

/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))): eight blocks of one line of an activation, of which all
 * but the first, half of x, follow a power and are in float; so is the copy of x that it keeps.
 */
static size_t power(struct work *w, size_t i, size_t from, size_t end)
{
	uint32_t site = site_of(w, i);
	size_t n = 0;

	if (!vc_frame_roles(w->m, site, VC_NAME_ACTIVATIONS))
		return 0;
	for (size_t k = i; k < end && site_of(w, k) == site && bytes(w, k) == bytes(w, i); k++)
		n++;
	if (n != POWERS)
		return 0;
	cast_up(w, i, from);
	for (size_t k = i; k < i + n; k++) {
		w->op[k] = PLAIN;
		w->r->wide[k] = k > i;
	}
	return n - 1;
}

/* The sum with the residual stream, which is in float: what a norm gets, and what comes before
 * all. */
static bool is_stream(const struct work *w, size_t i, size_t from, size_t end)
{
	size_t k = i + 1;

	while (k < end && (bytes(w, k) <= SMALL || w->fixed[k]))
		k++;
	if (k < end && bytes(w, k) == bytes(w, i) && (w->op[k] == NORM || written_norm(w, k, end)))
		return is_norm_size(w, bytes(w, i));
	for (k = from; k < i && w->op[k] != PRODUCT && w->op[k] != ATTENTION; k++)
		;
	return k == i;
}

/* Returns how many blocks behind it were settled too. */
static size_t autocast_block(struct work *w, size_t i, size_t from, size_t end)
{
	uint8_t *wide = &w->r->wide[i];
	size_t k;

	switch ((enum op)w->op[i]) {
	case PRODUCT:
		cast_down(w, i, from);
		return 0;
	case ATTENTION:
		cast_three(w, i, from);
		return 0;
	case NORM:
		cast_up(w, i, from);
		*wide = 1;
		return 0;
	case ENTROPY: case LOSS: case COPIED: case SOFTMAX: case FLOAT:
		*wide = 1;
		return 0;
	case UNKNOWN:
		if ((k = power(w, i, from, end)) != 0)
			return k;
		if ((k = written_norm(w, i, end)) != 0 && k + 1 < end) {
			cast_up(w, i, from);
			for (size_t j = i; j <= k + 1; j++)
				w->r->wide[j] = 1;
			w->op[k + 1] = NORM;
			return k + 1 - i;
		}
		*wide = w->doubt ? w->doubt == VC_DOUBT_FLOAT :
				   is_stream(w, i, from, end) || is_wide_before(w, i, from);
		return 0;
	default:
		*wide = is_wide_before(w, i, from) &&
			!(w->transformers && i > from && w->op[i - 1] == SOFTMAX);
		return 0;
	}
}

/* Softmax of Transformers: in float, and a copy in 16 bit of it for the product behind it. */
static void sixteen_block(struct work *w, size_t i, size_t end)
{
	size_t k = written_norm(w, i, end);

	if (w->op[i] == LOSS || w->op[i] == COPIED)
		w->r->wide[i] = w->r->float_loss;
	if (w->op[i] == UNKNOWN || w->op[i] == ENTROPY || w->op[i] == SOFTMAX)
		w->r->wide[i] = w->doubt == VC_DOUBT_FLOAT;
	if (w->doubt == VC_DOUBT_HALF)
		return;
	if (w->op[i] == SOFTMAX && w->transformers) {
		w->r->wide[i] = 1;
		if (i + 1 < end && bytes(w, i + 1) != bytes(w, i))
			beside(w, i, bytes(w, i) / 2, UINT32_MAX);
	}
	if (k && w->transformers) {
		w->r->wide[i] = 1;
		for (size_t j = i + 1; j < k; j++)
			w->fixed[j] = 1;
		beside(w, k, bytes(w, k), UINT32_MAX); /* the float copy of what comes in */
		turns(w, k, k + 1, bytes(w, k));
	}
}

/* cross_entropy under autocast: log_softmax in the type of the scores, nll_loss of a float copy,
 * which goes when its gradient is there; that is in float, the next one is not. */
static void entropy(struct work *w, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		if (w->op[i] != ENTROPY || bytes(w, i) <= SMALL || w->fixed[i])
			continue;
		size_t k = end, seen = 0;
		for (; k < w->a->n && k < end + BACK && seen < 2; k++)
			seen += bytes(w, k) == bytes(w, i);
		w->r->wide[i] = 0;
		beside(w, i, bytes(w, i), seen == 2 ? (uint32_t)k - 1 : UINT32_MAX);
		for (k = end, seen = 0; k < w->a->n && k < end + BACK && !seen; k++)
			if (bytes(w, k) == bytes(w, i))
				seen = w->r->wide[k] = 1;
	}
}

/* Losses of which the program itself wants floats: a float copy of the scores stays with them,
 * and the gradient that comes back is that of the copy. */
static void wide_losses(struct work *w, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		if (w->op[i] == ENTROPY && bytes(w, i) > SMALL && !w->fixed[i]) {
			size_t k = end;

			w->r->wide[i] = 1;
			beside(w, i, bytes(w, i), UINT32_MAX);
			while (k < w->a->n && k < end + BACK && bytes(w, k) != bytes(w, i))
				k++;
			if (k < w->a->n && k < end + BACK)
				w->r->wide[k] = 1;
		}
}

/* Losses of Transformers: a float copy of the scores lives as long as those do, where they are made
 * in 16 bit. */
static void copied_scores(struct work *w, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		size_t x = i;

		if (w->op[i] != COPIED || bytes(w, i) <= SMALL || w->fixed[i])
			continue;
		while (x > from && i - x < BACK && w->op[x] != PRODUCT)
			x--;
		if (w->op[x] == PRODUCT && !w->r->wide[x] && bytes(w, x) >= bytes(w, i) &&
		    bytes(w, x) < 2 * bytes(w, i))
			beside(w, x, bytes(w, x), UINT32_MAX);
	}
}

static void blocks_of(const struct vc_anatomy *a, const struct vc_span *p, size_t *from,
		      size_t *end)
{
	*from = vc_anatomy_block_at(a, p->first);
	*end = vc_anatomy_block_at(a, p->end);
}

static void forward(struct work *w, const struct vc_span *p)
{
	size_t from, end;

	blocks_of(w->a, p, &from, &end);
	for (size_t i = from; i < end; i++)
		if (bytes(w, i) > SMALL && !w->fixed[i]) {
			if (w->autocast)
				i += autocast_block(w, i, from, end);
			else
				sixteen_block(w, i, end);
		}
	copied_scores(w, from, end);
	if (w->float_losses)
		wide_losses(w, from, end);
	else if (w->autocast)
		entropy(w, from, end);
}

/* What runs beside the iterations: a pass of the model has the types that it has in training, if
 * it runs under autocast too. */
static void beside_training(struct work *w, const struct vc_span *p)
{
	size_t from, end;

	if (vc_types_evaluates(w->r, p) && w->evaluation) {
		forward(w, p);
		return;
	}
	blocks_of(w->a, p, &from, &end);
	for (size_t i = from; w->autocast && i < end; i++)
		w->fixed[i] = 1;
}

static bool is_of_transformers(const struct vc_meta *m)
{
	for (uint32_t i = 1; i < m->frames; i++)
		if (vc_frame_roles(m, i, VC_NAME_MODELS))
			return true;
	return false;
}

/* Gradients of what a loss in float got are in float too. */
static void losses(struct work *w)
{
	w->norms = 0; /* the sizes of losses from here on */
	for (size_t i = 0; i < w->a->n; i++)
		if ((w->op[i] == LOSS || w->op[i] == COPIED) && w->r->wide[i] &&
		    bytes(w, i) > SMALL)
			w->norm[w->norms++] = bytes(w, i);
	vc_sort_u64(w->norm, w->norms);
	for (size_t i = 0; i < w->a->n; i++)
		if (w->a->span[w->a->block[i].span].phase == VC_PHASE_BACKWARD &&
		    is_norm_size(w, bytes(w, i)))
			w->r->wide[i] = 1;
}

/* Names are compared once a call site, not once a block. */
static bool name_ops(struct work *w)
{
	size_t frames = (w->m ? w->m->frames : 0) + 1;
	uint32_t *caller = calloc(frames, sizeof(*caller));
	uint8_t *op = calloc(frames, 1); /* and one: 0 is not known yet */

	for (size_t i = 0; caller && op && i < w->a->n; i++) {
		uint32_t site = w->r->c.w->in[w->a->block[i].event].site;

		site = site < frames ? site : 0;
		if (!op[site]) {
			caller[site] = vc_frame_caller(w->m, site);
			op[site] = (uint8_t)(1 + op_at(w, caller[site], &w->r->float_loss));
		}
		w->site[i] = caller[site];
		w->op[i] = op[site] - 1;
	}
	bool ok = caller && op;
	VC_FREE(caller, op);
	return ok;
}

static bool find(struct work *w)
{
	if (!name_ops(w))
		return false;
	for (size_t i = 0; i < w->a->n; i++) {
		fix_seconds(w, i);
		if (vc_shapes_partial_sums(w->a, i))
			w->fixed[i] = w->fixed[i + 1] = 1;
	}
	find_norms(w);
	for (size_t k = 0; k < w->a->spans; k++)
		if (w->a->span[k].phase == VC_PHASE_FORWARD)
			forward(w, &w->a->span[k]);
		else if (w->a->span[k].phase == VC_PHASE_OTHER ||
			 w->a->span[k].phase == VC_PHASE_INIT)
			beside_training(w, &w->a->span[k]);
	losses(w);
	for (size_t i = 0; i < w->a->n; i++)
		w->r->wide[i] = (w->r->wide[i] && !w->r->halved[i]) || w->fixed[i];
	return true;
}

bool vc_types_evaluates(const struct vc_resize *r, const struct vc_span *p)
{
	const struct vc_anatomy *a = &r->c.a;
	size_t from, end;

	blocks_of(a, p, &from, &end);
	for (size_t i = from; r->meta && i < end; i++) {
		uint32_t site = vc_frame_caller(r->meta, r->c.w->in[a->block[i].event].site);

		if (a->block[i].category == VC_CAT_OTHER_TEMP &&
		    vc_frame_roles(r->meta, site, VC_NAME_PRODUCT | VC_NAME_CONV1D))
			return true;
	}
	return false;
}

int vc_types_find(struct vc_resize *r, const struct vc_types *t, struct vc_error *err)
{
	size_t n = r->c.a.n + 1;
	struct work w = { .r = r, .a = &r->c.a, .m = r->meta, .op = calloc(n, 1),
			  .site = calloc(n, sizeof(*w.site)),
			  .fixed = calloc(n, 1), .norm = calloc(n, sizeof(*w.norm)),
			  .autocast = t->autocast, .doubt = t->doubt,
			  .evaluation = t->evaluation, .float_losses = t->float_losses,
			  .transformers = is_of_transformers(r->meta) };

	r->wide = calloc(n, 1);
	r->halved = calloc(n, 1);
	r->extra = calloc(n, sizeof(*r->extra));
	bool ok = w.op && w.site && w.fixed && w.norm && r->wide && r->halved && r->extra &&
		  find(&w);
	VC_FREE(w.op, w.site, w.fixed, w.norm);
	return ok ? VC_OK : vc_nomem(err, "the types of blocks");
}
