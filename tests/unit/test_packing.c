/* SPDX-License-Identifier: Apache-2.0 */
/* test_packing.c - blocks are placed well, never one on another, and always the same. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory_plan.h"
#include "simulator/packing/packing.h"
#include "simulator/packing/sequence.h"
#include "tests/support/test.h"

static uint64_t seed = 1;

static uint64_t dice(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* A rectangle cut into n pieces: the least height is known. */
static size_t cut(struct vc_pack_block *b, size_t n, uint64_t time, uint64_t height)
{
	b[0] = (struct vc_pack_block){ 0, time, height, 0, 0 };
	for (size_t k = 1; k < n;) {
		struct vc_pack_block *x = &b[dice(k)];

		if (dice(2) && x->size > 4) {
			uint64_t part = 1 + dice(x->size - 1);

			b[k] = *x;
			b[k++].size = part;
			x->size -= part;
		} else if (x->upper - x->lower > 4) {
			uint64_t at = x->lower + 1 + dice(x->upper - x->lower - 1);

			b[k] = *x;
			b[k++].lower = at;
			x->upper = at;
		}
	}
	return n;
}

/* ---- the judge, which shares nothing with the packer ---- */

static int by_offset(const void *a, const void *b)
{
	const struct vc_pack_block *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool meet(uint64_t from, uint64_t to, uint64_t other, uint64_t end)
{
	return from < end && other < to;
}

/* A life over the end of what repeats is two. */
static bool live_together(const struct vc_packing *p, const struct vc_pack_block *x,
			  const struct vc_pack_block *y)
{
	bool over = x->upper <= x->lower;
	uint64_t from = y->lower, to = y->upper;

	if (to <= from) {
		struct vc_pack_block early = { p->begin - y->before, to, 0, 0, 0 };

		if (live_together(p, &early, x))
			return true;
		to = p->end;
	}
	return over ? meet(x->lower, p->end, from, to) ||
			      meet(p->begin - x->before, x->upper, from, to) :
		      meet(x->lower, x->upper, from, to);
}

static bool overlaps(const struct vc_packing *p)
{
	struct vc_pack_block *b = calloc(p->n + 1, sizeof(*b));
	bool found = false;

	memcpy(b, p->block, p->n * sizeof(*b));
	qsort(b, p->n, sizeof(*b), by_offset);
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = i + 1; k < p->n && b[k].offset < b[i].offset + b[i].size; k++)
			found |= live_together(p, &b[i], &b[k]);
	free(b);
	return found;
}

/* Plans stay what they are until somebody means to change them: where the blocks lie and the work
 * that led there, as one number. */
static uint64_t told(uint64_t sum, const struct vc_packing *p)
{
	for (size_t i = 0; i < p->n; i++)
		sum = sum * 31 + p->block[i].offset;
	return sum * 31 + p->work;
}

static void perfect_cuts_are_found_and_proven(void **state)
{
	struct vc_pack_block b[64];
	uint64_t sum = 0;
	int proven = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct vc_packing p = { .block = b, .n = cut(b, 24, 1000, 5000) };
		struct vc_error err = { 0 };

		assert_int_equal(vc_pack(&p, 2, &err), VC_OK);
		assert_int_equal(p.bound, 5000);
		assert_true(p.height >= 5000);
		assert_int_equal(p.proven, p.height == 5000);
		assert_false(overlaps(&p));
		proven += p.proven;
		sum = told(sum, &p);
	}
	assert_int_equal(proven, 40);
	assert_int_equal(sum, 0xabe63f0adae73f3);
}

static void an_overlap_is_noticed(void **state)
{
	struct vc_pack_block b[] = { { 0, 10, 100, 0, 0 }, { 9, 20, 100, 99, 0 },
		{ 10, 20, 50, 0, 0 } };
	struct vc_packing p = { .block = b, .n = 3 };

	(void)state;
	assert_true(overlaps(&p));
	b[1].offset = 100;
	assert_false(overlaps(&p));
}

/* Less than the lower bound of loads is impossible here, and the search says so. */
static void what_cannot_be_lower_is_proven(void **state)
{
	/* a lies beside b and c, which meet d: load 4, but no packing of 4 */
	struct vc_pack_block b[] = { { 0, 2, 2, 0, 0 }, { 1, 4, 1, 0, 0 }, { 3, 6, 2, 0, 0 },
		{ 5, 8, 1, 0, 0 },
		{ 0, 1, 2, 0, 0 }, { 2, 3, 3, 0, 0 }, { 4, 5, 2, 0, 0 }, { 6, 8, 3, 0, 0 },
		{ 1, 2, 1, 0, 0 },
		{ 3, 4, 1, 0, 0 }, { 5, 6, 1, 0, 0 } };
	struct vc_packing p = { .block = b, .n = sizeof(b) / sizeof(*b) };
	struct vc_error err = { 0 };

	(void)state;
	assert_int_equal(vc_pack(&p, 5, &err), VC_OK);
	assert_false(overlaps(&p));
	assert_true(p.proven);
}

