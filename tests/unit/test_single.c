/* SPDX-License-Identifier: Apache-2.0 */
/* test_single.c - what one recording says about each block at another batch size. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "simulator/predict/scaling.h"
#include "simulator/replay/source.h"

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

static void what_does_not_divide_is_open(void **unused)
{
	(void)unused;
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

/* Blocks of a recorded training run that surely grow with a batch of x. */
static size_t growing(double x)
{
	struct vc_error err = { 0 };
	struct vc_source *s = vc_source_open("tests/recordings/gpt.vct", &err);
	struct vc_trace t = { 0 };
	struct vc_allocations m = { 0 };
	size_t n = 0;

	assert_non_null(s);
	assert_int_equal(vc_trace_read(&t, s, &err), 0);
	vc_source_free(s);
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	uint8_t *how = calloc(m.n, 1);

	assert_non_null(how);
	assert_int_equal(vc_single_settle(&m, "batch", x, how, NULL), 0);
	for (size_t i = 0; i < m.n; i++)
		n += how[i] == VC_SINGLE_GROWS;
	free(how);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return n;
}

/* Every size divides by 1, and nearly every one by 2. */
static void division_by_two_proves_nothing(void **unused)
{
	(void)unused;
	assert_int_equal(growing(2), 0);
	assert_true(growing(4) > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_divide_is_open),
		cmocka_unit_test(a_borrowed_cublas_workspace_stays),
		cmocka_unit_test(division_by_two_proves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
