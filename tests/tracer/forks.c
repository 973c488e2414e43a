/* SPDX-License-Identifier: Apache-2.0 */
/* forks.c - forks N ALLOCATIONS [live]: N children that allocate and end, at once or (live) only
 * when all of them have begun. forks -n N: N marks of different names, each of them twice.
 * forks -s N: N steps, each of which keeps one block; the program asks to be recorded from step 5
 * to 7 and from 12 to 13. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);
__attribute__((weak)) void vramcast_mark(const char *name);
__attribute__((weak)) void vramcast_step(void);
__attribute__((weak)) void vramcast_start(void);
__attribute__((weak)) void vramcast_stop(void);

static int steps(long n)
{
	for (long i = 1; vramcast_step && i <= n; i++) {
		if (i == 5 || i == 12)
			vramcast_start();
		_ZN3c109alloc_cpuEm(1 << 16);
		for (int k = 0; k < 100; k++)
			_ZN3c108free_cpuEPv(_ZN3c109alloc_cpuEm(128));
		vramcast_step();
		if (i == 7 || i == 13)
			vramcast_stop();
		usleep(1000);
	}
	return 0;
}

static int marks(long n)
{
	char name[64];

	_ZN3c109alloc_cpuEm(64);
	for (int twice = 0; twice < 2; twice++)
		for (long i = 0; i < n; i++) {
			snprintf(name, sizeof(name), "a mark of a name of its own %ld", i);
			if (vramcast_mark)
				vramcast_mark(name);
			if (i % 1000 == 999)
				usleep(2000);
		}
	return 0;
}

static void child(long allocations, int begun, int go)
{
	char c;

	for (long i = 0; i < allocations; i++)
		_ZN3c109alloc_cpuEm((size_t)(16 + i));
	if (begun >= 0 && (write(begun, "", 1) != 1 || read(go, &c, 1) < 0))
		_exit(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[1]) : 0, allocations = argc > 2 ? atol(argv[2]) : 0, made = 0;
	int begun[2] = { -1, -1 }, go[2] = { -1, -1 }, live = argc > 3 && !strcmp(argv[3], "live");
	char c;

	if (argc > 2 && !strcmp(argv[1], "-s"))
		return steps(allocations);
	if (argc > 2 && !strcmp(argv[1], "-n"))
		return marks(allocations);
	if (live && (pipe(begun) || pipe(go)))
		return 1;
	for (long i = 0; i < n; i++) {
		pid_t p = fork();

		if (!p) {
			if (live)
				close(go[1]);
			child(allocations, begun[1], go[0]);
		}
		made += p > 0;
		while (p > 0 && !live && waitpid(p, NULL, 0) < 0)
			;
	}
	for (long i = 0; live && i < made; i++)
		if (read(begun[0], &c, 1) != 1)
			return 1;
	if (live)
		close(go[1]);
	while (wait(NULL) > 0)
		;
	printf("forks %ld\n", made);
	return 0;
}
