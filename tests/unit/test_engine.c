/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine.c - the loop, the peaks, the starting heap and the observers, on hand-made events. */
#include "tests/support/test.h"

#include <time.h>

#include "simulator/replay/census.h"
#include "simulator/replay/engine.h"

#define MIB (1ull << 20)

static struct vc_event ev(uint8_t kind, uint64_t id, uint64_t size)
{
	return (struct vc_event){ .kind = kind, .id = id, .size = size };
}

/* Of a trace with labels of its own, which goes. */
static int run_of(struct vc_meta *meta, const struct vc_event *at, size_t n, const char *model,
		  uint64_t total, const struct vc_observer_type *const *watch,
		  struct vc_run *given, struct vc_result *out, struct vc_error *err)
{
	struct vc_trace t = { .meta = meta };
	struct vc_run r = given ? *given : (struct vc_run){ .fraction = -1 };
	int rc;

	assert_int_equal(vc_trace_append(&t, at, n, err), 0);
	r.source = vc_source_memory(&t, err);
	r.model = vc_model_by_name(model);
	r.device.total = total;
	r.observers = watch;
	r.check = n < 50000; /* it looks at each block, after each event */
	rc = vc_run(&r, out, err);
	out->meta = NULL; /* goes with the source */
	vc_source_free(r.source);
	vc_trace_fini(&t);
	return rc;
}

static int run(const struct vc_event *at, size_t n, const char *model, uint64_t total,
	       const struct vc_observer_type *const *watch, struct vc_run *given,
	       struct vc_result *out, struct vc_error *err)
{
	return run_of(vc_meta_new(err), at, n, model, total, watch, given, out, err);
}

static void peaks_are_those_of_the_whole_run(void **unused)
{
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, 4 * MIB), ev(VC_EV_ALLOC, 2, 6 * MIB),
				     ev(VC_EV_FREE, 1, 0), ev(VC_EV_ALLOC, 3, MIB),
				     ev(VC_EV_FREE, 2, 0) };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 5, "direct", 64 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(r.stats.peak_reserved, 10 * MIB);
	assert_int_equal(r.stats.peak_event, 1);
	assert_int_equal(r.stats.final_reserved, MIB);
	assert_int_equal(r.stats.lower_bound, 10 * MIB);
	assert_int_equal(vc_result_verdict(&r), VC_FITS);
	vc_result_fini(&r);
}

static void the_peak_is_the_fullest_moment_with_the_most_reserved(void **unused)
{
	/* All of them lie in one segment of 2 MiB, which is reserved from the first on. */
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, MIB / 2), ev(VC_EV_ALLOC, 2, MIB / 2),
				      ev(VC_EV_FREE, 1, 0), ev(VC_EV_ALLOC, 3, MIB / 4),
				      ev(VC_EV_FREE, 2, 0) };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 5, "torch", 64 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(r.stats.peak_reserved, 2 * MIB);
	assert_int_equal(r.stats.peak_event, 1);
	assert_int_equal(r.stats.allocated_at_peak, MIB);
	assert_int_equal(r.stats.stranded_at_peak, MIB);
	assert_int_equal(r.stats.allocated_at_used, MIB);
	vc_result_fini(&r);
}

static void running_out_is_a_result(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_oom, NULL };
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, 40 * MIB), ev(VC_EV_ALLOC, 2, 40 * MIB),
				      ev(VC_EV_FREE, 2, 0), ev(VC_EV_FREE, 1, 0) };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 4, "direct", 64 * MIB, watch, NULL, &r, NULL), 0);
	assert_int_equal(r.stats.ooms, 1);
	assert_int_equal(r.stats.unknown_frees, 1);
	assert_int_equal(vc_result_verdict(&r), VC_OOM);
	assert_true(r.oom.happened);
	assert_int_equal(r.oom.event, 1);
	assert_int_equal(r.oom.request, 40 * MIB);
	assert_int_equal(r.oom.holders, 1);
	assert_int_equal(r.oom.holder[0].bytes, 40 * MIB);
	vc_result_fini(&r);
}

