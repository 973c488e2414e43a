/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - what a training run asks for, through the stand-in allocator: train --batch N.
 * All blocks are large, so each has a segment of its own here as under PyTorch's allocator, and a
 * replay is exact. What only a card would do is in the environment: WORKSPACE=MiB is taken and
 * given back in each step, EARLY=MiB once before, DATA=N makes sizes differ from run to run (with
 * ALL=1 those of all activations, with ALL=2 how many blocks there are, too), BROKEN=1 fails,
 * ORDER=1 frees in another order, ORDER=2 in every second run. RUNS=FILE counts the runs. The
 * argument "narrow" makes activations smaller; so does the hook's change (python/change_hook.py)
 * "precision", which it reports; it says why it cannot offload, and nothing of others. */
#include <stdint.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tracer/torch_standin/standin.h"

#define MIB ((size_t)1 << 20)
enum { LAYERS = 4, STEPS = 3 };

int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);

static void *take(size_t n)
{
	void *self, **v = standin_vtable(&self), *data[4], *(*f)(void **, void *, size_t);

	*(void **)&f = v[2];
	f(data, self, n);
	if (!data[0]) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return data[0];
}

static size_t number(const char *name)
{
	const char *text = getenv(name);

	return text ? (size_t)atol(text) : 0;
}

/* Is a change asked for that is made here? */
static int is_changed(void)
{
	const char *change = getenv("VRAMCAST_CHANGE"), *report = getenv("VRAMCAST_CHANGE_REPORT");
	char path[4096];
	FILE *f;

	if (!change || !report)
		return 0;
	snprintf(path, sizeof(path), "%s.%ld", report, (long)getpid());
	f = fopen(path, "w");
	if (f && strstr(change, "precision"))
		fputs("precision 1\n", f);
	if (f && strstr(change, "offload"))
		fputs("!no host is large enough\n", f);
	if (f)
		fclose(f);
	return strstr(change, "precision") != NULL;
}

int main(int argc, char **argv)
{
	size_t batch = argc > 2 && !strcmp(argv[1], "--batch") ? (size_t)atol(argv[2]) : 0;
	size_t data = number("DATA"), narrow = is_changed(), before = 0, order = number("ORDER");
	void (*step)(void), *act[LAYERS];
	FILE *runs = getenv("RUNS") ? fopen(getenv("RUNS"), "a+") : NULL;

	if (runs) {
		for (int c; (c = fgetc(runs)) != EOF;)
			before += c == '\n';
		data += data ? before : 0;
		fprintf(runs, "%zu\n", batch);
		fclose(runs);
	}

	*(void **)&step = dlsym(RTLD_DEFAULT, "vramcast_step");
	for (int i = 1; i < argc; i++)
		narrow |= !strcmp(argv[i], "narrow");
	for (int i = 1; i < argc; i++)
		if (strchr(argv[i], '{')) /* a value that nobody filled in */
			return 5;
	if (!batch || number("BROKEN") || _ZN3c104cuda28device_count_ensure_non_zeroEv() != 1)
		return 5;
	if (number("EARLY"))
		standin_free(take(number("EARLY") * MIB));
	for (int i = 0; i < LAYERS; i++)
		take((size_t)(32 + 2 * i) * MIB);
	for (int s = 0; s < STEPS; s++) {
		for (size_t i = 0; i < LAYERS; i++)
			act[i] = take((batch * (22 + 2 * i - 10 * narrow) +
				       (i == 2 || number("ALL") ? 2 * data : 0)) * MIB);
		if (number("WORKSPACE"))
			standin_free(take(number("WORKSPACE") * MIB));
		for (size_t k = 0; number("ALL") == 2 && k < before % 3; k++)
			standin_free(take((data + k) * MIB));
		bool other = order == 1 || (order == 2 && before % 2);

		for (int i = LAYERS; i-- > 0;)
			standin_free(act[other ? LAYERS - 1 - i : i]);
		if (step)
			step();
	}
	return 0;
}
