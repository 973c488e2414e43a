/* SPDX-License-Identifier: Apache-2.0 */
/* test_turns.c - loops that turn as often as a law of the parameter says. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "simulator/predict/full_turns.h"
#include "simulator/predict/turn_laws.h"
#include "simulator/predict/turns.h"

enum { MOST = 4000 };

/* A recording under construction: blocks of places and sizes. */
struct program {
	struct vc_take take[MOST];
	uint32_t born[MOST], died[MOST], time;
	struct vc_allocations m;
};

static void ask(struct program *p, uint64_t site, uint64_t size)
{
	assert_true(p->m.n < MOST);
	p->born[p->m.n] = p->time++;
	p->died[p->m.n] = VC_NEVER;
	p->take[p->m.n++] = (struct vc_take){ .site = site, .size = size };
	p->m.take = p->take;
	p->m.born = p->born;
	p->m.died = p->died;
}

/* Two buffers of what was asked for last, given back at once, the second first. */
static void borrow(struct program *p, uint64_t site)
{
	ask(p, site, 524288);
	ask(p, site, 512);
	p->died[p->m.n - 1] = p->time++;
	p->died[p->m.n - 2] = p->time++;
}

/* A turn has two places, the second of which turns a loop of three; `bytes` more each turn where
 * the turns are unlike each other. */
static void forward(struct program *p, size_t turns)
{
	for (size_t i = 0; i < turns; i++) {
		ask(p, 100, 4096);
		for (int k = 0; k < 3; k++) {
			ask(p, 101, 8192);
			ask(p, 102, 512);
		}
	}
}

static void backward(struct program *p, size_t turns, size_t blocks)
{
	for (size_t i = 0; i < turns; i++)
		for (uint64_t k = 0; k < blocks; k++)
			ask(p, 0, 7000 + k);
}

/* Turns of the same places, no two of which are alike. */
static void scattered(struct program *p, size_t turns)
{
	for (size_t i = 0; i < turns; i++) {
		ask(p, 100, 100000 + p->m.n);
		for (int k = 0; k < 3; k++) {
			ask(p, 101, 100000 + p->m.n);
			ask(p, 102, 100000 + p->m.n);
		}
	}
}

/* Steps: the loop forward and, so many blocks a turn, backward; and four layers before it, which
 * always are. */
static void train_as(struct program *p, size_t turns, size_t steps, size_t blocks, size_t others)
{
	for (size_t s = 0; s < steps; s++) {
		ask(p, 1, 100 + s);
		for (uint64_t k = 0; k < 12; k++)
			ask(p, 50 + k % 3, 640 * (1 + k % 3));
		forward(p, turns);
		scattered(p, others);
		ask(p, 2, 200);
		backward(p, turns, blocks);
		for (uint64_t k = 0; k < 24; k++)
			ask(p, 0, 640 * (1 + k % 6));
		ask(p, 3, 300 + s);
	}
}

static void train(struct program *p, size_t turns, size_t steps)
{
	train_as(p, turns, steps, 5, 0);
}

static void turns_are_counted_forward_and_backward(void **unused)
{
	static struct program few, many;
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 2, 3 };

	(void)unused;
	train(&few, 4, 3);
	train(&many, 6, 3);
	m[0] = few.m;
	m[1] = many.m;
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(l[k].n, 6);
		for (size_t i = 0; i < l[k].n; i++) {
			assert_int_equal(l[k].at[i].period, i % 2 ? 5 : 7);
			assert_true(l[k].at[i].turns == (k ? 6 : 4));
			assert_true(l[k].at[i].count[0].y == 4 && l[k].at[i].count[1].y == 6);
		}
		vc_loops_fini(&l[k]);
	}
}

/* Loops of 3 steps of 8 turns, from two recordings: so many blocks of a turn backward, and
 * for each four turns of the loop `others` elsewhere that are unlike each other. */
