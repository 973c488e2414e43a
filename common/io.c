/* SPDX-License-Identifier: Apache-2.0 */
/* io.c - see io.h. The reading half; output.c writes. */
#include "common/io.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

enum packing { PLAIN, GZIP, ZSTD };

#define RAW_SIZE    ((size_t)1 << 18) /* compressed bytes fetched at a time */
#define WINDOW_SIZE ((size_t)1 << 19) /* decoded bytes kept at hand; grows only as data arrive */
/* Recordings packed as well as zstd can become 55 times smaller; what becomes so much larger when
 * it is unpacked was made to fill memory. */
#define RATIO_MAX  256
#define RATIO_FREE ((uint64_t)1 << 22) /* bytes that any input may unpack to */

struct vc_input {
	char *name;
	int fd;              /* -1: bytes in memory */
	bool own_fd;
	enum packing packing;
	uint8_t *raw;        /* compressed bytes not yet decoded */
	size_t raw_at, raw_end;
	bool raw_eof;
	uint64_t fetched;    /* compressed bytes that came */
	uint8_t *window;     /* decoded bytes; lent when fd is -1 */
	size_t at, end, cap;
	bool eof, truncated, between; /* between: at the border of two members or frames */
	uint64_t offset;
	z_stream gz;
	bool gz_ready;
	ZSTD_DStream *zs;
};

static int read_some(struct vc_input *in, uint8_t *to, size_t cap, size_t *got,
		     struct vc_error *err)
{
	ssize_t n;

