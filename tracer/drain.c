/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c - see drain.h.
 *
 * A record stays in its ring until the block that holds it has been written, so that nothing is
 * lost whichever process dies when: the journal says how many bytes of the partial trace are
 * valid. */
#define _GNU_SOURCE
#include "tracer/drain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/codec.h"
#include "common/param.h"
#include "common/vec.h"

/* TURN: batches of one process before the next one has its turn; four full rings. WHOLE: all that a
 * journal can hold. */
enum { BATCH = 1024, TURN = 4 * VC_RING_RECORDS / BATCH,
       WHOLE = VC_JOURNAL_RINGS * (VC_RING_RECORDS / BATCH + 1) };

struct stream { /* one journal on its way into one trace */
	char *journal, *path, *part; /* part: the trace until it is whole */
	struct vc_journal_reader *reader;
	struct vc_journal_decoder *decoder;
	struct vc_meta *meta;
	struct vc_output *out;       /* what the encoder wrote since the last flush */
	struct vc_encoder *encoder;
	int fd;
	uint64_t bytes, events, missing;
	const char *stopped;
	bool finished, orderly, cpu;
	uint8_t how[VC_CAPS];
	uint64_t dropped;
};

struct vc_drain {
	struct vc_drain_options o;
	struct stream **stream;
	size_t n;
	bool named;                  /* the plain name is taken */
};

/* A trace is renamed to its name at the end: /dev/null would become a file, and a folder cannot
 * be one. */
static int check_name(const char *out, struct vc_error *err)
{
	struct stat st;

	if (strcmp(out, "-") == 0)
		return vc_fail(err, VC_EIO,
			       "a recording cannot go to standard output: name a file");
	if (stat(out, &st) == 0 && !S_ISREG(st.st_mode))
		return vc_fail(err, VC_EIO, "cannot write %s: it is %s", out,
			       S_ISDIR(st.st_mode) ? "a directory" :
						     "not a file that can be replaced");
	return 0;
}

struct vc_drain *vc_drain_new(const struct vc_drain_options *o, struct vc_error *err)
{
	struct vc_drain *d;

	if (check_name(o->out, err) < 0)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		vc_nomem(err, "the recorder");
	else
		d->o = *o;
	return d;
}

static void stream_free(struct stream *s)
{
	vc_encoder_free(s->encoder);
	vc_output_close(s->out);
	vc_journal_decoder_free(s->decoder);
	vc_meta_free(s->meta);
	vc_journal_close(s->reader);
	if (s->fd >= 0)
		close(s->fd);
	VC_FREE(s->journal, s->path, s->part, s);
}

void vc_drain_free(struct vc_drain *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		stream_free(d->stream[i]);
	VC_FREE(d->stream, d);
}

/* ---- names ---- */

static char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!s)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

static long fact_number(struct vc_journal_reader *r, const char *key, long otherwise)
{
	char buf[64];

	return vc_journal_fact(r, key, buf, sizeof(buf)) ? strtol(buf, NULL, 10) : otherwise;
}

/* Its number in a larger job, by what torchrun, Slurm or Open MPI tell their processes; -1: none.
 */
static long rank_of(struct vc_journal_reader *r)
{
	for (int i = 0; i < VC_JOURNAL_LAUNCHERS; i++)
		if (fact_number(r, vc_journal_launcher[i].world, 1) > 1)
			return fact_number(r, vc_journal_launcher[i].rank, -1);
	return -1;
}

/* run.vct for the first process, run.rank3.vct for ranks of a larger job, run.4711.vct for
 * others. */
static char *name_trace(struct vc_drain *d, struct vc_journal_reader *r)
{
	const char *out = d->o.out, *dot = strrchr(out, '.'), *slash = strrchr(out, '/');
	int stem = dot && dot > (slash ? slash + 1 : out) ? (int)(dot - out) : (int)strlen(out);
	long rank = rank_of(r);

	if (rank >= 0) {
		char *s = text("%.*s.rank%ld%s", stem, out, rank, out + stem);
		bool taken = false;

		for (size_t i = 0; s && i < d->n; i++)
			taken = taken || (d->stream[i]->path && strcmp(d->stream[i]->path, s) == 0);
		if (!taken)
			return s;
		free(s);
		return text("%.*s.rank%ld.%lld%s", stem, out, rank,
			    (long long)vc_journal_header(r)->pid, out + stem);
	}
	if (!d->named) {
		d->named = true;
		return strdup(out);
	}
	return text("%.*s.%lld%s", stem, out, (long long)vc_journal_header(r)->pid, out + stem);
}

/* ---- one stream ---- */

static void stop(struct stream *s, const char *why)
{
	if (!s->stopped)
		s->stopped = why;
	atomic_store(&vc_journal_header(s->reader)->state, VC_JOURNAL_CLOSED);
}

