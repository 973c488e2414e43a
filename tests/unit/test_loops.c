/* SPDX-License-Identifier: Apache-2.0 */
/* test_loops.c - turns of a loop that a larger value of the parameter makes more often. */
#include "tests/support/test.h"

#include "simulator/predict/loops.h"

enum { BESIDE = 5, MOST = 400 }; /* blocks before and behind the loop */

/* `turns` turns of `period` blocks, with others before and behind; all live to the end. */
static struct vc_trace looping(size_t turns, size_t period)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_event e = { .kind = VC_EV_ALLOC };
	size_t n = turns * period + 2 * BESIDE;

	for (size_t i = 0; i < n; i++) {
		bool in = i >= BESIDE && i < n - BESIDE;

		e.id = i + 1;
		e.size = in ? 5000 + 100 * ((i - BESIDE) % period) :
			      70000 + 100 * (i < BESIDE ? i : n - i + BESIDE);
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	t.meta->max_id = n;
	return t;
}

/* Loops found between a recording at 21 and one at 8, with that many turns each. */
static size_t found(size_t more, size_t fewer, size_t period, struct vc_loop *first)
{
	struct vc_trace s = looping(more, period), t = looping(fewer, period);
	struct vc_allocations b = { 0 }, o = { 0 };
	struct vc_loops l = { 0 };
	uint32_t match[MOST];

	assert_int_equal(vc_allocations_init(&b, &s, 0, NULL), 0);
	assert_int_equal(vc_allocations_init(&o, &t, 0, NULL), 0);
	assert_true(b.n <= MOST);
	for (size_t i = 0; i < b.n; i++)
		match[i] = i < BESIDE + fewer * period ? (uint32_t)i :
			   i < b.n - BESIDE ? UINT32_MAX : (uint32_t)(i - (b.n - o.n));
	assert_int_equal(vc_loops_find(&b, 21, &o, 8, match, &l, NULL), 0);
	size_t n = l.n;
	if (n)
		*first = l.at[0];
	vc_loops_fini(&l);
	vc_allocations_fini(&b);
	vc_allocations_fini(&o);
	vc_trace_fini(&s);
	vc_trace_fini(&t);
	return n;
}

static void turns_that_grow_with_the_parameter_are_a_loop(void **unused)
{
	struct vc_loop l = { 0 };

	(void)unused;
	assert_int_equal(found(21, 8, 5, &l), 1);
	assert_int_equal(l.period, 5);
	assert_int_equal(l.from, BESIDE);
	assert_int_equal(l.to, BESIDE + 105);
	assert_true(l.per == 1);
}

static void a_turn_has_at_least_four_blocks(void **unused)
{
	struct vc_loop l = { 0 };

	(void)unused;
	assert_int_equal(found(21, 8, 4, &l), 1);
	assert_int_equal(l.period, 4);
	assert_int_equal(found(21, 8, 3, &l), 0);
}

static void two_turns_may_be_others(void **unused)
{
	struct vc_loop l;

	(void)unused;
	assert_int_equal(found(23, 10, 5, &l), 1);
	assert_int_equal(found(19, 6, 5, &l), 1);
	assert_int_equal(found(24, 11, 5, &l), 0);
	assert_int_equal(found(18, 5, 5, &l), 0);
}

/* Loops found between 21 turns and 20 of five blocks, when the turn without counterpart is cut in
 * two by so many blocks that have one. */
static size_t found_apart(size_t gap)
{
	struct vc_trace s = looping(21, 5), t = looping(20, 5);
	struct vc_allocations b = { 0 }, o = { 0 };
	struct vc_loops l = { 0 };
	uint32_t match[MOST];
	size_t from = BESIDE + 25, n;

	assert_int_equal(vc_allocations_init(&b, &s, 0, NULL), 0);
	assert_int_equal(vc_allocations_init(&o, &t, 0, NULL), 0);
	for (size_t i = 0; i < b.n; i++)
		match[i] = i < from ? (uint32_t)i : i < from + 3 ? UINT32_MAX :
			   i < from + 3 + gap ? (uint32_t)i - 3 :
			   i < from + 5 + gap ? UINT32_MAX : (uint32_t)i - 5;
	assert_int_equal(vc_loops_find(&b, 21, &o, 20, match, &l, NULL), 0);
	n = l.n;
	vc_loops_fini(&l);
	vc_allocations_fini(&b);
	vc_allocations_fini(&o);
	vc_trace_fini(&s);
	vc_trace_fini(&t);
	return n;
}

static void pieces_of_a_turn_stand_close_together(void **unused)
{
	(void)unused;
	assert_int_equal(found_apart(5), 1);
	assert_int_equal(found_apart(20), 1);
	assert_int_equal(found_apart(40), 0);
}

/* Blocks that live at once, at most. */
static size_t alive(const struct vc_trace *t)
{
	size_t now = 0, most = 0;

	for (size_t i = 0; i < t->n; i++) {
		now += t->ev[i].kind == VC_EV_ALLOC;
		now -= t->ev[i].kind == VC_EV_FREE;
		most = now > most ? now : most;
	}
	assert_int_equal(now, 0);
	return most;
}

/* Six turns keep a block each and borrow another; all are given back behind the loop. */
static struct vc_trace keeping(size_t turns)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (e.id = 1; e.id <= 2 * turns; e.id++) {
		e.kind = VC_EV_ALLOC;
		e.size = e.id % 2 ? 4096 : 512;
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
		e.kind = VC_EV_FREE;
		if (e.id % 2 == 0)
			assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e.kind = VC_EV_FREE;
	for (e.id = 1; e.id <= 2 * turns; e.id += 2)
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	t.meta->max_id = 2 * turns;
	return t;
}

static void turns_are_added_and_left_out(void **unused)
{
	static const int64_t more[] = { -6, -4, -1, 0, 3 };
	struct vc_trace t = keeping(6);
	struct vc_allocations b;
	uint32_t like[12];
	struct vc_loop one = { .from = 0, .to = 12, .period = 2 };
	struct vc_loops l = { .at = &one, .n = 1, .like = like };

	(void)unused;
	assert_int_equal(vc_allocations_init(&b, &t, 0, NULL), 0);
	for (uint32_t i = 0; i < 12; i++)
		like[i] = i % 2;
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
		struct vc_looped out;
		size_t turns = (size_t)(6 + more[i]);

		assert_int_equal(vc_loops_repeat(&l, &b, &more[i], &out, NULL), 0);
		assert_int_equal(out.trace.n, 4 * turns);
		assert_int_equal(alive(&out.trace), turns ? turns + 1 : 0);
		vc_looped_fini(&out);
	}
	vc_allocations_fini(&b);
	vc_trace_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_that_grow_with_the_parameter_are_a_loop),
		cmocka_unit_test(a_turn_has_at_least_four_blocks),
		cmocka_unit_test(two_turns_may_be_others),
		cmocka_unit_test(pieces_of_a_turn_stand_close_together),
		cmocka_unit_test(turns_are_added_and_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
