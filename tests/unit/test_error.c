/* SPDX-License-Identifier: Apache-2.0 */
/* test_error.c - errors keep their first cause and gain context on the way up. */
#include "tests/support/test.h"

#include "common/error.h"

static void the_first_failure_writes_the_message(void **unused)
{
	struct vc_error e = { 0 };

	(void)unused;
	assert_int_equal(vc_fail(&e, VC_EFORMAT, "event %d: alloc without size", 812), VC_EFORMAT);
	assert_int_equal(vc_wrap(&e, "%s", "llama.pickle"), VC_EFORMAT);
	assert_string_equal(e.message, "llama.pickle: event 812: alloc without size");
}

static void context_survives_a_message_that_is_too_long(void **unused)
{
	struct vc_error e = { 0 };
	char longer[2000];

	(void)unused;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	vc_fail(&e, VC_EIO, "%s", longer);
	vc_wrap(&e, "reading a.vct");
	assert_int_equal(strncmp(e.message, "reading a.vct: xxx", 18), 0);
	assert_true(strlen(e.message) < sizeof(e.message));
}

static void no_error_object_is_fine(void **unused)
{
	(void)unused;
	assert_int_equal(vc_fail(NULL, VC_EIO, "x"), VC_EIO);
	assert_int_equal(vc_wrap(NULL, "x"), VC_EINTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_failure_writes_the_message),
		cmocka_unit_test(context_survives_a_message_that_is_too_long),
		cmocka_unit_test(no_error_object_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
