/* SPDX-License-Identifier: Apache-2.0 */
/* stop_at.c - preloaded into the recorder, kills it at the STOP_AT-th call that changes a file:
 * before the call, or (STOP_HALF) when a write has done half of its work. Without STOP_AT it
 * counts: into the file STOP_COUNT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long calls;

static int is_recorder(void)
{
	return strcmp(program_invocation_short_name, "vramcast") == 0;
}

static long here(void)
{
	const char *at = getenv("STOP_AT");

	return is_recorder() ? (at ? atol(at) : 0) - ++calls : 1;
}

__attribute__((destructor)) static void count(void)
{
	const char *path = getenv("STOP_COUNT");
	FILE *f = is_recorder() && path ? fopen(path, "w") : NULL;

	if (f) {
		fprintf(f, "%ld\n", calls);
		fclose(f);
	}
}

#define REAL(name) (*(__typeof__(&name) *)&(void *[]){ dlsym(RTLD_NEXT, #name) }[0])

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	if (here() == 0) {
		if (getenv("STOP_HALF"))
			REAL(pwrite)(fd, p, n / 2, at);
		raise(SIGKILL);
	}
	return REAL(pwrite)(fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
	return pwrite(fd, p, n, at);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	if (flags & O_CREAT && here() == 0)
		raise(SIGKILL);
	return REAL(open)(path, flags, mode);
}

int rename(const char *from, const char *to)
{
	if (here() == 0)
		raise(SIGKILL);
	return REAL(rename)(from, to);
}

int unlink(const char *path)
{
	if (here() == 0)
		raise(SIGKILL);
	return REAL(unlink)(path);
}