static size_t loops_of(size_t blocks, size_t others)
{
	struct program *few = calloc(1, sizeof(*few)), *many = calloc(1, sizeof(*many));
	struct vc_loops l[2];
	const double x[] = { 2, 3 };

	assert_true(few && many);
	train_as(few, 8, 3, blocks, 2 * others);
	train_as(many, 12, 3, blocks, 3 * others);
	struct vc_allocations m[2] = { few->m, many->m };

	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	size_t n = l[0].n;

	assert_int_equal(l[1].n, n);
	for (size_t k = 0; k < 2; k++)
		vc_loops_fini(&l[k]);
	free(few);
	free(many);
	return n;
}

static void a_turn_backward_is_about_as_long_as_one_forward(void **unused)
{
	(void)unused;
	assert_int_equal(loops_of(3, 0), 3); /* buffers come and go in threes */
	assert_int_equal(loops_of(4, 0), 6);
	assert_int_equal(loops_of(21, 0), 6);
	assert_int_equal(loops_of(35, 0), 3);
}

/* Two recordings, of 16 and 24 turns forward and backward: the loops of the first. */
static size_t loops_of_many(size_t blocks)
{
	static struct program p[2];
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 2, 3 };

	memset(p, 0, sizeof(p));
	for (size_t k = 0; k < 2; k++) {
		train_as(&p[k], 16 + 8 * k, 3, blocks, 0);
		m[k] = p[k].m;
	}
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	size_t n = l[0].n;

	vc_loops_fini(&l[0]);
	vc_loops_fini(&l[1]);
	return n;
}

/* The gradients of a loss in chunks: two of a chunk's size and a small one, for each. */
static void few_blocks_backward_are_a_turn_where_there_are_many(void **unused)
{
	(void)unused;
	assert_int_equal(loops_of_many(3), 6);
	assert_int_equal(loops_of_many(2), 6);
}

/* A loss in chunks, three times in training, and once in a validation with other call sites. */
static void a_validation_comes_to_its_loop_less_often(void **unused)
{
	static struct program p[2];
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 2, 3 };

	(void)unused;
	for (size_t k = 0; k < 2; k++) {
		train_as(&p[k], 16 + 8 * k, 3, 21, 0);
		ask(&p[k], 4, 400);
		for (size_t i = 0; i < 16 + 8 * k; i++) {
			ask(&p[k], 200, 4096);
			ask(&p[k], 201, 512);
		}
		ask(&p[k], 5, 500);
		m[k] = p[k].m;
	}
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	assert_int_equal(l[0].n, 7);
	for (size_t i = 0; i < l[0].n; i++)
		assert_true(l[0].at[i].turns == 16 && l[0].at[i].share == 1);
	vc_loops_fini(&l[0]);
	vc_loops_fini(&l[1]);
}

/* A loop of 8 turns of which half stand in this piece, at twice the parameter. */
static void a_piece_of_a_loop_takes_its_share(void **unused)
{
	struct vc_sample count[] = { { 2, 8 }, { 3, 12 } };
	struct vc_loop at = { .from = 0, .to = 8, .period = 2, .count = count, .counts = 2,
			      .turns = 8, .share = 0.5 };
	const struct vc_loops l = { .at = &at, .n = 1 };
	int64_t more;

	(void)unused;
	vc_loops_more(&l, 2, 4, VC_BOUND_NONE, &more);
	assert_int_equal(more, 4);
}

static void a_turn_may_have_two_blocks(void **unused)
{
	static struct program p[2];
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 2, 3 };

	(void)unused;
	for (size_t k = 0; k < 2; k++) {
		ask(&p[k], 1, 100);
		for (size_t i = 0; i < 8 + 4 * k; i++) {
			ask(&p[k], 100, 4096);
			ask(&p[k], 101, 8192);
		}
		ask(&p[k], 2, 200);
		m[k] = p[k].m;
	}
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(l[k].n, 1);
		assert_int_equal(l[k].at[0].period, 2);
		vc_loops_fini(&l[k]);
	}
}

static void most_turns_stand_in_the_loop(void **unused)
{
	(void)unused;
	assert_int_equal(loops_of(5, 2), 6); /* 8 of 12 */
	assert_int_equal(loops_of(5, 6), 0); /* 8 of 20 */
}

