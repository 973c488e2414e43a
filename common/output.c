/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - the writing half of io.h: nothing appears under the final name before commit. */
#define _GNU_SOURCE /* realpath, O_TMPFILE */
#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/vec.h"

#define FLUSH_AT ((size_t)1 << 16)

struct vc_output {
	char *path, *temporary; /* temporary: the name until commit, NULL: none */
	int fd;                 /* -1: memory */
	bool own_fd, committed;
	bool nameless;          /* else without temporary: written in place (a device, a pipe) */
	char *buf;
	size_t n, cap;
	int status;             /* first failure */
	int code;               /* its errno */
};

static void broken(struct vc_output *o, enum vc_status status, int code)
{
	if (o->status)
		return;
	o->status = status;
	o->code = code;
}

static void flush(struct vc_output *o)
{
	size_t done = 0;

	while (done < o->n && !o->status) {
		ssize_t n = write(o->fd, o->buf + done, o->n - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			broken(o, errno == EPIPE && !o->own_fd ? VC_EPIPE : VC_EIO, errno);
	}
	o->n = 0;
}

static bool room(struct vc_output *o, size_t n)
{
	if (o->fd >= 0 && o->n + n > FLUSH_AT)
		flush(o);
	if (vc_vec_room(o->buf, o->cap, o->n + n + 1)) /* one byte more, for the NUL of take */
		return true;
	broken(o, VC_ENOMEM, 0);
	return false;
}

void vc_output_write(struct vc_output *o, const void *data, size_t n)
{
	const char *from = data;

	while (n && !o->status) {
		size_t part = o->fd >= 0 && n > FLUSH_AT ? FLUSH_AT : n;

		if (!room(o, part))
			return;
		memcpy(o->buf + o->n, from, part);
		o->n += part;
		from += part;
		n -= part;
	}
}

void vc_output_text(struct vc_output *o, const char *text)
{
	vc_output_write(o, text, strlen(text));
}

void vc_output_csv(struct vc_output *o, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		vc_output_text(o, text);
		return;
	}
	vc_output_text(o, "\"");
	for (; *text; text++)
		vc_output_write(o, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	vc_output_text(o, "\"");
}

void vc_output_printf(struct vc_output *o, const char *fmt, ...)
{
	char small[512], *big;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0) {
		broken(o, VC_EINTERNAL, 0);
		return;
	}
	if ((size_t)n < sizeof(small)) {
		vc_output_write(o, small, (size_t)n);
		return;
	}
	big = malloc((size_t)n + 1);
	if (!big) {
		broken(o, VC_ENOMEM, 0);
		return;
	}
	va_start(ap, fmt);
	vsnprintf(big, (size_t)n + 1, fmt, ap);
	va_end(ap);
	vc_output_write(o, big, (size_t)n);
	free(big);
}

static struct vc_output *output_new(const char *path, struct vc_error *err)
{
	struct vc_output *o = calloc(1, sizeof(*o));

	if (o) {
		o->fd = -1;
		o->path = strdup(path);
	}
	if (o && o->path)
		return o;
	vc_nomem(err, "an output");
	free(o);
	return NULL;
}

struct vc_output *vc_output_memory(struct vc_error *err)
{
	return output_new("memory", err);
}

/* A file without a name is gone with its process, however that ends. */
static bool open_nameless(struct vc_output *o)
{
	const char *slash = strrchr(o->path, '/');
	char *folder = slash ? strndup(o->path, (size_t)(slash - o->path) + 1) : strdup(".");

	if (folder && !access("/proc/self/fd", X_OK)) /* give_name will need it */
		o->fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	free(folder);
	o->nameless = o->fd >= 0;
	return o->nameless;
}

/* Calls make until it made something under a name of its own: not mkstemp's, so that the file
 * gets the mode the user's umask says. False with errno where that is not to be had. */
