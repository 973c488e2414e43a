/* SPDX-License-Identifier: Apache-2.0 */
/* test_time_words.c - what is said of the time of a step: which part of the sentence comes when,
 * and with which figures. */
#include "tests/support/test.h"

#include "simulator/time/time_words.c"

#define MS 1000000u

static const struct vc_timing usual = { .step_ns = 20 * MS, .low_ns = 20 * MS, .high_ns = 20 * MS,
	.recorded_ns = 16 * MS, .busy = 0.95, .matched = 1, .flushes = -1, .mallocs = -1,
	.recordings = 1 };

static void words(const struct vc_timing *t, const char *want)
{
	struct vc_result r = { .timing = *t };
	char buf[600];

	assert_string_equal(vc_time_words(&r, buf, sizeof(buf)), want);
}

static void a_sentence_has_what_is_known(void **unused)
{
	struct vc_timing t = usual;

	words(&t, "20.0 ms a step, recorded 16.0 ms (+25.0 %), GPU busy 95 %");
	t.recordings = 2;
	words(&t, "20.0 ms a step, GPU busy 95 %");
	t.recordings = 1;
	t.recorded_ns = 0;
	words(&t, "20.0 ms a step, GPU busy 95 %");
	t.recorded_ns = 25 * MS;
	t.high_ns = 22 * MS;
	words(&t, "20.0 ms a step (20.0 ms .. 22.0 ms), recorded 25.0 ms (-20.0 %), GPU busy 95 %");
	t.same = true; /* that is how it was recorded */
	t.samples = 32;
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 95 %");
	t.busy = 0.5;
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 50 %, bound by launches");
	t.busy = 0.89;
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 89 %, bound by launches");
	t.busy = 0.5;
	t.wait = 0.25; /* half of what it is idle is no more than half */
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 50 %, bound by launches, "
		  "waits for data 25.0 %");
	t.wait = 0.251;
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 50 %, waits for data 25.1 %");
	t.busy = 0.95;
	t.wait = 0.004;
	t.flushes = 0.5;
	t.matched = 0.985;
	t.mfu = 0.4;
	t.unknown = 0.1;
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 95 %, empties the cache 0.5 "
		  "times per step; 2 % of the kernels' time could not be matched, 40 % "
		  "of the peak");
	t.flushes = 0;
	t.matched = 0.991;
	t.mfu = 0;
	t.unknown = 0.2;
	words(&t, "20.0 ms a step, 1600 samples/s, GPU busy 95 %; 20 % is not known, as "
		  "some kernels");
	t.kernel = "a_kernel";
	t.roofline = true;
	words(&t, "about 20 ms a step, 1600 samples/s, GPU busy 95 %; 20 % is not known, "
		  "as a_kernel; scaled from another card by bandwidth and FLOP/s: rough");
	t.unknown = 0;
	t.modelled = true; /* a dry run waits for nothing that is seen */
	t.wait = 0.5;
	words(&t, "about 20 ms a step (20 ms .. 22 ms), 1600 samples/s, GPU busy 95 %; "
		  "computed by the null GPU " ROUGH);
	t.mfu = 0.3;
	t.same = false;
	words(&t, "about 20 ms a step (20 ms .. 22 ms), recorded 25 ms (-20 %), 1600 "
		  "samples/s, GPU busy 95 %, 30 % of the peak; computed " FROM_WORK);
	t.step_ns = 0;
	words(&t, "");
}

static void pace(const struct vc_timing *t, const char *want)
{
	char buf[200];

	assert_string_equal(vc_time_pace_words(t, buf, sizeof(buf)), want);
}

static void how_many_a_second(void **unused)
{
	struct vc_timing t = usual;

	pace(&t, "      50 it/s");
	t.samples = 3;
	pace(&t, "      150 samples/s       50 it/s");
	t.low_ns = 16 * MS;
	t.high_ns = 25 * MS;
	pace(&t, "      150 samples/s       50 it/s (40 .. 62.5)");
	t.roofline = true; /* two digits */
	pace(&t, "      150 samples/s       50 it/s (40 .. 63) rough");
	t.same = true;
	pace(&t, "      150 samples/s       50 it/s rough");
	t.step_ns = 0;
	pace(&t, "");
}

