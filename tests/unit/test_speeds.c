/* SPDX-License-Identifier: Apache-2.0 */
/* test_speeds.c - tables of speeds: what is learnt of a card, kept in a file, and asked. */
#include "tests/support/test.h"

#include <math.h>
#include <unistd.h>

#include "common/kernel_name.h"
#include "simulator/time/time_speeds.h"

static const struct vc_card *card;
static const char *const work[] = { /* four times as much each, so two octaves apart */
	"elementwise fp32 1000000000 1073741824 1073741824 65536 512 0 0",
	"elementwise fp32 4000000000 4294967296 4294967296 65536 512 0 0",
	"elementwise fp32 16000000000 17179869184 17179869184 65536 512 0 0",
};

static struct vc_kernel_work parsed(const char *text)
{
	struct vc_kernel_work w;

	assert_true(vc_kernel_work_parse(text, &w));
	return w;
}

static double computed(const char *text)
{
	struct vc_kernel_work w = parsed(text);
	double ns = vc_cost_of(card, &w, "k").ns;

	assert_true(ns > 0);
	return ns;
}

/* What the table makes of the computed time; 1: nothing. */
static double ratio(const struct vc_speeds *s, const char *text, const char *name)
{
	struct vc_kernel_work w = parsed(text);

	return vc_speeds_cost(s, card, &w, name).ns / vc_cost_of(card, &w, name).ns;
}

static struct vc_beat beat(const char *name, uint64_t token, const char *text, double ns)
{
	return (struct vc_beat){ .name = name, .exact = token, .token = token, .work = text,
				 .ns = ns, .front = ns, .kind = VC_OP_KERNEL };
}

/* Kernel 1 took twice of what is computed, kernel 2 half of it, and nothing was seen of others. */
static void learn(struct vc_speeds *s, double *matched)
{
	const double all = computed(work[0]), more = computed(work[1]);
	struct vc_beat dry[] = { beat("one", 1, work[0], all), beat("one", 1, work[0], all),
				 beat("two", 2, work[1], more), beat("one", 1, work[0], all),
				 beat("nothing", 5, work[0], all) };
	struct vc_beat real[] = { beat("one", 1, "", 1.9 * all), beat("one", 1, "", 2.1 * all),
				  beat("two", 2, "", more / 2), beat("one", 1, "", 2 * all),
				  beat("other", 6, "", all) };
	struct vc_profile a = { .beat = real, .beats = 5, .steps = 2 },
			  b = { .beat = dry, .beats = 5, .steps = 2, .card = card };
	struct vc_error err = { 0 };

	assert_int_equal(vc_speeds_learn(s, &a, &b, matched, &err), VC_OK);
}

static void rows_are_sums_of_launches(void **unused)
{
	const double all = computed(work[0]), more = computed(work[1]);
	struct vc_speeds s = { 0 };
	double matched;

	(void)unused;
	learn(&s, &matched);
	assert_true(fabs(matched - (6 * all + more / 2) / (7 * all + more / 2)) < 1e-9);
	assert_ptr_equal(s.card, card);
	assert_int_equal(s.n, 4);
	for (size_t i = 0; i < s.n; i++) {
		const struct vc_speed_row *r = &s.row[i];
		bool one = r->launches == 3;

		assert_int_equal(r->kind, VC_WORK_ELEMENTWISE);
		assert_string_equal(r->type, "fp32");
		assert_int_equal(r->size, (int)floor(log2(one ? all : more)));
		assert_true(fabs(r->ratio - (one ? 2 : 0.5)) < 1e-9);
		/* off by 0.1 of 2, and of 0, and of 0.1; and one of three says 0.2 / 3 of others */
		assert_true(fabs(r->doubt - (one ? 0.2 / 6 + 0.2 / 3 : 0.2)) < 1e-9);
		assert_int_equal(r->launches, one ? 3 : 1);
	}
	learn(&s, &matched); /* the same once more: what was there and what comes count alike */
	assert_int_equal(s.n, 4);
	for (size_t i = 0; i < s.n; i++) {
		assert_int_equal(s.row[i].launches % 2, 0);
		assert_true(fabs(s.row[i].ratio - (s.row[i].launches == 6 ? 2 : 0.5)) < 1e-9);
	}
	vc_speeds_fini(&s);
	assert_null(s.row);
}

