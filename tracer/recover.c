/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - what a recording that was cut off left behind becomes its trace. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/codec.h"
#include "common/io.h"
#include "tracer/stream.h"

enum { BATCH = 1024 };

/* Takes over the valid part of the trace that the recorder had begun. */
static int resume(struct vc_stream *s, const char *part, uint64_t valid, struct vc_error *err)
{
	struct vc_event ev[BATCH];
	struct vc_input *in;
	struct vc_decoder *old = NULL;
	long n = 0;

	if (truncate(part, (off_t)valid) < 0)
		return vc_fail(err, VC_EIO, "cannot cut %s: %s", part, strerror(errno));
	in = vc_input_raw(part, err);
	if (in)
		old = vc_decoder_new(in, s->file.meta, err);
	while (old && (n = vc_decoder_next(old, ev, BATCH, err)) > 0) {
		for (long i = 0; i < n; i++)
			if (vc_journal_resume(s->file.decoder, &ev[i], err) < 0)
				n = VC_ENOMEM;
		if (n > 0 && vc_encoder_append(s->file.encoder, ev, (size_t)n, err) < 0)
			n = -1;
		s->file.events += n > 0 ? (uint64_t)n : 0;
	}
	if (!old)
		n = -1;
	vc_decoder_free(old);
	vc_input_close(in);
	return n < 0 ? -1 : 0;
}

/* A recording that had no name yet: FILE.vct.journal/NAME becomes FILE.vct, or FILE.PID.vct when
 * that is taken. */
static char *beside(const struct vc_stream *s, const char *journal)
{
	char *dir = realpath(journal, NULL), *slash, *dot, *path, *other, pid[32];

	slash = dir ? strrchr(dir, '/') : NULL;
	if (slash)
		*slash = '\0';
	slash = dir ? strrchr(dir, '/') : NULL;
	dot = dir ? strrchr(dir, '.') : NULL;
	if (!slash || !dot || dot < slash || strcmp(dot, ".journal") != 0) {
		free(dir);
		return vc_text("%s.vct", journal);
	}
	*dot = '\0';
	path = strdup(dir);
	if (path && access(path, F_OK) == 0) {
		snprintf(pid, sizeof(pid), ".%lld", (long long)s->pid);
		other = vc_name_with(dir, pid);
		free(path);
		path = other;
	}
	free(dir);
	return path;
}

/* The recorder was killed when the trace had its name and the journal was still there. */
static int already_whole(struct vc_stream *s, const char *trace, struct vc_error *err)
{
	struct vc_input *in = vc_input_raw(trace, err);
	struct vc_decoder *d = in ? vc_decoder_new(in, s->file.meta, err) : NULL;
	struct vc_event ev[BATCH];
	long n = d ? 0 : -1;

	while (d && (n = vc_decoder_next(d, ev, BATCH, err)) > 0)
		s->file.events += (uint64_t)n;
	vc_decoder_free(d);
	vc_input_close(in);
	s->file.path = strdup(trace);
	if (n == 0)
		unlink(s->journal);
	return n == 0 ? 0 : -1;
}

static int recover_into(struct vc_stream *s, const char *out, struct vc_error *err)
{
	struct vc_flight *ring;
	char part[4096], trace[4096];
	uint64_t valid = vc_journal_stored(s->reader), ring_bytes;
	bool begun = vc_journal_fact(s->reader, "part", part, sizeof(part));
	struct stat st;

	ring_bytes = valid;
	if (begun && access(part, F_OK) < 0 &&
	    vc_journal_fact(s->reader, "trace", trace, sizeof(trace)) && access(trace, F_OK) == 0)
		return already_whole(s, trace, err);
	if (!begun || stat(part, &st) < 0 || (uint64_t)st.st_size < valid)
		valid = 0;
	if (!out)
		out = vc_journal_fact(s->reader, "trace", trace, sizeof(trace));
	if (vc_trace_file_begin(&s->file, out ? strdup(out) : beside(s, s->journal), ".recovered",
				err) < 0)
		return -1;
	s->named = true;
	ring = vc_flight_found(s->journal, ring_bytes, err);
	if (ring) {
		vc_trace_file_describe(&s->file, s->reader, s->journal);
		vc_flight_seal(ring, s->reader, &s->file);
		valid = 0;
	}
	if (valid && resume(s, part, valid, err) < 0)
		return -1;
	vc_trace_file_describe(&s->file, s->reader, s->journal);
	vc_stream_finish(s, true, NULL, NULL);
	if (s->file.stopped)
		vc_flight_free(ring);
	if (s->file.stopped)
		return vc_fail(err, VC_EIO, "%s: %s", s->file.path, s->file.stopped);
	if (begun)
		unlink(part);
	if (ring)
		vc_flight_remove(ring);
	vc_flight_free(ring);
	return 0;
}

struct vc_drain_lost vc_drain_left(const char *dir)
{
	char *path = vc_text("%s/" VC_JOURNAL_LOST, dir);
	struct vc_drain_lost l = { 0 };
	struct vc_journal_lost was;
	FILE *f = path ? fopen(path, "rb") : NULL;

	if (f && fread(&was, sizeof(was), 1, f) == 1) {
		l.events = atomic_load(&was.events);
		l.pid = atomic_load(&was.pid);
		for (size_t i = 0; i < VC_LOST_WHYS; i++)
			l.processes[i] = atomic_load(&was.processes[i]);
	}
	if (f)
		fclose(f);
	free(path);
	return l;
}

int vc_drain_recover(const char *journal, const char *out, char **path, uint64_t *events,
		     struct vc_error *err)
{
	struct vc_stream *s = calloc(1, sizeof(*s));
	int r;

	*path = NULL;
	VC_HAVE(s, "a journal", err);
	r = out ? vc_drain_name(out, err) : 0;
	if (r == 0)
		r = vc_stream_open(s, journal, err);
	if (r == 0 && vc_journal_alive(s->reader))
		r = vc_fail(err, VC_EUSAGE, "%s: process %lld still writes it; wait for its end",
			    journal, (long long)vc_journal_header(s->reader)->pid);
	if (r == 0)
		r = recover_into(s, out, err);
	if (r == 0) {
		*path = s->file.path;
		s->file.path = NULL;
		*events = s->file.events;
	}
	vc_stream_free(s);
	return r;
}
