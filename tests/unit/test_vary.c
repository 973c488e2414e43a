/* SPDX-License-Identifier: Apache-2.0 */
/* test_vary.c - the values that a sweep takes, and how settings strings are set apart. */
#include "tests/support/test.h"

#include "simulator/search/vary.h"

static void values(const char *text, const char *const *want, size_t n)
{
	struct vc_vary v = { 0 };
	struct vc_error err = { 0 };

	if (vc_vary_add(&v, text, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(v.key[0].n, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(v.key[0].value[i], want[i]);
	vc_vary_fini(&v);
}
#define VALUES(text, ...)                                                                        \
	do {                                                                                      \
		const char *const want[] = { __VA_ARGS__ };                                       \
		values(text, want, sizeof(want) / sizeof(*want));                                 \
	} while (0)

static void numbers(void **unused)
{
	(void)unused;
	VALUES("batch=8,16,32", "8", "16", "32");
	VALUES("batch=1..3", "1", "2", "3");
	VALUES("batch=8..26+8", "8", "16", "24");
	VALUES("batch=1..8*2", "1", "2", "4", "8");
}

static void settings_are_set_apart_where_one_comes_again(void **unused)
{
	(void)unused;
	VALUES("conf=max_split_size_mb:128,max_split_size_mb:256", "max_split_size_mb:128",
	       "max_split_size_mb:256");
	VALUES("conf=max_split_size_mb:128,expandable_segments:True,max_split_size_mb:64",
	       "max_split_size_mb:128,expandable_segments:True", "max_split_size_mb:64");
	VALUES("conf=|expandable_segments:True", "", "expandable_segments:True");
}

static void nonsense_is_refused(void **unused)
{
	static const char *const bad[] = { "batch=8..4", "batch=x", "batch" };

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct vc_vary v = { 0 };
		struct vc_error err = { 0 };

		assert_true(vc_vary_add(&v, bad[i], &err) < 0);
		assert_int_equal(err.status, VC_EUSAGE);
		vc_vary_fini(&v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(settings_are_set_apart_where_one_comes_again),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
