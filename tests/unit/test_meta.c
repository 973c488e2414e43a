/* SPDX-License-Identifier: Apache-2.0 */
/* test_meta.c - the dictionaries of a trace. */
#include "tests/support/test.h"

#include "common/codec_parts.h"
#include "common/meta.h"
#include "common/program.h"

static void strings_are_kept_once(void **unused)
{
	struct vc_meta *m = vc_meta_new(NULL);
	char text[32];

	(void)unused;
	assert_int_equal(vc_meta_string(m, "", 0), 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 1; i < 20000; i++) {
			int n = snprintf(text, sizeof(text), "string %u", i);

			assert_int_equal(vc_meta_string(m, text, (size_t)n), i);
		}
	}
	assert_int_equal(m->strings, 20000);
	assert_string_equal(m->string[777], "string 777");
	assert_int_equal(vc_meta_string(m, "string 777 and more", 10), 777);
	assert_int_equal(vc_meta_string(m, "string 1\0hidden", 15), 1);
	assert_true(vc_meta_ok(m));
	vc_meta_free(m);
}

static void frames_form_a_tree_without_duplicates(void **unused)
{
	struct vc_meta *m = vc_meta_new(NULL);
	struct vc_frame f = { 0, 1, 2, 3 };

	(void)unused;
	assert_int_equal(vc_meta_frame(m, (struct vc_frame){ 0 }), 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 1; i < 5000; i++) {
			f.parent = i - 1;
			f.line = i % 7;
			assert_int_equal(vc_meta_frame(m, f), i);
		}
	}
	assert_int_equal(m->frames, 5000);
	vc_meta_free(m);
}

static void streams_start_with_the_default(void **unused)
{
	struct vc_meta *m = vc_meta_new(NULL);

	(void)unused;
	assert_int_equal(vc_meta_stream(m, 0), 0);
	assert_int_equal(vc_meta_stream(m, 0x7f0000001000), 1);
	assert_int_equal(vc_meta_stream(m, 7), 2);
	assert_int_equal(vc_meta_stream(m, 0x7f0000001000), 1);
	assert_int_equal(m->streams, 3);
	vc_meta_free(m);
}

static void notes_params_and_devices_are_kept_once(void **unused)
{
	struct vc_meta *m = vc_meta_new(NULL);

	(void)unused;
	vc_meta_note(m, "%d frees", 3);
	vc_meta_note(m, "%d frees", 3);
	assert_int_equal(m->notes, 1);
	vc_meta_param(m, "batch", 8);
	vc_meta_param(m, "seq", 128);
	vc_meta_param(m, "batch", 16);
	assert_int_equal(m->params, 2);
	assert_true(m->param[0].value == 16);
	assert_int_equal(vc_meta_device(m, 3)->index, 3);
	vc_meta_device(m, 3)->total = 5;
	vc_meta_device(m, 0);
	assert_int_equal(m->devices, 2);
	assert_int_equal(vc_meta_device(m, 3)->total, 5);
	vc_meta_set(&m->torch, "2.9");
	vc_meta_set(&m->torch, "2.8");
	assert_string_equal(m->torch, "2.8");
	vc_meta_set(&m->torch, NULL);
	assert_null(m->torch);
	vc_meta_free(m);
}