/* A single turn is no stretch; how often the program came there is known from the other one. */
static void a_single_turn_is_known_from_the_other_recording(void **unused)
{
	static struct program one, many;
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 8, 4 };

	(void)unused;
	train(&one, 1, 3);
	train(&many, 2, 3);
	m[0] = one.m;
	m[1] = many.m;
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	assert_int_equal(l[0].n, 0);
	assert_int_equal(l[1].n, 6);
	assert_true(l[1].at[0].count[0].x == 4 && l[1].at[0].count[0].y == 2);
	assert_true(l[1].at[0].count[1].y == 1);
	vc_loops_fini(&l[0]);
	vc_loops_fini(&l[1]);
}

static void what_turns_as_often_everywhere_is_left_alone(void **unused)
{
	static struct program a, b;
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 2, 3 };

	(void)unused;
	train(&a, 4, 3);
	train(&b, 4, 3);
	m[0] = a.m;
	m[1] = b.m;
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	assert_int_equal(l[0].n + l[1].n, 0);
	vc_loops_fini(&l[0]);
	vc_loops_fini(&l[1]);
}

/* Between recordings of n steps each, whose loop turns so often in each step. */
static size_t loops_between(const size_t *few, const size_t *many, size_t n)
{
	struct program *p[2] = { calloc(1, sizeof(**p)), calloc(1, sizeof(**p)) };
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 8, 12 };

	assert_true(p[0] && p[1]);
	for (size_t s = 0; s < n; s++) {
		train(p[0], few[s], 1);
		train(p[1], many[s], 1);
	}
	m[0] = p[0]->m;
	m[1] = p[1]->m;
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	size_t found = l[0].n + l[1].n;

	for (size_t k = 0; k < 2; k++) {
		vc_loops_fini(&l[k]);
		free(p[k]);
	}
	return found;
}

/* An optimizer turns over its parameters, and a scaler lets it skip a step. */
static void a_loop_that_is_come_to_more_often_turns_as_often(void **unused)
{
	const size_t all[] = { 9, 9, 9, 9 }, some[] = { 0, 9, 9, 9 }, none[] = { 0, 0, 0, 0 };
	const size_t more[] = { 0, 14, 14, 14 };

	(void)unused;
	assert_int_equal(loops_between(all, some, 4), 0);
	assert_int_equal(loops_between(all, none, 4), 0);
	assert_true(loops_between(all, more, 4) > 0);
}

/* Layers that are dropped by chance, as LayerDrop of wav2vec 2.0 does, and two evaluations that
 * drop none: the turns of HuBERT at 8 and 12 samples. */
static void turns_that_chance_decides_follow_no_parameter(void **unused)
{
	const size_t few[] = { 10, 10, 11, 12, 11, 12, 12, 9 };
	const size_t many[] = { 11, 12, 12, 12, 12, 12, 12, 11 };
	const size_t chunks[] = { 6, 6, 6, 6, 6, 12, 12, 6 };
	const size_t twice[] = { 8, 8, 8, 8, 8, 16, 16, 8 };

	(void)unused;
	assert_int_equal(loops_between(few, many, 8), 0);
	assert_true(loops_between(chunks, twice, 8) > 0); /* an evaluation has more of them */
}

/* Four norms that need buffers above a size: their place asks more often there. */
static void norms(struct program *p, bool buffers)
{
	for (uint64_t s = 0; s < 3; s++) {
		ask(p, 1, 100 + s);
		for (int k = 0; k < 4; k++) {
			ask(p, 60, 16384);
			if (buffers)
				borrow(p, 60);
			ask(p, 60, 8192);
		}
		ask(p, 3, 300 + s);
	}
}

static void buffers_above_a_size_are_no_turns(void **unused)
{
	static struct program small, large;
	struct vc_allocations m[2];
	struct vc_loops l[2];
	const double x[] = { 100, 2048 };

	(void)unused;
	norms(&small, false);
	norms(&large, true);
	m[0] = small.m;
	m[1] = large.m;
	assert_int_equal(vc_turns_find(m, x, 2, l, NULL), 0);
	assert_int_equal(l[0].n + l[1].n, 0);
	vc_loops_fini(&l[0]);
	vc_loops_fini(&l[1]);
}

