/* SPDX-License-Identifier: Apache-2.0 */
/* test_cupti.c - CUPTI's stamps become times of the recording, and its records become ours. */
#include "tests/support/cupti_alone.h"

/* ---- stamps ---- */

/* A profiler's clock that runs twice as fast as ours, and began at 4 s. */
static const struct vc_cupti_times both = { .wall = 1700000000 * SECOND, .mono = 100 * SECOND,
	.their_zero = 1000, .our_zero = 4 * SECOND, .speed = 0.5 };

static void stamps_near_the_wall_clock_are_of_the_wall_clock(void **unused)
{
	(void)unused;
	assert_int_equal(vc_cupti_time(&both, both.wall), both.mono);
	assert_int_equal(vc_cupti_time(&both, both.wall - 30 * SECOND), both.mono - 30 * SECOND);
	assert_int_equal(vc_cupti_time(&both, both.wall + 3599 * SECOND),
			 both.mono + 3599 * SECOND);
}

static void other_stamps_are_of_the_profiler(void **unused)
{
	(void)unused;
	assert_int_equal(vc_cupti_time(&both, 1000), 4 * SECOND);
	assert_int_equal(vc_cupti_time(&both, 1000 + 6 * SECOND), 7 * SECOND);
}

static void without_a_profiler_all_stamps_are_of_the_wall_clock(void **unused)
{
	struct vc_cupti_times t = { .wall = both.wall, .mono = 9000 * SECOND };

	(void)unused;
	assert_int_equal(vc_cupti_time(&t, t.wall - 8000 * SECOND), 1000 * SECOND);
}

/* Only a clock that both have gone on since it was registered tells how fast it is. */
static void two_readings_tell_the_speed_of_a_clock(void **unused)
{
	struct vc_cupti_times t;

	(void)unused;
	t = vc_cupti_clocks();
	assert_true(t.wall == WALL && t.mono == NOW && t.speed == 0);
	vc_cupti_stamped_by(their_clock);
	for (int i = 0; i < 4; i++) { /* which of them has gone on */
		our_ns = NOW + (i & 1) * 300;
		ticks = 700 + (i & 2) * 50;
		vc_cupti_stamped_by(their_clock); /* again: it is known */
		t = vc_cupti_clocks();
		assert_true(t.speed == (i == 3 ? 3 : 0));
	}
	assert_true(t.our_zero == NOW && t.their_zero == 700);
	assert_int_equal(vc_cupti_time(&t, 790), NOW + 270);
	assert_int_equal(vc_cupti_time(&t, WALL + 3600 * SECOND - 1), our_ns + 3600 * SECOND - 1);
	assert_int_equal(vc_cupti_time(&t, WALL + 3600 * SECOND),
			 NOW + (uint64_t)((double)(WALL + 3600 * SECOND - 700) * 3));
	assert_int_equal(vc_cupti_time(&t, WALL - 3600 * SECOND),
			 NOW + (uint64_t)((double)(WALL - 3600 * SECOND - 700) * 3));
	vc_cupti_stamped_by(NULL);
	our_ns = NOW;
	assert_true(vc_cupti_clocks().speed == 0);
}

/* ---- records ---- */