/* Recorded on 64 MiB: 40 MiB live, 40 MiB refused, the program went on. */
static void a_request_that_failed_in_the_recording_is_asked_for_again(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_oom, NULL };
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, 40 * MIB), ev(VC_EV_OOM, 0, 40 * MIB),
				      ev(VC_EV_ALLOC, 2, 10 * MIB), ev(VC_EV_FREE, 1, 0) };
	static const char *const models[] = { "direct", "torch" };
	struct vc_result r;

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(run(e, 4, models[i], 64 * MIB, watch, NULL, &r, NULL), 0);
		assert_int_equal(vc_result_verdict(&r), VC_OOM);
		assert_int_equal(r.oom.event, 1);
		assert_int_equal(r.oom.request, 40 * MIB);
		assert_int_equal(r.stats.ooms_averted, 0);
		vc_result_fini(&r);
		assert_int_equal(run(e, 4, models[i], 128 * MIB, watch, NULL, &r, NULL), 0);
		assert_int_equal(vc_result_verdict(&r), VC_FITS);
		assert_int_equal(r.stats.ooms_averted, 1);
		assert_false(r.stats.cut_short);
		assert_int_equal(r.stats.peak_allocated, 80 * MIB);
		assert_int_equal(r.stats.lower_bound, 80 * MIB);
		assert_int_equal(r.stats.final_allocated, 10 * MIB);
		vc_result_fini(&r);
		assert_int_equal(run(e, 2, models[i], 128 * MIB, watch, NULL, &r, NULL), 0);
		assert_true(r.stats.cut_short);
		vc_result_fini(&r);
	}
}

static void a_block_cannot_be_allocated_twice(void **unused)
{
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, MIB), ev(VC_EV_ALLOC, 1, MIB) };
	struct vc_error err = { 0 };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 2, "direct", 64 * MIB, NULL, NULL, &r, &err), VC_EFORMAT);
	assert_string_equal(err.message, "event 1: block 1 is allocated twice");
}

static void other_processes_count_in_what_is_used(void **unused)
{
	const struct vc_event e[] = { ev(VC_EV_OTHERS, 0, 30 * MIB), ev(VC_EV_ALLOC, 1, 20 * MIB),
				      ev(VC_EV_ALLOC, 2, 20 * MIB) };
	struct vc_run g = { .fraction = -1, .device = { .context = 10 * MIB } };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 3, "direct", 64 * MIB, NULL, &g, &r, NULL), 0);
	assert_int_equal(r.stats.peak_used, 60 * MIB);
	assert_int_equal(r.stats.ooms, 1); /* 10 + 30 + 20 + 20 > 64 */
	vc_result_fini(&r);
}

/* A segment of 20 MiB with one live block of 3 MiB at its start: the model must use its hole. */
static size_t warm_events(struct vc_event *e)
{
	size_t n = 0;

	e[n++] = (struct vc_event){
		.kind = VC_EV_HEAP_SEGMENT, .addr = 0x7f0000000000, .size = 20 * MIB };
	e[n++] = (struct vc_event){ .kind = VC_EV_HEAP_BLOCK,
				   .addr = 0x7f0000000000,
				   .size = 3 * MIB,
				   .id = 1,
				   .flags = VC_EVF_LIVE };
	e[n++] = (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .addr = 0x7f0000000000 + 3 * MIB };
	e[n++] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = 2, .size = 5 * MIB,
				    .addr = 0x7f0000000000 + 3 * MIB };
	e[n++] = ev(VC_EV_FREE, 1, 0);
	return n;
}

static void a_warm_start_takes_over_the_heap(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_fidelity, NULL };
	struct vc_run g = { .fraction = -1, .follow = true };
	struct vc_event e[8];
	struct vc_result r;
	size_t n = warm_events(e);

	(void)unused;
	assert_int_equal(run(e, n, "torch", 64 * MIB, watch, &g, &r, NULL), 0);
	assert_int_equal(r.stats.peak_reserved, 20 * MIB);
	assert_int_equal(r.stats.peak_allocated, 8 * MIB);
	assert_int_equal(r.stats.final_allocated, 5 * MIB);
	assert_true(r.fidelity.exact);
	assert_int_equal(r.fidelity.events_compared, 2);
	vc_result_fini(&r);
}

/* 20 MiB of segments cannot be taken over by a device of 8 MiB, but the 3 MiB in them fit there;
 * the 5 MiB that come later do not. */
