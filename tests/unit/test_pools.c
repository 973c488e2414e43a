/* SPDX-License-Identifier: Apache-2.0 */
/* test_pools.c - what is special about CuPy's pool. What its every move is held against lies in
 * tests/oracle-pools. */
#include "tests/support/model_world.h"

static void open_pool(struct world *w, const char *model, uint64_t total, const char *params)
{
	assert_int_equal(open_world(w, model, total, params, NULL), 0);
}

static struct vc_block get(struct world *w, uint64_t size, uint32_t stream)
{
	struct vc_request rq = { .id = ++w->id, .size = size, .stream = stream };
	struct vc_block b = { 0 };
	int r = w->m.type->alloc(&w->m, &rq, &b, NULL);

	assert_true(r == VC_DONE || r == VC_REFUSED);
	return b;
}

static void put(struct world *w, struct vc_block *b)
{
	assert_int_equal(w->m.type->free(&w->m, b), VC_DONE);
}

static void cupy_keeps_streams_apart_and_gives_back_whole_chunks(void **unused)
{
	struct world w;
	struct vc_block a, b;

	(void)unused;
	open_pool(&w, "cupy", GIB, NULL);
	a = get(&w, 1, 0);
	assert_int_equal(a.size, 512); /* exactly what was asked for, rounded */
	assert_int_equal(w.m.now.reserved, 512);
	a = get(&w, 8 * MIB, 0);
	put(&w, &a);
	assert_int_not_equal(get(&w, 8 * MIB, 1).addr, a.addr);
	b = get(&w, 3 * MIB, 0);
	assert_int_equal(b.addr, a.addr); /* split, however little is left */
	assert_int_equal(w.m.type->trim(&w.m, 0, NULL), VC_DONE);
	assert_int_equal(w.m.now.reserved, 512 + 16 * MIB); /* a part of it is in use */
	put(&w, &b);
	assert_int_equal(w.m.type->trim(&w.m, 0, NULL), VC_DONE);
	assert_int_equal(w.m.now.reserved, 512 + 8 * MIB);
	close_world(&w);
	open_pool(&w, "cupy", GIB, "limit=1000000");
	assert_int_equal(get(&w, 1000001, 0).size, 0);
	assert_string_equal(w.m.note, "Out of memory allocating 1,000,448 bytes (allocated so far: "
			    "0 bytes, limit set to: 1,000,000 bytes).");
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cupy_keeps_streams_apart_and_gives_back_whole_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
