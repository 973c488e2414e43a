/* SPDX-License-Identifier: Apache-2.0 */
/* test_vec.c - arrays that grow, and searches in sorted ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/vec.h"

static void grows_by_doubling_and_keeps_what_it_holds(void **state)
{
	uint32_t *at = NULL;
	size_t cap = 0, moves = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		size_t before = cap;

		assert_true(vc_vec_room(at, cap, i + 1u));
		assert_true(cap > i);
		moves += cap != before;
		at[i] = i * 7;
	}
	assert_int_equal(moves, 8); /* 8, 16 ... 1024 */
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(at[i], i * 7);
	free(at);
}

static void makes_room_for_many_at_once(void **state)
{
	char *at = NULL;
	size_t cap = 0, none = 0;

	(void)state;
	assert_true(vc_vec_room(at, cap, none));
	assert_null(at);
	assert_true(vc_vec_room(at, cap, 5000));
	assert_int_equal(cap, 8192);
	memset(at, 1, cap);
	free(at);
}

static void refuses_what_no_size_t_can_count(void **state)
{
	uint64_t *at = malloc(sizeof(*at)), *same = at;
	size_t cap = 1;

	(void)state;
	assert_false(vc_vec_room(at, cap, SIZE_MAX / 8 + 1)); /* the bytes overflow */
	assert_false(vc_vec_room(at, cap, SIZE_MAX));         /* the doubling overflows */
	assert_ptr_equal(at, same);
	assert_int_equal(cap, 1);
	free(at);
}

struct numbered { uint32_t key, first[3]; };

VC_COMPARE(by_key, struct numbered, VC_ORDER(x->key, y->key))

/* Against a sort that has nothing in common with it: each element counts those before it. */
static void leaves_equals_in_their_order(void **state)
{
	static const uint32_t keys[] = { 1, 2, 7, 1000, 0xffffffff };
	static struct numbered was[1500], at[1500];
	uint32_t x = 1;

	(void)state;
	for (size_t n = 0; n <= 1500; n += n < 40 ? 1 : 365) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
			for (uint32_t i = 0; i < n; i++) {
				x = x * 1664525u + 1013904223u;
				was[i] = (struct numbered){ (x >> 8) % keys[k], { i, ~i, i } };
				at[i] = was[i];
			}
			vc_sort(at, n, sizeof(*at), by_key);
			for (size_t i = 0; i < n; i++) {
				size_t place = 0;

				for (size_t j = 0; j < n; j++)
					place += was[j].key < was[i].key ||
						 (was[j].key == was[i].key && j < i);
				assert_memory_equal(&at[place], &was[i], sizeof(*at));
			}
		}
	}
}

static void zeroes_the_new_room_only(void **state)
{
	uint64_t *at = NULL;
	size_t cap = 0;

	(void)state;
	assert_true(vc_vec_zeroed(at, cap, 3));
	for (size_t i = 0; i < cap; i++)
		assert_int_equal(at[i], 0);
	at[0] = 5;
	at[cap - 1] = 6;
	size_t old = cap;
	assert_true(vc_vec_zeroed(at, cap, 100));
	assert_int_equal(at[0], 5);
	assert_int_equal(at[old - 1], 6);
	for (size_t i = old; i < cap; i++)
		assert_int_equal(at[i], 0);
	free(at);
}

static void one_more_needs_no_field_for_the_room(void **state)
{
	uint16_t *at = NULL;
	size_t n = 0;

	(void)state;
	for (; n < 1025; n++) { /* AddressSanitizer sees what is written beyond the room */
		assert_true(vc_vec_one(at, n));
		at[n] = (uint16_t)n;
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(at[i], i);
	for (n = 0; n < 100; n++) { /* begun anew */
		assert_true(vc_vec_one(at, n));
		at[n] = 1;
	}
	free(at);
}

struct piece { char name; uint32_t small; uint64_t addr; };

static void finds_the_first_from_and_above(void **state)
{
	struct piece p[] = { { 'a', 1, 10 }, { 'b', 1, 20 }, { 'c', 4, 20 },
			     { 'd', 9, UINT64_MAX } };

	(void)state;
	assert_int_equal(vc_first_from(p, 4, addr, 0), 0);
	assert_int_equal(vc_first_from(p, 4, addr, 20), 1);
	assert_int_equal(vc_first_above(p, 4, addr, 20), 3);
	assert_int_equal(vc_first_above(p, 3, addr, 20), 3);
	assert_int_equal(vc_first_from(p, 4, addr, UINT64_MAX), 3);
	assert_int_equal(vc_first_above(p, 4, addr, UINT64_MAX), 4);
	assert_int_equal(vc_first_from(p, 4, small, 2), 2);
	assert_int_equal(vc_first_above(p, 4, small, 9), 4);
	assert_int_equal(vc_first_from((struct piece *)NULL, 0, addr, 1), 0);
	for (size_t near = 0; near <= 5; near++) /* wherever the last one was */
		for (uint64_t key = 0; key < 40; key++)
			assert_int_equal(vc_first_from_near(p, 4, addr, key, near),
					 vc_first_from(p, 4, addr, key));
}

static void sorts_and_finds_numbers(void **state)
{
	uint64_t v[] = { 7, UINT64_MAX, 0, 7, 3 };

	(void)state;
	vc_sort_u64(v, 5);
	for (size_t i = 1; i < 5; i++)
		assert_true(v[i - 1] <= v[i]);
	assert_ptr_equal(vc_find_u64(v, 5, 3), &v[1]);
	assert_int_equal(*vc_find_u64(v, 5, 7), 7);
	assert_null(vc_find_u64(v, 5, 4));
	assert_null(vc_find_u64(NULL, 0, 4));
	vc_sort_u64(NULL, 0);
	assert_int_equal(VC_ORDER(v[0], v[1]), -1);
	assert_int_equal(VC_ORDER(v[2], v[3]), 0);
	assert_int_equal(VC_ORDER(v[4], v[0]), 1);
}

VC_COMPARE(by_small_then_address, struct piece,
	   VC_THEN(VC_ORDER(x->small, y->small), VC_ORDER(y->addr, x->addr)))

static void orders_by_one_field_and_then_another(void **state)
{
	struct piece p[] = { { 'a', 4, 10 }, { 'b', 1, 20 }, { 'c', 4, 20 }, { 'd', 0, 5 } };

	(void)state;
	qsort(p, 4, sizeof(*p), by_small_then_address);
	assert_int_equal(p[0].name, 'd');
	assert_int_equal(p[1].name, 'b');
	assert_int_equal(p[2].name, 'c'); /* descending where the first is the same */
	assert_int_equal(p[3].name, 'a');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_by_doubling_and_keeps_what_it_holds),
		cmocka_unit_test(makes_room_for_many_at_once),
		cmocka_unit_test(refuses_what_no_size_t_can_count),
		cmocka_unit_test(leaves_equals_in_their_order),
		cmocka_unit_test(zeroes_the_new_room_only),
		cmocka_unit_test(one_more_needs_no_field_for_the_room),
		cmocka_unit_test(finds_the_first_from_and_above),
		cmocka_unit_test(sorts_and_finds_numbers),
		cmocka_unit_test(orders_by_one_field_and_then_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
