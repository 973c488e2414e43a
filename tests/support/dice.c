/* SPDX-License-Identifier: Apache-2.0 */
/* dice.c - see dice.h */
#include "tests/support/dice.h"

#include <stdio.h>
#include <stdlib.h>

void play_die(const char *what, const char *which)
{
	fprintf(stderr, "play: %s: %s\n", what, which);
	exit(2);
}

static uint64_t state;

void play_seed(uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	play_dice(2);
}

uint64_t play_dice(uint64_t sides)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 2685821657736338717ull >> 11) % sides;
}

uint64_t play_pick(const uint64_t *of, uint64_t n)
{
	return of[play_dice(n)];
}
