/* SPDX-License-Identifier: Apache-2.0 */
/* test_laws.c - a size as a function of one parameter. */
#include <math.h>

#include "tests/support/test.h"

#include "simulator/predict/laws.h"

static double at(struct vc_law l, double x)
{
	return vc_law_at(&l, x);
}

static void two_samples_tell_const_linear_quadratic_and_affine_apart(void **unused)
{
	struct vc_sample c[] = { { 8, 4096 }, { 16, 4096 } }, l[] = { { 8, 4096 }, { 16, 8192 } };
	struct vc_sample q[] = { { 8, 4096 }, { 16, 16384 } };
	struct vc_sample a[] = { { 256, 255 * 4 }, { 384, 383 * 4 } };

	(void)unused;
	assert_int_equal(vc_law_fit(c, 2).kind, VC_LAW_CONST);
	assert_int_equal(vc_law_fit(l, 2).kind, VC_LAW_LINEAR);
	assert_true(at(vc_law_fit(l, 2), 32) == 16384);
	assert_int_equal(vc_law_fit(q, 2).kind, VC_LAW_QUADRATIC);
	assert_true(at(vc_law_fit(q, 2), 32) == 65536);
	assert_int_equal(vc_law_fit(a, 2).kind, VC_LAW_AFFINE);
	assert_true(at(vc_law_fit(a, 2), 2048) == 2047 * 4);
}

static void lengths_rounded_up_lie_beside_a_line(void **unused)
{
	struct vc_sample s[] = {
		{ 16, 342 * 400 }, { 24, 512 * 400 }, { 32, 683 * 400 } }; /* thirds of 64 x */
	struct vc_law l = vc_law_fit(s, 3);

	(void)unused;
	assert_int_equal(l.kind, VC_LAW_STEP);
	assert_true(l.residual > 0);
	assert_true(fabs(at(l, 128) / (2731 * 400) - 1) < 0.01);
}

/* Context that fits by memory of the card, as Unsloth published it for Llama-3.1-8B (QLoRA, rank
 * 32, batch 1) and for Hugging Face with flash attention: exactly affine. */
static void published_context_ladders_are_affine(void **unused)
{
	static const double gb[] = { 8, 12, 16, 24, 40, 48, 80 };
	static const double unsloth[] = { 2972, 21848, 40724, 78475, 153977, 191728, 342733 };
	static const double hf[] = { 0, 932, 2551, 5789, 12264, 15502, 28454 };

	(void)unused;
	struct vc_sample u[] = { { unsloth[0], gb[0] * 1e9 }, { unsloth[1], gb[1] * 1e9 } };
	struct vc_sample h[] = { { hf[1], gb[1] * 1e9 }, { hf[2], gb[2] * 1e9 } };
	struct vc_law a = vc_law_fit(u, 2), b = vc_law_fit(h, 2);
	assert_int_equal(a.kind, VC_LAW_AFFINE);
	for (int i = 2; i < 7; i++) {
		assert_true(at(a, unsloth[i]) > gb[i] * 0.9999e9 &&
			    at(a, unsloth[i]) < gb[i] * 1.0001e9);
		assert_true(at(b, hf[i]) > gb[i] * 0.999e9 && at(b, hf[i]) < gb[i] * 1.001e9);
	}
	assert_true(at(a, 0) > 7.36e9 && at(a, 0) < 7.38e9); /* everything but context */
	assert_true(at(b, 0) > 9.69e9 && at(b, 0) < 9.71e9);
}

static void three_samples_find_a_curve_and_flag_what_is_none(void **unused)
{
	struct vc_sample c[] = { { 1, 10 }, { 2, 26 }, { 4, 82 } }; /* 2 + 4x + 4x*x */
	struct vc_sample s[] = { { 6, 224 }, { 8, 295 }, { 48, 300 } };
	struct vc_sample down[] = { { 8, 4096 }, { 16, 1024 } };

	(void)unused;
	assert_int_equal(vc_law_fit(c, 3).kind, VC_LAW_CURVE);
	assert_true(at(vc_law_fit(c, 3), 8) == 290);
	assert_int_equal(vc_law_fit(s, 3).kind, VC_LAW_STEP);
	assert_true(vc_law_fit(s, 3).residual > 0);
	assert_int_equal(vc_law_fit(down, 2).kind, VC_LAW_STEP);
	assert_true(at(vc_law_fit(down, 2), 32) == 4096);
}

/* One coefficient through two samples is sure; a line is where a third one lies on it, or where it
 * is one in x + k. Else an end is also the size itself, or in proportion to it. */
static void a_law_is_sure_where_more_samples_than_needed_show_it(void **unused)
{
	struct vc_sample linear[] = { { 4, 400 }, { 8, 800 } },
			 token[] = { { 4, 500 }, { 8, 900 } },
			 any[] = { { 4, 1410 }, { 8, 1730 } },
			 three[] = { { 4, 1410 }, { 8, 1730 }, { 12, 2050 } };
	struct vc_law l = vc_law_fit(any, 2), sure = vc_law_fit(three, 3);

	(void)unused;
	assert_true(vc_law_fit(linear, 2).sure);
	assert_true(vc_law_fit(token, 2).sure);
	assert_false(l.sure);
	assert_true(at(l, 16) == 2370);
	assert_true(vc_law_end(&l, &any[1], 16, true) == 3460);
	assert_true(vc_law_end(&l, &any[1], 16, false) == 1730);
	assert_true(sure.sure && vc_law_end(&sure, &three[2], 16, true) == 2370);
}

/* 1090 + 80x: another law through both samples is a power of x, or has x*x in place of x. One that
 * begins below zero has x and x*x. */
static void a_line_has_another_law_beside_it(void **unused)
{
	struct vc_sample s[] = { { 4, 1410 }, { 8, 1730 } }, down[] = { { 8, 600 }, { 16, 1400 } };
	struct vc_law l = vc_law_fit(s, 2), below = vc_law_fit(down, 2);

	(void)unused;
	assert_true(vc_law_other(&l, true, 8) == 1730 && vc_law_other(&l, false, 4) == 1410);
	assert_true(vc_law_other(&l, true, 16) == 2123); /* 1730 * 1730 / 1410 */
	assert_true(vc_law_other(&l, false, 16) == 3010); /* 1410 + 20 / 3 * (256 - 16) */
	assert_int_equal(below.kind, VC_LAW_AFFINE);
	assert_true(vc_law_other(&below, false, 32) == 3600); /* 62.5 * 32 + 1.5625 * 32 * 32 */
}

/* Means of data: in proportion as long as that misses no more than their noise explains. */
static void means_are_in_proportion_within_their_noise(void **unused)
{
	struct vc_sample s[] = { { 4, 410 }, { 8, 780 } }, flat[] = { { 4, 500 }, { 8, 505 } };

	(void)unused;
	assert_int_equal(vc_law_fit_means(s, 2, 0.05).kind, VC_LAW_LINEAR);
	assert_int_equal(vc_law_fit_means(flat, 2, 0.01).kind, VC_LAW_CONST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_law_is_sure_where_more_samples_than_needed_show_it),
		cmocka_unit_test(a_line_has_another_law_beside_it),
		cmocka_unit_test(means_are_in_proportion_within_their_noise),
		cmocka_unit_test(published_context_ladders_are_affine),
		cmocka_unit_test(two_samples_tell_const_linear_quadratic_and_affine_apart),
		cmocka_unit_test(lengths_rounded_up_lie_beside_a_line),
		cmocka_unit_test(three_samples_find_a_curve_and_flag_what_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
