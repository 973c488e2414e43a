/* SPDX-License-Identifier: Apache-2.0 */
/* test_spread.c - steps whose sizes are those of their data, told from steps that only repeat. */
#include "tests/support/test.h"

#include "simulator/predict/spread.h"

enum { BLOCKS = 20, SIZE = 1 << 20, STEPS = 8 };

/* The next stretch of a recording: so many blocks, the first of them of `size` bytes, that go at
 * its end, where a mark stands. */
static void stretch(struct vc_trace *t, uint64_t *id, unsigned blocks, uint64_t size)
{
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (unsigned i = 0; i < blocks; i++) {
		e.id = ++*id;
		e.size = i ? SIZE : size;
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	}
	for (e.kind = VC_EV_FREE; e.id > *id - blocks; e.id--)
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	e = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP };
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

/* Is a block of data that in each of so many steps is `size` bytes and `more[k]` drawn from? What
 * comes before them is no step, and the first of them makes handles. */
static bool varies(unsigned steps, uint64_t size, const double *more)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;
	struct vc_spread s;
	uint64_t id = 0;

	t.meta->max_id = BLOCKS * (STEPS + 2);
	stretch(&t, &id, 3, SIZE);
	stretch(&t, &id, BLOCKS, size);
	for (unsigned k = 0; k < steps; k++)
		stretch(&t, &id, BLOCKS, (uint64_t)((double)size * (1 + more[k])));
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_spread_read(&s, &m, NULL), 0);
	bool is = s.varies;

	if (is)
		assert_int_equal(s.steps, steps);
	vc_spread_fini(&s);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return is;
}

static void sizes_that_differ_by_a_rounding_are_one(void **unused)
{
	static const double rounding[] = { 0, .0015, -.0015, .0030, -.0030 },
			    data[] = { 0, .0030, -.0030, .0060, -.0060 };

	(void)unused;
	assert_false(varies(5, SIZE, rounding));
	assert_true(varies(5, SIZE, data));
}

static void little_that_varies_is_not_drawn(void **unused)
{
	static const double data[] = { .01, .03, -.02, .02, -.01 };

	(void)unused;
	assert_false(varies(5, SIZE * (BLOCKS - 1) / 250, data)); /* 0.4 % of the bytes */
	assert_true(varies(5, SIZE * (BLOCKS - 1) / 143, data));  /* 0.7 % */
}

static void three_sizes_are_data_and_two_take_turns(void **unused)
{
	static const double turns[] = { .1, .2, .1, .2, .1 }, data[] = { .1, .3, .2 };

	(void)unused;
	assert_false(varies(5, SIZE, turns));
	assert_true(varies(3, SIZE, data));
}

static void what_only_grows_for_four_steps_follows_no_data(void **unused)
{
	static const double grows[] = { .1, .2, .3, .4 };

	(void)unused;
	assert_true(varies(3, SIZE, grows));
	assert_false(varies(4, SIZE, grows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_differ_by_a_rounding_are_one),
		cmocka_unit_test(little_that_varies_is_not_drawn),
		cmocka_unit_test(three_sizes_are_data_and_two_take_turns),
		cmocka_unit_test(what_only_grows_for_four_steps_follows_no_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