static void the_nearest_row_answers(void **unused)
{
	uint64_t one = vc_kernel_token("one"), two = vc_kernel_token("two");
	int at[3];
	struct vc_speed_row row[4];
	struct vc_speeds s = { .card = card, .row = row };
	struct vc_kernel_work w = parsed(work[0]);

	(void)unused;
	for (int i = 0; i < 3; i++)
		at[i] = (int)floor(log2(computed(work[i])));
	assert_true(at[1] - at[0] == 2 && at[2] - at[1] == 2);
	row[0] = (struct vc_speed_row){ one, VC_WORK_ELEMENTWISE, "fp32", at[0], 2, .1, 3 };
	row[1] = (struct vc_speed_row){ two, VC_WORK_ELEMENTWISE, "fp32", at[2], 3, .1, 3 };
	row[2] = (struct vc_speed_row){ 0, VC_WORK_ELEMENTWISE, "fp32", at[1], 5, .1, 3 };
	row[3] = (struct vc_speed_row){ 0, VC_WORK_ELEMENTWISE, "bf16", at[1], 7, .1, 3 };
	assert_true(ratio(&s, work[0], "one") == 1); /* it is empty */
	s.n = 4;
	assert_true(ratio(NULL, work[0], "one") == 1);
	assert_true(ratio(&s, work[0], "one") == 2);
	assert_true(ratio(&s, work[1], "one") == 2); /* two octaves off; its kind is as three off */
	assert_true(ratio(&s, work[2], "one") == 2); /* four, against two and three */
	assert_true(ratio(&s, work[2], "two") == 3);
	assert_true(ratio(&s, work[1], "two") == 3);
	assert_true(ratio(&s, work[0], "three") == 5); /* of its kind */
	assert_true(vc_speeds_have(&s, card, &w, "one"));
	assert_false(vc_speeds_have(&s, card, &w, "three"));
	row[2].size = at[0] + 3; /* as far away as a row may be */
	assert_true(ratio(&s, work[0], "three") == 5);
	row[2].size = at[0] + 4;
	assert_true(ratio(&s, work[0], "three") == 1);
	row[2].size = at[0] - 3;
	assert_true(ratio(&s, work[0], "three") == 5);
	row[0].size = at[0] + 6;
	row[2].size = at[0] + 3; /* equally near: that of more launches */
	assert_true(ratio(&s, work[0], "one") == 2);
	row[2].launches = 4;
	assert_true(ratio(&s, work[0], "one") == 5);
	row[2].kind = VC_WORK_REDUCTION;
	assert_true(ratio(&s, work[0], "three") == 1);
	s.card = vc_card_by_name("t4"); /* it was measured on another card */
	assert_true(ratio(&s, work[0], "one") == 1);
}

static void a_file_holds_it(void **unused)
{
	char path[] = "/tmp/vramcast-speeds-XX" "XX" "XX";
	struct vc_speeds s = { 0 }, t = { 0 };
	struct vc_error err = { 0 };
	int fd = mkstemp(path);
	double matched;

	(void)unused;
	assert_true(fd >= 0);
	close(fd);
	learn(&s, &matched);
	assert_int_equal(vc_speeds_write(&s, path, &err), VC_OK);
	assert_int_equal(vc_speeds_read(&t, path, &err), VC_OK);
	assert_ptr_equal(t.card, card);
	assert_int_equal(t.n, s.n);
	for (size_t i = 0; i < s.n; i++) {
		assert_true(t.row[i].name == s.row[i].name && t.row[i].kind == s.row[i].kind);
		assert_string_equal(t.row[i].type, s.row[i].type);
		assert_true(t.row[i].size == s.row[i].size &&
			    t.row[i].launches == s.row[i].launches &&
			    fabs(t.row[i].ratio - s.row[i].ratio) < 1e-4 &&
			    fabs(t.row[i].doubt - s.row[i].doubt) < 1e-3);
	}
	vc_speeds_fini(&s);
	vc_speeds_fini(&t);
	unlink(path);
}

/* Each word of a row, and each line that there must be. */
static void damaged_files_are_refused(void **unused)
{
	static const char *const good = "vramcast speed 1\n# comment\n\ncard t4\n";
	static const struct { const char *text; bool ok; } rows[] = {
		{ "1f elementwise fp32 20 1.5 0.1 3", true },
		{ "0 elementwise fp32 -3 100 999 1", true }, { "0 gemm fp16 20 1.5 0 1", true },
		{ "0 elementwise fp32 20 100.1 0.1 3", false },
		{ "0 elementwise fp32 20 0 0.1 3", false },
		{ "0 elementwise fp32 20 -1 0.1 3", false },
		{ "0 elementwise fp32 20 1.5 -0.1 3", false },
		{ "0 elementwise fp32 20 1.5 1000 3", false },
		{ "0 elementwise fp32 20 1.5 0.1 0", false },
		{ "0 elementwise fp32 20 1.5 0.1 3 4", false },
		{ "0 elementwise fp32 20 1.5 0.1", false },
		{ "0 sorting fp32 20 1.5 0.1 3", false }, { "card none", false } };
	char path[] = "/tmp/vramcast-speeds-XX" "XX" "XX", text[200];
	int fd = mkstemp(path);

	(void)unused;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < 3 * sizeof(rows) / sizeof(*rows) + 3; i++) {
		const size_t n = sizeof(rows) / sizeof(*rows), k = i % n;
		struct vc_speeds s = { 0 };
		struct vc_error err = { 0 };
		FILE *f = fopen(path, "w");
		bool ok = i < n && rows[k].ok;

		/* as it is, without its last line's end, without its card, and with no row */
		if (i < 2 * n)
			snprintf(text, sizeof(text), "%s%s%s", good, rows[k].text,
				 i < n ? "\n" : "");
		else if (i < 3 * n)
			snprintf(text, sizeof(text), "vramcast speed 1\n%s\n", rows[k].text);
		else
			snprintf(text, sizeof(text), "%s", k == 0 ? good : k == 1 ? "" : "speed\n");
		fputs(text, f);
		fclose(f);
		assert_int_equal(vc_speeds_read(&s, path, &err) == VC_OK, ok);
		assert_int_equal(s.n, i >= n && i < 2 * n ? s.n : rows[k].ok && i < 3 * n);
		assert_int_equal(err.message[0] == '\0', ok);
		vc_speeds_fini(&s);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sums_of_launches),
		cmocka_unit_test(the_nearest_row_answers),
		cmocka_unit_test(a_file_holds_it),
		cmocka_unit_test(damaged_files_are_refused),
	};

	card = vc_card_by_name("h100-80g-sxm");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
