/* SPDX-License-Identifier: Apache-2.0 */
/* test_reduction.c - scratch of row sums, against sizes a real PyTorch asked for on 132 SMs. */
#include "tests/support/test.h"

#include "simulator/predict/workspaces.h"

static const struct vc_reduction_card h200 = { 132, 2048 };

static void expect(uint64_t n, uint64_t rows, uint64_t partial, uint64_t semaphores)
{
	uint64_t p = 0, s = 0, lo, hi;
	enum vc_limit limit;

	assert_true(vc_reduction(n, rows, &h200, &p, &s));
	assert_int_equal(p, partial);
	assert_int_equal(s, semaphores);
	assert_true(vc_reduction_rows(n, p, s, &h200, &lo, &hi, &limit));
	assert_true(limit == VC_LIMIT_ROWS || hi == UINT64_MAX);
	assert_true(lo <= rows && rows <= hi);
}

static void sizes_of_recorded_bias_gradients(void **unused)
{
	(void)unused;
	expect(768, 1182, 7471104, 24);    /* vit-b16, batch 6: 6 x 197 rows */
	expect(3072, 1182, 29884416, 96);
	expect(2304, 1182, 22413312, 72);
	expect(2048, 2048, 33554432, 64);  /* mlp, batch 2048 */
	expect(1000, 2048, 16384000, 32);
	expect(512, 3072, 12582912, 16);   /* gpt-accum, batch 12 */
	expect(768, 1024, 6291456, 24);    /* gpt-amp, batch 2 */
}

static void short_sums_need_none(void **unused)
{
	uint64_t p, s;

	(void)unused;
	assert_false(vc_reduction(768, 1020, &h200, &p, &s));
	assert_true(vc_reduction(768, 1021, &h200, &p, &s));
	assert_false(vc_reduction(0, 5, &h200, &p, &s));
}

static void the_card_limits_the_number_of_blocks(void **unused)
{
	const struct vc_reduction_card small = { 40, 1024 };
	uint64_t p, q, s;

	(void)unused;
	assert_true(vc_reduction(3072, 12608, &h200, &p, &s));
	assert_int_equal(p, 4ull * 3072 * 88 * 128);
	assert_true(vc_reduction(3072, 12608, &small, &q, &s));
	assert_true(q < p);
}

static void batch_norm_of_rows(void **unused)
{
	uint64_t p, s;

	(void)unused;
	assert_false(vc_norm_scratch(4096, 1000, 4, &p, &s));
	assert_true(vc_norm_scratch(4096, 2048, 4, &p, &s));
	assert_int_equal(p, 524288);
	assert_int_equal(s, 512);
	assert_true(vc_norm_scratch(2048, 2048, 2, &p, &s));
	assert_int_equal(p, 131072);
	assert_int_equal(s, 256);
}

/* A stream of bias gradients of many rows, as a card of so many multiprocessors asks for them. */
static struct vc_reduction_card recognised(const struct vc_reduction_card *card)
{
	static const uint64_t width[] = { 768, 2304, 3072, 1000 };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;

	for (uint64_t i = 0; i < 4; i++) {
		struct vc_event e[6];
		uint64_t partial, semaphores, id = 3 * i + 1;

		assert_true(vc_reduction(width[i], 8000, card, &partial, &semaphores));
		const uint64_t size[] = { 4 * width[i], partial, semaphores };
		for (uint64_t k = 0; k < 3; k++)
			e[k] = (struct vc_event){
				.kind = VC_EV_ALLOC, .id = id + k, .size = size[k] };
		for (uint64_t k = 0; k < 3; k++)
			e[3 + k] = (struct vc_event){ .kind = VC_EV_FREE, .id = id + 2 - k };
		assert_int_equal(vc_trace_append(&t, e, 6, NULL), 0);
	}
	t.meta->max_id = 12;
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	bool known = false;
	struct vc_reduction_card found = vc_workspace_card(&m, 1, &known);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return found;
}

static void the_card_is_told_by_the_buffers_it_fills(void **unused)
{
	static const struct vc_reduction_card rtx4090 = { 128, 1536 }, t4 = { 40, 1024 };

	(void)unused;
	assert_int_equal(recognised(&h200).sms, 132);
	assert_int_equal(recognised(&rtx4090).sms, 128);
	assert_int_equal(recognised(&rtx4090).threads_per_sm, 1536);
	assert_int_equal(recognised(&t4).sms, 40);
}

/* argmin over 20,000 rows of floats on 108 SMs (PyTorch 2.9.1): places grow with the width. */
static void sizes_of_recorded_places(void **unused)
{
	static const struct { uint64_t n, partial, semaphores; } recorded[] = {
		{ 512, 328204288, 16 }, { 768, 452984832, 24 }, { 1024, 452984832, 32 },
		{ 2048, 452984832, 64 } };
	const struct vc_reduction_card a100 = { 108, 2048 };
	const struct vc_workspace s = { .kind = VC_WORKSPACE_PLACE, .width = 512, .row = 2048 };
	uint64_t partial, semaphores;

	(void)unused;
	for (size_t i = 0; i < sizeof(recorded) / sizeof(*recorded); i++) {
		uint64_t n = recorded[i].n;

		assert_true(vc_workspace_at(&s, 8 * n, 4 * n * 20000, &a100, &partial,
					    &semaphores));
		assert_int_equal(partial, recorded[i].partial);
		assert_int_equal(semaphores, recorded[i].semaphores);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_recorded_bias_gradients),
		cmocka_unit_test(short_sums_need_none),
		cmocka_unit_test(the_card_is_told_by_the_buffers_it_fills),
		cmocka_unit_test(the_card_limits_the_number_of_blocks),
		cmocka_unit_test(batch_norm_of_rows),
		cmocka_unit_test(sizes_of_recorded_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
