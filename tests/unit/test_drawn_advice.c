/* SPDX-License-Identifier: Apache-2.0 */
/* test_drawn_advice.c - the picture of what would help shows the runs that were simulated. */
#include "tests/support/test.h"

#include <math.h>

#include "common/io.h"
#include "common/param.h"
#include "simulator/advise/advice_words.h"
#include "simulator/findings/leaks.h"
#include "tests/support/drawn.h"
#include "tests/support/told.h"
#include "visualize/sink.h"

/* From `from` on, the next panel's line: it reaches what that run reserves. */
static const char *one_panel(const char *from, const struct vc_result *r, double per)
{
	static const char line[] = "<path class=\"res\" d=\"M";
	const char *grid = strstr(from, "class=\"gr\" d=\"M");
	const char *at = grid ? strstr(grid, line) : NULL;
	double drawn;

	if (!at)
		fail_msg("a panel is missing");
	drawn = (floor_of(grid) - top_of(at + sizeof(line) - 1)) * per -
		(double)(r->info.context + r->info.others);
	if (fabs(drawn - (double)r->stats.peak_reserved) > 20 * per)
		fail_msg("%.0f are drawn, %llu reserved", drawn,
			 (unsigned long long)r->stats.peak_reserved);
	return at + 1;
}

/* The words of the line stand in the picture one after the other, broken anywhere. */
static void is_written(const char *line)
{
	for (size_t i = 0; i < seen.labels; i++) {
		const char *left = line;

		for (size_t k = i; *left && k < seen.labels; k++) {
			size_t n = strlen(seen.label[k].text);

			if (strncmp(left, seen.label[k].text, n))
				break;
			left += n;
			left += strspn(left, " ");
		}
		if (!*left)
			return;
	}
	fail_msg("\"%s\" is not written", line);
}

static void draw_all(const struct vc_result *r)
{
	static const char *const params[] = { "width=1200", "width=600,theme=dark",
					      "width=480,theme=print", "width=1600,footer=false" };
	const struct vc_sink_type *t = vc_sink_by_name("advice");
	struct vc_error err = { 0 };
	char cfg[1000];
	double zero, per = 1;
	size_t n;

	assert_true(t->config_size < sizeof(cfg));
	for (size_t i = 0; i < 4; i++) {
		struct vc_output *out = vc_output_memory(&err);

		assert_int_equal(vc_params_parse(t->params, cfg, params[i], &err), 0);
		assert_int_equal(t->write(r, 1, cfg, out, &err), 0);
		char *text = vc_output_take(out, &n);
		vc_output_close(out);
		tell(text, n);
		read_back("advice", params[i], text, n);
		assert_true(axis(&zero, &per));
		const char *from = one_panel(text, r, per);
		for (size_t k = 0; k < r->tries.n; k++) {
			from = one_panel(from, r->tries.at[k].run, per);
			is_written(r->tries.at[k].again);
			if (*r->tries.at[k].paste)
				is_written(r->tries.at[k].paste);
		}
		free(text);
	}
}

static void advise(const char *path, const char *gpu, uint64_t capacity)
{
	const struct vc_observer_type *watch[] = { vc_observer_by_name("timeline"),
		vc_observer_by_name("lives"), vc_observer_by_name("oom"), NULL };
	struct vc_advice_listener keep = { .keep = true };
	struct vc_run_options o = vc_run_options_none();
	struct vc_advice a[VC_ADVICE_MOST];
	struct vc_error err = { 0 };
	struct vc_session s = { 0 };
	struct vc_plan *plan = NULL;
	struct vc_result r = { 0 };
	char copy[100], *paths[] = { copy };
	size_t plans, n;

	snprintf(copy, sizeof(copy), "%s", path);
	if (gpu)
		o.gpu = (struct vc_list){ &gpu, 1 };
	else
		o.capacity = capacity;
	const struct vc_asked asked = { &o, 1, paths };
	assert_int_equal(vc_session_open(&s, &o, 1, paths, 0, &err), 0);
	assert_int_equal(vc_session_plans(&s, &plan, &plans, &err), 0);
	assert_int_equal(vc_session_run(&s, plan, watch, &r, &err), 0);
	n = vc_advise(&s, plan, &r, &keep, a);
	assert_true(n > 1);
	r.leak = vc_leak_find(&s);
	assert_int_equal(vc_advice_words(plan, &asked, a, n, &r, &err), 0);
	assert_int_equal(r.tries.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r.tries.at[i].run->stats.peak_reserved, a[i].peak_reserved);
		assert_int_equal(vc_result_verdict(r.tries.at[i].run), a[i].verdict);
	}
	draw_all(&r);
	told_is("drawn_advice", path);
	vc_result_fini(&r);
	free(plan);
	vc_session_close(&s);
}

static void each_change_is_drawn_as_it_was_simulated(void **unused)
{
	(void)unused;
	advise("traces/lm-medium-ctx1024.vct", "rtx4090", 0);
	advise("tests/recordings/gpt.vct", NULL, 5ull << 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_change_is_drawn_as_it_was_simulated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
