/* SPDX-License-Identifier: Apache-2.0 */
/* preload.c - the constructor, and the ways a process ends or splits.
 *
 * Every shell, compiler and /bin/true of a job inherits LD_PRELOAD, so the constructor only copies
 * two environment variables and registers handlers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "tracer/cudnn_calls.h"
#include "tracer/cupti.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/stacks.h"
#include "tracer/torch.h"

static void before_fork(void)
{
	vc_cudnn_before_fork();
	vc_stacks_before_fork();
	vc_names_before_fork();
	vc_recorder_before_fork();
}

static void parent_after_fork(void)
{
	vc_recorder_after_fork(false);
	vc_names_after_fork(false);
	vc_stacks_after_fork(false);
	vc_cudnn_after_fork();
}

static void child_after_fork(void)
{
	vc_recorder_after_fork(true);
	vc_names_after_fork(true);
	vc_stacks_after_fork(true);
	vc_cudnn_after_fork();
	vc_cupti_forget();
	vc_torch_cpu_forget();
	vc_torch_forget();
}

__attribute__((constructor)) static void start(void)
{
	vc_recorder_init();
	pthread_atfork(before_fork, parent_after_fork, child_after_fork);
}

static void goodbye(bool orderly)
{
	if (!vc_recorder_mine())
		return;
	vc_cupti_finish();
	if (orderly)
		vc_recorder_end();
}

/* Tensors may still be freed after this, by destructors of other libraries: those records go in. */
__attribute__((destructor)) static void finish(void)
{
	goodbye(true);
}

/* The exits that run no destructor. Records are safe in the shared mapping without any of this;
 * it tells an orderly end from a crash, and fetches what CUPTI still holds. */
static _Noreturn void end_by(const char *name, int code)
{
	void (*real)(int);

	*(void **)&real = dlsym(RTLD_NEXT, name); /* the idiom of POSIX for dlsym */
	goodbye(true);
	if (real)
		real(code);
	for (;;)
		_exit(code);
}

VC_EXPORT _Noreturn void _exit(int code)
{
	void (*real)(int);

	*(void **)&real = dlsym(RTLD_NEXT, "_exit");
	goodbye(true);
	real(code);
	__builtin_unreachable();
}

VC_EXPORT _Noreturn void _Exit(int code)
{
	end_by("_Exit", code);
}

VC_EXPORT _Noreturn void quick_exit(int code)
{
	end_by("quick_exit", code);
}

VC_EXPORT _Noreturn void abort(void)
{
	void (*real)(void);

	*(void **)&real = dlsym(RTLD_NEXT, "abort");
	goodbye(false);
	real();
	__builtin_unreachable();
}