static void add_params(struct stream *s)
{
	char buf[1024], key[32];

	for (int i = 0; i < 64; i++) {
		double value;
		char *eq;

		snprintf(key, sizeof(key), "param%d", i);
		if (!vc_journal_fact(s->reader, key, buf, sizeof(buf)))
			return;
		eq = strchr(buf, '=');
		if (!eq)
			continue;
		*eq = '\0';
		if (vc_parse_real(eq + 1, &value, NULL) == 0)
			vc_meta_param(s->meta, buf, value);
	}
}

static void describe(struct stream *s)
{
	char buf[4096];

	vc_journal_describe(s->reader, s->meta);
	memcpy(s->how, s->meta->how, sizeof(s->how));
	s->dropped = s->meta->dropped;
	if (vc_journal_fact(s->reader, "command", buf, sizeof(buf)))
		vc_meta_set(&s->meta->command, buf);
	s->cpu = vc_journal_fact(s->reader, "plane", buf, sizeof(buf)) && strcmp(buf, "cpu") == 0;
	if (s->cpu && s->meta->devices && !s->meta->device[0].name)
		vc_meta_set(&s->meta->device[0].name, "CPU");
	add_params(s);
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t got = write(fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

/* What the encoder has ready goes to the file, then the journal learns of it. */
static void store(struct stream *s)
{
	size_t n = 0;
	char *p = vc_output_take(s->out, &n);

	if (!p) {
		stop(s, "the recorder ran out of memory");
	} else if (n && !s->stopped && write_all(s->fd, p, n) < 0) {
		stop(s, errno == ENOSPC ? "the disk is full" :
			errno == EDQUOT ? "the disk quota is used up" :
			errno == EFBIG ? "the trace reached the limit on file sizes (ulimit -f)" :
			"the trace could not be written");
		if (ftruncate(s->fd, (off_t)s->bytes) < 0)
			s->stopped = "the trace could not be written";
	} else if (!s->stopped) {
		s->bytes += n;
	}
	free(p);
	vc_journal_commit(s->reader, s->bytes);
}

static int open_trace(struct stream *s, struct vc_error *err)
{
	s->fd = open(s->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd < 0)
		return vc_fail(err, VC_EIO, "cannot write %s: %s", s->part, strerror(errno));
	s->out = vc_output_memory(err);
	s->encoder = s->out ? vc_encoder_new(s->out, s->meta, NULL, err) : NULL;
	return s->encoder ? 0 : VC_ENOMEM;
}

static int stream_open(struct stream *s, const char *journal, struct vc_error *err)
{
	s->fd = -1;
	s->journal = strdup(journal);
	s->reader = vc_journal_open(journal, true, err);
	if (!s->reader)
		return VC_EIO;
	s->meta = vc_meta_new(err);
	s->decoder = s->meta ? vc_journal_decoder_new(s->meta, err) : NULL;
	if (!s->decoder || !s->journal)
		return VC_ENOMEM;
	vc_meta_set(&s->meta->source, "vct");
	vc_meta_set(&s->meta->producer, "vramcast " VC_VERSION " record");
	return 0;
}

/* The names go into the journal too, so that recovery needs nothing else. */
static int stream_name(struct vc_drain *d, struct stream *s, struct vc_error *err)
{
	struct vc_journal *j = vc_journal_header(s->reader);
	char key[32], *real;

	s->path = name_trace(d, s->reader);
	s->part = s->path ? text("%s.part", s->path) : NULL;
	VC_HAVE(s->part, "a file name", err);
	if (d->o.command)
		vc_journal_put_fact(j, "command", d->o.command);
	for (size_t i = 0; i < d->o.params && i < 64; i++) {
		snprintf(key, sizeof(key), "param%zu", i);
		vc_journal_put_fact(j, key, d->o.param[i]);
	}
	describe(s);
	if (open_trace(s, err) < 0)
		return VC_EIO;
	real = realpath(s->part, NULL);
	if (real) {
		vc_journal_put_fact(j, "part", real);
		real[strlen(real) - 5] = '\0';
		vc_journal_put_fact(j, "trace", real);
	}
	free(real);
	return 0;
}

/* Moves what is there; true when something was. */
static bool stream_move(struct vc_drain *d, struct stream *s, enum vc_journal_way way)
{
	struct vc_record rec[BATCH];
	struct vc_event ev[BATCH];
	struct vc_error err = { 0 };
	size_t n, k = 0;

	n = vc_journal_next(s->reader, rec, BATCH, way, &s->missing);
	if (n && !s->encoder && !s->stopped && stream_name(d, s, &err) < 0)
		stop(s, "the trace could not be created");
	for (size_t i = 0; i < n && !s->stopped; i++) {
		int r = vc_journal_decode(s->decoder, s->reader, &rec[i], &ev[k], &err);

		if (r < 0)
			stop(s, "the recorder ran out of memory");
		k += r > 0;
	}
	if (k && !s->stopped && vc_encoder_append(s->encoder, ev, k, &err) < 0)
		stop(s, "the trace could not be encoded");
	s->events += s->stopped ? 0 : k;
	return n > 0;
}

/* What is there, but no more than so many batches: a process that never stops must not keep us for
 * ever. */
static void stream_drain(struct vc_drain *d, struct stream *s, bool dead, int turn)
{
	enum vc_journal_way way = dead ? VC_JOURNAL_DEAD : VC_JOURNAL_WAIT;
	struct vc_error err = { 0 };

	if (!dead && vc_journal_pressure(s->reader) > VC_RING_RECORDS / 4)
		way = VC_JOURNAL_HURRY;
	for (int i = 0; i < turn && stream_move(d, s, way); i++)
		if (vc_journal_uncommitted(s->reader) > VC_RING_RECORDS / 8 &&
		    vc_journal_pressure(s->reader) > VC_RING_RECORDS / 4) {
			if (s->encoder && !s->stopped && vc_encoder_flush(s->encoder, &err) < 0)
				stop(s, "the trace could not be encoded");
			if (s->out)
				store(s);
			else
				vc_journal_commit(s->reader, 0);
		}
	if (d->o.max_bytes && s->bytes > d->o.max_bytes && !s->stopped)
		stop(s, "the trace reached --max-size");
}

static void stream_finish(struct vc_drain *d, struct stream *s, bool dead)
{
	struct vc_error err = { 0 };

	if (s->finished)
		return;
	stream_drain(d, s, true, dead ? WHOLE : TURN);
	s->finished = true;
	s->orderly = atomic_load(&vc_journal_header(s->reader)->state) == VC_JOURNAL_ENDED;
	if (!dead)
		stop(s, "the process was still running when the recording ended");
	describe(s);
	if (s->encoder) {
		const char *why = s->stopped;

		s->meta->gaps += s->missing != 0 || s->stopped;
		s->stopped = NULL;
		if (vc_encoder_finish(s->encoder, &err) < 0)
			stop(s, "the trace could not be encoded");
		store(s);
		s->stopped = why ? why : s->stopped;
		if (close(s->fd) < 0 || rename(s->part, s->path) < 0)
			stop(s, "the trace could not be renamed");
		s->fd = -1;
	}
	unlink(s->journal);
}

/* ---- all streams ---- */

static bool is_known(const struct vc_drain *d, const char *path)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->stream[i]->journal, path) == 0)
			return true;
	return false;
}

