/* SPDX-License-Identifier: Apache-2.0 */
/* test_history.c - what PyTorch's memory history would have recorded: each entry of a run told by
 * hand, its time and call site, and the heap behind it. */
#include "tests/support/test.h"

#include "simulator/observers/history.c"

static const struct vc_extent *heap; /* what the model walks over */
static size_t extents;

static int walk(const struct vc_model *m, vc_extent_fn *fn, void *arg)
{
	for (size_t i = 0; i < extents; i++)
		if (fn(arg, &heap[i]) < 0)
			return VC_ENOMEM;
	return VC_OK;
}

static const struct vc_model_type type = { .walk = walk };
static const struct vc_model model = { .type = &type };
static struct state st;
static struct vc_observer watcher = { .type = &vc_observer_history, .state = &st };
static struct vc_result result;

static void step(struct vc_event ev, uint64_t addr, int answer)
{
	struct vc_block b = { .addr = addr };
	struct vc_step s = { .ev = &ev, .block = addr ? &b : NULL, .answer = answer };

	assert_int_equal(history_step(&watcher, &s, NULL), VC_OK);
}

static void begin(const struct vc_extent *start, size_t n)
{
	heap = start;
	extents = n;
	assert_int_equal(history_begin(&watcher, &model, NULL), VC_OK);
}

static const char *told(void)
{
	static const char *const name[] = { "alloc", "ask", "free", "segment", "give", "map",
					    "unmap", "oom" };
	static char text[4000];
	size_t at = 0;

	assert_int_equal(history_end(&watcher, &model, &result, NULL), VC_OK);
	text[0] = '\0';
	for (size_t i = 0; i < result.history.n; i++) {
		const struct vc_history_entry *e = &result.history.at[i];

		at += (size_t)sprintf(text + at, "%s%s %d+%d at %d by %d", i ? ", " : "",
				      name[e->action], (int)e->addr, (int)e->size, (int)e->time_ns,
				      (int)e->site);
		if (e->stream)
			at += (size_t)sprintf(text + at, " on %d", (int)e->stream);
		if (e->id || e->label)
			at += (size_t)sprintf(text + at, " is %d %d", (int)e->id, (int)e->label);
	}
	for (size_t i = 0; i < result.history.end.n; i++) {
		const struct vc_heap_extent *e = &result.history.end.at[i];

		at += (size_t)sprintf(text + at, "; %d: %d of %d, site %d label %d", (int)e->id,
				      (int)e->requested, (int)e->size, (int)e->site, (int)e->label);
	}
	return text;
}

static int drop(void **unused)
{
	(void)unused;
	VC_FREE(result.history.at, result.history.end.at);
	result = (struct vc_result){ 0 };
	history_fini(&watcher);
	st = (struct state){ 0 };
	return 0;
}

#define ALLOC(t, i, n) (struct vc_event){ .kind = VC_EV_ALLOC, .time_ns = t, .id = i, .size = n, \
					  .site = t + 1, .stream = 3, .label = 6 }
#define FREE(t, i) (struct vc_event){ .kind = VC_EV_FREE, .time_ns = t, .id = i, .size = 33, \
					 .site = t + 1 }

