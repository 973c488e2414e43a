/* SPDX-License-Identifier: Apache-2.0 */
/* victim.c - allocates through a stand-in libc10 and ends in the way it is told.
 *
 * victim [-c] HOW [N]: N allocations and N / 2 frees, then HOW. -c: in a forked child, after 10
 * allocations of the parent and before 10 more. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

static void work(long n)
{
	void **p = calloc((size_t)n, sizeof(*p));

	for (long i = 0; i < n; i++) {
		p[i] = _ZN3c109alloc_cpuEm((size_t)(16 + i % 100));
		if (i % 2) /* at once: who replays it has few blocks to look through */
			_ZN3c108free_cpuEPv(p[i - 1]);
		if (i % 1000 == 999) /* a million a second at most: the recorder keeps up */
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	free(p);
}

static void *few(void *unused)
{
	(void)unused;
	work(10);
	return NULL;
}

/* 600 threads one after another, more than there are rings. */
static void threads(void)
{
	for (int i = 0; i < 600; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, few, NULL))
			exit(9);
		pthread_join(t, NULL);
	}
}

static void say(const char *path)
{
	FILE *f = fopen(path, "w");

	if (f)
		fclose(f);
}

/* Leaves processes behind that allocate as fast as they can for as long as they are let: for 25
 * seconds, or until the file is there. */
static void leave(const char *path)
{
	time_t until = time(NULL) + 25;

	if (fork() && fork() && fork() && fork()) {
		nanosleep(&(struct timespec){ 0, 500000000 }, NULL);
		return;
	}
	while (time(NULL) < until && access(path, F_OK))
		for (int i = 0; i < 1000; i++)
			_ZN3c108free_cpuEPv(_ZN3c109alloc_cpuEm(64));
	_exit(0);
}

static int end(const char *how)
{
	if (!strncmp(how, "leave:", 6))
		leave(how + 6);
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "_Exit"))
		_Exit(5);
	if (!strcmp(how, "quick_exit"))
		quick_exit(6);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", "victim", "return", "1000", (char *)NULL);
	if (!strcmp(how, "threads"))
		threads();
	if (!strcmp(how, "dump")) { /* asks its recorder for what is kept, at once */
		kill(getppid(), SIGUSR1);
		for (;;)
			pause();
	}
	if (!strncmp(how, "wait:", 5)) { /* says so in a file, then waits to be killed */
		say(how + 5);
		for (;;)
			pause();
	}
	return 2;
}

int main(int argc, char **argv)
{
	int in_child = argc > 1 && !strcmp(argv[1], "-c"), status;
	const char *how = argc > 1 + in_child ? argv[1 + in_child] : "return";
	long n = argc > 2 + in_child ? atol(argv[2 + in_child]) : 1000;

	if (!in_child) {
		work(n);
		return end(how);
	}
	for (int i = 0; i < 10; i++)
		_ZN3c109alloc_cpuEm(64);
	pid_t p = fork();
	if (!p) {
		work(n);
		return end(how);
	}
	waitpid(p, &status, 0);
	for (int i = 0; i < 10; i++)
		_ZN3c109alloc_cpuEm(64);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
