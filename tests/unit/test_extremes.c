/* SPDX-License-Identifier: Apache-2.0 */
/* test_extremes.c - recordings as nobody makes them, through every picture and the report: the
 * invariants of test_drawn.c hold at each width, in all themes. */
#include "tests/support/test.h"

#include <unistd.h>

#include "simulator/session/session.h"
#include "tests/support/extremes.h"
#include "tests/support/judge.h"

enum { DEVICES = 64 };
static const struct vc_observer_type *watched[32];

static const char *const names[] = { "timeline", "lives", "segments", "peak",
				    "oom",      "moment", "steps", "unused" };

static void watch_all(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		watched[i] = vc_observer_by_name(names[i]);
}

/* The session stays open: results are lent its names. */
static void run_it(const struct extreme *x, const char *path, uint16_t device, struct vc_session *s,
		   struct vc_result *r)
{
	struct vc_run_options o = vc_run_options_none();
	struct vc_error err = { 0 };
	struct vc_plan *plan = NULL;
	char copy[300], *paths[] = { copy };
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	if (x->devices)
		o.device = device;
	if (x->capacity)
		assert_int_equal(vc_parse_size(x->capacity, &o.capacity, &err), 0);
	if (vc_session_open(s, &o, 1, paths, VC_SESSION_NO_REQUESTS_OK, &err) ||
	    vc_session_plans(s, &plan, &n, &err) || vc_session_run(s, plan, watched, r, &err))
		fail_msg("%s: %s", x->name, err.message);
	free(plan);
}

static void judge(const struct extreme *x, const struct vc_result *r, unsigned turn)
{
	uint64_t layers = x->steps * x->layers; /* large ones at two widths, to save time */
	unsigned step = SANITIZED ? 4 : layers > 100000 ? 2 : 1;
	char params[60];

	judge_numbers(x->name, r);
	judge_report(x->name, r);
	if (layers < 1000000)
		judge_page(x->name, r);
	for (unsigned i = 0; all_looks() && i < LOOKS; i++)
		judge_look(x->name, r, look_of(i, params));
	for (unsigned w = turn % step; !all_looks() && w < 4; w += step)
		judge_look(x->name, r, look_of(4 * w + (turn + w) % 4, params));
}

/* All of them on one picture: ranks, compare, and the report of several runs. */
static void judge_together(const struct extreme *x, const struct vc_result *r, size_t n)
{
	static const char *const several[] = { "ranks", "compare", "html" };
	struct vc_error err = { 0 };
	char params[60];
	size_t bytes, looks = all_looks() ? LOOKS : 4;

	for (size_t i = 0; i < 3 * looks; i++) {
		const struct vc_sink_type *t = vc_sink_by_name(several[i / looks]);
		struct vc_output *out = vc_output_memory(&err);
		void *cfg = calloc(1, t->config_size + 1);

		look_of((unsigned)(looks == 4 ? i % 4 * 5 : i % looks), params);
		assert_int_equal(vc_params_parse(t->params, cfg, params, &err), 0);
		assert_int_equal(t->write(r, n, cfg, out, &err), 0);
		char *text = vc_output_take(out, &bytes);

		pictures_drawn += i / looks < 2;
		if (i / looks < 2)
			read_back(x->name, t->name, text, bytes);
		else if (bytes > 1000000)
			fail_msg("%s: the report has %zu bytes", x->name, bytes);
		vc_output_close(out);
		VC_FREE(text, cfg);
	}
}

static void extremes_are_drawn_as_they_are(void **unused)
{
	const char *tmp = getenv("TMP");
	struct vc_session *s = calloc(DEVICES, sizeof(*s));
	struct vc_result *r = calloc(DEVICES, sizeof(*r));
	char path[300];

	(void)unused;
	watch_all();
	snprintf(path, sizeof(path), "%s/extreme.vct", tmp ? tmp : "/tmp");
	for (unsigned i = 0; i < sizeof(extremes) / sizeof(*extremes); i++) {
		const struct extreme *x = &extremes[i];
		uint16_t n = x->devices ? x->devices : 1;

		if (SANITIZED && x->steps * x->layers > 500000)
			continue;
		if (getenv("ONLY") && strcmp(getenv("ONLY"), x->name))
			continue;
		print_message("%s: %llu events\n", x->name,
			      (unsigned long long)extreme_write(x, path));
		for (uint16_t k = 0; k < n; k++)
			run_it(x, path, k, &s[k], &r[k]);
		judge(x, r, i);
		if (n > 1)
			judge_together(x, r, n);
		for (uint16_t k = 0; k < n; k++) {
			vc_result_fini(&r[k]);
			vc_session_close(&s[k]);
			r[k] = (struct vc_result){ 0 };
			s[k] = (struct vc_session){ 0 };
		}
		unlink(path);
	}
	print_message("%zu recordings, %zu pictures\n", sizeof(extremes) / sizeof(*extremes),
		      pictures_drawn);
	VC_FREE(s, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(extremes_are_drawn_as_they_are) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
