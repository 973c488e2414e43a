/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - a thread that asks for Python's lock (the GIL) while the interpreter ends is ended by
 * Python 3.13 and older with pthread_exit(). That unwinds its stack. Destructors of PyTorch's are
 * declared never to be left that way, so it is "terminate called without an active exception": a
 * run that has done all its work would end by SIGABRT. Here such a thread sleeps until the process
 * is gone, as it does under Python 3.14 (PyThread_hang_thread). All others end as they asked.
 *
 * PyTorch would wait ten seconds for the thread of a backward pass that sleeps. That thread has
 * ended before (sitecustomize.py). Others are joined without any end: NCCL's heartbeat asks a store
 * that is written in Python. To who joins a thread that sleeps here, it has ended. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 10000000l /* how often who joins a thread looks whether it sleeps */

struct sleeper { /* on the stack of the thread, which never goes */
	pthread_t who;
	struct sleeper *next;
};
static struct sleeper *sleepers;

/* Python 3.13 has made the name public; 3.7 to 3.12 have the one with the underscore. */
static bool python_ends(void)
{
	int (*ends)(void);
	*(void **)&ends = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
	if (!ends)
		*(void **)&ends = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
	return ends && ends();
}

/* The interpreter is a library or the program itself: its own function tells which. */
static bool is_python(const void *caller)
{
	Dl_info by, python;
	void *end_thread = dlsym(RTLD_DEFAULT, "PyThread_exit_thread");
	return end_thread && dladdr(caller, &by) && dladdr(end_thread, &python) &&
		by.dli_fbase == python.dli_fbase;
}

static _Noreturn void sleep_for_ever(void)
{
	struct sleeper me = { pthread_self(), __atomic_load_n(&sleepers, __ATOMIC_RELAXED) };
	while (!__atomic_compare_exchange_n(&sleepers, &me.next, &me, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	for (;;)
		pause();
}

static bool sleeps(pthread_t thread)
{
	struct sleeper *s = __atomic_load_n(&sleepers, __ATOMIC_ACQUIRE);
	while (s && !pthread_equal(s->who, thread))
		s = s->next;
	return s != NULL;
}

VC_SHARED _Noreturn void pthread_exit(void *value)
{
	void (*real)(void *);
	if (is_python(__builtin_return_address(0)) && python_ends())
		sleep_for_ever();
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_exit");
	if (real)
		real(value);
	abort();
}

VC_SHARED int pthread_join(pthread_t thread, void **value);
VC_SHARED int pthread_join(pthread_t thread, void **value)
{
	int rc;
	do {
		struct timespec t;
		if (sleeps(thread)) {
			if (value)
				*value = NULL;
			return 0;
		}
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += LOOK_NS;
		t.tv_sec += t.tv_nsec / 1000000000l;
		t.tv_nsec %= 1000000000l;
		rc = pthread_timedjoin_np(thread, value, &t);
	} while (rc == ETIMEDOUT);
	return rc;
}
