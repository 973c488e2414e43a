/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - JSON is read token by token and written so that it reads back. */
#include "tests/support/test.h"

#include "common/value.h"

/* The tokens of a document as text: {k:v} with 'texts', numbers as written. */
static int spell(const char *doc, size_t n, char *out, size_t cap, struct vc_error *err)
{
	static const char *const mark[] = {
		[VC_J_OBJECT] = "{",    [VC_J_OBJECT_END] = "}", [VC_J_ARRAY] = "[",
		[VC_J_ARRAY_END] = "]", [VC_J_TRUE] = "t",       [VC_J_FALSE] = "f",
		[VC_J_NULL] = "n",
	};
	struct vc_input *in = vc_input_memory(doc, n, err);
	struct vc_json j;
	size_t used = 0;
	int t;

	out[0] = '\0';
	assert_int_equal(vc_json_open(&j, in, err), 0);
	while ((t = vc_json_next(&j, err)) > 0) {
		if (t == VC_J_KEY || t == VC_J_TEXT)
			used += (size_t)snprintf(out + used, cap - used,
						 t == VC_J_KEY ? "%s:" : "'%s'", j.text);
		else if (t == VC_J_NUMBER && j.is_integer)
			used += (size_t)snprintf(out + used, cap - used, "%lld,",
						 (long long)j.integer);
		else if (t == VC_J_NUMBER)
			used += (size_t)snprintf(out + used, cap - used, "%g,", j.real);
		else
			used += (size_t)snprintf(out + used, cap - used, "%s", mark[t]);
		assert_true(used < cap);
	}
	vc_json_close(&j);
	vc_input_close(in);
	return t;
}

static void reads(const char *doc, const char *expect)
{
	struct vc_error err = { 0 };
	char out[1000];

	/* Numbers are read in another way where more bytes than theirs are at hand. */
	for (int padded = 0; padded < 2; padded++) {
		char copy[300];
		int n = snprintf(copy, sizeof(copy), "%s%*s", doc, padded ? 40 : 0, "");

		if (spell(copy, (size_t)n, out, sizeof(out), &err))
			fail_msg("%s: %s", doc, err.message);
		assert_string_equal(out, expect);
	}
}

static void refuses(const char *doc, size_t n, const char *sentence)
{
	char out[10000], copy[3000];

	assert_true(n < sizeof(copy) - 40);
	memset(copy, ' ', sizeof(copy));
	memcpy(copy, doc, n);
	for (size_t more = 0; more <= 40; more += 40) {
		struct vc_error err = { 0 };

		assert_int_not_equal(spell(copy, n + more, out, sizeof(out), &err), 0);
		if (!strstr(err.message, sentence) && !(more && n && doc[n - 1] != ']'))
			fail_msg("'%s' does not say '%s'", err.message, sentence);
	}
}
#define REFUSES(doc, sentence) refuses(doc, sizeof(doc) - 1, sentence)

static void every_kind_of_value(void **unused)
{
	(void)unused;
	reads("{}", "{}");
	reads(" [ ] ", "[]");
	reads("[1, -2, 0, 1.5, 1e3, -9223372036854775808, 9223372036854775808]",
	      "[1,-2,0,1.5,1000,-9223372036854775808,9.22337e+18,]");
	reads("[true,false,null]", "[tfn]");
	reads("[NaN, Infinity, -Infinity]", "[nan,inf,-inf,]");
	reads("{\"a\":{\"b\":[{}]},\"c\":\"d\"}", "{a:{b:[{}]}c:'d'}");
	reads("\"alone\"", "'alone'");
	reads("7", "7,");
}

