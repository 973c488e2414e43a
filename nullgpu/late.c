/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - a thread that asks for Python's lock (the GIL) while the interpreter ends is ended by
 * Python 3.13 and older with pthread_exit(). That unwinds its stack. Destructors of PyTorch's are
 * declared never to be left that way, so it is "terminate called without an active exception": a
 * run that has done all its work would end by SIGABRT. Here such a thread sleeps until the process
 * is gone, as it does under Python 3.14 (PyThread_hang_thread). All others end as they asked.
 *
 * PyTorch would wait ten seconds for the thread of a backward pass that sleeps. That thread has
 * ended before (sitecustomize.py). */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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

VC_SHARED _Noreturn void pthread_exit(void *value)
{
	void (*real)(void *);
	while (is_python(__builtin_return_address(0)) && python_ends())
		pause();
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_exit");
	if (real)
		real(value);
	abort();
}