static void every_capability_has_a_name_of_its_own(void **unused)
{
	(void)unused;
	for (int i = 0; i < VC_CAPS; i++) {
		assert_non_null(vc_capability_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(vc_capability_name(i), vc_capability_name(j));
	}
	assert_string_equal(vc_how_name(VC_HOW_DERIVED), "derived");
}

static void quote(char *text)
{
	for (; *text; text++)
		*text = *text == '\'' ? '"' : *text;
}

/* What a header says that is not known, or of another type than it should be, is passed over. */
static void a_header_of_a_later_version_is_read(void **unused)
{
	char later[] =
		"{'format': 'vct', 'later': {'torch': '1', 'list': [1, {'pid': 3}]}, 'pid': "
		"-7, 'rank': 1.5, 'torch': 5, 'conf': {'torch': 1}, 'gaps': -3, 'dropped': "
		"3.5, 'max_id': 12, 'start_unix_ns': [4], 'host': 'h\\\"1', 'capabilities': "
		"{'requests': 'recorded', 'later': 'recorded', 'uses': {'times': 'failed'}, "
		"'stacks': 'no such word', 'work': 'partial'}, 'params': {'batch': 8, 'seq': "
		"'9', 'other': {'a': 1}, 'x': 0.5}, 'devices': [5, {'index': 1, 'later': "
		"{'index': 9, 'total': 9}, 'total': 100, 'sms': -4, 'cc_major': 8.5, 'name': "
		"3, 'cc_minor': 6, 'total': '1'}, {'index': 2, 'name': 'H100', 'sms': 132, "
		"'cc_major': 9}, {'total': 1, 'list': [7, 8]}], 'notes': [7, 'one', {'a': "
		"'b'}, 'two'], 'complete': true, 'torch_guessed': 'true'}";
	char read[] =
		"{'format': 'vct',\n 'version': 1,\n 'torch_guessed': false,\n 'host': "
		"'h\\\"1',\n 'pid': -7,\n 'rank': -1,\n 'start_unix_ns': 0,\n 'dropped': "
		"0,\n 'gaps': 0,\n 'damaged_blocks': 0,\n 'unmatched_frees': 0,\n "
		"'double_allocs': 0,\n 'max_id': 12,\n 'complete': true,\n 'capabilities': "
		"{'requests': 'recorded', 'work': 'partial'},\n 'params': {'batch': 8, 'x': "
		"0.5},\n 'devices': [{'index': 1, 'total': 100, 'cc_major': 0, 'cc_minor': "
		"6}, {'index': 2, 'total': 0, 'cc_major': 9, 'cc_minor': 0, 'sms': 132, "
		"'name': 'H100'}, {'index': 0, 'total': 1, 'cc_major': 0, 'cc_minor': 0}],\n "
		"'notes': ['one', 'two']}\n";
	struct vc_meta *m = vc_meta_new(NULL), *again = vc_meta_new(NULL);
	struct vc_error err = { 0 };
	size_t n;

	(void)unused;
	quote(later);
	quote(read);
	assert_int_equal(vct_meta_parse(m, later, sizeof(later) - 1, &err), 0);
	char *text = vct_meta_text(m, m->complete, false, &n, &err);
	assert_string_equal(text, read);
	assert_int_equal(vct_meta_parse(again, text, n, &err), 0);
	free(text);
	text = vct_meta_text(again, again->complete, false, &n, &err);
	assert_string_equal(text, read);
	free(text);
	assert_int_equal(vct_meta_parse(m, "[1]", 3, &err), VC_EFORMAT);
	for (size_t cut = 2; cut + 1 < sizeof(later) - 1; cut++)
		assert_int_not_equal(vct_meta_parse(m, later, cut, &err), 0);
	vc_meta_free(m);
	vc_meta_free(again);
}

static struct vc_meta *filled(void)
{
	struct vc_meta *m = vc_meta_new(NULL);
	struct vc_device_info *d = vc_meta_device(m, 3);

	for (unsigned i = 1; i < 100; i++) {
		char text[16];
		int n = snprintf(text, sizeof(text), "text %u", i);

		vc_meta_string(m, text, (size_t)n);
		vc_meta_frame(m, (struct vc_frame){ i / 2, i, i, i });
		vc_meta_stream(m, i * 0x100000001ull);
	}
	vc_meta_set(&m->command, "python train.py");
	vc_meta_param(m, "batch", 32);
	vc_meta_note(m, "a note");
	*d = (struct vc_device_info){ .index = 3, .total = 5, .reserved = 4, .allocated = 3,
				      .cc_major = 8, .cc_minor = 6, .sms = 28 };
	vc_meta_set(&d->name, "a card");
	m->how[VC_CAP_STACKS] = VC_HOW_RECORDED;
	m->pid = 7;
	m->max_id = 9;
	m->complete = true;
	return m;
}

/* With a program and without; what is known of frames is one for all copies. */
static void a_copy_is_the_same(void **unused)
{
	(void)unused;
	for (int program = 0; program < 2; program++) {
		struct vc_meta *m = filled(), *to, *again;
		struct vc_error err;
		size_t n = 0, of_copy = 0;

		if (program) {
			m->program = vc_program_new(&err);
			vc_meta_set(&m->program->folder, "/somewhere");
			vc_meta_set(&m->program->interpreter, "/usr/bin/python3");
		}
		assert_null(vc_meta_site(m, 1)); /* nothing is kept yet */
		assert_int_equal(vc_meta_keep_sites(m, &err), VC_OK);
		assert_int_equal(vc_meta_keep_sites(m, &err), VC_OK);
		for (uint32_t i = 0; i < m->frames; i++)
			assert_int_equal(*vc_meta_site(m, i), 0);
		*vc_meta_site(m, (uint32_t)m->frames - 1) = 77;
		assert_null(vc_meta_site(m, (uint32_t)m->frames));
		to = vc_meta_copy(m, &err);
		assert_non_null(to);
		assert_int_equal(to->program != NULL, program);
		char *text = vct_meta_text(m, true, false, &n, &err);
		char *copied = vct_meta_text(to, true, false, &of_copy, &err);
		assert_int_equal(n, of_copy);
		assert_memory_equal(text, copied, n);
		free(text);
		free(copied);
		again = vc_meta_copy(to, &err);
		vc_meta_free(m);
		vc_meta_free(to);
		assert_int_equal(*vc_meta_site(again, (uint32_t)again->frames - 1), 77);
		assert_int_equal(vc_meta_stream(again, 42 * 0x100000001ull), 42);
		vc_meta_free(again);
	}
	vc_meta_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_the_same),
		cmocka_unit_test(strings_are_kept_once),
		cmocka_unit_test(frames_form_a_tree_without_duplicates),
		cmocka_unit_test(streams_start_with_the_default),
		cmocka_unit_test(notes_params_and_devices_are_kept_once),
		cmocka_unit_test(every_capability_has_a_name_of_its_own),
		cmocka_unit_test(a_header_of_a_later_version_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
