/* SPDX-License-Identifier: Apache-2.0 */
/* test_carry.c - what a recording and its control run differ in, in a run with other values. */
#include "tests/support/test.h"

#include "simulator/session/carry.h"

enum { MOST = 32 };

struct run {
	struct vc_event ev[MOST];
	struct vc_device_census device;
	struct vc_recording rec;
};

/* "100 200 -1 0 50": two requests, the first is given back, the cache emptied, one more. */
static const struct vc_recording *made(struct run *r, const char *text)
{
	size_t n = 0;
	uint64_t id = 0;
	char *end;

	memset(r, 0, sizeof(*r));
	for (long v = strtol(text, &end, 10); end != text; v = strtol(text, &end, 10)) {
		r->ev[n++] = v > 0 ? (struct vc_event){ .kind = VC_EV_ALLOC, .id = ++id,
							.size = (uint64_t)v } :
			    !v ? (struct vc_event){ .kind = VC_EV_TRIM } :
				     (struct vc_event){ .kind = VC_EV_FREE, .id = (uint64_t)-v };
		text = end;
	}
	r->rec.trace.ev = r->ev;
	r->rec.trace.n = n;
	r->rec.device = &r->device;
	return &r->rec;
}

/* Carried over, in the same words; "?": it cannot be. */
static void carries(const struct vc_differs *d, size_t n, const char *control, const char *run,
		    enum vc_carry_end end, const char *expected)
{
	struct vc_control_run t = { .differs = (struct vc_differs *)(uintptr_t)d, .differ = n };
	struct vc_error err = { 0 };
	struct vc_trace out;
	struct run a, b;
	char said[256] = "";
	size_t at = 0;
	int r = vc_carry(&t, made(&a, control), made(&b, run), end, &out, &err);

	assert_true(r >= 0);
	for (size_t i = 0; i < out.n; i++)
		at += (size_t)snprintf(said + at, sizeof(said) - at, "%s%s%d", at ? " " : "",
				       out.ev[i].kind == VC_EV_FREE ? "-" : "",
				       (int)(out.ev[i].kind == VC_EV_FREE ? out.ev[i].id :
									    out.ev[i].size));
	assert_string_equal(r ? said : "?", expected);
	vc_trace_fini(&out);
}

static void equal_runs_stay(void **state)
{
	carries(NULL, 0, "100 200 -1", "150 200 -1", VC_CARRY_HIGH, "150 200 -1");
}

static void sizes_that_do_not_change_are_the_recorded_ones(void **state)
{
	static const struct vc_differs d[] = { { 1, 260, 200, 5, 0 } };

	carries(d, 1, "100 200 -1", "150 200 -1", VC_CARRY_LOW, "150 260 -1");
	carries(d, 1, "100 200 -1", "150 200 -1", VC_CARRY_HIGH, "150 260 -1");
}

static void others_grow_or_do_not(void **state)
{
	static const struct vc_differs d[] = { { 1, 260, 200, 5, 0 } };

	carries(d, 1, "100 200 -1", "150 400 -1", VC_CARRY_LOW, "150 260 -1");
	carries(d, 1, "100 200 -1", "150 400 -1", VC_CARRY_HIGH, "150 520 -1");
	carries(d, 1, "100 200 -1", "150 100 -1", VC_CARRY_LOW, "150 130 -1");
	carries(d, 1, "100 200 -1", "150 100 -1", VC_CARRY_HIGH, "150 260 -1");
}

static void workspaces_of_the_card_alone_come_and_go(void **state)
{
	static const struct vc_differs d[] = { { 1, 64, 0, 0, 0 } };

	carries(d, 1, "100 200 -1 100", "200 200 -1 300", VC_CARRY_LOW, "200 64 -4 200 -1 300");
	carries(d, 1, "100 200 -1 100", "200 200 -1 300", VC_CARRY_HIGH, "200 128 -4 200 -1 300");
}

static void they_come_behind_as_many_frees(void **state)
{
	static const struct vc_differs d[] = { { 2, 64, 0, 0, 1 }, { 3, 64, 0, 0, 0 } };

	carries(d, 2, "1 2 -1 -2 3", "1 2 -1 -2 3", VC_CARRY_LOW, "1 2 -1 64 -4 -2 3 64 -5");
	carries(d, 2, "1 2 0 -1 0 -2 3", "1 2 0 -1 0 -2 3", VC_CARRY_LOW,
		"1 2 0 -1 0 64 -4 -2 3 64 -5");
}

static void blocks_of_the_card_alone_live_as_long(void **state)
{
	static const struct vc_differs one[] = { { 1, 64, 0, 1, 0 } },
				       ever[] = { { 1, 64, 0, UINT64_MAX, 0 } };

	carries(one, 1, "100 200 -1 100", "100 200 -1 100", VC_CARRY_HIGH, "100 64 200 -1 -4 100");
	carries(ever, 1, "100 200 -1 100", "100 200 -1 100", VC_CARRY_HIGH, "100 64 200 -1 100");
}

static void what_only_dry_runs_ask_for_is_in_the_higher_end(void **state)
{
	static const struct vc_differs d[] = { { 1, 0, 200, 0, 0 } };

	carries(d, 1, "100 200 -2 50", "100 300 -2 50", VC_CARRY_LOW, "100 50");
	carries(d, 1, "100 200 -2 50", "100 300 -2 50", VC_CARRY_HIGH, "100 300 -2 50");
}

static void another_number_of_requests_cannot_be_told_apart(void **state)
{
	static const struct vc_differs d[] = { { 1, 64, 0, 0, 0 } };

	carries(d, 1, "100 200", "100 200 300", VC_CARRY_LOW, "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_runs_stay),
		cmocka_unit_test(sizes_that_do_not_change_are_the_recorded_ones),
		cmocka_unit_test(others_grow_or_do_not),
		cmocka_unit_test(workspaces_of_the_card_alone_come_and_go),
		cmocka_unit_test(they_come_behind_as_many_frees),
		cmocka_unit_test(blocks_of_the_card_alone_live_as_long),
		cmocka_unit_test(what_only_dry_runs_ask_for_is_in_the_higher_end),
		cmocka_unit_test(another_number_of_requests_cannot_be_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
