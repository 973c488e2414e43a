/* SPDX-License-Identifier: Apache-2.0 */
/* test_gmlake.c - what the gmlake model stitches, and what becomes of the pages. Nothing here was
 * compared with a run of GMLake: the figures follow from its source. */
#include "tests/support/model_world.h"

#include <string.h>

static int count_live(void *arg, const struct vc_extent *x)
{
	uint64_t *n = arg;

	n[0] += x->what == VC_X_LIVE;
	n[1] += x->what == VC_X_LIVE && x->id;
	n[2] += x->what == VC_X_LIVE ? x->requested : 0;
	return 0;
}

/* Two free blocks of 300 MiB that no block of 512 MiB fits in. */
static void two_free_blocks(struct world *w, const char *params)
{
	struct vc_block a, b;

	assert_int_equal(open_world(w, "gmlake", 8 * GIB, params, NULL), 0);
	a = ask(w, 300 * MIB, 0);
	b = ask(w, 300 * MIB, 0);
	w->m.type->free(&w->m, &a);
	w->m.type->free(&w->m, &b);
	assert_int_equal(w->m.now.reserved, 600 * MIB);
}

static void large_requests_are_stitched(void **unused)
{
	struct world w;
	struct vc_block f, rest;
	uint64_t n[3] = { 0 };

	(void)unused;
	two_free_blocks(&w, NULL);
	f = ask(&w, 512 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 600 * MIB);
	assert_int_equal(w.m.now.allocated, 512 * MIB);
	w.m.type->walk(&w.m, count_live, n);
	assert_int_equal(n[0], 2); /* pieces */
	assert_int_equal(n[1], 1); /* requests */
	assert_int_equal(n[2], 512 * MIB);
	rest = ask(&w, 88 * MIB, 0); /* 44 pages of the second block are left */
	assert_int_equal(w.m.now.reserved, 600 * MIB);
	w.m.type->free(&w.m, &rest);
	w.m.type->free(&w.m, &f);
	assert_int_equal(w.m.now.allocated, 0);
	close_world(&w);
}

static void smaller_ones_are_not(void **unused)
{
	struct world w;

	(void)unused;
	two_free_blocks(&w, NULL);
	ask(&w, 500 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 1100 * MIB);
	close_world(&w);
	two_free_blocks(&w, "frag_limit=256MiB");
	ask(&w, 500 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 600 * MIB);
	close_world(&w);
	two_free_blocks(&w, "defrag_level=1"); /* there is memory */
	ask(&w, 512 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 1112 * MIB);
	close_world(&w);
	two_free_blocks(&w, NULL); /* another stream's blocks */
	ask(&w, 512 * MIB, 1);
	assert_int_equal(w.m.now.reserved, 1112 * MIB);
	close_world(&w);
}

static void a_stitched_block_serves_again_while_its_pages_are_free(void **unused)
{
	struct world w;
	struct vc_block f, g, small;

	(void)unused;
	two_free_blocks(&w, NULL);
	f = ask(&w, 512 * MIB, 0);
	w.m.type->free(&w.m, &f);
	g = ask(&w, 400 * MIB, 0); /* below frag_limit, above 1/10 of it: the same addresses */
	assert_int_equal(g.addr, f.addr);
	assert_int_equal(w.m.now.reserved, 600 * MIB);
	w.m.type->free(&w.m, &g);
	small = ask(&w, 300 * MIB, 0); /* takes one of the blocks below */
	ask(&w, 400 * MIB, 0);
	assert_int_equal(w.m.now.reserved, 1000 * MIB);
	w.m.type->free(&w.m, &small);
	close_world(&w);
}

static void an_empty_cache_takes_what_is_stitched_of_it(void **unused)
{
	struct world w;
	struct vc_block f;

	(void)unused;
	two_free_blocks(&w, NULL);
	f = ask(&w, 512 * MIB, 0);
	w.m.type->free(&w.m, &f);
	w.m.type->trim(&w.m, 0, NULL);
	assert_int_equal(w.m.now.reserved, 0);
	assert_int_equal(vc_device_taken(w.m.device), 0);
	assert_int_not_equal(ask(&w, 400 * MIB, 0).addr, f.addr);
	assert_int_equal(w.m.now.reserved, 400 * MIB);
	close_world(&w);
}

static void small_blocks_are_as_in_pytorch(void **unused)
{
	struct world w;
	struct vc_request rq = { .id = 99, .size = 9 * GIB };
	struct vc_block b;

	(void)unused;
	assert_int_equal(open_world(&w, "gmlake", 8 * GIB, NULL, NULL), 0);
	assert_int_equal(ask(&w, 1000, 0).size, 1024);
	assert_int_equal(w.m.now.reserved, 2 * MIB);
	assert_int_equal(ask(&w, MIB + 1, 0).size, 2 * MIB);
	assert_int_equal(w.m.now.reserved, 22 * MIB);
	assert_int_equal(w.m.type->alloc(&w.m, &rq, &b, NULL), VC_REFUSED);
	assert_string_equal(w.m.note, "CUDA out of memory. Tried to allocate 9.00 GiB (GPU 0; 8.00 "
			    "GiB total capacity; 2.00 MiB already allocated; 7.98 GiB free; 22.00 "
			    "MiB reserved in total by PyTorch) If reserved memory is >> allocated "
			    "memory try setting max_split_size_mb to avoid fragmentation.  See "
			    "documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF");
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_requests_are_stitched),
		cmocka_unit_test(smaller_ones_are_not),
		cmocka_unit_test(a_stitched_block_serves_again_while_its_pages_are_free),
		cmocka_unit_test(an_empty_cache_takes_what_is_stitched_of_it),
		cmocka_unit_test(small_blocks_are_as_in_pytorch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
