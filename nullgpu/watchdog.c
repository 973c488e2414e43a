/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - PyTorch's NCCL watchdog looks every 100 ms by a real clock; on a device that takes
 * no real time it would always come too late. Its waits are cut short, so that waiting for it to
 * have looked costs a millisecond: the library is preloaded, and these two functions stand before
 * the C library's. All other threads wait as they asked. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#define LOOK_NS 1000000ll
#define LONGEST_NS 2000000000ll /* a longer wait is not the watchdog's round */

typedef int clock_wait(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
typedef int timed_wait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static __thread bool watches;

void vc_null_watches(void)
{
	watches = true;
}

static const struct timespec *shorter(clockid_t clock, const struct timespec *until,
				      struct timespec *out)
{
	if (!watches || clock_gettime(clock, out))
		return until;
	long long left = (long long)(until->tv_sec - out->tv_sec) * 1000000000ll + until->tv_nsec -
		out->tv_nsec;
	if (left <= LOOK_NS || left > LONGEST_NS)
		return until;
	out->tv_nsec += (long)LOOK_NS;
	if (out->tv_nsec >= 1000000000l) {
		out->tv_nsec -= 1000000000l;
		out->tv_sec++;
	}
	return out;
}

VC_API(int, pthread_cond_clockwait, pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
       const struct timespec *until)
{
	static clock_wait *real;
	struct timespec t;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	return real(c, m, clock, shorter(clock, until, &t));
}

VC_API(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m,
       const struct timespec *until)
{
	static timed_wait *real;
	struct timespec t;
	if (!real) /* without a version the one of before 2003 would be found on x86-64 */
		*(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	return real(c, m, shorter(CLOCK_REALTIME, until, &t));
}
