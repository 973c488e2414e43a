/* SPDX-License-Identifier: Apache-2.0 */
/* test_budget.c - modules computed twice for a budget: the choice against all that there are, and
 * what two made-up runs are read as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/search/budget.h"

enum { UNITS = 9 };

static uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % below;
}

/* The least time of all choices that stay below, or -1. */
static double cheapest(const struct vc_budget *b, uint64_t bytes)
{
	double least = -1;

	for (unsigned which = 0; which < 1u << b->n; which++) {
		bool take[UNITS], sound = true;
		double ns = 0;

		for (size_t i = 0; i < b->n; i++) {
			take[i] = which >> i & 1;
			ns += take[i] ? b->at[i].cost : 0;
			sound &= !take[i] || b->at[i].freed;
		}
		if (sound && vc_budget_peak(b, take) <= bytes && (least < 0 || ns < least))
			least = ns;
	}
	return least;
}

static void no_choice_is_cheaper(void **unused)
{
	uint64_t seed = 45;
	int some = 0, none = 0;

	(void)unused;
	for (int round = 0; round < 400; round++) {
		struct vc_budget_unit at[UNITS] = { { .name = NULL } };
		struct vc_budget b = { .at = at, .n = UNITS, .elsewhere = draw(&seed, 300) };
		struct vc_error err = { 0 };
		uint64_t bytes = 200 + draw(&seed, 400), live = 0;
		bool take[UNITS], found;
		double ns = 0, sum = 0;

		for (size_t i = 0; i < UNITS; i++) {
			at[i].freed = (int64_t)draw(&seed, 90);
			at[i].cost = (double)(1 + draw(&seed, 50));
			live += (uint64_t)at[i].freed;
			at[i].need[0] = live + draw(&seed, 200);
			at[i].need[1] = live + draw(&seed, 250);
			at[i].hard[1] = draw(&seed, 230);
			at[i].between = live + draw(&seed, 50);
		}
		double least = cheapest(&b, bytes);
		assert_int_equal(vc_budget_choose(&b, bytes, take, &ns, &found, &err), 0);
		assert_int_equal(found, least >= 0);
		some += found;
		none += !found;
		if (!found)
			continue;
		for (size_t i = 0; i < UNITS; i++)
			sum += take[i] ? at[i].cost : 0;
		assert_true(ns == least && sum == least);
		assert_true(vc_budget_peak(&b, take) <= bytes);
	}
	assert_true(some > 50 && none > 20);
}

/* ---- two runs of two modules ---- */

struct made { struct vc_trace t; struct vc_meta meta; char *string[16]; struct vc_event ev[64]; };

static void mark(struct made *m, const char *text)
{
	size_t k = 1;

	while (k < m->meta.strings && strcmp(m->string[k], text))
		k++;
	if (k == m->meta.strings)
		m->string[m->meta.strings++] = (char *)(uintptr_t)text;
	m->ev[m->t.n++] = (struct vc_event){ .kind = VC_EV_MARK, .label = (uint32_t)k };
}

static void block(struct made *m, uint64_t id, uint64_t size)
{
	m->ev[m->t.n++] = (struct vc_event){ .kind = size ? VC_EV_ALLOC : VC_EV_FREE, .id = id,
					    .size = size };
}

/* Each keeps 1000 KiB and gives 100 KiB on; computed twice it keeps none of the former. */
static void make(struct made *m, bool again)
{
	static char empty[] = "";

	*m = (struct made){ .meta = { .max_id = 20, .strings = 1 } };
	m->string[0] = empty;
	m->meta.string = m->string;
	m->t.meta = &m->meta;
	m->t.ev = m->ev;
	block(m, 1, 5000 << 10); /* weights */
	for (uint64_t i = 0; i < 2; i++) {
		mark(m, i ? "budget F 1" : "budget F 0");
		block(m, 2 + i, 1000 << 10);
		block(m, 4 + i, 100 << 10);
		if (again)
			block(m, 2 + i, 0);
		mark(m, i ? "budget E 1" : "budget E 0");
	}
	block(m, 6, 300 << 10); /* the loss */
	block(m, 6, 0);
	for (uint64_t i = 2; i-- > 0;) {
		mark(m, i ? "budget B 1" : "budget B 0");
		if (again)
			block(m, 7 + i, 1000 << 10);
		block(m, 9 + i, 50 << 10);
		block(m, again ? 7 + i : 2 + i, 0);
		block(m, 4 + i, 0);
		block(m, 9 + i, 0);
	}
}

static void runs_say_what_modules_need(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	struct vc_budget b = { .at = at, .n = 2 };
	struct vc_error err = { 0 };
	struct made kept, again;

	(void)unused;
	make(&kept, false);
	make(&again, true);
	assert_int_equal(vc_budget_read(&b, &kept.t, &again.t, 0, &err), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(at[i].freed, 1000 << 10);
	/* 5000 of weights; each choice as it would really be allocated */
	assert_int_equal(vc_budget_peak(&b, (bool[]){ false, false }), 7500 << 10); /* the loss */
	assert_int_equal(vc_budget_peak(&b, (bool[]){ true, false }), 6500 << 10);
	assert_int_equal(vc_budget_peak(&b, (bool[]){ false, true }), 7250 << 10);
	assert_int_equal(vc_budget_peak(&b, (bool[]){ true, true }), 6250 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_choice_is_cheaper),
		cmocka_unit_test(runs_say_what_modules_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
