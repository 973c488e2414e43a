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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_iteration_has_a_dozen_allocations_at_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
