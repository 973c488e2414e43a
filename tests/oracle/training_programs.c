/* SPDX-License-Identifier: Apache-2.0 */
/* training_programs.c - programs that train: weights first, then steps of forward, backward and
 * optimizer. Layers repeat themselves; what a layer keeps for the backward pass goes in reverse. */
#include "programs.h"

#include <string.h>

enum { MOST_ACTS = 10, MOST_WEIGHTS = 12, MOST_STAGES = 3, SIDE = 16, OTHER_SIDE = 32 };

struct act { uint64_t quarters; bool kept; unsigned lag; };

struct net {
	unsigned layers, stages, acts, weights, states;
	struct act act[MOST_ACTS];
	uint64_t weight[MOST_STAGES][MOST_WEIGHTS]; /* bytes */
	uint64_t width[MOST_STAGES];                /* bytes of one token's activation */
	uint64_t tokens, vocab, logit;              /* logit: bytes of one token's logits */
	uint64_t embedding, workspace;
	/* habits of the loop */
	bool to_none, late_none, checkpoint, foreach, varying, prefetch, reduces, trims, scalars;
	unsigned micro, evaluates;
};

struct run {
	struct program *p;
	const struct net *n;
	struct ids weight, grad, state, kept, passing, losses;
	uint32_t input, workspace;
};

static uint64_t root(uint64_t v)
{
	uint64_t r = 1;

	while ((r + 1) * (r + 1) <= v && r < 16)
		r++;
	if (r < 16)
		return r;
	for (r = v / 2; r > v / r; )
		r = (r + v / r) / 2;
	return r;
}

static unsigned stage_of(const struct net *n, unsigned layer)
{
	return layer * n->stages / n->layers;
}

/* ---- what the net looks like ---- */

static void draw_acts(struct net *n, struct dice *d)
{
	static const uint64_t quarters[] = { 4, 4, 4, 12, 16, 16, 8, 2, 1, 5, 11 };
	bool any = false;

	n->acts = (unsigned)dice_in(d, 4, MOST_ACTS);
	for (unsigned k = 0; k < n->acts; k++) {
		n->act[k] = (struct act){ quarters[dice_below(d, 11)], dice_percent(d, 60),
					  (unsigned)dice_in(d, 1, 3) };
		any |= n->act[k].kept;
	}
	n->act[n->acts - 1].kept |= !any;
}

/* Weights of a layer: `large` bytes in all, in a few matrices with biases and norms between. */
static void draw_weights(struct net *n, struct dice *d, uint64_t large, uint64_t hidden)
{
	uint64_t share[MOST_WEIGHTS], sum = 0;

	n->weights = (unsigned)dice_in(d, 2, MOST_WEIGHTS);
	for (unsigned k = 0; k < n->weights; k++) {
		share[k] = k % 2 ? 0 : dice_in(d, 1, 4);
		sum += share[k];
	}
	for (unsigned s = 0; s < n->stages; s++)
		for (unsigned k = 0; k < n->weights; k++) {
			uint64_t w = (large / sum * share[k]) >> (2 * (n->stages - 1 - s));

			w = w > 200 * MIB ? 200 * MIB : w / 128 * 128 + 128;
			n->weight[s][k] = share[k] ? w : hidden << s;
		}
}

static void draw_habits(struct net *n, struct dice *d)
{
	static const unsigned states[] = { 2, 2, 2, 2, 1, 0 };

	n->states = states[dice_below(d, 6)];
	n->to_none = dice_percent(d, 75);
	n->late_none = dice_percent(d, 40);
	n->checkpoint = dice_percent(d, 15);
	n->foreach = dice_percent(d, 40);
	n->varying = dice_percent(d, 35);
	n->prefetch = dice_percent(d, 4);
	n->reduces = dice_percent(d, 4);
	n->trims = dice_percent(d, 8);
	n->scalars = dice_percent(d, 60);
	n->micro = dice_percent(d, 20) ? (unsigned)dice_in(d, 2, 4) : 1;
	n->evaluates = dice_percent(d, 20) ? (unsigned)dice_in(d, 2, 4) : 0;
	n->workspace = dice_percent(d, 50) ? 8519680 : dice_percent(d, 30) ? 33562624 : 0;
}

