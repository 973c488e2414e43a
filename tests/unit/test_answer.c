/* SPDX-License-Identifier: Apache-2.0 */
/* test_answer.c - verdicts and levels: their names, which of them counts, and the device on which
 * an end of an interval is replayed. */
#include "tests/support/test.h"

#include "simulator/replay/device.h"
#include "simulator/session/answer.h"
#include "simulator/session/bounds.h"

static void names_of_verdicts_and_levels_are_read_back(void **unused)
{
	(void)unused;
	for (int v = VC_FITS; v <= VC_OOM; v++)
		assert_int_equal(vc_verdict_by_name(vc_verdict_name((enum vc_verdict)v)), v);
	assert_true(vc_verdict_by_name("unsure") < 0);
	for (int l = VC_EXACT; l <= VC_UNKNOWN; l++)
		assert_int_equal(vc_level_by_name(vc_level_name((enum vc_level)l)), l);
	assert_int_equal(vc_level_by_name("certain"), VC_LEVEL_NONE);
	assert_null(vc_level_name(VC_LEVEL_NONE));
}

static void an_answer_counts_for_more_than_the_replay(void **unused)
{
	struct vc_result r = { .stats = { .flushes = 1 } };

	(void)unused;
	assert_int_equal(vc_result_verdict(&r), VC_FLUSHES);
	r.trust = (struct vc_trust){ .level = VC_BOUNDS, .verdict = VC_UNDECIDED };
	assert_int_equal(vc_result_verdict(&r), VC_UNDECIDED);
	assert_int_equal(vc_result_replayed(&r), VC_FLUSHES);
	r.stats.ooms = 1;
	assert_int_equal(vc_result_replayed(&r), VC_OOM);
}

static uint64_t available(uint64_t context, int64_t more, uint64_t *limit)
{
	struct vc_device_config c = { .total = 1000 << 20, .context = context, .more = more };
	struct vc_error err = { 0 };
	struct vc_device *d = vc_device_new(&c, &err);
	uint64_t left;

	assert_non_null(d);
	left = vc_device_available(d);
	*limit = vc_device_limit(d, 100 << 20);
	vc_device_free_all(d);
	return left;
}

static void a_run_that_needs_more_has_less_of_the_device_and_of_every_limit(void **unused)
{
	uint64_t limit;

	(void)unused;
	assert_int_equal(available(10 << 20, 0, &limit), 990 << 20);
	assert_int_equal(limit, 100 << 20);
	assert_int_equal(available(10 << 20, 30 << 20, &limit), 960 << 20);
	assert_int_equal(limit, 70 << 20);
	assert_int_equal(available(10 << 20, -(50 << 20), &limit), 1040 << 20);
	assert_int_equal(limit, 150 << 20);
	assert_int_equal(available(0, 2000 << 20, &limit), 0);
	assert_int_equal(limit, 0);
}

static void a_version_is_another_by_its_release_only(void **unused)
{
	struct vc_recording rec = { .made_by = "2.9.1+cu128" };
	struct vc_plan p = { .torch = "2.9" };

	(void)unused;
	assert_false(vc_answer_other_torch(&rec, &p));
	strcpy(p.torch, "2.10");
	assert_true(vc_answer_other_torch(&rec, &p));
	strcpy(rec.made_by, "2.1");
	assert_true(vc_answer_other_torch(&rec, &p));
	rec.made_by[0] = '\0'; /* nobody knows */
	assert_false(vc_answer_other_torch(&rec, &p));
	strcpy(rec.made_by, "2.9");
	p.torch[0] = '\0'; /* a model without versions */
	assert_false(vc_answer_other_torch(&rec, &p));
}

static void a_change_whose_error_was_measured_is_not_unknown(void **unused)
{
	const char *known[] = { "lora", "fraction:f=0.5" }, *none[] = { "no-such" };

	(void)unused;
	assert_false(vc_bounds_unknown(&(struct vc_list){ known, 2 }));
	assert_true(vc_bounds_wanted(&(struct vc_list){ known, 2 }));
	assert_false(vc_bounds_unknown(&(struct vc_list){ none, 1 })); /* the run complains */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_verdicts_and_levels_are_read_back),
		cmocka_unit_test(an_answer_counts_for_more_than_the_replay),
		cmocka_unit_test(a_run_that_needs_more_has_less_of_the_device_and_of_every_limit),
		cmocka_unit_test(a_version_is_another_by_its_release_only),
		cmocka_unit_test(a_change_whose_error_was_measured_is_not_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
