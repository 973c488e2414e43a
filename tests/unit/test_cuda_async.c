/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_async.c - the two bounds of the driver's pools. The driver is closed; what is tested is
 * that the bounds say what the documentation allows. */
#include "tests/support/model_world.h"

#include <string.h>

static void blocks_take_steps_of_32_MiB(void **unused)
{
	static const char *const bound[] = { "bound=low", "bound=high" };

	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct world w;

		assert_int_equal(open_world(&w, "cuda_async", 8 * GIB, bound[i], NULL), 0);
		assert_int_equal(ask(&w, 1, 0).size, 512);
		assert_int_equal(w.m.now.reserved, 32 * MIB);
		ask(&w, 40 * MIB, 0);
		assert_int_equal(w.m.now.reserved, i ? 96 * MIB : 64 * MIB);
		close_world(&w);
	}
}

/* Two free pieces with a live one between: 40 MiB fit in none. */
static uint64_t after_a_hole(const char *params)
{
	struct world w;
	struct vc_block a, b;
	uint64_t reserved;

	assert_int_equal(open_world(&w, "cuda_async", 8 * GIB, params, NULL), 0);
	a = ask(&w, 30 * MIB, 0);
	ask(&w, 4 * MIB, 0);
	b = ask(&w, 30 * MIB, 0);
	w.m.type->free(&w.m, &a);
	w.m.type->free(&w.m, &b);
	ask(&w, 40 * MIB, 0);
	reserved = w.m.now.reserved;
	close_world(&w);
	return reserved;
}

static void only_the_low_bound_remaps(void **unused)
{
	(void)unused;
	assert_int_equal(after_a_hole("bound=low,grow=64MiB"), 64 * MIB);
	assert_int_equal(after_a_hole("bound=high,grow=64MiB"), 128 * MIB);
}

/* Stream 0 frees 20 MiB, stream 1 asks for as much. */
static uint64_t across_streams(const char *params, bool wait)
{
	struct world w;
	struct vc_block a;
	uint64_t reserved;

	assert_int_equal(open_world(&w, "cuda_async", 8 * GIB, params, NULL), 0);
	a = ask(&w, 20 * MIB, 0);
	w.m.type->free(&w.m, &a);
	if (wait)
		w.m.type->sync(&w.m, 0);
	ask(&w, 20 * MIB, 1);
	reserved = w.m.now.reserved;
	close_world(&w);
	return reserved;
}

static void other_streams_take_what_was_waited_for(void **unused)
{
	(void)unused;
	assert_int_equal(across_streams("bound=low", false), 32 * MIB);
	assert_int_equal(across_streams("bound=low,reuse=own", false), 64 * MIB);
	assert_int_equal(across_streams("bound=low,reuse=own", true), 32 * MIB);
	assert_int_equal(across_streams("bound=high", false), 64 * MIB);
	assert_int_equal(across_streams("bound=high", true), 32 * MIB);
}

static void a_full_device_makes_streams_wait(void **unused)
{
	struct vc_request rq = { .id = 9, .size = 40 * MIB, .stream = 1 };
	struct world w;
	struct vc_block a;

	(void)unused;
	for (int own = 0; own < 2; own++) {
		assert_int_equal(open_world(&w, "cuda_async", 64 * MIB,
					    own ? "reuse=own" : NULL, NULL), 0);
		a = ask(&w, 60 * MIB, 0);
		w.m.type->free(&w.m, &a);
		assert_int_equal(w.m.type->alloc(&w.m, &rq, &a, NULL), own ? VC_REFUSED : VC_DONE);
		close_world(&w);
	}
}

static void memory_above_the_threshold_goes_when_something_is_waited_for(void **unused)
{
	static const struct { const char *params; uint64_t kept; } of[] = {
		{ "framework=torch,bound=low", 128 * MIB },
		{ "framework=torch,bound=high", 128 * MIB },
		{ "framework=cuda,bound=low", 0 },
		{ "framework=cuda,bound=high", 0 },
		{ "framework=cuda,bound=low,release_threshold=50MiB", 50 * MIB },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct world w;
		struct vc_block a;

		assert_int_equal(open_world(&w, "cuda_async", 8 * GIB, of[i].params, NULL), 0);
		a = ask(&w, 100 * MIB, 0);
		w.m.type->free(&w.m, &a);
		w.m.type->sync(&w.m, VC_STREAM_ALL);
		assert_int_equal(w.m.now.reserved, of[i].kept);
		w.m.type->trim(&w.m, 0, NULL);
		assert_int_equal(w.m.now.reserved, 0);
		assert_int_equal(vc_device_taken(w.m.device), 0);
		close_world(&w);
	}
}

static void a_limit_is_of_what_programs_asked_for(void **unused)
{
	struct vc_request rq = { .id = 9, .size = GIB };
	struct world w;
	struct vc_block a;

	(void)unused;
	assert_int_equal(open_world(&w, "cuda_async", 8 * GIB, NULL, NULL), 0);
	assert_int_equal(w.m.type->fraction(&w.m, 0.25, NULL), VC_DONE);
	a = ask(&w, GIB + 1, 0);
	assert_int_equal(w.m.type->alloc(&w.m, &rq, &a, NULL), VC_REFUSED);
	assert_non_null(strstr(w.m.note, "Allocation on device 0 would exceed allowed memory. (out "
				"of memory)\nCurrently allocated     : 1.00 GiB\n"));
	assert_non_null(strstr(w.m.note, "Requested               : 1024.00 MiB\n"));
	assert_non_null(strstr(w.m.note, "Device limit            : 8.00 GiB\n"));
	assert_non_null(strstr(w.m.note, "memory fraction)\n                        : 2.00 GiB"));
	close_world(&w);
	assert_true(open_world(&w, "cuda_async", 8 * GIB, "grow=1MiB", NULL) < 0);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_take_steps_of_32_MiB),
		cmocka_unit_test(only_the_low_bound_remaps),
		cmocka_unit_test(other_streams_take_what_was_waited_for),
		cmocka_unit_test(a_full_device_makes_streams_wait),
		cmocka_unit_test(memory_above_the_threshold_goes_when_something_is_waited_for),
		cmocka_unit_test(a_limit_is_of_what_programs_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
