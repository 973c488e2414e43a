/* SPDX-License-Identifier: Apache-2.0 */
/* test_pools.c - what is special about CuPy's pool. What its every move is held against lies in
 * tests/oracle-pools. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cupy_keeps_streams_apart_and_gives_back_whole_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
