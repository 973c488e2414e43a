/* SPDX-License-Identifier: Apache-2.0 */
/* test_live.c - when memory runs out: runs that grow, runs that only look so; what a recorder says
 * of a process while it runs. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "tracer/live.c"

enum { MIB = 1 << 20, N = 64 };
#define SECOND_NS 1000000000u

static uint64_t seed;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
	return (seed >> 33) % n;
}

static void grows(void **state)
{
	uint64_t peak[N], floor[N];
	double growth;

	(void)state;
	for (int i = 0; i < N; i++) {
		floor[i] = (uint64_t)(1000 + 2 * i) * MIB;
		peak[i] = floor[i] + 500 * MIB;
	}
	/* 1,626 MiB are held in the last step, 2 more in each: 374 / 2 steps to 2,000 */
	assert_int_equal(vc_live_left(peak, floor, N, 2000ull * MIB, &growth), 187);
	assert_int_equal(growth, 2 * MIB);
	assert_true(vc_live_left(peak, floor, N, 0, &growth) < 0); /* of what? */
	assert_int_equal(growth, 2 * MIB);
	assert_true(vc_live_left(peak, floor, 4, 2000ull * MIB, &growth) < 0); /* too early */
	assert_int_equal(vc_live_left(peak, floor, N, 1000ull * MIB, &growth), 0);
}

/* Batches of different lengths: the peak of a step says little, the middle of many does. */
static void grows_unevenly(void **state)
{
	uint64_t peak[N], floor[N];
	double growth, left;

	(void)state;
	seed = 1;
	for (int turn = 0; turn < 100; turn++) {
		for (int i = 0; i < N; i++) {
			floor[i] = (uint64_t)(10000 + 20 * i) * MIB + rnd(50 * MIB);
			peak[i] = floor[i] + rnd(1000ull * MIB);
		}
		left = vc_live_left(peak, floor, N, 31800ull * MIB, &growth);
		assert_true(left > 1000 * 0.5 && left < 1000 * 2.0);
	}
}

static void only_looks_so(void **state)
{
	uint64_t peak[N], floor[N];
	double growth;

	(void)state;
	for (int i = 0; i < N; i++) { /* longer and longer batches, of which nothing stays */
		floor[i] = 1000ull * MIB;
		peak[i] = (uint64_t)(2000 + 3 * i) * MIB;
	}
	assert_true(vc_live_left(peak, floor, N, 4000ull * MIB, &growth) < 0);
	for (int i = 0; i < N; i++) { /* a cache that was filled at once */
		floor[i] = (i < 10 ? 1000ull : 1500ull) * MIB;
		peak[i] = floor[i] + 300 * MIB;
	}
	assert_true(vc_live_left(peak, floor, N, 4000ull * MIB, &growth) < 0);
	for (int i = 0; i < N; i++) { /* every second step is a large one */
		floor[i] = 1000ull * MIB;
		peak[i] = (uint64_t)(2000 + i % 2 * 500) * MIB;
	}
	assert_true(vc_live_left(peak, floor, N, 4000ull * MIB, &growth) < 0);
}

enum { OLD = 64, NEW = 128, FILE_AT = 256, NAME_AT = 300 }; /* in the text area */

/* A journal with two call stacks. */
static struct vc_journal_reader *make_journal(const char *path, struct vc_journal *j)
{
	char *text = calloc(1, vc_text_size(0));
	const struct vc_journal_frame old = { 0, NAME_AT, FILE_AT, 12 },
				      new = { 0, NAME_AT, NAME_AT, 7 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	*j = (struct vc_journal){ .magic = VC_JOURNAL_MAGIC, .version = VC_JOURNAL_VERSION,
		.header_bytes = sizeof(*j), .pid = 4711, .text_at = { VC_JOURNAL_HEAD },
		.chunks = 1, .text_used = 1000, .start_mono_ns = 500 };
	memcpy(text + OLD, &old, sizeof(old));
	memcpy(text + NEW, &new, sizeof(new));
	strcpy(text + FILE_AT, "/home/me/train.py");
	strcpy(text + NAME_AT, "forward");
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, j, sizeof(*j), 0), sizeof(*j));
	assert_int_equal(pwrite(fd, text, vc_text_size(0), (off_t)VC_JOURNAL_HEAD),
			 vc_text_size(0));
	close(fd);
	free(text);
	return vc_journal_open(path, false, &(struct vc_error){ 0 });
}

static void put(struct vc_live *l, uint8_t kind, uint64_t at, uint64_t mib, uint32_t text,
		uint64_t reserved, uint64_t now)
{
	struct vc_record rec = { .kind = kind, .addr = at, .extra = mib * MIB, .text = text,
				 .reserved = reserved * MIB, .time_ns = now };

	if (kind == VC_EV_DEVICE_SAMPLE) {
		rec.addr = at * MIB;
		rec.size = mib * MIB;
	}
	rec.flags = kind == VC_EV_MARK ? VC_MARK_STEP : 0;
	vc_live_put(l, &rec);
}

