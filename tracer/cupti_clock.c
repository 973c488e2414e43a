/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_clock.c - what the stamps of CUPTI's records mean on the clock of the recording. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <time.h>

#include "tracer/cupti.h"
#include "tracer/recorder.h"

static struct {
	_Atomic(vc_cupti_clock *) clock; /* a profiler's; NULL: the wall clock stamps */
	uint64_t their_zero, our_zero;   /* both clocks when it was registered */
} g;

void vc_cupti_stamped_by(vc_cupti_clock *clock)
{
	if (clock && clock != atomic_load(&g.clock)) {
		g.our_zero = vc_clock_ns();
		g.their_zero = clock();
	}
	atomic_store_explicit(&g.clock, clock, memory_order_release);
}

static uint64_t wall_ns(void)
{
	struct timespec w;

	clock_gettime(CLOCK_REALTIME, &w);
	return (uint64_t)w.tv_sec * 1000000000u + (uint64_t)w.tv_nsec;
}

/* CUPTI stamps with the wall clock; registering another one breaks kernel times in 12.6 to 13.0, so
 * we never do. PyTorch's profiler does, from 2.5 on: the processor's time stamp counter. A stamp
 * near the wall clock is of the wall clock; another one is theirs, and two readings of both clocks,
 * when it was registered and now, give its speed. */
struct vc_cupti_times vc_cupti_clocks(void)
{
	vc_cupti_clock *clock = atomic_load_explicit(&g.clock, memory_order_acquire);
	struct vc_cupti_times t = { .wall = wall_ns(), .mono = vc_clock_ns() };
	uint64_t theirs = clock ? clock() : 0, now = clock ? vc_clock_ns() : 0;

	if (!clock || theirs <= g.their_zero || now <= g.our_zero)
		return t;
	t.their_zero = g.their_zero;
	t.our_zero = g.our_zero;
	t.speed = (double)(now - g.our_zero) / (double)(theirs - g.their_zero);
	return t;
}

uint64_t vc_cupti_time(const struct vc_cupti_times *t, uint64_t stamp)
{
	const int64_t hour = 3600ll * 1000000000;
	int64_t off = (int64_t)(stamp - t->wall);

	if (t->speed == 0 || (off < hour && off > -hour))
		return t->mono + (uint64_t)off;
	return t->our_zero +
	       (uint64_t)(int64_t)((double)(int64_t)(stamp - t->their_zero) * t->speed);
}
