/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_window.c - the address policies that imitate the drivers of Linux and Windows. */
#include "tests/support/test.h"

#include "simulator/replay/device.h"

#define MIB (1ull << 20)

static uint64_t take(struct vc_device *d, uint64_t size)
{
	uint64_t a = 0;

	assert_true(vc_device_alloc(d, size, &a));
	return a;
}

/* The pattern of a real snapshot: 2 MiB goes behind the 90 MiB one, 12 MiB behind the lowest 20. */
static void windows_go_down_and_their_ends_are_used(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_WINDOW };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t first = take(d, 90 * MIB);

	(void)unused;
	assert_true(take(d, 20 * MIB) == first - 32 * MIB);
	assert_true(take(d, 2 * MIB) == first + 90 * MIB);
	assert_true(take(d, 20 * MIB) == first - 64 * MIB);
	assert_true(take(d, 32 * MIB) == first - 96 * MIB);
	assert_true(take(d, 12 * MIB) == first - 44 * MIB);
	assert_true(vc_device_ok(d));
	vc_device_free_all(d);
}

static void a_freed_range_is_used_again(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_WINDOW };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t a = take(d, 64 * MIB), b = take(d, 64 * MIB);

	(void)unused;
	assert_true(b == a - 64 * MIB);
	vc_device_free(d, b, 64 * MIB);
	vc_device_free(d, a, 64 * MIB);
	assert_true(take(d, 128 * MIB) == b);
	vc_device_free_all(d);
}

/* No windows: what comes next lies right above, whole granules long. */
static void addresses_go_up_as_on_windows(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_UP };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t first = take(d, 90 * MIB);

	(void)unused;
	assert_true(take(d, 20 * MIB) == first + 90 * MIB);
	assert_true(take(d, 1) == first + 110 * MIB);
	assert_true(take(d, 40 * MIB) == first + 112 * MIB);
	assert_true(vc_device_ok(d));
	vc_device_free_all(d);
}

static void going_up_the_smallest_freed_range_that_suits_comes_first(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_UP };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t a = take(d, 90 * MIB), b = take(d, 20 * MIB), c = take(d, 2 * MIB),
		 e = take(d, 40 * MIB);

	(void)unused;
	vc_device_free(d, a, 90 * MIB);
	vc_device_free(d, c, 2 * MIB);
	assert_true(take(d, 2 * MIB) == c);
	assert_true(take(d, 64 * MIB) == a);
	assert_true(take(d, 28 * MIB) == e + 40 * MIB); /* 26 MiB are left of the first */
	assert_true(take(d, 26 * MIB) == a + 64 * MIB);
	vc_device_free(d, c, 2 * MIB);
	vc_device_free(d, b, 20 * MIB);
	assert_true(take(d, 22 * MIB) == b); /* neighbours are joined */
	vc_device_free_all(d);
}

/* The first segments of a recorded run on an H100: 20 and 2 MiB lie together in what the context
 * left over, the next in the large range below, upwards; 600 MiB need a window of their own. */
static void what_the_context_left_over_comes_first(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_CONTEXT };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t first = take(d, 20 * MIB), large, window;

	(void)unused;
	assert_true(vc_va_of_first(first) == VC_VA_CONTEXT);
	assert_true(take(d, 2 * MIB) == first + 20 * MIB);
	assert_true(take(d, 2 * MIB) == first + 22 * MIB);
	large = take(d, 2 * MIB);
	assert_true(large < first);
	assert_true(take(d, 32 * MIB) == large + 2 * MIB);
	assert_true(take(d, 20 * MIB) == large + 34 * MIB);
	window = take(d, 600 * MIB);
	assert_true(window + 608 * MIB == large);
	assert_true(vc_va_of_first(window) == VC_VA_WINDOW);
	assert_true(vc_device_ok(d));
	vc_device_free_all(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_go_down_and_their_ends_are_used),
		cmocka_unit_test(a_freed_range_is_used_again),
		cmocka_unit_test(addresses_go_up_as_on_windows),
		cmocka_unit_test(what_the_context_left_over_comes_first),
		cmocka_unit_test(going_up_the_smallest_freed_range_that_suits_comes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
