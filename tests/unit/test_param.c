/* SPDX-License-Identifier: Apache-2.0 */
/* test_param.c - sizes, numbers and typed parameter lists as users type them. */
#include "tests/support/test.h"

#include <math.h>
#include <stdbool.h>

#include "common/param.h"

struct config { bool fast; uint64_t size, rule; double share; char text[VC_PARAM_TEXT]; };

static const struct vc_param table[] = {
	{ "fast", VC_P_BOOL, offsetof(struct config, fast), "false", "skip the slow part", NULL },
	{ "size", VC_P_SIZE, offsetof(struct config, size), "20MiB", "of a segment", NULL },
	{ "share", VC_P_REAL, offsetof(struct config, share), "0.5", "of the whole", NULL },
	{ "rule", VC_P_ENUM, offsetof(struct config, rule), "best", "which block",
	  "first,best,worst" },
	{ "text", VC_P_TEXT, offsetof(struct config, text), "", "a word", NULL },
	VC_PARAM_ALIAS("part", "share"), VC_PARAM_END };

static void sizes_take_binary_and_decimal_units(void **unused)
{
	static const struct { const char *text; uint64_t bytes;
	} ok[] = {
		{ "0", 0 },
		{ "1073741824", 1ull << 30 },
		{ "8G", 8ull << 30 },
		{ "8GiB", 8ull << 30 },
		{ "96MiB", 96ull << 20 },
		{ "512K", 512ull << 10 },
		{ "1.5GB", 1500000000 },
		{ "1152921504606846976", 1ull << 60 }, /* exact beyond 2^53 */
		{ "1152921504606846975", (1ull << 60) - 1 },
		{ "1024.0", 1024 },
		{ "2t", 2ull << 40 },
		{ ".5K", 512 },
	};
	uint64_t v;

	(void)unused;
	for (size_t i = 0; i < sizeof(ok) / sizeof(*ok); i++) {
		assert_int_equal(vc_parse_size(ok[i].text, &v, NULL), VC_OK);
		assert_int_equal(v, ok[i].bytes);
	}
}

static void sizes_refuse_signs_overflow_and_nonsense(void **unused)
{
	static const char *const bad[] = { "", "-1", "+1", "1X", "GiB", "0x10", "inf", "nan",
					   "18446744073709551616", "18446744073709551615",
					   "1152921504606846977", "1048577T", "99999999T",
					   "1 2", "1e" };
	struct vc_error e = { 0 };
	uint64_t v;

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(vc_parse_size(bad[i], &v, &e), VC_EUSAGE);
	vc_parse_size("lots", &v, &e);
	assert_string_equal(e.message, "'lots' is not a size (try 20MiB, 1.5GiB or plain bytes)");
	assert_int_equal(vc_parse_size("0.5", &v, &e), VC_EUSAGE);
	assert_string_equal(e.message, "'0.5' is a part of a byte (did you mean 0.5GiB?)");
}

static void numbers_are_decimal_and_say_what_is_wrong(void **unused)
{
	static const char *const bad[] = { "", "x", "0x10", "inf", "nan", "1e999", " 1", "1 ", "7B",
					   "--1", "1e", "1,5" };
	struct vc_error e = { 0 };
	uint64_t n;
	double v;

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(vc_parse_real(bad[i], &v, &e), VC_EUSAGE);
	assert_int_equal(vc_parse_real("-1.5e3", &v, NULL), VC_OK);
	assert_true(v == -1500);
	vc_parse_real("7B", &v, &e);
	assert_string_equal(e.message, "'7B' is not a number (write 7e9)");
	assert_int_equal(vc_parse_uint("9223372036854775807", &n, NULL), VC_OK);
	assert_int_equal(vc_parse_uint("9223372036854775808", &n, &e), VC_EUSAGE);
	assert_string_equal(e.message, "9223372036854775808 is too large a number");
	vc_parse_uint("-4", &n, &e);
	assert_string_equal(e.message, "'-4' is not a whole number from 0 on");
}