	do
		n = read(in->fd, to, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return vc_fail(err, VC_EIO, "cannot read %s: %s", in->name, strerror(errno));
	*got = (size_t)n;
	return 0;
}

static int fill_raw(struct vc_input *in, struct vc_error *err)
{
	size_t got = 0;

	if (in->raw_eof)
		return 0;
	if (in->raw_at) {
		memmove(in->raw, in->raw + in->raw_at, in->raw_end - in->raw_at);
		in->raw_end -= in->raw_at;
		in->raw_at = 0;
	}
	VC_TRY(read_some(in, in->raw + in->raw_end, RAW_SIZE - in->raw_end, &got, err));
	in->raw_end += got;
	in->fetched += got;
	in->raw_eof = got == 0;
	return 0;
}

/* At a border only zero padding (tapes, block devices) or another member may follow. */
static int next_member(struct vc_input *in, struct vc_error *err)
{
	while (in->raw_at < in->raw_end && in->raw[in->raw_at] == 0)
		in->raw_at++;
	if (in->raw_at == in->raw_end)
		return 0;
	if (in->raw[in->raw_at] != 0x1f)
		return vc_fail(err, VC_EFORMAT,
			       "%s: bytes after the end of the gzip data are not gzip", in->name);
	if (inflateReset(&in->gz) != Z_OK)
		return vc_fail(err, VC_EFORMAT, "%s: damaged gzip data", in->name);
	in->between = false;
	return 0;
}

static int gunzip(struct vc_input *in, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	int r, rc;

	if (in->between) {
		rc = next_member(in, err);
		if (rc || in->between)
			return rc;
	}
	in->gz.next_in = in->raw + in->raw_at;
	in->gz.avail_in = (uInt)(in->raw_end - in->raw_at);
	in->gz.next_out = to;
	in->gz.avail_out = (uInt)(cap < (1u << 30) ? cap : (1u << 30));
	r = inflate(&in->gz, Z_NO_FLUSH);
	in->raw_at = in->raw_end - in->gz.avail_in;
	*got = (size_t)(in->gz.next_out - to);
	if (r == Z_STREAM_END)
		in->between = true;
	else if (r == Z_MEM_ERROR)
		return vc_nomem(err, "unpacking gzip");
	else if (r != Z_OK && r != Z_BUF_ERROR)
		return vc_fail(err, VC_EFORMAT, "%s: damaged gzip data%s%s", in->name,
			       in->gz.msg ? ": " : "", in->gz.msg ? in->gz.msg : "");
	return 0;
}

static int unzstd(struct vc_input *in, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	ZSTD_inBuffer src = { in->raw, in->raw_end, in->raw_at };
	ZSTD_outBuffer dst = { to, cap, 0 };
	size_t r;

	if (in->between && src.pos == src.size)
		return 0;
	r = ZSTD_decompressStream(in->zs, &dst, &src);
	in->raw_at = src.pos;
	*got = dst.pos;
	if (ZSTD_isError(r))
		return vc_fail(err, VC_EFORMAT, "%s: damaged zstd data: %s", in->name,
			       ZSTD_getErrorName(r));
	in->between = r == 0;
	return 0;
}

static int check_ratio(const struct vc_input *in, struct vc_error *err)
{
	uint64_t from = in->fetched - (in->raw_end - in->raw_at),
		 to = in->offset + (in->end - in->at);

	if (to <= RATIO_FREE || to / RATIO_MAX <= from)
		return 0;
	return vc_fail(err, VC_EFORMAT, "%s: its first %llu bytes unpack to more than %d times "
		       "as many, which no recording does; if it is one, unpack it first",
		       in->name, (unsigned long long)from, RATIO_MAX);
}

/* Decode something into the free end of the window; sets eof when nothing is left. */
static int unpack(struct vc_input *in, struct vc_error *err)
{
	size_t got = 0, before;
	int rc;

	for (;;) {
		before = in->raw_end - in->raw_at;
		rc = in->packing == GZIP ?
			     gunzip(in, in->window + in->end, in->cap - in->end, &got, err) :
			     unzstd(in, in->window + in->end, in->cap - in->end, &got, err);
		if (rc)
			return rc;
		in->end += got;
		if (got)
			return check_ratio(in, err);
		if (in->raw_end - in->raw_at != before && in->raw_at < in->raw_end)
			continue; /* a header was eaten, or a border passed */
		if (in->raw_eof) {
			in->eof = true;
			in->truncated = !in->between;
			return 0;
		}
		VC_TRY(fill_raw(in, err));
	}
}

static int fetch(struct vc_input *in, struct vc_error *err)
{
	size_t got = 0;

	if (in->packing != PLAIN)
		return unpack(in, err);
	if (in->raw_at < in->raw_end) { /* what was read to recognise the packing */
		got = in->raw_end - in->raw_at;
		if (got > in->cap - in->end)
			got = in->cap - in->end;
		memcpy(in->window + in->end, in->raw + in->raw_at, got);
		in->raw_at += got;
	} else {
		VC_TRY(read_some(in, in->window + in->end, in->cap - in->end, &got, err));
		in->eof = got == 0;
	}
	in->end += got;
	return 0;
}

static int make_room(struct vc_input *in, struct vc_error *err)
{
	uint8_t *bigger;

	if (in->at && (in->at == in->end || in->end == in->cap)) {
		memmove(in->window, in->window + in->at, in->end - in->at);
		in->end -= in->at;
		in->at = 0;
	}
	if (in->end < in->cap)
		return 0;
	bigger = in->cap > SIZE_MAX / 2 ? NULL : realloc(in->window, in->cap * 2);
	VC_HAVE(bigger, "the input buffer", err);
	in->window = bigger;
	in->cap *= 2;
	return 0;
}

const uint8_t *vc_input_peek(struct vc_input *in, size_t want, size_t *got, struct vc_error *err)
{
	while (in->end - in->at < want && !in->eof) {
		if (make_room(in, err) || fetch(in, err)) {
			*got = 0;
			return NULL;
		}
	}
	*got = in->end - in->at;
	return in->window + in->at;
}

void vc_input_skip(struct vc_input *in, size_t n)
{
	if (n > in->end - in->at)
		n = in->end - in->at;
	in->at += n;
	in->offset += n;
}

uint64_t vc_input_offset(const struct vc_input *in)
{
	return in->offset;
}

const char *vc_input_name(const struct vc_input *in)
{
	return in->name;
}

bool vc_input_truncated(const struct vc_input *in)
{
	return in->truncated;
}

/* A skippable frame opens pzstd files (0x184D2A50) and our own traces (0x184D2A51, see
 * docs/reference/trace-format.md); the latter are read block by block, not as one zstd stream. */
static enum packing recognise(const uint8_t *p, size_t n)
{
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd },
			     pzstd[] = { 0x50, 0x2a, 0x4d, 0x18 };

