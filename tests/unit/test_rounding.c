/* SPDX-License-Identifier: Apache-2.0 */
/* test_rounding.c - what recordings cannot tell from a length that is rounded up, and the laws of
 * sizes that vary with the data. */
#include "tests/support/test.h"

#include "simulator/predict/laws.h"
#include "simulator/predict/rounding.h"
#include "simulator/predict/spread.h"

/* 64 and 128 are powers of two and multiples of 64: 300 may be 512, and no less than 300. */
static void powers_of_two_leave_the_next_one_open(void **unused)
{
	const double x[] = { 64, 128 };

	(void)unused;
	/* 64 and 128 cannot tell 300 from 512 */
	assert_true(vc_rounding_other(x, 2, 300, true, true) == 512);
	/* nor does anything make it smaller */
	assert_true(vc_rounding_other(x, 2, 300, true, false) == 300);
	/* 256 is what it is in every way */
	assert_true(vc_rounding_other(x, 2, 256, true, true) == 256);
	assert_true(vc_rounding_tells(x, 2) == 97); /* 97 would tell */
}

static void a_third_value_settles_it(void **unused)
{
	const double x[] = { 64, 97, 128 }, even[] = { 64, 96, 128 };

	(void)unused;
	assert_true(vc_rounding_other(x, 3, 300, true, true) == 300); /* with 97 nothing is open */
	/* 96 leaves multiples of 32 */
	assert_true(vc_rounding_other(even, 3, 300, true, true) == 320);
}

/* What is the same at 100 and 128 may be as large as 128 in both. */
static void what_does_not_differ_may_be_rounded_to_one_value(void **unused)
{
	const double x[] = { 100, 128 }, far[] = { 100, 300 };

	(void)unused;
	/* 150 may be 256 where 100 and 128 are 128 */
	assert_true(vc_rounding_step(x, 2, 150, true) == 2);
	assert_true(vc_rounding_step(x, 2, 120, true) == 1); /* 120 lies between them */
	/* 100 and 300 are rounded to no one value */
	assert_true(vc_rounding_step(far, 2, 400, true) == 1);
}

/* 300 bytes for each of 8,000 are 293 for each of 8,192, and a part of one. */
static void bytes_come_in_whole_numbers_for_each_unit(void **unused)
{
	const double x[] = { 8000, 16000 }, powers[] = { 64, 128 };
	const struct vc_law law[] = { { .kind = VC_LAW_LINEAR, .b = 72 },
				      { .kind = VC_LAW_QUADRATIC, .c = 4 },
				      { .kind = VC_LAW_AFFINE, .a = 500, .b = 300 },
				      { .kind = VC_LAW_LINEAR, .b = 3072 } };
	const struct vc_take t[] = { { .size = 576000 }, { .size = 256000000 },
				     { .size = 2400500 }, { .size = 24576000 } };

	(void)unused;
	assert_true(vc_rounding_power(x, 2) == 8192.0 / 8000);
	assert_true(vc_rounding_power(powers, 2) == 1);
	assert_false(vc_rounding_may_be(law, t, 3, vc_rounding_power(x, 2)));
	assert_true(vc_rounding_may_be(law, t, 4, vc_rounding_power(x, 2)));
	assert_true(vc_rounding_may_be(law, t, 3, 1));
	assert_true(vc_rounding_other(x, 2, 12000, true, true) == 16000);
	assert_true(vc_rounding_other(x, 2, 12000, false, true) < 12100); /* multiples of 128 */
}

static void all_paddings_that_explain_a_size_are_its_ends(void **unused)
{
	const struct vc_sample s[] = { { 60, 6400 }, { 256, 25600 } };
	struct vc_law l = vc_law_fit(s, 2, 0);

	(void)unused;
	/* 60 and 256 in the proportion of 64 and 256 are padded */
	assert_true(l.kind == VC_LAW_PADDED);
	/* at 300 to the next power of two at most */
	assert_true(vc_law_end(&l, 300, true) == 51200);
	assert_true(vc_law_end(&l, 300, false) == 30400); /* to the next multiple of 8 at least */
	assert_true(vc_law_end(&l, 256, true) == 25600); /* as recorded at 256 */
}

static void data_beside_a_law_follows_it(void **unused)
{
	const struct vc_sample s[] = { { 4, 410 }, { 8, 780 }, { 16, 1630 } };
	const struct vc_sample flat[] = { { 4, 1010 }, { 16, 990 } };
	struct vc_law l = vc_spread_law(s, 3, 0.05);

	(void)unused;
	/* sizes beside a line through nothing are proportional */
	assert_true(l.kind == VC_LAW_LINEAR &&
		    vc_law_at(&l, 32) > 3100 && vc_law_at(&l, 32) < 3300);
	l = vc_spread_law(flat, 2, 0.05);
	assert_true(l.kind == VC_LAW_CONST); /* sizes that hardly differ stay */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(powers_of_two_leave_the_next_one_open),
		cmocka_unit_test(a_third_value_settles_it),
		cmocka_unit_test(what_does_not_differ_may_be_rounded_to_one_value),
		cmocka_unit_test(bytes_come_in_whole_numbers_for_each_unit),
		cmocka_unit_test(all_paddings_that_explain_a_size_are_its_ends),
		cmocka_unit_test(data_beside_a_law_follows_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
