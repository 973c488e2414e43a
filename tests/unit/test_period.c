/* SPDX-License-Identifier: Apache-2.0 */
/* test_period.c - how many allocations the shortest iteration has. */
#include "tests/support/test.h"

#include "simulator/anatomy/period.h"

enum { TIMES = 20, MOST = 24 };

/* The lag found in so many allocations, all unlike each other, that come again and again while
 * memory rises and falls. */
static size_t lag_of(size_t allocations)
{
	uint64_t token[TIMES * MOST], before[TIMES * MOST];
	struct vc_anatomy a = { .n = TIMES * allocations };
	struct vc_anatomy_work w = { .a = &a, .n = a.n, .token = token, .before = before };

	for (size_t i = 0; i < a.n; i++) {
		token[i] = 1 + i % allocations;
		before[i] = (i % allocations) << 24;
	}
	vc_period_lag(&w, NULL);
	return w.lag;
}

static void an_iteration_has_a_dozen_allocations_at_least(void **unused)
{
	(void)unused;
	assert_int_equal(lag_of(8), 0);
	assert_int_equal(lag_of(11), 0);
	assert_int_equal(lag_of(12), 12);
	assert_int_equal(lag_of(20), 20);
}

/* Iterations found in ten runs of sixty allocations, of which so many are of the same sizes each
 * time; no stack says what they are. */
static uint32_t iterations_of(unsigned same)
{
	enum { RUNS = 10, LAG = 60 };
	struct vc_event ev[2 * RUNS * LAG] = { 0 };
	struct vc_anatomy a;
	struct vc_error err = { 0 };
	uint64_t id = 0;
	size_t n = 0;

	for (unsigned run = 0; run < RUNS; run++) {
		for (unsigned i = 0; i < LAG; i++)
			ev[n++] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = ++id,
				.size = (1u << 20) + 4096 * (i < same ? i : 1000 + id) };
		for (unsigned i = 0; i < LAG; i++)
			ev[n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = id - i };
	}
	assert_int_equal(vc_anatomy_read(&a, ev, n, 0, NULL, &err), VC_OK);
	uint32_t found = a.iterations;

	vc_anatomy_fini(&a);
	return found;
}

/* VC_ANATOMY_SURE: nine tenths of the share that repeats. */
static void what_repeats_by_half_is_no_iteration(void **unused)
{
	(void)unused;
	assert_int_equal(iterations_of(60), 10);
	assert_int_equal(iterations_of(48), 10);
	assert_int_equal(iterations_of(30), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_iteration_has_a_dozen_allocations_at_least),
		cmocka_unit_test(what_repeats_by_half_is_no_iteration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
