/* SPDX-License-Identifier: Apache-2.0 */
/* modules.c - a training run of modules that do what VRAMCAST_BUDGET says, as python/budget_hook.py
 * would have them do it, through the stand-in allocator: modules N [WORD]. It marks, launches and
 * reports as the hook does. "compiled": a compiler decides what is kept; "inplace": a result of a
 * product in the first one is changed in place; "quiet": it launches nothing; "recompute": of what
 * can be done with a module only that. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tracer/torch_standin/standin.h"

#define MIB ((size_t)1 << 20)
enum { MOST = 8, STEPS = 2, INPUT = 16, INSIDE = 96, HELD = 32, KERNELS = 4 * MOST + 2 };

int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);

static const char *plan, *word = "";
static bool timed;

/* What a module keeps: what it is called with, and more inside of it. */
struct module { void *input, *inside, *held; char what[20]; };

static void *take(size_t n)
{
	void *self, **v = standin_vtable(&self), *data[4], *(*f)(void **, void *, size_t);

	*(void **)&f = v[2];
	f(data, self, n);
	if (!data[0])
		exit(1);
	return data[0];
}

static void let_go(void **p)
{
	if (*p)
		standin_free(*p);
	*p = NULL;
}

/* ---- what it tells ---- */

struct dim3 { unsigned x, y, z; };

/* Kernel k, which is known by that name, on the blocks p and q. */
static void launch(size_t k, const char *name, void *p, void *q)
{
	static char known[KERNELS], names[KERNELS][40];
	void (*put)(void **, const char *, char *, const char *, int, void *, void *, void *,
		    void *, int *);
	int (*go)(const void *, struct dim3, struct dim3, void **, size_t, void *);
	void *args[] = { &p, &q };

	*(void **)&put = dlsym(RTLD_DEFAULT, "__cudaRegisterFunction");
	*(void **)&go = dlsym(RTLD_DEFAULT, "cudaLaunchKernel");
	if (!put || !go || !strcmp(word, "quiet"))
		return;
	if (!names[k][0]) {
		snprintf(names[k], sizeof(names[k]), "%s_%zu", name, k);
		put(NULL, &known[k], NULL, names[k], -1, NULL, NULL, NULL, NULL, NULL);
	}
	go(&known[k], (struct dim3){ 64, 1, 1 }, (struct dim3){ 128, 1, 1 }, args, 0, NULL);
}

static void mark(const char *what, size_t number)
{
	void (*tell)(const char *);
	char text[80];

	*(void **)&tell = dlsym(RTLD_DEFAULT, "vramcast_mark");
	snprintf(text, sizeof(text), "budget %s %zu", what, number);
	if (tell && plan)
		tell(text);
	if (timed)
		launch(KERNELS - 1, "spin_kernel", NULL, NULL);
}

static void name_modules(size_t n)
{
	void (*tell)(const char *);
	char text[80];

	*(void **)&tell = dlsym(RTLD_DEFAULT, "vramcast_mark");
	if (tell && !strcmp(word, "compiled"))
		tell("budget compiled");
	for (size_t i = 0; tell && i < n; i++) {
		snprintf(text, sizeof(text), "budget unit Net/layers.%zu", i);
		tell(text);
		if (!i && !strcmp(word, "inplace"))
			tell("budget inplace Net/layers.0");
	}
}

static void report(size_t done, size_t of)
{
	const char *path = getenv("VRAMCAST_BUDGET_REPORT");
	char text[4096];
	FILE *f;

	snprintf(text, sizeof(text), "%s.%ld", path ? path : "", (long)getpid());
	f = path ? fopen(text, "w") : NULL;
	if (f) {
		fprintf(f, "%zu %zu\n", done, of);
		fclose(f);
	}
}

/* ---- what it is told ---- */