static void counts_may_be_thousands_of_millions(void **unused)
{
	struct vc_error e = { 0 };
	uint64_t bytes;
	double v;

	(void)unused;
	assert_int_equal(vc_parse_count("7B", &v, NULL), VC_OK);
	assert_true(v == 7e9);
	assert_int_equal(vc_parse_count("0.35M", &v, NULL), VC_OK);
	assert_true(v == 350000);
	assert_int_equal(vc_parse_count("4096", &v, NULL), VC_OK);
	assert_true(v == 4096);
	assert_int_equal(vc_parse_count("B", &v, &e), VC_EUSAGE);
	assert_int_equal(vc_parse_count("4k", &v, &e), VC_EUSAGE); /* 4000 or 4096? */
	assert_string_equal(e.message, "'4k' is not a number (write 4e3)");
	assert_int_equal(vc_parse_share("90%", &v, &bytes, NULL), VC_OK);
	assert_true(v == 90 && !bytes);
	assert_int_equal(vc_parse_share("1GiB", &v, &bytes, NULL), VC_OK);
	assert_true(v == 0 && bytes == 1 << 30);
	assert_int_equal(vc_parse_share("-1%", &v, &bytes, &e), VC_EUSAGE);
}

static void amounts_are_above_zero_and_can_be_counted(void **unused)
{
	struct vc_error e = { 0 };
	double v;

	(void)unused;
	assert_int_equal(vc_parse_amount("0.5", &v, NULL), VC_OK);
	assert_int_equal(vc_parse_amount("9007199254740992", &v, NULL), VC_OK);
	assert_int_equal(vc_parse_amount("0", &v, &e), VC_EUSAGE);
	assert_string_equal(e.message, "0 must be above zero");
	assert_int_equal(vc_parse_amount("-4", &v, &e), VC_EUSAGE);
	assert_int_equal(vc_parse_amount("1e19", &v, &e), VC_EUSAGE);
	assert_string_equal(e.message, "1e19 is too large a number: the largest is 9e+15");
}

static void computed_bytes_stay_in_their_range(void **unused)
{
	(void)unused;
	assert_int_equal(vc_size_of(NAN), 0);
	assert_int_equal(vc_size_of(-1), 0);
	assert_int_equal(vc_size_of(4096.9), 4096);
	assert_int_equal(vc_size_of(1e19), VC_SIZE_MOST);
	assert_int_equal(vc_size_of(INFINITY), VC_SIZE_MOST);
}

static void lists_start_from_the_defaults(void **unused)
{
	struct config c;

	(void)unused;
	assert_int_equal(vc_params_parse(table, &c, NULL, NULL), VC_OK);
	assert_false(c.fast);
	assert_int_equal(c.size, 20u << 20);
	assert_int_equal(c.rule, 1);
	assert_int_equal(vc_params_parse(table, &c, "fast,size=64MiB,rule=worst,text=abc", NULL),
			 VC_OK);
	assert_true(c.fast);
	assert_int_equal(c.size, 64u << 20);
	assert_int_equal(c.rule, 2);
	assert_string_equal(c.text, "abc");
}

static void a_typing_error_is_answered_with_the_nearest_name(void **unused)
{
	struct vc_error e = { 0 };
	struct config c;

	(void)unused;
	assert_int_equal(vc_params_parse(table, &c, "siez=1", &e), VC_EUSAGE);
	assert_string_equal(e.message, "no parameter is called 'siez' (did you mean size?)");
	assert_int_equal(vc_params_parse(table, &c, "rule=middle", &e), VC_EUSAGE);
	assert_string_equal(e.message, "rule: 'middle' is none of first,best,worst");
	assert_int_equal(vc_params_parse(table, &c, "size", &e), VC_EUSAGE);
	assert_string_equal(e.message, "size wants a value (size=20MiB)");
}

static void a_name_from_before_stays_accepted(void **unused)
{
	struct config c;
	uint64_t given = 0;

	(void)unused;
	assert_int_equal(vc_params_read(table, &c, "part=0.25,size=1K", &given, NULL), VC_OK);
	assert_true(c.share == 0.25 && c.size == 1024);
	assert_int_equal(given, 1 << 1 | 1 << 2); /* the row that it stands for, not its own */
	assert_ptr_equal(vc_param_find(table, "part"), &table[2]);
	assert_null(vc_param_find(table, "nothing"));
	assert_int_equal(vc_params_read(table, &c, NULL, &given, NULL), VC_OK);
	assert_true(c.share == 0.5 && !given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_take_binary_and_decimal_units),
		cmocka_unit_test(sizes_refuse_signs_overflow_and_nonsense),
		cmocka_unit_test(numbers_are_decimal_and_say_what_is_wrong),
		cmocka_unit_test(counts_may_be_thousands_of_millions),
		cmocka_unit_test(amounts_are_above_zero_and_can_be_counted),
		cmocka_unit_test(computed_bytes_stay_in_their_range),
		cmocka_unit_test(lists_start_from_the_defaults),
		cmocka_unit_test(a_name_from_before_stays_accepted),
		cmocka_unit_test(a_typing_error_is_answered_with_the_nearest_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
