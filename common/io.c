/* SPDX-License-Identifier: Apache-2.0 */
/* io.c - see io.h. The reading half; output.c writes. */
#include "common/io.h"
#include "common/unpack.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_SIZE ((size_t)1 << 19) /* decoded bytes kept at hand; grows only as data arrive */

struct vc_input {
	char *name;
	int fd;              /* -1: bytes in memory */
	bool own_fd, own_window;
	struct vc_unpack *unpack; /* NULL: the bytes are as they should be */
	uint8_t *raw;        /* what was read to find that out; the unpacker's where there is one */
	size_t raw_at, raw_end;
	uint8_t *window;     /* decoded bytes; lent when fd is -1 */
	size_t at, end, cap;
	bool eof, truncated;
	uint64_t offset;
};

static int fetch(struct vc_input *in, struct vc_error *err)
{
	size_t got = 0;

	if (in->unpack) {
		VC_TRY(vc_unpack_read(in->unpack, in->window + in->end, in->cap - in->end, &got,
				      err));
		in->eof = got == 0;
		in->truncated = in->eof && vc_unpack_truncated(in->unpack);
	} else if (in->raw_at < in->raw_end) { /* what was read to recognise the packing */
		got = in->raw_end - in->raw_at;
		if (got > in->cap - in->end)
			got = in->cap - in->end;
		memcpy(in->window + in->end, in->raw + in->raw_at, got);
		in->raw_at += got;
	} else {
		VC_TRY(vc_read_some(in->fd, in->name, in->window + in->end, in->cap - in->end,
				    &got, err));
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

static int start_unpacking(struct vc_input *in, struct vc_error *err)
{
	size_t got = 1;

	while (in->raw_end < 4 && got) {
		VC_TRY(vc_read_some(in->fd, in->name, in->raw + in->raw_end,
				    VC_RAW_SIZE - in->raw_end, &got, err));
		in->raw_end += got;
	}
	VC_TRY(vc_unpack_open(in->fd, in->name, in->raw, in->raw_end, &in->unpack, err));
	if (in->unpack)
		in->raw = NULL;
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
	in->own_window = true;
	in->raw = malloc(VC_RAW_SIZE);
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

struct vc_input *vc_input_inside(const struct vc_input *of, char *data, size_t n,
				 struct vc_error *err)
{
	struct vc_input *in = vc_input_memory(data, n, err);
	char *name = in ? strdup(of->name) : NULL;

	if (!name) {
		if (in)
			vc_nomem(err, "an input");
		vc_input_close(in);
		free(data);
		return NULL;
	}
	free(in->name);
	in->name = name;
	in->own_window = true;
	return in;
}

void vc_input_close(struct vc_input *in)
{
	if (!in)
		return;
	vc_unpack_close(in->unpack); /* it reads from the file */
	if (in->own_fd)
		close(in->fd);
	if (in->own_window) /* bytes in memory are lent */
		free(in->window);
	VC_FREE(in->raw, in->name, in);
}

int vc_input_line(struct vc_input *in, size_t most, char **line, size_t *cap, size_t *n,
		  struct vc_error *err)
{
	size_t want = 4096, got;
	const uint8_t *p, *end;

	while ((p = vc_input_peek(in, want, &got, err)) != NULL &&
	       !(end = memchr(p, '\n', got)) && got >= want && want <= most)
		want *= 2;
	if (!p || !got)
		return !p && err && err->status ? (int)err->status : 0;
	*n = end ? (size_t)(end - p) : got;
	if (*n > most)
		return vc_fail(err, VC_EFORMAT, "longer than %zu characters", most);
	VC_HAVE(vc_vec_room(*line, *cap, *n + 1), "a line", err);
	memcpy(*line, p, *n);
	(*line)[*n] = '\0';
	vc_input_skip(in, *n + (end != NULL));
	return 1;
}

char *vc_input_all(struct vc_input *in, size_t *n, struct vc_error *err)
{
	size_t got, used = 0, cap = 0;
	char *text = NULL;

	for (;;) {
		const uint8_t *p = vc_input_peek(in, 1 << 16, &got, err);
		bool failed = !p && err && err->status;

		if (failed || !vc_vec_room(text, cap, used + got + 1)) {
			if (!failed)
				vc_nomem(err, vc_input_name(in));
			free(text);
			return NULL;
		}
		if (!got)
			break;
		memcpy(text + used, p, got);
		used += got;
		vc_input_skip(in, got);
	}
	text[used] = '\0';
	if (n)
		*n = used;
	return text;
}
