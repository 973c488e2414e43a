/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - see unpack.h */
#include "common/unpack.h"
#include "common/vec.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

enum packing { PLAIN, GZIP, ZSTD, ZIP };

/* Recordings packed as well as zstd can become 55 times smaller; what becomes so much larger when
 * it is unpacked was made to fill memory. */
#define RATIO_MAX  256
#define RATIO_FREE ((uint64_t)1 << 22) /* bytes that any input may unpack to */

/* Pieces that the thread makes while the reader is at the ones before. */
#define PIECE ((size_t)1 << 18)
enum { PIECES = 4 };

struct piece { uint8_t *at; size_t n, read; };

struct vc_unpack {
	int fd;              /* lent, as is the name */
	const char *name;
	enum packing packing;
	uint8_t *raw;        /* packed bytes not yet undone */
	size_t raw_at, raw_end;
	bool raw_eof;
	uint64_t fetched, made; /* packed bytes that came, and what became of them */
	bool truncated, between; /* between: at the border of two members or frames */
	z_stream gz;
	bool gz_ready;
	ZSTD_DStream *zs;
	struct zip {
		bool inside, stored, later, done, first; /* first: of several, the others are not
							  * looked at (torch.save) */
		uint32_t sum, want;
		uint64_t left; /* stored, later: what came */
	} zip;
	/* The thread owns what stands above while it runs; the lock guards what stands below. */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct piece piece[PIECES];
	uint64_t put, taken; /* pieces */
	bool over, stop;
	int rc;              /* over: why */
	struct vc_error err;
};

int vc_read_some(int fd, const char *name, uint8_t *to, size_t cap, size_t *got,
		 struct vc_error *err)
{
	ssize_t n;

	do
		n = read(fd, to, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return vc_fail(err, VC_EIO, "cannot read %s: %s", name, strerror(errno));
	*got = (size_t)n;
	return 0;
}

static int fill_raw(struct vc_unpack *u, struct vc_error *err)
{
	size_t got = 0;

	if (u->raw_eof)
		return 0;
	if (u->raw_at) {
		memmove(u->raw, u->raw + u->raw_at, u->raw_end - u->raw_at);
		u->raw_end -= u->raw_at;
		u->raw_at = 0;
	}
	VC_TRY(vc_read_some(u->fd, u->name, u->raw + u->raw_end, VC_RAW_SIZE - u->raw_end, &got,
			    err));
	u->raw_end += got;
	u->fetched += got;
	u->raw_eof = got == 0;
	return 0;
}

/* At a border only zero padding (tapes, block devices) or another member may follow. */
static int next_member(struct vc_unpack *u, struct vc_error *err)
{
	while (u->raw_at < u->raw_end && u->raw[u->raw_at] == 0)
		u->raw_at++;
	if (u->raw_at == u->raw_end)
		return 0;
	if (u->raw[u->raw_at] != 0x1f)
		return vc_fail(err, VC_EFORMAT,
			       "%s: bytes after the end of the gzip data are not gzip", u->name);
	if (inflateReset(&u->gz) != Z_OK)
		return vc_fail(err, VC_EFORMAT, "%s: damaged gzip data", u->name);
	u->between = false;
	return 0;
}

/* 1: the data end here. */
static int inflate_some(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got,
			struct vc_error *err)
{
	int r;