/* In each step 2 MiB of one site stay, 1 MiB of another; 10 MiB are given back before its end. */
static void run_steps(struct vc_live *l, uint64_t now, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++) {
		put(l, VC_EV_ALLOC, 1000 + k, 2, OLD, 0, now);
		put(l, VC_EV_ALLOC, 2000 + k, 10, OLD, 160, now);
		put(l, VC_EV_ALLOC, 3000 + k, 1, NEW, 0, now);
		put(l, VC_EV_FREE, 2000 + k, 10, 0, 140, now);
		put(l, VC_EV_MARK, 0, 0, 0, 0, now += SECOND_NS / 2);
	}
}

static void page(void **state)
{
	static struct vc_journal j;
	char path[64], top[80];
	struct vc_journal_reader *r;
	struct vc_live_page seen;
	struct vc_live *l;
	uint64_t now = 500;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_live-%ld", (long)getpid());
	snprintf(top, sizeof(top), "%s" VC_LIVE_SUFFIX, path);
	r = make_journal(path, &j);
	assert_non_null(r);
	l = vc_live_new(path, &j, 3);
	put(l, VC_EV_ALLOC, 1, 100, 0, 150, now);
	for (int i = 0; i < 3; i++)                      /* at the same place: in its stead */
		put(l, VC_EV_ALLOC, 1, 90, 0, 0, now);
	assert_int_equal(l->blocks, 1);
	put(l, VC_EV_FREE, 2, 5, 0, 0, now);             /* nobody knows it */
	put(l, VC_EV_DEVICE_SAMPLE, 200, 400, 0, 0, now); /* 200 are free: 350 can be reserved */
	put(l, VC_EV_ALLOC, 3, 1, 0, 0, now + SECOND_NS);
	assert_int_equal(vc_live_page(l)->steps, 0);
	put(l, VC_EV_ALLOC, 3, 1, 0, 0, now + SECOND_NS + 1);
	assert_int_equal(vc_live_page(l)->steps, 1);     /* seconds, as long as nothing is marked */
	assert_false(vc_live_page(l)->marked);
	put(l, VC_EV_FREE, 3, 0, 0, 120, now + SECOND_NS + 2);
	run_steps(l, now, 20);
	vc_live_show(l, r);
	assert_true(vc_live_read(top, &seen));
	assert_memory_equal(&seen.growing, &vc_live_page(l)->growing,
			    sizeof(seen) - offsetof(struct vc_live_page, growing));
	assert_int_equal(seen.pid, 4711);
	assert_int_equal(seen.rank, 3);
	assert_true(seen.marked);
	assert_int_equal(seen.steps, 20);
	assert_int_equal(seen.seconds_a_step * 1000, 500); /* from the first mark on */
	assert_int_equal(seen.allocated, 150 * MIB);
	assert_int_equal(seen.peak_allocated, 160 * MIB);
	assert_int_equal(seen.reserved, 140 * MIB);
	assert_int_equal(seen.peak_reserved, 160 * MIB);
	assert_int_equal(seen.free, 200 * MIB);
	assert_int_equal(seen.total, 400 * MIB);
	assert_int_equal(seen.floor, 149 * MIB);
	assert_int_equal(seen.peak, 160 * MIB);
	assert_int_equal(seen.growth, 3 * MIB);
	assert_int_equal(seen.left, (350 - 160) / 3);
	assert_int_equal(seen.growing, 2);
	assert_int_equal(seen.site[0].growth, 2 * MIB);
	assert_int_equal(seen.site[0].bytes, 40 * MIB);
	assert_string_equal(seen.site[0].name, "train.py:12 forward");
	assert_int_equal(seen.site[1].growth, MIB);
	assert_int_equal(seen.site[1].bytes, 20 * MIB);
	assert_string_equal(seen.site[1].name, "forward:7 forward");
	vc_live_free(l);
	assert_int_equal(access(top, F_OK), -1);
	assert_false(vc_live_read(top, &seen));
	vc_journal_close(r);
	unlink(path);
}

/* Of six sites that grow the four that grow most are named, in whichever order they come. */
static void most_growing(void **state)
{
	static const uint64_t mib[] = { 2, 5, 1, 6, 4, 3 };
	static struct vc_journal j;
	struct vc_live *l = vc_live_new("/nowhere/at/all", &j, -1); /* no page: the rest works */
	const struct vc_live_page *p = vc_live_page(l);

	(void)state;
	for (uint64_t k = 0; k < 24; k++) {
		for (uint32_t i = 0; i < 6; i++)
			put(l, VC_EV_ALLOC, 100 * k + i, mib[i], i, 0, k);
		put(l, VC_EV_MARK, 0, 0, 0, 0, k + 1);
	}
	for (uint32_t i = 1; i < 6; i++) /* without a journal only the first can be named */
		l->site[i].text = 0;
	vc_live_show(l, NULL);
	assert_int_equal(p->growing, 4);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(p->site[i].growth, (6 - i) * MIB);
		assert_int_equal(p->site[i].bytes, 24 * (6 - i) * MIB);
		assert_string_equal(p->site[i].name,
				    "what has no call site (--stacks py records them)");
	}
	assert_int_equal(p->growth, 21 * MIB);
	assert_true(p->left < 0); /* of a device of which nothing is known */
	vc_live_free(l);
	vc_live_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(grows_unevenly),
		cmocka_unit_test(only_looks_so),
		cmocka_unit_test(page),
		cmocka_unit_test(most_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
