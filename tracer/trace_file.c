/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.c - see trace_file.h. */
#define _GNU_SOURCE
#include "tracer/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "common/param.h"
#include "common/program.h"
#include "common/vec.h"

enum { BATCH = 1024 };

char *vc_text(const char *fmt, ...)
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

char *vc_name_with(const char *path, const char *word)
{
	const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
	int stem = dot && dot > (slash ? slash + 1 : path) ? (int)(dot - path) : (int)strlen(path);

	return vc_text("%.*s%s%s", stem, path, word, path + stem);
}

int vc_trace_file_init(struct vc_trace_file *f, struct vc_error *err)
{
	f->meta = vc_meta_new(err);
	f->decoder = f->meta ? vc_journal_decoder_new(f->meta, err) : NULL;
	if (!f->decoder)
		return VC_ENOMEM;
	vc_meta_set(&f->meta->source, "vct");
	vc_meta_set(&f->meta->producer, "vramcast " VC_VERSION " record");
	return 0;
}

int vc_trace_file_begin(struct vc_trace_file *f, char *path, const char *suffix,
			struct vc_error *err)
{
	int fd;

	f->path = path;
	f->part = path ? vc_text("%s%s", path, suffix) : NULL;
	VC_HAVE(f->part, "a file name", err);
	fd = open(f->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return vc_fail(err, VC_EIO, "cannot write %s: %s", f->part, strerror(errno));
	close(fd);
	f->out = vc_output_memory(err);
	f->encoder = f->out ? vc_encoder_new(f->out, f->meta, NULL, err) : NULL;
	return f->encoder ? 0 : VC_ENOMEM;
}

void vc_trace_file_stop(struct vc_trace_file *f, const char *why)
{
	if (!f->stopped)
		f->stopped = why;
}

void vc_trace_file_put(struct vc_trace_file *f, struct vc_journal_reader *r,
		       const struct vc_record *rec, size_t n)
{
	struct vc_event ev[BATCH];
	struct vc_error err = { 0 };
	size_t k = 0;

	for (size_t i = 0; i < n && !f->stopped; i++) {
		int got = vc_journal_decode(f->decoder, r, &rec[i], &ev[k], &err);

		if (got < 0)
			vc_trace_file_stop(f, "the recorder ran out of memory");
		k += got > 0;
		if ((k == BATCH || (k && i + 1 == n)) && !f->stopped) {
			if (vc_encoder_append(f->encoder, ev, k, &err) < 0)
				vc_trace_file_stop(f, "the trace could not be encoded");
			f->events += f->stopped ? 0 : k;
			k = 0;
		}
	}
}

static int write_all(int fd, const char *p, size_t n, uint64_t at)
{
	while (n) {
		ssize_t got = pwrite(fd, p, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		p += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* No descriptor is kept: there may be thousands of processes. */
static int append(struct vc_trace_file *f, const char *p, size_t n)
{
	int fd = open(f->part, O_WRONLY | O_CLOEXEC), failed, why;

	if (fd < 0)
		return -1;
	failed = write_all(fd, p, n, f->bytes);
	why = errno;
	if (failed && ftruncate(fd, (off_t)f->bytes) < 0)
		why = EIO;
	if (close(fd) < 0 && !failed)
		return -1;
	errno = why;
	return failed;
}

void vc_trace_file_store(struct vc_trace_file *f, bool flush)
{
	struct vc_error err = { 0 };
	size_t n = 0;
	char *p;

	if (flush && !f->stopped && vc_encoder_flush(f->encoder, &err) < 0)
		vc_trace_file_stop(f, "the trace could not be encoded");
	p = vc_output_take(f->out, &n);
	if (!p)
		vc_trace_file_stop(f, "the recorder ran out of memory");
	else if (n && !f->stopped && append(f, p, n) < 0)
		vc_trace_file_stop(f, errno == ENOSPC ? "the disk is full" :
			errno == EDQUOT ? "the disk quota is used up" :
			errno == EFBIG ? "the trace reached the limit on file sizes (ulimit -f)" :
			"the trace could not be written");
	else if (!f->stopped)
		f->bytes += n;
	free(p);
}

bool vc_trace_file_finish(struct vc_trace_file *f, bool hole)
{
	struct vc_error err = { 0 };
	const char *why = f->stopped;
	bool ok;

	f->meta->gaps += hole || f->stopped;
	f->stopped = NULL;
	if (vc_encoder_finish(f->encoder, &err) < 0)
		vc_trace_file_stop(f, "the trace could not be encoded");
	vc_trace_file_store(f, false);
	ok = !f->stopped;
	f->stopped = why ? why : f->stopped;
	if (rename(f->part, f->path) < 0)
		vc_trace_file_stop(f, "the trace could not be renamed");
	return ok;
}

void vc_trace_file_release(struct vc_trace_file *f)
{
	vc_encoder_free(f->encoder);
	vc_output_close(f->out);
	vc_journal_decoder_free(f->decoder);
	f->encoder = NULL;
	f->out = NULL;
	f->decoder = NULL;
}

void vc_trace_file_fini(struct vc_trace_file *f)
{
	vc_trace_file_release(f);
	vc_meta_free(f->meta);
	VC_FREE(f->path, f->part);
	*f = (struct vc_trace_file){ 0 };
}

static void add_params(struct vc_meta *meta, struct vc_journal_reader *r)
{
	char buf[1024], key[32];

	for (int i = 0; i < 64; i++) {
		double value;
		char *eq;

		snprintf(key, sizeof(key), "param%d", i);
		if (!vc_journal_fact(r, key, buf, sizeof(buf)))
			return;
		eq = strchr(buf, '=');
		if (!eq)
			continue;
		*eq = '\0';
		if (vc_parse_real(eq + 1, &value, NULL) == 0)
			vc_meta_param(meta, buf, value);
	}
}

/* What the recorder wrote beside the journals, and what the process told of itself. */
static void add_program(struct vc_meta *meta, const char *journal, int64_t pid)
{
	const char *slash = strrchr(journal, '/');
	int dir = slash ? (int)(slash - journal + 1) : 0;
	char *told = vc_text("%.*s%lld" VC_PROGRAM_FILE, dir, journal, (long long)pid);
	char *path = vc_text("%.*s" VC_PROGRAM_FILE, dir, journal);
	struct vc_error err = { 0 };
	struct vc_program *p = path && access(path, R_OK) == 0 ? vc_program_new(&err) : NULL;

	if (p && vc_program_load(p, path, &err) == VC_OK && told)
		vc_program_told(p, told, &err);
	if (p && !err.status) {
		vc_program_free(meta->program);
		meta->program = p;
		p = NULL;
	}
	vc_program_free(p);
	VC_FREE(told, path);
}

void vc_trace_file_describe(struct vc_trace_file *f, struct vc_journal_reader *r,
			    const char *journal)
{
	char buf[4096];

	vc_journal_describe(r, f->meta);
	if (vc_journal_fact(r, "command", buf, sizeof(buf)))
		vc_meta_set(&f->meta->command, buf);
	if (vc_journal_fact(r, "plane", buf, sizeof(buf)) && strcmp(buf, "cpu") == 0 &&
	    f->meta->devices && !f->meta->device[0].name)
		vc_meta_set(&f->meta->device[0].name, "CPU");
	add_params(f->meta, r);
	add_program(f->meta, journal, vc_journal_header(r)->pid);
}
