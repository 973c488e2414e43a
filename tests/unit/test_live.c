/* SPDX-License-Identifier: Apache-2.0 */
/* test_live.c - when memory runs out: runs that grow, runs that only look so. */
#include "tests/support/test.h"

#include "tracer/live.h"

enum { MIB = 1 << 20, N = 64 };

static uint64_t seed;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
	return (seed >> 33) % n;
}

static void grows(void **state)
{
	uint64_t peak[N], floor[N];
	double growth;

	(void)state;
	for (int i = 0; i < N; i++) {
		floor[i] = (uint64_t)(1000 + 2 * i) * MIB;
		peak[i] = floor[i] + 500 * MIB;
	}
	/* 1,626 MiB are held in the last step, 2 more in each: 374 / 2 steps to 2,000 */
	assert_int_equal(vc_live_left(peak, floor, N, 2000ull * MIB, &growth), 187);
	assert_int_equal(growth, 2 * MIB);
	assert_true(vc_live_left(peak, floor, N, 0, &growth) < 0); /* of what? */
	assert_int_equal(growth, 2 * MIB);
	assert_true(vc_live_left(peak, floor, 4, 2000ull * MIB, &growth) < 0); /* too early */
	assert_int_equal(vc_live_left(peak, floor, N, 1000ull * MIB, &growth), 0);
}

/* Batches of different lengths: the peak of a step says little, the middle of many does. */
static void grows_unevenly(void **state)
{
	uint64_t peak[N], floor[N];
	double growth, left;

	(void)state;
	seed = 1;
	for (int turn = 0; turn < 100; turn++) {
		for (int i = 0; i < N; i++) {
			floor[i] = (uint64_t)(10000 + 20 * i) * MIB + rnd(50 * MIB);
			peak[i] = floor[i] + rnd(1000ull * MIB);
		}
		left = vc_live_left(peak, floor, N, 31800ull * MIB, &growth);
		assert_true(left > 1000 * 0.5 && left < 1000 * 2.0);
	}
}

static void only_looks_so(void **state)
{
	uint64_t peak[N], floor[N];
	double growth;

	(void)state;
	for (int i = 0; i < N; i++) { /* longer and longer batches, of which nothing stays */
		floor[i] = 1000ull * MIB;
		peak[i] = (uint64_t)(2000 + 3 * i) * MIB;
	}
	assert_true(vc_live_left(peak, floor, N, 4000ull * MIB, &growth) < 0);
	for (int i = 0; i < N; i++) { /* a cache that was filled at once */
		floor[i] = (i < 10 ? 1000ull : 1500ull) * MIB;
		peak[i] = floor[i] + 300 * MIB;
	}
	assert_true(vc_live_left(peak, floor, N, 4000ull * MIB, &growth) < 0);
	for (int i = 0; i < N; i++) { /* every second step is a large one */
		floor[i] = 1000ull * MIB;
		peak[i] = (uint64_t)(2000 + i % 2 * 500) * MIB;
	}
	assert_true(vc_live_left(peak, floor, N, 4000ull * MIB, &growth) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(grows_unevenly),
		cmocka_unit_test(only_looks_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