static void a_heap_that_the_device_cannot_hold_is_asked_for_anew(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_oom, NULL };
	struct vc_run g = { .fraction = -1, .stop_at_oom = true };
	struct vc_event e[8];
	struct vc_result r;
	size_t n = warm_events(e);

	(void)unused;
	e[1].size = 12 * MIB;
	e[2].addr = 0x7f0000000000 + 12 * MIB;
	assert_int_equal(run(e, n, "torch", 14 * MIB, watch, &g, &r, NULL), 0);
	assert_int_equal(r.stats.ooms, 1);
	assert_int_equal(r.oom.request, 5 * MIB);
	assert_int_equal(r.stats.peak_reserved, 12 * MIB);
	vc_result_fini(&r);
	assert_int_equal(run(e, n, "torch", 8 * MIB, watch, &g, &r, NULL), 0);
	assert_int_equal(r.stats.ooms, 1);
	assert_true(r.oom.happened);
	assert_int_equal(r.oom.request, 12 * MIB);
	vc_result_fini(&r);
}

static void a_cold_start_does_not(void **unused)
{
	struct vc_run g = { .fraction = -1, .start = VC_START_COLD };
	struct vc_event e[8];
	struct vc_result r;
	size_t n = warm_events(e);

	(void)unused;
	assert_int_equal(run(e, n, "torch", 64 * MIB, NULL, &g, &r, NULL), 0);
	assert_int_equal(r.stats.peak_allocated, 5 * MIB);
	assert_int_equal(r.stats.unknown_frees, 1);
	vc_result_fini(&r);
}

/* The C library may put a block anywhere but where another one is, so a free that is missing shows
 * when its place is used again. */
