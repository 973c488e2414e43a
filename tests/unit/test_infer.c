/* SPDX-License-Identifier: Apache-2.0 */
/* test_infer.c - what a snapshot does not name is rebuilt in the order in which it happened. */
#include "tests/support/test.h"

#include "simulator/replay/infer.h"

/* A request in a private pool's segment, empty_cache, another one: as two captures into one pool.
 * The heap at the end says whose the segment is. */
static const struct vc_event two_captures[] = {
	{ .kind = VC_EV_SEGMENT_ALLOC, .addr = 0x1000000, .size = 20 << 20 },
	{ .kind = VC_EV_ALLOC, .id = 1, .addr = 0x1000000, .size = 2 << 20 },
	{ .kind = VC_EV_TRIM },
	{ .kind = VC_EV_ALLOC, .id = 2, .addr = 0x1200000, .size = 2 << 20 },
	{ .kind = VC_EV_HEAP_SEGMENT,
	  .flags = VC_EVF_FINAL,
	  .id = 7,
	  .addr = 0x1000000,
	  .size = 20 << 20 },
};

static void scopes_do_not_go_on_over_an_emptied_cache(void **unused)
{
	static const uint8_t want[] = { VC_EV_SEGMENT_ALLOC, VC_EV_POOL_BEGIN, VC_EV_ALLOC,
				       VC_EV_POOL_END,      VC_EV_TRIM,       VC_EV_POOL_BEGIN,
				       VC_EV_ALLOC,         VC_EV_POOL_END,   VC_EV_HEAP_SEGMENT };
	struct vc_error err = { 0 };
	struct vc_trace t = { .meta = vc_meta_new(&err) };

	(void)unused;
	assert_non_null(t.meta);
	t.meta->how[VC_CAP_TRIMS] = VC_HOW_RECORDED;
	assert_int_equal(vc_trace_append(&t, two_captures, 5, &err), 0);
	assert_int_equal(vc_infer(&t, &err), 0);
	assert_int_equal(t.n, sizeof(want));
	for (size_t i = 0; i < t.n; i++)
		assert_int_equal(t.ev[i].kind, want[i]);
	vc_trace_fini(&t);
}

/* A segment goes of which nothing is known: there are no lives of segments to sort. */
static void a_release_alone(void **unused)
{
	static const struct vc_event ev[] = {
		{ .kind = VC_EV_ALLOC, .id = 1, .addr = 0x1000000, .size = 2 << 20 },
		{ .kind = VC_EV_SEGMENT_FREE, .addr = 0x1000000, .size = 20 << 20 },
	};
	struct vc_error err = { 0 };
	struct vc_trace t = { .meta = vc_meta_new(&err) };

	(void)unused;
	assert_non_null(t.meta);
	assert_int_equal(vc_trace_append(&t, ev, 2, &err), 0);
	assert_int_equal(vc_infer(&t, &err), 0);
	assert_true(t.n >= 2);
	vc_trace_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scopes_do_not_go_on_over_an_emptied_cache),
		cmocka_unit_test(a_release_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
