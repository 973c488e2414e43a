/* SPDX-License-Identifier: Apache-2.0 */
/* test_rmm.c - what is special about the rmm_pool model: growth, streams, words. What its
 * every move is held against lies in tests/oracle-rmm. */
#include "tests/support/model_world.h"

#include <string.h>

#include "simulator/models/rmm.h"

static void refused(struct world *w, uint64_t size, const char *words)
{
	struct vc_request rq = { .id = ++w->id, .size = size };
	struct vc_block b;

	assert_int_equal(w->m.type->alloc(&w->m, &rq, &b, NULL), VC_REFUSED);
	assert_string_equal(w->m.note, words);
}

/* What the pool holds after one request, and after a second of 100 MiB that does not fit. */
static void grows(uint64_t total, const char *params, uint64_t first, uint64_t then)
{
	struct world w;

	assert_int_equal(open_world(&w, "rmm_pool", total, params, NULL), 0);
	ask(&w, 1 * GIB, 0);
	assert_int_equal(w.m.now.reserved, first);
	ask(&w, 100 * MIB, 0);
	assert_int_equal(w.m.now.reserved, then);
	close_world(&w);
}

static void a_pool_doubles_or_goes_half_way_to_its_maximum(void **unused)
{
	(void)unused;
	grows(8 * GIB, "initial_pool_size=1GiB", 1 * GIB, 2 * GIB);
	grows(1 * GIB + 300 * MIB, "initial_pool_size=1GiB", 1 * GIB, 1 * GIB + 256 * MIB);
	grows(8 * GIB, "initial_pool_size=1GiB,maximum_pool_size=1536MiB", 1 * GIB,
	      1 * GIB + 256 * MIB);
	grows(8 * GIB, NULL, 4 * GIB, 4 * GIB);
	grows(VC_DEVICE_UNLIMITED, NULL, 1 * GIB, 2 * GIB);
}

static void a_list_belongs_to_a_stream_until_it_is_merged(void **unused)
{
	struct world w;
	struct vc_block a, b, c;

	(void)unused;
	assert_int_equal(open_world(&w, "rmm_pool", 8 * GIB, "initial_pool_size=4MiB", NULL), 0);
	a = ask(&w, MIB, 0);
	b = ask(&w, MIB, 1); /* from the list of stream 0, which keeps the rest */
	c = ask(&w, MIB, 0);
	assert_int_equal(b.addr, a.addr + MIB);
	assert_int_equal(c.addr, b.addr + MIB);
	w.m.type->free(&w.m, &a);
	rmm_pool_free_on(&w.m, &b, 1);
	assert_int_equal(ask(&w, MIB, 1).addr, b.addr); /* not the lower one: another stream's */
	assert_int_equal(w.m.now.reserved, 4 * MIB);
	close_world(&w);
}

static void a_pool_at_its_maximum_gives_free_pieces_back(void **unused)
{
	static const char *const release[] = { "26.10", "25.12" };
	char params[80];

	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct vc_request rq = { .id = 99, .size = 30 * MIB };
		struct world w;
		struct vc_block a, b;

		snprintf(params, sizeof(params), "initial_pool_size=0,maximum_pool_size=100MiB,"
			 "release=%s", release[i]);
		assert_int_equal(open_world(&w, "rmm_pool", 8 * GIB, params, NULL), 0);
		ask(&w, 50 * MIB, 0);
		a = ask(&w, 25 * MIB, 0);
		b = ask(&w, 12 * MIB, 0);
		assert_int_equal(w.m.now.reserved, 87 * MIB + MIB / 2);
		w.m.type->free(&w.m, &a);
		w.m.type->free(&w.m, &b);
		assert_int_equal(w.m.type->alloc(&w.m, &rq, &a, NULL), i ? VC_REFUSED : VC_DONE);
		assert_int_equal(w.m.now.reserved, i ? 87 * MIB + MIB / 2 : 92 * MIB + MIB / 2);
		close_world(&w);
	}
}

static void words_are_those_of_the_release(void **unused)
{
	struct world w;

	(void)unused;
	assert_int_equal(open_world(&w, "rmm_pool", GIB, "initial_pool_size=0", NULL), 0);
	refused(&w, 2 * GIB, "std::bad_alloc: out_of_memory: RMM failure: Maximum pool size "
		"exceeded (failed to allocate 2.000000 GiB): std::bad_alloc: out_of_memory: CUDA "
		"error (failed to allocate 2147483648 bytes): cudaErrorMemoryAllocation out of "
		"memory");
	assert_int_equal(w.m.now.ooms, 1);
	close_world(&w);
	assert_int_equal(open_world(&w, "rmm_pool", 8 * GIB,
				    "initial_pool_size=1GiB,maximum_pool_size=1536MiB", NULL), 0);
	refused(&w, 2 * GIB, "std::bad_alloc: out_of_memory: RMM failure: Maximum pool size "
		"exceeded (failed to allocate 2.000000 GiB): Not enough room to grow, "
		"current/max/try size = 1024.000000 MiB, 1.500000 GiB, 2.000000 GiB");
	close_world(&w);
	assert_int_equal(open_world(&w, "rmm_pool", 8 * GIB, "release=24.12", NULL), 0);
	refused(&w, 6 * GIB, "std::bad_alloc: out_of_memory: RMM failure: Maximum pool size "
		"exceeded");
	assert_int_equal(w.m.now.reserved, 4 * GIB);
	close_world(&w);
}

static void wrong_sizes_are_refused_at_the_start(void **unused)
{
	static const char *const wrong[] = { "initial_pool_size=1000", "maximum_pool_size=1000",
					     "initial_pool_size=lots",
					     "initial_pool_size=2GiB,maximum_pool_size=1GiB" };
	struct vc_error err = { 0 };
	struct world w;

	(void)unused;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_true(open_world(&w, "rmm_pool", 8 * GIB, wrong[i], &err) < 0);
		assert_non_null(strstr(err.message, "pool_size"));
		close_world(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_doubles_or_goes_half_way_to_its_maximum),
		cmocka_unit_test(a_list_belongs_to_a_stream_until_it_is_merged),
		cmocka_unit_test(a_pool_at_its_maximum_gives_free_pieces_back),
		cmocka_unit_test(words_are_those_of_the_release),
		cmocka_unit_test(wrong_sizes_are_refused_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