static void a_heap_of_the_host_is_followed_block_by_block(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_fidelity, NULL };
	struct vc_run g = { .fraction = -1, .follow = true };
	const uint64_t at = 0x555500000000;
	struct vc_event e[] = { ev(VC_EV_ALLOC, 1, 100), ev(VC_EV_ALLOC, 2, 5 * MIB),
				ev(VC_EV_FREE, 1, 0), ev(VC_EV_ALLOC, 3, 70) };
	struct vc_result r;

	(void)unused;
	e[0].addr = at + 64;
	e[1].addr = at + 4096;
	e[3].addr = at + 128;
	assert_int_equal(run(e, 4, "torch_cpu", 64 * MIB, watch, &g, &r, NULL), 0);
	assert_true(r.fidelity.exact);
	assert_int_equal(r.fidelity.events_compared, 4);
	assert_int_equal(r.stats.peak_reserved, 5 * MIB + 100);
	assert_int_equal(r.stats.final_reserved, 5 * MIB + 70);
	vc_result_fini(&r);
	e[2].kind = VC_EV_MARK; /* the free was lost: the next one begins in the block */
	assert_int_equal(run(e, 4, "torch_cpu", 64 * MIB, watch, &g, &r, NULL), 0);
	assert_false(r.fidelity.exact);
	assert_int_equal(r.fidelity.diverged_event, 3);
	assert_string_equal(r.fidelity.diverged_why,
			    "70 bytes cannot be at 555500000080: a block of 100 bytes at "
			    "555500000040 has not been freed");
	vc_result_fini(&r);
	e[3].addr = at; /* or it ends in the block */
	assert_int_equal(run(e, 4, "torch_cpu", 64 * MIB, watch, &g, &r, NULL), 0);
	assert_false(r.fidelity.exact);
	vc_result_fini(&r);
	e[3].addr = at + 200;
	assert_int_equal(run(e, 4, "torch_cpu", 64 * MIB, watch, &g, &r, NULL), 0);
	assert_string_equal(r.fidelity.diverged_why,
			    "70 bytes cannot be at 5555000000c8: the address 5555000000c8 is no "
			    "multiple of 64");
	vc_result_fini(&r);
	assert_int_equal(run(e, 2, "torch_cpu", 6 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(r.stats.ooms, 0);
	vc_result_fini(&r);
	assert_int_equal(run(e, 2, "torch_cpu", 5 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(r.stats.ooms, 1);
	vc_result_fini(&r);
}

/* Seconds of the processor for 120,000 blocks, each behind the one before, or in front of it. */
static double followed(bool upwards)
{
	enum { N = 120000 };
	struct vc_run g = { .fraction = -1, .follow = true };
	struct vc_event *e = calloc(N, sizeof(*e));
	struct vc_result r;
	clock_t begin;

	assert_non_null(e);
	for (uint64_t i = 0; i < N; i++) {
		e[i] = ev(VC_EV_ALLOC, i + 1, 64);
		e[i].addr = 0x555500000000 + 64 * (upwards ? i : N - i);
	}
	begin = clock();
	assert_int_equal(run(e, N, "torch_cpu", 64 * MIB, NULL, &g, &r, NULL), 0);
	begin = clock() - begin;
	assert_int_equal(r.stats.final_reserved, 64 * N);
	vc_result_fini(&r);
	free(e);
	return (double)begin / CLOCKS_PER_SEC;
}

/* In a sorted array each of the latter would move all others: a hundred times as long. */
static void where_blocks_of_the_host_lie_does_not_matter(void **unused)
{
	double up = followed(true), down = followed(false);

	(void)unused;
	if (down > 10 * up + 1)
		fail_msg("%.2f s downwards, %.2f s upwards", down, up);
}

static void fidelity_names_the_first_divergence(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_fidelity, NULL };
	struct vc_run g = { .fraction = -1, .follow = true };
	struct vc_event e[8];
	struct vc_result r;
	size_t n = warm_events(e);

	(void)unused;
	e[3].addr += 512;
	assert_int_equal(run(e, n, "torch", 64 * MIB, watch, &g, &r, NULL), 0);
	assert_false(r.fidelity.exact);
	assert_int_equal(r.fidelity.address_mismatches, 1);
	assert_int_equal(r.fidelity.diverged_event, 0);
	assert_string_equal(r.fidelity.diverged_why,
			    "5242880 bytes were placed at 7f0000300000, the recording has them "
			    "at 7f0000300200");
	vc_result_fini(&r);
}

/* A saw-tooth of many events: buckets merge, extremes and sums must stay. */
static void the_timeline_keeps_its_extremes(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_timeline, NULL };
	size_t n = 40000, k = 0;
	struct vc_event *e = calloc(n, sizeof(*e));
	uint64_t top = 0;
	struct vc_result r;

	(void)unused;
	e[k++] = ev(VC_EV_ALLOC, 1, 7 * MIB);
	for (uint64_t id = 2; k + 2 <= n; id++) {
		e[k++] = ev(VC_EV_ALLOC, id, id == 12345 ? 9 * MIB : MIB);
		e[k++] = ev(VC_EV_FREE, id, 0);
	}
	assert_int_equal(run(e, k, "direct", 64 * MIB, watch, NULL, &r, NULL), 0);
	assert_true(r.curve.n > 1000 && r.curve.n <= 4096);
	for (size_t i = 0; i < r.curve.n; i++) {
		const struct vc_bucket *b = &r.curve.at[i];
		uint64_t sum = 0;

		for (int c = 0; c < VC_LIFE_CLASSES; c++)
			sum += b->layer[c];
		assert_int_equal(sum, b->allocated_max);
		assert_true(b->first_event <= b->last_event);
		assert_true(i == 0 || b->first_event == r.curve.at[i - 1].last_event + 1);
		top = b->allocated_max > top ? b->allocated_max : top;
	}
	assert_int_equal(top, r.stats.peak_allocated);
	assert_int_equal(top, 16 * MIB);
	assert_int_equal(r.curve.at[r.curve.n - 1].last_event, k - 1);
	vc_result_fini(&r);
	free(e);
}

enum { PIECES = 50, BESIDE = 9000 };

/* Pinned, managed and other memory that comes and goes at random, two pieces of it by the hand of a
 * transform; most: of pinned and of managed at one time. */
static void beside_events(struct vc_meta *m, struct vc_event *e, uint64_t most[2])
{
	static const char *const label[] = { VC_LABEL_PINNED, VC_LABEL_MANAGED, "NCCL",
					     VC_LABEL_SHARED };
	struct { uint64_t size; unsigned kind; } live[PIECES] = { { 0, 0 } };
	uint64_t now[2] = { 0 };

	for (unsigned i = 0, x = 7; i < BESIDE; i++) {
		unsigned k = (x = x * 1103515245 + 12345) >> 16, at = k % PIECES;
		bool ends = live[at].size != 0;
		unsigned kind = ends ? live[at].kind : k / PIECES % 4;

		e[i] = ev(ends ? VC_EV_OUTSIDE_FREE : VC_EV_OUTSIDE_ALLOC, at < 2 ? at + 1 : 0,
			  ends ? 0 : (k % 97 + 1) * 4096);
		e[i].addr = 0x1000 + at;
		e[i].label = vc_meta_string(m, label[kind], strlen(label[kind]));
		if (kind == 0 || (kind == 1 && at >= 2)) {
			now[kind] += ends ? -live[at].size : e[i].size;
			most[kind] = now[kind] > most[kind] ? now[kind] : most[kind];
		}
		live[at].size = e[i].size;
		live[at].kind = kind;
	}
}

/* What the curve has at most is what the statistics say, and both are what a plain sum has. */
static void what_lies_beside_the_allocator_is_in_every_account(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_timeline, NULL };
	struct vc_event *e = calloc(BESIDE, sizeof(*e));
	struct vc_meta *m = vc_meta_new(NULL);
	uint64_t most[2] = { 0 }, drawn[2] = { 0 };
	struct vc_result r;

	(void)unused;
	beside_events(m, e, most);
	assert_int_equal(run_of(m, e, BESIDE, "torch", 64 * MIB, watch, NULL, &r, NULL), 0);
	for (size_t i = 0; i < r.curve.n; i++) {
		const struct vc_bucket *b = &r.curve.at[i];

		drawn[0] = b->pinned_max > drawn[0] ? b->pinned_max : drawn[0];
		drawn[1] = b->managed_max > drawn[1] ? b->managed_max : drawn[1];
	}
	assert_true(most[0] && most[1] && most[0] != most[1]);
	assert_int_equal(r.stats.pinned, most[0]);
	assert_int_equal(r.stats.managed, most[1]);
	assert_int_equal(drawn[0], most[0]);
	assert_int_equal(drawn[1], most[1]);
	assert_int_equal(r.stats.peak_reserved, 0);
	vc_result_fini(&r);
	free(e);
}

