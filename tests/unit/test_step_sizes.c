/* SPDX-License-Identifier: Apache-2.0 */
/* test_step_sizes.c - steps whose sizes are those of their data, and steps that only repeat. */
#include "tests/support/test.h"

#include "simulator/predict/family.h"
#include "simulator/predict/step_sizes.h"

enum { BLOCKS = 20, SIZE = 1 << 20 };

/* The next part of a recording: so many blocks, the first of them of `size` bytes, that go at
 * its end, where a mark stands. */
static void part(struct vc_trace *t, uint64_t *id, unsigned blocks, uint64_t size)
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

/* Is a block of data that in each of so many steps is `size` bytes and `more[k]` of that? What
 * comes before them is no step, and the first of them makes handles. */
static bool varies(unsigned steps, uint64_t size, const double *more)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;
	struct vc_step_sizes s;
	uint64_t id = 0;

	t.meta->max_id = BLOCKS * (steps + 2);
	part(&t, &id, 3, SIZE);
	part(&t, &id, BLOCKS, size);
	for (unsigned k = 0; k < steps; k++)
		part(&t, &id, BLOCKS, (uint64_t)((double)size * (1 + more[k])));
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_step_sizes_read(&s, &m, NULL), 0);
	bool is = s.vary;

	if (is)
		assert_int_equal(s.steps, steps);
	vc_step_sizes_fini(&s);
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

static void little_that_varies_is_not_resampled(void **unused)
{
	static const double data[] = { .01, .03, -.02, .02, -.01 };

	(void)unused;
	assert_false(varies(5, SIZE * (BLOCKS - 1) / 250, data)); /* 0.4 % of the bytes */
	assert_true(varies(5, SIZE * (BLOCKS - 1) / 143, data));  /* 0.7 % */
}

static void three_sizes_are_data_and_two_are_periodic(void **unused)
{
	static const double periodic[] = { .1, .2, .1, .2, .1 }, data[] = { .1, .3, .2 };

	(void)unused;
	assert_false(varies(5, SIZE, periodic));
	assert_true(varies(3, SIZE, data));
}

/* Lengths are whole numbers and are cut off: of many steps most are alike. */
static void of_many_steps_some_are_alike(void **unused)
{
	double data[48], rare[48];
	uint64_t x = 88172645463325252u;

	(void)unused;
	for (unsigned k = 0; k < 48; k++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		data[k] = (double)(x >> 32 & 7) > 3 ? .4 : (double)(x >> 32 & 7) / 10;
		rare[k] = k % 12 == 7 ? (double)k / 100 : 0;
	}
	assert_true(varies(48, SIZE, data));
	assert_false(varies(48, SIZE, rare));
}

static void what_only_grows_for_four_steps_follows_no_data(void **unused)
{
	static const double grows[] = { .1, .2, .3, .4 };

	(void)unused;
	assert_true(varies(3, SIZE, grows));
	assert_false(varies(4, SIZE, grows));
}

/* A step: blocks of those sizes, in units, then `more` blocks of SIZE. */
static void step(struct vc_trace *t, uint64_t *id, const double *size, unsigned n, unsigned more)
{
	uint64_t from = *id;
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (unsigned i = 0; i < n + more; i++) {
		e.id = ++*id;
		e.size = i < n ? (uint64_t)(size[i] * SIZE) : SIZE;
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	}
	for (e.kind = VC_EV_FREE; e.id > from; e.id--)
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	e = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP };
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

/* One block of a step is larger than in the others while the next one is smaller, and some steps
 * ask for blocks more: each block stands beside its like in the step of the middle. */
static void one_block_of_a_step_may_grow_while_another_shrinks(void **unused)
{
	static const double data[][2] = { { 8, 30 }, { 9.1, 27 }, { 7.3, 33 },
					  { 8.6, 29 }, { 7.7, 35 }, { 9.5, 26 } };
	static const unsigned more[] = { 0, 0, 2, 1, 0, 2 };
	enum { N = sizeof(data) / sizeof(*data) };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;
	struct vc_step_sizes s;
	uint64_t id = 0, first = 3;

	(void)unused;
	t.meta->max_id = 3 * BLOCKS * N;
	part(&t, &id, 3, SIZE);
	for (unsigned k = 0; k < N; k++)
		step(&t, &id, data[k], 2, 2 * BLOCKS + more[k]);
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_step_sizes_read(&s, &m, NULL), 0);
	assert_true(s.vary);
	assert_int_equal(s.places, 2 + 2 * BLOCKS + 1);
	uint32_t from[N + 1];
	bool other = false;

	vc_step_sizes_sample(&s, 0, from);
	for (uint32_t g = 0; g <= s.steps; g++)
		assert_int_equal(from[g], g);
	for (unsigned sample = 1; sample < 4; sample++) {
		vc_step_sizes_sample(&s, sample, from);
		for (uint32_t g = 0; g < s.steps; g++) {
			assert_true(from[g] < s.steps);
			other |= from[g] != g;
		}
	}
	assert_true(other);
	for (unsigned k = 0; k < N; first += 2 + 2 * BLOCKS + more[k++])
		for (unsigned i = 0; i < 2; i++) {
			assert_true(vc_step_sizes_has(&s, first + i));
			assert_int_equal(s.place[first + i], s.place[3 + i]);
		}
	vc_step_sizes_fini(&s);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_differ_by_a_rounding_are_one),
		cmocka_unit_test(little_that_varies_is_not_resampled),
		cmocka_unit_test(three_sizes_are_data_and_two_are_periodic),
		cmocka_unit_test(of_many_steps_some_are_alike),
		cmocka_unit_test(what_only_grows_for_four_steps_follows_no_data),
		cmocka_unit_test(one_block_of_a_step_may_grow_while_another_shrinks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
