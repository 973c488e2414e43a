/* SPDX-License-Identifier: Apache-2.0 */
/* test_drawn.c - what is drawn is what is reported: every recording that ships, under several
 * settings, drawn and read back. */
#include "tests/support/test.h"

#include <glob.h>

#include "common/io.h"
#include "simulator/session/session.h"
#include "tests/support/svgcheck.h"
#include "visualize/classify.h"
#include "visualize/format.h"
#include "visualize/packing.h"
#include "visualize/sink.h"

static const char *const folders[] = { "traces/*.vct", "tests/recordings/*.vct",
				       "tests/transforms/recordings/bert*.vct",
				       "tests/transforms/recordings/conv.vct" };

/* What a recording is drawn under: its own card, small ones, other settings. */
static const struct setting { const char *gpu, *conf, *start; uint64_t capacity; } settings[] = {
	{ 0 },
	{ .gpu = "rtx4090" },
	{ .gpu = "a100-40g-sxm" },
	{ .conf = "expandable_segments:True" },
	{ .conf = "max_split_size_mb:64", .start = "cold" },
	{ .capacity = 700ull << 20 },
};

static const struct vc_observer_type *watched[32];

static void watch_all(void)
{
	static const char *const names[] = { "timeline", "lives", "segments", "peak", "oom",
					     "steps",    "unused" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		watched[i] = vc_observer_by_name(names[i]);
}

typedef void judge_fn(const char *what, const struct vc_result *r);

static void run_one(const char *path, size_t k, judge_fn *judge)
{
	const struct setting *t = &settings[k];
	char copy[300], what[400], *paths[] = { copy };
	struct vc_run_options o = vc_run_options_none();
	struct vc_error err = { 0 };
	struct vc_session s = { 0 };
	struct vc_plan *plan = NULL;
	struct vc_result r = { 0 };
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(what, sizeof(what), "%s, setting %zu", path, k);
	if (t->gpu)
		o.gpu = (struct vc_list){ (const char **)(uintptr_t)&t->gpu, 1 };
	if (t->conf)
		o.conf = (struct vc_list){ (const char **)(uintptr_t)&t->conf, 1 };
	o.start = t->start;
	if (t->capacity)
		o.capacity = t->capacity;
	if (!vc_session_open(&s, &o, 1, paths, VC_SESSION_NO_REQUESTS_OK, &err) &&
	    !vc_session_plans(&s, &plan, &n, &err) &&
	    !vc_session_run(&s, plan, watched, &r, &err))
		judge(what, &r);
	else if (!strstr(err.message, "recorded"))
		print_message("%s: %s\n", what, err.message);
	vc_result_fini(&r);
	free(plan);
	vc_session_close(&s);
}

static void each(judge_fn *judge)
{
	glob_t g = { 0 };

	watch_all();
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		glob(folders[i], i ? GLOB_APPEND : 0, NULL, &g);
	assert_true(g.gl_pathc > 20);
	for (size_t i = 0; i < g.gl_pathc; i++)
		for (size_t k = 0; k < sizeof(settings) / sizeof(*settings); k++)
			run_one(g.gl_pathv[i], k, judge);
	globfree(&g);
}

/* ---- the numbers that pictures are made of ---- */

static void the_pile_is_as_high_as_what_is_reserved(const char *what, const struct vc_result *r)
{
	struct vc_packing p;
	struct vc_error err;
	uint32_t *home = malloc((r->lives.n + 1) * sizeof(*home));

	assert_int_equal(vc_packing_init(&p, r, &err), 0);
	assert_int_equal(vc_packing_homes(&p, &r->lives, home, &err), 0);
	uint64_t pile = vc_packing_stack(&p, r->stats.peak_event);
	if (!p.guessed && pile != r->stats.peak_reserved)
		fail_msg("%s: the pile is %llu high, reserved are %llu", what,
			 (unsigned long long)pile, (unsigned long long)r->stats.peak_reserved);
	for (size_t i = 0; i < r->lives.n; i++)
		if (home[i] == VC_NO_SHELF && !p.guessed)
			fail_msg("%s: block %llu lies nowhere", what,
				 (unsigned long long)r->lives.at[i].id);
	vc_packing_fini(&p);
	free(home);
}

static void holders_hold_what_is_allocated(const char *what, const struct vc_result *r)
{
	struct vc_classes c;
	struct vc_owners o;
	struct vc_error err;

	assert_int_equal(vc_classes_init(&c, r, &err), 0);
	assert_int_equal(vc_owners_init(&o, &c, &err), 0);
	if (o.of_allocated && o.bytes != r->stats.peak_allocated)
		fail_msg("%s: %llu are held, %llu allocated at the peak", what,
			 (unsigned long long)o.bytes,
			 (unsigned long long)r->stats.peak_allocated);
	vc_owners_fini(&o);
	vc_classes_fini(&c);
}

static void judge_numbers(const char *what, const struct vc_result *r)
{
	the_pile_is_as_high_as_what_is_reserved(what, r);
	holders_hold_what_is_allocated(what, r);
}

static void pictures_are_made_of_reported_numbers(void **unused)
{
	(void)unused;
	each(judge_numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_are_made_of_reported_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