	if (n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8)
		return GZIP;
	if (n >= 4 && (!memcmp(p, zstd, 4) || !memcmp(p, pzstd, 4)))
		return ZSTD;
	return PLAIN;
}

static int start_unpacking(struct vc_input *in, struct vc_error *err)
{
	while (in->raw_end < 4 && !in->raw_eof)
		VC_TRY(fill_raw(in, err));
	in->packing = recognise(in->raw, in->raw_end);
	if (in->packing == GZIP) {
		if (inflateInit2(&in->gz, 15 + 16) != Z_OK)
			return vc_nomem(err, "unpacking gzip");
		in->gz_ready = true;
	} else if (in->packing == ZSTD) {
		in->zs = ZSTD_createDStream();
		VC_HAVE(in->zs, "unpacking zstd", err);
	}
	return 0;
}

static int open_fd(struct vc_input *in, const char *path, struct vc_error *err)
{
	struct stat st;

	if (!strcmp(path, "-")) {
		in->fd = STDIN_FILENO;
		return 0;
	}
	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return vc_fail(err, VC_EIO, "cannot open %s: %s", path, strerror(errno));
	in->own_fd = true;
	if (!fstat(in->fd, &st) && S_ISDIR(st.st_mode))
		return vc_fail(err, VC_EIO, "%s is a directory, not a file", path);
	return 0;
}

bool vc_input_is_stream(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode));
}

static struct vc_input *input_new(const char *name, struct vc_error *err)
{
	struct vc_input *in = calloc(1, sizeof(*in));

	if (in) {
		in->fd = -1;
		in->name = strdup(name);
	}
	if (in && in->name)
		return in;
	vc_nomem(err, "an input");
	free(in);
	return NULL;
}

static struct vc_input *open_path(const char *path, bool decode, struct vc_error *err)
{
	struct vc_input *in = input_new(strcmp(path, "-") ? path : "standard input", err);

	if (!in)
		return NULL;
	in->cap = WINDOW_SIZE;
	in->window = malloc(in->cap);
	in->raw = malloc(RAW_SIZE);
	if (!in->window || !in->raw)
		vc_nomem(err, "the input buffer");
	else if (!open_fd(in, path, err) && (!decode || !start_unpacking(in, err)))
		return in;
	vc_input_close(in);
	return NULL;
}

struct vc_input *vc_input_open(const char *path, struct vc_error *err)
{
	return open_path(path, true, err);
}

struct vc_input *vc_input_raw(const char *path, struct vc_error *err)
{
	return open_path(path, false, err);
}

struct vc_input *vc_input_memory(const void *data, size_t n, struct vc_error *err)
{
	struct vc_input *in = input_new("memory", err);

	if (!in)
		return NULL;
	in->window = (uint8_t *)(uintptr_t)data; /* never written to: eof keeps fetch away */
	in->end = in->cap = n;
	in->eof = true;
	return in;
}

void vc_input_close(struct vc_input *in)
{
	if (!in)
		return;
	if (in->gz_ready)
		inflateEnd(&in->gz);
	ZSTD_freeDStream(in->zs);
	if (in->own_fd)
		close(in->fd);
	if (in->raw) /* bytes in memory are lent */
		free(in->window);
	VC_FREE(in->raw, in->name, in);
}
