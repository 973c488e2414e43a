/* SPDX-License-Identifier: Apache-2.0 */
/* test_infer.c - what a snapshot does not name is rebuilt in the order in which it happened. */
#include "tests/support/test.h"

#include "simulator/replay/infer.h"
#include "simulator/replay/ranges.h"

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

/* A range of stream 1 is mapped from its second page on, one of stream 2 lies below. Then pages are
 * mapped: the first one of the former, for a request of its stream, and pages behind the latter. */
static void a_range_begins_before_its_first_mapped_page(void **unused)
{
	enum { MIB = 1 << 20 };
	static const struct vc_event ev[] = {
		{ .kind = VC_EV_HEAP_SEGMENT, .flags = VC_EVF_EXPANDABLE, .stream = 2,
		  .addr = 0x10000000, .size = 40 * MIB },
		{ .kind = VC_EV_HEAP_SEGMENT, .flags = VC_EVF_EXPANDABLE, .stream = 1,
		  .addr = 0x50000000 + 20 * MIB, .size = 20 * MIB },
		{ .kind = VC_EV_HEAP_SEGMENT, .flags = VC_EVF_EXPANDABLE, .stream = 1,
		  .addr = 0x50000000 + 80 * MIB, .size = 20 * MIB },
		{ .kind = VC_EV_SEGMENT_MAP, .addr = 0x10000000 + 40 * MIB, .size = 20 * MIB },
		{ .kind = VC_EV_ALLOC, .id = 1, .stream = 2, .addr = 0x10000000 + 40 * MIB,
		  .size = 3 * MIB },
		{ .kind = VC_EV_SEGMENT_MAP, .addr = 0x50000000 + 60 * MIB, .size = 20 * MIB },
		{ .kind = VC_EV_ALLOC, .id = 2, .stream = 1, .addr = 0x50000000 + 60 * MIB,
		  .size = 3 * MIB },
		{ .kind = VC_EV_SEGMENT_MAP, .addr = 0x50000000, .size = 20 * MIB },
		{ .kind = VC_EV_ALLOC, .id = 3, .stream = 1, .addr = 0x50000000, .size = 3 * MIB },
	};
	struct vc_error err = { 0 };
	struct vc_trace t = { .meta = vc_meta_new(&err) };

	(void)unused;
	assert_non_null(t.meta);
	assert_int_equal(vc_trace_append(&t, ev, sizeof(ev) / sizeof(*ev), &err), 0);
	assert_int_equal(vc_infer_ranges(&t, &err), 0);
	assert_int_equal(t.meta->bases, 1);
	assert_int_equal(t.meta->base[0].addr, 0x50000000 + 20 * MIB);
	assert_int_equal(t.meta->base[0].base, 0x50000000);
	vc_trace_fini(&t);
}

enum { GIB = 1024 }; /* in MiB */

/* `held` MiB stay; a segment of 20 goes, and one of `grown` comes for a request of `asked`. */
static struct {
	uint64_t held, grown, asked, total, beside;
	uint32_t sites[2], stream;
	bool oom;
} w;

static bool is_emptied(void)
{
	const uint64_t mib = 1 << 20;
	const struct vc_event ev[] = {
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = 1ull << 40, .size = w.held * mib },
		{ .kind = VC_EV_ALLOC, .id = 1, .addr = 1ull << 40, .size = w.held * mib },
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = 1ull << 32, .size = 20 * mib },
		{ .kind = VC_EV_ALLOC, .id = 2, .addr = 1ull << 32, .size = 20 * mib },
		{ .kind = VC_EV_FREE, .id = 2 },
		{ .kind = VC_EV_SEGMENT_FREE, .addr = 1ull << 32, .size = 20 * mib,
		  .site = w.sites[0] },
		{ .kind = w.oom ? VC_EV_OOM : VC_EV_FREE_DONE },
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = 1ull << 33, .size = w.grown * mib,
		  .site = w.sites[1], .device = !w.grown },
		{ .kind = VC_EV_ALLOC, .id = 3, .addr = 1ull << 33, .size = w.asked * mib,
		  .stream = w.stream },
	};
	struct vc_error err = { 0 };
	struct vc_trace t = { .meta = vc_meta_new(&err) };
	size_t trims = 0;

	if (w.beside)
		vc_meta_device(t.meta, 1)->total = w.beside * mib;
	vc_meta_device(t.meta, 0)->total = w.total * mib;
	assert_int_equal(vc_trace_append(&t, ev, sizeof(ev) / sizeof(*ev), &err), 0);
	assert_int_equal(vc_infer(&t, &err), 0);
	for (size_t i = 0; i < t.n; i++)
		trims += t.ev[i].kind == VC_EV_TRIM;
	assert_true(trims < 2 && (!trims || t.ev[6].kind == VC_EV_TRIM));
	vc_trace_fini(&t);
	return trims;
}

/* A request that found the card full releases what is cached by itself; elsewhere somebody
 * emptied the cache. */
static void the_level_says_who_released(void **unused)
{
	(void)unused;
	memset(&w, 0, sizeof(w));
	w.held = 40 * GIB;
	w.grown = w.asked = 30;
	w.total = 80 * GIB;
	assert_true(is_emptied());
	w.beside = 41 * GIB; /* of another card */
	assert_true(is_emptied());
	w.total = 41 * GIB;
	assert_false(is_emptied());
	w.asked = 20; /* the segment would have served it */
	assert_true(is_emptied());
	w.stream = 1;
	assert_false(is_emptied());
	w.stream = 0;
	w.asked = 1; /* of the small pool */
	assert_false(is_emptied());
	w.asked = 30;
	w.grown = 0;
	assert_true(is_emptied());
	w.grown = 30;
	w.sites[0] = 1;
	assert_false(is_emptied());
	w.sites[1] = 2;
	assert_true(is_emptied());
	w.oom = true;
	assert_false(is_emptied());
}

static void an_unknown_card_is_one_that_exists(void **unused)
{
	(void)unused;
	memset(&w, 0, sizeof(w));
	w.grown = w.asked = 30;
	w.held = 28 * GIB; /* more than those of 24 GiB have, and 32 are far */
	assert_true(is_emptied());
	w.held = 23 * GIB;
	assert_false(is_emptied());
	w.sites[0] = w.sites[1] = 1;
	w.held = 28 * GIB;
	assert_false(is_emptied());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scopes_do_not_go_on_over_an_emptied_cache),
		cmocka_unit_test(a_release_alone),
		cmocka_unit_test(a_range_begins_before_its_first_mapped_page),
		cmocka_unit_test(the_level_says_who_released),
		cmocka_unit_test(an_unknown_card_is_one_that_exists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
