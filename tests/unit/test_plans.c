/* SPDX-License-Identifier: Apache-2.0 */
/* test_plans.c - which blocks are workspace of a convolution's plan, and which are its blocks in
 * another recording. */
#include "tests/support/test.h"

#include "simulator/predict/plans.h"

enum { MOST = 16, TENSOR = 4096, SPACE = 70000 };

/* A recording by hand, and what is said of it. */
struct scene {
	struct vc_trace t;
	struct vc_allocations m;
	uint32_t conv, loss, n;
	bool plan[MOST], layers;
};

static uint32_t frame(struct vc_meta *m, uint32_t parent, const char *file, const char *name)
{
	return vc_meta_frame(m, (struct vc_frame){ parent, vc_meta_string(m, name, strlen(name)),
						   vc_meta_string(m, file, strlen(file)), 1 });
}

static void begin(struct scene *s)
{
	*s = (struct scene){ .n = 0 };
	s->t.meta = vc_meta_new(NULL);
	s->conv = frame(s->t.meta, 0, "torch/nn/modules/conv.py", "forward");
	s->loss = frame(s->t.meta, 0, "train.py", "loss");
}

static void take(struct scene *s, uint64_t size, uint32_t site, bool back)
{
	struct vc_event e = { .kind = VC_EV_ALLOC, .id = ++s->n, .size = size, .site = site };

	assert_int_equal(vc_trace_append(&s->t, &e, 1, NULL), 0);
	e.kind = VC_EV_FREE;
	if (back)
		assert_int_equal(vc_trace_append(&s->t, &e, 1, NULL), 0);
}

static void mark(struct scene *s)
{
	s->t.meta->max_id = s->n;
	assert_int_equal(vc_allocations_init(&s->m, &s->t, 0, NULL), 0);
	assert_int_equal(vc_plans_mark(&s->m, s->plan, &s->layers, NULL), 0);
}

static void end(struct scene *s)
{
	vc_allocations_fini(&s->m);
	vc_trace_fini(&s->t);
}

static void only_what_a_layer_borrows_is_workspace(void **unused)
{
	struct scene s;

	(void)unused;
	begin(&s);
	take(&s, TENSOR, s.conv, false);
	take(&s, SPACE, s.conv, true);     /* a convolution's */
	take(&s, SPACE + 2, s.loss, true); /* the program's own */
	take(&s, TENSOR, s.conv, true);    /* a tensor's size */
	take(&s, 512, s.conv, true);       /* as small as any block */
	take(&s, SPACE + 4, 0, true);      /* of the backward pass */
	take(&s, SPACE + 6, 0, false);
	mark(&s);
	assert_true(s.layers);
	for (uint32_t i = 0; i < s.n; i++)
		assert_int_equal(s.plan[i], i == 1 || i == 5);
	end(&s);
}

/* Forward it needs no workspace (one pixel, or each channel alone), backward it does. */
static void a_convolution_that_borrows_nothing_tells_as_well(void **unused)
{
	struct scene s;

	(void)unused;
	begin(&s);
	take(&s, TENSOR, s.conv, false);
	take(&s, SPACE, 0, true);
	mark(&s);
	assert_true(s.layers && s.plan[1] && !s.plan[0]);
	end(&s);
}

static void without_such_a_layer_nothing_tells(void **unused)
{
	struct scene s;

	(void)unused;
	begin(&s);
	take(&s, SPACE, s.loss, true);
	take(&s, SPACE + 4, 0, true);
	mark(&s);
	assert_false(s.layers);
	end(&s);
}

/* The first convolution needs workspace in both, the second in one recording only. */
static void workspace_is_that_behind_the_same_block(void **unused)
{
	struct scene a, b;
	uint32_t match[MOST] = { 0, VC_UNMATCHED, 2, VC_UNMATCHED, 3 };

	(void)unused;
	begin(&a);
	begin(&b);
	take(&a, TENSOR, a.conv, false);
	take(&a, SPACE, a.conv, true);
	take(&a, TENSOR, a.conv, false);
	take(&a, SPACE + 8, a.conv, true);
	take(&a, TENSOR, a.loss, false);
	take(&b, TENSOR, b.conv, false);
	take(&b, 9 * SPACE, b.conv, true);
	take(&b, TENSOR, b.conv, false);
	take(&b, TENSOR, b.loss, false);
	mark(&a);
	mark(&b);
	vc_plans_match(&a.m, a.plan, &b.m, b.plan, match);
	assert_int_equal(match[1], 1);
	assert_int_equal(match[3], VC_UNMATCHED);
	end(&a);
	end(&b);
}

