/* SPDX-License-Identifier: Apache-2.0 */
/* test_census.c - what is in a trace: each kind of event counts where it belongs, and the device
 * that decides is the one that ran out, else the fullest. */
#include "tests/support/test.h"

#include "simulator/replay/census.h"

enum { A = 0, B = 1 };
#define EV(name, on, ...) { .kind = VC_EV_##name, .device = (on), __VA_ARGS__ }
#define EV0(name, on) { .kind = VC_EV_##name, .device = (on) }


static struct vc_census census; /* large */

static const struct vc_device_census *count(const struct vc_event *ev, size_t n)
{
	struct vc_error err = { 0 };

	vc_census_fini(&census);
	assert_int_equal(vc_census_add(&census, ev, n, &err), VC_OK);
	return &census.device[0];
}
#define COUNT(ev) count((ev), sizeof(ev) / sizeof(*(ev)))

static void requests_are_summed(void **unused)
{
	const struct vc_event ev[] = {
		EV(ALLOC, A, .id = 1, .size = 100, .time_ns = 5),
		EV(ALLOC, A, .id = 2, .size = 50, .stream = 3),
		EV(FREE, A, .id = 1, .time_ns = 9),
		EV(ALLOC, A, .id = 3, .size = 90),
		EV(FREE, A, .id = 7), EV(FREE, A, .id = 1),
		EV(FREE, A, .id = 3), EV(FREE, A, .id = 2),
		EV(USE, A, .id = 2), EV(FREE_DONE, A, .id = 2), EV0(TRIM, A), EV0(KERNEL, A),
		EV0(COPY, A), EV(MARK, A, .flags = VC_MARK_STEP), EV0(MARK, A),
	};
	const struct vc_device_census *d = COUNT(ev);

	(void)unused;
	assert_int_equal(d->events, 15);
	assert_int_equal(d->allocs, 3);
	assert_int_equal(d->frees, 5);
	assert_int_equal(d->unmatched_frees, 2); /* the second free of a block is none */
	assert_int_equal(d->peak_requested, 150);
	assert_int_equal(d->live_requested, 0);
	assert_int_equal(d->streams, 2);
	assert_int_equal(d->uses, 1);
	assert_int_equal(d->deferred, 1);
	assert_int_equal(d->trims, 1);
	assert_int_equal(d->kernels, 2);
	assert_int_equal(census.marks, 2);
	assert_int_equal(census.steps, 1);
	assert_int_equal(census.last_ns, 9);
	assert_int_equal(census.allocs, 3);
	assert_int_equal(census.frees, 5);
	assert_int_equal(census.events, 15);
}

static void segments_are_summed(void **unused)
{
	const struct vc_event ev[] = {
		EV(SEGMENT_ALLOC, A, .addr = 4096, .size = 20), EV(SEGMENT_MAP, A, .size = 10),
		EV(SEGMENT_FREE, A, .size = 20), EV(SEGMENT_ALLOC, A, .addr = 8192, .size = 5),
		EV(SEGMENT_UNMAP, A, .size = 99),
	};
	const struct vc_device_census *d = COUNT(ev);

	(void)unused;
	assert_int_equal(d->segment_allocs, 3);
	assert_int_equal(d->segment_frees, 2);
	assert_int_equal(d->peak_reserved, 30);
	assert_int_equal(d->reserved, 0); /* never below nothing */
	assert_int_equal(d->first_segment, 4096);
	assert_false(d->has_start || d->has_final || d->slept || d->ends_in_oom);
}

static void the_heap_at_the_start_and_at_the_end(void **unused)
{
	const struct vc_event ev[] = {
		EV(HEAP_SEGMENT, A, .addr = 64, .size = 40),
		EV(HEAP_BLOCK, A, .id = 1, .size = 30, .flags = VC_EVF_LIVE),
		EV(HEAP_BLOCK, A, .id = 2, .size = 5), /* free */
		EV(SEGMENT_ALLOC, A, .addr = 4096, .size = 8),
		EV(FREE, A, .id = 1),
		EV(HEAP_SEGMENT, A, .size = 48, .flags = VC_EVF_FINAL),
		EV(HEAP_BLOCK, A, .id = 9, .size = 48, .flags = VC_EVF_FINAL | VC_EVF_LIVE),
	};
	const struct vc_device_census *d = COUNT(ev);

	(void)unused;
	assert_int_equal(d->events, 2); /* the heap lists do not count */
	assert_true(d->has_start && d->has_final);
	assert_int_equal(d->start_segments, 1);
	assert_int_equal(d->start_reserved, 40);
	assert_int_equal(d->preexisting, 1);
	assert_int_equal(d->peak_requested, 30);
	assert_int_equal(d->peak_reserved, 48);
	assert_int_equal(d->final_segments, 1);
	assert_int_equal(d->unmatched_frees, 0);
	assert_int_equal(d->first_segment, 0); /* not the first of the run */
}

