/* SPDX-License-Identifier: Apache-2.0 */
/* test_diff.c - two hand-made recordings: what was inserted, resized, moved or freed elsewhere is
 * named. */
#include "tests/support/test.h"

#include "simulator/advise/diff.h"

enum { N = 40 };

struct made { struct vc_trace t; uint32_t site[3]; };

static void add(struct made *m, uint8_t kind, uint64_t id, uint64_t size, uint32_t site)
{
	struct vc_event e = {
		.kind = kind, .id = id, .size = size, .site = site, .time_ns = m->t.n + 1 };

	assert_int_equal(vc_trace_append(&m->t, &e, 1, NULL), 0);
	if (id > m->t.meta->max_id)
		m->t.meta->max_id = id;
}

/* N allocations from three lines; every second is freed at once. `extra`: one more in front of
 * number 20; `grow`: number 10 has twice the size; `keep`: number 31 is never freed. */
static struct made make(bool extra, bool grow, bool keep, bool sites)
{
	static const char *const function[] = { "forward", "backward", "step" };
	struct made m = { .t = { .meta = vc_meta_new(NULL) } };
	uint64_t id = 0;

	for (uint32_t i = 0; i < 3; i++)
		m.site[i] = !sites ? 0 : vc_meta_frame(m.t.meta, (struct vc_frame){ 0,
			vc_meta_string(m.t.meta, function[i], strlen(function[i])),
			vc_meta_string(m.t.meta, "train.py", 8), 10 + i });
	for (unsigned i = 0; i < N; i++) {
		if (extra && i == 20)
			add(&m, VC_EV_ALLOC, ++id, 777, m.site[1]);
		add(&m, VC_EV_ALLOC, ++id, (uint64_t)(i + 1) * 512 * (grow && i == 10 ? 2 : 1),
		    m.site[i % 3]);
		if (i % 2 && !(keep && i == 31))
			add(&m, VC_EV_FREE, id, 0, 0);
	}
	return m;
}

static void compare(struct made *a, struct made *b, struct vc_diff *d)
{
	const struct vc_diff_side side[2] = { { &a->t, NULL, 0 }, { &b->t, NULL, 0 } };
	struct vc_error err = { 0 };

	if (vc_diff_init(d, side, &err) < 0)
		fail_msg("%s", err.message);
}

static void end(struct made *a, struct made *b, struct vc_diff *d)
{
	vc_diff_fini(d);
	vc_trace_fini(&a->t);
	vc_trace_fini(&b->t);
}

static void a_recording_is_the_same_as_itself(void **state)
{
	struct made a = make(false, false, false, true), b = make(false, false, false, true);
	struct vc_diff d;

	(void)state;
	compare(&a, &b, &d);
	assert_int_equal(d.first, VC_DIFF_NONE);
	assert_int_equal(d.same, N);
	assert_int_equal(d.relived + d.resized + d.only[0] + d.only[1], 0);
	assert_int_equal(d.n, 3);
	end(&a, &b, &d);
}

static void an_inserted_allocation_is_named_and_the_rest_still_matches(void **state)
{
	struct made a = make(false, false, false, true), b = make(true, false, false, true);
	struct vc_diff d;

	(void)state;
	compare(&a, &b, &d);
	assert_int_equal(d.first, VC_DIFF_ONLY_B);
	assert_true(d.event[0] == UINT64_MAX);
	assert_int_equal(d.event[1], 30); /* 20 allocations and 10 frees before it */
	assert_int_equal(d.size[1], 777);
	assert_int_equal(d.same, N);
	assert_int_equal(d.only[1], 1);
	assert_int_equal(d.only_bytes[1], 777);
	assert_string_equal(d.at[0].site, "train.py:11 backward");
	assert_int_equal(d.at[0].asked[1] - d.at[0].asked[0], 777);
	end(&a, &b, &d);
}

static void the_other_way_round_it_is_only_in_a(void **state)
{
	struct made a = make(true, false, false, true), b = make(false, false, false, true);
	struct vc_diff d;

	(void)state;
	compare(&a, &b, &d);
	assert_int_equal(d.first, VC_DIFF_ONLY_A);
	assert_int_equal(d.only[0], 1);
	end(&a, &b, &d);
}

static void another_size_is_a_change_not_two_allocations(void **state)
{
	struct made a = make(false, false, false, true), b = make(false, true, false, true);
	struct vc_diff d;

	(void)state;
	compare(&a, &b, &d);
	assert_int_equal(d.first, VC_DIFF_SIZE);
	assert_int_equal(d.size[0], 11 * 512);
	assert_int_equal(d.size[1], 22 * 512);
	assert_int_equal(d.resized, 1);
	assert_int_equal(d.resized_bytes, 11 * 512);
	assert_int_equal(d.same, N - 1);
	end(&a, &b, &d);
}

static void a_block_that_is_never_freed_shows(void **state)
{
	struct made a = make(false, false, false, true), b = make(false, false, true, true);
	struct vc_diff d;

	(void)state;
	compare(&a, &b, &d);
	assert_int_equal(d.first, VC_DIFF_LIFE);
	assert_int_equal(d.size[0], 32 * 512);
	assert_int_equal(d.relived, 1);
	end(&a, &b, &d);
}

static void without_call_sites_sizes_decide(void **state)
{
	struct made a = make(false, false, false, true), b = make(true, false, false, false);
	struct vc_diff d;

	(void)state;
	compare(&a, &b, &d);
	assert_false(d.by_site);
	assert_int_equal(d.same, N);
	assert_int_equal(d.first, VC_DIFF_ONLY_B);
	end(&a, &b, &d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_is_the_same_as_itself),
		cmocka_unit_test(an_inserted_allocation_is_named_and_the_rest_still_matches),
		cmocka_unit_test(the_other_way_round_it_is_only_in_a),
		cmocka_unit_test(another_size_is_a_change_not_two_allocations),
		cmocka_unit_test(a_block_that_is_never_freed_shows),
		cmocka_unit_test(without_call_sites_sizes_decide),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
