/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - one rank of a job that trains for long: rank STEPS PACE FOLDER. It holds blocks of sizes
 * of their own, gives some back and asks for them anew in each step, in an order by chance, and
 * keeps one more now and then. PyTorch's allocator would serve them from the same places as the
 * stand-in: each is a segment of its own. After PACE steps it rests for a millisecond. When all
 * ranks are through (files in FOLDER), the one with RANK=3 asks for too much. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/tracer/torch_standin/standin.h"

enum { SLOTS = 24, MOST = 64, LEAST = 20 << 20, UNIT = 2 << 20 };

int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);
__attribute__((weak)) void vramcast_step(void);

static void *ask(int slot)
{
	void *p = standin_allocate((size_t)LEAST + (size_t)slot * UNIT);

	if (!p)
		printf("slot %d is refused\n", slot);
	return p;
}

static uint64_t dice(uint64_t *seed, uint64_t sides)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
	return (*seed >> 33) % sides;
}

/* Some of the slots, all different. */
static void step(void **p, int slots, uint64_t *seed)
{
	int first = (int)dice(seed, (uint64_t)slots), n = 1 + (int)dice(seed, 3);

	for (int i = 0; i < n; i++)
		standin_free(p[(first + i) % slots]);
	for (int i = n; i-- > 0;)
		p[(first + i) % slots] = ask((first + i) % slots);
	if (vramcast_step)
		vramcast_step();
}

static void wait_for(const char *folder, int rank, int ranks)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/through.%d", folder, rank);
	f = fopen(path, "w");
	if (f)
		fclose(f);
	for (int i = 0; i < ranks; i++) {
		snprintf(path, sizeof(path), "%s/through.%d", folder, i);
		while (access(path, F_OK) < 0)
			usleep(1000);
	}
}

int main(int argc, char **argv)
{
	long steps = argc > 3 ? atol(argv[1]) : 0, pace = argc > 3 ? atol(argv[2]) : 1;
	int rank = atoi(getenv("RANK") ? getenv("RANK") : "0"), slots = SLOTS;
	int ranks = atoi(getenv("WORLD_SIZE") ? getenv("WORLD_SIZE") : "1");
	uint64_t seed = (uint64_t)rank + 1;
	void *p[MOST];

	if (!steps)
		return 2;
	_ZN3c104cuda28device_count_ensure_non_zeroEv();
	for (int i = 0; i < slots; i++)
		p[i] = ask(i);
	for (long i = 1; i <= steps; i++) {
		step(p, slots, &seed);
		if (slots < MOST && i % (steps / MOST + 1) == 0) {
			p[slots] = ask(slots);
			slots++;
		}
		if (i % pace == 0)
			usleep(1000);
	}
	wait_for(argv[3], rank, ranks);
	if (rank == 3 % ranks)
		standin_allocate(1ull << 40);
	usleep(500000); /* the others are sealed with it */
	return 0;
}