static void two_digits_of_what_is_rough(void **unused)
{
	static const struct { uint64_t ns; const char *text; } list[] = {
		{ 0, "0 ns" }, { 994, "990 ns" }, { 999, "1 us" }, { 12345, "12 us" },
		{ 1260000, "1.3 ms" }, { 994999999, "990 ms" }, { 996000000, "1 s" },
		{ 123456789012, "120 s" }, { 1999999999999, "2000 s" } };
	char buf[32];

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		assert_string_equal(ns_words(list[i].ns, true, buf), list[i].text);
	assert_string_equal(ns_words(12345, false, buf), "12.3 us");
}

/* ---- in JSON ---- */

static void has(const struct vc_result *r, const char *member, bool there)
{
	struct vc_output *out = vc_output_memory(NULL);
	struct vc_emit *e = vc_emit_new(out, VC_EMIT_JSON, NULL);
	size_t n;

	vc_emit_object(e, NULL, NULL);
	vc_time_report(e, r);
	vc_emit_end(e);
	assert_int_equal(vc_emit_finish(e, NULL), VC_OK);
	char *text = vc_output_take(out, &n);

	vc_output_close(out);
	if (!strstr(text, member) == there)
		fail_msg("%s stands%s in %s", member, there ? " not" : "", text);
	free(text);
}

static void what_is_reported(void **unused)
{
	struct vc_result r = { .timing = usual };

	has(&r, "\"recorded_ns\": null", true);
	has(&r, "\"predicted_ns\": null", true);
	has(&r, "\"steps_per_s\": 50", true);
	has(&r, "\"samples_per_s\": null", true);
	has(&r, "\"basis\": \"bounds\"", true);
	has(&r, "\"bound\": \"gpu\"", true);
	has(&r, "\"interval_ns\": null", true);
	has(&r, "\"unmatched\": 0", true);
	has(&r, "\"mfu\": null", true);
	has(&r, "\"modelled\": false", true);
	has(&r, "\"flushes_per_step\": null", true);
	has(&r, "\"segments_per_step\": null", true);
	has(&r, "\"step_driver_ns\": null", true);
	r.stats.has_times = true;
	r.stats.time_ns = 77;
	r.stats.predicted_ns = 78;
	r.timing.samples = 4;
	r.timing.matched = 0.75;
	r.timing.high_ns++;
	r.timing.flushes = r.timing.mallocs = 0;
	r.timing.driver_ns = 5;
	r.timing.recordings = 2;
	r.timing.mfu = 0.5;
	r.timing.busy = 0.5;
	r.timing.wait = 0.3;
	has(&r, "\"recorded_ns\": 77", true);
	has(&r, "\"predicted_ns\": 78", true);
	has(&r, "\"samples_per_s\": 200", true);
	has(&r, "\"unmatched\": 0.25", true);
	has(&r, "\"interval_ns\": null", false);
	has(&r, "\"flushes_per_step\": null", true); /* nothing was played */
	has(&r, "\"segments_per_step\": 0", true);
	has(&r, "\"step_driver_ns\": 5", true);
	has(&r, "\"basis\": \"laws\"", true);
	has(&r, "\"mfu\": 0.5", true);
	has(&r, "\"bound\": \"data\"", true);
	has(&r, "\"data_wait\": 0.3", true);
	has(&r, "\"data_wait_why\": null", true);
	r.stats.events = 1;
	has(&r, "\"flushes_per_step\": 0", true);
	r.timing.same = true;
	has(&r, "\"basis\": \"recorded\"", true);
	r.timing.roofline = r.timing.modelled = true;
	has(&r, "\"basis\": \"roofline\"", true);
	has(&r, "\"bound\": \"host\"", true);
	has(&r, "\"data_wait\": null", true);
	has(&r, "\"data_wait_why\": \"" STANDS, true);
	has(&r, "\"modelled\": true", true);
	has(&r, "\"why\": null", true);
}

static void what_is_not_known_is_null(void **unused)
{
	struct vc_result r = { .timing = usual };

	r.timing.modelled = true;
	r.timing.mfu = 0.5;
	r.timing.high_ns++;
	r.timing.step_ns = 0;
	snprintf(r.timing.why, sizeof(r.timing.why), "a reason");
	has(&r, "\"why\": \"a reason\"", true);
	has(&r, "\"basis\": null", true);
	has(&r, "\"bound\": null", true);
	has(&r, "\"modelled\": false", true);
	has(&r, "\"mfu\": null", true);
	has(&r, "\"steps_per_s\": null", true);
	has(&r, "\"unmatched\": null", true);
	has(&r, "\"interval_ns\": null", true);
	has(&r, "\"data_wait_why\": null", true);
	r.timing.why[0] = '\0';
	has(&r, "\"why\": null", true);
}

