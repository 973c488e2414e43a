/* SPDX-License-Identifier: Apache-2.0 */
/* flight.c - see flight.h.
 *
 * A file of the ring is a row of frames: a head and a zstd frame of records as they were in the
 * journal, whose texts they still refer to. The first one is the state at that moment. Files are
 * named by how many bytes were written before them, so the length that the journal notes says
 * which frames are whole: a recorder that dies in the middle leaves no other trace. */
#define _GNU_SOURCE
#include "tracer/flight.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include "common/vec.h"

enum { FRAME = 16384, /* records: 1 MiB before zstd */
       LEAST_FRAME = 1024, /* of a small ring: 64 KiB */
       PARTS = 8,     /* files in a ring: what is kept is the limit less one part, or more */
       LEVEL = 1 };
#define LARGEST (256ull << 20) /* bytes of one file, where time or steps decide */
#define MAGIC 0x474e4952u      /* "RING" */

struct frame { uint32_t magic, records, packed, unused; };

struct part { uint64_t start, bytes, time_ns, steps; int fd; };

struct vc_flight {
	char *journal;
	struct vc_flight_options o;
	struct vc_fold *fold;
	struct part *part;
	size_t parts;
	struct vc_record *buffer;
	size_t n, frame;            /* records in it; so many are written at once */
	void *packed;
	size_t room;
	uint64_t end, committed, kept, steps, time_ns;
	uint64_t burst;             /* the most that was written between two commits */
	uint64_t pin;               /* keep what starts from here on; UINT64_MAX: nothing */
	bool cut;                   /* the next records begin a new file */
	const char *stopped;
};

static void stop(struct vc_flight *f, const char *why)
{
	if (!f->stopped)
		f->stopped = why;
}

static char *path_of(const struct vc_flight *f, uint64_t start)
{
	return vc_text("%s.%016" PRIx64 ".ring", f->journal, start);
}

/* ---- writing ---- */

static bool pack(struct vc_flight *f, const struct vc_record *rec, size_t n, size_t *bytes)
{
	size_t raw = n * sizeof(*rec), most = ZSTD_compressBound(raw) + sizeof(struct frame), got;
	struct frame head = { .magic = MAGIC, .records = (uint32_t)n };

	if (f->room < most) {
		free(f->packed);
		f->packed = malloc(most);
		f->room = f->packed ? most : 0;
	}
	if (!f->packed)
		return false;
	got = ZSTD_compress((char *)f->packed + sizeof(head), most - sizeof(head), rec, raw, LEVEL);
	if (ZSTD_isError(got) || n > UINT32_MAX)
		return false;
	head.packed = (uint32_t)got;
	memcpy(f->packed, &head, sizeof(head));
	*bytes = sizeof(head) + got;
	return true;
}

static bool write_part(const struct vc_flight *f, const struct part *p, size_t n)
{
	char *path = path_of(f, p->start);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	size_t at = 0;
	bool ok = fd >= 0;

	while (ok && at < n) {
		ssize_t got = pwrite(fd, (char *)f->packed + at, n - at, (off_t)(p->bytes + at));

		if (got < 0 && errno == EINTR)
			continue;
		ok = got > 0;
		at += ok ? (size_t)got : 0;
	}
	if (fd >= 0 && close(fd) < 0)
		ok = false;
	free(path);
	return ok;
}

static void write_frame(struct vc_flight *f, const struct vc_record *rec, size_t n)
{
	struct part *p = &f->part[f->parts - 1];
	size_t bytes = 0;

	if (!rec || !pack(f, rec, n, &bytes)) {
		stop(f, "the recorder ran out of memory");
	} else if (!write_part(f, p, bytes)) {
		stop(f, errno == ENOSPC ? "the disk is full" :
		     errno == EDQUOT ? "the disk quota is used up" :
		     "the ring of the recording could not be written");
	} else {
		p->bytes += bytes;
		f->end += bytes;
		f->kept += bytes;
	}
}

static void begin_part(struct vc_flight *f)
{
	size_t n = 0;
	struct vc_record *state;

	if (!vc_vec_one(f->part, f->parts)) {
		stop(f, "the recorder ran out of memory");
		return;
	}
	f->part[f->parts++] = (struct part){ .start = f->end, .time_ns = f->time_ns,
					     .steps = f->steps, .fd = -1 };
	state = vc_fold_records(f->fold, f->time_ns, &n);
	write_frame(f, state, n);
	free(state);
	f->cut = false;
}

static struct vc_flight *make(const char *journal, struct vc_error *err)
{
	struct vc_flight *f = calloc(1, sizeof(*f));

