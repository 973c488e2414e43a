/* SPDX-License-Identifier: Apache-2.0 */
/* test_emit.c - one walk, three forms. */
#include "tests/support/test.h"

#include "common/emit.h"

static void one_row(struct vc_emit *e, const char *rows, const char *key, const char *value)
{
	vc_emit_array(e, rows, rows);
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, key, key, value);
	vc_emit_end(e);
	vc_emit_end(e);
}

static char *walk(enum vc_emit_mode mode)
{
	struct vc_output *out = vc_output_memory(NULL);
	struct vc_emit *e = vc_emit_new(out, mode, NULL);
	char *text;
	size_t n;

	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "file", "file", "a \"b\"\n,c");
	vc_emit_bytes(e, "peak", "peak reserved", 1610612736);
	vc_emit_uint(e, "hidden", NULL, 7);
	vc_emit_array(e, "runs", "Runs");
	for (unsigned i = 0; i < 2; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "model", "model", i ? "direct" : "torch");
		vc_emit_uint(e, "events", "events", 1234567 * (i + 1));
		vc_emit_null(e, "limit", NULL);
		vc_emit_object(e, "oom", "out of memory");
		vc_emit_bool(e, "happened", "happened", i);
		vc_emit_object(e, "free", NULL);
		vc_emit_bytes(e, "bytes", "free", i << 20);
		vc_emit_end(e);
		vc_emit_end(e);
		one_row(e, "sites", "site", "train.py:7");
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_array(e, "sizes", "sizes");
	vc_emit_uint(e, NULL, NULL, 512);
	vc_emit_uint(e, NULL, NULL, 1024);
	vc_emit_end(e);
	vc_emit_object(e, "trust", "Trust");
	vc_emit_real(e, "share", "share", 0.25);
	vc_emit_object(e, "inner", NULL);
	vc_emit_text(e, "why", "why", "verified");
	vc_emit_end(e);
	vc_emit_end(e);
	one_row(e, "others", "name", "x");
	vc_emit_end(e);
	assert_int_equal(vc_emit_finish(e, NULL), VC_OK);
	text = vc_output_take(out, &n);
	vc_output_close(out);
	return text;
}

static void programs_get_json(void **unused)
{
	char *t = walk(VC_EMIT_JSONL);

	(void)unused;
	assert_string_equal(t, "{\"file\":\"a \\\"b\\\"\\n,c\",\"peak\":1610612736,\"hidden\":7,"
		"\"runs\":[{\"model\":\"torch\",\"events\":1234567,\"limit\":null,"
		"\"oom\":{\"happened\":false,\"free\":{\"bytes\":0}},\"sites\":[{\"site\":"
		"\"train.py:7\"}]},{\"model\":\"direct\",\"events\":2469134,\"limit\":null,"
		"\"oom\":{\"happened\":true,\"free\":{\"bytes\":1048576}},\"sites\":[{\"site\":"
		"\"train.py:7\"}]}],\"sizes\":[512,1024],\"trust\":{\"share\":0.25,\"inner\":"
		"{\"why\":\"verified\"}},\"others\":[{\"name\":\"x\"}]}\n");
	free(t);
}

static void people_get_labels_units_and_columns(void **unused)
{
	char *t = walk(VC_EMIT_TEXT);

	(void)unused;
	assert_string_equal(t, "  file           a \"b\"\n,c\n  peak reserved  1.50 GiB\n\nRuns\n"
		"  model      events\n  torch   1,234,567\n  direct  2,469,134\n"
		"  sizes  512, 1,024\n\nTrust\n  share  0.25\n\nothers\n  name\n  x\n");
	free(t);
}

static void spreadsheets_get_the_rows(void **unused)
{
	char *t = walk(VC_EMIT_CSV);

	(void)unused;
	assert_string_equal(t, "model,events,limit\ntorch,1234567,\ndirect,2469134,\n");
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_get_json),
		cmocka_unit_test(people_get_labels_units_and_columns),
		cmocka_unit_test(spreadsheets_get_the_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