/* ---- profiles ---- */

static const struct vc_card card;

/* A step of 100 us: 60 of products, 30 nobody knows, 2 of reductions. */
static struct vc_profile profile(void)
{
	struct vc_profile p = { .card = &card, .step_ns = 100000, .step_min_ns = 90000,
		.step_max_ns = 110000, .busy = 0.93, .measured = 7, .modelled = true };

	p.shares.ns = 93000;
	p.shares.ideal = 40000;
	p.shares.flops = 5e9;
	p.shares.kind[VC_WORK_GEMM] = 60000;
	p.shares.kind[VC_WORK_REDUCTION] = 2000;
	p.shares.name = "what_is_this";
	return p;
}

static void said(const struct vc_profile *p, const char *want)
{
	char buf[300];

	assert_string_equal(vc_time_profile_words(p, buf, sizeof(buf)), want);
}

static void a_profile_in_a_sentence(void **unused)
{
	struct vc_profile p = profile();

	said(NULL, "");
	said(&p, "about 100 us a step (90 us .. 110 us), GPU busy 93 %, 40 % of the peak");
	p.shares.ideal = 0;
	p.shares.unknown = 9300;
	said(&p, "about 100 us a step (90 us .. 110 us), GPU busy 93 %");
	p.shares.unknown = 9400;
	said(&p, "about 100 us a step (90 us .. 110 us), GPU busy 93 %; 10 % is not known, as "
	     "what_is_this");
	p.shares.unknown = 23250;
	said(&p, "about 100 us a step (90 us .. 110 us), GPU busy 93 %; 25 % is not known, as "
	     "what_is_this");
	p.shares.unknown = 23251;
	said(&p, "unknown: 25 % of it is of kernels that nobody knows, as what_is_this");
	p.step_ns = 0;
	said(&p, "");
	p = profile();
	p.card = NULL;
	said(&p, "");
}

typedef void shows(struct vc_emit *e, const struct vc_profile *p);

static char *shown(shows *how, const struct vc_profile *p, enum vc_emit_mode mode)
{
	struct vc_output *out = vc_output_memory(NULL);
	struct vc_emit *e = vc_emit_new(out, mode, NULL);
	size_t n;

	vc_emit_object(e, NULL, "");
	how(e, p);
	vc_emit_end(e);
	assert_int_equal(vc_emit_finish(e, NULL), VC_OK);
	char *text = vc_output_take(out, &n);

	vc_output_close(out);
	return text;
}

static void shows_that(shows *how, const struct vc_profile *p, enum vc_emit_mode mode,
		       const char *words, bool there)
{
	char *text = shown(how, p, mode);

	if (!strstr(text, words) == there)
		fail_msg("%s stands%s in %s", words, there ? " not" : "", text);
	free(text);
}

static void one_batch_line(struct vc_emit *e, const struct vc_profile *p)
{
	profile_line(e, p, 4);
}

static void no_batch_line(struct vc_emit *e, const struct vc_profile *p)
{
	profile_line(e, p, 0);
}

