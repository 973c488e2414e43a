/* SPDX-License-Identifier: Apache-2.0 */
/* test_cupti_clock.c - stamps of two clocks become times of the recording. The tracer is a library
 * of its own, so its file is part of this test. */
#include "tests/support/test.h"

#include "tracer/cupti_clock.c"

#define SECOND 1000000000ull

uint64_t vc_clock_ns(void)
{
	return 5 * SECOND;
}

/* A profiler's clock that runs twice as fast as ours, and began at 4 s. */
static const struct vc_cupti_times both = { .wall = 1700000000 * SECOND, .mono = 100 * SECOND,
	.their_zero = 1000, .our_zero = 4 * SECOND, .speed = 0.5 };

static void stamps_near_the_wall_clock_are_of_the_wall_clock(void **unused)
{
	(void)unused;
	assert_int_equal(vc_cupti_time(&both, both.wall), both.mono);
	assert_int_equal(vc_cupti_time(&both, both.wall - 30 * SECOND), both.mono - 30 * SECOND);
	assert_int_equal(vc_cupti_time(&both, both.wall + 3599 * SECOND),
			 both.mono + 3599 * SECOND);
}

static void other_stamps_are_of_the_profiler(void **unused)
{
	(void)unused;
	assert_int_equal(vc_cupti_time(&both, 1000), 4 * SECOND);
	assert_int_equal(vc_cupti_time(&both, 1000 + 6 * SECOND), 7 * SECOND);
}

static void without_a_profiler_all_stamps_are_of_the_wall_clock(void **unused)
{
	struct vc_cupti_times t = { .wall = both.wall, .mono = 9000 * SECOND };

	(void)unused;
	assert_int_equal(vc_cupti_time(&t, t.wall - 8000 * SECOND), 1000 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps_near_the_wall_clock_are_of_the_wall_clock),
		cmocka_unit_test(other_stamps_are_of_the_profiler),
		cmocka_unit_test(without_a_profiler_all_stamps_are_of_the_wall_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