/* A full turn and one that is not, beside three full ones; and a single turn that may be the rest
 * of a full one, or is too small for that. */
static void a_full_turn_asks_for_as_much_everywhere(void **unused)
{
	struct vc_take many[] = { { .site = 7, .size = 900 }, { .site = 7, .size = 900 } };
	struct vc_take rest[] = { { .site = 7, .size = 900 }, { .site = 7, .size = 300 } };
	struct vc_take one[] = { { .site = 7, .size = 600 }, { .site = 7, .size = 90 } };
	const struct vc_allocations m[] = { { .take = many, .n = 2 }, { .take = rest, .n = 2 },
					    { .take = one, .n = 2 } };
	uint32_t turned[] = { 0, 0 }, none[] = { VC_UNMATCHED, VC_UNMATCHED };
	struct vc_sample count[] = { { 2, 1 }, { 4, 2 }, { 9, 3 } };
	struct vc_loop loop = { .from = 0, .to = 2, .period = 1, .count = count, .counts = 3 };
	const struct vc_loops l[] = { { &loop, 1, turned }, { .like = none }, { .like = none } };
	const double x[] = { 9, 4, 2 };
	struct vc_full_turns *t;

	(void)unused;
	assert_int_equal(vc_full_turns_new(m, l, x, 3, &t, NULL), 0);
	assert_true(vc_full_turns_has(t, 0, 0, 1, 1));
	assert_false(vc_full_turns_has(t, 0, 0, 1, 0)); /* it is as large */
	assert_true(vc_full_turns_has(t, 0, 0, 2, 0));  /* 2 of 3 that a turn takes */
	assert_false(vc_full_turns_has(t, 0, 0, 2, 1));
	assert_false(vc_full_turns_has(t, 1, 0, 2, 0)); /* that one shows no stretch */
	vc_full_turns_free(t);
}

static void check(const struct vc_sample *s, size_t n, double x, double best, double low,
		  double high)
{
	struct vc_turn_count c = vc_turns_at(s, n, x);

	if (c.best != best || c.low != low || c.high != high)
		fail_msg("at %g: %g in [%g, %g], not %g in [%g, %g]", x, c.best, c.low, c.high,
			 best, low, high);
}

static void laws_of_counts(void **unused)
{
	const struct vc_sample tasks[] = { { 2, 2 }, { 3, 3 }, { 8, 8 } };
	const struct vc_sample constant[] = { { 3, 22 }, { 4, 16 }, { 12, 6 } }; /* 64 / x, up */
	const struct vc_sample micro[] = { { 2, 24 }, { 5, 9 } }; /* 48 / x, down */
	const struct vc_sample chunks[] = { { 4, 2 }, { 8, 3 }, { 9, 3 } }; /* x / 3, up */
	const struct vc_sample memory[] = { { 2, 2 }, { 4, 4 }, { 6, 4 } };
	const struct vc_sample two[] = { { 4, 2 }, { 8, 3 } };
	const struct vc_sample words[] = { { 8, 7 }, { 12, 11 }, { 24, 23 } }; /* all but one */
	const struct vc_sample divides[] = { { 3, 16 }, { 6, 8 }, { 12, 4 } };

	(void)unused;
	check(words, 3, 32, 31, 31, 31); /* and not so many of 1.02 words, rounded down */
	check(divides, 3, 2, 24, 24, 24); /* and not 50 / x, rounded down */
	check(divides, 3, 5, 9, 9, 10);
	check(tasks, 3, 16, 16, 16, 16);
	check(constant, 3, 6, 11, 11, 11);
	check(constant, 3, 64, 1, 1, 1);
	check(micro, 2, 3, 16, 16, 16);
	check(micro, 2, 48, 1, 1, 1);
	check(chunks, 3, 12, 4, 3, 4); /* or it is full at 3 */
	check(memory, 3, 12, 4, 4, 4);
	assert_true(vc_turns_at(two, 2, 16).low <= 5); /* a line; or rounded up or down */
	assert_true(vc_turns_at(two, 2, 16).high >= 6);
}

