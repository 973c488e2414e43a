/* SPDX-License-Identifier: Apache-2.0 */
/* test_align.c - which allocation of one recording is which of another: the edges of its rules. */
#include "tests/support/test.h"

#include "simulator/predict/align.h"

enum { MANY = 2100 };

static struct vc_take a[MANY], b[MANY];
static uint32_t match[MANY];

/* n blocks of one place, each of another size. */
static void blocks(struct vc_take *t, size_t n, double ratio)
{
	for (size_t i = 0; i < n; i++)
		t[i] = (struct vc_take){ .size = (uint64_t)(ratio * (double)(8000 + 40 * i)),
					 .site = 7, .life = 3 };
}

static size_t matched(size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += match[i] != VC_UNMATCHED;
	return k;
}

static void nothing_grows_faster_than_the_fastest_law(void **unused)
{
	static const struct { double ratio; bool good; } at[] = {
		{ 2.03, true }, { 2.05, false }, { 0.985, true }, { 0.975, false } };

	(void)unused;
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct vc_ratios r = { .at = { 1, 2 }, .n = 2 };

		blocks(a, 1, 1);
		blocks(b, 1, at[i].ratio);
		assert_int_equal(vc_align(a, 1, b, 1, &r, match, NULL), 0);
		assert_int_equal(matched(1), at[i].good);
	}
}

static void a_hole_of_four_million_cells_is_worth_the_work(void **unused)
{
	(void)unused;
	for (size_t more = 0; more <= 1; more++) {
		struct vc_ratios r = { .at = { 1, 2 }, .n = 2 };

		blocks(a, 2000, 1);
		blocks(b, 2000 + more, 1.5);
		for (size_t i = 0; i < 2000 + more; i++)
			b[i].size++; /* odd: by chance none is of a law's ratio */
		assert_int_equal(vc_align(a, 2000, b, 2000 + more, &r, match, NULL), 0);
		assert_int_equal(matched(2000), more ? 0 : 2000);
	}
}

static void of_two_that_could_be_the_one_that_lived_as_long_is_it(void **unused)
{
	struct vc_ratios r = { .at = { 1, 2 }, .n = 2 };

	(void)unused;
	blocks(a, 1, 1);
	for (size_t i = 0; i < 3; i++) {
		blocks(&b[i], 1, 1.3 + 0.2 * (double)i);
		b[i].life = i == 1 ? 3 : 9;
	}
	assert_int_equal(vc_align(a, 1, b, 3, &r, match, NULL), 0);
	assert_int_equal(match[0], 1);
	a[0].life = b[2].life = 1; /* gone at once, where the others are not */
	b[1].life = 9;
	assert_int_equal(vc_align(a, 1, b, 3, &r, match, NULL), 0);
	assert_int_equal(match[0], 2);
}

static void one_in_fifty_may_live_longer_in_a_counterpart(void **unused)
{
	(void)unused;
	for (size_t other = 2; other <= 3; other++) {
		blocks(a, 100, 1);
		blocks(b, 100, 1);
		/* Two of one place change their order: block by block they are what they were. */
		a[10].size = b[11].size = 5000;
		a[11].size = b[10].size = 10000;
		for (size_t i = 0; i < other; i++)
			b[50 + i].life = 4;
		assert_int_equal(vc_align_some(a, 100, NULL, b, 100, NULL, 2, match, NULL), 0);
		assert_int_equal(match[10] == 10 && match[11] == 11, other == 2);
	}
}

static void fourth_powers_are_tried_where_much_stays_alone(void **unused)
{
	(void)unused;
	for (int share = 12; share <= 18; share += 6) {
		/* Of 100 parts, `share` grow with the cube; the first block is extra in b. */
		a[0] = a[1] = (struct vc_take){ .site = 1, .life = 3 };
		a[0].size = (uint64_t)(100 - share) << 20;
		a[1].size = (uint64_t)share << 20;
		b[0] = (struct vc_take){ .size = 5000, .site = 9, .life = 3 };
		b[1] = a[0];
		b[2] = a[1];
		b[2].size *= 8;
		assert_int_equal(vc_align_some(a, 2, NULL, b, 3, NULL, 2, match, NULL), 0);
		assert_int_equal(match[1], share == 18 ? 2 : VC_UNMATCHED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_grows_faster_than_the_fastest_law),
		cmocka_unit_test(a_hole_of_four_million_cells_is_worth_the_work),
		cmocka_unit_test(of_two_that_could_be_the_one_that_lived_as_long_is_it),
		cmocka_unit_test(one_in_fifty_may_live_longer_in_a_counterpart),
		cmocka_unit_test(fourth_powers_are_tried_where_much_stays_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