/* Blocks of the starting heap are known by what the heap says, and by the recording's origins. */
static void blocks_of_the_start_are_known(void **unused)
{
	static const struct vc_extent start[] = {
		{ VC_X_SEGMENT, 1000, 900, .requested = 0 },
		{ VC_X_LIVE, 1000, 512, .requested = 400, .id = 1, .stream = 2 },
		{ VC_X_PENDING, 2000, 512, .requested = 300, .id = 2 },
		{ VC_X_FREE, 3000, 512, .requested = 7, .id = 5 },
		{ VC_X_LIVE, 4000, 8, .requested = 0 } };

	(void)unused;
	assert_int_equal(history_origin(&watcher, 1, 77, NULL), VC_OK);
	begin(start, 5);
	step((struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .flags = VC_EVF_FINAL, .id = 1,
				.site = 78 }, 0, 0);
	step((struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .flags = VC_EVF_FINAL, .id = 2,
				.site = 79 }, 0, 0);
	step((struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .id = 2, .site = 80 }, 0, 0);
	step((struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .flags = VC_EVF_FINAL, .id = 9,
				.site = 81 }, 0, 0);
	step(FREE(10, 5), 3000, VC_DONE);
	heap = start;
	assert_string_equal(told(), "ask 3000+33 at 10 by 11, free 3000+33 at 10 by 11"
		"; 0: 0 of 900, site 0 label 0; 1: 400 of 512, site 77 label 0"
		"; 2: 300 of 512, site 79 label 0; 5: 7 of 512, site 0 label 0"
		"; 0: 0 of 8, site 0 label 0");
	drop(NULL);
	begin(start, 5);
	step(FREE(10, 1), 1000, VC_DONE);
	step(FREE(20, 1), 1000, VC_DONE); /* of a block that nobody knows any more */
	extents = 0;
	assert_string_equal(told(),
		"ask 1000+400 at 10 by 11 on 2, free 1000+400 at 10 by 11 on 2, "
		"ask 1000+33 at 20 by 21, free 1000+33 at 20 by 21");
}

/* Without a history of the model's own segments come from the device, with one from there. */
static void segments_come_from_who_knows_them(void **unused)
{
	static const struct vc_extent none[1];

	(void)unused;
	for (int own = 0; own < 2; own++) {
		begin(none, 0);
		history_device(&watcher, &(struct vc_device_change){ .what = VC_DRV_MALLOC,
			.addr = 5, .size = 50 });
		history_device(&watcher, &(struct vc_device_change){ .what = VC_DRV_MALLOC,
			.addr = 6, .size = 60, .failed = true });
		history_device(&watcher, &(struct vc_device_change){ .what = VC_DRV_MAP,
			.addr = 7, .size = 70 });
		step(ALLOC(10, 4, 100), 500, VC_DONE);
		if (own)
			history_trace(&watcher, &(struct vc_trace_entry){ .kind = VC_TR_ALLOC });
		if (own)
			history_trace(&watcher, &(struct vc_trace_entry){ .kind = VC_TR_FREE });
		if (own)
			history_trace(&watcher, &(struct vc_trace_entry){
				.kind = VC_TR_SEGMENT_ALLOC, .addr = 8, .size = 80, .stream = 4 });
		history_device(&watcher, &(struct vc_device_change){ .what = VC_DRV_UNMAP,
			.addr = 7, .size = 70 });
		history_device(&watcher, &(struct vc_device_change){ .what = VC_DRV_FREE,
			.addr = 5, .size = 50 });
		step(FREE(20, 4), 500, VC_WAITS);
		step(FREE(30, 4), 500, VC_DONE);
		assert_string_equal(told(), own ?
			"alloc 500+100 at 10 by 11 on 3 is 4 6, segment 8+80 at 20 by 21 on 4, "
			"ask 500+100 at 20 by 21 on 3, ask 500+100 at 30 by 31 on 3, "
			"free 500+100 at 30 by 31 on 3" :
			"segment 5+50 at 10 by 11, map 7+70 at 10 by 11, "
			"alloc 500+100 at 10 by 11 on 3 is 4 6, unmap 7+70 at 20 by 21, "
			"give 5+50 at 20 by 21, ask 500+100 at 20 by 21 on 3, "
			"ask 500+100 at 30 by 31 on 3, free 500+100 at 30 by 31 on 3");
		drop(NULL);
	}
}

/* A segment that the recording shows has its time and its call site, those of the next entry that
 * repeats it. */
