/* SPDX-License-Identifier: Apache-2.0 */
/* test_peaks.c - a moment that the watch lets pass would have changed nothing. */
#include "tests/support/test.h"

#include "simulator/replay/peaks.h"

static uint64_t dice(uint64_t *state, uint64_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
	return (*state >> 33) % n;
}

/* Few values, so that moments are often equally full; now and then other processes come or go. */
static void walk(uint64_t seed)
{
	struct vc_stats all = { 0 }, watched = { 0 };
	struct vc_watch ignored, watch = { 0 };
	struct vc_totals now = { 0 };
	struct vc_at at = { .beside = dice(&seed, 4), .context = 0 };
	bool rises, rose;

	vc_peaks_most(&all, &now, &at, &ignored);
	vc_peaks_most(&watched, &now, &at, &watch);
	for (at.event = 1; at.event < 200; at.event++) {
		bool others = !dice(&seed, 20);

		now.reserved = dice(&seed, 6);
		now.allocated = now.active = dice(&seed, now.reserved + 1);
		if (others)
			at.beside = dice(&seed, 4);
		rises = vc_peaks_most(&all, &now, &at, &ignored);
		rose = (others || now.reserved > watch.reserved ||
			(now.reserved == watch.reserved && now.allocated > watch.allocated)) &&
		       vc_peaks_most(&watched, &now, &at, &watch);
		assert_int_equal(rises, rose);
		assert_memory_equal(&all, &watched, sizeof(all));
	}
}

static void what_passes_the_watch_changes_nothing(void **unused)
{
	(void)unused;
	for (uint64_t seed = 0; seed < 2000; seed++)
		walk(seed);
}

static void of_equal_moments_the_fullest_counts(void **unused)
{
	struct vc_stats s = { 0 };
	struct vc_watch watch;
	struct vc_totals now = { .reserved = 8, .allocated = 5, .active = 6 };

	(void)unused;
	assert_true(vc_peaks_most(&s, &now, &(struct vc_at){ 3, 30, 4, 1 }, &watch));
	now.allocated = now.active = 7;
	assert_false(vc_peaks_most(&s, &now, &(struct vc_at){ 4, 40, 4, 1 }, &watch));
	now.allocated = 2;
	assert_false(vc_peaks_most(&s, &now, &(struct vc_at){ 5, 50, 6, 1 }, &watch));
	assert_int_equal(s.peak_reserved, 8);
	assert_int_equal(s.peak_event, 4);
	assert_int_equal(s.peak_time_ns, 40);
	assert_int_equal(s.allocated_at_peak, 7);
	assert_int_equal(s.stranded_at_peak, 1);
	assert_int_equal(s.peak_used, 14);
	assert_int_equal(s.allocated_at_used, 2);
	assert_int_equal(s.others_at_used, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_passes_the_watch_changes_nothing),
		cmocka_unit_test(of_equal_moments_the_fullest_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
