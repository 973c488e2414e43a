/* SPDX-License-Identifier: Apache-2.0 */
/* test_sorting.c - the blocks of an embedding's gradient, worked out by hand from PyTorch's and
 * cub's sources: indices of 8 bytes, parts of 10 rows, tiles of 4,608 keys with 1 KiB each. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "simulator/predict/sorting.h"

static void more_than_3072_indices_are_sorted(void **unused)
{
	const struct vc_sort s = { .row = 3072 }, always = { .row = 3072, .always = true };

	(void)unused;
	assert_false(vc_sort_needed(&s, 3072));
	assert_true(vc_sort_needed(&s, 3073));
	assert_true(vc_sort_needed(&always, 1));
}

static void the_blocks_of_a_sort(void **unused)
{
	static const struct { uint64_t n, values, tiles; } at[] = {
		{ 4608, 50257, 1 }, { 4609, 50257, 2 }, { 81920, 512, 18 } };

	(void)unused;
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		const struct vc_sort s = { .row = 3072, .values = at[i].values };
		uint64_t n = at[i].n, list = 8 * n, got[VC_SORT_BLOCKS];
		uint64_t segments = n < at[i].values ? n : at[i].values;
		uint64_t whole = (list + 255) / 256 * 256; /* cub rounds its parts to 256 bytes */
		const uint64_t want[] = {
			list, list, list, 2 * whole + 1024 * at[i].tiles + 16895,
			list, 8, list, 1023, 8 * segments, 8 * segments, 1023, 8,
			8 * (n / 10 + segments), 3072 * (n / 10 + segments) };

		assert_int_equal(sizeof(want), sizeof(got));
		vc_sort_sizes(&s, n, got);
		assert_memory_equal(got, want, sizeof(want));
	}
}

/* 14 blocks around a gradient, as a recording has them; `late`: one that is not of a sort. */
static bool recognised(uint64_t n, bool late, struct vc_sort *out)
{
	const struct vc_sort s = { .row = 3072, .values = 50257 };
	uint64_t size[VC_SORT_BLOCKS];
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_event e = { .kind = VC_EV_ALLOC };
	struct vc_allocations m = { 0 };

	vc_sort_sizes(&s, n, size);
	for (size_t i = 0; i < VC_SORT_BLOCKS + 2; i++) { /* the gradient stands behind four */
		e.id = i + 1;
		e.size = i < 4 ? size[i] : i == 4 ? 3072 * 50257 : i <= 14 ? size[i - 1] : 99;
		e.size += late && i == 14;
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	t.meta->max_id = VC_SORT_BLOCKS + 2;
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	bool yes = vc_sort_at(&m, 4, out);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return yes;
}

static void a_sort_is_recognised_by_its_fourteen_blocks(void **unused)
{
	struct vc_sort s;

	(void)unused;
	assert_true(recognised(4000, false, &s));
	assert_int_equal(s.row, 3072);
	assert_int_equal(s.values, 50257);
	assert_false(s.always);
	assert_false(recognised(4000, true, &s));
	assert_true(recognised(3072, false, &s)); /* few, and sorted all the same */
	assert_true(s.always);
}

/* Is the gradient of an embedding known whose indices were made so many allocations before it? */
static bool known(uint32_t before)
{
	enum { MOST = 400, INDICES = 512, ROW = 256, VALUES = 1000 };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;
	struct vc_sorts found = { 0 };
	double grows[MOST] = { 0 };
	uint32_t file = vc_meta_string(t.meta, "torch/nn/functional.py", 22);
	uint32_t call = vc_meta_frame(t.meta, (struct vc_frame){
		.function = vc_meta_string(t.meta, "embedding", 9), .file = file, .line = 1 });
	uint32_t n = before + 3;

	t.meta->max_id = n;
	for (uint32_t i = 0; i < n; i++) {
		struct vc_event e = { .kind = VC_EV_ALLOC, .id = i + 1, .size = 100, .site = call };

		e.size = i == 0 ? INDICES * 8 : i == before ? INDICES * ROW :
			 i == before + 2 ? VALUES * ROW : 100;
		e.site = i > before ? 0 : call;
		grows[i] = i == 0 || i == before ? 2 : 1;
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_sort_find(&m, grows, &found, NULL), 0);
	bool is = found.n == 1 && found.at[0].values == VALUES && found.at[0].row == ROW;

	free(found.at);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return is;
}

static void the_indices_of_an_embedding_stand_not_far_before_it(void **unused)
{
	(void)unused;
	assert_true(known(1));
	assert_true(known(100));
	assert_false(known(200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_3072_indices_are_sorted),
		cmocka_unit_test(the_blocks_of_a_sort),
		cmocka_unit_test(a_sort_is_recognised_by_its_fourteen_blocks),
		cmocka_unit_test(the_indices_of_an_embedding_stand_not_far_before_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