/* What is held when the first step ends counts for the others too; other marks are no steps. */
static void the_first_iteration_is_told_from_the_others(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_phases, NULL };
	struct vc_event e[] = { ev(VC_EV_ALLOC, 1, 4 * MIB), ev(VC_EV_MARK, 0, 0),
			       ev(VC_EV_ALLOC, 2, 9 * MIB), ev(VC_EV_FREE, 2, 0),
			       ev(VC_EV_MARK, 0, 0),        ev(VC_EV_ALLOC, 3, 2 * MIB),
			       ev(VC_EV_FREE, 3, 0),        ev(VC_EV_MARK, 0, 0) };
	struct vc_result r;

	(void)unused;
	e[1].flags = VC_MARK_BEGIN;
	e[4].flags = e[7].flags = VC_MARK_STEP;
	assert_int_equal(run(e, 8, "direct", 64 * MIB, watch, NULL, &r, NULL), 0);
	assert_int_equal(r.phases.steps, 2);
	assert_int_equal(r.phases.first.peak_allocated, 13 * MIB);
	assert_int_equal(r.phases.first.peak_reserved, 13 * MIB);
	assert_int_equal(r.phases.steady.peak_allocated, 6 * MIB);
	assert_int_equal(r.phases.steady.peak_reserved, 6 * MIB);
	vc_result_fini(&r);
	assert_int_equal(run(e, 4, "direct", 64 * MIB, watch, NULL, &r, NULL), 0);
	assert_int_equal(r.phases.steps, 0);
	assert_int_equal(r.phases.steady.peak_reserved, 0);
	vc_result_fini(&r);
}

/* A pool of 40 and 12 MiB sleeps while 50 MiB are there, and wakes as a whole; a free segment given
 * up for good (id 0) does not come back. */
