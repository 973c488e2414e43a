/* SPDX-License-Identifier: Apache-2.0 */
/* test_pools.c - what is special about each of the pools that stand on chunks.c. What CuPy's and
 * MindSpore's every move is held against lies in tests/oracle-pools. */
#include "tests/support/test.h"

#include "simulator/replay/model.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

struct world { struct vc_model m; uint64_t id; };

static void open_world(struct world *w, const char *model, uint64_t total, const char *params)
{
	struct vc_device_config d = { .total = total };
	const struct vc_model_type *t = vc_model_by_name(model);
	void *config = calloc(1, t->config_size);

	*w = (struct world){ .m = { .type = t, .config = config,
				    .state = calloc(1, t->state_size) } };
	w->m.device = vc_device_new(&d, NULL);
	assert_non_null(w->m.state);
	assert_non_null(w->m.device);
	assert_int_equal(vc_params_parse(t->params, config, params, NULL), 0);
	assert_int_equal(t->init(&w->m, NULL), 0);
}

static void close_world(struct world *w)
{
	assert_int_equal(w->m.type->check(&w->m, NULL), 0);
	w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
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
	open_world(&w, "cupy", GIB, NULL);
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
	open_world(&w, "cupy", GIB, "limit=1000000");
	assert_int_equal(get(&w, 1000001, 0).size, 0);
	assert_string_equal(w.m.note, "Out of memory allocating 1,000,448 bytes (allocated so far: "
			    "0 bytes, limit set to: 1,000,000 bytes).");
	close_world(&w);
}

static void mindspore_takes_blocks_of_its_unit_and_the_oldest_of_equals(void **unused)
{
	struct world w;
	struct vc_block a, b, c;

	(void)unused;
	open_world(&w, "mindspore", 8 * GIB, NULL);
	get(&w, 3 * GIB / 2, 0);
	assert_int_equal(w.m.now.reserved, 2 * GIB);
	a = get(&w, 8 * MIB, 0);
	get(&w, 512, 0);
	b = get(&w, 8 * MIB, 0);
	get(&w, 512, 0);
	put(&w, &b);
	put(&w, &a);
	c = get(&w, 8 * MIB, 0);
	assert_int_equal(c.addr, b.addr); /* free for longer, though it lies higher */
	close_world(&w);
	open_world(&w, "mindspore", GIB + 8 * MIB, NULL);
	get(&w, GIB - 512, 0);
	assert_int_equal(get(&w, MIB, 0).size, 0); /* 8 MiB are less than it ever asks for */
	assert_string_equal(w.m.note, "Device memory size [8388608] is smaller than minimum alloc "
			    "size [10485760].");
	close_world(&w);
}

/* Holes of 8 MiB at the bottom and of 2 MiB above it. */
static uint64_t hole_for_2_mib(const char *model)
{
	struct world w;
	struct vc_block low, high, got;

	open_world(&w, model, GIB, NULL);
	low = get(&w, 8 * MIB, 0);
	get(&w, MIB, 0);
	high = get(&w, 2 * MIB, 0);
	get(&w, MIB, 0);
	put(&w, &low);
	put(&w, &high);
	got = get(&w, 2 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 12 * MIB);
	close_world(&w);
	return got.addr - low.addr;
}

static void first_fit_goes_by_place_and_best_fit_by_size(void **unused)
{
	struct world w;
	struct vc_block a;

	(void)unused;
	assert_int_equal(hole_for_2_mib("first_fit"), 0);
	assert_int_equal(hole_for_2_mib("best_fit"), 9 * MIB);
	open_world(&w, "best_fit", GIB, NULL);
	a = get(&w, 3 * MIB, 0);
	put(&w, &a);
	get(&w, 10 * MIB, 0); /* what is free at the end is grown, not passed over */
	assert_int_equal(w.m.now.reserved, 10 * MIB);
	close_world(&w);
}

static void buddies_merge_with_the_half_they_came_from_only(void **unused)
{
	struct world w;
	struct vc_block b[4];

	(void)unused;
	open_world(&w, "buddy", GIB, "region=4MiB");
	for (int i = 0; i < 4; i++)
		b[i] = get(&w, 600 * 1024, 0);
	assert_int_equal(b[0].size, MIB);
	assert_int_equal(b[3].addr, b[0].addr + 3 * MIB);
	put(&w, &b[2]);
	put(&w, &b[1]); /* side by side and free, but no pair */
	get(&w, 2 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 8 * MIB);
	put(&w, &b[0]);
	assert_int_equal(get(&w, 2 * MIB, 0).addr, b[0].addr); /* a pair now */
	close_world(&w);
}

static void pages_are_moved_before_more_are_taken(void **unused)
{
	struct world w;
	struct vc_block b[8], small;

	(void)unused;
	open_world(&w, "paged", GIB, NULL);
	for (int i = 0; i < 8; i++)
		b[i] = get(&w, 4 * MIB, 0);
	for (int i = 0; i < 8; i += 2)
		put(&w, &b[i]);
	assert_int_equal(get(&w, 16 * MIB, 0).size, 16 * MIB); /* four holes of 4 MiB */
	assert_int_equal(w.m.now.reserved, 32 * MIB);
	get(&w, 2 * MIB + 1, 0);
	assert_int_equal(w.m.now.reserved, 36 * MIB); /* whole pages */
	small = get(&w, 1000, 0);
	assert_int_equal(small.size, 1024);
	assert_int_equal(get(&w, 1000, 0).addr, small.addr + 1024); /* on the same page */
	assert_int_equal(w.m.now.reserved, 38 * MIB);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cupy_keeps_streams_apart_and_gives_back_whole_chunks),
		cmocka_unit_test(mindspore_takes_blocks_of_its_unit_and_the_oldest_of_equals),
		cmocka_unit_test(first_fit_goes_by_place_and_best_fit_by_size),
		cmocka_unit_test(buddies_merge_with_the_half_they_came_from_only),
		cmocka_unit_test(pages_are_moved_before_more_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
