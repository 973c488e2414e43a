/* SPDX-License-Identifier: Apache-2.0 */
/* test_repeats.c - the loop in a sequence, and how many micro-batches one of its periods holds. */
#include "tests/support/test.h"

#include "common/repeats.h"

/* A step: what begins it, `times` of `period` operations with a short loop in them, what ends it.
 */
static size_t step(uint64_t *x, size_t begin, size_t times, size_t period, size_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < begin; i++)
		x[n++] = 1000 + i;
	for (size_t k = 0; k < times; k++)
		for (size_t i = 0; i < period; i++)
			x[n++] = i < period / 2 ? i % 3 : 500 + i;
	for (size_t i = 0; i < end; i++)
		x[n++] = 2000 + i;
	return n;
}

static void test_the_loop_over_the_middle(void **state)
{
	(void)state;
	uint64_t x[1000];
	struct vc_repeats r;
	size_t n = step(x, 21, 6, 40, 13);

	assert_true(vc_repeats_find(x, n, &r));
	assert_int_equal(r.period, 40);
	assert_int_equal(r.from, 21);
	assert_int_equal(r.end, 21 + 6 * 40);
	assert_int_equal(vc_repeats_hold(&r, n, 6, 1), 1);
}

static void test_nothing_repeats(void **state)
{
	(void)state;
	uint64_t x[100];
	struct vc_repeats r;

	for (size_t i = 0; i < 100; i++)
		x[i] = i * i;
	assert_false(vc_repeats_find(x, 100, &r));
	assert_false(vc_repeats_find(x, 0, &r));
	assert_false(vc_repeats_find(x, 5, &r));
}

static void test_what_a_period_holds(void **state)
{
	(void)state;
	struct vc_repeats r = { 0, 1500, 100 };

	assert_int_equal(vc_repeats_hold(&r, 1650, 16, 1), 1);
	assert_int_equal(vc_repeats_hold(&r, 1590, 16, 1), 1); /* the first has less to do */
	assert_int_equal(vc_repeats_hold(&r, 420, 16, 4), 4);  /* four at a time */
	assert_int_equal(vc_repeats_hold(&r, 420, 16, 1), 0);
	assert_int_equal(vc_repeats_hold(&r, 4000, 16, 1), 0); /* a layer, no micro-batch */
	r.end = 200;
	assert_int_equal(vc_repeats_hold(&r, 420, 4, 1), 0); /* two are alike, two are not */
	assert_int_equal(vc_repeats_hold(&r, 420, 4, 2), 1); /* they fill and empty the pipeline */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_loop_over_the_middle),
		cmocka_unit_test(test_nothing_repeats),
		cmocka_unit_test(test_what_a_period_holds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