static int add(struct vc_drain *d, const char *path, struct vc_error *err)
{
	struct stream *s = calloc(1, sizeof(*s));

	VC_HAVE(s, "a journal", err);
	if (stream_open(s, path, err) < 0) { /* half-made: the next look finds it whole */
		stream_free(s);
		return 0;
	}
	if (!vc_vec_one(d->stream, d->n)) {
		stream_free(s);
		return vc_nomem(err, "a journal");
	}
	d->stream[d->n++] = s;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = vc_journal_header((*(struct stream *const *)a)->reader)->start_mono_ns;
	uint64_t y = vc_journal_header((*(struct stream *const *)b)->reader)->start_mono_ns;

	return x < y ? -1 : x > y;
}

static int scan(struct vc_drain *d, struct vc_error *err)
{
	size_t before = d->n;
	DIR *dir = opendir(d->o.dir);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return vc_fail(err, VC_EIO, "cannot read %s: %s", d->o.dir, strerror(errno));
	while (r == 0 && (e = readdir(dir))) {
		size_t n = strlen(e->d_name);
		char *path;

		if (n < 5 || strcmp(e->d_name + n - 4, ".vcj") != 0)
			continue;
		path = text("%s/%s", d->o.dir, e->d_name);
		if (!path)
			r = vc_nomem(err, "a file name");
		else if (!is_known(d, path))
			r = add(d, path, err);
		free(path);
	}
	closedir(dir);
	if (d->n != before) /* the first process gets the plain name */
		qsort(d->stream, d->n, sizeof(*d->stream), by_start);
	return r;
}

long vc_drain_step(struct vc_drain *d, struct vc_error *err)
{
	uint64_t most = 0;

	if (scan(d, err) < 0)
		return err ? err->status : VC_EIO;
	for (size_t i = 0; i < d->n; i++) {
		struct stream *s = d->stream[i];
		uint64_t waits = s->finished ? 0 : vc_journal_pressure(s->reader);

		if (s->finished)
			continue;
		stream_drain(d, s, false, TURN);
		if (waits > most)
			most = waits;
	}
	return (long)most;
}

