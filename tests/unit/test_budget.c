/* SPDX-License-Identifier: Apache-2.0 */
/* test_budget.c - choices for a budget against all that there are, and what two made-up runs are
 * read as and put together to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/search/budget.h"

enum { UNITS = 6 };

static uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % below;
}

/* The least cost of all choices that stay below, or -1. */
static double cheapest(const struct vc_budget *b, uint64_t bytes)
{
	double least = -1;
	unsigned choices = 1;

	for (size_t i = 0; i < b->n; i++)
		choices *= VC_BUDGET_WAYS;
	for (unsigned which = 0; which < choices; which++) {
		uint8_t how[UNITS];
		bool sound = true;
		unsigned rest = which;

		for (size_t i = 0; i < b->n; i++, rest /= VC_BUDGET_WAYS) {
			how[i] = rest % VC_BUDGET_WAYS;
			sound &= !how[i] || (b->can[how[i]] && b->at[i].freed[how[i]]);
		}
		double cost = vc_budget_cost(b, how);
		if (sound && vc_budget_peak(b, how) <= bytes && (least < 0 || cost < least))
			least = cost;
	}
	return least;
}

static void draw_units(struct vc_budget *b, uint64_t *seed)
{
	uint64_t live = 0;

	b->can[VC_BUDGET_OFFLOAD] = draw(seed, 2);
	b->can[VC_BUDGET_RECOMPUTE_OFFLOAD] = draw(seed, 2);
	for (size_t i = 0; i < UNITS; i++) {
		struct vc_budget_unit *u = &b->at[i];

		for (int way = 1; way < VC_BUDGET_WAYS; way++) {
			u->freed[way] = (int64_t)draw(seed, 90);
			u->cost[way] = (double)(1 + draw(seed, 50));
		}
		live += 90;
		for (int way = 0; way < VC_BUDGET_WAYS; way++) {
			u->need[way] = live + draw(seed, 250);
			u->hard[way] = way ? draw(seed, 230) : 0;
		}
		u->between = live + draw(seed, 50);
	}
}

static void no_choice_is_cheaper(void **unused)
{
	uint64_t seed = 45;
	int some = 0, none = 0;

	(void)unused;
	for (int round = 0; round < 200; round++) {
		struct vc_budget_unit at[UNITS] = { { .name = NULL } };
		struct vc_budget b = { .at = at, .n = UNITS, .elsewhere = draw(&seed, 300),
				       .can = { true, true, true }, .host = UINT64_MAX };
		struct vc_error err = { 0 };
		uint64_t bytes = 250 + draw(&seed, 350);
		uint8_t how[UNITS];
		bool found;
		double cost = 0;

		draw_units(&b, &seed);
		double least = cheapest(&b, bytes);
		size_t in;
		bool behind;

		assert_true(least < 0 || vc_budget_floor(&b, &in, &behind) <= bytes);
		assert_true(cheapest(&b, vc_budget_floor(&b, &in, &behind) - 1) < 0);
		assert_int_equal(vc_budget_choose(&b, bytes, how, &cost, &found, &err), 0);
		assert_int_equal(found, least >= 0);
		some += found;
		none += !found;
		if (!found)
			continue;
		assert_true(cost == least && vc_budget_cost(&b, how) == least);
		assert_int_equal(vc_budget_bound(&b, bytes, &cost, &found, &err), 0);
		assert_true(found && cost == least);
		assert_true(vc_budget_peak(&b, how) <= bytes);
	}
	assert_true(some > 50 && none > 20);
}

