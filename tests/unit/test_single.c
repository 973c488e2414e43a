/* SPDX-License-Identifier: Apache-2.0 */
/* test_single.c - what one recording says about each block at another batch size. */
#include "tests/support/test.h"

#include "simulator/predict/single.h"

/* How the first of two blocks goes with `name` of value x; both are given back at the end. */
static enum vc_single of(uint64_t size, bool at_once, const char *name, double x)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_event e = { .kind = VC_EV_ALLOC, .id = 1, .size = size };
	struct vc_allocations m = { 0 };
	uint8_t how[3];

	t.meta->max_id = 2;
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	if (at_once) {
		e.kind = VC_EV_FREE;
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e = (struct vc_event){ .kind = VC_EV_ALLOC, .id = 2, .size = 99 };
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	for (e.kind = VC_EV_FREE, e.id = at_once ? 2 : 1; e.id <= 2; e.id++)
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	/* what lives at the last allocation would last */
	e = (struct vc_event){ .kind = VC_EV_ALLOC, .id = 3, .size = 98 };
	t.meta->max_id = 3;
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_single_settle(&m, name, x, how, NULL), 0);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return (enum vc_single)how[0];
}

static void pairs_and_triples_of_samples_are_known_by_their_sizes(void **unused)
{
	(void)unused;
	assert_int_equal(of(7 * 7 * 7 * 4, false, "batch", 7), VC_SINGLE_TRIPLES);
	assert_int_equal(of(7 * 7 * 4, false, "batch", 7), VC_SINGLE_PAIRS);
	assert_int_equal(of(7 * 7 * 8, false, "batch", 7), VC_SINGLE_PAIRS);
	assert_int_equal(of(7 * 7 * 16, false, "batch", 7), VC_SINGLE_MOVES);
	/* by chance too often */
	assert_int_equal(of(4 * 4 * 4, false, "batch", 4), VC_SINGLE_MOVES);
}

static void small_blocks_that_do_not_divide_stay(void **unused)
{
	(void)unused;
	assert_int_equal(of(65535, false, "batch", 7), VC_SINGLE_STAYS);
	assert_int_equal(of(65537, false, "batch", 7), VC_SINGLE_HOLDS);
	assert_int_equal(of(65541, false, "batch", 7), VC_SINGLE_MOVES);
}

static void a_borrowed_cublas_workspace_stays(void **unused)
{
	(void)unused;
	assert_int_equal(of(8519680, true, "batch", 4), VC_SINGLE_STAYS);
	assert_int_equal(of(33554432, true, "batch", 4), VC_SINGLE_STAYS);
	assert_int_equal(of(8519680, false, "batch", 4), VC_SINGLE_MOVES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_and_triples_of_samples_are_known_by_their_sizes),
		cmocka_unit_test(small_blocks_that_do_not_divide_stay),
		cmocka_unit_test(a_borrowed_cublas_workspace_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
