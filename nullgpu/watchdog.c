/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - PyTorch's NCCL watchdog looks every 100 ms by a real clock; on a device that takes
 * no real time it would always come too late. Its wait ends when somebody waits for it to look.
 * The library is preloaded, and these functions stand before the C and C++ libraries' own.
 *
 * The wait is C++'s wait_for with a condition that says whether to end: told that time is up, it
 * asks the clock whether that is true, and waits on if it is not. So the clock says that it is,
 * once, to this thread. All other threads wait as they asked, and know what time it is. */
#define _GNU_SOURCE
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#define LOOK_NS 500000ll        /* how often a waiting watchdog asks whether it is wanted */
#define LONGEST_NS 2000000000ll /* a longer wait is not the watchdog's round */

typedef int clock_wait(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
typedef int timed_wait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static __thread int64_t steady_ahead, system_ahead; /* what the next look at a clock adds */

static int64_t time_of(clockid_t clock)
{
	struct timespec t = { 0 };
	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Waits in short rounds until it is signalled, `until` has come, or it is wanted. */
static int wait_until_wanted(timed_wait *one, clock_wait *other, pthread_cond_t *c,
			     pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	int64_t end = (int64_t)until->tv_sec * 1000000000ll + until->tv_nsec, left;
	int rc = ETIMEDOUT;
	steady_ahead = system_ahead = 0;
	vc_null_watched();
	while ((left = end - time_of(clock)) > 0 && rc == ETIMEDOUT && !vc_null_is_wanted()) {
		int64_t next = end - left + (left < LOOK_NS ? left : LOOK_NS);
		struct timespec t = { (time_t)(next / 1000000000ll), next % 1000000000ll };
		rc = one ? one(c, m, &t) : other(c, m, clock, &t);
	}
	if (rc == ETIMEDOUT && left > 0)
		steady_ahead = system_ahead = left;
	return rc;
}

static bool is_round(clockid_t clock, const struct timespec *until)
{
	return vc_null_is_watchdog() && (int64_t)until->tv_sec * 1000000000ll + until->tv_nsec -
		time_of(clock) <= LONGEST_NS;
}

VC_API(int, pthread_cond_clockwait, pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
       const struct timespec *until)
{
	static clock_wait *real;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	return is_round(clock, until) ? wait_until_wanted(NULL, real, c, m, clock, until) :
		real(c, m, clock, until);
}

VC_API(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m,
       const struct timespec *until)
{
	static timed_wait *real;
	if (!real) /* without a version the one of before 2003 would be found on x86-64 */
		*(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	return is_round(CLOCK_REALTIME, until) ?
		wait_until_wanted(real, NULL, c, m, CLOCK_REALTIME, until) : real(c, m, until);
}

/* std::chrono::steady_clock::now() and system_clock::now(), which return a number of nanoseconds
 * as libstdc++ has them. */
VC_API(int64_t, _ZNSt6chrono3_V212steady_clock3nowEv, void)
{
	int64_t ahead = steady_ahead;
	steady_ahead = 0;
	return time_of(CLOCK_MONOTONIC) + ahead;
}

VC_API(int64_t, _ZNSt6chrono3_V212system_clock3nowEv, void)
{
	int64_t ahead = system_ahead;
	system_ahead = 0;
	return time_of(CLOCK_REALTIME) + ahead;
}