static void draw_net(struct net *n, struct dice *d, unsigned steps, size_t wanted)
{
	uint64_t goal = dice_log(d, 250 * MIB, 14 * GIB), share = dice_in(d, 8, 55);
	uint64_t hidden, per_step, each, kept = 0;

	*n = (struct net){ .stages = 1 };
	if (dice_percent(d, 35))
		n->stages = (unsigned)dice_in(d, 2, MOST_STAGES);
	draw_habits(n, d);
	draw_acts(n, d);
	each = dice_percent(d, 50) ? 2 : 4;
	per_step = wanted / (steps * n->micro + 1);
	n->layers = (unsigned)(per_step / (2 * n->acts + 8));
	n->layers = n->layers < 2 ? 2 : n->layers > 40 ? 40 : n->layers;
	hidden = root(goal / 100 * share / (2 + n->states) / n->layers / 12 / each) / 64 * 64 + 64;
	draw_weights(n, d, hidden * hidden * 12 * each, hidden * each);
	for (unsigned k = 0; k < n->acts; k++)
		kept += n->act[k].kept ? n->act[k].quarters : 0;
	n->width[0] = hidden * each;
	for (unsigned s = 1; s < n->stages; s++)
		n->width[s] = n->width[s - 1] / 2;
	n->tokens = goal / 100 * (100 - share) / n->layers * 4 / kept / n->width[0];
	n->tokens = n->tokens / 8 * 8 + 8;
	n->logit = dice_log(d, 40, 200000) * each;
	while (n->logit * n->tokens > goal / 4)
		n->logit = n->logit / 2 + 2;
	n->embedding = n->logit / each * hidden * each;
	n->embedding = n->embedding > 200 * MIB ? 200 * MIB : n->embedding;
}

/* ---- forward and backward ---- */

static uint32_t ask(struct run *r, unsigned site, uint64_t bytes)
{
	r->p->site = (uint16_t)site;
	return program_alloc(r->p, bytes, 0);
}

/* A temporary goes when `lag` others came after it. */
static void pass(struct run *r, uint32_t id, unsigned lag)
{
	ids_push(&r->passing, id);
	while (r->passing.n > lag) {
		program_drop(r->p, r->passing.at[0]);
		memmove(r->passing.at, r->passing.at + 1, --r->passing.n * sizeof(*r->passing.at));
	}
}

static uint64_t act_bytes(const struct net *n, unsigned layer, unsigned k, uint64_t tokens)
{
	return tokens * n->width[stage_of(n, layer)] * n->act[k].quarters / 4;
}

static void layer_forward(struct run *r, unsigned layer, uint64_t tokens, bool keep)
{
	for (unsigned k = 0; k < r->n->acts; k++) {
		uint32_t id = ask(r, 100 + k, act_bytes(r->n, layer, k, tokens));

		if (r->n->workspace && !r->workspace)
			r->workspace = ask(r, 99, r->n->workspace);
		if (keep && r->n->act[k].kept)
			ids_push(&r->kept, id);
		else
			pass(r, id, r->n->act[k].lag);
	}
}

/* The gradient of what the layer returned comes in, that of what it was given goes out. */
static uint32_t layer_backward(struct run *r, unsigned layer, uint64_t tokens, uint32_t grad)
{
	const struct net *n = r->n;
	unsigned s = stage_of(n, layer), w = n->weights;

	for (unsigned k = n->acts; k-- > 0; ) {
		uint32_t next = ask(r, 200 + k, act_bytes(n, layer, k, tokens));

		if (k % 3 == 1)
			program_drop(r->p, ask(r, 220 + k, act_bytes(n, layer, k, tokens) / 2));
		if (n->act[k].kept)
			program_drop(r->p, r->kept.at[--r->kept.n]);
		program_drop(r->p, grad);
		grad = next;
		for (; w && w > k * n->weights / n->acts; w--) {
			uint32_t *g = &r->grad.at[1 + layer * n->weights + w - 1];
			uint32_t fresh = ask(r, 240 + w, n->weight[s][w - 1]);

			if (*g)
				program_drop(r->p, fresh);
			else
				*g = fresh;
		}
	}
	return grad;
}

static void forward(struct run *r, uint64_t tokens, bool train)
{
	for (unsigned l = 0; l < r->n->layers; l++) {
		if (train && r->n->checkpoint)
			ids_push(&r->kept, ask(r, 98, tokens * r->n->width[stage_of(r->n, l)]));
		layer_forward(r, l, tokens, train && !r->n->checkpoint);
	}
	ids_drop(r->p, &r->passing);
}

static void backward(struct run *r, uint64_t tokens, uint32_t grad)
{
	for (unsigned l = r->n->layers; l-- > 0; ) {
		if (r->n->checkpoint) {
			layer_forward(r, l, tokens, true);
			ids_drop(r->p, &r->passing);
		}
		grad = layer_backward(r, l, tokens, grad);
		if (r->n->checkpoint)
			program_drop(r->p, r->kept.at[--r->kept.n]);
		if (r->n->reduces && l % 3 == 0) { /* a bucket that another stream sums up */
			uint32_t bucket = ask(r, 95, r->n->weight[0][0]);

			program_do(r->p, 'r', bucket, 0, OTHER_SIDE);
			program_drop(r->p, bucket);
		}
	}
	if (!r->grad.at[0])
		r->grad.at[0] = ask(r, 96, r->n->embedding);
	program_drop(r->p, grad);
}

static void next_input(struct run *r, uint64_t tokens)
{
	uint32_t was = r->input;

	r->p->site = 90;
	r->input = program_alloc(r->p, tokens * 8, r->n->prefetch ? SIDE : 0);
	if (r->n->prefetch)
		program_do(r->p, 'r', r->input, 0, 0);
	program_drop(r->p, was);
}

