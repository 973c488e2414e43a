/* SPDX-License-Identifier: Apache-2.0 */
/* attached.c - attached LIBRARY FOLDER TIMES: does by itself what `record --pid` has a program do:
 * loads the tracer, joins and leaves so often, while three threads allocate, free, mark and end.
 * Nobody reads the journals. Prints how often it was recorded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

enum { THREADS = 3, KEPT = 16 };
static _Atomic int over;

static void *short_lived(void *unused)
{
	for (int i = 0; i < 10; i++)
		_ZN3c108free_cpuEPv(_ZN3c109alloc_cpuEm(64));
	return unused;
}

static void *work(void *step)
{
	void *kept[KEPT] = { 0 };
	void (*mark)(void);
	pthread_t t;

	*(void **)&mark = step;
	for (unsigned i = 0; !atomic_load(&over); i++) {
		_ZN3c108free_cpuEPv(kept[i % KEPT]);
		kept[i % KEPT] = _ZN3c109alloc_cpuEm(100 + i % 1000);
		if (i % 64 == 0 && pthread_create(&t, NULL, short_lived, NULL) == 0)
			pthread_join(t, NULL);
		if (i % 16 == 0) {
			mark();
			usleep(500); /* a moment in which nothing happens is waited for */
		}
	}
	for (int i = 0; i < KEPT; i++)
		_ZN3c108free_cpuEPv(kept[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*attach)(const char *, const char *, int), (*begin)(uint64_t), good = 0;
	uint64_t (*events)(void);
	void (*again)(void), (*detach)(void);
	pthread_t t[THREADS];

	if (!library)
		return 2;
	*(void **)&attach = dlsym(library, "vramcast_attach");
	*(void **)&begin = dlsym(library, "vramcast_attach_begin");
	*(void **)&events = dlsym(library, "vramcast_attach_events");
	*(void **)&again = dlsym(library, "vramcast_attach_again");
	*(void **)&detach = dlsym(library, "vramcast_detach");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, dlsym(library, "vramcast_step"));
	for (int i = 0; i < atoi(argv[3]); i++) {
		int plane = attach(argv[2], "device=cpu,stacks=off,kernels=off", 0), is = 0;

		for (int k = 0; plane > 0 && k < 10000 && !is; k++) {
			uint64_t before = events();

			again();
			is = begin(before);
		}
		good += is;
		usleep(5000);
		if (plane >= 0)
			detach();
	}
	atomic_store(&over, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%d\n", good);
	return 0;
}
