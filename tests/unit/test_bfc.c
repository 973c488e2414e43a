/* SPDX-License-Identifier: Apache-2.0 */
/* test_bfc.c - what is special about the bfc model: limits, regions, splits, words. What its every
 * move is held against lies in tests/oracle-bfc. */
#include "tests/support/test.h"

#include "simulator/replay/model.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

struct world { struct vc_model m; uint64_t id; };

static int open_world(struct world *w, uint64_t total, const char *params, struct vc_error *err)
{
	struct vc_device_config d = { .total = total };
	const struct vc_model_type *t = vc_model_by_name("bfc");
	void *config = calloc(1, t->config_size);

	*w = (struct world){ .m = { .type = t, .config = config,
				    .state = calloc(1, t->state_size) } };
	w->m.device = vc_device_new(&d, NULL);
	assert_non_null(w->m.state);
	assert_non_null(w->m.device);
	assert_int_equal(vc_params_parse(t->params, config, params, NULL), 0);
	return t->init(&w->m, err);
}

static void close_world(struct world *w)
{
	w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
}

/* The size of the block, 0: refused. */
static uint64_t ask(struct world *w, uint64_t size, struct vc_block *b)
{
	struct vc_request rq = { .id = ++w->id, .size = size };
	int r = w->m.type->alloc(&w->m, &rq, b, NULL);

	assert_true(r == VC_DONE || r == VC_REFUSED);
	return r == VC_DONE ? b->size : 0;
}

/* What the first small request makes it take from a device of 80 GiB. */
static uint64_t taken(const char *params)
{
	struct world w;
	struct vc_block b;
	uint64_t reserved;

	assert_int_equal(open_world(&w, 80 * GIB, params, NULL), 0);
	assert_int_equal(ask(&w, 1000, &b), 1024);
	reserved = w.m.now.reserved;
	close_world(&w);
	return reserved;
}

static void limits_are_those_of_the_frameworks(void **unused)
{
	(void)unused;
	assert_int_equal(taken("framework=jax"), 60 * GIB);
	assert_int_equal(taken("framework=jax,growth=true"), 2 * MIB);
	assert_int_equal(taken("framework=jax,fraction=0.5"), 40 * GIB);
	assert_int_equal(taken(NULL), 80 * GIB - 1536 * MIB);
	assert_int_equal(taken("compute_capability=9"), 80 * GIB - 1800 * MIB);
	assert_int_equal(taken("compute_capability=7"), 80 * GIB - 1050 * MIB);
	assert_int_equal(taken("compute_capability=6"), 80 * GIB - 500 * MIB);
	assert_int_equal(taken("fraction=0.25"), 20 * GIB);
	assert_int_equal(taken("memory_limit=3000000"), 3000000 / 256 * 256);
}

static void without_a_card_the_pool_grows(void **unused)
{
	struct world w;
	struct vc_block b;

	(void)unused;
	assert_int_equal(open_world(&w, VC_DEVICE_UNLIMITED, NULL, NULL), 0);
	ask(&w, 1, &b);
	assert_int_equal(w.m.now.reserved, 2 * MIB);
	close_world(&w);
}

static void regions_double(void **unused)
{
	static const uint64_t steps[][2] = { { 1024, 2 }, { 10 * MIB, 16 }, { 16 * MIB, 16 },
					     { 20 * MIB, 32 } };
	struct world w;
	struct vc_block b;
	uint64_t before = 0;

	(void)unused;
	assert_int_equal(open_world(&w, 4 * GIB, "memory_limit=1GiB,growth=true", NULL), 0);
	for (int i = 0; i < 4; i++) {
		assert_true(ask(&w, steps[i][0], &b) > 0);
		assert_int_equal(w.m.now.reserved - before, steps[i][1] * MIB);
		before = w.m.now.reserved;
	}
	close_world(&w);
}

static void a_block_is_split_when_as_much_or_128_MiB_is_left(void **unused)
{
	struct world w;
	struct vc_block b;

	(void)unused;
	assert_int_equal(open_world(&w, 4 * GIB, "memory_limit=16MiB", NULL), 0);
	assert_int_equal(ask(&w, 10 * MIB, &b), 16 * MIB);
	w.m.type->free(&w.m, &b);
	assert_int_equal(ask(&w, 8 * MIB, &b), 8 * MIB);
	close_world(&w);
	assert_int_equal(open_world(&w, 4 * GIB, "memory_limit=1GiB", NULL), 0);
	assert_int_equal(ask(&w, 897 * MIB, &b), 1024 * MIB);
	w.m.type->free(&w.m, &b);
	assert_int_equal(ask(&w, 896 * MIB, &b), 896 * MIB);
	close_world(&w);
}