static void what_sleeps_is_not_on_the_card(void **unused)
{
	const struct vc_observer_type *const watch[] = { vc_observer_by_name("turns"),
							 vc_observer_by_name("timeline"), NULL };
	struct vc_event e[] = { ev(VC_EV_POOL_CREATE, 1, 0), ev(VC_EV_POOL_BEGIN, 1, 0),
			       ev(VC_EV_ALLOC, 1, 40 * MIB), ev(VC_EV_ALLOC, 2, 12 * MIB),
			       ev(VC_EV_ALLOC, 3, 20 * MIB), ev(VC_EV_FREE, 3, 0),
			       ev(VC_EV_PAGES_OUT, 0, 20 * MIB), ev(VC_EV_POOL_END, 1, 0),
			       ev(VC_EV_PAGES_OUT, 1, 40 * MIB), ev(VC_EV_PAGES_OUT, 2, 12 * MIB),
			       ev(VC_EV_ALLOC, 4, 50 * MIB), ev(VC_EV_FREE, 4, 0),
			       ev(VC_EV_TRIM, 0, 0),         ev(VC_EV_PAGES_IN, 1, 40 * MIB) };
	const size_t n = sizeof(e) / sizeof(*e);
	struct vc_result r;

	(void)unused;
	e[0].flags = VC_EVF_SERVED;
	e[1].stream = e[7].stream = VC_STREAM_ALL;
	assert_int_equal(run(e, n, "torch", 96 * MIB, watch, NULL, &r, NULL), 0);
	assert_int_equal(vc_result_verdict(&r), VC_FITS);
	assert_int_equal(r.stats.peak_used, 72 * MIB);
	assert_int_equal(r.stats.final_allocated, 52 * MIB);
	assert_int_equal(r.stats.final_reserved, 52 * MIB);
	assert_int_equal(r.turns.n, 3);
	assert_true(!r.turns.at[0].asleep && r.turns.at[1].asleep && !r.turns.at[2].asleep);
	assert_int_equal(r.turns.at[1].reserved, 50 * MIB);
	assert_int_equal(r.turns.at[1].away, 72 * MIB);
	assert_int_equal(r.turns.at[2].used, 52 * MIB);
	for (size_t i = 0; i < r.curve.n; i++) { /* lifetimes add up to what is awake */
		const struct vc_bucket *b = &r.curve.at[i];
		uint64_t sum = 0;

		for (size_t k = 0; k < VC_LIFE_CLASSES; k++)
			sum += b->layer[k];
		assert_int_equal(sum, b->allocated_max);
	}
	assert_int_equal(r.curve.at[10].allocated_max, 50 * MIB);
	vc_result_fini(&r);
	assert_int_equal(run(e, n, "torch", 71 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(vc_result_verdict(&r), VC_OOM); /* 72 MiB of the pool do not fit */
	vc_result_fini(&r);
	e[11] = e[12] = ev(VC_EV_MARK, 0, 0); /* what it makes room for stays */
	assert_int_equal(run(e, n, "torch", 102 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(vc_result_verdict(&r), VC_FITS);
	vc_result_fini(&r);
	assert_int_equal(run(e, n, "torch", 88 * MIB, NULL, NULL, &r, NULL), 0);
	assert_int_equal(vc_result_verdict(&r), VC_OOM); /* it cannot wake */
	assert_int_equal(r.stats.final_reserved, 50 * MIB);
	vc_result_fini(&r);
}

/* What a refusal blames: the reserve that is smaller than the request, unless the card is, too. */
static void a_small_reserve_is_named_up_to_the_size_of_the_card(void **unused)
{
	const struct vc_observer_type *const watch[] = { &vc_observer_oom, NULL };
	struct vc_run how = { .fraction = -1, .version = "2.15",
			      .conf = "expandable_segments:True,expandable_segments_reserve:0.5" };

	(void)unused;
	for (int over = 0; over < 2; over++) {
		struct vc_event e = ev(VC_EV_ALLOC, 1, (64 + 2 * (uint64_t)over) * MIB);
		struct vc_result r;

		assert_int_equal(run(&e, 1, "torch", 64 * MIB, watch, &how, &r, NULL), 0);
		assert_true(r.oom.happened);
		assert_non_null(strstr(r.oom.message, over ? "reserves ~9/8 of device memory" :
				       "exceeds the expandable-segment reserve of 32.00 MiB"));
		vc_result_fini(&r);
	}
}

static void lives_and_segments_have_births_and_deaths(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_lives,
							       &vc_observer_segments, NULL };
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, 4 * MIB), ev(VC_EV_ALLOC, 2, 6 * MIB),
				     ev(VC_EV_FREE, 1, 0) };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 3, "direct", 64 * MIB, watch, NULL, &r, NULL), 0);
	assert_int_equal(r.lives.n, 2);
	assert_true(r.lives.at[0].born == 0 && r.lives.at[0].died == 2);
	assert_true(r.lives.at[1].died == UINT64_MAX &&
		    r.lives.at[1].lifetime == VC_LIFE_PERSISTENT);
	assert_int_equal(r.segments.n, 2);
	assert_true(r.segments.at[0].died == 2 && r.segments.at[1].died == UINT64_MAX);
	vc_result_fini(&r);
}

