/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - steps of a made-up program through the pluggable interface, on the null GPU's runtime.
 * Checks with an account of its own that no block lies on another one.
 *
 * client SEED: another seed leaves requests out, and adds some that no plan knows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum { LIVE = 512, STEPS = 30, BLOCKS = 40 };

static struct { char *p; size_t n; int stream; } live[LIVE];
static size_t count, overlaps, refused;
static uint64_t seed;

static uint64_t dice(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

static void *(*get)(ssize_t, int, void *);
static void (*put)(void *, ssize_t, int, void *);

static void take(size_t n, int stream)
{
	char *p = get((ssize_t)n, 0, (void *)(uintptr_t)stream);

	refused += !p;
	for (size_t i = 0; i < count; i++)
		overlaps += p < live[i].p + live[i].n && live[i].p < p + n;
	live[count].p = p;
	live[count].stream = stream;
	live[count++].n = n;
}

static void give(size_t i)
{
	put(live[i].p, (ssize_t)live[i].n, 0, (void *)(uintptr_t)live[i].stream);
	live[i] = live[--count];
}

int main(int argc, char **argv)
{
	uint64_t other = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	*(void **)&get = dlsym(RTLD_DEFAULT, "vramcast_malloc");
	*(void **)&put = dlsym(RTLD_DEFAULT, "vramcast_free");
	if (!get || !put)
		return 2;
	for (int k = 0; k < 20; k++)
		take(1000000, 0);
	for (int step = 0; step < STEPS; step++) {
		size_t stay = count;

		for (int k = 0; k < BLOCKS; k++) {
			seed = (uint64_t)k; /* every step is the same */
			if (other && (uint64_t)(step * BLOCKS + k) * 31 % 97 < other)
				continue;
			take(1000 + dice(5000000), k % 7 == 0 ? 0x1234000 : 0);
			if (other && k % 11 == 3 && step % 3 == 1)
				take(777 + dice(3000000), 0);
			if (k % 3 == 2)
				give(stay + dice(count - stay));
		}
		while (count > stay)
			give(count - 1);
	}
	printf("overlaps %zu, refused %zu\n", overlaps, refused);
	return overlaps || refused;
}
