/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal.c - reading a journal whose threads publish late, or never; which late records the
 * hooks have told already. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/journal.h"
#include "common/map.h"

struct writer {
	char path[64];
	int fd;
	struct vc_journal *j;
	struct vc_record *ring[2];
};

static void publish(struct writer *w, int ring, uint64_t seq)
{
	uint64_t head = atomic_load(&w->j->ring[ring].head);

	w->ring[ring][head % VC_RING_RECORDS] = (struct vc_record){ .seq = seq, .size = seq };
	atomic_store(&w->j->ring[ring].head, head + 1);
}

static void begin(struct writer *w, uint64_t last, uint64_t without)
{
	const size_t ring = VC_RING_RECORDS * sizeof(struct vc_record),
		     at = VC_JOURNAL_HEAD + vc_text_size(0), all = at + 2 * ring;
	char *p;

	snprintf(w->path, sizeof(w->path), "/tmp/test_journal-%ld", (long)getpid());
	w->fd = open(w->path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(w->fd >= 0);
	assert_int_equal(ftruncate(w->fd, (off_t)all), 0);
	p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	assert_true(p != MAP_FAILED);
	w->j = (struct vc_journal *)p;
	*w->j = (struct vc_journal){ .magic = VC_JOURNAL_MAGIC, .version = VC_JOURNAL_VERSION,
		.header_bytes = sizeof(*w->j), .pid = getpid(), .text_at = { VC_JOURNAL_HEAD },
		.chunks = 1, .rings = 2, .text_used = 1 };
	for (size_t i = 0; i < 2; i++) {
		w->j->ring[i].at = at + i * ring;
		w->j->ring[i].records = VC_RING_RECORDS;
		w->ring[i] = (struct vc_record *)(p + at + i * ring);
	}
	for (uint64_t n = 1; n <= last; n++)
		if (n != without)
			publish(w, 0, n);
}

static void end(struct writer *w)
{
	unlink(w->path);
	close(w->fd);
}

/* The numbers read, as a text. */
static const char *read_as(struct vc_journal_reader *r, enum vc_journal_way way, uint64_t *missing)
{
	static char text[128];
	struct vc_record rec[16];
	size_t n = vc_journal_next(r, rec, 16, way, missing), at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%d ", (int)rec[i].seq);
	return text;
}

static void late_records(void **state)
{
	struct vc_error err = { 0 };
	struct vc_journal_reader *r;
	uint64_t missing = 0;
	struct writer w;

	(void)state;
	begin(&w, 6, 3);
	r = vc_journal_open(w.path, true, &err);
	assert_non_null(r);
	assert_string_equal(read_as(r, VC_JOURNAL_WAIT, &missing), "1 2 ");
	assert_string_equal(read_as(r, VC_JOURNAL_WAIT, &missing), "");
	assert_string_equal(read_as(r, VC_JOURNAL_HURRY, &missing), "4 5 6 ");
	publish(&w, 1, 3);
	publish(&w, 0, 7);
	assert_string_equal(read_as(r, VC_JOURNAL_WAIT, &missing), "3 7 ");
	assert_string_equal(read_as(r, VC_JOURNAL_DEAD, &missing), "");
	assert_int_equal(missing, 0);
	vc_journal_close(r);
	end(&w);
}

/* The reader dies after a commit that left a number out; the next one takes that record and no
 * other. */
static void late_and_killed(void **state)
{
	struct vc_error err = { 0 };
	struct vc_journal_reader *r;
	uint64_t missing = 0;
	struct writer w;

	(void)state;
	begin(&w, 4, 2);
	r = vc_journal_open(w.path, true, &err);
	assert_string_equal(read_as(r, VC_JOURNAL_HURRY, &missing), "1 3 4 ");
	vc_journal_commit(r, 4711);
	atomic_store(&w.j->ring[0].tail, 0); /* killed before it moved the tail */
	vc_journal_close(r);
	publish(&w, 1, 2);
	publish(&w, 0, 6); /* 5 never comes */
	r = vc_journal_open(w.path, false, &err);
	assert_int_equal(vc_journal_stored(r), 4711);
	assert_string_equal(read_as(r, VC_JOURNAL_DEAD, &missing), "2 6 ");
	assert_int_equal(missing, 1);
	vc_journal_close(r);
	end(&w);
}

/* One that is waited for and never comes is counted; more than can be noted are waited for. */
static void never(void **state)
{
	struct vc_error err = { 0 };
	struct vc_journal_reader *r;
	uint64_t missing = 0;
	struct writer w;

	(void)state;
	begin(&w, 3, 2);
	publish(&w, 0, 4 + VC_JOURNAL_LATE);
	r = vc_journal_open(w.path, true, &err);
	assert_string_equal(read_as(r, VC_JOURNAL_HURRY, &missing), "1 3 ");
	assert_int_equal(missing, 0);
	assert_string_equal(read_as(r, VC_JOURNAL_DEAD, &missing), "36 ");
	assert_string_equal(read_as(r, VC_JOURNAL_DEAD, &missing), "");
	assert_int_equal(missing, 1 + VC_JOURNAL_LATE);
	vc_journal_close(r);
	end(&w);
}

/* Two records of one number, as damage makes them: neither is waited for, and none is missing. */
static void twice(void **state)
{
	struct vc_error err = { 0 };
	struct vc_journal_reader *r;
	uint64_t missing = 0;
	struct writer w;

	(void)state;
	begin(&w, 2, 0);
	publish(&w, 1, 2);
	r = vc_journal_open(w.path, true, &err);
	assert_string_equal(read_as(r, VC_JOURNAL_WAIT, &missing), "1 2 2 ");
	publish(&w, 1, 2);
	assert_string_equal(read_as(r, VC_JOURNAL_DEAD, &missing), "2 ");
	assert_int_equal(missing, 0);
	vc_journal_close(r);
	end(&w);
}

/* A record of one address, in seconds; tells: what vc_journal_known says of it. */
struct call {
	enum { CALLED, CAME_LATE } how;
	uint8_t kind;
	enum vc_record_memory memory;
	uint64_t at;
	int tells;
};

/* Calls and late records one after the other; returns how many calls are left over. */
static size_t play(const struct call *c, size_t n)
{
	struct vc_map early = { 0 };
	size_t left;

	for (size_t i = 0; i < n; i++) {
		struct vc_record r = { .kind = c[i].kind, .reserved = c[i].memory,
				       .flags = c[i].how == CAME_LATE ? VC_RECF_LATE : 0,
				       .addr = 0x7f6991a00000, .time_ns = c[i].at * 1000000000 };

		if (vc_journal_known(&early, &r) != c[i].tells)
			fail_msg("row %zu", i);
	}
	left = early.n;
	vc_map_fini(&early);
	return left;
}

enum { ALLOC = VC_EV_OUTSIDE_ALLOC, FREE = VC_EV_OUTSIDE_FREE };

/* As on an H100: CUPTI leaves the first cuMemAlloc and its cuMemFree out, and the address is given
 * out again as pinned host memory, which nobody else saw. */
static void calls_of_another_memory(void **state)
{
	static const struct call row[] = {
		{ CALLED, ALLOC, VC_MEMORY_DEVICE, 1, 0 },
		{ CALLED, FREE, VC_MEMORY_DEVICE, 1, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_HOST, 2, 0 },
		{ CAME_LATE, FREE, VC_MEMORY_HOST, 2, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_MANAGED, 2, 0 },
		/* cudaFree does not say that it is */
		{ CALLED, ALLOC, VC_MEMORY_MANAGED, 2, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_MANAGED, 2, 1 },
		{ CALLED, FREE, VC_MEMORY_DEVICE, 2, 0 },
		{ CAME_LATE, FREE, VC_MEMORY_MANAGED, 2, 1 },
		{ CALLED, ALLOC, VC_MEMORY_HOST, 3, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_HOST, 3, 1 },
		{ CAME_LATE, ALLOC, VC_MEMORY_HOST, 3, 0 },
		/* PyTorch's is device memory, whatever its record holds in that field */
		{ CALLED, VC_EV_SEGMENT_ALLOC, VC_MEMORY_MANAGED, 4, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_DEVICE, 4, 1 },
		{ CAME_LATE, ALLOC, VC_MEMORY_DEVICE, 4, 1 },
		/* no late record tells of mappings, and they leave nothing behind */
		{ CALLED, ALLOC, VC_MEMORY_MAPPED, 5, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_DEVICE, 5, 0 },
	};

	(void)state;
	assert_int_equal(play(row, sizeof(row) / sizeof(*row)), 1); /* the first cuMemFree */
}

/* The same kind of memory at an address again: a call whose record never came is forgotten when it
 * is much older than the record, and only then. */
static void calls_long_ago(void **state)
{
	static const struct call row[] = {
		{ CALLED, ALLOC, VC_MEMORY_DEVICE, 100, 0 },
		{ CALLED, ALLOC, VC_MEMORY_DEVICE, 101, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_DEVICE, 160, 0 },
		{ CAME_LATE, ALLOC, VC_MEMORY_DEVICE, 101, 0 },
		{ CALLED, FREE, VC_MEMORY_DEVICE, 200, 0 },
		{ CALLED, FREE, VC_MEMORY_DEVICE, 260, 0 },
		{ CAME_LATE, FREE, VC_MEMORY_DEVICE, 199, 1 },
		{ CAME_LATE, FREE, VC_MEMORY_DEVICE, 265, 1 },
		{ CAME_LATE, FREE, VC_MEMORY_DEVICE, 265, 0 },
	};

	(void)state;
	assert_int_equal(play(row, sizeof(row) / sizeof(*row)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_records),
		cmocka_unit_test(late_and_killed),
		cmocka_unit_test(never),
		cmocka_unit_test(twice),
		cmocka_unit_test(calls_of_another_memory),
		cmocka_unit_test(calls_long_ago),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