static bool under_own_name(struct vc_output *o, int (*make)(struct vc_output *))
{
	size_t cap = strlen(o->path) + 48;

	o->temporary = malloc(cap);
	for (unsigned i = 0; o->temporary && i < 100; i++) {
		snprintf(o->temporary, cap, "%s.%ld-%u.part", o->path, (long)getpid(), i);
		if (make(o) >= 0)
			return true;
		if (errno != EEXIST)
			break;
	}
	free(o->temporary);
	o->temporary = NULL;
	return false;
}

static int create(struct vc_output *o)
{
	return o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int give_name(struct vc_output *o)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW);
}

static int open_temporary(struct vc_output *o, struct vc_error *err)
{
	if (open_nameless(o) ||
	    under_own_name(o, create)) /* NFS and FUSE know no files without a name */
		return 0;
	return vc_fail(err, VC_EIO, "cannot write %s: %s", o->path, strerror(errno));
}

int vc_output_possible(const char *path, struct vc_error *err)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	char *folder;
	bool can;

	if (!strcmp(path, "-"))
		return VC_OK;
	if (!*path)
		return vc_fail(err, VC_EUSAGE, "the name of the file to write is empty");
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return vc_fail(err, VC_EIO, "cannot write %s: it is a directory", path);
	if (!access(path, F_OK)) {
		can = !access(path, W_OK);
	} else {
		folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
		VC_HAVE(folder, "an output", err);
		can = !access(folder, W_OK | X_OK);
		free(folder);
	}
	return can ? VC_OK : vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
}

static int open_target(struct vc_output *o, struct vc_error *err)
{
	struct stat st;
	char *real;

	if (stat(o->path, &st))
		return open_temporary(o, err);
	if (S_ISDIR(st.st_mode))
		return vc_fail(err, VC_EIO, "cannot write %s: it is a directory", o->path);
	if (!S_ISREG(st.st_mode)) {
		o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
		if (o->fd < 0)
			return vc_fail(err, VC_EIO, "cannot write %s: %s", o->path,
				       strerror(errno));
		return 0;
	}
	if (access(o->path, W_OK)) /* a folder that lets it be replaced is not leave to do so */
		return vc_fail(err, VC_EIO, "cannot write %s: %s", o->path, strerror(errno));
	real = realpath(o->path, NULL); /* a link stays a link */
	if (real) {
		free(o->path);
		o->path = real;
	}
	return open_temporary(o, err);
}

struct vc_output *vc_output_open(const char *path, struct vc_error *err)
{
	bool standard = !strcmp(path, "-");
	struct vc_output *o = output_new(standard ? "standard output" : path, err);

	if (!o)
		return NULL;
	if (standard) {
		o->fd = STDOUT_FILENO;
		return o;
	}
	o->own_fd = true;
	if (!open_target(o, err))
		return o;
	vc_output_close(o);
	return NULL;
}

int vc_output_commit(struct vc_output *o, struct vc_error *err)
{
	if (o->fd >= 0)
		flush(o);
	if (o->nameless && !o->status && !under_own_name(o, give_name))
		broken(o, VC_EIO, errno);
	if (o->own_fd && o->fd >= 0) {
		if (close(o->fd) && errno != EINTR)
			broken(o, VC_EIO, errno);
		o->fd = -1;
		o->own_fd = false;
	}
	if (o->status == VC_ENOMEM)
		return vc_nomem(err, "an output");
	if (!o->status && o->temporary && rename(o->temporary, o->path))
		broken(o, VC_EIO, errno);
	if (o->status)
		return vc_fail(err, o->status, "cannot write %s: %s", o->path,
			       o->code ? strerror(o->code) : "bad format");
	o->committed = true;
	return 0;
}

char *vc_output_take(struct vc_output *o, size_t *n)
{
	char *all;

	if (o->status || !room(o, 1))
		return NULL;
	all = o->buf;
	all[o->n] = '\0';
	if (n)
		*n = o->n;
	o->buf = NULL;
	o->n = o->cap = 0;
	return all;
}

void vc_output_close(struct vc_output *o)
{
	if (!o)
		return;
	if (o->own_fd && o->fd >= 0)
		close(o->fd);
	if (o->temporary && !o->committed)
		unlink(o->temporary);
	VC_FREE(o->temporary, o->path, o->buf, o);
}