/* Long lives beside short ones, as full as can be: the orders alone are far from it. */
static void large_perfect_cuts_are_nearly_found(void **state)
{
	struct vc_pack_block b[200];
	uint64_t sum = 0;
	int proven = 0;

	(void)state;
	for (int round = 0; round < 8; round++) {
		struct vc_packing p = { .block = b, .n = cut(b, 200, 40000, 1 << 20) };
		struct vc_error err = { 0 };

		assert_int_equal(vc_pack(&p, 2, &err), VC_OK);
		assert_false(overlaps(&p));
		assert_int_equal(p.bound, 1 << 20);
		assert_true(p.height < (1 << 20) * 11 / 10);
		proven += p.proven;
		sum = told(sum, &p);
	}
	assert_int_equal(proven, 8);
	assert_int_equal(sum, 0xc284e4983d2d7595);
}

static void the_same_blocks_give_the_same_offsets(void **state)
{
	struct vc_pack_block b[200], c[200];
	struct vc_packing p = { .block = b, .n = cut(b, 200, 100000, 1 << 20) }, q = p;
	struct vc_error err = { 0 };

	(void)state;
	memcpy(c, b, sizeof(b));
	q.block = c;
	assert_int_equal(vc_pack(&p, 3, &err), VC_OK);
	assert_int_equal(vc_pack(&q, 3, &err), VC_OK);
	assert_memory_equal(b, c, sizeof(b));
	assert_false(overlaps(&p));
	assert_true(p.height < (1 << 20) * 5 / 4);
}

/* Many blocks, most of which live all the time: another way through the placer. */
static void many_blocks_are_placed(void **state)
{
	size_t n = 21000;
	struct vc_pack_block *b = calloc(n, sizeof(*b));
	struct vc_packing p = { .block = b, .n = n };
	struct vc_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = dice(100000);

		b[i] = (struct vc_pack_block){ at, at + 1 + dice(50), 512 * (1 + dice(100)), 0, 0 };
		if (i % 10 == 0)
			b[i] = (struct vc_pack_block){ dice(100), 90000 + dice(10000), 4096, 0, 0 };
	}
	assert_int_equal(vc_pack(&p, 1, &err), VC_OK);
	assert_false(overlaps(&p));
	assert_true(p.height < p.bound * 21 / 20);
	free(b);
}

/* In [0, 10) and again from 10 on: what lives over the end meets what lives at the beginning. */
static void a_block_lives_over_the_end_of_what_repeats(void **state)
{
	struct vc_pack_block b[] = { { 8, 2, 100, 0, 0 }, { 0, 3, 100, 0, 0 }, { 3, 8, 200, 0, 0 },
				     { 7, 10, 100, 0, 0 } };
	struct vc_packing p = { .block = b, .n = 4, .begin = 0, .end = 10 };
	struct vc_error err = { 0 };

	(void)state;
	assert_int_equal(vc_pack(&p, 5, &err), VC_OK);
	assert_false(overlaps(&p));
	assert_int_equal(p.bound, 300);
	assert_true(b[0].offset + 100 <= b[1].offset || b[1].offset + 100 <= b[0].offset);
	b[1].offset = b[0].offset + 50;
	assert_true(overlaps(&p));
	p.end = 0;
	assert_int_equal(vc_pack(&p, 5, &err), VC_EFORMAT);
}

/* ---- sequences ---- */

/* Steps of three blocks behind two that stay; the last of a step goes in the next one. */
static void add_run(struct vc_trace *t, int steps)
{
	struct vc_error err = { 0 };
	uint64_t id = 0, carried = 0;
	struct vc_event ev[16];

	for (int s = -1; s < steps; s++) {
		size_t n = 0;

		for (int k = 0; k < (s < 0 ? 2 : 5); k++) {
			ev[n++] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = ++id,
				.size = s < 0 ? 100000 : 1000 * (uint64_t)(k + 1),
				.stream = s >= 0 && k == 1 ? 7 : 0 };
			if (s >= 0 && k > 0 && k < 4)
				ev[n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = id - 1 };
			if (s >= 0 && k == 1 && carried)
				ev[n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = carried };
		}
		if (s >= 0) {
			carried = id;
			ev[n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = id - 1 };
		}
		assert_int_equal(vc_trace_append(t, ev, n, &err), VC_OK);
	}
}