static void reads(const void *record, size_t bytes, const char *expected)
{
	uint8_t buffer[RECORD] = { 0 };

	rec.n = 0;
	rec.text[0] = '\0';
	memcpy(buffer, record, bytes);
	vc_cupti_read(c_next, buffer, bytes);
	assert_string_equal(rec.text, expected);
}
#define READS(type, expected, ...) \
	reads(&(struct vc_cupti_##type){ __VA_ARGS__ }, sizeof(struct vc_cupti_##type), expected)
#define AT .start = WALL + 100, .end = WALL + 150

static void work_has_its_time_stream_and_name(void **unused)
{
	(void)unused;
	vc_cupti_stream(8, 0xabc);
	vc_cupti_stream(STREAMS, 0xdef);
	rec.how[VC_CAP_KERNELS] = rec.how[VC_CAP_COPIES] = VC_HOW_FAILED;
	READS(kernel, "kernel 100 ns=50 x=3 s=2748 dev=1 k", VC_CUPTI_KERNEL, AT, .device = 1,
	      .stream = 8, .correlation = 3, .name = "k");
	assert_int_equal(rec.how[VC_CAP_KERNELS], VC_HOW_RECORDED);
	assert_int_equal(rec.how[VC_CAP_COPIES], VC_HOW_FAILED);
	READS(kernel, "kernel 100 ns=50", VC_CUPTI_KERNEL, AT, .stream = DEFAULT_STREAM);
	READS(kernel, "kernel 100 ns=50", VC_CUPTI_KERNEL, AT, .stream = UINT32_MAX);
	READS(kernel, "kernel 100 ns=50 s=9223372036854775817", VC_CUPTI_KERNEL, AT, .stream = 9);
	READS(kernel, "kernel 100 ns=50 s=9223372036854779904", VC_CUPTI_KERNEL, AT,
	      .stream = STREAMS);
	READS(kernel, "kernel 100", VC_CUPTI_KERNEL, .stream = 7, .start = WALL + 100,
	      .end = WALL + 90);
	READS(kernel, "kernel -1700000000000000021 ns=1700000000000000022", VC_CUPTI_KERNEL,
	      .end = WALL + 1, .stream = 7);
	READS(kernel, "", VC_CUPTI_KERNEL, .stream = 7);
	assert_int_equal(rec.lost, 1);
	rec.how[VC_CAP_KERNELS] = VC_HOW_FAILED;
	rec.full = true;
	READS(kernel, "kernel 100 ns=50", VC_CUPTI_KERNEL, AT, .stream = 7);
	assert_int_equal(rec.how[VC_CAP_KERNELS], VC_HOW_FAILED);
	rec.full = false;
	READS(graph, "kernel 100 ns=50 x=4 s=2748 CUDA graph", VC_CUPTI_GRAPH_TRACE, 4, AT,
	      .stream = 8);
	READS(graph, "", VC_CUPTI_GRAPH_TRACE, 4, .stream = 8);
	READS(fill, "copy 100 ns=50 at=77 x=2 dev=1 memset", VC_CUPTI_MEMSET, .bytes = 77, AT,
	      .device = 1, .stream = 7, .correlation = 2);
	READS(fill, "", VC_CUPTI_MEMSET, .bytes = 77);
	READS(copy, "", VC_CUPTI_MEMCPY, .bytes = 77);
	assert_int_equal(rec.lost, 4);
	assert_int_equal(rec.how[VC_CAP_COPIES], VC_HOW_RECORDED);
}

/* Names stand where they stood, mostly. */
static void a_name_is_known_by_its_place_and_its_text(void **unused)
{
	char other[32], *name = other + 16 - ((uintptr_t)other & 15);

	(void)unused;
	strcpy(name, "first");
	for (int i = 0; i < 2; i++) {
		size_t n = rec.puts;

		READS(kernel, "kernel 100 ns=50 first", VC_CUPTI_KERNEL, AT, .stream = 7,
		      .name = name);
		assert_int_equal(rec.puts - n, !i);
	}
	strcpy(name, "other");
	READS(kernel, "kernel 100 ns=50 other", VC_CUPTI_KERNEL, AT, .stream = 7, .name = name);
	memmove(name + 1, name, 6); /* the same place of the table */
	READS(kernel, "kernel 100 ns=50 other", VC_CUPTI_KERNEL, AT, .stream = 7, .name = name + 1);
	READS(kernel, "kernel 100 ns=50", VC_CUPTI_KERNEL, AT, .stream = 7, .name = NULL);
}

/* The names of CUPTI's reference, as it writes them. */
static void copies_and_overheads_have_cuptis_names(void **unused)
{
	static const char *const copy[] = { "", " HtoD", " DtoH", " HtoA", " AtoH", " AtoA",
		" AtoD", " DtoA", " DtoD", " HtoH", " PtoP", "" };
	static const char *const overhead[] = { "unknown", "CUPTI: buffer flush",
		"CUPTI: instrumentation", "CUPTI: resources", "driver: module loading",
		"driver: lazy function loading", "driver: command buffer full",
		"CUPTI: buffer request", "CUPTI: unified memory", "unknown" };
	char text[80];

	(void)unused;
	for (uint8_t i = 0; i < 12; i++) {
		snprintf(text, sizeof(text), "copy 100 ns=50 memcpy%s", copy[i]);
		READS(copy, text, VC_CUPTI_MEMCPY, i, AT, .stream = 7);
	}
	for (uint32_t i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "overhead 100 ns=50 %s", overhead[i]);
		READS(overhead, text, VC_CUPTI_OVERHEAD, i << 16, AT);
	}
	READS(overhead, "overhead 100 ns=50 driver: compiler", VC_CUPTI_OVERHEAD, 1, AT);
	READS(overhead, "", VC_CUPTI_OVERHEAD, 1, .start = 0);
	snprintf(text, sizeof(text), "overhead %lld ns=%llu driver: compiler", -(long long)WALL,
		 WALL + 1);
	READS(overhead, text, VC_CUPTI_OVERHEAD, 1, .end = WALL + 1);
	assert_int_equal(rec.how[VC_CAP_OVERHEAD], VC_HOW_RECORDED);
}

static void launches_are_read_where_they_are_asked_for(void **unused)
{
	(void)unused;
	READS(api, "", VC_CUPTI_RUNTIME, 211, AT, .correlation = 6);
	rec.launches = "off";
	READS(api, "", VC_CUPTI_RUNTIME, 211, AT, .correlation = 6);
	rec.launches = "on";
	READS(api, "launch 100 ns=50 x=6", VC_CUPTI_RUNTIME, 211, AT, .correlation = 6);
	READS(api, "launch 100 ns=50 x=6", VC_CUPTI_DRIVER, 307, AT, .correlation = 6);
	READS(api, "", VC_CUPTI_DRIVER, 307, AT);
	READS(api, "", VC_CUPTI_DRIVER, 307, .end = WALL, .correlation = 6);
	READS(api, "", 33, 307, AT, .correlation = 6);
	rec.launches = NULL;
	assert_int_equal(rec.how[VC_CAP_LAUNCHES], VC_HOW_RECORDED);
}

static void the_null_gpu_has_a_clock_of_its_own(void **unused)
{
	(void)unused;
	rec.null_gpu = true;
	READS(kernel, "kernel -4999999950 ns=7 x=5 gemm k", VC_CUPTI_KERNEL, AT, .stream = 7,
	      .correlation = 5, .name = "k");
	assert_int_equal(rec.how[VC_CAP_WORK], VC_HOW_RECORDED);
	READS(kernel, "kernel 100 ns=50 k", VC_CUPTI_KERNEL, AT, .stream = 7, .name = "k");
	rec.null_gpu = false;
	READS(kernel, "kernel 100 ns=50 x=6 k", VC_CUPTI_KERNEL, AT, .stream = 7,
	      .correlation = 6, .name = "k");
}

static void memory(const char *expected, uint32_t operation, uint32_t memory, uint32_t correlation,
		   uint64_t address)
{
	reads(&(struct vc_cupti_memory){ VC_CUPTI_MEMORY2, operation, memory, correlation, address,
		.bytes = 64, .timestamp = WALL + (address == 5 ? 10 : -3), .device = 2 },
	      VC_CUPTI_MEMORY2_BYTES, expected);
}
#define REST " x=64 dev=2 f=128 device memory of other libraries"

static void memory_counts_once(void **unused)
{
	enum { DEVICE = VC_CUPTI_KIND_DEVICE };

	(void)unused;
	memory("alloc -3 ns=64 at=9" REST, 1, DEVICE, 1, 9);
	memory("", 1, DEVICE, 1, 9);
	memory("free -3 ns=64 at=9" REST, 2, DEVICE, 1, 9);
	memory("alloc -3 ns=64 at=9" REST, 1, DEVICE, 2, 9);
	memory("alloc -3 ns=64 at=8" REST, 1, DEVICE, 2, 8);
	memory("alloc -3 ns=64 at=7 x=64 dev=2 f=128 m=1 pinned host memory", 1,
	       VC_CUPTI_KIND_PINNED, 3, 7);
	memory("alloc -3 ns=64 at=7 x=64 dev=2 f=128 m=2 managed memory", 1,
	       VC_CUPTI_KIND_MANAGED, 4, 7);
	memory("", 1, 4, 5, 7);
	for (int i = 0; i < 2; i++) /* of no known call */
		memory("alloc -3 ns=64 at=6" REST, 1, DEVICE, 0, 6);
	memory("alloc 0 ns=64 at=5" REST, 1, DEVICE, 6, 5); /* of a clock that was set */
	vc_cupti_told(70);
	memory("", 1, DEVICE, 70, 4);
	memory("alloc -3 ns=64 at=4" REST, 1, DEVICE, 70 + TOLD, 4);
}

static void what_is_remembered_is_bounded(void **unused)
{
	struct vc_cupti_memory m = { VC_CUPTI_MEMORY2, 1, VC_CUPTI_KIND_DEVICE, 99,
				     .bytes = 1, .timestamp = WALL };

	(void)unused;
	for (int turn = 0; turn < 2; turn++)
		for (m.address = 1; m.address <= RECENT + 1; m.address++) {
			rec.lines = rec.n = 0;
			vc_cupti_read(c_next, (uint8_t *)&m, 112);
			assert_int_equal(rec.lines, 1);
		}
	for (m.address = RECENT + 1; m.address > 1; m.address--) {
		rec.lines = 0;
		vc_cupti_read(c_next, (uint8_t *)&m, 112);
		assert_int_equal(rec.lines, 0);
	}
	/* Of the first 15 pools each has a place; the others share the last one. */
	m.is_async = 1;
	m.pool.type = VC_CUPTI_POOL_LOCAL;
	m.correlation = 0;
	for (int turn = 0; turn < 3; turn++)
		for (uint64_t i = 1; i < 20; i++) {
			m.pool.at = i;
			m.pool.size = turn == 2 ? 2 : 1;
			rec.lines = 0;
			vc_cupti_read(c_next, (uint8_t *)&m, VC_CUPTI_MEMORY3);
			assert_int_equal(rec.lines, turn != 1 || i >= POOLS ? 2 : 1);
		}
}

static void pools_are_said_when_they_change(void **unused)
{
	enum { LOCAL = VC_CUPTI_POOL_LOCAL };
	static const char plain[] = "alloc 0 ns=64 x=64 f=128 device memory of other libraries";
	static const char grown[] = "pool 0 ns=500 at=100 x=40\n"
				    "alloc 0 ns=64 x=64 f=128 device memory of other libraries";
	const struct {
		struct vc_cupti_memory_pool p;
		size_t bytes;
		uint32_t async;
		const char *says;
	} it[] = { { { LOCAL, 0, 100, 0, 500, 40 }, 112, 1, plain },
		 { { LOCAL, 0, 100, 0, 500, 40 }, 120, 0, plain },
		 { { LOCAL + 1, 0, 100, 0, 500, 40 }, 120, 1, plain },
		 { { LOCAL, 0, 0, 0, 500, 40 }, 120, 1, plain },
		 { { LOCAL, 0, 100, 0, 500, 40 }, 120, 1, grown },
		 { { LOCAL, 0, 100, 0, 500, 41 }, 120, 1, plain } };

	(void)unused;
	memset(record_state.pool, 0, sizeof(record_state.pool));
	for (size_t i = 0; i < sizeof(it) / sizeof(*it); i++)
		reads(&(struct vc_cupti_memory){ VC_CUPTI_MEMORY2, 1, VC_CUPTI_KIND_DEVICE,
			.timestamp = WALL, .bytes = 64, .is_async = it[i].async, .pool = it[i].p },
		      it[i].bytes, it[i].says);
	assert_int_equal(rec.how[VC_CAP_DRIVER_POOLS], VC_HOW_RECORDED);
	struct vc_cupti_pool p = { VC_CUPTI_MEMORY_POOL, 1, VC_CUPTI_POOL_LOCAL, 1, 0, 2, 1234, 300,
				   800, 0, WALL - 2, 60 };

	reads(&p, sizeof(p), "pool -2 ns=800 at=300 x=60 dev=2 f=1");
	reads(&p, sizeof(p), "");
	p.operation = VC_DRIVER_POOL_TRIMMED;
	reads(&p, sizeof(p), "pool -2 ns=800 at=300 x=60 dev=2 f=3 trim, keep 1234");
	p.correlation++;
	reads(&p, VC_CUPTI_POOL_OLDEST, "pool -2 ns=800 at=300 dev=2 f=3 trim, keep 1234");
	p.correlation++;
	p.type = 2;
	reads(&p, sizeof(p), "pool -2 at=300 dev=2 f=3 trim, keep 1234");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps_near_the_wall_clock_are_of_the_wall_clock),
		cmocka_unit_test(other_stamps_are_of_the_profiler),
		cmocka_unit_test(without_a_profiler_all_stamps_are_of_the_wall_clock),
		cmocka_unit_test(two_readings_tell_the_speed_of_a_clock),
		cmocka_unit_test(work_has_its_time_stream_and_name),
		cmocka_unit_test(a_name_is_known_by_its_place_and_its_text),
		cmocka_unit_test(copies_and_overheads_have_cuptis_names),
		cmocka_unit_test(launches_are_read_where_they_are_asked_for),
		cmocka_unit_test(the_null_gpu_has_a_clock_of_its_own),
		cmocka_unit_test(memory_counts_once),
		cmocka_unit_test(what_is_remembered_is_bounded),
		cmocka_unit_test(pools_are_said_when_they_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
