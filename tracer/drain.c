/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c - see drain.h: all journals of a recording. */
#define _GNU_SOURCE
#include "tracer/drain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/map.h"
#include "common/vec.h"
#include "tracer/stream.h"

struct vc_drain {
	struct vc_drain_options o;
	struct vc_stream **stream;
	size_t n;
	bool named;                  /* the plain name is taken */
	struct vc_map known;         /* journals by the hash of their names */
	struct vc_journal_lost *lost;
	size_t unread;               /* journals that could not be opened at the last look */
};

/* A trace is renamed to its name at the end: /dev/null would become a file, and a folder cannot
 * be one. */
int vc_drain_name(const char *out, struct vc_error *err)
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

/* Laid out, not only reserved: it is for the moment when there is no room. */
static int make_lost(struct vc_drain *d, struct vc_error *err)
{
	char path[4400];
	int fd, full;

	snprintf(path, sizeof(path), "%s/" VC_JOURNAL_LOST, d->o.dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	full = posix_fallocate(fd, 0, sizeof(*d->lost));
	d->lost = full ? MAP_FAILED : mmap(NULL, sizeof(*d->lost), PROT_READ | PROT_WRITE,
					   MAP_SHARED, fd, 0);
	close(fd);
	if (d->lost != MAP_FAILED)
		return 0;
	d->lost = NULL;
	return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(full ? full : errno));
}

struct vc_drain *vc_drain_new(const struct vc_drain_options *o, struct vc_error *err)
{
	struct vc_drain *d;

	if (vc_drain_name(o->out, err) < 0)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d) {
		vc_nomem(err, "the recorder");
		return NULL;
	}
	d->o = *o;
	if (make_lost(d, err) < 0) {
		free(d);
		return NULL;
	}
	return d;
}

void vc_drain_free(struct vc_drain *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		vc_stream_free(d->stream[i]);
	if (d->lost)
		munmap(d->lost, sizeof(*d->lost));
	vc_map_fini(&d->known);
	VC_FREE(d->stream, d);
}

/* ---- names ---- */

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
		char *s = vc_text("%.*s.rank%ld%s", stem, out, rank, out + stem);
		bool taken = false;

		for (size_t i = 0; s && i < d->n; i++) {
			const char *path = d->stream[i]->file.path;

			taken = taken || (path && strcmp(path, s) == 0);
		}
		if (!taken)
			return s;
		free(s);
		return vc_text("%.*s.rank%ld.%lld%s", stem, out, rank,
			    (long long)vc_journal_header(r)->pid, out + stem);
	}
	if (!d->named) {
		d->named = true;
		return strdup(out);
	}
	return vc_text("%.*s.%lld%s", stem, out, (long long)vc_journal_header(r)->pid, out + stem);
}

static int name_stream(void *who, struct vc_stream *s, struct vc_error *err)
{
	struct vc_drain *d = who;

	return vc_stream_name(s, name_trace(d, s->reader), &d->o, err);
}

/* ---- all streams ---- */

static uint64_t hash_of(const char *name)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	while (*name)
		h = (h ^ (unsigned char)*name++) * 1099511628211u;
	return h;
}

static int add(struct vc_drain *d, const char *path, uint64_t name, struct vc_error *err)
{
	struct vc_stream *s = calloc(1, sizeof(*s));

	VC_HAVE(s, "a journal", err);
	if (vc_stream_open(s, path, err) < 0) { /* half-made: the next look finds it whole */
		vc_stream_free(s);
		d->unread++;
		return 0;
	}
	if (!vc_vec_one(d->stream, d->n) || !vc_map_put(&d->known, name, 1)) {
		vc_stream_free(s);
		return vc_nomem(err, "a journal");
	}
	d->stream[d->n++] = s;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct vc_stream *x = *(struct vc_stream *const *)a;
	const struct vc_stream *y = *(struct vc_stream *const *)b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int scan(struct vc_drain *d, struct vc_error *err)
{
	size_t before = d->n;
	DIR *dir = opendir(d->o.dir);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return vc_fail(err, VC_EIO, "cannot read %s: %s", d->o.dir, strerror(errno));
	d->unread = 0;
	while (r == 0 && (e = readdir(dir))) {
		size_t n = strlen(e->d_name);
		uint64_t name = hash_of(e->d_name);
		char *path;

		if (n < 5 || strcmp(e->d_name + n - 4, ".vcj") != 0 ||
		    vc_map_get(&d->known, name))
			continue;
		path = vc_text("%s/%s", d->o.dir, e->d_name);
		if (!path)
			r = vc_nomem(err, "a file name");
		else
			r = add(d, path, name, err);
		free(path);
	}
	closedir(dir);
	if (d->n != before) /* the first process gets the plain name */
		qsort(d->stream, d->n, sizeof(*d->stream), by_start);
	return r;
}

/* Ranks of one job seal together: what the others held is part of the answer. */
static void seal_together(struct vc_drain *d)
{
	bool any = false;

	for (size_t i = 0; i < d->n; i++)
		any = any || d->stream[i]->refused;
	for (size_t i = 0; any && i < d->n; i++) {
		struct vc_stream *s = d->stream[i];

		if (!s->refused)
			vc_stream_want(s, "oom");
		s->refused = false;
	}
}

const char *vc_drain_sealed(struct vc_drain *d, bool *failed)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->stream[i]->seals; k++) {
			struct vc_seal *seal = &d->stream[i]->seal[k];

			if (seal->pid || seal->told)
				continue;
			seal->told = true;
			*failed = seal->failed;
			return seal->path;
		}
	return NULL;
}

