/* SPDX-License-Identifier: Apache-2.0 */
/* test_workspaces.c - which blocks are the gradients of a layer, whose rows a sum goes over: what
 * is just inside each limit of the recognition and what is just outside. */
#include "tests/support/test.h"

#include "simulator/predict/workspaces.h"

enum { ROWS = 100, WIDTH = 256, INPUTS = 512, MOST = 7000 };

/* A recording by hand: blocks in the order of their requests; those that grow do so twofold. */
struct scene {
	struct vc_trace t;
	double grows[MOST];
	uint32_t n;
};

static struct scene *scene_new(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->t.meta = vc_meta_new(NULL);
	return s;
}

static uint32_t take(struct scene *s, uint64_t size, double grows)
{
	struct vc_event e = { .kind = VC_EV_ALLOC, .id = s->n + 1, .size = size };

	assert_int_equal(vc_trace_append(&s->t, &e, 1, NULL), 0);
	s->grows[s->n] = grows;
	return s->n++;
}

static void give(struct scene *s, uint32_t block)
{
	struct vc_event e = { .kind = VC_EV_FREE, .id = block + 1 };

	assert_int_equal(vc_trace_append(&s->t, &e, 1, NULL), 0);
}

/* Is `owner` taken for a sum over the rows of `source`? The scene goes. */
static bool sums(struct scene *s, uint32_t owner, uint32_t source)
{
	const struct vc_reduction_card card = { .sms = 132, .threads_per_sm = 2048 };
	struct vc_workspaces found = { 0 };
	struct vc_allocations m = { 0 };
	bool yes = false;

	s->t.meta->max_id = s->n;
	assert_int_equal(vc_allocations_init(&m, &s->t, 0, NULL), 0);
	assert_int_equal(vc_workspace_find(&m, s->grows, &card, &found, NULL), 0);
	for (size_t i = 0; i < found.n; i++)
		yes |= found.at[i].owner == owner && found.at[i].source == source;
	free(found.at);
	vc_allocations_fini(&m);
	vc_trace_fini(&s->t);
	free(s);
	return yes;
}

/* The input of a layer (block 0) and the gradient that flows into it (block 1). */
static struct scene *rows_of(uint64_t inputs, uint64_t bias)
{
	struct scene *s = scene_new();

	take(s, ROWS * inputs * 4, 2);
	take(s, ROWS * bias, 2);
	return s;
}

static bool behind_others(int others)
{
	struct scene *s = rows_of(INPUTS, 4 * WIDTH);

	for (int i = 0; i < others; i++)
		take(s, 12, 1);
	take(s, 4 * WIDTH * INPUTS, 1);
	return sums(s, take(s, 4 * WIDTH, 1), 1);
}

static void rows_are_looked_for_among_six_thousand(void **unused)
{
	(void)unused;
	assert_true(behind_others(0));
	assert_true(behind_others(5997));
	assert_false(behind_others(5998));
}

static bool bias_of(uint64_t bytes)
{
	struct scene *s = rows_of(2, bytes);

	take(s, 2 * bytes, 1);
	return sums(s, take(s, bytes, 1), 1);
}

static void a_bias_has_at_most_a_mebibyte(void **unused)
{
	(void)unused;
	assert_true(bias_of(1 << 20));
	assert_false(bias_of((1 << 20) + 4));
}

static bool borrowed_between(uint64_t bytes)
{
	struct scene *s = rows_of(INPUTS, 4 * WIDTH);

	take(s, 4 * WIDTH * INPUTS, 1);
	give(s, take(s, bytes, 1));
	return sums(s, take(s, 4 * WIDTH, 1), 1);
}

static void what_a_product_borrows_stands_between_nothing(void **unused)
{
	(void)unused;
	assert_true(borrowed_between(65536));
	assert_false(borrowed_between(65532));
}

/* Two blocks behind another, which are given back in turn before anything else is asked for. */
static void a_workspace_follows_at_once(void **unused)
{
	uint32_t born[] = { 10, 20, 21, 22 }, died[] = { 11, 90, 24, 23 };
	uint32_t *const field[] = { &born[1], &born[2], &born[3], &died[2], &died[3] };
	struct vc_allocations m = { .born = born, .died = died, .n = 4 };

	(void)unused;
	assert_true(vc_workspace_follows(&m, 1));
	assert_false(vc_workspace_follows(&m, 0));
	assert_false(vc_workspace_follows(&m, 2));
	for (size_t i = 0; i < 5; i++) {
		++*field[i];
		assert_false(vc_workspace_follows(&m, 1));
		--*field[i];
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_looked_for_among_six_thousand),
		cmocka_unit_test(a_bias_has_at_most_a_mebibyte),
		cmocka_unit_test(what_a_product_borrows_stands_between_nothing),
		cmocka_unit_test(a_workspace_follows_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