static void what_a_profile_shows(void **unused)
{
	struct vc_profile p = profile();

	shows_that(report_shares, &p, VC_EMIT_JSON, "\"mfu\": 0.4", true);
	shows_that(report_shares, &p, VC_EMIT_JSON, "\"unknown\": 0,", true);
	shows_that(report_shares, &p, VC_EMIT_JSON, vc_kernel_work_kind(VC_WORK_CONV), false);
	shows_that(report_shares, &p, VC_EMIT_JSON, vc_kernel_work_kind(VC_WORK_REDUCTION), true);
	shows_that(shares_line, &p, VC_EMIT_TEXT, " 65 %, MFU 40 %", true); /* 2 % is too little */
	shows_that(shares_line, &p, VC_EMIT_TEXT, "nothing is known", false);
	p.shares.kind[VC_WORK_REDUCTION] = 2790; /* three are not */
	shows_that(shares_line, &p, VC_EMIT_TEXT, " 3 %, MFU 40 %", true);
	p.shares.unknown = 1860;
	shows_that(shares_line, &p, VC_EMIT_TEXT, "nothing is known", false);
	p.shares.unknown = 1861;
	shows_that(shares_line, &p, VC_EMIT_TEXT, "; of 2 % nothing is known, most is what",
		   true);
	shows_that(one_batch_line, &p, VC_EMIT_TEXT, "about 100 us (90 us .. 110 us over 7), 40000 "
		   "samples/s, GPU busy 93.0 %; computed from what its kernels", true);
	p.card = NULL;
	shows_that(no_batch_line, &p, VC_EMIT_TEXT, "over 7), GPU busy 93.0 %; computed by the "
		   "null GPU", true);
	shows_that(shares_line, &p, VC_EMIT_TEXT, "MFU", false);
	shows_that(report_shares, &p, VC_EMIT_JSON, "\"mfu\": null", true);
	p.modelled = false;
	shows_that(no_batch_line, &p, VC_EMIT_TEXT, "waits for data", false);
	p.copies = 1;
	p.wait = 0.125;
	shows_that(no_batch_line, &p, VC_EMIT_TEXT, "step time  100.0 us (90.0 us", true);
	shows_that(no_batch_line, &p, VC_EMIT_TEXT, "GPU busy 93.0 %, waits for data 12.5 %", true);
	p.card = &card;
	p.shares.ns = 0;
	shows_that(shares_line, &p, VC_EMIT_TEXT, "MFU", false);
	shows_that(report_shares, &p, VC_EMIT_JSON, "\"mfu\": null", true);
	shows_that(report_shares, NULL, VC_EMIT_JSON, "\"mfu\": null", true);
}

/* Launches of one kernel with the same work count together, the longest first. */
static void kernels_by_what_they_take(void **unused)
{
	struct vc_beat beat[] = { { "a", 1, 1, 10, 0, 0, "x", 0 }, { "b", 2, 2, 25, 0, 0, "", 0 },
				  { "a", 1, 1, 10.5, 0, 0, "x", 0 },
				  { "a", 1, 1, 5, 0, 0, "y", 0 } };
	struct vc_profile p = { .beat = beat, .beats = 4 };
	struct alike at[4];

	assert_int_equal(gather_alike(&p, at), 3);
	assert_true(at[0].n == 1 && at[0].ns == 25 && at[1].n == 2 && at[1].ns == 20.5);
	assert_true(at[2].n == 1 && at[2].ns == 5);
	shows_that(report_kernels, &p, VC_EMIT_JSON, "\"work\": null", true);
	shows_that(report_kernels, &p, VC_EMIT_JSON, "\"ns\": 21", true);
	shows_that(report_kernels, NULL, VC_EMIT_JSON, "\"ns\"", false);
}

/* ---- values against each other ---- */

static struct vc_result value(double v, uint64_t ns, double flushes)
{
	struct vc_result r = { .timing = usual };

	r.info.value = v;
	r.info.vary = "batch";
	r.timing.step_ns = ns;
	r.timing.samples = v;
	r.timing.flushes = flushes;
	return r;
}

static void compare(const struct vc_result *r, size_t best, const char *want)
{
	char buf[200];

	assert_string_equal(vc_time_compare(r, 4, best, buf, sizeof(buf)), want);
}

static void the_best_against_a_smaller_one(void **unused)
{
	struct vc_result r[4];

	r[0] = value(8, 10 * MS, 0);
	r[1] = value(16, 16 * MS, 0);
	r[2] = value(20, 20 * MS, 0);
	r[3] = value(24, 20 * MS, 0);
	compare(r, 3, "batch 24 gives 1.20x the samples/s of 16");
	compare(r, 0, "");
	compare(r, 4, "");
	r[1].timing.samples = 0; /* not known there */
	compare(r, 3, "batch 24 gives 1.20x the samples/s of 20");
	r[3].timing.step_ns = 0;
	compare(r, 3, "");
	r[2].timing.flushes = 0.25;
	r[3].timing.flushes = 2;
	compare(r, 0, "20 would flush the cache 0.25 times per step");
	compare(r, 2, "batch 20 gives 1.25x the samples/s of 8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentence_has_what_is_known),
		cmocka_unit_test(how_many_a_second),
		cmocka_unit_test(two_digits_of_what_is_rough),
		cmocka_unit_test(what_is_reported),
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(a_profile_in_a_sentence),
		cmocka_unit_test(what_a_profile_shows),
		cmocka_unit_test(kernels_by_what_they_take),
		cmocka_unit_test(the_best_against_a_smaller_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
