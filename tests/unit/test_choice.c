/* SPDX-License-Identifier: Apache-2.0 */
/* test_choice.c - lists of layers, and which layers are worth computing twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/choice.h"
#include "simulator/search/recompute.h"

static struct vc_choice by(const char *list)
{
	struct vc_choice c = { .every = 1, .stride = 1, .last = true };

	snprintf(c.list, sizeof(c.list), "%s", list);
	return c;
}

/* "0-1 3-3" */
static const char *taken(const struct vc_choice *c, size_t n, char *buf, size_t cap)
{
	struct vc_chosen at[64];
	size_t m = vc_choice_of(c, n, at), k = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < m; i++)
		k += (size_t)snprintf(buf + k, cap - k, "%s%zu-%zu", i ? " " : "", at[i].from,
				      at[i].to - 1);
	return buf;
}

static void lists_say_which_go_together(void **unused)
{
	struct vc_choice c = by("0/2..4/6-8/10..16+3");
	struct vc_error err = { 0 };
	char buf[256];

	(void)unused;
	assert_int_equal(vc_choice_check(&c, &err), VC_OK);
	assert_string_equal(taken(&c, 20, buf, sizeof(buf)),
			    "0-0 2-2 3-3 4-4 6-8 10-10 13-13 16-16");
	assert_string_equal(taken(&c, 8, buf, sizeof(buf)), "0-0 2-2 3-3 4-4 6-7");
	assert_int_equal(vc_choice_reach(&c), 16);
	c = by("3-3/5..5/7");
	assert_int_equal(vc_choice_check(&c, &err), VC_OK);
	assert_string_equal(taken(&c, 20, buf, sizeof(buf)), "3-3 5-5 7-7");
	static const char *const bad[] = { "x", "1/", "/1", "3..1", "2/1", "1/1", "0-2+2", "1..3+0",
					   "99999999999" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		c = by(bad[i]);
		if (vc_choice_check(&c, &err) == VC_OK)
			fail_msg("%s was taken", bad[i]);
	}
}

static void numbers_do_what_they_did(void **unused)
{
	struct vc_choice c = by("");
	char buf[256];

	(void)unused;
	c.every = 3;
	assert_string_equal(taken(&c, 7, buf, sizeof(buf)), "0-2 3-5 6-6");
	c.last = false;
	assert_string_equal(taken(&c, 7, buf, sizeof(buf)), "0-2 3-5");
	c = by("");
	c.stride = 2;
	c.first = 1;
	c.count = 4;
	assert_string_equal(taken(&c, 9, buf, sizeof(buf)), "1-1 3-3");
}

static void numbers_have_ends(void **unused)
{
	char buf[256];
	struct vc_choice c = by("");

	c.count = 4; /* up to the last that there is */
	assert_string_equal(taken(&c, 5, buf, sizeof(buf)), "0-0 1-1 2-2 3-3");
	assert_string_equal(taken(&c, 4, buf, sizeof(buf)), "0-0 1-1 2-2 3-3");
	c.first = 2;
	assert_string_equal(taken(&c, 5, buf, sizeof(buf)), "2-2 3-3 4-4");
	assert_string_equal(taken(&c, 7, buf, sizeof(buf)), "2-2 3-3 4-4 5-5");
	assert_string_equal(taken(&c, 2, buf, sizeof(buf)), "");
	c = by("");
	c.every = 3;
	c.last = false;
	assert_string_equal(taken(&c, 6, buf, sizeof(buf)), "0-2");
	c.every = 1;
	c.stride = 3;
	assert_string_equal(taken(&c, 7, buf, sizeof(buf)), "0-0 3-3");
	c = by("3-5");
	assert_string_equal(taken(&c, 3, buf, sizeof(buf)), "");
	assert_string_equal(taken(&c, 4, buf, sizeof(buf)), "3-3");
}

