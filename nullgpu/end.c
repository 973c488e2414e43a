/* SPDX-License-Identifier: Apache-2.0 */
/* end.c - a process that stays when its program has ended: it says what it waits for, and ends.
 *
 * On a card a library may wait for ever as well (for a thread that wants Python's lock, for ranks
 * that are gone), and somebody kills it. A dry run is to end by itself. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 8
#define LOOK_MS 10
#define FRAMES 24
#define SHOWN 12
#define ASK (SIGRTMAX - 3) /* asks the main thread for its stack */

static int status, ends;   /* that the program ended with; 1: it has */
static int waiting;        /* 1: a thread counts the seconds */
static char waits_for[200]; /* what the main thread waits for before the program has ended */
static void *frame[FRAMES];
static int frames;

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

static void note_stack(int sig)
{
	int n = backtrace(frame, FRAMES);
	__atomic_store_n(&frames, n, __ATOMIC_RELEASE);
}

/* "std::thread::join() (libstdc++.so.6)" */
static void say_frame(void *at)
{
	char *(*demangle)(const char *, char *, size_t *, int *);
	Dl_info in;
	if (!dladdr(at, &in) || !in.dli_sname)
		return;
	*(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	char *name = demangle ? demangle(in.dli_sname, NULL, NULL, NULL) : NULL;
	const char *slash = strrchr(in.dli_fname, '/');
	fprintf(stderr, "  %.120s (%s)\n", name ? name : in.dli_sname,
		slash ? slash + 1 : in.dli_fname);
	free(name);
}

/* The innermost frames of the main thread, without that of the question. */
static void say_stack(void)
{
	struct sigaction ask = { .sa_handler = note_stack, .sa_flags = SA_RESTART };
	void *first[2];
	backtrace(first, 2); /* the first call loads a library: not in the handler */
	if (sigaction(ASK, &ask, NULL) < 0 ||
	    syscall(SYS_tgkill, getpid(), getpid(), ASK) < 0)
		return;
	for (int i = 0; i < 100 && !__atomic_load_n(&frames, __ATOMIC_ACQUIRE); i++)
		sleep_ms(LOOK_MS);
	for (int i = 2; i < frames && i < SHOWN + 2; i++)
		say_frame(frame[i]);
}

static bool took(int *flag)
{
	return __atomic_exchange_n(flag, 0, __ATOMIC_ACQ_REL);
}

/* Until nothing has ended for so long that nothing will. */
static void *count(void *unused)
{
	void (*leave)(int);
	for (;;) {
		int ms = 0;
		for (; ms < PATIENCE_S * 1000 && !took(&ends); ms += LOOK_MS)
			sleep_ms(LOOK_MS);
		bool over = ms >= PATIENCE_S * 1000;
		if (over && !waits_for[0])
			break;
		if (over)
			fprintf(stderr, "vramcast: the program ended %d s ago but for %s: it is "
				"waited for\n", PATIENCE_S, waits_for);
		while (over && !took(&ends))
			sleep_ms(LOOK_MS);
		waits_for[0] = '\0';
	}
	fprintf(stderr,
		"vramcast: the program ended %d s ago, and its process stays. It waits in\n",
		PATIENCE_S);
	say_stack();
	fprintf(stderr, "vramcast: the process is ended with status %d\n", status);
	*(void **)&leave = dlsym(RTLD_DEFAULT, "_exit"); /* that of report.c */
	leave(status);
	return NULL;
}

static void start_counting(void)
{
	pthread_t t;
	if (!__atomic_exchange_n(&waiting, 1, __ATOMIC_ACQ_REL) &&
	    pthread_create(&t, NULL, count, NULL) == 0)
		pthread_detach(t);
}

void vc_null_ends(int with)
{
	status = with & 0xff;
	__atomic_store_n(&ends, 1, __ATOMIC_RELEASE);
	start_counting();
}

void vc_null_waits(const char *what)
{
	snprintf(waits_for, sizeof waits_for, "%s", what);
	start_counting();
}