/* What is held beside the segments is what a sample or a failure shows. */
static void what_lies_outside(void **unused)
{
	struct vc_event ev[] = {
		EV(SEGMENT_ALLOC, A, .size = 30),
		EV(DEVICE_SAMPLE, A, .size = 100, .addr = 50, .time_ns = 1), /* 20 beside */
		EV(DEVICE_SAMPLE, A, .size = 100, .addr = 60, .time_ns = 2), /* 10: less */
		EV(PAGES_OUT, A, .size = 25),
		EV(DEVICE_SAMPLE, A, .size = 100, .addr = 60, .time_ns = 3), /* 35: pages away */
		EV(PAGES_IN, A, .size = 99),
		EV(OOM, A, .size = 7, .addr = 58, .time_ns = 4),             /* 12: the last word */
		EV(DEVICE_SAMPLE, A, .size = 100, .addr = 20, .time_ns = 5), /* no more */
	};
	const struct vc_device_census *d = count(ev, 2);

	(void)unused;
	assert_int_equal(d->outside, 20);
	assert_int_equal(d->outside_ns, 1);
	assert_int_equal(count(ev, 3)->outside, 20);
	assert_int_equal(count(ev, 4)->away, 25);
	assert_true(d->slept);
	assert_int_equal(count(ev, 5)->outside, 35);
	assert_int_equal(d->outside_ns, 3);
	assert_int_equal(count(ev, 6)->away, 0);
	for (size_t n = 7; n <= 8; n++) {
		assert_int_equal(count(ev, n)->outside, 12);
		assert_int_equal(d->outside_ns, 4);
	}
	assert_int_equal(d->ooms, 1);
	assert_int_equal(d->oom_event, 6);
	assert_int_equal(d->oom_request, 7);
	assert_int_equal(d->oom_free, 58);
	assert_int_equal(d->oom_reserved, 30);
	assert_true(d->ends_in_oom);
	ev[6].addr = 70; /* all of it is accounted for, or more: nothing is known of more */
	assert_int_equal(count(ev, 7)->outside, 35);
	ev[6].addr = 90;
	assert_int_equal(count(ev, 7)->outside, 35);
	ev[1].addr = 70;
	assert_int_equal(count(ev, 2)->outside, 0);
	ev[1].addr = 90;
	assert_int_equal(count(ev, 2)->outside, 0);
	ev[0].kind = VC_EV_MARK; /* before the first segment a sample says nothing */
	ev[1].addr = 50;
	assert_int_equal(count(ev, 2)->outside, 0);
}

static void what_is_beside(void **unused)
{
	struct vc_event ev[VC_CENSUS_OVERHEADS + 4] = {
		EV0(LAUNCH, A), EV0(LAUNCH, A),
		EV(DRIVER_POOL, A, .flags = VC_DRIVER_POOL_CREATED, .size = 9, .id = 4),
		EV(DRIVER_POOL, A, .flags = VC_DRIVER_POOL_TRIMMED, .size = 5, .id = 6),
	};

	(void)unused;
	for (uint32_t i = 4; i < VC_CENSUS_OVERHEADS + 4; i++)
		ev[i] = (struct vc_event)EV(OVERHEAD, A, .label = i % 15 + 1, .size = i);
	const struct vc_device_census *d = COUNT(ev);

	assert_int_equal(census.launches, 2);
	assert_int_equal(d->driver_pools, 1);
	assert_int_equal(d->pool_reserved, 9);
	assert_int_equal(d->pool_used, 6);
	assert_int_equal(census.overheads, 15);
	assert_int_equal(census.overhead[0].label, 5);
	assert_int_equal(census.overhead[0].ns, 4 + 19);
	assert_int_equal(census.overhead[14].ns, 18);
	for (uint32_t i = 0; i < VC_CENSUS_OVERHEADS + 4; i++) /* one more than there is room for */
		ev[i] = (struct vc_event)EV(OVERHEAD, A, .label = i + 1, .size = i);
	COUNT(ev);
	assert_int_equal(census.overheads, VC_CENSUS_OVERHEADS);
	assert_int_equal(census.overhead[15].ns, 15 + 16 + 17 + 18 + 19);
}

