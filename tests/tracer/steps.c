/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - steps WHAT N: a training loop of N steps as its allocator sees it, without any marks.
 * WHAT: fixed, lengths (others in each step), micro (four micro-batches), odd (every fourth step
 * logs), none (no order at all). */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

enum { LAYERS = 12, KEPT = 5, WEIGHTS = 24 };

static void *gradient[WEIGHTS], *state[2 * WEIGHTS];
static unsigned seed = 1;

static unsigned random_number(void)
{
	seed = seed * 1103515245 + 12345;
	return seed >> 16 & 0x7fff;
}

static void brief(size_t n)
{
	_ZN3c108free_cpuEPv(_ZN3c109alloc_cpuEm(n));
}

static void pass(size_t length)
{
	void *kept[LAYERS][KEPT], *batch = _ZN3c109alloc_cpuEm(length * 8), *out;

	for (int l = 0; l < LAYERS; l++)
		for (int k = 0; k < KEPT; k++) {
			kept[l][k] = _ZN3c109alloc_cpuEm(length * (size_t)(100 + k));
			if (k & 1)
				brief(length * 50);
		}
	out = _ZN3c109alloc_cpuEm(4);
	for (int l = LAYERS; l-- > 0;) {
		for (int w = 2 * l; w < 2 * l + 2; w++) {
			void *g = _ZN3c109alloc_cpuEm(4096);

			if (gradient[w])
				_ZN3c108free_cpuEPv(g);
			else
				gradient[w] = g;
		}
		for (int k = KEPT; k-- > 0;) {
			brief(length * 60);
			_ZN3c108free_cpuEPv(kept[l][k]);
		}
	}
	_ZN3c108free_cpuEPv(out);
	_ZN3c108free_cpuEPv(batch);
}

static void optimizer(void)
{
	for (int w = 0; w < WEIGHTS; w++) {
		if (!state[2 * w]) { /* in the first step */
			state[2 * w] = _ZN3c109alloc_cpuEm(4096);
			state[2 * w + 1] = _ZN3c109alloc_cpuEm(4096);
		}
		brief(4096);
		brief(4096);
	}
	for (int w = 0; w < WEIGHTS; w++) {
		_ZN3c108free_cpuEPv(gradient[w]);
		gradient[w] = NULL;
	}
}

static void disorder(int n)
{
	void *p[64] = { 0 };

	for (int i = 0; i < 400 * n; i++) {
		unsigned k = random_number() % 64;

		if (p[k])
			_ZN3c108free_cpuEPv(p[k]);
		p[k] = p[k] ? NULL : _ZN3c109alloc_cpuEm(random_number());
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "fixed";
	int n = argc > 2 ? atoi(argv[2]) : 20;
	bool micro = !strcmp(what, "micro");

	for (int w = 0; w < WEIGHTS; w++)
		_ZN3c109alloc_cpuEm(4096);
	if (!strcmp(what, "none"))
		disorder(n);
	for (int i = 0; i < n && strcmp(what, "none"); i++) {
		for (int m = 0; m < (micro ? 4 : 1); m++)
			pass(!strcmp(what, "lengths") ? 100 + random_number() % 1000 : 512);
		optimizer();
		for (int k = 0; k < 3 && !strcmp(what, "odd") && i % 4 == 3; k++)
			brief(64);
	}
	return 0;
}
