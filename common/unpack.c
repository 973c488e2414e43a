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

enum packing { PLAIN, GZIP, ZSTD };

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

static int gunzip(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got, struct vc_error *err)
{
	int r, rc;

	if (u->between) {
		rc = next_member(u, err);
		if (rc || u->between)
			return rc;
	}
	u->gz.next_in = u->raw + u->raw_at;
	u->gz.avail_in = (uInt)(u->raw_end - u->raw_at);
	u->gz.next_out = to;
	u->gz.avail_out = (uInt)(cap < (1u << 30) ? cap : (1u << 30));
	r = inflate(&u->gz, Z_NO_FLUSH);
	u->raw_at = u->raw_end - u->gz.avail_in;
	*got = (size_t)(u->gz.next_out - to);
	if (r == Z_STREAM_END)
		u->between = true;
	else if (r == Z_MEM_ERROR)
		return vc_nomem(err, "unpacking gzip");
	else if (r != Z_OK && r != Z_BUF_ERROR)
		return vc_fail(err, VC_EFORMAT, "%s: damaged gzip data%s%s", u->name,
			       u->gz.msg ? ": " : "", u->gz.msg ? u->gz.msg : "");
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

		VC_TRY(u->packing == GZIP ? gunzip(u, to, cap, got, err) :
					    unzstd(u, to, cap, got, err));
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
	if (packing == GZIP)
		u->gz_ready = inflateInit2(&u->gz, 15 + 16) == Z_OK;
	else
		u->zs = ZSTD_createDStream();
	if (!u->gz_ready && !u->zs) {
		free(u);
		return vc_nomem(err, packing == GZIP ? "unpacking gzip" : "unpacking zstd");
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
