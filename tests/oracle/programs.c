/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - see programs.h: the parts that families share, inference and random walks. Training
 * is in training_programs.c. */
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/vec.h"

const char *const family_name[FAMILIES] = { "train", "infer", "walk", "phases" };

/* ---- chance ---- */

uint64_t dice_next(struct dice *d)
{
	uint64_t x = d->state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t dice_below(struct dice *d, uint64_t sides)
{
	return (dice_next(d) >> 1) % sides;
}

uint64_t dice_in(struct dice *d, uint64_t low, uint64_t high)
{
	return low + dice_below(d, high - low + 1);
}

bool dice_percent(struct dice *d, unsigned percent)
{
	return dice_below(d, 100) < percent;
}

uint64_t dice_log(struct dice *d, uint64_t low, uint64_t high)
{
	unsigned doublings = 0;
	uint64_t v;

	while (high >> (doublings + 1) >= low)
		doublings++;
	v = low << dice_below(d, doublings + 1);
	v += dice_below(d, v);
	return v > high ? high : v;
}

/* ---- operations ---- */

static void no_memory(void)
{
	fprintf(stderr, "programs: no memory\n");
	exit(2);
}

void program_do(struct program *p, char kind, uint32_t id, uint64_t size, unsigned stream)
{
	if (!vc_vec_room(p->op, p->op_cap, p->ops + 1))
		no_memory();
	p->op[p->ops++] = (struct program_op){ kind, (uint8_t)stream, p->site, id, size };
}

uint32_t program_alloc(struct program *p, uint64_t size, unsigned stream)
{
	uint32_t id = (uint32_t)++p->ids;

	if (!vc_vec_room(p->size, p->id_cap, p->ids + 1))
		no_memory();
	size = size ? size : 4;
	p->size[id] = size;
	p->live += size;
	p->peak = p->live > p->peak ? p->live : p->peak;
	program_do(p, 'm', id, size, stream);
	return id;
}

void program_drop(struct program *p, uint32_t id)
{
	if (!id || !p->size[id])
		return;
	p->live -= p->size[id];
	p->size[id] = 0;
	program_do(p, 'f', id, 0, 0);
}

void ids_push(struct ids *v, uint32_t id)
{
	if (!vc_vec_room(v->at, v->cap, v->n + 1))
		no_memory();
	v->at[v->n++] = id;
}

void ids_drop(struct program *p, struct ids *v)
{
	while (v->n)
		program_drop(p, v->at[--v->n]);
}

void ids_free(struct ids *v)
{
	free(v->at);
	*v = (struct ids){ 0 };
}

/* ---- inference: weights, then requests whose keys and values grow ---- */

#define MOST_LAYERS 8

struct server {
	unsigned layers, grow;
	uint64_t token, hidden, vocab; /* bytes of one layer's keys of a token, ... */
};

struct answer { uint32_t kv[2 * MOST_LAYERS]; uint64_t room, length, end; };

static void server_weights(struct program *p, struct server *s, uint64_t bytes)
{
	uint64_t each = bytes / s->layers / 12;

	program_alloc(p, s->vocab / 4, 0);
	for (unsigned l = 0; l < s->layers; l++)
		for (unsigned k = 0; k < 6; k++) {
			static const unsigned share[] = { 0, 3, 1, 0, 4, 4 };

			p->site = (uint16_t)(10 + k);
			program_alloc(p, share[k] ? each * share[k] : s->hidden, 0);
		}
}

/* The rows of one layer move to a larger block; the old one goes afterwards, as with torch.cat. */
static void answer_grow(struct program *p, const struct server *s, struct answer *a)
{
	a->length++;
	if (a->length <= a->room)
		return;
	a->room = a->length + s->grow - 1;
	for (unsigned k = 0; k < 2 * s->layers; k++) {
		uint32_t larger;

		p->site = (uint16_t)(30 + k % 2);
		larger = program_alloc(p, a->room * s->token, 0);
		program_drop(p, a->kv[k]);
		a->kv[k] = larger;
	}
}

static void answer_pass(struct program *p, const struct server *s, uint64_t rows)
{
	uint32_t x, y;

	for (unsigned l = 0; l < s->layers; l++) {
		p->site = 40;
		x = program_alloc(p, rows * s->hidden, 0);
		p->site = 41;
		y = program_alloc(p, rows * s->hidden * 4, 0);
		program_drop(p, x);
		program_drop(p, y);
		if (rows == 1 && l > 1)
			break; /* one row is small: two layers of it show what all do */
	}
	p->site = 45;
	program_drop(p, program_alloc(p, s->vocab, 0));
}

static void answer_begin(struct program *p, const struct server *s, struct answer *a, uint64_t most)
{
	*a = (struct answer){ .length = dice_log(&p->dice, 16, most) };
	a->end = a->length + dice_in(&p->dice, 4, 48);
	a->room = a->length;
	program_do(p, 'k', 0, 0, 0);
	answer_pass(p, s, a->length);
	for (unsigned k = 0; k < 2 * s->layers; k++) {
		p->site = (uint16_t)(30 + k % 2);
		a->kv[k] = program_alloc(p, a->room * s->token, 0);
	}
}

static void answer_end(struct program *p, struct answer *a)
{
	for (unsigned k = 0; k < 2 * MOST_LAYERS; k++)
		program_drop(p, a->kv[k]);
	*a = (struct answer){ 0 };
}

void program_infer(struct program *p)
{
	static const unsigned growth[] = { 1, 1, 1, 16, 64, 256 };
	struct dice *d = &p->dice;
	uint64_t goal = dice_log(d, 300 * MIB, 9 * GIB), most = dice_log(d, 128, 1024);
	size_t wanted = dice_log(d, 300, 3500);
	size_t at_once = dice_percent(d, 50) ? 1 : dice_in(d, 2, 4);
	bool trims = dice_percent(d, 12);
	struct server s = { .layers = (unsigned)dice_in(d, 2, MOST_LAYERS),
			    .grow = growth[dice_below(d, 6)], .vocab = dice_log(d, 4000, 600000) };
	struct answer a[4] = { 0 };

	s.hidden = 256 * dice_in(d, 1, 32);
	s.token = goal / 2 / (2 * s.layers * (most + 48) * at_once) / 256 * 256 + 256;
	server_weights(p, &s, goal / 2);
	while (p->ids < wanted) {
		struct answer *one = &a[dice_below(d, at_once)];

		if (one->length && one->length >= one->end) {
			answer_end(p, one);
			if (trims && dice_percent(d, 30))
				program_do(p, 'e', 0, 0, 0);
		} else if (!one->length) {
			answer_begin(p, &s, one, most);
		} else {
			answer_pass(p, &s, 1);
			answer_grow(p, &s, one);
		}
	}
}

/* ---- a walk around so many bytes in use ---- */

static uint64_t walk_size(struct dice *d, const uint64_t *usual, uint64_t goal)
{
	if (dice_percent(d, 45))
		return usual[dice_below(d, 12)];
	if (dice_percent(d, 55))
		return dice_log(d, 16, MIB);
	return dice_log(d, MIB, goal / 8);
}

void program_walk(struct program *p)
{
	struct dice *d = &p->dice;
	uint64_t goal = dice_log(d, 200 * MIB, 10 * GIB), usual[12];
	size_t wanted = dice_log(d, 300, 4000);
	unsigned young = (unsigned)dice_below(d, 90), trims = dice_percent(d, 12) ? 1 : 0;
	struct ids live = { 0 };

	for (unsigned k = 0; k < 12; k++)
		usual[k] = dice_log(d, 512, goal / 10);
	while (p->ids < wanted) {
		bool full = p->live > goal / 100 * dice_in(d, 60, 110);

		p->site = (uint16_t)(60 + dice_below(d, 8));
		if (!full || !live.n) {
			ids_push(&live, program_alloc(p, walk_size(d, usual, goal), 0));
		} else {
			bool new = dice_percent(d, young);
			size_t k = live.n - 1 - dice_below(d, new ? (live.n + 7) / 8 : live.n);

			program_drop(p, live.at[k]);
			live.at[k] = live.at[--live.n];
		}
		if (trims && !dice_below(d, 400))
			program_do(p, 'e', 0, 0, 0);
	}
	ids_free(&live);
}

void program_make(struct program *p, enum family f, uint64_t seed)
{
	*p = (struct program){ .dice = { seed * 0x2545f4914f6cdd1dull + f } };
	if (f == FAMILY_TRAIN || f == FAMILY_PHASES)
		program_train(p, f == FAMILY_PHASES);
	else if (f == FAMILY_INFER)
		program_infer(p);
	else
		program_walk(p);
}

void program_free(struct program *p)
{
	free(p->op);
	free(p->size);
	*p = (struct program){ 0 };
}