/* Two regions lie idle, the request is larger than either. */
static uint64_t after_idle(const char *params)
{
	struct world w;
	struct vc_block a, b, c;
	uint64_t got;

	assert_int_equal(open_world(&w, 4 * GIB, params, NULL), 0);
	ask(&w, 16 * MIB, &a);
	ask(&w, 30 * MIB, &b);
	w.m.type->free(&w.m, &a);
	w.m.type->free(&w.m, &b);
	got = ask(&w, 60 * MIB, &c);
	close_world(&w);
	return got;
}

static void idle_regions_are_given_back_where_garbage_is_collected(void **unused)
{
	(void)unused;
	assert_int_equal(after_idle("memory_limit=64MiB,growth=true"), 64 * MIB);
	assert_int_equal(after_idle("memory_limit=64MiB,growth=true,framework=jax"), 0);
	assert_int_equal(after_idle("memory_limit=64MiB,growth=true,garbage_collection=false"), 0);
}

static void jax_raises_and_tensorflow_warns(void **unused)
{
	static const char warning[] =
		"Allocator (GPU_0_bfc) ran out of memory trying to allocate 8.00GiB (rounded to "
		"8589934592)requested by op \nIf the cause is memory fragmentation maybe the "
		"environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the "
		"situation. \nCurrent allocation summary follows.\n";
	static const char raised[] =
		"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB.\n";
	struct world w;
	struct vc_block b;

	(void)unused;
	assert_int_equal(open_world(&w, 8 * GIB, NULL, NULL), 0);
	assert_int_equal(ask(&w, 8 * GIB, &b), 0);
	assert_memory_equal(w.m.note, warning, strlen(warning));
	assert_non_null(strstr(w.m.note, "<allocator contains no memory>"));
	assert_null(strstr(w.m.note, "freed_by_count"));
	assert_int_equal(w.m.refusal.rounded, 8 * GIB);
	assert_int_equal(w.m.refusal.device_free, 8 * GIB);
	close_world(&w);
	assert_int_equal(open_world(&w, 8 * GIB, "framework=jax", NULL), 0);
	assert_int_equal(ask(&w, 8 * GIB, &b), 0);
	assert_memory_equal(w.m.note, raised, strlen(raised));
	assert_memory_equal(w.m.note + strlen(raised), warning, strlen(warning));
	close_world(&w);
}

static void what_cannot_be_is_refused(void **unused)
{
	struct vc_error err = { 0 };
	struct world w;
	struct vc_block b;

	(void)unused;
	assert_int_equal(open_world(&w, GIB, "fraction=1.5", &err), VC_EUSAGE);
	assert_non_null(strstr(err.message, "fraction is a part of the device"));
	close_world(&w);
	assert_int_equal(open_world(&w, GIB, "fragmentation_fraction=-1", &err), VC_EUSAGE);
	close_world(&w);
	assert_int_equal(open_world(&w, GIB, "memory_limit=200T", &err), VC_EUSAGE);
	close_world(&w);
	assert_int_equal(open_world(&w, GIB, NULL, &err), 0);
	assert_int_equal(ask(&w, UINT64_MAX, &b), 0);
	assert_int_equal(ask(&w, UINT64_MAX - 4096, &b), 0);
	assert_int_equal(w.m.now.ooms, 2);
	assert_int_equal(ask(&w, 0, &b), 0); /* nothing, and no refusal */
	assert_int_equal(w.m.now.ooms, 2);
	w.m.type->free(&w.m, &b);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_those_of_the_frameworks),
		cmocka_unit_test(without_a_card_the_pool_grows),
		cmocka_unit_test(regions_double),
		cmocka_unit_test(a_block_is_split_when_as_much_or_128_MiB_is_left),
		cmocka_unit_test(idle_regions_are_given_back_where_garbage_is_collected),
		cmocka_unit_test(jax_raises_and_tensorflow_warns),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