size_t vc_drain_settle(struct vc_drain *d)
{
	size_t running = 0;

	for (size_t i = 0; i < d->n; i++)
		if (d->stream[i]->finished)
			continue;
		else if (vc_journal_alive(d->stream[i]->reader))
			running++;
		else
			stream_finish(d, d->stream[i], true);
	return running;
}

void vc_drain_finish(struct vc_drain *d)
{
	struct vc_error err = { 0 };

	scan(d, &err);
	for (size_t i = 0; i < d->n; i++)
		if (!d->stream[i]->finished)
			stream_finish(d, d->stream[i], !vc_journal_alive(d->stream[i]->reader));
}

size_t vc_drain_files(const struct vc_drain *d)
{
	return d->n;
}

struct vc_drain_file vc_drain_file(const struct vc_drain *d, size_t i)
{
	const struct stream *s = d->stream[i];
	struct vc_drain_file f = { .path = s->path,
				  .torch = s->meta->torch,
				  .gpu = s->meta->devices ? s->meta->device[0].name : NULL,
				  .stopped = s->stopped,
				  .device = s->meta->devices ? s->meta->device[0].index : 0,
				  .pid = s->meta->pid,
				  .events = s->events,
				  .bytes = s->bytes,
				  .dropped = s->dropped,
				  .missing = s->missing,
				  .unmatched = s->meta->unmatched_frees,
				  .note = s->meta->note,
				  .notes = s->meta->notes,
				  .cpu = s->cpu,
				  .orderly = s->orderly,
				  .totals = vc_journal_totals(s->decoder) };

	memcpy(f.how, s->how, sizeof(f.how));
	return f;
}

/* ---- recovery ---- */

/* Takes over the valid part of the trace that the recorder had begun. */
static int resume(struct stream *s, const char *part, uint64_t valid, struct vc_error *err)
{
	struct vc_event ev[BATCH];
	struct vc_input *in;
	struct vc_decoder *old = NULL;
	long n = 0;

	if (truncate(part, (off_t)valid) < 0)
		return vc_fail(err, VC_EIO, "cannot cut %s: %s", part, strerror(errno));
	in = vc_input_raw(part, err);
	if (in)
		old = vc_decoder_new(in, s->meta, err);
	while (old && (n = vc_decoder_next(old, ev, BATCH, err)) > 0) {
		for (long i = 0; i < n; i++)
			if (vc_journal_resume(s->decoder, &ev[i], err) < 0)
				n = VC_ENOMEM;
		if (n > 0 && vc_encoder_append(s->encoder, ev, (size_t)n, err) < 0)
			n = -1;
		s->events += n > 0 ? (uint64_t)n : 0;
	}
	if (!old)
		n = -1;
	vc_decoder_free(old);
	vc_input_close(in);
	return n < 0 ? -1 : 0;
}

static int recover_into(struct vc_drain *d, struct stream *s, const char *out, struct vc_error *err)
{
	char part[4096], trace[4096];
	uint64_t valid = vc_journal_stored(s->reader);
	bool begun = vc_journal_fact(s->reader, "part", part, sizeof(part));
	struct stat st;

	if (!begun || stat(part, &st) < 0 || (uint64_t)st.st_size < valid)
		valid = 0;
	if (!out)
		out = vc_journal_fact(s->reader, "trace", trace, sizeof(trace));
	s->path = out ? strdup(out) : text("%s.vct", s->journal);
	s->part = s->path ? text("%s.recovered", s->path) : NULL;
	VC_HAVE(s->part, "a file name", err);
	if (open_trace(s, err) < 0)
		return -1;
	if (valid && resume(s, part, valid, err) < 0)
		return -1;
	describe(s);
	stream_finish(d, s, true);
	if (s->stopped)
		return vc_fail(err, VC_EIO, "%s: %s", s->path, s->stopped);
	if (begun)
		unlink(part);
	return 0;
}

int vc_drain_recover(const char *journal, const char *out, char **path, uint64_t *events,
		     struct vc_error *err)
{
	struct vc_drain d = { 0 };
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	*path = NULL;
	VC_HAVE(s, "a journal", err);
	r = out ? check_name(out, err) : 0;
	if (r == 0)
		r = stream_open(s, journal, err);
	if (r == 0 && vc_journal_alive(s->reader))
		r = vc_fail(err, VC_EUSAGE, "%s: process %lld still writes it; wait for its end",
			    journal, (long long)vc_journal_header(s->reader)->pid);
	if (r == 0)
		r = recover_into(&d, s, out, err);
	if (r == 0) {
		*path = s->path;
		s->path = NULL;
		*events = s->events;
	}
	stream_free(s);
	return r;
}
