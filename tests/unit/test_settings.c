/* SPDX-License-Identifier: Apache-2.0 */
/* test_settings.c - what a program changes at run time, on top of other settings than it had. */
#include "tests/support/test.h"

#include "simulator/replay/settings.h"

/* What the program wrote, what it had, what it has in this run, what it would then have written. */
static void changes_go_on_top_of_what_is_set_now(void **unused)
{
	static const char *const row[][4] = {
		{ "max_split_size_mb:20", "", "", "max_split_size_mb:20" },
		{ "max_split_size_mb:20", "", "a:1", "a:1,max_split_size_mb:20" },
		{ "", "", "a:1", "a:1" }, /* the old string again */
		{ "a:1", "a:1", "a:2", "a:2" },
		{ "a:1,b:2", "a:1", "c:3", "c:3,b:2" },
		{ "e:False,b:2", "e:True", "", "e:False,b:2" },
		{ "e:False", "e:True", "e:True,d:1", "e:True,d:1,e:False" }, /* the last counts */
		{ "", "a:1", "a:2,b:3", "b:3" }, /* it was taken away */
		{ "r:[256:1,512:2],b:2", "r:[256:1,512:2]", "r:4", "r:4,b:2" },
	};
	char buf[128];

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		assert_string_equal(vc_settings_over(row[i][0], row[i][1], row[i][2], buf,
						     sizeof(buf)), row[i][3]);
	vc_settings_over("aaaa:1,bbbb:2", "", "cccc:3", buf, 9); /* no room: cut off, no harm */
	assert_int_equal(strlen(buf), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_go_on_top_of_what_is_set_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