/* A list says all; every and stride are two ways, and begin at one. */
static void what_excludes_each_other(void **unused)
{
	static const struct { struct vc_choice c; bool good; } list[] = {
		{ { .every = 1, .stride = 1, .last = true }, true },
		{ { .every = 0, .stride = 1, .last = true }, false },
		{ { .every = 1, .stride = 0, .last = true }, false },
		{ { .every = 2, .stride = 1, .first = 1, .count = 3 }, true },
		{ { .every = 1, .stride = 2, .first = 1, .count = 3 }, true },
		{ { .every = 2, .stride = 2, .last = true }, false },
		{ { .every = 1, .stride = 1, .last = true, .list = "1" }, true },
		{ { .every = 2, .stride = 1, .last = true, .list = "1" }, false },
		{ { .every = 1, .stride = 2, .last = true, .list = "1" }, false },
		{ { .every = 1, .stride = 1, .first = 1, .last = true, .list = "1" }, false },
		{ { .every = 1, .stride = 1, .count = 1, .last = true, .list = "1" }, false },
		{ { .every = 1, .stride = 1, .list = "1" }, false },
		{ { .every = 1, .stride = 1, .last = true, .list = "1048575" }, true },
		{ { .every = 1, .stride = 1, .last = true, .list = "1048576" }, false } };
	struct vc_error err = { 0 };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if ((vc_choice_check(&list[i].c, &err) == VC_OK) != list[i].good)
			fail_msg("row %zu is taken wrongly", i);
}

/* What is written is read back as what it was, whatever it was. */
static void what_is_written_is_read_back(void **unused)
{
	(void)unused;
	for (unsigned bits = 0; bits < 1u << 12; bits++) {
		bool take[12];
		struct vc_choice c = by("");
		struct vc_chosen at[12];
		struct vc_error err = { 0 };
		unsigned again = 0;

		for (int i = 0; i < 12; i++)
			take[i] = bits >> i & 1;
		assert_true(vc_choice_write(take, 12, c.list, sizeof(c.list)));
		assert_int_equal(vc_choice_check(&c, &err), VC_OK);
		for (size_t k = 0, n = bits ? vc_choice_of(&c, 12, at) : 0; k < n; k++)
			for (size_t i = at[k].from; i < at[k].to; i++)
				again |= 1u << i;
		assert_int_equal(again, bits);
	}
}

/* ---- the solver, against all subsets ---- */

static uint64_t random_state;

static uint64_t next(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

static bool fits(const struct vc_layer_costs *c, unsigned bits, uint64_t budget)
{
	uint64_t gone = 0;

	for (size_t i = 0; i <= c->n; i++) {
		uint64_t need = i < c->n ? c->at[i].need : c->loss;

		if (i < c->n && bits >> i & 1 && c->at[i].again > need)
			need = c->at[i].again;
		if (need > budget + gone)
			return false;
		gone += i < c->n && bits >> i & 1 ? c->at[i].kept : 0;
	}
	return c->elsewhere <= budget;
}

static void no_choice_is_cheaper(void **unused)
{
	enum { N = 9 };
	struct vc_layer_cost at[N];
	struct vc_layer_costs c = { .at = at, .n = N };
	size_t solved = 0;

	(void)unused;
	for (int round = 0; round < 300; round++) {
		uint64_t budget, peak;
		double best = -1, ns = 0;
		bool take[N] = { false };

		c.total = 0;
		for (size_t i = 0; i < N; i++) {
			at[i] = (struct vc_layer_cost){ .kept = (1 + next(40)) << 20,
							.need = (100 + next(150)) << 20,
							.ns = (double)(1 + next(50)) };
			at[i].again = at[i].need + (next(20) << 20);
			c.total += at[i].kept;
		}
		c.loss = (100 + next(200)) << 20;
		c.elsewhere = (50 + next(60)) << 20;
		budget = (80 + next(150)) << 20;
		for (unsigned bits = 0; bits < 1u << N; bits++) {
			double t = 0;

			for (size_t i = 0; i < N; i++)
				t += bits >> i & 1 ? at[i].ns : 0;
			if ((best < 0 || t < best) && fits(&c, bits, budget))
				best = t;
		}
		assert_int_equal(vc_recompute_choose(&c, budget, take, &peak), best >= 0);
		if (best < 0)
			continue;
		for (size_t i = 0; i < N; i++)
			ns += take[i] ? at[i].ns : 0;
		assert_true(peak <= budget);
		assert_true(ns == best);
		solved++;
	}
	assert_true(solved > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_say_which_go_together),
		cmocka_unit_test(numbers_do_what_they_did),
		cmocka_unit_test(numbers_have_ends),
		cmocka_unit_test(what_excludes_each_other),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(no_choice_is_cheaper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