	if (f) {
		f->journal = strdup(journal);
		f->fold = vc_fold_new();
		f->buffer = malloc(FRAME * sizeof(*f->buffer));
		f->pin = UINT64_MAX;
		f->frame = FRAME;
	}
	if (f && f->journal && f->fold && f->buffer)
		return f;
	vc_flight_free(f);
	vc_nomem(err, "the ring of a recording");
	return NULL;
}

struct vc_flight *vc_flight_new(const char *journal, const struct vc_flight_options *o,
				struct vc_error *err)
{
	struct vc_flight *f = make(journal, err);

	if (!f)
		return NULL;
	f->o = *o;
	f->cut = true;
	while (o->keep_bytes && f->frame > LEAST_FRAME &&
	       f->frame * sizeof(struct vc_record) > o->keep_bytes / PARTS / 2)
		f->frame /= 2; /* what is written at once is a small part of the ring */
	return f;
}

void vc_flight_free(struct vc_flight *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->parts; i++)
		if (f->part[i].fd >= 0)
			close(f->part[i].fd);
	vc_fold_free(f->fold);
	VC_FREE(f->journal, f->part, f->buffer, f->packed, f);
}

static void remove_part(struct vc_flight *f, size_t i)
{
	char *path = path_of(f, f->part[i].start);

	if (path)
		unlink(path);
	free(path);
}

void vc_flight_remove(struct vc_flight *f)
{
	for (size_t i = 0; i < f->parts; i++)
		remove_part(f, i);
}

const char *vc_flight_stopped(const struct vc_flight *f)
{
	return f->stopped;
}

struct vc_fold_totals vc_flight_totals(const struct vc_flight *f)
{
	return vc_fold_totals(f->fold);
}

/* Is the newest file so large that another one should follow? */
static bool is_long(const struct vc_flight *f)
{
	const struct part *p = f->parts ? &f->part[f->parts - 1] : NULL;
	uint64_t most = f->o.keep_bytes ? f->o.keep_bytes / PARTS : LARGEST;
	uint64_t steps = f->o.keep_steps ? f->o.keep_steps / PARTS : 0;

	if (!p)
		return false;
	return p->bytes >= (f->o.nothing ? LARGEST / 32 : most) ||
	       (f->o.keep_ns && f->time_ns - p->time_ns >= f->o.keep_ns / PARTS) ||
	       (f->o.keep_steps && f->steps - p->steps >= (steps ? steps : 1));
}

void vc_flight_put(struct vc_flight *f, const struct vc_record *rec)
{
	bool step = rec->kind == VC_EV_MARK && rec->flags == VC_MARK_STEP;

	if (f->stopped)
		return;
	if (!f->parts)
		begin_part(f);
	if (!vc_fold_put(f->fold, rec))
		stop(f, "the recorder ran out of memory");
	f->buffer[f->n++] = *rec;
	if (rec->time_ns > f->time_ns)
		f->time_ns = rec->time_ns;
	f->steps += step;
	/* between two steps, where steps decide */
	if ((step || (!f->o.keep_steps && vc_record_is_whole(rec))) && is_long(f))
		f->cut = true;
}

bool vc_flight_full(const struct vc_flight *f)
{
	return f->n == f->frame || (f->cut && f->n);
}

bool vc_flight_ahead(const struct vc_flight *f)
{
	return f->end != f->committed;
}

uint64_t vc_flight_store(struct vc_flight *f)
{
	if (f->n && !f->stopped)
		write_frame(f, f->buffer, f->n);
	f->n = 0;
	if (f->cut && f->parts && !f->stopped)
		begin_part(f);
	return f->end;
}

/* What may be written before anything goes again: a file's part of the ring, or as much as was ever
 * written between two looks, a state among it. */
static uint64_t room_for_next(const struct vc_flight *f)
{
	uint64_t part = f->o.keep_bytes / PARTS;

	return f->burst > part ? f->burst : part;
}

/* May the oldest file go, because what follows is enough? It must be a whole beginning. */
static bool is_spare(const struct vc_flight *f)
{
	const struct part *next = f->parts > 1 ? &f->part[1] : NULL;

	if (!next || next->start >= f->committed || f->part[0].start >= f->pin)
		return false;
	if (f->o.nothing || f->pin != UINT64_MAX)
		return true;
	return (f->o.keep_bytes && f->kept + room_for_next(f) > f->o.keep_bytes) ||
	       (f->o.keep_ns && f->time_ns - next->time_ns >= f->o.keep_ns) ||
	       (f->o.keep_steps && f->steps - next->steps >= f->o.keep_steps);
}

void vc_flight_committed(struct vc_flight *f)
{
	if (f->committed && f->end - f->committed > f->burst)
		f->burst = f->end - f->committed;
	f->committed = f->end;
	while (is_spare(f)) {
		remove_part(f, 0);
		f->kept -= f->part[0].bytes;
		if (f->part[0].fd >= 0)
			close(f->part[0].fd);
		memmove(f->part, f->part + 1, --f->parts * sizeof(*f->part));
	}
}