static void micro_step(struct run *r, uint64_t tokens, bool train)
{
	uint32_t logits, high, probs, grad;

	next_input(r, tokens);
	forward(r, tokens, train);
	logits = ask(r, 91, tokens * r->n->logit);
	high = ask(r, 92, tokens * r->n->logit);
	if (r->n->scalars)
		ids_push(&r->losses, ask(r, 93, 4));
	if (!train) {
		program_drop(r->p, logits);
		program_drop(r->p, high);
		return;
	}
	probs = ask(r, 94, tokens * r->n->logit);
	program_drop(r->p, high);
	program_drop(r->p, logits);
	grad = ask(r, 97, tokens * r->n->width[r->n->stages - 1]);
	program_drop(r->p, probs);
	backward(r, tokens, grad);
}

/* ---- the loop ---- */

static void make_weights(struct run *r)
{
	const struct net *n = r->n;

	ids_push(&r->weight, ask(r, 1, n->embedding));
	ids_push(&r->grad, 0);
	for (unsigned l = 0; l < n->layers; l++)
		for (unsigned k = 0; k < n->weights; k++) {
			ids_push(&r->weight, ask(r, 2 + k, n->weight[stage_of(n, l)][k]));
			ids_push(&r->grad, 0);
		}
}

static uint64_t bytes_of(const struct run *r, size_t weight)
{
	return r->p->size[r->weight.at[weight]];
}

static void optimizer(struct run *r)
{
	struct ids temporary = { 0 };

	if (!r->state.n)
		for (size_t k = 0; k < r->weight.n; k++)
			for (unsigned s = 0; s < r->n->states; s++)
				ids_push(&r->state, ask(r, 300 + s, bytes_of(r, k)));
	for (size_t k = 0; r->n->states > 1 && k < r->weight.n; k++) {
		ids_push(&temporary, ask(r, 310, bytes_of(r, k)));
		if (!r->n->foreach)
			ids_drop(r->p, &temporary);
	}
	for (size_t k = 0; k < temporary.n; k++)
		program_drop(r->p, temporary.at[k]);
	ids_free(&temporary);
}

static void drop_grads(struct run *r)
{
	for (size_t k = 0; r->n->to_none && k < r->grad.n; k++) {
		program_drop(r->p, r->grad.at[k]);
		r->grad.at[k] = 0;
	}
}

static uint64_t some_tokens(struct run *r)
{
	uint64_t t = r->n->tokens;

	if (r->n->varying)
		t = t * dice_in(&r->p->dice, 30, 100) / 100;
	return t / 8 * 8 + 8;
}

static void train(struct run *r, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		program_do(r->p, 'k', 0, 0, 0);
		if (!r->n->late_none)
			drop_grads(r);
		for (unsigned m = 0; m < r->n->micro; m++)
			micro_step(r, some_tokens(r), true);
		optimizer(r);
		if (r->n->late_none)
			drop_grads(r);
		while (r->losses.n > 2)
			program_drop(r->p, r->losses.at[--r->losses.n]);
		if (r->n->evaluates && i % r->n->evaluates == r->n->evaluates - 1) {
			for (unsigned m = 0; m < 2; m++)
				micro_step(r, r->n->tokens / 16 * 8 + 8, false);
			if (r->n->trims)
				program_do(r->p, 'e', 0, 0, 0);
		} else if (r->n->trims && i % 3 == 2) {
			program_do(r->p, 'e', 0, 0, 0);
		}
	}
}

/* Training, then evaluation with larger batches, then training with other shapes. */
static void train_phases(struct run *r, struct net *n, unsigned steps)
{
	struct dice *d = &r->p->dice;
	unsigned first = steps / 2;
	uint64_t tokens = n->tokens;

	train(r, first);
	if (dice_percent(d, 30))
		program_do(r->p, 'e', 0, 0, 0);
	n->tokens = tokens * dice_in(d, 50, 300) / 100 / 8 * 8 + 8;
	for (unsigned k = 0; k < 3; k++)
		micro_step(r, n->tokens, false);
	if (dice_percent(d, 30))
		program_do(r->p, 'e', 0, 0, 0);
	n->tokens = tokens * dice_in(d, 40, 160) / 100 / 8 * 8 + 8;
	train(r, steps - first);
}

void program_train(struct program *p, bool phases)
{
	unsigned steps = (unsigned)dice_in(&p->dice, 3, phases ? 8 : 12);
	struct run r = { .p = p };
	struct net n;

	draw_net(&n, &p->dice, steps, dice_log(&p->dice, 300, 4000));
	r.n = &n;
	make_weights(&r);
	if (phases)
		train_phases(&r, &n, steps);
	else
		train(&r, steps);
	ids_free(&r.weight);
	ids_free(&r.grad);
	ids_free(&r.state);
	ids_free(&r.kept);
	ids_free(&r.passing);
	ids_free(&r.losses);
}