static void the_host_has_an_end(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	struct vc_budget b = { .at = at, .n = 2, .can = { [VC_BUDGET_RECOMPUTE] = true,
							  [VC_BUDGET_OFFLOAD] = true } };
	struct vc_error err = { 0 };
	uint8_t how[2];
	bool found;
	double cost;

	(void)unused;
	for (int i = 0; i < 2; i++) {
		at[i].freed[VC_BUDGET_RECOMPUTE] = at[i].freed[VC_BUDGET_OFFLOAD] = 100;
		at[i].cost[VC_BUDGET_RECOMPUTE] = 9;
		at[i].cost[VC_BUDGET_OFFLOAD] = 2 + i;
	}
	at[1].between = 200;
	for (b.host = 0; b.host <= 200; b.host += 100) {
		assert_int_equal(vc_budget_choose(&b, 0, how, &cost, &found, &err), 0);
		assert_true(found);
		assert_true(vc_budget_hosted(&b, how) == b.host);
		assert_true(cost == (b.host == 0 ? 18 : b.host == 100 ? 11 : 5));
		double least = 0;
		assert_int_equal(vc_budget_bound(&b, 0, &least, &found, &err), 0);
		assert_true(found && least > cost - 1e-6 && least < cost + 1e-6);
	}
	/* Of a module that is computed twice only its arguments go there. */
	for (int i = 0; i < 2; i++) {
		at[i].freed[VC_BUDGET_RECOMPUTE_OFFLOAD] = 140;
		how[i] = VC_BUDGET_RECOMPUTE_OFFLOAD;
	}
	assert_true(vc_budget_hosted(&b, how) == 80);
}

static void products_in_place(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL }, { .inplace = true } };
	const struct vc_budget b = { .at = at, .n = 2 };
	const uint8_t how[] = { VC_BUDGET_PRODUCTS, VC_BUDGET_PRODUCTS };
	const uint8_t kept[] = { VC_BUDGET_KEEP, VC_BUDGET_KEEP };

	(void)unused;
	assert_int_equal(vc_budget_done(&b, how, 0), VC_BUDGET_PRODUCTS);
	assert_int_equal(vc_budget_done(&b, how, 1), VC_BUDGET_RECOMPUTE);
	assert_int_equal(vc_budget_done(&b, kept, 1), VC_BUDGET_KEEP);
}

/* So many that not all partial choices are kept: 18 modules, of which each gives back what no sum
 * of others does. */
static void a_bound_of_too_many(void **unused)
{
	enum { MANY = 18, HALF = (1 << MANY) / 2 };
	struct vc_budget_unit at[MANY] = { { .name = NULL } };
	struct vc_budget b = { .at = at, .n = MANY, .can = { true, true }, .host = UINT64_MAX };
	struct vc_error err = { 0 };
	uint8_t how[MANY];
	double cost, least;
	bool found;

	(void)unused;
	for (int i = 0; i < MANY; i++) {
		at[i].freed[VC_BUDGET_RECOMPUTE] = 1 << i;
		at[i].cost[VC_BUDGET_RECOMPUTE] = 1 << i;
	}
	at[MANY - 1].between = 1 << MANY;
	assert_int_equal(vc_budget_bound(&b, HALF, &least, &found, &err), 0);
	assert_true(found && !b.unproven && !b.relaxed);
	assert_int_equal(vc_budget_choose(&b, HALF, how, &cost, &found, &err), 0);
	assert_true(b.unproven);
	assert_true(least <= HALF && least > 0.9 * HALF);
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

static void make_both(struct made *kept, struct made *again, struct vc_budget_run *run)
{
	make(kept, false);
	make(again, true);
	for (size_t way = 0; way < VC_BUDGET_WAYS; way++)
		run[way] = (struct vc_budget_run){
			.t = way == VC_BUDGET_KEEP ? &kept->t :
			     way == VC_BUDGET_RECOMPUTE ? &again->t : NULL };
}

static uint64_t most_live(const struct vc_trace *t)
{
	uint64_t size[64] = { 0 }, live = 0, most = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		assert_true(e->id && e->id < 64);
		live -= size[e->id];
		assert_true((size[e->id] != 0) == (e->kind == VC_EV_FREE));
		size[e->id] = e->kind == VC_EV_ALLOC ? e->size : 0;
		live += size[e->id];
		most = live > most ? live : most;
	}
	assert_int_equal(live, 5000 << 10);
	return most;
}

/* Sent to the host: what the first gives on is let go of behind the second, and comes back. */
static void make_sent(struct made *m)
{
		make(m, true);
	m->t.n = 0;
	block(m, 1, 5000 << 10);
	for (uint64_t i = 0; i < 2; i++) {
		mark(m, i ? "budget F 1" : "budget F 0");
		block(m, 2 + i, 1000 << 10);
		block(m, 4 + i, 100 << 10);
		block(m, 2 + i, 0);
		mark(m, i ? "budget E 1" : "budget E 0");
	}
	block(m, 4, 0);
	block(m, 6, 300 << 10);
	block(m, 6, 0);
	for (uint64_t i = 2; i-- > 0;) {
		mark(m, i ? "budget B 1" : "budget B 0");
		block(m, 7 + i, 1000 << 10);
		block(m, 11 + i, i ? 100 << 10 : 1 << 10);
		block(m, 9 + i, 50 << 10);
		block(m, 7 + i, 0);
		block(m, 11 + i, 0);
		block(m, 9 + i, 0);
		if (i)
			block(m, 5, 0);
	}
}