void vc_flight_pin(struct vc_flight *f, bool on)
{
	if (!on) {
		f->pin = UINT64_MAX;
		return;
	}
	f->pin = f->end;
	begin_part(f);
}

/* ---- reading ---- */

int vc_flight_hold(struct vc_flight *f)
{
	int r = 0;

	for (size_t i = 0; i < f->parts; i++) {
		char *path = path_of(f, f->part[i].start);

		if (path && f->part[i].fd < 0)
			f->part[i].fd = open(path, O_RDONLY | O_CLOEXEC);
		r = f->part[i].fd < 0 ? -1 : r;
		free(path);
	}
	return r;
}

/* The frame at that place; malloc'ed records, NULL: there is no whole one. */
static struct vc_record *read_frame(int fd, uint64_t at, uint64_t end, struct frame *head)
{
	struct vc_record *rec;
	char *packed;
	size_t raw;
	bool ok;

	if (at + sizeof(*head) > end ||
	    pread(fd, head, sizeof(*head), (off_t)at) != (ssize_t)sizeof(*head) ||
	    head->magic != MAGIC || head->packed > end - at - sizeof(*head))
		return NULL;
	raw = head->records * sizeof(*rec);
	packed = malloc(head->packed + 1u);
	rec = malloc(raw + 1);
	ok = packed && rec && pread(fd, packed, head->packed, (off_t)(at + sizeof(*head))) ==
			(ssize_t)head->packed &&
	     ZSTD_decompress(rec, raw + 1, packed, head->packed) == raw;
	free(packed);
	if (!ok)
		VC_FREE(rec);
	return ok ? rec : NULL;
}

void vc_flight_seal(struct vc_flight *f, struct vc_journal_reader *r, struct vc_trace_file *out)
{
	bool first = true;

	if (vc_flight_hold(f) < 0)
		vc_trace_file_stop(out, "a part of the ring could not be read");
	for (size_t i = 0; i < f->parts; i++) {
		const struct part *p = &f->part[i];
		struct frame head = { 0 };
		uint64_t at = 0;

		if (f->pin != UINT64_MAX && p->start < f->pin)
			continue;
		for (size_t k = 0; at < p->bytes; k++, at += sizeof(head) + head.packed) {
			struct vc_record *rec = read_frame(p->fd, at, p->bytes, &head);

			if (!rec) {
				vc_trace_file_stop(out, "a part of the ring could not be read");
				break;
			}
			if (k || first) /* later states are known from what came before */
				vc_trace_file_put(out, r, rec, head.records);
			free(rec);
			first = false;
			vc_trace_file_store(out, false);
		}
	}
}

/* ---- after a recorder that was killed ---- */

VC_COMPARE(by_start, struct part, VC_ORDER(x->start, y->start))

static int find_parts(struct vc_flight *f, struct vc_error *err)
{
	const char *slash = strrchr(f->journal, '/'), *name = slash ? slash + 1 : f->journal;
	char *dir = slash ? strndup(f->journal, (size_t)(slash - f->journal)) : strdup(".");
	DIR *d = dir ? opendir(dir) : NULL;
	size_t n = strlen(name);
	struct dirent *e;
	int r = 0;

	while (d && r == 0 && (e = readdir(d))) {
		struct part p = { .fd = -1 };
		int end = 0;

		if (strncmp(e->d_name, name, n) != 0 ||
		    sscanf(e->d_name + n, ".%16" SCNx64 ".ring%n", &p.start, &end) != 1 || !end)
			continue;
		if (!vc_vec_one(f->part, f->parts))
			r = vc_nomem(err, "the ring of a recording");
		else
			f->part[f->parts++] = p;
	}
	if (d)
		closedir(d);
	free(dir);
	if (f->parts)
		qsort(f->part, f->parts, sizeof(*f->part), by_start);
	return r;
}

struct vc_flight *vc_flight_found(const char *journal, uint64_t valid, struct vc_error *err)
{
	struct vc_flight *f = make(journal, err);

	if (f && (find_parts(f, err) < 0 || !f->parts)) {
		vc_flight_free(f);
		return NULL;
	}
	for (size_t i = 0; f && i < f->parts; i++) {
		struct part *p = &f->part[i];
		uint64_t end = i + 1 < f->parts ? f->part[i + 1].start : UINT64_MAX;

		end = end < valid ? end : valid;
		p->bytes = end > p->start ? end - p->start : 0;
		f->kept += p->bytes;
	}
	if (f)
		f->end = f->committed = valid;
	return f;
}