static void recorded_segments_have_their_own_time(void **unused)
{
	struct vc_event seen[] = {
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = 8, .time_ns = 3, .site = 30 },
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = 9, .time_ns = 4, .site = 40 },
		{ .kind = VC_EV_SEGMENT_FREE, .addr = 9, .time_ns = 5, .site = 50 } };

	(void)unused;
	begin(NULL, 0);
	for (int i = 0; i < 3; i++)
		step(seen[i], 0, 0);
	for (int turn = 0; turn < 2; turn++) /* at the next request nothing waits any more */
		for (int i = 0; i < 4; i++) {
			history_device(&watcher, &(struct vc_device_change){
				.what = i == 2 ? VC_DRV_FREE : VC_DRV_MALLOC,
				.addr = (uint64_t[]){ 9, 8, 9, 7 }[i], .size = 1 });
			if (i == 3)
				step(ALLOC(10 + turn, 1, 2), 500, VC_DONE);
		}
	assert_string_equal(told(),
		"segment 9+1 at 4 by 40, segment 8+1 at 3 by 30, give 9+1 at 5 by 50, "
		"segment 7+1 at 10 by 11, alloc 500+2 at 10 by 11 on 3 is 1 6, "
		"segment 9+1 at 11 by 12, segment 8+1 at 11 by 12, give 9+1 at 11 by 12, "
		"segment 7+1 at 11 by 12, alloc 500+2 at 11 by 12 on 3 is 1 6");
}

/* What comes twice at one place is told apart by its order. */
static void a_place_that_is_taken_twice(void **unused)
{
	const struct { enum vc_driver_call what; uint64_t addr; uint8_t kind; } it[] = {
		{ VC_DRV_MAP, 7, VC_EV_SEGMENT_MAP }, { VC_DRV_MALLOC, 9, VC_EV_SEGMENT_ALLOC },
		{ VC_DRV_FREE, 9, VC_EV_SEGMENT_FREE }, { VC_DRV_MALLOC, 9, VC_EV_SEGMENT_ALLOC },
		{ VC_DRV_UNMAP, 7, VC_EV_SEGMENT_UNMAP } };

	(void)unused;
	begin(NULL, 0);
	for (uint64_t i = 0; i < 5; i++)
		step((struct vc_event){ .kind = it[i].kind, .addr = it[i].addr, .time_ns = i }, 0,
		     0);
	for (size_t i = 1; i < 5; i++)
		if (i != 2)
			history_device(&watcher, &(struct vc_device_change){
				.what = it[i].what, .addr = it[i].addr });
	step(ALLOC(10, 1, 2), 500, VC_DONE);
	assert_string_equal(told(), "segment 9+0 at 1 by 0, segment 9+0 at 3 by 0, "
		"unmap 7+0 at 4 by 0, alloc 500+2 at 10 by 11 on 3 is 1 6");
}

/* Of a long run the last entries, oldest first. */
static void of_a_long_run_the_end_is_kept(void **unused)
{
	(void)unused;
	begin(NULL, 0);
	st.at = calloc(LIMIT, sizeof(*st.at));
	assert_non_null(st.at);
	st.cap = LIMIT;
	st.n = st.stamped = LIMIT - 1;
	st.at[1].size = 5;
	step(ALLOC(10, 1, 2), 500, VC_DONE);
	assert_true(history_end(&watcher, &model, &result, NULL) == VC_OK);
	assert_true(result.history.n == LIMIT && result.history.dropped == 0);
	assert_int_equal(result.history.at[LIMIT - 1].size, 2);
	VC_FREE(result.history.at, result.history.end.at);
	step(ALLOC(20, 2, 3), 600, VC_DONE);
	assert_true(history_end(&watcher, &model, &result, NULL) == VC_OK);
	assert_true(result.history.n == LIMIT && result.history.dropped == 1);
	assert_int_equal(result.history.at[0].size, 5);
	assert_int_equal(result.history.at[LIMIT - 2].size, 2);
	assert_int_equal(result.history.at[LIMIT - 1].size, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(blocks_of_the_start_are_known, drop),
		cmocka_unit_test_teardown(segments_come_from_who_knows_them, drop),
		cmocka_unit_test_teardown(recorded_segments_have_their_own_time, drop),
		cmocka_unit_test_teardown(a_place_that_is_taken_twice, drop),
		cmocka_unit_test_teardown(of_a_long_run_the_end_is_kept, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