/* Every number is what the C library makes of its digits, to the last bit. */
static void numbers_are_exact(void **unused)
{
	uint64_t seed = 1;

	(void)unused;
	for (int i = 0; i < 200000; i++) {
		char digits[64], doc[128];
		struct vc_error err = { 0 };
		struct vc_input *in;
		struct vc_json j;
		int n, point;
		double real;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		n = snprintf(digits, sizeof(digits), "%s%llu", seed >> 63 ? "-" : "",
			     (unsigned long long)(seed >> (seed >> 58)));
		point = (int)(seed >> 40) % (n + 8);
		if (point > (*digits == '-') && point < n) {
			memmove(digits + point + 1, digits + point, (size_t)(n + 1 - point));
			digits[point] = '.';
		}
		n = snprintf(doc, sizeof(doc), "[%s]%40s", digits, "");
		in = vc_input_memory(doc, (size_t)n, &err);
		assert_int_equal(vc_json_open(&j, in, &err), 0);
		assert_int_equal(vc_json_next(&j, &err), VC_J_ARRAY);
		assert_int_equal(vc_json_next(&j, &err), VC_J_NUMBER);
		real = strtod(digits, NULL);
		assert_memory_equal(&j.real, &real, sizeof(real));
		assert_string_equal(j.text, digits);
		if (j.is_integer)
			assert_true(j.integer == strtoll(digits, NULL, 10));
		else
			assert_true(strchr(digits, '.') || strlen(digits) >= 19);
		vc_json_close(&j);
		vc_input_close(in);
	}
}

static void texts_and_escapes(void **unused)
{
	(void)unused;
	reads("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "'\"\\/\b\f\n\r\t'");
	reads("\"\\u00e9\\u20ac\\ud83d\\ude00\"", "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'");
	reads("\"\\ud83dx\\ude00\"", "'\xef\xbf\xbdx\xef\xbf\xbd'");
	reads("\"\xc3\xa9\"", "'\xc3\xa9'");
}

static void damage_is_one_sentence(void **unused)
{
	(void)unused;
	REFUSES("", "ends too early");
	REFUSES("{", "ends too early");
	REFUSES("[1,", "ends too early");
	REFUSES("{\"a\"", "ends too early");
	REFUSES("\"abc", "ends too early");
	REFUSES("\"abc\\u12", "ends too early");
	REFUSES("[1 2]", "comma");
	REFUSES("{\"a\" 1}", "colon");
	REFUSES("{a:1}", "key");
	REFUSES("[1,]", "no value");
	REFUSES("{\"a\":1,}", "key");
	REFUSES("[}", "no value");
	REFUSES("{} {}", "follows");
	REFUSES("[tru]", "no value");
	REFUSES("[--1]", "no value");
	REFUSES("[0x10]", "no value");
	REFUSES("[nan]", "no value");
	REFUSES("\"a\nb\"", "control character");
	REFUSES("\"\\x41\"", "escape");
	REFUSES("\"\\uzzzz\"", "four hexadecimal");
}

static void depth_is_bounded(void **unused)
{
	char deep[2000];

	(void)unused;
	memset(deep, '[', sizeof(deep));
	refuses(deep, sizeof(deep), "512 levels");
}

static void skipping_goes_past_a_value(void **unused)
{
	static const char doc[] = "{\"a\":[1,{\"b\":[2]},\"]\"],\"c\":3}";
	struct vc_error err = { 0 };
	struct vc_input *in = vc_input_memory(doc, sizeof(doc) - 1, &err);
	struct vc_json j;

	(void)unused;
	assert_int_equal(vc_json_open(&j, in, &err), 0);
	assert_int_equal(vc_json_next(&j, &err), VC_J_OBJECT);
	assert_int_equal(vc_json_next(&j, &err), VC_J_KEY);
	assert_int_equal(vc_json_skip(&j, vc_json_next(&j, &err), &err), 0);
	assert_int_equal(vc_json_next(&j, &err), VC_J_KEY);
	assert_string_equal(j.text, "c");
	assert_int_equal(vc_json_skip(&j, vc_json_next(&j, &err), &err), 0);
	assert_int_equal(vc_json_next(&j, &err), VC_J_OBJECT_END);
	assert_int_equal(vc_json_next(&j, &err), VC_J_END);
	vc_json_close(&j);
	vc_input_close(in);
}

static void what_is_skipped_is_checked(void **unused)
{
	static const char *const damaged[] = { "[1 2]", "[\"a\nb\"]", "[--1]", "[1.2.3]", "[}",
					      "[tru]", "{\"a\" 1}", "[\"\\x\"]" };

	(void)unused;
	for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		struct vc_error err = { 0 };
		char doc[100];
		int n = snprintf(doc, sizeof(doc), "%s%40s", damaged[i], "");
		struct vc_input *in = vc_input_memory(doc, (size_t)n, &err);
		struct vc_json j;

		assert_int_equal(vc_json_open(&j, in, &err), 0);
		assert_true(vc_json_skip(&j, vc_json_next(&j, &err), &err) < 0);
		assert_non_null(strstr(err.message, "damaged JSON"));
		vc_json_close(&j);
		vc_input_close(in);
	}
}