static void callers_let_go(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	const struct vc_budget b = { .at = at, .n = 2 };
	const uint8_t how[] = { VC_BUDGET_RECOMPUTE, VC_BUDGET_OFFLOAD };
	struct vc_error err = { 0 };
	struct vc_trace t = { .n = 0 };
	struct vc_meta meta;
	struct made kept, again, sent;
	struct vc_budget_run run[VC_BUDGET_WAYS];

	(void)unused;
	make_both(&kept, &again, run);
	make_sent(&sent);
	for (size_t i = 0; i < again.t.n; i++) /* computed twice, it is the second that holds it */
		if (again.ev[i].kind == VC_EV_FREE && (again.ev[i].id == 4 || again.ev[i].id == 5))
			again.ev[i].id = 9 - again.ev[i].id;
	run[VC_BUDGET_OFFLOAD].t = &sent.t;
	assert_int_equal(vc_budget_splice(&b, run, how, &t, &meta, &err), 0);
	assert_int_equal(most_live(&t), 6250 << 10);
	free(t.ev);
}

/* What the first gives on both keep, and only the second says until when. */
static void marks_tell_who_keeps(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	const struct vc_budget b = { .at = at, .n = 2 };
	const uint8_t how[] = { VC_BUDGET_OFFLOAD, VC_BUDGET_KEEP };
	struct made kept, again, sent;
	struct vc_budget_run run[VC_BUDGET_WAYS];

	(void)unused;
	for (int told = 0; told < 2; told++) {
		struct vc_error err = { 0 };
		struct vc_trace t = { .n = 0 };
		struct vc_meta meta;
		size_t i = 0;

		make_both(&kept, &again, run);
		make_sent(&sent);
		run[VC_BUDGET_OFFLOAD].t = &sent.t;
		while (kept.ev[i].kind != VC_EV_ALLOC || kept.ev[i].id != 4)
			i++;
		kept.ev[i].addr = 4096;
		i = kept.t.n - 5; /* in front of B 0 */
		memmove(&kept.ev[i + 1], &kept.ev[i], 5 * sizeof(*kept.ev));
		size_t n = kept.t.n;
		kept.t.n = i;
		mark(&kept, told ? "budget drops 1 4096" : "something else");
		kept.t.n = n + 1;
		assert_int_equal(vc_budget_splice(&b, run, how, &t, &meta, &err), 0);
		assert_int_equal(most_live(&t), (told ? 6500 : 6400) << 10);
		free(t.ev);
	}
}

/* Where all are computed twice it is the second, which goes back first, that needs it first. */
static void what_is_made_once_is_made_later(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	const struct vc_budget b = { .at = at, .n = 2 };
	struct made kept, again;
	struct vc_budget_run run[VC_BUDGET_WAYS];

	(void)unused;
	for (uint8_t which = 0; which < 4; which++) {
		struct vc_error err = { 0 };
		struct vc_trace t = { .n = 0 };
		struct vc_meta meta;
		size_t made = 0;

		make_both(&kept, &again, run);
		size_t i = again.t.n - 10; /* behind B 1 */
		memmove(&again.ev[i + 1], &again.ev[i], 10 * sizeof(*again.ev));
		again.ev[i] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = 15, .size = 7 << 10 };
		again.t.n++;
		assert_int_equal(vc_budget_splice(&b, run, (uint8_t[]){ which & 1, which >> 1 }, &t,
						  &meta, &err), 0);
		for (i = 0; i < t.n; i++)
			made += t.ev[i].kind == VC_EV_ALLOC && t.ev[i].size == 7 << 10;
		assert_int_equal(made, which != 0);
		free(t.ev);
	}
}

