/* SPDX-License-Identifier: Apache-2.0 */
/* training.c - see training.h */
#include "training.h"

#include <stdlib.h>

uint64_t training_dice(struct program *p, uint64_t sides)
{
	p->random ^= p->random >> 12;
	p->random ^= p->random << 25;
	p->random ^= p->random >> 27;
	return (p->random * 2685821657736338717ull >> 11) % sides;
}

void training_add(struct program *p, uint32_t slot, uint64_t size)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 4096;
		p->s = realloc(p->s, p->cap * sizeof(*p->s));
		if (!p->s)
			exit(2);
	}
	if (slot >= p->slots)
		p->slots = slot + 1;
	p->s[p->n++] = (struct step){ slot, 0, size };
}

void training(struct program *p, uint32_t layers, uint32_t steps)
{
	uint32_t weights = layers * 3, act = weights, tmp = act + layers * 2;

	p->random = 88172645463325252ull;
	for (uint32_t i = 0; i < weights; i++)
		training_add(p, i, i % 3 == 2 ? 4096 * (1 + i % 5) : (6ull << 20) * (1 + i % 4));
	for (uint32_t s = 0; s < steps; s++) {
		uint64_t scale = 80 + training_dice(p, 41);

		for (uint32_t l = 0; l < layers; l++) {
			training_add(p, act + 2 * l,
				     (6ull << 20) * scale / 100 + 512 * training_dice(p, 64));
			for (uint32_t k = 0; k < 3; k++)
				training_add(p, tmp + k,
					     (1 + training_dice(p, 8 << 20)) >> (4 * k));
			training_add(p, act + 2 * l + 1, 2048 + training_dice(p, 65536));
			for (uint32_t k = 0; k < 3; k++)
				training_add(p, tmp + k, 0);
		}
		for (uint32_t l = layers; l-- > 0; ) {
			training_add(p, tmp, (6ull << 20) * scale / 100);
			training_add(p, tmp + 1, 1 + training_dice(p, 1 << 20));
			training_add(p, act + 2 * l, 0);
			training_add(p, act + 2 * l + 1, 0);
			training_add(p, tmp + 1, 0);
			training_add(p, tmp, 0);
		}
	}
	for (uint32_t i = 0; i < weights; i++)
		training_add(p, i, 0);
}
