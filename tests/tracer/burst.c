/* SPDX-License-Identifier: Apache-2.0 */
/* burst.c - burst THREADS EVENTS-PER-SECOND SECONDS: pairs of allocation and free at a steady
 * rate from several threads; prints how many events there were, the seconds, and the largest
 * resident memory. A thread that is ahead of its rate sleeps for a moment: a spin for the next
 * event would take a core from every other test. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

static double rate, seconds;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *work(void *out)
{
	double start = now();
	long n = 0, all = (long)(rate * seconds / 2);

	while (n < all) {
		long due = (long)((now() - start) * rate / 2);

		for (; n < due && n < all; n++)
			_ZN3c108free_cpuEPv(_ZN3c109alloc_cpuEm(64));
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	}
	*(long *)out = 2 * n;
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	long n[64] = { 0 }, sum = 0;
	pthread_t t[64];
	struct rusage use;
	double start;

	rate = (argc > 2 ? atof(argv[2]) : 2e6) / threads;
	seconds = argc > 3 ? atof(argv[3]) : 1;
	start = now();
	for (int i = 0; i < threads && i < 64; i++)
		pthread_create(&t[i], NULL, work, &n[i]);
	for (int i = 0; i < threads && i < 64; i++) {
		pthread_join(t[i], NULL);
		sum += n[i];
	}
	getrusage(RUSAGE_SELF, &use);
	printf("events %ld seconds %.3f kib %ld\n", sum, now() - start, use.ru_maxrss);
	return 0;
}
