/* SPDX-License-Identifier: Apache-2.0 */
/* test_layouts.c - what layouts that were played say about others. */
#include "tests/support/test.h"

#include "simulator/search/layouts.h"

static struct vc_layout layout(uint64_t tp, uint64_t pp, uint64_t dp, double own, double waits)
{
	return (struct vc_layout){ .at = { tp, 1, pp, 1, dp }, .own = own, .waits = waits };
}

static double least(struct vc_layout l, struct vc_layout p)
{
	const struct vc_layout *played = &p;

	return vc_layout_least(&l, &played, 1);
}

static void test_more_cards_compute_no_less(void **state)
{
	(void)state;
	struct vc_layout l = layout(4, 2, 1, 0, 0), other = layout(2, 1, 4, 100, 0);
	const struct vc_layout a = layout(2, 1, 4, 100, 0), b = layout(1, 2, 4, 90, 0);
	const struct vc_layout *both[] = { &b, &a };

	assert_true(vc_layout_least(&l, both, 2) == 100);
	assert_true(vc_layout_least(&l, both, 0) == 0);
	assert_true(least(layout(1, 8, 1, 0, 0), a) == 0); /* over fewer in one way */
	other.with = 1;
	assert_true(least(l, other) == 0);
	other = a;
	other.at[VC_EP] = 2;
	assert_true(least(l, other) == 0);
	assert_true(least(l, layout(2, 1, 4, 0, 0)) == 0); /* its time is not known */
}

static void test_pipelines_wait_by_stages(void **state)
{
	(void)state;
	struct vc_layout p = layout(1, 2, 8, 100, 0.16);

	/* three times the stages that wait, twice the micro-batches */
	assert_true(fabs(least(layout(1, 4, 4, 0, 0), p) - 124) < 1e-9);
	assert_true(fabs(least(layout(2, 2, 4, 0, 0), p) - 108) < 1e-9);
}

static void test_who_holds_no_less(void **state)
{
	(void)state;
	struct vc_layout l = layout(2, 2, 4, 0, 0), more = layout(4, 2, 2, 0, 0),
			 other = layout(1, 4, 4, 0, 0);

	assert_true(vc_layout_holds(&l, &more) && vc_layout_holds(&l, &l));
	assert_false(vc_layout_holds(&more, &l));
	assert_false(vc_layout_holds(&l, &other) || vc_layout_holds(&other, &l));
	more.with = 1;
	assert_false(vc_layout_holds(&l, &more));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_cards_compute_no_less),
		cmocka_unit_test(test_pipelines_wait_by_stages),
		cmocka_unit_test(test_who_holds_no_less),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
