/* SPDX-License-Identifier: Apache-2.0 */
/* test_io.c - bytes in from files, pipes, gzip and zstd; bytes out all or nothing. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/io.h"

#define N 3000000

static char dir[256];

static const char *path_of(const char *name)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static uint8_t *pattern(void)
{
	uint8_t *p = malloc(N);

	assert_non_null(p);
	for (size_t i = 0; i < N; i++)
		p[i] = (uint8_t)(i * 2654435761u >> 13 ^ i >> 8);
	return p;
}

static void put_file(const char *name, const void *data, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	fclose(f);
}

static size_t gz(uint8_t *to, size_t cap, const uint8_t *from, size_t n)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (uint8_t *)(uintptr_t)from;
	z.avail_in = (uInt)n;
	z.next_out = to;
	z.avail_out = (uInt)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

/* Reads all of it in odd steps and compares. */
static void reads_as(const char *name, const uint8_t *expect, size_t n, bool truncated)
{
	struct vc_error e = { 0 };
	struct vc_input *in = vc_input_open(path_of(name), &e);
	size_t at = 0, got, step = 1;
	const uint8_t *p;

	assert_non_null(in);
	for (;; step = step * 7 % 100003 + 1) {
		p = vc_input_peek(in, step, &got, &e);
		assert_non_null(p);
		if (!got)
			break;
		if (got > step)
			got = step;
		assert_true(at + got <= n);
		assert_memory_equal(p, expect + at, got);
		vc_input_skip(in, got);
		at += got;
		assert_int_equal(vc_input_offset(in), at);
	}
	assert_int_equal(vc_input_truncated(in), truncated);
	if (!truncated)
		assert_int_equal(at, n);
	vc_input_close(in);
}

static void plain_files_read_whole(void **unused)
{
	uint8_t *p = pattern();

	(void)unused;
	put_file("plain", p, N);
	reads_as("plain", p, N, false);
	put_file("empty", p, 0);
	reads_as("empty", p, 0, false);
	put_file("three", p, 3);
	reads_as("three", p, 3, false);
	free(p);
}

static void gzip_of_several_members_and_padding_reads_whole(void **unused)
{
	uint8_t *p = pattern(), *z = calloc(1, 2 * N);
	size_t n, half = N / 2;

	(void)unused;
	n = gz(z, 2 * N, p, half);
	n += gz(z + n, 2 * N - n, p + half, N - half);
	put_file("a.gz", z, n);
	reads_as("a.gz", p, N, false);
	put_file("padded.gz", z, n + 512);
	reads_as("padded.gz", p, N, false);
	put_file("cut.gz", z, n - 9);
	reads_as("cut.gz", p, N, true);
	free(p);
	free(z);
}

/* More packed bytes than are fetched at a time are undone by a thread. */
static void large_files_are_unpacked_ahead(void **unused)
{
	size_t n = 4 * (size_t)N, cap = n + n / 2, z, g;
	uint8_t *p = malloc(n), *packed = malloc(cap);
	struct vc_error e = { 0 };
	struct vc_input *in;
	uint64_t x = 1;
	size_t got;

	(void)unused;
	assert_non_null(p);
	assert_non_null(packed);
	for (size_t i = 0; i < n; i++) { /* of 8 bits 4 are chance */
		x = x * 6364136223846793005u + 1442695040888963407u;
		p[i] = (uint8_t)(x >> 60);
	}
	g = gz(packed, cap, p, n);
	assert_true(g > 1 << 20);
	put_file("large.gz", packed, g);
	reads_as("large.gz", p, n, false);
	put_file("cut.gz", packed, g / 2);
	memset(packed + g / 2, 0xff, 64);
	put_file("bad.gz", packed, g);
	in = vc_input_open(path_of("large.gz"), &e); /* closed while the thread waits */
	assert_non_null(in);
	assert_non_null(vc_input_peek(in, 1, &got, &e));
	vc_input_close(in);
	z = ZSTD_compress(packed, cap, p, n, 1);
	put_file("large.zst", packed, z);
	reads_as("large.zst", p, n, false);
	in = vc_input_open(path_of("bad.gz"), &e);
	assert_non_null(in);
	for (size_t step = 100000; vc_input_peek(in, step, &got, &e) && got;)
		vc_input_skip(in, got);
	assert_int_equal(e.status, VC_EFORMAT);
	assert_non_null(strstr(e.message, "bad.gz: damaged gzip data"));
	assert_true(vc_input_offset(in) > n / 4); /* what came before was read */
	vc_input_close(in);
	in = vc_input_open(path_of("cut.gz"), &e);
	assert_non_null(in);
	while (vc_input_peek(in, 100000, &got, &e) && got)
		vc_input_skip(in, got);
	assert_true(vc_input_truncated(in));
	vc_input_close(in);
	free(p);
	free(packed);
}

static void zstd_of_several_frames_reads_whole(void **unused)
{
	uint8_t *p = pattern(), *z = malloc(2 * N);
	size_t n, half = N / 3;

	(void)unused;
	n = ZSTD_compress(z, 2 * N, p, half, 1);
	n += ZSTD_compress(z + n, 2 * N - n, p + half, N - half, 1);
	put_file("a.zst", z, n);
	reads_as("a.zst", p, N, false);
	put_file("cut.zst", z, n - 9);
	reads_as("cut.zst", p, N, true);
	free(p);
	free(z);
}