static void draws_differ_and_come_again(void **unused)
{
	bool other = false;

	(void)unused;
	for (unsigned draw = 1; draw < 9; draw++) {
		double at = vc_plans_factor(draw, SPACE, 0);

		assert_true(at == vc_plans_factor(draw, SPACE, 0));
		assert_true(at >= 0 && at < 2);
		other |= at != vc_plans_factor(1, SPACE, 0);
	}
	assert_true(other);
	assert_true(vc_plans_factor(0, SPACE, 0) == 1);
}

static void what_three_recordings_share_is_kept_mostly(void **unused)
{
	const struct vc_law line = { .kind = VC_LAW_AFFINE, .a = 300, .b = 7 };
	const struct vc_law less = { .kind = VC_LAW_AFFINE, .a = -300, .b = 7 };
	const struct vc_law step = { .kind = VC_LAW_STEP, .a = 300 };
	size_t kept = 0, before = 0;

	(void)unused;
	assert_int_equal(vc_plans_kept(&less, 3), 0);
	assert_int_equal(vc_plans_kept(&step, 3), 0);
	for (unsigned draw = 1; draw <= 400; draw++) {
		kept += vc_plans_factor(draw, SPACE, vc_plans_kept(&line, 3)) == 1;
		before += vc_plans_factor(draw, SPACE, 0) == 1;
	}
	assert_in_range(kept, 340, 399); /* nine in ten, and those that are drawn as one */
	assert_in_range(before, 1, 100);
}

static struct vc_law through(double y, double z)
{
	const struct vc_sample s[] = { { 8, y }, { 12, z } };

	return vc_law_fit(s, 2, 0);
}

/* Any two lie on a line: the fewer numbers it needs, the more it says. */
static void what_two_recordings_share_is_kept_by_its_law(void **unused)
{
	const struct vc_law stays = through(4096, 4096), grows = through(8000, 12000),
			    whole = through(8100, 12100), parts = through(8100, 12102),
			    steep = through(8000, 20000), falls = through(9000, 7000);

	(void)unused;
	assert_true(vc_plans_kept(&stays, 2) > vc_plans_kept(&whole, 2));
	assert_int_equal(vc_plans_kept(&stays, 2), vc_plans_kept(&grows, 2));
	assert_in_range(vc_plans_kept(&whole, 2), 50, 70);
	assert_true(vc_plans_kept(&parts, 3) > vc_plans_kept(&whole, 2));
	assert_int_equal(vc_plans_kept(&parts, 2), 0);
	assert_int_equal(vc_plans_kept(&steep, 2), 0);
	assert_int_equal(vc_plans_kept(&falls, 2), 0);
	assert_int_equal(vc_plans_kept(&stays, 1), 0);
}

static void two_sizes_show_a_plan_or_two(void **unused)
{
	const struct vc_law stays = through(4096, 4096), grows = through(8000, 12000),
			    whole = through(8100, 12100), parts = through(8100, 12102),
			    steep = through(8000, 20000), falls = through(9000, 7000);
	const struct vc_law square = { .kind = VC_LAW_AFFINE, .a = 100, .c = 1.5 };

	(void)unused;
	assert_true(vc_plans_shows(&stays, 2) && vc_plans_shows(&grows, 2));
	assert_true(vc_plans_shows(&whole, 2)); /* 1000 for each unit */
	assert_false(vc_plans_shows(&parts, 2));
	assert_true(vc_plans_shows(&parts, 3));
	assert_true(vc_plans_shows(&square, 2)); /* of a side */
	assert_false(vc_plans_shows(&steep, 2) || vc_plans_shows(&steep, 3));
	assert_false(vc_plans_shows(&falls, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_a_layer_borrows_is_workspace),
		cmocka_unit_test(a_convolution_that_borrows_nothing_tells_as_well),
		cmocka_unit_test(without_such_a_layer_nothing_tells),
		cmocka_unit_test(workspace_is_that_behind_the_same_block),
		cmocka_unit_test(draws_differ_and_come_again),
		cmocka_unit_test(what_three_recordings_share_is_kept_mostly),
		cmocka_unit_test(what_two_recordings_share_is_kept_by_its_law),
		cmocka_unit_test(two_sizes_show_a_plan_or_two),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