static size_t read_plan(struct module *m, size_t n)
{
	const char *at = plan ? plan : "";
	size_t of = 0;

	for (size_t i = 0; i < n; i++)
		strcpy(m[i].what, "keep");
	for (; (at = strstr(at, "\"do\"")); at++, of++) {
		char what[20] = "";

		sscanf(at, "\"do\" : \"%19[a-z_]", what);
		if (!strcmp(word, "recompute") && strcmp(what, "keep") && strcmp(what, word))
			exit(9);
		if (of < n)
			strcpy(m[of].what, what);
	}
	return of;
}

static size_t percent(const char *name, size_t otherwise)
{
	const char *at = plan ? strstr(plan, name) : NULL;

	at = at ? strchr(at + strlen(name), ':') : NULL;
	return at ? (size_t)atol(at + 1) : otherwise;
}

/* ---- a step ---- */

static bool is(const struct module *m, const char *what)
{
	return !strcmp(m->what, what);
}

static bool is_sent(const struct module *m)
{
	return is(m, "offload") || is(m, "recompute_offload");
}

/* Its inside, and what of it a product returned. */
static void compute(struct module *m, size_t i, size_t share)
{
	void *for_now;

	m->inside = take(INSIDE * share / 100 * MIB + MIB);
	if (!m->held) {
		m->held = take(HELD * MIB);
		launch(2 * MOST + i, "softmax_of_product", m->inside, m->held);
	}
	for_now = take(HELD * MIB);
	launch(i, "cunn_SoftMaxForward", m->inside, for_now);
	standin_free(for_now);
}

static void forward(struct module *m, size_t i, size_t share)
{
	mark("F", i);
	m->input = take(INPUT * MIB);
	compute(m, i, share);
	if (!is(m, "keep"))
		let_go(&m->inside);
	if (is(m, "lower"))
		m->inside = take(INSIDE / 2 * MIB);
	if (is(m, "recompute") || is_sent(m))
		let_go(&m->held);
	if (is_sent(m)) {
		launch(3 * MOST + i, "softmax_of_copy", m->input, NULL);
		let_go(&m->input);
	}
	mark("E", i);
}

static void backward(struct module *m, size_t i, size_t share)
{
	void *gradient;

	mark("B", i);
	if (!m->input) {
		m->input = take(INPUT * MIB);
		launch(3 * MOST + i, "softmax_of_copy", m->input, m->held);
	}
	if (!m->inside)
		compute(m, i, share);
	gradient = take(HELD * MIB);
	launch(MOST + i, "cunn_SoftMaxBackward", m->inside, gradient);
	let_go(&m->inside);
	let_go(&m->held);
	let_go(&m->input);
	standin_free(gradient);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? (size_t)atol(argv[1]) : 6;
	struct module m[MOST] = { { NULL, NULL, NULL, "" } };
	void (*step)(void);

	word = argc > 2 ? argv[2] : word;
	plan = getenv("VRAMCAST_BUDGET");
	timed = plan && strstr(plan, "timed");
	*(void **)&step = dlsym(RTLD_DEFAULT, "vramcast_step");
	if (n > MOST || _ZN3c104cuda28device_count_ensure_non_zeroEv() != 1)
		return 5;
	if (plan && strstr(plan, "observe"))
		name_modules(n);
	size_t of = read_plan(m, n), share = percent("\"share\"", 100);
	size_t twice = percent("\"twice\"", 0);

	take(INPUT * MIB);
	for (size_t i = 0; i < n; i++)
		if ((i + 1) * twice / 100 > i * twice / 100)
			strcpy(m[i].what, "recompute");
	for (int s = 0; s < STEPS; s++) {
		for (size_t i = 0; i < n; i++)
			forward(&m[i], i, share);
		for (size_t i = n; i-- > 0;)
			backward(&m[i], i, share);
		launch(4 * MOST, "optimizer_step", NULL, NULL);
		if (step)
			step();
	}
	if (plan)
		report(of < n ? of : n, of);
	return 0;
}