static void the_last_turn_may_not_be_full_by_another_law(void **unused)
{
	const struct vc_sample words[] = { { 8, 7 }, { 12, 11 }, { 24, 23 } };
	const struct vc_sample chunks[] = { { 4, 2 }, { 8, 3 }, { 9, 3 } };
	const struct vc_sample memory[] = { { 2, 2 }, { 4, 4 }, { 6, 4 } };

	(void)unused;
	assert_true(vc_turns_at(words, 3, 32).always);
	assert_true(vc_turns_at(chunks, 3, 12).whole && !vc_turns_at(chunks, 3, 12).always);
	assert_true(vc_turns_at(memory, 3, 12).always);
}

static void turns_of_one_sample_are_full(void **unused)
{
	const struct vc_sample constant[] = { { 2, 6 }, { 4, 3 } }; /* 12 / x, or 11 or 13 */

	(void)unused;
	assert_true(vc_turns_at(constant, 2, 1).low == 11 && vc_turns_at(constant, 2, 1).always);
	assert_false(vc_turns_at(constant, 2, 5).always);
}

static void the_turns_at_both_ends_of_a_loop(void **unused)
{
	uint32_t like[12] = { VC_UNMATCHED, 1, 2, 1, 2, 1, 2, VC_UNMATCHED, 8, 9, VC_UNMATCHED };
	struct vc_sample count[2] = { { 1, 3 } };
	struct vc_loop at[] = { { .from = 1, .to = 7, .period = 2, .count = count },
				{ .from = 8, .to = 10, .period = 2, .count = count } };
	const struct vc_loops l = { .at = at, .n = 2, .like = like };

	(void)unused;
	assert_true(vc_loops_at_end(&l, 1, true) && vc_loops_at_end(&l, 6, false));
	assert_false(vc_loops_at_end(&l, 1, false) || vc_loops_at_end(&l, 4, false));
	assert_false(vc_loops_at_end(&l, 4, true) || vc_loops_at_end(&l, 0, true));
	assert_false(vc_loops_at_end(&l, 8, true)); /* one turn: nothing shows a part of one */
}

static void what_the_data_decide_lies_between_its_extremes(void **unused)
{
	const struct vc_sample boxes[] = { { 2, 55 }, { 4, 130 }, { 8, 220 } };
	struct vc_turn_count c = vc_turns_at(boxes, 3, 16);

	(void)unused;
	assert_true(c.low == 440 && c.high == 520);
	assert_true(c.best > c.low && c.best < c.high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_counted_forward_and_backward),
		cmocka_unit_test(a_turn_backward_is_about_as_long_as_one_forward),
		cmocka_unit_test(few_blocks_backward_are_a_turn_where_there_are_many),
		cmocka_unit_test(a_validation_comes_to_its_loop_less_often),
		cmocka_unit_test(a_piece_of_a_loop_takes_its_share),
		cmocka_unit_test(most_turns_stand_in_the_loop),
		cmocka_unit_test(a_turn_may_have_two_blocks),
		cmocka_unit_test(a_single_turn_is_known_from_the_other_recording),
		cmocka_unit_test(what_turns_as_often_everywhere_is_left_alone),
		cmocka_unit_test(a_loop_that_is_come_to_more_often_turns_as_often),
		cmocka_unit_test(turns_that_chance_decides_follow_no_parameter),
		cmocka_unit_test(buffers_above_a_size_are_no_turns),
		cmocka_unit_test(a_full_turn_asks_for_as_much_everywhere),
		cmocka_unit_test(laws_of_counts),
		cmocka_unit_test(the_last_turn_may_not_be_full_by_another_law),
		cmocka_unit_test(turns_of_one_sample_are_full),
		cmocka_unit_test(the_turns_at_both_ends_of_a_loop),
		cmocka_unit_test(what_the_data_decide_lies_between_its_extremes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
