/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt.c - command lines: long, short, bundled, repeated, and where a program begins. */
#include "tests/support/test.h"

#include <math.h>

#include "common/opt.h"

struct config {
	bool json, verify;
	const char *file;
	uint64_t size, jobs;
	double f;
	struct vc_list conf;
};

static const struct vc_option options[] = {
	{ 0, "json", VC_O_FLAG, offsetof(struct config, json), NULL, "as JSON", NULL },
	{ 0, "no-verify", VC_O_NOT, offsetof(struct config, verify), NULL, "trust it", NULL },
	{ 'o', "output", VC_O_TEXT, offsetof(struct config, file), "FILE", "where to", NULL },
	{ 0, "capacity", VC_O_SIZE, offsetof(struct config, size), "SIZE", "of the device", NULL },
	{ 'j', "jobs", VC_O_UINT, offsetof(struct config, jobs), "N", "threads", "1" },
	{ 0, "fraction", VC_O_REAL, offsetof(struct config, f), "F", "of it", NULL },
	{ 0, "conf", VC_O_LIST, offsetof(struct config, conf), "STRING", "settings", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { options, NULL };

static int nothing(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	(void)config; (void)argc; (void)argv; (void)con;
	return 0;
}

static struct vc_command command = { .name = "sim",
				    .operands = "TRACE",
				    .summary = "replay",
				    .options = tables,
				    .config_size = sizeof(struct config),
				    .run = nothing };

static void every_spelling_is_understood(void **unused)
{
	char *argv[] = { "a.vct", "--json",     "-o", "x.svg", "--capacity=24GiB", "-j4", "--conf",
			"a:1",   "--conf=b:2", "-v", "--quiet", "--", "--odd-name" };
	struct config c = { 0 };
	struct vc_console con = { 0 };
	size_t n;

	(void)unused;
	assert_int_equal(vc_opt_parse(&command, &c, 13, argv, &n, &con), VC_OK);
	assert_int_equal(n, 2);
	assert_string_equal(argv[0], "a.vct");
	assert_string_equal(argv[1], "--odd-name");
	assert_true(c.json && c.verify && con.quiet && con.verbose);
	assert_string_equal(c.file, "x.svg");
	assert_true(c.size == 24ull << 30 && c.jobs == 4 && isnan(c.f));
	assert_int_equal(c.conf.n, 2);
	assert_string_equal(c.conf.at[1], "b:2");
	vc_opt_fini(&command, &c);
}

static void what_was_not_given_is_known(void **unused)
{
	struct config c = { 0 };
	struct vc_console con = { 0 };
	size_t n;

	(void)unused;
	assert_int_equal(vc_opt_parse(&command, &c, 0, NULL, &n, &con), VC_OK);
	assert_true(c.size == VC_NOT_GIVEN && c.jobs == 1 && isnan(c.f) && !c.file && !c.conf.n &&
		    c.verify);
}

static void mistakes_get_one_helpful_sentence(void **unused)
{
	static const struct { const char *arg, *message; } bad[] = {
		{ "--jsno", "no option --jsno (did you mean --json?)" },
		{ "--json=1", "--json takes no value" },
		{ "--output", "--output wants a value (FILE)" },
		{ "-z", "no option -z (see 'vramcast help sim')" },
		{ "--jobs=many", "--jobs: 'many' is not a whole number" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char text[64], *argv[] = { text };
		struct config c = { 0 };
		struct vc_console con = { 0 };
		size_t n;

		snprintf(text, sizeof(text), "%s", bad[i].arg);
		assert_int_equal(vc_opt_parse(&command, &c, 1, argv, &n, &con), VC_EUSAGE);
		assert_string_equal(con.err.message, bad[i].message);
		vc_opt_fini(&command, &c);
	}
}

static void options_end_where_a_program_begins(void **unused)
{
	char *argv[] = { "-j", "2", "python", "train.py", "--json", "-o", "y" };
	struct config c = { 0 };
	struct vc_console con = { 0 };
	size_t n;

	(void)unused;
	command.flags = VC_CMD_PASSTHROUGH;
	assert_int_equal(vc_opt_parse(&command, &c, 7, argv, &n, &con), VC_OK);
	command.flags = 0;
	assert_int_equal(n, 5);
	assert_string_equal(argv[4], "y");
	assert_false(c.json);
}

static void help_lists_every_option_with_its_default(void **unused)
{
	struct vc_output *out = vc_output_memory(NULL);
	char *text;
	size_t n;

	(void)unused;
	vc_opt_help(&command, out);
	text = vc_output_take(out, &n);
	vc_output_close(out);
	assert_non_null(strstr(text, "vramcast sim [OPTION]... TRACE"));
	assert_non_null(strstr(text, "-j, --jobs N"));
	assert_non_null(strstr(text, "threads [1]"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_is_understood),
		cmocka_unit_test(what_was_not_given_is_known),
		cmocka_unit_test(mistakes_get_one_helpful_sentence),
		cmocka_unit_test(options_end_where_a_program_begins),
		cmocka_unit_test(help_lists_every_option_with_its_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