	u->gz.next_in = u->raw + u->raw_at;
	u->gz.avail_in = (uInt)(u->raw_end - u->raw_at);
	u->gz.next_out = to;
	u->gz.avail_out = (uInt)(cap < (1u << 30) ? cap : (1u << 30));
	r = inflate(&u->gz, Z_NO_FLUSH);
	u->raw_at = u->raw_end - u->gz.avail_in;
	*got = (size_t)(u->gz.next_out - to);
	if (r == Z_MEM_ERROR)
		return vc_nomem(err, "unpacking");
	if (r != Z_OK && r != Z_BUF_ERROR && r != Z_STREAM_END)
		return vc_fail(err, VC_EFORMAT, "%s: damaged %s data%s%s", u->name,
			       u->packing == ZIP ? "zip" : "gzip", u->gz.msg ? ": " : "",
			       u->gz.msg ? u->gz.msg : "");
	return r == Z_STREAM_END;
}

static int gunzip(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	int rc;

	if (u->between) {
		rc = next_member(u, err);
		if (rc || u->between)
			return rc;
	}
	VC_TRY(rc = inflate_some(u, to, cap, got, err));
	u->between = rc;
	return 0;
}

/* ---- zip (APPNOTE.TXT 6.3): an archive with one file in it, from the front ---- */

#define ZIP_FILE      0x04034b50u
#define ZIP_DIRECTORY 0x02014b50u
#define ZIP_SIZES     0x08074b50u /* may stand before the sum and sizes behind a file */

static uint32_t little(const uint8_t *p, int n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/* Behind a file whose head did not know its sum: 12 to 24 bytes. */
static int zip_sum(struct vc_unpack *u, const uint8_t *p, size_t n)
{
	if (!u->zip.later)
		return 1;
	for (size_t at = 12; at <= 24 && at + 4 <= n; at += 4) {
		uint32_t next = little(p + at, 4);

		if (next != ZIP_FILE && next != ZIP_DIRECTORY)
			continue;
		u->zip.want = little(p + (little(p, 4) == ZIP_SIZES && at % 8 == 0 ? 4 : 0), 4);
		u->raw_at += at;
		u->zip.later = false;
		return 1;
	}
	return 0;
}

/* The file in it; macOS adds notes of its own. */
static int zip_file(struct vc_unpack *u, const uint8_t *p, size_t n, struct vc_error *err)
{
	uint32_t flags, method, size, name;

	if (n < 30 || n < 30 + (size_t)(name = little(p + 26, 2)) + little(p + 28, 2))
		return 0;
	const char *word = (const char *)p + 30;
	flags = little(p + 6, 2);
	method = little(p + 8, 2);
	size = little(p + 18, 4);
	u->raw_at += 30 + name + little(p + 28, 2);
	if (name && word[name - 1] == '/')
		return 0;
	if (u->zip.done && (u->zip.first || (name > 9 && !memcmp(word, "__MACOSX/", 9)))) {
		u->between = true;
		return 0;
	}
	if (u->zip.done)
		return vc_fail(err, VC_EFORMAT, "%s: an archive of several files; unpack it and "
			       "name those that you mean", u->name);
	if (flags & 1 || (method != 8 && (method || (!(flags & 8) && size == UINT32_MAX))))
		return vc_fail(err, VC_EFORMAT, "%s: the file in this archive is %s; unpack it "
			       "first", u->name, flags & 1 ? "encrypted" :
			       "packed in a way that is rare");
	if (inflateReset(&u->gz) != Z_OK)
		return vc_fail(err, VC_EFORMAT, "%s: damaged zip data", u->name);
	u->zip = (struct zip){ .inside = true, .stored = !method, .later = flags & 8,
			       .left = flags & 8 ? 0 : size, .want = little(p + 14, 4),
			       .sum = (uint32_t)crc32(0, NULL, 0),
			       .first = name > 9 && !memcmp(word + name - 9, "/data.pkl", 9) };
	return 0;
}

/* How much of a stored file lies here. Where its length comes behind it, it ends before the mark
 * and a sum that its length follows. */
static size_t zip_stored(const struct vc_unpack *u, const uint8_t *p, size_t n, bool *over)
{
	if (!u->zip.later) {
		*over = u->zip.left <= n;
		return *over ? (size_t)u->zip.left : n;
	}
	for (const uint8_t *at = p; (at = memchr(at, 'P', n - (size_t)(at - p))) != NULL; at++) {
		size_t before = (size_t)(at - p);

		if (n - before < 12)
			return before;
		*over = little(at, 4) == ZIP_SIZES &&
			little(at + 8, 4) == (uint32_t)(u->zip.left + before);
		if (*over)
			return before;
	}
	return n;
}

static int zip_next(struct vc_unpack *u, struct vc_error *err)
{
	uint32_t mark;

	if (u->zip.done && !zip_sum(u, u->raw + u->raw_at, u->raw_end - u->raw_at))
		return 0;
	if (u->zip.done && u->zip.sum != u->zip.want)
		return vc_fail(err, VC_EFORMAT, "%s: damaged zip data: incorrect data check",
			       u->name);
	if (u->raw_end - u->raw_at < 4)
		return 0;
	mark = little(u->raw + u->raw_at, 4);
	if (mark == ZIP_FILE)
		return zip_file(u, u->raw + u->raw_at, u->raw_end - u->raw_at, err);
	if (mark != ZIP_DIRECTORY || !u->zip.done)
		return vc_fail(err, VC_EFORMAT, "%s: %s", u->name, mark == ZIP_DIRECTORY ?
			       "an archive without a file" : "damaged zip data");
	u->between = true;
	return 0;
}

static int unzip(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	bool ends = false;
	int over;

	if (u->between)
		u->raw_at = u->raw_end;
	if (u->between || !u->zip.inside)
		return u->between ? 0 : zip_next(u, err);
	if (u->zip.stored) {
		size_t n = zip_stored(u, u->raw + u->raw_at, u->raw_end - u->raw_at, &ends);

		over = ends && n <= cap;
		n = n < cap ? n : cap;
		memcpy(to, u->raw + u->raw_at, n);
		u->raw_at += *got = n;
		u->zip.left += u->zip.later ? n : -(uint64_t)n;
	} else {
		VC_TRY(over = inflate_some(u, to, cap, got, err));
	}
	u->zip.sum = (uint32_t)crc32(u->zip.sum, to, (uInt)*got);
	u->zip.inside = !over;
	u->zip.done = over;
	/* A reader that has what it wants does not come again: what follows is looked at first. */
	while (over && !u->between && !u->raw_eof) {
		size_t before = u->raw_at;

		VC_TRY(zip_next(u, err));
		if (u->raw_at == before && !u->between)
			VC_TRY(fill_raw(u, err));
	}
	return 0;
}

static int unzstd(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	ZSTD_inBuffer src = { u->raw, u->raw_end, u->raw_at };
	ZSTD_outBuffer dst = { to, cap, 0 };
	size_t r;

	if (u->between && src.pos == src.size)
		return 0;
	r = ZSTD_decompressStream(u->zs, &dst, &src);
	u->raw_at = src.pos;
	*got = dst.pos;
	if (ZSTD_isError(r))
		return vc_fail(err, VC_EFORMAT, "%s: damaged zstd data: %s", u->name,
			       ZSTD_getErrorName(r));
	u->between = r == 0;
	return 0;
}

/* A skippable frame opens pzstd files (0x184D2A50) and our own traces (0x184D2A51, see
 * docs/reference/trace-format.md); the latter are read block by block, not as one zstd stream. */
static enum packing recognise(const uint8_t *p, size_t n)
{
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd },
			     pzstd[] = { 0x50, 0x2a, 0x4d, 0x18 };

	if (n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8)
		return GZIP;
	if (n >= 4 && little(p, 4) == ZIP_FILE)
		return ZIP;
	if (n >= 4 && (!memcmp(p, zstd, 4) || !memcmp(p, pzstd, 4)))
		return ZSTD;
	return PLAIN;
}

static int check_ratio(const struct vc_unpack *u, struct vc_error *err)
{
	uint64_t from = u->fetched - (u->raw_end - u->raw_at);

	if (u->made <= RATIO_FREE || u->made / RATIO_MAX <= from)
		return 0;
	return vc_fail(err, VC_EFORMAT, "%s: its first %llu bytes unpack to more than %d times "
		       "as many, which no recording does; if it is one, unpack it first",
		       u->name, (unsigned long long)from, RATIO_MAX);
}

/* Something, or at the end nothing. */
static int undo(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	*got = 0;
	for (;;) {
		size_t before = u->raw_end - u->raw_at;

		VC_TRY((u->packing == GZIP ? gunzip : u->packing == ZIP ? unzip : unzstd)
			       (u, to, cap, got, err));
		u->made += *got;
		if (*got)
			return check_ratio(u, err);
		if (u->raw_end - u->raw_at != before && u->raw_at < u->raw_end)
			continue; /* a header was eaten, or a border passed */
		if (u->raw_eof) {
			u->truncated = !u->between;
			return 0;
		}
		VC_TRY(fill_raw(u, err));
	}
}

/* ---- on a thread of its own ---- */

static void *run_ahead(void *arg)
{
	struct vc_unpack *u = arg;

	pthread_mutex_lock(&u->lock);
	while (!u->over) {
		struct piece *p = &u->piece[u->put % PIECES];
		struct vc_error err = { 0 };

		while (u->put - u->taken == PIECES && !u->stop)
			pthread_cond_wait(&u->moved, &u->lock);
		if (u->stop)
			break;
		pthread_mutex_unlock(&u->lock);
		int rc = undo(u, p->at, PIECE, &p->n, &err);
		p->read = 0;
		pthread_mutex_lock(&u->lock);
		u->over = rc < 0 || !p->n;
		u->rc = rc;
		u->err = err;
		u->put += !u->over;
		pthread_cond_signal(&u->moved);
	}
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

static int take_piece(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got,
		      struct vc_error *err)
{
	struct piece *p = &u->piece[u->taken % PIECES];
	bool end;

	pthread_mutex_lock(&u->lock);
	while (u->put == u->taken && !u->over)
		pthread_cond_wait(&u->moved, &u->lock);
	end = u->put == u->taken;
	pthread_mutex_unlock(&u->lock);
	*got = 0;
	if (end && u->rc < 0 && err)
		*err = u->err;
	if (end)
		return u->rc;
	*got = p->n - p->read < cap ? p->n - p->read : cap;
	memcpy(to, p->at + p->read, *got);
	p->read += *got;
	if (p->read < p->n)
		return 0;
	pthread_mutex_lock(&u->lock);
	u->taken++;
	pthread_cond_signal(&u->moved);
	pthread_mutex_unlock(&u->lock);
	return 0;
}

/* Worth it where the file goes on behind what was read. A pipe may keep its reader waiting, and
 * closing would wait with it. Where there is no thread to be had, it goes without. */
static void begin_ahead(struct vc_unpack *u)
{
	struct stat st;

	if (fstat(u->fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size <= VC_RAW_SIZE)
		return;
	for (size_t i = 0; i < PIECES; i++)
		if (!(u->piece[i].at = malloc(PIECE)))
			return;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->moved, NULL);
	u->threaded = !pthread_create(&u->thread, NULL, run_ahead, u);
	if (!u->threaded) {
		pthread_cond_destroy(&u->moved);
		pthread_mutex_destroy(&u->lock);
	}
}

static void end_ahead(struct vc_unpack *u)
{
	pthread_mutex_lock(&u->lock);
	u->stop = true;
	pthread_cond_signal(&u->moved);
	pthread_mutex_unlock(&u->lock);
	pthread_join(u->thread, NULL);
	pthread_cond_destroy(&u->moved);
	pthread_mutex_destroy(&u->lock);
}

int vc_unpack_open(int fd, const char *name, uint8_t *raw, size_t n, struct vc_unpack **out,
		   struct vc_error *err)
{
	enum packing packing = recognise(raw, n);
	struct vc_unpack *u;

	*out = NULL;
	if (packing == PLAIN)
		return VC_OK;
	u = calloc(1, sizeof(*u));
	VC_HAVE(u, "unpacking", err);
	*u = (struct vc_unpack){ .fd = fd, .name = name, .packing = packing, .raw_end = n,
				 .fetched = n };
	if (packing != ZSTD)
		u->gz_ready = inflateInit2(&u->gz, packing == GZIP ? 15 + 16 : -15) == Z_OK;
	else
		u->zs = ZSTD_createDStream();
	if (!u->gz_ready && !u->zs) {
		free(u);
		return vc_nomem(err, "unpacking");
	}
	u->raw = raw;
	begin_ahead(u);
	*out = u;
	return VC_OK;
}

int vc_unpack_read(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	return u->threaded ? take_piece(u, to, cap, got, err) : undo(u, to, cap, got, err);
}

bool vc_unpack_truncated(const struct vc_unpack *u)
{
	return u->truncated;
}

void vc_unpack_close(struct vc_unpack *u)
{
	if (!u)
		return;
	if (u->threaded)
		end_ahead(u);
	if (u->gz_ready)
		inflateEnd(&u->gz);
	ZSTD_freeDStream(u->zs);
	for (size_t i = 0; i < PIECES; i++)
		free(u->piece[i].at);
	VC_FREE(u->raw, u);
}