/* The device of which another rule decides each time. */
static uint16_t deciding(const struct vc_event *ev, size_t n)
{
	count(ev, n);
	return vc_census_deciding(&census)->device;
}
#define DECIDING(...) deciding((const struct vc_event[]){ __VA_ARGS__ }, \
	sizeof((const struct vc_event[]){ __VA_ARGS__ }) / sizeof(struct vc_event))

static void one_device_decides(void **unused)
{
	(void)unused;
	count(NULL, 0);
	assert_null(vc_census_deciding(&census));
	for (uint16_t a = 0, b = 1; a < 2; a++, b--) { /* whichever comes first */
		assert_int_equal(DECIDING(EV(OOM, a, .size = 9), EV(ALLOC, b, .id = 1, .size = 1)),
				 b);
		assert_int_equal(DECIDING(EV(ALLOC, a, .id = 1, .size = 9), EV0(OOM, a),
					  EV(ALLOC, a, .id = 3, .size = 9),
					  EV(ALLOC, b, .id = 2, .size = 1), EV0(OOM, b)), b);
		assert_int_equal(DECIDING(EV(ALLOC, a, .id = 1, .size = 9),
					  EV(ALLOC, b, .id = 2, .size = 1), EV0(OOM, b),
					  EV(ALLOC, b, .id = 3, .size = 1)), b);
		assert_int_equal(DECIDING(EV(ALLOC, a, .id = 1, .size = 8),
					  EV(ALLOC, b, .id = 2, .size = 9)), b);
		/* 8 of 10 are more than 9 of 20, but only where both are known */
		assert_int_equal(DECIDING(EV(DEVICE_SAMPLE, a, .size = 20),
					  EV(DEVICE_SAMPLE, b, .size = 10),
					  EV(ALLOC, a, .id = 1, .size = 9),
					  EV(ALLOC, b, .id = 2, .size = 8)), b);
		assert_int_equal(DECIDING(EV(DEVICE_SAMPLE, b, .size = 10),
					  EV(ALLOC, a, .id = 1, .size = 9),
					  EV(ALLOC, b, .id = 2, .size = 8)), a);
		assert_int_equal(DECIDING(EV(ALLOC, a, .id = 1, .size = 9),
					  EV(ALLOC, b, .id = 2, .size = 9), EV(FREE, b, .id = 2)),
				 b);
		assert_int_equal(DECIDING(EV(ALLOC, a, .id = 1, .size = 9), EV(FREE, a, .id = 1),
					  EV(HEAP_BLOCK, b, .id = 2, .flags = VC_EVF_LIVE),
					  EV(SEGMENT_ALLOC, b, .size = 10)), b);
	}
	assert_int_equal(DECIDING(EV(ALLOC, 3, .id = 1, .size = 9),
				  EV(ALLOC, 2, .id = 2, .size = 9)), 3); /* else the first */
	assert_ptr_equal(vc_census_of(&census, 2), &census.device[1]);
	assert_null(vc_census_of(&census, 1));
}

static void more_devices_than_there_is_room_for_are_the_last(void **unused)
{
	struct vc_event ev[VC_CENSUS_DEVICES + 2];

	(void)unused;
	for (uint16_t i = 0; i < VC_CENSUS_DEVICES + 2; i++)
		ev[i] = (struct vc_event)EV0(TRIM, i);
	COUNT(ev);
	assert_int_equal(census.devices, VC_CENSUS_DEVICES);
	assert_int_equal(census.device[VC_CENSUS_DEVICES - 1].trims, 3);
	assert_int_equal(census.device[VC_CENSUS_DEVICES - 2].trims, 1);
	vc_census_fini(&census);
	assert_int_equal(census.devices, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_summed),
		cmocka_unit_test(segments_are_summed),
		cmocka_unit_test(the_heap_at_the_start_and_at_the_end),
		cmocka_unit_test(what_lies_outside),
		cmocka_unit_test(what_is_beside),
		cmocka_unit_test(one_device_decides),
		cmocka_unit_test(more_devices_than_there_is_room_for_are_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