long vc_drain_step(struct vc_drain *d, struct vc_error *err)
{
	uint64_t most = 0;

	if (scan(d, err) < 0)
		return err ? err->status : VC_EIO;
	for (size_t i = 0; i < d->n; i++) {
		struct vc_stream *s = d->stream[i];
		uint64_t waits = s->finished ? 0 : vc_journal_pressure(s->reader);

		if (s->finished)
			continue;
		vc_stream_drain(s, false, false, name_stream, d);
		if (d->o.max_bytes && s->file.bytes > d->o.max_bytes && !s->file.stopped)
			vc_stream_stop(s, "the trace reached --max-size");
		vc_stream_reap(s, false);
		if (waits > most)
			most = waits;
	}
	seal_together(d);
	return (long)most;
}

/* What was done before the question is in the answer, also of a process not met before. */
void vc_drain_seal(struct vc_drain *d, const char *word)
{
	struct vc_error ignored = { 0 }; /* the next step finds it, too */

	vc_drain_step(d, &ignored);
	for (size_t i = 0; i < d->n; i++)
		vc_stream_want(d->stream[i], word);
}

/* Before anybody's trace is finished, everything is read: one of the others may have been refused a
 * request, for which all seal, and which often ends a whole job at once. How many live. */
static size_t read_last_words(struct vc_drain *d)
{
	size_t living = 0, gone = 0;

	for (size_t i = 0; i < d->n; i++) {
		struct vc_stream *s = d->stream[i];

		s->gone = !s->finished && !vc_journal_alive(s->reader);
		gone += s->gone;
		living += !s->finished && !s->gone;
	}
	for (size_t i = 0; gone && i < d->n; i++)
		if (!d->stream[i]->finished)
			vc_stream_drain(d->stream[i], d->stream[i]->gone, true, name_stream, d);
	if (gone)
		seal_together(d);
	return living;
}

size_t vc_drain_settle(struct vc_drain *d)
{
	size_t living = read_last_words(d);

	for (size_t i = 0; i < d->n; i++)
		if (d->stream[i]->gone && !d->stream[i]->finished)
			vc_stream_finish(d->stream[i], true, name_stream, d);
	return living;
}

void vc_drain_finish(struct vc_drain *d)
{
	struct vc_error err = { 0 };

	scan(d, &err);
	read_last_words(d);
	for (size_t i = 0; i < d->n; i++)
		if (!d->stream[i]->finished)
			vc_stream_finish(d->stream[i], d->stream[i]->gone, name_stream, d);
	for (size_t i = 0; i < d->n; i++)
		vc_stream_reap(d->stream[i], true);
}

struct vc_drain_lost vc_drain_lost(const struct vc_drain *d)
{
	struct vc_drain_lost l = { .events = atomic_load(&d->lost->events),
				   .pid = atomic_load(&d->lost->pid), .unread = d->unread };

	for (size_t i = 0; i < VC_LOST_WHYS; i++)
		l.processes[i] = atomic_load(&d->lost->processes[i]);
	return l;
}

const struct vc_live_page *vc_drain_warning(struct vc_drain *d, double steps)
{
	for (size_t i = 0; i < d->n; i++) {
		struct vc_stream *s = d->stream[i];
		const struct vc_live_page *p = s->live ? vc_live_page(s->live) : NULL;

		if (!p || s->warned || p->left < 0 || p->left > steps)
			continue;
		s->warned = true;
		return p;
	}
	return NULL;
}

bool vc_drain_over(const struct vc_drain *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (!d->stream[i]->whole && !d->stream[i]->over_ns &&
		    !d->stream[i]->file.stopped && !d->stream[i]->finished)
			return false;
	return d->n > 0;
}

size_t vc_drain_files(const struct vc_drain *d)
{
	return d->n;
}

struct vc_drain_file vc_drain_file(const struct vc_drain *d, size_t i)
{
	const struct vc_stream *s = d->stream[i];
	const struct vc_meta *m = s->file.meta;
	struct vc_drain_file f = { .path = s->file.path,
				  .torch = m->torch, .gpu = m->devices ? m->device[0].name : NULL,
				  .stopped = s->file.stopped,
				  .device = m->devices ? m->device[0].index : 0, .pid = s->pid,
				  .events = s->file.events, .bytes = s->file.bytes,
				  .dropped = s->dropped, .missing = s->missing,
				  .unmatched = m->unmatched_frees, .note = m->note,
				  .notes = m->notes, .cpu = s->cpu, .unsealed = s->unsealed,
				  .unwritten = s->unwritten, .sealed = s->seals,
				  .events_seen = s->named, .orderly = s->orderly,
				  .totals = s->totals };

	memcpy(f.how, s->how, sizeof(f.how));
	return f;
}

