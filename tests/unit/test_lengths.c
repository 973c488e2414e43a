/* SPDX-License-Identifier: Apache-2.0 */
/* test_lengths.c - steps padded to their longest sample, told from steps that follow a law. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "simulator/predict/lengths.h"

enum { MOST = 8, BLOCKS = 30 };

/* A recording of so many stretches that a mark ends, in which the blocks of stretch k have
 * batch * length[k] * 1024 bytes and more. The first, unlike the others, is no step. */
static void record(struct vc_trace *t, struct vc_allocations *m, unsigned stretches, unsigned batch,
		   const unsigned *length)
{
	uint64_t id = 0;

	*t = (struct vc_trace){ .meta = vc_meta_new(NULL) };
	t->meta->max_id = MOST * BLOCKS;
	for (unsigned k = 0; k < stretches; k++) {
		struct vc_event e = { .kind = VC_EV_ALLOC };

		for (unsigned i = 0; i < BLOCKS; i++) {
			e.id = ++id;
			e.size = 1024ull * batch * length[k] * (i + 1);
			assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
		}
		for (e.kind = VC_EV_FREE; e.id > id - BLOCKS; e.id--)
			assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
		e = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP };
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	}
	assert_int_equal(vc_allocations_init(m, t, 0, NULL), 0);
}

/* What the steps of batch 4 and of batch 8, in which samples have these lengths, say together. */
static struct vc_lengths of(unsigned stretches, const unsigned *four, const unsigned *eight,
			    const bool *plan)
{
	struct vc_trace t[2];
	struct vc_allocations m[2];
	struct vc_lengths l;
	const double x[2] = { 4, 8 };
	uint32_t match[MOST * BLOCKS], *matches[2] = { NULL, match };

	record(&t[0], &m[0], stretches, 4, four);
	record(&t[1], &m[1], stretches, 8, eight);
	for (uint32_t i = 0; i < MOST * BLOCKS; i++)
		match[i] = i;
	struct vc_lengths_of o = { m, 2, x, matches, plan };

	assert_int_equal(vc_lengths_read(&l, &o, 0, NULL), 0);
	for (int i = 0; i < 2; i++) {
		vc_allocations_fini(&m[i]);
		vc_trace_fini(&t[i]);
	}
	return l;
}

static bool vary(unsigned stretches, const unsigned *four, const unsigned *eight)
{
	struct vc_lengths l = of(stretches, four, eight, NULL);
	bool is = l.vary;

	vc_lengths_fini(&l);
	return is;
}

static void three_steps_that_grow_unlike_each_other_follow_no_law(void **unused)
{
	static const unsigned four[] = { 40, 52, 61, 47, 55 },
			      eight[] = { 66, 57, 73, 70, 58 };

	(void)unused;
	assert_true(vary(5, four, eight));
	assert_true(vary(4, four, eight));
	assert_false(vary(3, four, eight));
}

static void steps_that_grow_alike_follow_a_law(void **unused)
{
	static const unsigned same[] = { 40, 52, 61, 47 };

	(void)unused;
	assert_false(vary(4, same, same));
}

/* Most samples are cut off at one length. A single step beside them may be the rest of the data:
 * six samples of eight. */
static void one_step_of_another_length_is_no_batch_that_is_not_full(void **unused)
{
	static const unsigned cut[] = { 64, 64, 64, 64, 64 }, rest[] = { 64, 64, 48, 64, 64 },
			      less[] = { 64, 64, 41, 64, 64 };

	(void)unused;
	assert_false(vary(5, cut, rest));
	assert_true(vary(5, cut, less));
	assert_true(vary(5, less, cut));
}

/* How the longest of the steps grows: with the tenth of a power at least, the square root at
 * most. */
static void the_longest_grows_by_no_more_than_the_square_root(void **unused)
{
	static const unsigned four[] = { 40, 52, 61, 47 }, some[] = { 52, 57, 77, 70 },
			      most[] = { 99, 121, 203, 180 }, less[] = { 42, 49, 57, 50 };
	static const struct { const unsigned *eight; double low, high; } want[] = {
		{ some, 0.33, 0.34 }, { most, 0.5, 0.5 }, { less, 0.1, 0.1 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct vc_lengths l = of(4, four, want[i].eight, NULL);

		assert_true(l.vary);
		assert_true(l.exponent >= want[i].low && l.exponent <= want[i].high);
		vc_lengths_fini(&l);
	}
}

/* cuDNN needs another workspace at another size, and in its first steps: no data. */
static void workspace_shows_no_length(void **unused)
{
	static const unsigned four[] = { 40, 52, 61, 47 }, eight[] = { 66, 57, 73, 70 };
	static bool plan[MOST * BLOCKS];
	struct vc_lengths l = of(4, four, eight, plan);

	(void)unused;
	assert_true(l.vary);
	vc_lengths_fini(&l);
	for (size_t i = 0; i < sizeof(plan); i++)
		plan[i] = true;
	l = of(4, four, eight, plan);
	assert_false(l.vary);
	vc_lengths_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_steps_that_grow_unlike_each_other_follow_no_law),
		cmocka_unit_test(steps_that_grow_alike_follow_a_law),
		cmocka_unit_test(workspace_shows_no_length),
		cmocka_unit_test(one_step_of_another_length_is_no_batch_that_is_not_full),
		cmocka_unit_test(the_longest_grows_by_no_more_than_the_square_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