static void runs_say_what_modules_need(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	struct vc_budget b = { .at = at, .n = 2 };
	struct vc_error err = { 0 };
	struct made kept, again;
	struct vc_budget_run run[VC_BUDGET_WAYS];

	(void)unused;
	make_both(&kept, &again, run);
	assert_int_equal(vc_budget_read(&b, run, &err), 0);
	assert_true(!b.timed && b.can[VC_BUDGET_RECOMPUTE] && !b.can[VC_BUDGET_OFFLOAD]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(at[i].freed[VC_BUDGET_RECOMPUTE], 1000 << 10);
	/* 5000 of weights; each choice as it would really be allocated */
	assert_int_equal(vc_budget_peak(&b, (uint8_t[]){ 0, 0 }), 7500 << 10); /* the loss */
	assert_int_equal(vc_budget_peak(&b, (uint8_t[]){ 1, 0 }), 6500 << 10);
	assert_int_equal(vc_budget_peak(&b, (uint8_t[]){ 0, 1 }), 7250 << 10);
	assert_int_equal(vc_budget_peak(&b, (uint8_t[]){ 1, 1 }), 6250 << 10);
}

/* Kernels beside the marks F 0, E 0, F 1, E 1, B 1, B 0: what runs in a unit is its own. */
static void kernels_say_what_it_costs(void **unused)
{
	enum { MARKS = 6 };
	struct vc_budget_kernel k[2][2 * MARKS];
	struct vc_budget_unit at[2] = { { .name = NULL } };
	struct vc_budget b = { .at = at, .n = 2 };
	struct vc_error err = { 0 };
	struct made kept, again;
	struct vc_budget_run run[VC_BUDGET_WAYS];

	(void)unused;
	make_both(&kept, &again, run);
	for (size_t r = 0; r < 2; r++) {
		run[r].kernel = k[r];
		run[r].kernels = 2 * MARKS;
		run[r].steps = 1;
		for (size_t i = 0; i < MARKS; i++) {
			k[r][2 * i] = (struct vc_budget_kernel){ .mark = true };
			k[r][2 * i + 1] = (struct vc_budget_kernel){ .ns = 100 };
		}
	}
	k[1][2 * 4 + 1].ns = 130; /* in B 1 */
	k[1][2 * 5 + 1].ns = 150; /* in B 0 */
	k[1][2 * 3 + 1].ns = 900; /* behind E 1: of no unit */
	assert_int_equal(vc_budget_read(&b, run, &err), 0);
	assert_true(b.timed);
	assert_true(at[0].cost[VC_BUDGET_RECOMPUTE] == 50);
	assert_true(at[1].cost[VC_BUDGET_RECOMPUTE] == 30);
}

static void runs_become_one(void **unused)
{
	struct vc_budget_unit at[2] = { { .name = NULL } };
	const struct vc_budget b = { .at = at, .n = 2 };
	struct vc_error err = { 0 };
	struct made kept, again;
	struct vc_budget_run run[VC_BUDGET_WAYS];

	(void)unused;
	make_both(&kept, &again, run);
	for (unsigned which = 0; which < 4; which++) {
		const uint64_t peak[] = { 7500, 6500, 7250, 6250 };
		uint8_t how[] = { which & 1, which >> 1 };
		struct vc_trace t = { .n = 0 };
		struct vc_meta meta;

		assert_int_equal(vc_budget_splice(&b, run, how, &t, &meta, &err), 0);
		assert_int_equal(most_live(&t), peak[which] << 10);
		free(t.ev);
	}
	make(&again, true);
	again.t.n -= 8; /* without the marks of the end: nothing to put together */
	struct vc_trace t = { .n = 0 };
	struct vc_meta meta;
	assert_int_equal(vc_budget_splice(&b, run, (uint8_t[]){ 1, 0 }, &t, &meta, &err),
			 VC_ENOSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_choice_is_cheaper),
		cmocka_unit_test(products_in_place),
		cmocka_unit_test(a_bound_of_too_many),
		cmocka_unit_test(the_host_has_an_end),
		cmocka_unit_test(runs_say_what_modules_need),
		cmocka_unit_test(kernels_say_what_it_costs),
		cmocka_unit_test(runs_become_one),
		cmocka_unit_test(callers_let_go),
		cmocka_unit_test(marks_tell_who_keeps),
		cmocka_unit_test(what_is_made_once_is_made_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