/* Twice is a repetition, once is none. */
static void what_comes_twice_repeats(void **state)
{
	(void)state;
	for (int steps = 1; steps <= 3; steps++) {
		struct vc_trace t = { 0 };
		struct vc_planned p;
		struct vc_error err = { 0 };

		add_run(&t, steps);
		assert_int_equal(vc_sequence_plan(&t, 0, 1, &p, &err), VC_OK);
		assert_int_equal(p.plan.last - p.plan.first, steps > 1 ? 5 : 0);
		vc_planned_fini(&p);
		free(t.ev);
	}
}

static void one_step_is_planned_and_repeats(void **state)
{
	struct vc_trace t = { 0 };
	struct vc_planned p;
	struct vc_error err = { 0 };

	(void)state;
	add_run(&t, 8);
	assert_int_equal(vc_sequence_plan(&t, 0, 1, &p, &err), VC_OK);
	assert_int_equal(p.plan.last - p.plan.first, 5);
	assert_int_equal(p.plan.n, p.plan.last);
	assert_int_equal(p.requests, 2 + 8 * 5);
	assert_int_equal(p.plan.areas, 2);
	assert_int_equal(p.growing, 0);
	/* the streams share nothing */
	assert_true(p.plan.area[1].at >= p.plan.area[0].at + p.plan.area[0].size);
	for (size_t i = 0; i < p.plan.n; i++) {
		const struct vc_plan_request *q = &p.plan.request[i];

		assert_true(q->offset >= p.plan.area[q->stream].at);
		assert_true(q->offset + q->size <=
			    p.plan.area[q->stream].at + p.plan.area[q->stream].size);
	}
	vc_planned_fini(&p);
	free(t.ev);
}

/* The large block of each step lives into the next one. That of the first steps has the place of
 * those in the repetition: there is never more than one. */
static void predecessors_share_the_place_of_their_heirs(void **state)
{
	struct vc_trace t = { 0 };
	struct vc_planned p;
	struct vc_error err = { 0 };
	struct vc_event ev[16];
	uint64_t id = 0, large = 0;

	(void)state;
	for (int step = 0; step < 9; step++) {
		size_t n = 0;

		if (step < 2) /* the first steps have more */
			ev[n++] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = ++id, .size = 512 };
		for (int k = 0; k < 3; k++) {
			ev[n++] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = ++id,
						     .size = 2048 + 512 * (uint64_t)k };
			ev[n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = id };
		}
		if (large)
			ev[n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = large };
		ev[n++] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = large = ++id,
					     .size = 16 << 20 };
		assert_int_equal(vc_trace_append(&t, ev, n, &err), VC_OK);
	}
	assert_int_equal(vc_sequence_plan(&t, 0, 1, &p, &err), VC_OK);
	assert_int_equal(p.plan.last - p.plan.first, 4);
	assert_int_equal(p.bound, (16 << 20) + 3072 + 1024);
	vc_planned_fini(&p);
	free(t.ev);
}

static struct vc_planned planned(const struct vc_event *ev, size_t n)
{
	struct vc_trace t = { 0 };
	struct vc_planned p;
	struct vc_error err = { 0 };

	assert_int_equal(vc_trace_append(&t, ev, n, &err), VC_OK);
	assert_int_equal(vc_sequence_plan(&t, 0, 1, &p, &err), VC_OK);
	free(t.ev);
	return p;
}