static void what_is_written_reads_back(void **unused)
{
	struct vc_error err = { 0 };
	char text[256], *doc, out[2000], expect[600];
	size_t n;

	(void)unused;
	for (int i = 0; i < 255; i++) /* every byte; from 128 on none of them is UTF-8 alone */
		text[i] = (char)(i + 1);
	struct vc_output *o = vc_output_memory(&err);

	vc_json_quote(o, text, 127);
	vc_json_quote(o, text + 127, 128);
	vc_json_quote(o, "\xc3\xa9\xf0\x9f\x98\x80\xed\xa0\x80\xc0\x80", 11);
	doc = vc_output_take(o, &n);
	vc_output_close(o);
	for (size_t i = 0; i < n; i++)
		assert_true((unsigned char)doc[i] >= 0x20);
	assert_int_equal(spell(doc, 1 + (size_t)(strstr(doc, "\"\"") - doc), out,
			       sizeof(out), &err), 0);
	snprintf(expect, sizeof(expect), "'%.127s'", text);
	assert_string_equal(out, expect);
	assert_non_null(strstr(doc, "\xc3\xa9\xf0\x9f\x98\x80\\ufffd"));
	free(doc);
}

static struct vc_value *parse(const char *doc, struct vc_error *err)
{
	return vc_value_parse(doc, strlen(doc), err);
}

static void a_document_is_read_whole(void **state)
{
	struct vc_error err = { 0 };
	struct vc_value *v = parse("{\"a\":[1,-2,\"x\"],\"b\":{\"c\":2.5},\"d\":null}", &err);
	const struct vc_value *a = vc_value_get(v, "a"), *b = vc_value_get(v, "b"),
			      *c = vc_value_get(b, "c");
	uint64_t n = 0;

	(void)state;
	assert_true(vc_value_count(a->first, &n) && n == 1);
	assert_false(vc_value_count(a->first->next, &n));
	assert_string_equal(a->first->next->next->text, "x");
	assert_string_equal(c->text, "2.5");
	assert_false(vc_value_count(c, &n));
	assert_int_equal(vc_value_get(v, "d")->kind, VC_J_NULL);
	assert_null(vc_value_get(v, "e"));
	assert_null(vc_value_text(v, "d"));
	vc_value_free(v);
	assert_null(parse("[1,2", &err));
	assert_true(strlen(err.message) > 0);
	assert_null(parse("[1] 2", &err));
	assert_null(parse("", &err));
}

static void lines_come_one_by_one(void **state)
{
	static const char doc[] = "one\n\nthree";
	struct vc_error err = { 0 };
	struct vc_input *in = vc_input_memory(doc, strlen(doc), &err);
	size_t cap = 0, n;
	char *line = NULL;

	(void)state;
	assert_int_equal(vc_input_line(in, 5, &line, &cap, &n, &err), 1);
	assert_string_equal(line, "one");
	assert_int_equal(vc_input_line(in, 5, &line, &cap, &n, &err), 1);
	assert_int_equal(n, 0);
	assert_int_equal(vc_input_line(in, 4, &line, &cap, &n, &err), VC_EFORMAT);
	assert_int_equal(vc_input_line(in, 5, &line, &cap, &n, &err), 1);
	assert_string_equal(line, "three");
	assert_int_equal(vc_input_line(in, 5, &line, &cap, &n, &err), 0);
	free(line);
	vc_input_close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_value),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(texts_and_escapes),
		cmocka_unit_test(damage_is_one_sentence),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(skipping_goes_past_a_value),
		cmocka_unit_test(what_is_skipped_is_checked),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(a_document_is_read_whole),
		cmocka_unit_test(lines_come_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
