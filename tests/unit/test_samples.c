/* SPDX-License-Identifier: Apache-2.0 */
/* test_samples.c - what a random batch of a data set holds, against all batches there are. */
#include "tests/support/test.h"

#include <math.h>

#include "simulator/search/samples.h"

/* Of all sets of `drawn` samples among `all`, the share that holds one of the first `some`. */
static double counted(unsigned all, unsigned some, unsigned drawn)
{
	unsigned sets = 0, with = 0;

	for (unsigned set = 0; set < 1u << all; set++)
		if ((unsigned)__builtin_popcount(set) == drawn) {
			sets++;
			with += (set & ((1u << some) - 1)) != 0;
		}
	return (double)with / sets;
}

static void a_chance_is_that_of_all_batches(void **unused)
{
	(void)unused;
	for (unsigned all = 1; all <= 8; all++)
		for (unsigned some = 0; some <= all; some++)
			for (unsigned drawn = 0; drawn <= all; drawn++) {
				struct vc_samples s = { .samples = all };
				double said = vc_samples_chance(&s, some, drawn);

				if (fabs(said - counted(all, some, drawn)) > 1e-12)
					fail_msg("%u of %u, %u drawn: %g", some, all, drawn, said);
			}
}

static void lengths_are_counted(void **unused)
{
	struct vc_sample_length at[] = { { 10, 3 }, { 20, 4 }, { 50, 1 } };
	struct vc_samples s = { .at = at, .n = 3, .samples = 8 };
	uint64_t tokens;

	(void)unused;
	assert_int_equal(vc_samples_over(&s, 9, &tokens), 8);
	assert_int_equal(tokens, 3 + 44 + 41);
	assert_int_equal(vc_samples_over(&s, 20, &tokens), 1);
	assert_int_equal(tokens, 30);
	assert_int_equal(vc_samples_over(&s, 50, &tokens), 0);
	assert_int_equal(tokens, 0);
	assert_int_equal(vc_samples_quantile(&s, 0), 10);
	assert_int_equal(vc_samples_quantile(&s, 3.0 / 8), 10);
	assert_int_equal(vc_samples_quantile(&s, 0.5), 20);
	assert_int_equal(vc_samples_quantile(&s, 7.0 / 8), 20);
	assert_int_equal(vc_samples_quantile(&s, 1), 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chance_is_that_of_all_batches),
		cmocka_unit_test(lengths_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