/* What is asked for in a private pool has no place in the plan, and counts. */
static void private_pools_stay_out(void **state)
{
	const struct vc_event ev[] = {
		{ .kind = VC_EV_HEAP_BLOCK, .flags = VC_EVF_LIVE, .id = 1, .size = 1000 },
		{ .kind = VC_EV_HEAP_BLOCK, .flags = VC_EVF_LIVE | VC_EVF_FINAL, .id = 1,
		  .size = 1000 },
		{ .kind = VC_EV_HEAP_BLOCK, .id = 2, .size = 1000 },
		{ .kind = VC_EV_ALLOC, .id = 3, .size = 9000, .device = 1 },
		{ .kind = VC_EV_POOL_BEGIN, .id = 77, .stream = 5 },
		{ .kind = VC_EV_ALLOC, .id = 10, .size = 4000, .stream = 5 },
		{ .kind = VC_EV_ALLOC, .id = 11, .size = 100, .stream = 0 },
		{ .kind = VC_EV_POOL_BEGIN, .id = 78, .stream = VC_STREAM_ALL },
		{ .kind = VC_EV_ALLOC, .id = 12, .size = 2000, .stream = 0 },
		{ .kind = VC_EV_FREE, .id = 10, .flags = VC_EVF_PENDING },
		{ .kind = VC_EV_FREE_DONE, .id = 10 },
		{ .kind = VC_EV_ALLOC, .id = 13, .size = 3000, .stream = 5 },
		{ .kind = VC_EV_POOL_END, .id = 78 },
		{ .kind = VC_EV_ALLOC, .id = 14, .size = 700, .stream = 0 },
		{ .kind = VC_EV_ALLOC, .id = 15, .size = 8000, .stream = 5 },
		{ .kind = VC_EV_POOL_END, .id = 77 },
		{ .kind = VC_EV_ALLOC, .id = 16, .size = 5000, .stream = 5 },
		{ .kind = VC_EV_ALLOC, .id = 17, .size = 0, .stream = 5 },
	};
	struct vc_planned p = planned(ev, sizeof(ev) / sizeof(*ev));

	(void)state;
	assert_int_equal(p.requests, 8);
	assert_int_equal(p.at_start, 1);
	assert_int_equal(p.elsewhere, 4);
	assert_int_equal(p.elsewhere_peak, 2048 + 3072 + 8192);
	assert_int_equal(p.plan.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(p.plan.request[i].size,
				 ((uint64_t[]){ 1024, 512, 1024, 5120 })[i]);
	vc_planned_fini(&p);
}

/* A stream is warmed up, what it does not keep is given back, and then all else begins. */
static void what_stays_lies_below(void **state)
{
	enum { MIB = 1 << 20 };
	const struct vc_event ev[] = {
		{ .kind = VC_EV_ALLOC, .id = 1, .size = 3 * MIB, .stream = 9 },
		{ .kind = VC_EV_ALLOC, .id = 2, .size = 2 * MIB, .stream = 9 },
		{ .kind = VC_EV_ALLOC, .id = 3, .size = 7 * MIB, .stream = 9 },
		{ .kind = VC_EV_ALLOC, .id = 4, .size = 1 * MIB, .stream = 9 },
		{ .kind = VC_EV_FREE, .id = 1 },
		{ .kind = VC_EV_FREE, .id = 3 },
		{ .kind = VC_EV_TRIM },
		{ .kind = VC_EV_ALLOC, .id = 5, .size = 6 * MIB, .stream = 0 },
		{ .kind = VC_EV_FREE, .id = 5 },
		{ .kind = VC_EV_ALLOC, .id = 6, .size = 5 * MIB, .stream = 0 },
	};
	struct vc_planned p = planned(ev, sizeof(ev) / sizeof(*ev));

	(void)state;
	assert_int_equal(p.plan.areas, 2);
	assert_int_equal(p.plan.area[0].stays, 3 * MIB);
	assert_int_equal(p.plan.area[0].size, 14 * MIB);
	assert_int_equal(p.plan.area[1].stays, 0);
	assert_int_equal(p.plan.area[1].at, 14 * MIB);
	assert_int_equal(p.plan.area[1].size, 6 * MIB);
	assert_int_equal(p.plan.request[1].offset, 0);
	assert_int_equal(p.plan.request[3].offset, 2 * MIB);
	assert_int_equal(p.plan.request[0].offset + p.plan.request[2].offset, 3 * MIB + 3 * MIB +
			 (p.plan.request[0].offset > p.plan.request[2].offset ? 7 : 3) * MIB);
	assert_true(p.proven);
	vc_planned_fini(&p);
}

/* What a step keeps for ever has no place that the next one could take. */
static void what_grows_is_left_out(void **state)
{
	struct vc_trace t = { 0 };
	struct vc_planned p;
	struct vc_error err = { 0 };
	uint64_t id = 0;

	(void)state;
	for (int step = 0; step < 8; step++)
		for (uint64_t k = 1; k < 7; k++) {
			struct vc_event ev[] = {
				{ .kind = VC_EV_ALLOC, .id = ++id, .size = 4096 * k },
				{ .kind = VC_EV_FREE, .id = id },
			};

			assert_int_equal(vc_trace_append(&t, ev, k == 3 ? 1 : 2, &err), VC_OK);
		}
	assert_int_equal(vc_sequence_plan(&t, 0, 1, &p, &err), VC_OK);
	assert_int_equal(p.growing, 1);
	assert_int_equal(p.growing_bytes, 3 * 4096);
	assert_int_equal(p.bound, 6 * 4096);
	vc_planned_fini(&p);
	free(t.ev);
}

/* ---- files ---- */

static char *text_of(const struct vc_memory_plan *p)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	assert_int_equal(vc_memory_plan_write(p, to), VC_OK);
	fclose(to);
	return text;
}