static void the_pace_counts_the_requests_before_each_call(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_pace, NULL };
	const struct vc_event e[] = { ev(VC_EV_ALLOC, 1, MIB), ev(VC_EV_ALLOC, 2, MIB),
				      ev(VC_EV_FREE, 1, 0), ev(VC_EV_ALLOC, 3, 4 * MIB) };
	struct vc_run run_on = { .fraction = -1 };
	struct vc_result r;

	(void)unused;
	assert_int_equal(run(e, 4, "torch", 64 * MIB, watch, &run_on, &r, NULL), 0);
	assert_int_equal(r.pace.n, 2); /* both small blocks lie in one segment of 2 MiB */
	assert_int_equal(r.pace.at[0].request, 1);
	assert_int_equal(r.pace.at[0].mallocs, 1);
	assert_int_equal(r.pace.at[1].request, 3);
	assert_int_equal(r.pace.at[1].mallocs, 1);
	assert_int_equal(r.pace.at[1].frees + r.pace.at[1].flushes, 0);
	vc_result_fini(&r);
}

static void the_census_counts_pools_of_the_driver_and_devices(void **unused)
{
	struct vc_event e[] = {
		{ .kind = VC_EV_DRIVER_POOL, .flags = VC_DRIVER_POOL_CREATED },
		{ .kind = VC_EV_DRIVER_POOL, .flags = VC_DRIVER_POOL_TRIMMED, .size = 8, .id = 5 },
		{ .kind = VC_EV_DRIVER_POOL, .flags = VC_DRIVER_POOL_CREATED, .size = 6, .id = 4 },
		{ .kind = VC_EV_DRIVER_POOL, .flags = VC_DRIVER_POOL_DESTROYED },
		{ .kind = VC_EV_ALLOC, .id = 1, .size = 7, .device = 3 },
	};
	struct vc_census c = { 0 };

	(void)unused;
	assert_int_equal(vc_census_add(&c, e, 5, NULL), 0);
	assert_int_equal(c.devices, 2);
	assert_int_equal(vc_census_of(&c, 0)->driver_pools, 2);
	assert_int_equal(vc_census_of(&c, 0)->pool_reserved, 8);
	assert_int_equal(vc_census_of(&c, 0)->pool_used, 5);
	assert_int_equal(vc_census_deciding(&c)->device, 3);
	assert_int_equal(vc_census_of(&c, 3)->peak_requested, 7);
	vc_census_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peaks_are_those_of_the_whole_run),
		cmocka_unit_test(the_peak_is_the_fullest_moment_with_the_most_reserved),
		cmocka_unit_test(running_out_is_a_result),
		cmocka_unit_test(a_request_that_failed_in_the_recording_is_asked_for_again),
		cmocka_unit_test(a_block_cannot_be_allocated_twice),
		cmocka_unit_test(other_processes_count_in_what_is_used),
		cmocka_unit_test(a_warm_start_takes_over_the_heap),
		cmocka_unit_test(a_heap_that_the_device_cannot_hold_is_asked_for_anew),
		cmocka_unit_test(a_cold_start_does_not),
		cmocka_unit_test(a_heap_of_the_host_is_followed_block_by_block),
		cmocka_unit_test(where_blocks_of_the_host_lie_does_not_matter),
		cmocka_unit_test(fidelity_names_the_first_divergence),
		cmocka_unit_test(the_timeline_keeps_its_extremes),
		cmocka_unit_test(what_lies_beside_the_allocator_is_in_every_account),
		cmocka_unit_test(the_first_iteration_is_told_from_the_others),
		cmocka_unit_test(what_sleeps_is_not_on_the_card),
		cmocka_unit_test(a_small_reserve_is_named_up_to_the_size_of_the_card),
		cmocka_unit_test(lives_and_segments_have_births_and_deaths),
		cmocka_unit_test(the_pace_counts_the_requests_before_each_call),
		cmocka_unit_test(the_census_counts_pools_of_the_driver_and_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
