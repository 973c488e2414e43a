/* SPDX-License-Identifier: Apache-2.0 */
/* test_samples.c - what a random batch of a data set holds, against all batches there are. */
#include "tests/support/test.h"

#include <math.h>
#include <unistd.h>

#include "simulator/search/samples.h"

/* Of all sets of `drawn` samples among `all`, the share that holds one of the first `some`. */
static double counted(unsigned all, unsigned some, unsigned drawn)
{
	unsigned sets = 0, with = 0;

	for (unsigned set = 0; set < 1u << all; set++)
		if ((unsigned)__builtin_popcount(set) == drawn) {
			sets++;
			with += (set & ((1u << some) - 1)) != 0;
		}
	return (double)with / sets;
}

static void a_chance_is_that_of_all_batches(void **unused)
{
	(void)unused;
	for (unsigned all = 1; all <= 8; all++)
		for (unsigned some = 0; some <= all; some++)
			for (unsigned drawn = 0; drawn <= all; drawn++) {
				struct vc_samples s = { .samples = all };
				double said = vc_samples_chance(&s, some, drawn);

				if (fabs(said - counted(all, some, drawn)) > 1e-12)
					fail_msg("%u of %u, %u drawn: %g", some, all, drawn, said);
			}
}

static void lengths_are_counted(void **unused)
{
	struct vc_sample_length at[] = { { 10, 3 }, { 20, 4 }, { 50, 1 } };
	struct vc_samples s = { .at = at, .n = 3, .samples = 8 };
	uint64_t tokens;

	(void)unused;
	assert_int_equal(vc_samples_over(&s, 9, &tokens), 8);
	assert_int_equal(tokens, 3 + 44 + 41);
	assert_int_equal(vc_samples_over(&s, 20, &tokens), 1);
	assert_int_equal(tokens, 30);
	assert_int_equal(vc_samples_over(&s, 50, &tokens), 0);
	assert_int_equal(tokens, 0);
	assert_int_equal(vc_samples_quantile(&s, 0), 10);
	assert_int_equal(vc_samples_quantile(&s, 3.0 / 8), 10);
	assert_int_equal(vc_samples_quantile(&s, 0.5), 20);
	assert_int_equal(vc_samples_quantile(&s, 7.0 / 8), 20);
	assert_int_equal(vc_samples_quantile(&s, 1), 50);
}

static int read_text(struct vc_samples *s, const char *text, uint64_t most, uint64_t pad,
		     struct vc_error *err)
{
	char path[] = "/tmp/vramcast-samples-XX" "XX" "XX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = vc_samples_read(s, path, most, pad, err);
	unlink(path);
	return r;
}

/* text: lengths, ascending, each with how many have it. */
static void reads(const char *file, uint64_t most, uint64_t pad, const char *text, uint64_t tokens,
		  uint64_t cut)
{
	struct vc_error err = { 0 };
	struct vc_samples s;
	char said[400] = "";
	size_t at = 0;
	uint64_t n = 0;

	if (read_text(&s, file, most, pad, &err))
		fail_msg("%s: %s", file, err.message);
	for (size_t i = 0; i < s.n; i++) {
		at += (size_t)snprintf(said + at, sizeof(said) - at, "%s%dx%d", i ? " " : "",
				       (int)s.at[i].samples, (int)s.at[i].length);
		n += s.at[i].samples;
	}
	assert_string_equal(said, text);
	assert_int_equal(s.samples, n);
	assert_int_equal(s.tokens, tokens);
	assert_int_equal(s.cut, cut);
	vc_samples_fini(&s);
}

static void files_of_lengths_are_read(void **unused)
{
	(void)unused;
	reads("7\n5\n7\n", 0, 0, "1x5 2x7", 19, 0);
	reads("length samples\n5 3\n7,2\n5\t1\n", 0, 1, "4x5 2x7", 34, 0);
	reads("# all of them\n\n5 3 # so many\r\n9 0\n6", 0, 1, "3x5 1x6", 21, 0);
	reads("5\n7\n9 2\n", 7, 1, "1x5 3x7", 26, 4);
	reads("5\n8\n9\n", 0, 8, "2x8 1x16", 22, 0);
	reads("5\n8\n9\n17\n", 12, 8, "2x8 2x16", 34, 5);
}

static void refuses(const char *file, const char *why)
{
	struct vc_error err = { 0 };
	struct vc_samples s;

	assert_int_equal(read_text(&s, file, 0, 1, &err), VC_EFORMAT);
	if (!strstr(err.message, why))
		fail_msg("%s: %s", file, err.message);
	vc_samples_fini(&s);
}

static void what_is_no_length_is_refused(void **unused)
{
	(void)unused;
	refuses("", "no lengths; one stands on each line");
	refuses("a b\n", "no lengths");
	refuses("5\nfive\n", "line 2: wants a length");
	refuses("5\n5 3 2\n", "line 2: wants a length");
	refuses("5\n5 -3\n", "line 2: wants a length");
	refuses("5\n\n0 3\n", "line 3: a sample of length 0");
	refuses("5\n1152921504606846976\n", "line 2: more than 2^60 tokens");
	refuses("1152921504606846975 1\n2\n", "line 2: more than 2^60 tokens");
	refuses("1073741824 1073741825\n", "line 1: more than 2^60 tokens");
	reads("1 5\n", 0, 1, "5x1", 5, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chance_is_that_of_all_batches),
		cmocka_unit_test(lengths_are_counted),
		cmocka_unit_test(files_of_lengths_are_read),
		cmocka_unit_test(what_is_no_length_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