static int read_text(struct vc_memory_plan *p, char *text, struct vc_error *err)
{
	FILE *from = fmemopen(text, strlen(text), "r");
	int r = vc_memory_plan_read(p, from, "x.vcp", err);

	fclose(from);
	return r;
}

static void a_plan_is_read_as_it_was_written(void **state)
{
	struct vc_plan_area area[] = { { 0, 4096, 4096, 1024 }, { 4096, 1024, 512, 0 } };
	struct vc_plan_request request[] = { { 512, 0, 0 }, { 1024, VC_PLAN_NOWHERE, 0 },
					     { 512, 4608, 1 } };
	struct vc_memory_plan p = { 5120, 1, 3, area, 2, request, 3 }, q;
	struct vc_error err = { 0 };
	char *text = text_of(&p);

	(void)state;
	assert_int_equal(read_text(&q, text, &err), VC_OK);
	assert_int_equal(q.arena, 5120);
	assert_int_equal(q.first, 1);
	assert_int_equal(q.last, 3);
	assert_int_equal(q.n, 3);
	assert_int_equal(q.request[1].offset, VC_PLAN_NOWHERE);
	assert_int_equal(q.request[2].offset, 4608);
	assert_int_equal(q.area[0].stays, 1024);
	assert_int_equal(q.area[1].bound, 512);
	assert_int_equal(q.area[1].stays, 0);
	vc_memory_plan_fini(&q);
	free(text);
}

/* What stays and the rest are two pieces of memory: a block across would leave both. */
static void a_block_across_what_stays_is_refused(void **state)
{
	struct vc_plan_area area[] = { { 0, 4096, 4096, 1536 } };
	struct vc_plan_request request[] = { { 1024, 1024, 0 } };
	struct vc_memory_plan p = { 4096, 0, 0, area, 1, request, 1 }, q;
	struct vc_error err = { 0 };
	char *text = text_of(&p);

	(void)state;
	assert_int_equal(read_text(&q, text, &err), VC_EFORMAT);
	assert_non_null(strstr(err.message, "a place outside the area of its stream"));
	free(text);
}

/* Every damage of one character, and every cut, is refused in one sentence. */
static void a_damaged_plan_is_refused(void **state)
{
	struct vc_plan_area area[] = { { 0, 4096, 4096, 0 } };
	struct vc_plan_request request[] = { { 512, 0, 0 }, { 1024, 1024, 0 } };
	struct vc_memory_plan p = { 4096, 0, 0, area, 1, request, 2 }, q;
	char *text = text_of(&p);
	size_t n = strlen(text);

	(void)state;
	for (size_t i = 0; i + 1 < n; i++) {
		struct vc_error err = { 0 };
		char was = text[i];

		text[i] = was == '1' ? '3' : '1';
		assert_int_equal(read_text(&q, text, &err), VC_EFORMAT);
		assert_non_null(strstr(err.message, "x.vcp: line "));
		text[i] = '\0';
		if (i)
			assert_int_equal(read_text(&q, text, &err), VC_EFORMAT);
		text[i] = was;
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfect_cuts_are_found_and_proven),
		cmocka_unit_test(large_perfect_cuts_are_nearly_found),
		cmocka_unit_test(an_overlap_is_noticed),
		cmocka_unit_test(what_cannot_be_lower_is_proven),
		cmocka_unit_test(the_same_blocks_give_the_same_offsets),
		cmocka_unit_test(many_blocks_are_placed),
		cmocka_unit_test(a_block_lives_over_the_end_of_what_repeats),
		cmocka_unit_test(what_comes_twice_repeats),
		cmocka_unit_test(one_step_is_planned_and_repeats),
		cmocka_unit_test(predecessors_share_the_place_of_their_heirs),
		cmocka_unit_test(private_pools_stay_out),
		cmocka_unit_test(what_stays_lies_below),
		cmocka_unit_test(what_grows_is_left_out),
		cmocka_unit_test(a_plan_is_read_as_it_was_written),
		cmocka_unit_test(a_block_across_what_stays_is_refused),
		cmocka_unit_test(a_damaged_plan_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