static void damaged_compression_is_an_error_not_data(void **unused)
{
	uint8_t *p = pattern(), *z = malloc(2 * N);
	struct vc_error e = { 0 };
	struct vc_input *in;
	size_t n = gz(z, 2 * N, p, N), got;

	(void)unused;
	z[n / 2] ^= 0x55;
	z[n / 2 + 1] ^= 0xff;
	put_file("bad.gz", z, n);
	in = vc_input_open(path_of("bad.gz"), &e);
	assert_non_null(in);
	assert_null(vc_input_peek(in, N + 1, &got, &e));
	assert_int_equal(e.status, VC_EFORMAT);
	vc_input_close(in);
	free(p);
	free(z);
}

static void directories_and_missing_files_are_refused(void **unused)
{
	struct vc_error e = { 0 };

	(void)unused;
	assert_null(vc_input_open(dir, &e));
	assert_non_null(strstr(e.message, "is a directory"));
	assert_null(vc_input_open(path_of("nothing"), &e));
	assert_int_equal(e.status, VC_EIO);
}

static void a_huge_peek_needs_memory_for_what_is_there_only(void **unused)
{
	struct vc_error e = { 0 };
	struct vc_input *in;
	size_t got;

	(void)unused;
	put_file("small", "hello", 5);
	in = vc_input_open(path_of("small"), &e);
	assert_non_null(in);
	assert_non_null(vc_input_peek(in, SIZE_MAX, &got, &e));
	assert_int_equal(got, 5);
	vc_input_close(in);
}

static void memory_is_read_in_place(void **unused)
{
	static const char text[] = "abc";
	struct vc_error e = { 0 };
	struct vc_input *in = vc_input_memory(text, 3, &e);
	size_t got;

	(void)unused;
	assert_ptr_equal(vc_input_peek(in, 10, &got, &e), text);
	assert_int_equal(got, 3);
	vc_input_skip(in, 99);
	vc_input_peek(in, 1, &got, &e);
	assert_int_equal(got, 0);
	vc_input_close(in);
}

static void output_appears_only_on_commit(void **unused)
{
	struct vc_error e = { 0 };
	struct vc_output *o = vc_output_open(path_of("out"), &e);
	uint8_t *p = pattern();
	struct stat st;

	(void)unused;
	assert_non_null(o);
	vc_output_write(o, p, N);
	assert_int_not_equal(stat(path_of("out"), &st), 0);
	assert_int_equal(vc_output_commit(o, &e), 0);
	vc_output_close(o);
	reads_as("out", p, N, false);

	o = vc_output_open(path_of("out"), &e);
	vc_output_text(o, "half");
	vc_output_close(o); /* no commit: the old file stays, no rubbish beside it */
	reads_as("out", p, N, false);
	free(p);
}

static void a_full_disk_is_told_by_commit(void **unused)
{
	struct vc_error e = { 0 };
	struct vc_output *o = vc_output_open("/dev/full", &e);

	(void)unused;
	if (!o)
		skip();
	vc_output_text(o, "x");
	assert_int_equal(vc_output_commit(o, &e), VC_EIO);
	assert_non_null(strstr(e.message, "/dev/full"));
	vc_output_close(o);
}

static void a_writer_that_is_killed_leaves_nothing_behind(void **unused)
{
	struct vc_error e = { 0 };
	char path[300], inside[300];
	int nameless, status;
	pid_t writer;

	(void)unused;
	snprintf(inside, sizeof(inside), "%s/killed", dir);
	assert_int_equal(mkdir(inside, 0700), 0);
	nameless = open(inside, O_WRONLY | O_TMPFILE, 0600);
	if (nameless < 0) /* NFS and the like */
		skip();
	close(nameless);
	snprintf(path, sizeof(path), "%.250s/out", inside);
	writer = fork();
	if (writer == 0) {
		struct vc_output *o = vc_output_open(path, &e);

		for (int i = 0; o && i < 100000; i++)
			vc_output_text(o, "0123456789");
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(rmdir(inside), 0); /* it is empty */
}

static void memory_output_collects_formatted_text(void **unused)
{
	struct vc_error e = { 0 };
	struct vc_output *o = vc_output_memory(&e);
	char longer[2000], *all;
	size_t n;

	(void)unused;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	vc_output_printf(o, "%d %s", 7, longer);
	for (int i = 0; i < 100000; i++)
		vc_output_text(o, "0123456789");
	assert_int_equal(vc_output_commit(o, &e), 0);
	all = vc_output_take(o, &n);
	assert_int_equal(n, 2 + 1999 + 1000000);
	assert_int_equal(strlen(all), n);
	assert_int_equal(strncmp(all, "7 xxx", 5), 0);
	free(all);
	all = vc_output_take(o, NULL); /* nothing more was written */
	assert_string_equal(all, "");
	free(all);
	vc_output_close(o);
}

static int make_dir(void **state)
{
	const char *tmp = getenv("TMP");

	(void)state;
	snprintf(dir, sizeof(dir), "%s/vc-io-XX" "XX" "XX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_files_read_whole),
		cmocka_unit_test(gzip_of_several_members_and_padding_reads_whole),
		cmocka_unit_test(zstd_of_several_frames_reads_whole),
		cmocka_unit_test(large_files_are_unpacked_ahead),
		cmocka_unit_test(damaged_compression_is_an_error_not_data),
		cmocka_unit_test(directories_and_missing_files_are_refused),
		cmocka_unit_test(a_huge_peek_needs_memory_for_what_is_there_only),
		cmocka_unit_test(memory_is_read_in_place),
		cmocka_unit_test(output_appears_only_on_commit),
		cmocka_unit_test(a_full_disk_is_told_by_commit),
		cmocka_unit_test(a_writer_that_is_killed_leaves_nothing_behind),
		cmocka_unit_test(memory_output_collects_formatted_text),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
