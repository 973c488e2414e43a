/* SPDX-License-Identifier: Apache-2.0 */
/* test_drawn_diff.c - what the picture of two recordings shows is what `diff` reports. */
#include "tests/support/test.h"

#include <math.h>

#include "common/io.h"
#include "common/param.h"
#include "simulator/advise/diff.h"
#include "simulator/session/session.h"
#include "tests/support/drawn.h"
#include "tests/support/questions.h"
#include "tests/support/told.h"
#include "common/format.h"
#include "visualize/sink.h"

#define LADDER "tests/ladders/recordings/"

static const char *const pairs[][2] = {
	{ "tests/python/recordings/base.vct", "tests/python/recordings/head.vct" },
	{ "tests/python/recordings/head.vct", "tests/python/recordings/base.vct" },
	{ "tests/recordings/eval-4-8.vct", "tests/recordings/eval-8-16.vct" },
	{ LADDER "gpt2-hf_seq0256_torch2.9.1.vct", LADDER "gpt2-hf_seq0384_torch2.9.1.vct" },
	{ "traces/attention.vct", "traces/decomfl.vct" },
	{ "traces/attention.vct", "traces/attention.vct" },
};

struct side { struct vc_session s; struct vc_plan *plan; struct vc_result r; };

static void open_side(struct side *x, const char *path)
{
	static const char *const names[] = { "timeline", "peak", "steps", "lives", "moment",
					     "oom" };
	const struct vc_observer_type *watch[7] = { 0 };
	struct vc_run_options o = vc_run_options_none();
	struct vc_error err = { 0 };
	size_t n;

	for (size_t i = 0; i < 6; i++)
		watch[i] = vc_observer_by_name(names[i]);
	o.verify = false;
	assert_int_equal(vc_session_open_one(&x->s, &o, path, VC_SESSION_IN_MEMORY, &err), 0);
	assert_int_equal(vc_session_plans(&x->s, &x->plan, &n, &err), 0);
	assert_int_equal(vc_session_run(&x->s, x->plan, watch, &x->r, &err), 0);
}

static void close_side(struct side *x)
{
	vc_result_fini(&x->r);
	free(x->plan);
	vc_session_close(&x->s);
}

/* Both outlines reach what both reserve at their peaks, on the axis beside them. */
static void the_outlines_are_the_runs(const char *what, const char *text, const struct side x[2])
{
	static const char *const line[] = { "<path class=\"opens\" d=\"M",
					    "<path class=\"res\" d=\"M" };
	double zero, per = 1;

	assert_true(axis(&zero, &per));
	for (int k = 0; k < 2; k++) {
		double drawn = (floor_of(text) - top_of_line(text, line[k])) * per;

		if (fabs(drawn - (double)x[k].r.stats.peak_reserved) > 20 * per)
			fail_msg("%s: %.0f are drawn, %llu reserved", what, drawn,
				 (unsigned long long)x[k].r.stats.peak_reserved);
	}
}

/* The rows are the call sites of the report in its order, and bars are as long as what changed. */
static void the_bars_are_the_sites(const char *what, const char *text, const struct vc_diff *d)
{
	const char *at = text;
	double per = 0;

	for (size_t i = 0; i < d->n && i < 12; i++) {
		double change = (double)d->at[i].live[1] - (double)d->at[i].live[0];
		const char *label, *rect, *end;

		if (change == 0)
			break;
		at = at ? strstr(at, "<g><title>") : NULL;
		end = at ? strstr(at, "</g>") : NULL;
		if (!end)
			fail_msg("%s: %s has no row", what, d->at[i].site);
		label = strchr(d->at[i].site, '<') ? NULL : d->at[i].site;
		if (label && strncmp(at + 10, label, strlen(label)))
			fail_msg("%s: %.40s is drawn for %s", what, at + 10, label);
		rect = strstr(at, "<rect class=\"");
		if (rect && rect < end) {
			const char *klass = change > 0 ? "lane" : "busy";
			double wide = svg_tenths(rect, "width");

			if (strncmp(rect + 13, klass, 4))
				fail_msg("%s: %s points the wrong way", what, d->at[i].site);
			per = per > 0 ? per : wide / fabs(change);
			if (fabs(wide - fabs(change) * per) > 10)
				fail_msg("%s: %.0f wide for %.0f", what, wide, change);
		}
		at = end;
	}
	if (at)
		assert_null(strstr(at, "</g>\n<g><title>"));
}

/* The first difference is the reported one, with the event that `dump` shows it under. */
static void the_parting_is_said(const char *what, const char *text, const struct vc_diff *d)
{
	char event[80], n[VC_FORMAT];

	assert_int_equal(strstr(text, "they part here") != NULL, d->first != VC_DIFF_NONE);
	for (int k = 0; k < 2; k++) {
		snprintf(event, sizeof(event), ">%s, event %s: ", k ? "B" : "A",
			 vc_format_count(d->event[k], n));
		if ((d->event[k] != UINT64_MAX) != (strstr(text, event) != NULL))
			fail_msg("%s: %s", what, event);
	}
}

static void draw_pair(const struct side x[2], const struct vc_diff *d, const char *what)
{
	static const char *const params[] = { "width=1200", "width=600,theme=dark",
					      "width=480,theme=print", "width=1600,footer=false" };
	const struct vc_sink_type *t = vc_sink_by_name("diff");
	struct vc_result both[2] = { x[0].r, x[1].r };
	char cfg[1000] = { 0 };
	struct vc_error err = { 0 };
	size_t n;

	both[1].diff = d;
	assert_true(t->config_size < sizeof(cfg));
	for (size_t i = 0; i < 4; i++) {
		struct vc_output *out = vc_output_memory(&err);

		assert_int_equal(vc_params_parse(t->params, cfg, params[i], &err), 0);
		assert_int_equal(t->write(both, 2, cfg, out, &err), 0);
		char *text = vc_output_take(out, &n);
		vc_output_close(out);
		tell(text, n);
		read_back(what, params[i], text, n);
		the_outlines_are_the_runs(what, text, x);
		the_bars_are_the_sites(what, text, d);
		the_parting_is_said(what, text, d);
		for (size_t k = 0, at = 0; k < 2; k++)
			questions_are_answered(what, &both[k], &at);
		free(text);
	}
}

static void a_difference_is_drawn_as_it_is_reported(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct side x[2] = { 0 };
		struct vc_diff d;
		struct vc_error err = { 0 };
		char pair[190];

		open_side(&x[0], pairs[i][0]);
		open_side(&x[1], pairs[i][1]);
		const struct vc_diff_side side[2] = {
			{ &x[0].s.rec->trace, &x[0].r, x[0].s.rec->device->device },
			{ &x[1].s.rec->trace, &x[1].r, x[1].s.rec->device->device } };
		assert_int_equal(vc_diff_init(&d, side, &err), 0);
		draw_pair(x, &d, pairs[i][1]);
		snprintf(pair, sizeof(pair), "%s, %s", pairs[i][0], pairs[i][1]);
		told_is("drawn_diff", pair);
		vc_diff_fini(&d);
		close_side(&x[0]);
		close_side(&x[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_difference_is_drawn_as_it_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
